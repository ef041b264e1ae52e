"""The description of a unit under test: reads a `dut.yaml` (docs/dut.md shows every key) into a `Dut`.

What a file says is checked as far as the file alone can tell; that the ports exist and have the right widths
is checked by rtl_tb/dut/wrapper.py, which asks a simulator's front end.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.catalog.lookup import instruction
from golden.errors import MmagoldError, OperandError, SpecError, nearest
from golden.files.inputs import elsewhere
from golden.model.instruction import Instruction
from golden.program.state import CONTROLS
from golden.values import Anything, Many
from golden.vectors.word import RESULTS, Field, WordLayout
from golden.yamlfile import Section
from rtl_tb.dut import keys
from rtl_tb.dut.exclude import ANSWERS, CLASSES, OF_INTEGERS, Case, Exclusion, Output
from rtl_tb.dut.keys import DUT, IDENTIFIER
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.dut.portmap import PortMap, check_overlaps, read_map
from rtl_tb.dut.sources import Sources, check_sizes, in_vhdl, matching, packages_first, read_list
from rtl_tb.dut.vhdl import Vhdl

PLACEHOLDER = "architecture:name"
"""What a draft says where no instruction was given, and none has the widths of the ports."""
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


@dataclass(frozen=True)
class Reset:
    """The DUT's reset port.

    `cycles` is how many clock cycles a reset must last. An asynchronous reset may fall anywhere in a cycle.
    """

    port: str
    active_low: bool
    synchronous: bool
    cycles: int


@dataclass(frozen=True)
class Channel:
    """Some of the operands, with a handshake of their own."""

    operands: tuple[str, ...]
    valid: str
    ready: str | None = None


@dataclass(frozen=True)
class Handshake:
    """How operands go in and results come out.

    kind: one of the kinds of keys.HANDSHAKE. The five names are ports of the DUT, or None where it has no
    such
        port.
    latency: clock edges from taking the operands to the result (kind latency), or None while it is to be
        measured.
    measured: whether the file says `latency: measure`.
    interval: the DUT takes one set of operands every `interval` cycles (kinds valid and latency).
    active_low: those of the ports that mean with 0 what the others mean with 1.
    agreed: the input's valid, or the output's ready, where it may be active only while its fellow is: a
        method of Bluespec is called only when it is ready.
    during: whether out_valid counts only while operands are held at the ports.
    level: whether out_valid stays active from a result until the next operands: then the result counts
        from the cycle in which it rises.
    more_valids: further ports that are active like in_valid, where all are needed.
    channels: where operands come by several handshakes; in_valid and in_ready are None then.
    probing: whether the bench hands over a vector in every cycle and reads a result in every cycle, and
        the unit is given every `interval`-th of them: how a latency is measured.
    hold: one of keys.HOLDS, where the operands must stay until the result; None: they need not.
    idle_zero: whether the operands are zero in every cycle without a vector.
    beats: transfers that bring the elements of a and b. first, last: ports that are active in the first and
        the last of them, with the operands alone where they are in `quiet`.
    ahead: cycles by which out_valid comes before its result.
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
    during: bool = False
    more_valids: tuple[str, ...] = ()
    channels: tuple[Channel, ...] = ()
    hold: str | None = None
    probing: bool = False
    idle_zero: bool = False
    beats: int = 1
    first: str | None = None
    last: str | None = None
    quiet: frozenset[str] = frozenset()
    ahead: int = 0

    @property
    def says_when(self) -> bool:
        """Whether a port says which cycles bring operands, or operands of zero say that there are none."""
        return bool(self.in_valid or self.channels or self.idle_zero)

    def inputs(self) -> dict[str, str]:
        """The DUT's input ports by role."""
        roles = {"input valid": self.in_valid, "output ready": self.out_ready, "enable": self.enable}
        roles |= {f"input valid {at}": port for at, port in enumerate(self.more_valids, 2)}
        roles |= {"first beat": self.first, "last beat": self.last}
        roles |= {f"valid of {' and '.join(each.operands)}": each.valid for each in self.channels}
        return {role: port for role, port in roles.items() if port}

    def outputs(self) -> dict[str, str]:
        """The DUT's output ports by role."""
        roles = {"input ready": self.in_ready, "output valid": self.out_valid}
        roles |= {f"ready of {' and '.join(each.operands)}": each.ready for each in self.channels}
        return {role: port for role, port in roles.items() if port}


Bit = tuple[str, int | None, int]
"""A bit of a port: the port's name, the declared index of an entry of an unpacked array or None, the bit."""


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
        vhdl: what a unit in VHDL needs in addition to its sources; None: it is Verilog or SystemVerilog.
        watched: bits of outputs that out_data carries in place of the results, from its lowest bit on: how
            outputs are looked at that are no results.
        netlist: a file in place of the wrapper that is written for the unit: the wrapper as a netlist, with
            the unit or without it.
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
    netlist: Path | None = None
    cut_points: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    watched: tuple[Bit, ...] = ()

    @property
    def tied_in_part(self) -> list[str]:
        """Constants of ports in which operands lie (`partial`): they hold for the other bits."""
        shared = {
            port for name, at in self.ports.items() if at.partial and name not in RESULTS for port in at.ports
        }
        return [name for name in self.constants if name in shared]

    @property
    def exclude(self) -> Exclusion | None:
        """The operands that do not count, or None."""
        return self.compare.exclude

    @property
    def can_stall_output(self) -> bool:
        """Whether the wrapper heeds out_ready. If not, a result that is not taken at once is lost. One whose
        valid stays active waits, but where a start that stays active would begin anew."""
        shake = self.handshake
        waits = shake.level and shake.hold != "valid"
        return bool(shake.out_ready or shake.enable or shake.kind == "combinational" or waits)

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The fields of the operand word and of the result word, by operand, as ports carry them."""
        fields = _port_fields(self.layout, self.handshake.beats)
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
    document = yamlfile.read(path)
    if "steps" in document or "operations" in document:
        raise document.error(
            f"this is a unit, what RTL must compute; expected a dut.yaml, which names the RTL and "
            f"`unit: {path}`: `mmagold rtl init FILE.sv` writes one"
        )
    return read_dut(document, Path(path))


def read_dut(document: Section, path: Path) -> Dut:
    """Builds a Dut from the parsed `document`; relative paths in it are relative to the folder of `path`."""
    path = path.absolute()
    given = DUT.read(document)
    top = given["top"]
    if top == "mmagold_dut":
        raise document.error(
            "key 'top' is 'mmagold_dut', the name of the generated wrapper; name the designer's module", "top"
        )
    # 1. The unit and its operands: which ports the other sections may name depends on them.
    unit, unit_name = _instruction(document, path.parent)
    level = given["level"]
    try:
        layout = WordLayout.of(unit, level)
    except OperandError as error:
        raise document.error(str(error), "level") from None
    # 2. The handshake, and what the unit needs of it. Afterwards it is known which cycles bring operands.
    handshake = _handshake(document, given["handshake"])
    if unit.state and not handshake.says_when:
        raise document.error(
            f"{unit_name} keeps its accumulator, so it has to know which cycles bring operands: expected a "
            "handshake with a port for the input's valid, input: {valid: PORT}. An enable that holds the "
            "accumulator is one. A unit that adds in every cycle has `idle: zero` instead, with kind latency",
            "handshake",
        )
    parted = [item for item in layout.operand_fields if item.name in IN_BEATS]
    odd = [item.name for item in parted if item.elements % handshake.beats]
    if handshake.beats > 1 and (unit.state or level == "tile" or odd):
        why = f"{handshake.beats} parts of {' and '.join(odd)}" if odd else "a dot product without state"
        raise document.error(f"'beats' is {handshake.beats}, which needs {why}", "handshake")
    if given["clock"] is None and handshake.kind != "combinational":
        raise document.error("key 'clock' is missing")
    # 3. The sources, then the whole description; rules that concern several sections are checked last.
    design = _sources(document, given, path.parent)
    vhdl = _vhdl(document, given["vhdl"], design, path.parent)
    dut = Dut(
        given["dut"] or top,
        path,
        top,
        tuple(design.files) if vhdl else packages_first(design.files),
        tuple(design.include),
        design.searched,
        design.defines,
        _parameters(document, given["parameters"], vhdl is not None),
        given["types"],
        unit,
        unit_name,
        level,
        layout,
        given["clock"],
        _reset(given["reset"]),
        handshake,
        _ports(document, _port_fields(layout, handshake.beats), unit, unit_name),
        given["constants"],
        ComparePolicy(**(given["compare"] or {}), exclude=_exclude(document, given["exclude"], unit)),
        {key: f"{document.file}:{line}" for key, line in document.lines.items()},
        vhdl,
        cut_points={name: tuple(signals) for name, signals in given["cut_points"].items()},
    )
    _check_roles(dut)
    _check_channels(dut)
    return dut


def _instruction(document: Section, folder: Path) -> tuple[Instruction, str]:
    if "unit" in document:
        from golden.catalog.unit_files import load_instruction

        unit = document["unit"]
        if not (folder / unit).is_file():
            near = elsewhere(folder / unit)
            raise document.error(f"key 'unit' is '{unit}', but {folder / unit} is no file{near}", "unit")
        return load_instruction(folder / unit), unit
    name = document["instruction"]
    architecture, colon, rest = name.partition(":")
    if name == PLACEHOLDER:
        raise document.error(
            f"replace `{name}` in line {document.lines['instruction']} by an instruction "
            "(`mmagold list` has them), or the line by `unit: my_unit.yaml`",
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


def _sources(document: Section, given: dict[str, Any], folder: Path) -> Sources:
    """What the keys sources, filelist, include and defines say together, packages first."""
    found = Sources()
    for name in given["filelist"]:
        try:
            found.add(read_list(folder / name))
        except SpecError as error:
            raise document.error(f"key 'filelist': {error}", "filelist") from None
    for pattern in given["sources"]:
        try:
            files = matching(folder, pattern, GENERATED)
        except SpecError as error:
            raise document.error(f"key 'sources': {error}", "sources") from None
        if not files:
            near = elsewhere(folder / pattern)
            raise document.error(f"key 'sources': '{pattern}' is no file in {folder}{near}", "sources")
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
    found.include |= dict.fromkeys(_folders(document, given["include"], folder))
    found.defines |= {name: str(value) for name, value in given["defines"].items()}
    return found


def _vhdl(document: Section, given: dict[str, Any] | None, design: Sources, folder: Path) -> Vhdl | None:
    """What a unit in VHDL needs in addition to its sources; refuses for either language the keys of the
    other."""
    if not in_vhdl(design.files):
        if "vhdl" in document:
            raise document.error("key 'vhdl' is for units in VHDL, but no source is", "vhdl")
        return None
    for key in ("include", "defines", "types"):
        if key in document:
            raise document.error(f"key '{key}' means nothing in VHDL", key)
    if design.include or design.defines or design.libraries:
        raise document.error("include folders, macros and -y mean nothing in VHDL", "filelist")
    if given is None:
        return Vhdl()
    libraries = document["vhdl"].get("libraries") or document
    found = {}
    for name, patterns in given["libraries"].items():
        if name.lower() in ("work", "ieee", "std"):
            raise libraries.error(f"'{name}' is no name for a library of yours", name)
        try:
            files = [path for each in patterns for path in matching(folder, each, GENERATED)]
            check_sizes(files)
        except SpecError as error:
            raise libraries.error(f"library '{name}': {error}", name) from None
        if not files or not in_vhdl(files):
            raise libraries.error(f"library '{name}' has no VHDL file in {folder}", name)
        found[name.lower()] = tuple(dict.fromkeys(files))
    return Vhdl(str(given["standard"]), found)


def _folders(document: Section, names: tuple[str, ...], folder: Path) -> tuple[Path, ...]:
    folders = tuple(folder / name for name in names)
    for path in folders:
        if not path.is_dir():
            raise document.error(f"key 'include': {path} is no folder", "include")
    return folders


def _parameters(document: Section, given: dict[str, int | str | bool], vhdl: bool) -> dict[str, int | str]:
    """Parameters, or generics: those have a type of their own for true and false, and no case."""
    if not vhdl:
        return {name: int(value) if isinstance(value, bool) else value for name, value in given.items()}
    for name in given:
        if not IDENTIFIER.fullmatch(name):
            raise document["parameters"].error(f"key '{name}' is no generic, expected an identifier", name)
    return {
        name.lower(): str(value).lower() if isinstance(value, bool) else value
        for name, value in given.items()
    }


def _reset(given: dict[str, Any] | None) -> Reset | None:
    if given is None:
        return None
    return Reset(given["port"], given["active"] == "low", given["synchronous"], given["cycles"])


def _handshake(document: Section, given: dict[str, Any]) -> Handshake:
    kind, section = given["kind"], document["handshake"]
    marked = _Marked()
    inputs, outputs = given.get("input") or {}, given.get("output") or {}
    valid, more = _valids(inputs.get("valid"), marked) if isinstance(inputs, dict) else (None, ())
    latency = given.get("latency")
    handshake = Handshake(
        kind,
        in_valid=valid,
        more_valids=more,
        in_ready=marked.port(inputs.get("ready")) if isinstance(inputs, dict) else None,
        hold=inputs.get("hold") if isinstance(inputs, dict) else None,
        channels=() if isinstance(inputs, dict) else tuple(_channel(each, marked) for each in inputs),
        out_valid=marked.port(outputs.get("valid")),
        out_ready=marked.port(outputs.get("ready")),
        enable=marked.port(given.get("enable")),
        latency=None if latency == "measure" else latency,
        measured=latency == "measure",
        interval=given.get("interval", 1),
        idle_zero=given.get("idle") == "zero",
        **_beats(inputs if isinstance(inputs, dict) else {}, marked),
    )
    # Combinations of keys that no wrapper can drive. Each key alone was checked when it was read.
    one = handshake.interval == 1 and not (handshake.measured or handshake.enable or more or marked.agreed)
    if handshake.beats > 1 and not one:
        raise section.error(
            "'beats' needs one valid without only_if, an interval of 1, no enable, and no latency to measure",
            "input",
        )
    no_ready = not handshake.in_ready and not handshake.out_ready and not handshake.channels
    if kind == "valid_ready" and no_ready:
        raise section.error(
            "kind 'valid_ready' names no ready port; for a unit without any, write 'kind: valid'", "kind"
        )
    lone = [each.valid for each in handshake.channels if not each.ready]
    lone += [] if handshake.in_ready or handshake.channels else [handshake.in_valid or ""]
    if marked.agreed & set(lone):
        raise section.error("'only_if: ready' needs the port of that ready", "input")
    if marked.ahead and (handshake.out_ready or handshake.hold):
        raise section.error("'ahead' needs an output without a ready, and operands without 'hold'", "output")
    if marked.during and not handshake.hold:
        raise section.error("'only_if: operands' needs 'hold' under input", "output")
    return dataclasses.replace(
        handshake,
        active_low=frozenset(marked.low),
        agreed=frozenset(marked.agreed),
        level=marked.level,
        during=marked.during,
        ahead=marked.ahead,
    )


def _beats(given: dict[str, Any], marked: _Marked) -> dict[str, Any]:
    """What a handshake says of operands that come in several transfers."""
    ends = {name: given.get(name) for name in ("first", "last")}
    said = [each for each in ends.values() if isinstance(each, dict)]
    quiet = [each["port"] for each in said if each["given"] == "with_operands"]
    return {
        "beats": given.get("beats", 1),
        **{name: marked.port(each) for name, each in ends.items()},
        "quiet": frozenset(quiet),
    }


def _valids(given: Any, marked: _Marked) -> tuple[str | None, tuple[str, ...]]:
    """The port of the input's valid, and further ones that are all needed."""
    if isinstance(given, tuple):
        return given[0], given[1:]
    return marked.port(given), ()


def _channel(given: dict[str, Any], marked: _Marked) -> Channel:
    port = marked.port(given["valid"])
    assert port is not None
    return Channel(given["operands"], port, marked.port(given["ready"]))


class _Marked:
    """What signals of a handshake declare in addition to their port.

    low: ports that are active low. agreed: ports that are active only while their fellow is. level: whether
    the result's valid stays active. during: whether it counts only while operands are held. ahead: by how
    many cycles it comes before its result.
    """

    def __init__(self) -> None:
        self.low: set[str] = set()
        self.agreed: set[str] = set()
        self.level = False
        self.during = False
        self.ahead = 0

    def port(self, signal: Any) -> str | None:
        """The port of a signal."""
        if not isinstance(signal, dict):
            port: str | None = signal
            return port
        port = signal["port"]
        assert port is not None
        if signal["active"] == "low":
            self.low.add(port)
        if signal.get("only_if") == "operands":
            self.during = True
        elif signal.get("only_if"):
            self.agreed.add(port)
        self.level = self.level or bool(signal.get("level"))
        self.ahead = self.ahead or int(signal.get("ahead", 0))
        return port


def cleared_by_load(unit: Instruction) -> bool:
    """Whether a load of zero does what `clear` does, so that a port for it is not needed."""
    return unit.load and ("load" in unit.alone) == ("clear" in unit.alone)


IN_BEATS = ("a", "b", "scale_a", "scale_b", "metadata")
"""Operands that may come in several transfers: the others belong to the whole dot product."""


def _port_fields(layout: WordLayout, beats: int = 1) -> dict[str, Field]:
    """The fields by name; each status flag is an element, so that it may have a port of its own. Of what
    comes in several transfers the field is that of one of them."""
    fields = {field.name: field for field in layout.fields}
    if beats > 1:
        parts = {name: each.elements // beats for name, each in fields.items() if name in IN_BEATS}
        fields |= {
            name: dataclasses.replace(fields[name], elements=n, shape=(n,)) for name, n in parts.items()
        }
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


def _ports(
    document: Section, fields: dict[str, Field], unit: Instruction, unit_name: str
) -> dict[str, PortMap]:
    section: Section = document["ports"]
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
        maps = _mode_maps(mode, fields)
        fields = {
            name: _of_bits(field, len(maps[name].ports) if name in maps else 1)
            for name, field in fields.items()
        }
    maps = {name: maps.get(name) or read_map(section, field) for name, field in fields.items()}
    for name in section:
        if name not in maps and not (name == "mode" and any(each.startswith("mode.") for each in maps)):
            raise section.error(
                f"unknown key '{name}', expected one of {', '.join(fields)}{nearest(name, fields)}", name
            )
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
    section.done(own)
    return maps


def _exclude(document: Section, given: Any, unit: Instruction) -> Exclusion | None:
    if given is None:
        return None
    section = document["exclude"]
    if isinstance(section, Section):
        answer = _answer(section, unit)
        names = [name for name in section if name != "answer"]
        cases = [Case({name: _classes(section, name, unit)}, {}, *answer) for name in names]
        if not cases:
            raise document.error("key 'exclude' names no class of an operand", "exclude")
        return Exclusion(tuple(cases))
    return Exclusion(tuple(_case(each, unit) for each in section))


def _case(section: Section, unit: Instruction) -> Case:
    where: Section = section["where"]
    modes: dict[str, tuple[str, ...]] = {}
    if "mode" in where and unit.modes is not None:
        fields = {one.name: one for one in unit.modes.fields}
        mode: Section = where["mode"]
        for name in mode:
            if name not in fields:
                raise mode.error(
                    f"unknown key '{name}', expected one of {', '.join(fields)}{nearest(name, fields)}", name
                )
            known = [str(value) for value in fields[name].values if value is not None]
            given = mode.take_value(
                name, Many(Anything(of=(str, int, float, bool)), 1, different=True, alone=True)
            )
            modes[name] = tuple(map(str, given))
            for value in modes[name]:
                if value not in known:
                    raise mode.error(
                        f"'{value}' is no value of {name}, expected one of {', '.join(known)}"
                        f"{nearest(value, known)}",
                        name,
                    )
    operands = {name: _classes(where, name, unit) for name in where if name != "mode" or unit.modes is None}
    if not operands and not modes:
        raise section.error("key 'where' has no condition", "where")
    return Case(operands, modes, *_answer(section, unit))


def _classes(section: Section, name: str, unit: Instruction) -> tuple[str | int, ...]:
    """The classes and codes of an operand, or of d, that a section names."""
    roles = [*(each for each in unit.operand_shapes(False) if each not in CONTROLS), "d"]
    if name not in roles:
        raise section.error(
            f"'{name}' is excluded, expected one of {', '.join(roles)}{nearest(name, roles)}", name
        )
    if name == "d" and unit.state:
        raise section.error("'d' cannot be excluded for a unit that keeps its accumulator", "d")
    fmt = unit.formats["d"] if name == "d" else unit.code_format(name)
    known = list(CLASSES) if fmt.is_float else list(OF_INTEGERS)
    given: tuple[str | int, ...] = section.take_value(name, keys.CLASSES)
    for each in given:
        if isinstance(each, str) and each not in known:
            raise section.error(
                f"class '{each}' of {name} is excluded, expected one of {', '.join(known)}"
                f"{nearest(each, known)}",
                name,
            )
        if isinstance(each, int) and each >> fmt.bits:
            raise section.error(f"code {each:#x} of {name} is excluded, expected {fmt.bits} bits", name)
    return given


def _answer(section: Section, unit: Instruction) -> tuple[str, Output | None]:
    """What a unit answers, and the output that says so."""
    given = section.take_value("answer", keys.ANSWER, "anything")
    known, port = (*ANSWERS, *unit.status), None
    answer = given
    if isinstance(given, dict):
        answer, port = given["d"], Output(given["port"], given["active"] == "low")
    if answer not in known:
        raise section.error(
            f"key 'answer' is '{answer}', expected one of {', '.join(known)} or a mapping with 'port'"
            f"{nearest(answer, known)}",
            "answer",
        )
    if answer == "nan" and not unit.formats["d"].is_float:
        raise section.error("key 'answer' is 'nan', but d is an integer", "answer")
    return answer, port


def _check_channels(dut: Dut) -> None:
    """Refuses channels that do not share out the operands, and operands that come later where nothing says
    when the unit goes on."""
    late = [name for name, at in dut.ports.items() if any(at.later)]
    if late and (dut.handshake.kind not in ("valid", "latency") or dut.handshake.hold):
        raise SpecError(
            f"{dut.ports[late[0]].where}: key 'later' needs a handshake of kind valid or latency without hold"
        )
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
    named += [("constant", port) for port in dut.constants if port not in dut.tied_in_part]
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
