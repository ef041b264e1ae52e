"""Reads the ports of a top module with a simulator's own front end,
after elaboration with the given parameters.

Verilator's `--json-only` reports everything. Icarus Verilog, which is used if Verilator is missing or
refuses the design, reports names, directions and widths (`.port_info` of its output) but not the declared
ranges of packed arrays.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from golden.errors import counted, nearest
from rtl_tb.dut import sources
from rtl_tb.dut.text import read
from rtl_tb.errors import ElaborationError, MachineError, SimulatorMissing, SimulatorTooOld
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator, ToolFailed, first_error, no_build

Range = tuple[int, int]
Node = dict[str, Any]
_TYPES_WITHOUT_BITS = {
    "IFACEREFDTYPE": "an interface",
    "CLASSREFDTYPE": "a class handle",
    "DYNARRAYDTYPE": "a dynamic array",
}
_LEADING = ("UNPACKARRAYDTYPE", "PACKARRAYDTYPE", "REFDTYPE", "ENUMDTYPE", "PARAMTYPEDTYPE")
"""Types that say something of another type: arrays of it, a name for it."""
_TWO_STATES = ("bit", "byte", "shortint", "int", "longint")
WITHOUT_BITS = "an empty range"
"""The problem of a port of VHDL whose range has no bit."""
_HAS_INTERFACE = "Interfaced port on top level module"
"""What Verilator says of a top module with an interface as a port."""
_ENCODED = re.compile(r"__0([0-9A-F]{2})")
_RANGE = re.compile(r"\[(-?\d+):(-?\d+)\]")


WIRE = "wire"


def entry_of(signed: bool, four_state: bool) -> str:
    """How an entry of an unpacked array is declared; a net has four states."""
    return f"{WIRE if four_state else 'bit'}{' signed' * signed}"


@dataclass(frozen=True)
class Port:
    """One port of the elaborated top module, or a field of one (rtl_tb/dut/port_fields.py).

    Attributes:
        direction: "input", "output" or "inout".
        width: bits in all, over all dimensions; 0 where `problem` says why a wire cannot be connected.
        packed: (left, right) of every packed dimension but the last, outermost first; None where unknown
            (Icarus).
        unpacked: (left, right) of every unpacked dimension.
        members: the fields of a packed structure or union, or of each entry of an array of them: the lowest
            bit of each in the structure, and its type as a port. Overlapping ones are those of a union.
        items: the values of an enumeration by name.
        base: of a field, the port in which it lies, from bit `offset` on of the vector or of each unpacked
            entry; `stride` is the number of bits from one entry of `packed` to the next, 0: side by side.
        interface: of a signal of an interface, the port that is one; `header` says that it is a port of the
            interface itself.
        entry: of an unpacked array what each entry is, as a wire at it is declared: a simulator connects
            arrays of equivalent types alone (IEEE 1800-2017, 6.22.2).
    """

    name: str
    direction: str
    width: int
    packed: tuple[Range, ...] | None = ()
    unpacked: tuple[Range, ...] = ()
    problem: str = ""
    members: tuple[tuple[int, Port], ...] = ()
    items: Mapping[str, int] = field(default_factory=dict)
    base: str = ""
    offset: int = 0
    stride: int = 0
    interface: str = ""
    header: bool = False
    entry: str = WIRE

    @property
    def shape(self) -> str:
        """As messages show it: "256 bits", or "16 entries of 16 bits"."""
        if self.unpacked:
            entries = count_entries(self.unpacked)
            return f"{entries} entries of {self.width // entries} bits"
        return counted(self.width, "bit")


@dataclass(frozen=True)
class Module:
    """An elaborated top module: its ports in the order of their declaration, and the names of its parameters.

    `interfaces`: the ports that are interfaces, and the interface of each; `ports` has their signals as
    port.signal in their place.
    """

    name: str
    ports: dict[str, Port]
    parameters: Sequence[str]
    interfaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Design:
    """What a simulator needs to elaborate a top module; `top` None lets it find the only one."""

    sources: Sequence[Path]
    top: str | None = None
    include: Sequence[Path] = ()
    defines: Mapping[str, str] | None = None
    parameters: Mapping[str, int | str] | None = None
    libraries: Sequence[Path] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    """Type parameters."""


_INTERFACE = re.compile(r"\binterface\b")


def read_ports(design: Design) -> Module:
    """Elaborates a design and returns its top module.

    Raises:
        ElaborationError: no simulator takes the design; the message is the simulator's own first error.
        SimulatorMissing, SimulatorTooOld: there is neither Verilator nor Icarus Verilog.
    """
    from rtl_tb.dut import headers, slang

    if design.types and design.top is None:
        found = headers.read_header(design)
        design = design if found is None else replace(design, top=found.name)
    try:
        module = _with_verilator(simulators.verilator(), design)
        # Verilator leaves a port out that is an interface, where another of its kind lies in the module.
        if any(_INTERFACE.search(read(path)) for path in design.sources):
            header = headers.read_header(design)
            if header is not None and header.interfaces:
                return slang.read_ports(design)
        return module
    except (SimulatorMissing, SimulatorTooOld, ElaborationError) as first:
        header = headers.read_header(design) if isinstance(first, ElaborationError) else None
        if _HAS_INTERFACE in str(first) or (header is not None and header.interfaces):
            return slang.read_ports(design)
        if header is not None and (hint := headers.missing_types(header, design, str(first))):
            raise ElaborationError(f"{first}{hint}") from None
        try:
            return _with_icarus(simulators.icarus(), design)
        except (SimulatorMissing, SimulatorTooOld, ElaborationError) as second:
            refused = first if isinstance(first, ElaborationError) else second
            said = str(refused)
            if hint := (
                headers.unknown_parameters(design, said)
                or headers.without_default(design, said)
                or headers.unknown_top(design, said)
            ):
                raise ElaborationError(f"{said.rstrip('.')}{hint}") from refused.__cause__
            last = refused if isinstance(refused, ElaborationError) else first
            raise last from last.__cause__  # the tool's whole log, and not the other tool's


def _elaborate(simulator: Simulator, design: Design, options: Iterable[str | Path], folder: Path) -> None:
    given = sources.options(simulator.name, design.include, design.defines or {}, design.libraries)
    command = [*simulator.start, *options, *given, *design.sources]
    limit = min(120.0, simulators.build_limit())
    try:
        simulators.run(command, folder=folder, env=simulator.env, log=folder / "log", timeout=limit)
    except ToolFailed as error:
        what = f"the module {design.top}" if design.top else "the sources"
        raise no_build(error, simulator.version_text, what, first_error(error.text)) from error


def literal(value: int | str) -> str:
    """A parameter's value as SystemVerilog writes it: a string whose every byte stays in it, or a number
    of any size."""
    if isinstance(value, str):
        return '"' + "".join(map(_character, value.encode())) + '"'
    if -(1 << 31) <= value < 1 << 31:
        return str(value)
    return f"{'-' * (value < 0)}{value.bit_length() + 1}'sd{abs(value)}"


def _character(byte: int) -> str:
    """One byte of a string literal; as an octal escape
    where it could mean something (IEEE 1800-2017, 5.9.1)."""
    return chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\' else f"\\{byte:03o}"


# Verilator --------------------------------------------------------------------------------------------------


def _with_verilator(simulator: Simulator, design: Design) -> Module:
    from rtl_tb.dut import headers

    options = [
        "--json-only",
        "--json-only-output",
        "tree.json",
        "--Mdir",
        "out",
        "--no-timing",
        "-Wno-lint",
        "-Wno-style",
    ]
    options += [*simulators.VERILATOR_GOES_ON]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # No option sets a parameter that is a type: a module around the top does.
        if design.types:
            shell = folder / f"{headers.SHELL}.sv"
            text = headers.shell_text(headers.Header(design.top or ""), design, "top")
            shell.write_text(text, encoding="utf-8")
            whole = replace(design, top=headers.SHELL, sources=[*design.sources, shell])
            _elaborate(simulator, whole, [*options, "--top-module", headers.SHELL], folder)
        else:
            options += ["--top-module", design.top] if design.top else []
            options += [f"-G{name}={literal(value)}" for name, value in (design.parameters or {}).items()]
            _elaborate(simulator, design, options, folder)
        try:
            tree = json.loads((folder / "tree.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise MachineError(
                f"{simulator.version_text} wrote no readable list of ports: {error}"
            ) from error
    modules = {_plain(node["origName"]): node for node in tree["modulesp"] if node["type"] == "MODULE"}
    modules.pop(headers.SHELL, None)
    # The top is at the lowest level; where several modules are nobody's child, Verilator takes them all.
    lowest = min((node["level"] for node in modules.values()), default=0)
    tops = {name: node for name, node in modules.items() if node["level"] == lowest}
    name = _only_top(design.top, tops)
    types = {
        node["addr"]: node
        for table in tree["miscsp"]
        if table["type"] == "TYPETABLE"
        for node in table["typesp"]
    }
    variables = [node for node in tops[name]["stmtsp"] if node["type"] == "VAR"]
    ports = {
        _plain(node["origName"]): _verilator_port(node, types)
        for node in variables
        if node.get("direction", "NONE") != "NONE"
    }
    return Module(
        name, ports, tuple(_plain(node["origName"]) for node in variables if node.get("varType") == "GPARAM")
    )


def _plain(name: str) -> str:
    """A name as the text has it: Verilator writes the second of two underscores as ___05F, a $ as __024."""
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), name)


def parameter_list(values: Mapping[str, int | str], types: Mapping[str, str]) -> str:
    """The parameters of an instance, as SystemVerilog; "" where there are none."""
    given = [f".{name} ({literal(value)})" for name, value in values.items()]
    given += [f".{name} ({kind})" for name, kind in types.items()]
    return f"#({', '.join(given)}) " if given else ""


def _only_top(wanted: str | None, tops: Iterable[str]) -> str:
    names = sorted(tops)
    if wanted in names:
        return str(wanted)
    if wanted is not None or len(names) != 1:
        raise ElaborationError(
            f"expected one top module{nearest(wanted or '', names)}, found {', '.join(names) or 'none'}; "
            "--top of rtl init, or top: in dut.yaml, chooses one"
        )
    return names[0]


def _verilator_port(node: Node, types: dict[str, Node]) -> Port:
    return _of_type(_plain(node["origName"]), node["direction"].lower(), types[node["dtypep"]], types)


def _of_type(name: str, direction: str, kind: Node, types: dict[str, Node]) -> Port:
    """A port, or a field, of a type."""
    packed: list[Range] = []
    unpacked: list[Range] = []
    items: dict[str, int] = {}
    entry_signed = False
    while kind["type"] in _LEADING:
        entry_signed = bool(kind.get("signed"))  # that of the type below, too
        if kind["type"] in ("UNPACKARRAYDTYPE", "PACKARRAYDTYPE"):
            (unpacked if kind["type"] == "UNPACKARRAYDTYPE" else packed).append(_range(kind["declRange"]))
        if kind["type"] == "ENUMDTYPE":
            items = {_plain(item["name"]): _constant(item["valuep"][0]["name"]) for item in kind["itemsp"]}
        kind = types[kind["dtypep" if kind["type"] == "PARAMTYPEDTYPE" else "refDTypep"]]
    members: list[tuple[int, Port]] = []
    if kind["type"] in ("STRUCTDTYPE", "UNIONDTYPE") and kind.get("packed"):
        fields = [
            _of_type(_plain(each["name"]), direction, types[each["dtypep"]], types)
            for each in kind["membersp"]
        ]
        bits = members_of(fields, kind["type"] == "UNIONDTYPE", members)
    else:
        bits = _bits(kind)
    if bits == 0:
        problem = _TYPES_WITHOUT_BITS.get(kind["type"], f"of type {kind.get('name') or kind['type'].lower()}")
        return Port(name, direction, 0, problem=problem)
    width = count_entries(packed) * count_entries(unpacked) * bits
    dimensions = (tuple(packed), tuple(unpacked))
    four_state = kind.get("isFourstate", kind.get("keyword", "logic") not in _TWO_STATES)
    entry = entry_of(entry_signed and not items, four_state or bool(items)) if unpacked else WIRE
    return Port(name, direction, width, *dimensions, members=tuple(members), items=items, entry=entry)


def members_of(fields: Sequence[Port], union: bool, members: list[tuple[int, Port]]) -> int:
    """Fills `members` with the fields of a packed structure, of which the first is the highest, or of a union
    and returns its width."""
    widths = [each.width for each in fields]
    total = max(widths, default=0) if union else sum(widths)
    at = total
    for each in fields:
        at -= each.width
        members.append((0 if union else at, each))
    return total if all(widths) else 0


def _constant(text: str) -> int:
    """The value of "2'h1", "32'sh3"."""
    _, _, digits = text.rpartition("h")
    return int(digits, 16)


def _bits(kind: Node) -> int:
    """Width of a type that is no structure; 0 for one without bits (real, string, interfaces)."""
    if kind["type"] != "BASICDTYPE" or kind["keyword"] in ("real", "string", "chandle", "event"):
        return 0
    left, right = (int(end) for end in kind.get("range", "0:0").split(":"))
    return abs(left - right) + 1


def _range(text: str) -> Range:
    match = _RANGE.match(text)
    assert match is not None, text
    return int(match[1]), int(match[2])


def count_entries(ranges: Iterable[Range]) -> int:
    """Entries of an array with these dimensions."""
    count = 1
    for left, right in ranges:
        count *= abs(left - right) + 1
    return count


# Icarus Verilog ---------------------------------------------------------------------------------------------

_SCOPE = re.compile(r'^S_\w+ \.scope (?P<kind>\w+), "[^"]*" "(?P<name>[^"]*)" \d+ \d+(?P<nested>, .*)?;')
_PORT = re.compile(r'^ +\.port_info \d+ /(?P<direction>\w+) (?P<width>\d+) "(?P<name>[^"]*)"')
_PARAMETER = re.compile(r'^P_\w+ \.param/\w+ "(?P<name>[^"]*)" (?P<local>\d)')
_ARRAY = re.compile(r'^v\w+ \.array(?:/\w+)? "(?P<name>[^"]*)", (?P<left>-?\d+) (?P<right>-?\d+);')


def _with_icarus(simulator: Simulator, design: Design) -> Module:
    parameters = design.parameters or {}
    if design.types:
        raise ElaborationError("Icarus Verilog has no type parameters")
    if parameters and design.top is None:
        raise ElaborationError("Icarus Verilog takes parameters only with the name of the top module")
    options = ["-g2012", "-o", "out.vvp", *(["-s", design.top] if design.top else [])]
    options += [f"-P{design.top}.{name}={literal(value)}" for name, value in parameters.items()]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _elaborate(simulator, design, options, folder)
        roots = _icarus_roots((folder / "out.vvp").read_text(encoding="utf-8", errors="replace"))
    name = _only_top(design.top, roots)
    return roots[name]


def _icarus_roots(program: str) -> dict[str, Module]:
    """Every root module of a vvp program."""
    roots: dict[str, Module] = {}
    current: dict[str, Port] = {}
    parameters: list[str] = []
    for line in program.splitlines():
        if scope := _SCOPE.match(line):
            current, parameters = {}, []
            if scope["kind"] == "module" and not scope["nested"]:
                roots[scope["name"]] = Module(scope["name"], current, parameters)
        elif (parameter := _PARAMETER.match(line)) and parameter["local"] == "0":
            parameters.append(parameter["name"])
        elif port := _PORT.match(line):
            name = port["name"]
            current[name] = Port(name, port["direction"].lower(), int(port["width"]), packed=None)
        elif (array := _ARRAY.match(line)) and array["name"] in current:
            # Icarus connects unpacked arrays index by index whatever their declared direction, so any
            # direction will do.
            low, high = sorted((int(array["left"]), int(array["right"])))
            old = current[array["name"]]
            current[old.name] = Port(old.name, old.direction, old.width, None, ((low, high),))
    return roots
