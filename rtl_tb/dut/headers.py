"""What the header of a top module says before anything is elaborated: its interfaces and its type parameters.

No simulator elaborates a top whose type parameter has no default, or none that serves. Its header alone says
which types have to be given; a shell around it (`shell_text`) gives them.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rtl_tb.dut.ports import Design, parameter_list
from rtl_tb.errors import ElaborationError

T = TypeVar("T")
SHELL = "mmagold_types"
_SHOWN = 3  # names in a message
_NO_TOP = re.compile(r"top-module '\w+' was not found|find the root module")  # Verilator; Icarus


@dataclass(frozen=True)
class Header:
    """The header of a top module.

    Attributes:
        interfaces: its ports that are interfaces, and the interface of each.
        types: its type parameters, and those of its interfaces as port.NAME, with their defaults as text;
            None: it has none.
        known: types that the packages of the design have, structures first.
        required: parameters, other than types, that have no default.
    """

    name: str
    interfaces: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str | None] = field(default_factory=dict)
    known: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


def of_top(given: Mapping[str, T]) -> dict[str, T]:
    """The parameters, or types, of the top module itself."""
    return {name: value for name, value in given.items() if "." not in name}


def of_interface(given: Mapping[str, T], port: str) -> dict[str, T]:
    """Those of the interface at a port: bus.W is W of the one at bus."""
    begin = f"{port}."
    return {name[len(begin) :]: value for name, value in given.items() if name.startswith(begin)}


def read_header(design: Design) -> Header | None:
    """The header of a design's top module; None where pyslang is not installed, or there is no one top."""
    if importlib.util.find_spec("pyslang") is None:
        return None
    from rtl_tb.dut.slang import parsed

    try:
        driver = parsed(design)  # it owns the text
    except ElaborationError:
        return None
    nodes = _Nodes()
    for tree in driver.syntaxTrees:
        tree.root.visit(nodes.note)
    roots = list(nodes.modules.keys() - nodes.used)
    name = design.top or (roots[0] if len(roots) == 1 else "")
    return nodes.header(name) if name in nodes.modules else None


def tops(design: Design) -> list[str]:
    """The modules of a design that no other one instantiates; nothing where pyslang is not installed.

    A module without ports is none and uses none, where there are others: it is a test bench, or a macro wrote
    it so that another module is used.
    """
    if importlib.util.find_spec("pyslang") is None:
        return []
    from rtl_tb.dut.slang import parsed

    try:
        driver = parsed(replace(design, top=None))  # it owns the text
    except ElaborationError:
        return []
    nodes = _Nodes()
    for tree in driver.syntaxTrees:
        tree.root.visit(nodes.note)
    ports = {name: str(node.header.ports or "").strip(" ()\n") for name, node in nodes.modules.items()}
    units = {name for name, text in ports.items() if text}
    used = {name for name, by in nodes.users.items() if by & {*units, ""}}
    return sorted(units - used) or sorted(nodes.modules.keys() - nodes.used)


def unknown_top(design: Design, said: str) -> str:
    """The tops that the sources have, where a design was refused since they have no module of the name that
    was given; "" where that was not what was `said`."""
    if design.top is None or not _NO_TOP.search(said):
        return ""
    names = tops(design)[:_SHOWN]
    return (
        f"; key 'top' (--top of rtl init) is '{design.top}', expected {' or '.join(names)}" if names else ""
    )


def unknown_parameters(design: Design, said: str) -> str:
    """Which module was taken as the top, where the parameters that were given are not its; "" where that was
    not what was `said`."""
    if "arameters from the command line were not found" not in said:
        return ""
    found = [design.top] if design.top is not None else tops(design)
    names = ", ".join(map(str, found)) or "what is not known"
    many = "the modules that no other one instantiates are"
    taken = many if len(found) > 1 else "the top was taken to be"
    return f"; {taken} {names}: --top of rtl init, or top: in dut.yaml, chooses the module"


def without_default(design: Design, said: str) -> str:
    """Which parameters the top needs, where a design was refused since they have no default; "" where that
    was not what was `said`."""
    if "arameter without default value" not in said:
        return ""
    names = re.findall(r"'(\w+)'", said)[:1]
    header = read_header(design)
    required = [each for each in header.required if each not in (design.parameters or {})] if header else []
    names = required or names
    options = " ".join(f"-G {name}=VALUE" for name in names)
    keys = ", ".join(f"{name}: VALUE" for name in names)
    return f"; give them with {options} of rtl init, or parameters: {{{keys}}} in dut.yaml"


class _Nodes:
    """What the syntax trees of a design declare."""

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}
        self.interfaces: dict[str, Any] = {}
        self.users: dict[str, set[str]] = {}
        self.structures: list[str] = []
        self.others: list[str] = []

    def note(self, node: Any) -> None:
        kind = getattr(getattr(node, "kind", None), "name", "")
        if kind == "ModuleDeclaration":
            self.modules[node.header.name.valueText] = node
        elif kind == "InterfaceDeclaration":
            self.interfaces[node.header.name.valueText] = node
        elif kind == "HierarchyInstantiation":
            self.users.setdefault(node.type.valueText, set()).add(_module_around(node))
        elif kind == "PackageDeclaration":
            self._package(node)

    @property
    def used(self) -> set[str]:
        """The modules that are instantiated."""
        return set(self.users)

    def _package(self, node: Any) -> None:
        for member in node.members:
            if member.kind.name == "TypedefDeclaration":
                found = self.structures if member.type.kind.name == "StructType" else self.others
                found.append(f"{node.header.name.valueText}::{member.name.valueText}")

    def header(self, name: str) -> Header:
        """The header of the module of that name."""
        node = self.modules[name]
        interfaces = dict(self._interfaces(node))
        types = dict(_types(node))
        for port, kind in interfaces.items():
            if kind in self.interfaces:
                types |= {f"{port}.{each}": default for each, default in _types(self.interfaces[kind])}
        required = tuple(_without_default(node))
        return Header(name, interfaces, types, (*self.structures, *self.others), required)

    def _interfaces(self, node: Any) -> Iterator[tuple[str, str]]:
        last = ""
        for port in _kinds(node.header.ports, "ImplicitAnsiPort"):
            own = "".join(str(port.header).split())
            last = own or last  # a, b: the second is of the kind of the first
            kind = last.partition(".")[0]
            if port.header.kind.name == "InterfacePortHeader" or kind in self.interfaces:
                yield port.declarator.name.valueText, kind


def _module_around(node: Any) -> str:
    """The module in which a node stands; "" where it stands in none."""
    while node is not None and node.kind.name != "ModuleDeclaration":
        node = node.parent
    return "" if node is None else str(node.header.name.valueText)


def _kinds(nodes: Iterable[Any] | None, kind: str) -> Iterator[Any]:
    """Those below a list of nodes that are of a kind."""
    for node in nodes or ():
        name = getattr(getattr(node, "kind", None), "name", "")
        if name == kind:
            yield node
        elif name in ("SeparatedList", "SyntaxList"):
            yield from _kinds(node, kind)


def _types(node: Any) -> Iterator[tuple[str, str | None]]:
    """The type parameters of a module or an interface with their defaults."""
    for each in _parameters(node):
        if (
            getattr(each.kind, "name", "") == "TypeParameterDeclaration"
            and each.keyword.valueText != "localparam"
        ):
            for one in _kinds(each.declarators, "TypeAssignment"):
                default = one.assignment
                yield one.name.valueText, None if default is None else str(default.type).strip()


def _without_default(node: Any) -> Iterator[str]:
    """The parameters of a module, other than types, that have no default."""
    for each in _parameters(node):
        if (
            getattr(each.kind, "name", "") == "ParameterDeclaration"
            and each.keyword.valueText != "localparam"
        ):
            for one in _kinds(each.declarators, "Declarator"):
                if one.initializer is None:
                    yield one.name.valueText


def _parameters(node: Any) -> list[Any]:
    """The declarations of parameters of a module or an interface."""
    listed = [] if node.header.parameters is None else list(node.header.parameters.declarations)
    return [
        *listed,
        *(each.parameter for each in node.members if each.kind.name == "ParameterDeclarationStatement"),
    ]


def shell_text(header: Header, design: Design, instance: str) -> str:
    """A module around the top, since no option of a simulator sets a type, nor a parameter of an
    interface."""
    values, types = design.parameters or {}, design.types
    lines = [
        f"    {kind} {parameter_list(of_interface(values, port), of_interface(types, port))}i_{port} ();"
        for port, kind in header.interfaces.items()
    ]
    pins = ", ".join(f".{port} (i_{port})" for port in header.interfaces)
    own = parameter_list(of_top(values), of_top(types))
    return "\n".join(
        [f"module {SHELL};", *lines, f"    {header.name} {own}{instance} ({pins});", "endmodule", ""]
    )


def missing_types(header: Header, design: Design, said: str) -> str:
    """Which types have to be given, or another than the default, where a design was refused for what was
    `said`; "" where it was not for a type."""
    left = {name: default for name, default in header.types.items() if name not in design.types}
    required = [name for name, default in left.items() if default is None]
    required = required or [name for name in left if f"'{name.rpartition('.')[2]}'" in said]
    if not required:
        return ""
    example = header.known[0] if header.known else "my_pkg::my_type"
    words = ", ".join(f"{name}: {example}" for name in required)
    options = " ".join(f"--type {name}={example}" for name in required)
    others = ", ".join(header.known[1 : _SHOWN + 1])
    more = f" (or {others})" if others else ""
    defaults = ", ".join(
        f"{name} (no default)" if left[name] is None else f"{name} = {left[name]}" for name in required
    )
    return (
        f"; {header.name} has the type parameter{'s' * (len(required) > 1)} {defaults}: say which type it "
        f"gets, with types: {{{words}}} in dut.yaml or {options} of rtl init{more}"
    )
