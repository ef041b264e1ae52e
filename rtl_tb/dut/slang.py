"""Reads the ports of a top module with pyslang, where Verilator cannot: a port that is an interface.

The signals of an interface become ports of their own, `bus.valid`, with the directions of its modport; so do
the ports of the interface itself. The wrapper declares the interface and connects them.
"""

from __future__ import annotations

import importlib
import importlib.util
import shlex
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtl_tb.dut.headers import SHELL, missing_types, of_top, read_header, shell_text
from rtl_tb.dut.ports import Design, Module, Port, count_entries, entry_of, literal, members_of
from rtl_tb.dut.text import in_ascii, read
from rtl_tb.errors import ElaborationError, SimulatorMissing
from rtl_tb.simulators.simulators import first_error

GET_PYSLANG = 'pip install "pyslang>=12,<13"'
LENIENT = (
    "--allow-use-before-declare",
    "--relax-enum-conversions",
    "-Wno-duplicate-definition",
    *("--timescale", "1ns/1ps"),
    *("-U", "__slang__", "-U", "__slang_major__", "-U", "__slang_minor__"),
)
"""Options of every reader made of slang: it reads what the simulators take, also files of which some have a
timescale and others none, and a package that several files include. (Verilator refuses two different modules
of one name.) A branch for slang alone is no design's."""
_SIGNALS = ("Variable", "Net")
_INSTANCE = "top"
"""The top module in the shell around it."""
_DIRECTIONS = {"In": "input", "Out": "output", "InOut": "inout", "Ref": "inout"}


def read_ports(design: Design) -> Module:
    """The top module of a design, with the signals of its interfaces.

    Raises:
        SimulatorMissing: pyslang is not installed. ElaborationError: it refuses the design.
    """
    if importlib.util.find_spec("pyslang") is None:
        raise SimulatorMissing(f"a port is an interface, and pyslang reads those; install it: {GET_PYSLANG}")
    compilation, top = elaborated(design)
    ports: dict[str, Port] = {}
    interfaces: dict[str, str] = {}
    names = [each.name for each in top.body.parameters if not each.isLocalParam]
    uses = _Uses(compilation, top)
    for symbol in top.body.portList:
        if symbol.kind.name == "InterfacePort":
            interfaces[symbol.name] = _interface(symbol, ports, uses)
            own = symbol.connection[0].body.parameters
            names += [f"{symbol.name}.{each.name}" for each in own if not each.isLocalParam]
        else:
            ports[symbol.name] = _port(symbol.name, _DIRECTIONS[symbol.direction.name], symbol.type)
    name = str(top.body.definition.name)
    del compilation, uses  # they own all symbols
    return Module(name, ports, tuple(names), interfaces)


def parsed(design: Design, sources: Iterable[str | Path] = ()) -> Any:
    """A driver that has read the text of a design, and of these sources behind it.

    Raises:
        ElaborationError: it cannot, or there is no source.
    """
    words = ["slang", "--single-unit", "--allow-toplevel-iface-ports", "--compat=all", "-Wnone", *LENIENT]
    words += ["--top", design.top] if design.top else []
    words += [f"-G{name}={literal(value)}" for name, value in of_top(design.parameters or {}).items()]
    words += [f"-D{name}={value}" if value else f"-D{name}" for name, value in (design.defines or {}).items()]
    words += [word for path in design.include for word in ("-I", str(path))]
    words += [word for path in design.libraries for word in ("-y", str(path))]
    named = [str(path) for path in (*design.sources, *sources)]
    if not named:  # slang would write that on the terminal
        raise ElaborationError("there are no sources")
    words += named
    given: dict[Path, str] = {}
    while True:
        slang = importlib.import_module("pyslang.driver").Driver()
        slang.addStandardArgs()
        # slang returns UTF-8 only. Once a file is known not to be ASCII, it is given as ASCII.
        for path, text in given.items():
            slang.sourceManager.assignText(str(path), text)
        command = slang.parseCommandLine(shlex.join(words)) and slang.processOptions()
        if not (command and slang.parseAllSources()):
            raise ElaborationError(f"slang cannot read the sources of {design.top}")
        manager = slang.sourceManager
        files = {Path(str(manager.getFullPath(each))) for each in manager.getAllBuffers()} - given.keys()
        texts = {path: read(path) for path in files if path.is_file()}
        new = {path: in_ascii(text) for path, text in texts.items() if not text.isascii()}
        if not new:
            return slang
        given |= new


def elaborated(design: Design, *, in_dead_text: bool = False) -> tuple[Any, Any]:
    """The compilation and its top instance; types, and parameters of its interfaces, are given to it by a
    shell around it.

    Args:
        in_dead_text: an error that simulators forgive, since constants never choose where it is, is none: a
            replication by zero, which has no type then, or a cell that only synthesis takes.
    """
    header = read_header(design) if design.types or _of_interfaces(design) else None
    if header is None:
        slang = parsed(design)
    else:
        with tempfile.TemporaryDirectory(prefix="mmagold_types_") as folder:
            shell = Path(folder) / f"{SHELL}.sv"
            shell.write_text(shell_text(header, design, _INSTANCE), encoding="utf-8")
            slang = parsed(replace(design, top=SHELL, parameters=None), [shell])
    compilation = slang.createCompilation()
    tops = list(compilation.getRoot().topInstances)
    diags = importlib.import_module("pyslang").Diags
    forgiven = (diags.ReplicationZeroOutsideConcat, diags.UnknownModule)
    errors = [
        each
        for each in compilation.getAllDiagnostics()
        if each.isError() and not (in_dead_text and each.code in forgiven)
    ]
    if errors or len(tops) != 1:
        text = importlib.import_module("pyslang").DiagnosticEngine.reportAll(slang.sourceManager, errors)
        names = ", ".join(each.name for each in tops) or "none"
        said = (
            f"slang refused the module {design.top or ''}: {first_error(text)}"
            if errors
            else f"expected one top module, found {names}"
        )
        found = header or read_header(design)
        raise ElaborationError(said + (missing_types(found, design, text) if found is not None else ""))
    return compilation, tops[0] if header is None else tops[0].body.find(_INSTANCE)


def _of_interfaces(design: Design) -> bool:
    return any("." in name for name in design.parameters or {})


class _Uses:
    """Which signals of an interface a module drives, and which it names at all."""

    def __init__(self, compilation: Any, top: Any) -> None:
        self.compilation, self.top = compilation, top
        self.drivers: Any = None
        self.named: set[str] = set()

    def direction(self, signal: Any) -> str:
        """The direction of a signal at the module: an output is what it drives; "" where it does not name
        it."""
        if self.drivers is None:
            self.drivers = importlib.import_module("pyslang.analysis").AnalysisManager()
            self.drivers.analyze(self.compilation)
            self.top.visit(self._note)
        inside = str(self.top.hierarchicalPath)
        places = [str(each.containingSymbol.hierarchicalPath) for each in self.drivers.getDrivers(signal)]
        if any(place == inside or place.startswith(f"{inside}.") for place in places):
            return "output"
        return "input" if str(signal.hierarchicalPath) in self.named else ""

    def _note(self, node: Any) -> None:
        if type(node).__name__ in ("HierarchicalValueExpression", "NamedValueExpression"):
            self.named.add(str(node.symbol.hierarchicalPath))


def _interface(symbol: Any, ports: dict[str, Port], uses: _Uses) -> str:
    """Adds the signals of an interface to `ports` and returns its name. Without a modport what the module
    drives is an output, and what else it names an input."""
    definition = symbol.interfaceDef
    kind = definition.name if definition is not None else "a generic interface"
    if definition is None or symbol.declaredRange:
        raise ElaborationError(f"port '{symbol.name}' is {kind} or an array: write a shell around the module")
    instance, modport = symbol.connection
    own = [each for each in instance.body.portList if each.kind.name == "Port"]
    for each in own:
        name = f"{symbol.name}.{each.name}"
        ports[name] = _port(
            name, _DIRECTIONS[each.direction.name], each.type, interface=symbol.name, header=True
        )
    if modport is None:
        signals = [(each, uses.direction(each)) for each in instance.body if each.kind.name in _SIGNALS]
    else:
        inside = [each for each in modport if each.kind.name == "ModportPort"]
        signals = [(each, _DIRECTIONS[each.direction.name]) for each in inside]
    for each, direction in signals:
        name = f"{symbol.name}.{each.name}"
        if direction and name not in ports:
            ports[name] = _port(name, direction, each.type, interface=symbol.name)
    return str(kind)


def _port(name: str, direction: str, kind: Any, **more: Any) -> Port:
    """A port, or a field, of a type."""
    packed: list[tuple[int, int]] = []
    unpacked: list[tuple[int, int]] = []
    kind = kind.canonicalType
    while kind.kind.name == "FixedSizeUnpackedArrayType":
        unpacked.append((kind.range.left, kind.range.right))
        kind = kind.elementType.canonicalType
    if unpacked and kind.isIntegral and not kind.isEnum:
        more |= {"entry": entry_of(kind.isSigned, kind.isFourState)}
    while kind.kind.name == "PackedArrayType" and kind.elementType.canonicalType.kind.name != "ScalarType":
        packed.append((kind.range.left, kind.range.right))
        kind = kind.elementType.canonicalType
    items: dict[str, int] = {}
    if kind.kind.name == "EnumType":
        items = {each.name: int(each.value.value) for each in kind}
    if not kind.isIntegral:
        return Port(name, direction, 0, problem=f"of type {kind}", **more)
    members: list[tuple[int, Port]] = []
    if kind.kind.name in ("PackedStructType", "PackedUnionType"):
        fields = [_port(each.name, direction, each.type) for each in kind if each.kind.name == "Field"]
        members_of(fields, kind.kind.name == "PackedUnionType", members)
    width = count_entries(packed) * count_entries(unpacked) * kind.bitWidth
    return Port(
        name, direction, width, tuple(packed), tuple(unpacked), members=tuple(members), items=items, **more
    )
