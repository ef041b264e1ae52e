"""The description of a unit under test: reads a `dut.yaml` (docs/dut.md shows every key) into a `Dut`.

What a file says is checked as far as the file alone can tell; that the ports exist and have the right widths
is checked by rtl_tb/dut/wrapper.py, which asks a simulator's front end.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from golden import yamlfile
from golden.catalog.lookup import instruction
from golden.errors import MmagoldError, OperandError, SpecError, nearest
from golden.instruction import Instruction
from golden.program.state import CONTROLS
from golden.vectors.word import LEVELS, RESULTS, Field, WordLayout
from golden.yamlfile import Section
from rtl_tb.dut.exclude import ANSWERS, CLASSES, OF_INTEGERS, Exclusion
from rtl_tb.dut.policy import NAN_POLICIES, ZERO_POLICIES, ComparePolicy
from rtl_tb.dut.portmap import PortMap, check_overlaps, read_map
from rtl_tb.dut.sources import Sources, check_sizes, in_vhdl, matching, packages_first, read_list
from rtl_tb.dut.vhdl import STANDARDS, Vhdl

HANDSHAKES = ("valid_ready", "valid", "latency", "combinational")
PLACEHOLDER = "architecture:name"
"""What a draft says where no instruction was given, and none has the widths of the ports."""
MAX_CYCLES = 100_000
GENERATED = ("mmagold_dut.sv", "mmagold_dut.vhd", "mmagold_tb.sv", "mmagold_timescale.sv")
"""What a build folder holds: a pattern such as **/*.sv must not take an old wrapper for a source."""
_LANGUAGES = {
    ".sv": "SystemVerilog",
    ".svh": "SystemVerilog",
    ".v": "Verilog",
    ".vhd": "VHDL",
    ".vhdl": "VHDL",
}
"""Suffixes of sources, which are not what a check takes."""
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
TYPE = re.compile(
    rf"(?:{IDENTIFIER.pattern}::)*{IDENTIFIER.pattern}(?: +(?:signed|unsigned))?(?: *\[[\w: +*-]+\])*"
)
"""A named type, or a built-in one with its ranges: logic [15:0]."""
PORT = re.compile(rf"{IDENTIFIER.pattern}(\.{IDENTIFIER.pattern})*")
"""A port, or a field of one."""


@dataclass(frozen=True)
class Reset:
    """The DUT's reset port.

    `cycles` is how many clock cycles a reset must last. An asynchronous reset may fall anywhere in a cycle.
    """

    port: str
    active_low: bool
    synchronous: bool
    cycles: int


HOLDS = ("operands", "valid")
"""What stays as it is until the result: the operands, or the valid as well."""


@dataclass(frozen=True)
class Channel:
    """Some of the operands, with a handshake of their own."""

    operands: tuple[str, ...]
    valid: str
    ready: str | None = None


@dataclass(frozen=True)
class Handshake:
    """How operands go in and results come out.

    kind: one of HANDSHAKES. The five names are ports of the DUT, or None where it has no such port.
    latency: clock edges from taking the operands to the result (kind latency), or None while it is to be
        measured.
    measured: whether the file says `latency: measure`.
    interval: the DUT takes one set of operands every `interval` cycles (kinds valid and latency).
    active_low: those of the ports that mean with 0 what the others mean with 1.
    agreed: the input's valid, or the output's ready, where it may be active only while its fellow is: a
        method of Bluespec is called only when it is ready.
    level: whether out_valid stays active from a result until the next operands: then the cycle in which it
        rises counts.
    more_valids: further ports that are active like in_valid, where all are needed.
    channels: where operands come by several handshakes; in_valid and in_ready are None then.
    probing: whether the bench hands over a vector in every cycle and reads a result in every cycle, and
        the unit is given every `interval`-th of them: how a latency is measured.
    hold: one of HOLDS, where the operands must stay until the result; None: they need not.
    """

    kind: str
    in_valid: str | None = None
    in_ready: str | None = None
    out_valid: str | None = None
    out_ready: str | None = None
    enable: str | None = None
    latency: int | None = None
    measured: bool = False
    interval: int = 1
    active_low: frozenset[str] = frozenset()
    agreed: frozenset[str] = frozenset()
    level: bool = False
    more_valids: tuple[str, ...] = ()
    channels: tuple[Channel, ...] = ()
    hold: str | None = None
    probing: bool = False

    @property
    def says_when(self) -> bool:
        """Whether a port says which cycles bring operands."""
        return bool(self.in_valid or self.channels)

    def inputs(self) -> dict[str, str]:
        """The DUT's input ports by role."""
        roles = {"input valid": self.in_valid, "output ready": self.out_ready, "enable": self.enable}
        roles |= {f"input valid {at}": port for at, port in enumerate(self.more_valids, 2)}
        roles |= {f"valid of {' and '.join(each.operands)}": each.valid for each in self.channels}
        return {role: port for role, port in roles.items() if port}

    def outputs(self) -> dict[str, str]:
        """The DUT's output ports by role."""
        roles = {"input ready": self.in_ready, "output valid": self.out_valid}
        roles |= {f"ready of {' and '.join(each.operands)}": each.ready for each in self.channels}
        return {role: port for role, port in roles.items() if port}


@dataclass(frozen=True, eq=False)
class Dut:
    """A unit under test. Paths are absolute.

    Attributes:
        name: what reports call it.
        file: the dut.yaml.
        top: the designer's top module; `parameters` are its parameters and `types` its type parameters, by
            name; those of the interface at port bus are bus.NAME.
        sources, include: files in compile order, and include folders.
        libraries: folders in which a module that the sources lack is looked for by its name.
        defines: preprocessor macros; an empty text defines without a value.
        instruction, instruction_name: what it must compute, and how the file (or `override`) named it.
        level: "dot" (one dot product at a time) or "tile" (the whole matrices).
        layout: the bits of one vector at that level.
        clock: name of the clock port; None for a combinational unit without one.
        reset: None where the DUT has no reset port: resets in mid-flight mean nothing to it.
        ports: where each operand and result lie, by operand.
        constants: input ports that are tied, and their values: numbers, or names of an enumeration.
        where: "file:line" of keys, for messages that come later.
        vhdl: what a unit in VHDL needs beside its sources; None: it is Verilog or SystemVerilog.
    """

    name: str
    file: Path
    top: str
    sources: tuple[Path, ...]
    include: tuple[Path, ...]
    libraries: tuple[Path, ...]
    defines: dict[str, str]
    parameters: dict[str, int | str]
    types: dict[str, str]
    instruction: Instruction
    instruction_name: str
    level: str
    layout: WordLayout
    clock: str | None
    reset: Reset | None
    handshake: Handshake
    ports: dict[str, PortMap]
    constants: dict[str, int | str]
    compare: ComparePolicy
    where: dict[str, str]
    vhdl: Vhdl | None = None

    @property
    def exclude(self) -> Exclusion | None:
        """The operands that do not count, or None."""
        return self.compare.exclude

    @property
    def can_stall_output(self) -> bool:
        """Whether the wrapper heeds out_ready. If not, a result that is not taken at once is lost."""
        shake = self.handshake
        return bool(shake.out_ready or shake.enable or shake.kind == "combinational")

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The fields of the operand word and of the result word, by operand, as ports carry them."""
        fields = _port_fields(self.layout)
        fields = {name: field for name, field in fields.items() if name != "clear" or name in self.ports}
        if "mode" in fields and "mode" not in self.ports:
            parts = _with_mode_fields(fields, self.instruction)
            return {name: _of_bits(part, len(self.ports[name].ports)) for name, part in parts.items()}
        return fields

    def with_latency(self, latency: int) -> Dut:
        """The same DUT with a latency of `latency` clock edges; for those whose latency is measured.

        Raises:
            SpecError: the handshake is of another kind.
        """
        if self.handshake.kind != "latency":
            raise SpecError(f"{self.file}: a latency was given, but the handshake is '{self.handshake.kind}'")
        return dataclasses.replace(self, handshake=dataclasses.replace(self.handshake, latency=latency))

    def probed(self, interval: int) -> Dut:
        """The same DUT behind a wrapper that takes a vector and gives what the DUT's outputs show in every
        cycle, and hands every `interval`-th vector on: what comes late by some cycles has that latency."""
        shake = dataclasses.replace(
            self.handshake, latency=0, interval=interval, hold=None, probing=True, enable=None
        )
        constants = self.constants
        if self.handshake.enable is not None:
            running = int(self.handshake.enable not in self.handshake.active_low)
            constants = constants | {self.handshake.enable: running}
        where = {"constants": self.where["handshake"]} | self.where
        return dataclasses.replace(self, handshake=shake, constants=constants, where=where)


def load_dut(path: str | Path) -> Dut:
    """Reads a dut.yaml.

    Raises:
        SpecError: the file is wrong, or names an instruction that does not exist; the message gives file,
            line, key and what was expected.
    """
    if (language := _LANGUAGES.get(Path(path).suffix)) is not None:
        raise SpecError(f"{path} is {language}, not a description; run `mmagold rtl init {path}` first")
    return read_dut(yamlfile.read(path), Path(path))


def read_dut(document: Section, path: Path) -> Dut:
    """Builds a Dut from the parsed `document`; relative paths in it are relative to the folder of `path`."""
    path = path.absolute()
    top = _identifier(document, "top")
    if top == "mmagold_dut":
        raise document.error(
            "key 'top' is 'mmagold_dut', the name of the generated wrapper; name the designer's module", "top"
        )
    name = document.take("dut", str, top)
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        raise document.error(
            f"key 'dut' is '{name}', expected a name of letters, digits, '_', '-', '+' and '.'", "dut"
        )
    unit, unit_name = _instruction(document, path.parent)
    level = document.take_choice("level", LEVELS, "dot")
    try:
        layout = WordLayout.of(unit, level)
    except OperandError as error:
        raise document.error(str(error), "level") from None
    handshake = _handshake(document)
    if unit.state and not handshake.says_when:
        raise document.error(
            f"{unit_name} keeps its accumulator, so it has to know which cycles bring operands: expected a "
            "handshake with a port for the input's valid",
            "handshake",
        )
    design = _sources(document, path.parent)
    vhdl = _vhdl(document, design, path.parent)
    dut = Dut(
        name,
        path,
        top,
        tuple(design.files) if vhdl else packages_first(design.files),
        tuple(design.include),
        design.searched,
        design.defines,
        _parameters(document, vhdl is not None),
        _types(document),
        unit,
        unit_name,
        level,
        layout,
        _clock(document, handshake),
        _reset(document),
        handshake,
        _ports(document, layout, unit, unit_name),
        _constants(document),
        dataclasses.replace(_compare(document), exclude=_exclude(document, unit)),
        {key: f"{document.file}:{line}" for key, line in document.lines.items()},
        vhdl,
    )
    document.done()
    _check_roles(dut)
    _check_channels(dut)
    return dut


def _identifier(section: Section, key: str) -> str:
    """A Verilog name."""
    value = section.take(key, str)
    if not IDENTIFIER.fullmatch(value):
        raise section.error(f"key '{key}' is '{value}', expected a Verilog identifier", key)
    return str(value)


def _port(section: Section, key: str) -> str:
    """The name of a port, or of a field of one: bus.valid."""
    value = section.take(key, str)
    if not PORT.fullmatch(value):
        raise section.error(f"key '{key}' is '{value}', expected a port or port.field", key)
    return str(value)


def _optional(section: Section, key: str) -> str | None:
    return _port(section, key) if section.get(key) is not None else section.take(key, str, None)


def _instruction(document: Section, folder: Path) -> tuple[Instruction, str]:
    if ("instruction" in document) == ("unit" in document):
        raise document.error(
            "expected either 'instruction' (architecture:name) or 'unit' (a unit's .yaml file)"
        )
    if "unit" in document:
        from golden.catalog.unit_files import load_instruction

        unit = document.take("unit", str)
        if not (folder / unit).is_file():
            raise document.error(f"key 'unit' is '{unit}', but {folder / unit} is no file", "unit")
        return load_instruction(folder / unit), unit
    name = document.take("instruction", str)
    architecture, colon, rest = name.partition(":")
    if name == PLACEHOLDER:
        raise document.error(
            f"replace `{name}` in line {document.lines['instruction']}: it stands where a draft had no "
            "instruction to write; `mmagold list` has them, or write `unit: my_unit.yaml` instead",
            "instruction",
        )
    if not colon or rest.startswith(":"):
        raise document.error(
            f"key 'instruction' is {name!r}, expected architecture:name, as hopper:HMMA.16816.F32",
            "instruction",
        )
    try:
        return instruction(architecture, rest), name
    except MmagoldError as error:
        raise document.error(" ".join(str(error).split()), "instruction") from None


def _sources(document: Section, folder: Path) -> Sources:
    """What the keys sources, filelist, include and defines say together, packages first."""
    found = Sources()
    for name in document.take_names("filelist", []):
        try:
            found.add(read_list(folder / name))
        except SpecError as error:
            raise document.error(f"key 'filelist': {error}", "filelist") from None
    for pattern in document.take_names("sources", []):
        try:
            files = matching(folder, pattern, GENERATED)
        except SpecError as error:
            raise document.error(f"key 'sources': {error}", "sources") from None
        if not files:
            siblings = [entry.name for entry in (folder / pattern).parent.glob("*") if entry.is_file()]
            raise document.error(
                f"key 'sources': '{pattern}' is no file in {folder}{nearest(Path(pattern).name, siblings)}",
                "sources",
            )
        found.files |= dict.fromkeys(files)
    if not found.files:
        raise document.error(
            "expected at least one file in key 'sources' or in a list that 'filelist' names", "sources"
        )
    try:
        in_vhdl(found.files)
        check_sizes(found.files)
    except SpecError as error:
        raise document.error(str(error), "sources" if "sources" in document else "filelist") from None
    found.include |= dict.fromkeys(_folders(document, folder))
    found.defines |= _defines(document)
    return found


def _vhdl(document: Section, design: Sources, folder: Path) -> Vhdl | None:
    """What a unit in VHDL needs beside its sources; refuses for either language the keys of the other."""
    if not in_vhdl(design.files):
        if "vhdl" in document:
            raise document.error("key 'vhdl' is for units in VHDL, but no source is", "vhdl")
        return None
    for key in ("include", "defines", "types"):
        if key in document:
            raise document.error(f"key '{key}' means nothing in VHDL", key)
    if design.include or design.defines or design.libraries:
        raise document.error("include folders, macros and -y mean nothing in VHDL", "filelist")
    section = document.take("vhdl", Section, None)
    if section is None:
        return Vhdl()
    standard = section.take("standard", (int, str), 2008)
    if str(standard) not in STANDARDS:
        raise section.error(
            f"key 'standard' is {standard}, expected one of {', '.join(STANDARDS)}", "standard"
        )
    libraries = section.take("libraries", Section, None) or Section(section.file, section.line)
    found = {}
    for name in libraries:
        if not IDENTIFIER.fullmatch(name) or name.lower() in ("work", "ieee", "std"):
            raise libraries.error(f"'{name}' is no name for a library of yours", name)
        patterns = libraries.take_names(name)
        try:
            files = [path for each in patterns for path in matching(folder, each, GENERATED)]
            check_sizes(files)
        except SpecError as error:
            raise libraries.error(f"library '{name}': {error}", name) from None
        if not files or not in_vhdl(files):
            raise libraries.error(f"library '{name}' has no VHDL file in {folder}", name)
        found[name.lower()] = tuple(dict.fromkeys(files))
    section.done()
    return Vhdl(str(standard), found)


def _folders(document: Section, folder: Path) -> tuple[Path, ...]:
    folders = tuple(folder / name for name in document.take_names("include", []))
    for path in folders:
        if not path.is_dir():
            raise document.error(f"key 'include': {path} is no folder", "include")
    return folders


def _named(document: Section, key: str, names: re.Pattern[str] = IDENTIFIER) -> Section:
    """A mapping from Verilog names; empty where the file has none."""
    section = document.take(key, Section, None) or Section(document.file, document.line)
    for name in section:
        if not names.fullmatch(name):
            raise section.error(f"'{name}' in '{key}' is no Verilog identifier", name)
    return section


def _defines(document: Section) -> dict[str, str]:
    section = _named(document, "defines")
    return {name: str(section.take(name, (str, int), "")) for name in section}


def _parameters(document: Section, vhdl: bool) -> dict[str, int | str]:
    """Parameters, or generics: those have a type of their own for true and false, and no case."""
    section = _named(document, "parameters", IDENTIFIER if vhdl else PORT)
    values = {name: section.take(name, (int, str, bool)) for name in section}
    if vhdl:
        return {
            name.lower(): str(value).lower() if isinstance(value, bool) else value
            for name, value in values.items()
        }
    return {name: int(value) if isinstance(value, bool) else value for name, value in values.items()}


def _types(document: Section) -> dict[str, str]:
    section = _named(document, "types", PORT)
    found = {name: section.take(name, str) for name in section}
    for name, kind in found.items():
        if not TYPE.fullmatch(kind):
            raise section.error(f"type '{name}' is '{kind}', expected one such as bus_pkg::request_t", name)
    return found


def _constants(document: Section) -> dict[str, int | str]:
    """Values, as numbers or as names of an enumeration."""
    section = _named(document, "constants", PORT)
    return {
        name: section.take(name, str)
        if isinstance(section.get(name), str)
        else section.take_int(name, 0, (1 << 1024) - 1)
        for name in section
    }


def _clock(document: Section, handshake: Handshake) -> str | None:
    if handshake.kind == "combinational":
        return _optional(document, "clock")
    return _port(document, "clock")


def _reset(document: Section) -> Reset | None:
    section = document.take("reset", (str, Section), None)
    if section is None:
        return None
    if isinstance(section, str):
        raise document.error(
            f"key 'reset' is '{section}', expected a mapping such as {{port: {section}, active: low}}",
            "reset",
        )
    reset = Reset(
        _port(section, "port"),
        section.take_choice("active", ("low", "high")) == "low",
        section.take("synchronous", bool, True),
        section.take_int("cycles", 1, MAX_CYCLES, 4),
    )
    section.done()
    return reset


def _handshake(document: Section) -> Handshake:
    section = document.take("handshake", Section)
    kind = section.take_choice("kind", HANDSHAKES)
    readers = {"valid_ready": _valid_ready, "valid": _valid, "latency": _latency}
    low = _Marked()
    handshake = readers[kind](section, low) if kind in readers else Handshake(kind)
    section.done()
    if "input" in low.agreed and not handshake.in_ready:
        raise section.error("'only_if: ready' needs the port of that ready", "input")
    return dataclasses.replace(
        handshake, active_low=frozenset(low), agreed=frozenset(low.agreed.values()), level=low.level
    )


class _Marked(set[str]):
    """Ports that are active low, and those that are active only while their fellow is, by their side."""

    def __init__(self) -> None:
        super().__init__()
        self.agreed: dict[str, str] = {}
        self.level = False


_FELLOWS = {"valid": ("input", "ready"), "ready": ("output", "valid")}
"""The signals that may wait for another, by key: the side on which they are inputs, and the other."""


def _signal(section: Section, key: str, low: _Marked, side: str = "") -> str:
    """A port of the handshake; one that is active low, or waits for its fellow, is marked in `low`.
    `side`: input or
    output, where it may wait."""
    if not isinstance(section.get(key), Section):
        return _port(section, key)
    signal = section.take(key, Section)
    port = _port(signal, "port")
    if signal.take_choice("active", ("low", "high"), "high") == "low":
        low.add(port)
    if side in ("input", "output") and "only_if" in signal:
        signal.take_choice("only_if", (_FELLOWS[key][1],))
        low.agreed[side] = port
    if side == "result":
        low.level = signal.take("level", bool, False)
    signal.done()
    return port


def _optional_signal(section: Section, key: str, low: _Marked, side: str = "") -> str | None:
    return section.take(key, str, None) if section.get(key) is None else _signal(section, key, low, side)


def _valids(section: Section, low: _Marked) -> tuple[str, tuple[str, ...]]:
    """The port of the input's valid, and further ones that are all needed."""
    value = section.get("valid")
    if not isinstance(value, list):
        return _signal(section, "valid", low, "input"), ()
    names = section.take_names("valid")
    for name in names:
        if not PORT.fullmatch(name):
            raise section.error(f"key 'valid' has '{name}', expected a port or port.field", "valid")
    if len(set(names)) != len(names) or not names:
        raise section.error("key 'valid' is a list, expected different ports", "valid")
    return names[0], tuple(names[1:])


def _hold(section: Section) -> str | None:
    return section.take_choice("hold", HOLDS, None) if "hold" in section else None


def _valid_ready(section: Section, low: _Marked) -> Handshake:
    if isinstance(section.get("input"), list):
        handshake = Handshake("valid_ready", channels=_channels(section, low))
    else:
        given = section.take("input", Section)
        valid, more = _valids(given, low)
        ready = _optional_signal(given, "ready", low)
        handshake = Handshake(
            "valid_ready", in_valid=valid, more_valids=more, in_ready=ready, hold=_hold(given)
        )
        given.done()
    result = section.take("output", Section)
    handshake = dataclasses.replace(
        handshake,
        out_valid=_signal(result, "valid", low, "result"),
        out_ready=_optional_signal(result, "ready", low, "output"),
    )
    result.done()
    if not handshake.in_ready and not handshake.out_ready and not handshake.channels:
        raise section.error(
            "kind 'valid_ready' names no ready port; for a unit without any, write 'kind: valid'", "kind"
        )
    return handshake


def _channels(section: Section, low: _Marked) -> tuple[Channel, ...]:
    """The channels of a list under `input`."""
    found = []
    for each in section.take("input", list):
        if not isinstance(each, Section):
            raise section.error("'input' is a list, expected channels {operands, valid, ready}", "input")
        operands = tuple(each.take_names("operands"))
        found.append(Channel(operands, _signal(each, "valid", low), _optional_signal(each, "ready", low)))
        each.done(("operands", "valid", "ready"))
    if len(found) < 2:
        raise section.error(f"'input' is a list of {len(found)} channels, expected two or more", "input")
    return tuple(found)


def _valid(section: Section, low: _Marked) -> Handshake:
    given, result = section.take("input", Section), section.take("output", Section)
    (in_valid, more), out_valid = _valids(given, low), _signal(result, "valid", low, "result")
    hold = _hold(given)
    given.done(("valid", "hold"))
    result.done(("valid",))
    return Handshake(
        "valid",
        in_valid=in_valid,
        out_valid=out_valid,
        interval=_interval(section),
        more_valids=more,
        hold=hold,
    )


def _latency(section: Section, low: _Marked) -> Handshake:
    given = section.take("input", Section, None)
    in_valid: str | None = None
    more: tuple[str, ...] = ()
    hold = None
    if given is not None:
        in_valid, more = _valids(given, low) if "valid" in given else (None, ())
        hold = _hold(given)
        given.done(("valid", "hold"))
    latency = section.take("latency", (int, str))
    if isinstance(latency, str) and latency != "measure":
        raise section.error(
            f"key 'latency' is '{latency}', expected a number of clock cycles, or measure", "latency"
        )
    if isinstance(latency, int):
        latency = section.take_int("latency", 0, MAX_CYCLES)
    return Handshake(
        "latency",
        in_valid=in_valid,
        enable=_optional_signal(section, "enable", low),
        latency=None if latency == "measure" else latency,
        measured=latency == "measure",
        interval=_interval(section),
        more_valids=more,
        hold=hold,
    )


def _interval(section: Section) -> int:
    return int(section.take_int("interval", 1, MAX_CYCLES, 1))


def cleared_by_load(unit: Instruction) -> bool:
    """Whether a load of zero does what `clear` does, so that a port for it is not needed."""
    return unit.load and ("load" in unit.alone) == ("clear" in unit.alone)


def _port_fields(layout: WordLayout) -> dict[str, Field]:
    """The fields by name; each status flag is an element, so that it may have a port of its own."""
    fields = {field.name: field for field in layout.fields}
    if "flags" in fields:
        whole = fields["flags"]
        fields["flags"] = dataclasses.replace(
            whole, elements=whole.width, bits=1, shape=(*whole.shape, whole.bits)
        )
    return fields


def _with_mode_fields(fields: dict[str, Field], unit: Instruction) -> dict[str, Field]:
    """The fields with each of `mode` by itself, as mode.NAME, so that it may have a port of its own."""
    assert unit.modes is not None
    found: dict[str, Field] = {}
    for name, whole in fields.items():
        if name != "mode":
            found[name] = whole
            continue
        lsb = whole.lsb
        for part in unit.modes.fields:
            found[f"mode.{part.name}"] = dataclasses.replace(
                whole, name=f"mode.{part.name}", bits=part.bits, lsb=lsb
            )
            lsb += part.bits
    return found


def _ports(document: Section, layout: WordLayout, unit: Instruction, unit_name: str) -> dict[str, PortMap]:
    section = document.take("ports", Section)
    fields = _port_fields(layout)
    missing = [name for name in fields if name not in section]
    if "clear" in missing and cleared_by_load(unit):
        missing.remove("clear")
        del fields["clear"]
    if missing:
        raise section.error(
            f"'ports' lacks {', '.join(missing)}: {unit_name} has the operands {', '.join(fields)}"
        )
    mode = section.get("mode")
    maps: dict[str, PortMap] = {}
    if "mode" in fields and isinstance(mode, Section) and "port" not in mode:
        fields = _with_mode_fields(fields, unit)
        maps = _mode_maps(section.take("mode", Section), fields)
        fields = {
            name: _of_bits(field, len(maps[name].ports) if name in maps else 1)
            for name, field in fields.items()
        }
    maps = {name: maps.get(name) or read_map(section, field) for name, field in fields.items()}
    section.done()
    check_overlaps([port_map for name, port_map in maps.items() if name not in RESULTS], fields)
    check_overlaps([port_map for name, port_map in maps.items() if name in RESULTS], fields)
    return maps


def _of_bits(field: Field, ports: int) -> Field:
    """A field of the mode that has a port for each of its bits, the lowest first, as elements of one bit."""
    if not field.name.startswith("mode.") or ports < 2 or ports != field.bits:
        return field
    return dataclasses.replace(field, elements=field.bits, bits=1, shape=(*field.shape, field.bits))


def _mode_maps(section: Section, fields: dict[str, Field]) -> dict[str, PortMap]:
    """The entries of a mode whose fields lie in ports of their own."""
    own = {name.removeprefix("mode."): field for name, field in fields.items() if name.startswith("mode.")}
    missing = [name for name in own if name not in section]
    if missing:
        raise section.error(f"'mode' lacks {', '.join(missing)}: its fields are {', '.join(own)}", "mode")
    maps = {}
    for name, field in own.items():
        ports = section.get(name)
        field = _of_bits(field, len(ports) if isinstance(ports, list) else 1)
        at = read_map(section, dataclasses.replace(field, name=name))
        maps[field.name] = dataclasses.replace(at, operand=field.name)
    section.done()
    return maps


def _compare(document: Section) -> ComparePolicy:
    section = document.take("compare", Section, None)
    if section is None:
        return ComparePolicy()
    policy = ComparePolicy(
        section.take_choice("nan", NAN_POLICIES, "exact"),
        section.take_choice("zero", ZERO_POLICIES, "strict"),
    )
    section.done()
    return policy


def _exclude(document: Section, unit: Instruction) -> Exclusion | None:
    section = document.take("exclude", Section, None)
    if section is None:
        return None
    answers = (*ANSWERS, *unit.status)
    answer = section.take_choice("answer", answers, "anything")
    roles = [*(name for name in unit.operand_shapes(False) if name not in CONTROLS), "d"]
    classes: dict[str, tuple[str, ...]] = {}
    for name in (name for name in section if name != "answer"):
        if name not in roles:
            raise section.error(
                f"'{name}' is excluded, expected one of {', '.join(roles)}{nearest(name, roles)}", name
            )
        fmt = unit.formats["d"] if name == "d" else unit.code_format(name)
        known = list(CLASSES) if fmt.is_float else list(OF_INTEGERS)
        classes[name] = tuple(section.take_names(name))
        for each in classes[name]:
            if each not in known:
                raise section.error(
                    f"class '{each}' of {name} is excluded, expected one of {', '.join(known)}"
                    f"{nearest(each, known)}",
                    name,
                )
    if "d" in classes and unit.state:
        raise section.error("'d' cannot be excluded for a unit that keeps its accumulator", "d")
    if answer == "nan" and not unit.formats["d"].is_float:
        raise section.error("key 'answer' is 'nan', but d is an integer", "answer")
    if not any(classes.values()):
        raise document.error("key 'exclude' names no class of an operand", "exclude")
    section.done()
    return Exclusion(classes, answer)


def _check_channels(dut: Dut) -> None:
    """Refuses channels that do not share out the operands."""
    channels, where = dut.handshake.channels, dut.where["handshake"]
    named = [name for channel in channels for name in channel.operands]
    operands = [
        field.name for field in dut.layout.operand_fields if field.name != "clear" or "clear" in dut.ports
    ]
    for name in named:
        if name not in operands:
            raise SpecError(
                f"{where}: a channel has the operand '{name}', expected one of {', '.join(operands)}"
                f"{nearest(name, operands)}"
            )
    if channels and (missing := [name for name in operands if name not in named]):
        raise SpecError(f"{where}: no channel has the operand{'s' * (len(missing) > 1)} {', '.join(missing)}")
    if len(set(named)) != len(named):
        raise SpecError(f"{where}: an operand is in two channels")


_KEY_OF_ROLE = {"constant": "constants", "clock": "clock", "reset": "reset"} | dict.fromkeys(
    ("d", "result", "operand"), "ports"
)


def _check_roles(dut: Dut) -> None:
    """Refuses a port that is named in two roles, such as a constant that is also an operand."""
    named = [("clock", dut.clock), ("reset", dut.reset.port if dut.reset else None)]
    named += [*dut.handshake.inputs().items(), *dut.handshake.outputs().items()]
    named += [("constant", port) for port in dut.constants]
    # Several operands may share a bus, and several results; that their bits differ was checked before.
    for role, results in (("result", True), ("operand", False)):
        ports = {port for name, at in dut.ports.items() if (name in RESULTS) == results for port in at.ports}
        named += [
            ("d" if role == "result" and port in dut.ports["d"].ports else role, port) for port in ports
        ]
    roles: dict[str, str] = {}
    for role, port in named:
        if port and port in roles:
            key = _KEY_OF_ROLE.get(roles[port], "handshake")
            where = dut.where.get(key, str(dut.file))
            raise SpecError(f"{where}: port '{port}' is named both as {roles[port]} and as {role}")
        if port:
            roles[port] = role
