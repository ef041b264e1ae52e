"""Writes the first draft of a dut.yaml from the ports of a designer's module; guesses are marked GUESS.

Ports are read with a simulator's front end (rtl_tb/dut/ports.py, for VHDL rtl_tb/dut/vhdl.py). Roles come
from rtl_tb/dut/matching.py, arrangement from dimensions and widths.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from golden.catalog import architectures
from golden.catalog.lookup import instruction as find_instruction
from golden.catalog.unit_files import load_instruction
from golden.errors import SpecError, counted, listed
from golden.files.inputs import elsewhere
from golden.model.instruction import Instruction
from golden.program.modes import ModeField, Modes
from golden.vectors.word import RESULTS, Field, WordLayout
from rtl_tb.dut.controls import (
    Clear,
    answers_all,
    at_once,
    clear_of,
    clock_and_reset,
    decide,
    depth_of,
    find_enable,
    find_result,
    registers_of,
)
from rtl_tb.dut.description import PLACEHOLDER
from rtl_tb.dut.headers import tops
from rtl_tb.dut.keys import MOST_BEATS
from rtl_tb.dut.matching import (
    CONTROL_ROLES,
    MAIN,
    Candidate,
    Match,
    match,
    operand_by_name,
    several_valids,
    words_of,
)
from rtl_tb.dut.operation import Answer, Control, answer_of, keeps_a_sum
from rtl_tb.dut.port_check import check_parameters, entries, entry_width, plain
from rtl_tb.dut.port_fields import leaves
from rtl_tb.dut.ports import Design, Module, Port
from rtl_tb.dut.readings import elaborated, shortened_message
from rtl_tb.dut.sources import (
    Sources,
    check_sizes,
    in_vhdl,
    matching,
    packages_first,
    read_list,
)
from rtl_tb.dut.structure import EITHER, Reset, Structure, reset_by_text, structure_of
from rtl_tb.dut.vhdl import Vhdl

GUESS = "  # GUESS"
_RESET_LOW = re.compile(r"((^|_)n_?(rst|reset))|((rst|reset)(_?n|_ni|_b|_l)(_i|_in)?$)", re.I)
_LOW = re.compile(
    r"(^|_)n_?(valid|vld|ready|rdy)|(valid|vld|ready|rdy|en|ena|enable|ce)_?n(i|o|_i|_o|_in|_out)?$|(^|_)busy",
    re.I,
)
"""Names of signals that mean with 0 what their fellows mean with 1; a unit that is busy is not ready."""
_STATUS = {
    "inexact": ("inexact", "nx", "ine"),
    "underflow": ("underflow", "uf", "unf"),
    "overflow": ("overflow", "of", "ovf"),
    "invalid": ("invalid", "nv", "inv"),
    "divide_by_zero": ("dz", "dbz", "divzero", "divbyzero"),
}
"""Words of outputs that are one status flag each."""
_SHOWN = 5
"""Candidates that a comment lists: more are no help."""


_NOTHING_GIVEN = {
    False: "# include: [folder]    defines: {NAME: value}    parameters: {NAME: value}",
    True: "# parameters: {generic: value}    vhdl: {standard: 2008, libraries: {name: [file.vhd]}}",
}
"""What a draft says of more keys, in Verilog and in VHDL."""


@dataclass
class _Roles:
    """What each port seems to be for.

    Attributes:
        found: the candidate of each role, and what is not sure (rtl_tb/dut/matching.py).
        valids: the ports that say that operands are there, where they are several; each with its ready, or
            None, and the operands that it belongs to, where they are channels of their own.
        modes, flags: the ports of each field of the mode, and of each status flag, where those have one each.
        left: inputs that no role takes. open: such outputs.
    """

    found: Match
    valids: list[tuple[str, str | None, list[str]]] = field(default_factory=list)
    modes: dict[str, list[str]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    reset: Reset | None = None
    """How the reset acts, as far as registers show it."""

    at_once: bool = False
    """Whether the operands reach the result without a register."""

    stages: int = 0
    """Registers from the operands to the result, on the shortest way; 0 where that is not known."""

    registers: dict[str, int] = field(default_factory=dict)
    """How many registers lie between each operand and the result, if these are not equally many."""

    loading: dict[str, str] = field(default_factory=dict)
    """Inputs that let a register take an operand, and the value with which they do."""

    answer: Answer = field(default_factory=Answer)
    """How the unit answers a start, where its result has a valid and it has no ready."""

    keeps: bool = False
    """Whether registers show that a result adds to what earlier operands left."""

    turn: str | None = None
    """An input that lets a register take the operands which come first, and stops the others meanwhile."""

    clear: Clear = field(default_factory=Clear)
    """How the clear acts."""

    reset_clears: bool = False
    """Whether the reset is all that clears an accumulator: it then is no reset to the bench."""

    def port(self, role: str) -> str | None:
        """The only port of a role."""
        candidate = self.found.roles.get(role)
        return candidate.ports[0] if candidate is not None else None

    def ports(self, role: str) -> list[str]:
        """The ports of an operand or a result."""
        candidate = self.found.roles.get(role)
        return list(candidate.ports) if candidate is not None else []

    def guess(self, role: str) -> str:
        """The mark behind a role that is not sure, with the other candidates."""
        if role in self.found.remarks:
            return f"{GUESS}: {self.found.remarks[role]}"
        if role not in self.found.doubts:
            return ""
        return f"{GUESS}: {self.others(role).removeprefix(', ') or 'by what is left'}"

    def others(self, role: str) -> str:
        """The other candidates of a role, as the end of a mark."""
        return "".join(
            f"{', or' * (not at) or ','} {name}"
            for at, name in enumerate(self.found.doubts.get(role, ())[:_SHOWN])
        )


@dataclass(frozen=True)
class Given:
    """What a design needs in addition to its sources."""

    filelists: Sequence[Path] = ()
    include: Sequence[Path] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """The files of libraries of VHDL other than work, by name."""

    @property
    def vhdl(self) -> Vhdl:
        """What a unit in VHDL needs in addition to its sources."""
        given = self.libraries.items()
        return Vhdl(libraries={name.lower(): tuple(map(Path.absolute, files)) for name, files in given})

    def design(self, files: Sequence[Path], top: str | None) -> Design:
        """The whole design; raises SpecError where a file list is wrong, or a source is no file."""
        found = Sources()
        for name in self.filelists:
            found.add(read_list(name))
        for file in files:
            named = [Path(file)] if Path(file).is_file() else matching(Path(), str(file), ())
            if not named:
                raise SpecError(
                    f"source '{file}' is no file; looked for it at {Path(file).absolute()}{elsewhere(file)}"
                )
            found.files |= dict.fromkeys(path.absolute() for path in named)
        check_sizes([*found.files, *(path for files in self.libraries.values() for path in files)])
        found.include |= dict.fromkeys(path.absolute() for path in self.include)
        defines = found.defines | dict(self.defines)
        if in_vhdl(found.files):
            if found.include or defines or found.libraries or self.types:
                raise SpecError("include folders, macros, types and -y mean nothing in VHDL")
            return Design(tuple(found.files), top, parameters=self.parameters)
        if self.libraries:
            raise SpecError("--library is for units in VHDL, but no source is")
        ordered = packages_first(found.files)
        include, libraries = tuple(found.include), found.searched
        return Design(ordered, top, include, defines, self.parameters, libraries, self.types)

    def lines(self, folder: Path, standard: str = "") -> list[str]:
        """The same as keys of a dut.yaml, with the edition of VHDL where it is not that of the default."""
        lines = [f"filelist: {_paths(self.filelists, folder)}"] if self.filelists else []
        lines += [f"include: {_paths(self.include, folder)}"] if self.include else []
        given = {"defines": self.defines, "parameters": self.parameters, "types": self.types}
        for key, table in given.items():
            words = [  # "4" is a text of one letter
                f"{name}: {_scalar(value) if isinstance(value, str) else value}"
                for name, value in table.items()
            ]
            lines += [f"{key}: {{{', '.join(words)}}}"] if words else []
        words = [f"{_scalar(name)}: {_paths(files, folder)}" for name, files in self.libraries.items()]
        vhdl = [f"standard: {standard}"] if standard else []
        vhdl += [f"libraries: {{{', '.join(words)}}}"] if words else []
        lines += [f"vhdl: {{{', '.join(vhdl)}}}"] if vhdl else []
        return lines


def draft(
    sources: Sequence[Path],
    top: str | None = None,
    instruction: str | None = None,
    folder: Path | None = None,
    given: Given | None = None,
) -> str:
    """Returns the text of a dut.yaml for the module in `sources`.

    Args:
        sources: the designer's files, in compile order.
        top: the top module; may be left out where only one module is nobody's child.
        instruction: "architecture:name" or the .yaml file of a unit; None guesses one from the widths.
        folder: where the file will lie, by default the working directory;
            paths in it are relative to this folder.
        given: file lists, include folders, macros and parameters.

    Raises:
        ElaborationError: no simulator takes the sources.
        UnknownNameError, SpecError: there is no such instruction, the unit's file is wrong, or a source is no
            file.
    """
    # 1. The top module with its ports, from the first tool that takes the sources.
    folder = folder or Path()
    given = given or Given()
    design = given.design(sources, top)
    vhdl = in_vhdl(design.sources)
    units = tops(design) if top is None and not vhdl else []
    design = replace(design, top=units[0]) if len(units) == 1 else design
    asked = design
    top_module, design, edition, remark = elaborated(design, given.vhdl if vhdl else None)
    if not vhdl:  # GHDL refuses a generic that the entity lacks
        check_parameters("-G", given.parameters, top_module)
    sources = sources if design is asked or given.filelists else design.sources
    standard = "" if edition is None or edition.standard == given.vhdl.standard else edition.standard
    module = _taken_apart(top_module)
    # 2. The unit: the one that is named, or one whose operands are as wide as the ports.
    candidates = [instruction] if instruction else _candidates(module, _roles(module, None))
    unit = _instruction(candidates[0]) if candidates else None
    layout = _layout(module, unit) if unit else None
    # 3. The role of each port; without known registers names alone decide, and the draft says so.
    read = structure_of(replace(design, top=module.name), edition)
    structure = read if isinstance(read, Structure) else None
    roles = _roles(module, unit, structure)
    if structure is None and (reset := roles.port("reset")) is not None:
        roles.reset = reset_by_text(design.sources, reset)
    # 4. Operands that come in several transfers: from here on `layout` has the elements of one transfer.
    parts, beats = _in_beats(roles, unit, layout)
    if layout is not None and parts > 1:
        parted = [
            replace(item, elements=item.elements // parts) if item.name in "ab" else item
            for item in layout.fields
        ]
        layout = replace(layout, fields=tuple(parted))
    lines = [
        f"# First draft for {module.name}, from its ports. Check what is marked GUESS; docs/dut.md explains "
        "every key.",
        *remark,
        *(
            [f"# Its registers are not known, and names decide: {shortened_message(read)}"]
            if isinstance(read, str)
            else []
        ),
        f"dut: {_scalar(module.name)}",
        f"top: {_scalar(module.name)}",
        *([f"sources: {_paths(sources, folder)}"] if sources else []),
        *(given.lines(folder, standard) or [_NOTHING_GIVEN[vhdl]]),
        "",
        *(_given(instruction, folder) if instruction else _guessed(candidates, roles)),
        *(["level: tile"] if layout and layout.level == "tile" else []),
        "",
        *_timing(module, roles, unit, beats),
        "",
        *_ports(module, roles, layout, unit),
        *_rest(roles, module, unit),
        "# nan: exact | canonical | any      zero: strict | any",
        "compare: {nan: exact, zero: strict}",
    ]
    return "\n".join(lines) + "\n"


_ENDS = {"first": {"first", "start", "sop", "sof", "clear", "clr"}, "last": {"last", "tlast", "eop", "eof"}}
"""Words of inputs that mark the first and the last of the transfers that bring the operands."""


def _in_beats(roles: _Roles, unit: Instruction | None, layout: WordLayout | None) -> tuple[int, str]:
    """In how many transfers a and b come, where their ports have room for an equal part of the elements, and
    what `input` says of it; 1 and nothing for all at once."""
    items = [item for item in layout.fields if item.name in ("a", "b")] if layout is not None else []
    ports = {item.name: roles.found.roles.get(item.name) for item in items}
    counts = {item.width / port.width for item in items if (port := ports[item.name]) is not None}
    beats = int(next(iter(counts), 1))
    if (
        counts != {beats}
        or not 1 < beats <= MOST_BEATS
        or unit is None
        or unit.state
        or not (roles.port("in_valid") or roles.port("enable"))
    ):
        return 1, ""
    if "in_valid" not in roles.found.roles:  # what stops a unit says which transfers count
        roles.found.roles["in_valid"] = roles.found.roles.pop("enable")
    marks = {end: [n for n in roles.left if words & set(words_of(n))][:1] for end, words in _ENDS.items()}
    # What lets a register take the sum marks the last transfer, whatever it is called.
    marks["last"] = marks["last"] or [name for name in roles.left if roles.loading.get(name) == "1"][:1]
    roles.left[:] = [name for name in roles.left if [name] not in marks.values()]
    return beats, f", beats: {beats}" + "".join(f", {end}: {n[0]}" for end, n in marks.items() if n)


def _paths(paths: Iterable[Path], folder: Path) -> str:
    return f"[{', '.join(_scalar(os.path.relpath(path, folder)) for path in paths)}]"


def _scalar(text: str) -> str:
    """A text as a value in YAML, also inside brackets: quoted where it would mean something else (on, 1e3,
    "a, b.sv")."""
    plain = re.fullmatch(r"[\w./$+-]+( [\w./$+-]+)*", text, re.ASCII) and yaml.safe_load(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)


_NUMBER = re.compile(r"(?:\d+\s*)?'([bodh])([\da-f][\da-f_]*)", re.IGNORECASE)
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


def parameter_value(text: str) -> int | str:
    """The value of a parameter as a command line gives it: a number, also as SystemVerilog writes it (8'h3f),
    or a text, in quotes or not."""
    if re.fullmatch(r"[+-]?\d+(_\d+)*", text, re.ASCII):
        return int(text)
    number = _NUMBER.fullmatch(text)
    if number is not None:
        try:
            return int(number[2], _BASES[number[1].lower()])
        except ValueError:  # a digit that the base has not
            return text
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _instruction(name: str) -> Instruction:
    if name.endswith((".yaml", ".yml")):
        return load_instruction(name)
    architecture, _, rest = name.partition(":")
    return find_instruction(architecture, rest)


def _layout(module: Module, unit: Instruction) -> WordLayout:
    """The operands of a dot product, or of a tile where the unit has several dot products in one and outputs
    have room for the results of all of them, and of one only by leaving bits."""
    dot = WordLayout.of(unit)
    if unit.state or unit.m * unit.n == 1:
        return dot
    tile = WordLayout.of(unit, "tile")
    widths = {port.width for port in module.ports.values() if port.direction == "output"}
    return tile if tile.fields[-1].width in widths and dot.fields[-1].width not in widths else dot


# Roles ------------------------------------------------------------------------------------------------------


def _taken_apart(module: Module) -> Module:
    """The module as if the fields of its structures were ports, but for structures that are one operand; of a
    union the first field stands for all."""
    parts = [part for port in module.ports.values() for part in leaves(_without_unions(port), _is_operand)]
    return replace(module, ports={part.name: part for part in parts})


def _without_unions(port: Port) -> Port:
    at: dict[int, Port] = {}
    for lsb, member in port.members:
        at.setdefault(lsb, _without_unions(member))
    return replace(port, members=tuple(at.items()))


def _is_operand(port: Port) -> bool:
    """Whether a structure is one number, with a sign, an exponent and a fraction, and no bus."""
    names = [member.name for _, member in port.members]
    several = {operand_by_name(name, port.direction) for name in names} - {None}
    handshake = any(re.search(r"valid|vld|ready|rdy", name, re.I) for name in names)
    return operand_by_name(port.name, port.direction) is not None and not several and not handshake


def _roles(module: Module, unit: Instruction | None, structure: Structure | None = None) -> _Roles:
    """What each port is for; of a `unit` that is known only what it has. The registers of the `structure`
    decide what is a valid and what an enable."""
    # 1. Ports that belong to a part of an operand: fields of the mode, status flags, fraction, exponent and
    # sign. Afterwards `others` holds every port that may be a whole operand or a control.
    fields = {item.name: item for item in _layout(module, unit).fields} if unit else None
    modes = _mode_ports(module, unit)
    status = [_STATUS.get(name, (name.lower(),)) for name in unit.status] if unit else []
    state = unit is not None and unit.state
    word = match(module, fields, state=state).roles.get("flags") if status else None
    # One port with a bit for each flag says more than a port each: the order of its bits is given.
    flags = [] if word is not None and word.width == len(status) else _flag_ports(module, status)
    # A mode of one field in one port is matched here: the names of its values mean nothing to `match`.
    mode = None if modes else _mode_port(module, unit)
    parts = _in_three_parts(module, unit)
    apart = {*(name for names in modes.values() for name in names), *flags, *([mode] if mode else [])}
    apart |= {name for names in parts.values() for name in names}
    others = replace(module, ports={name: port for name, port in module.ports.items() if name not in apart})
    if fields is not None:
        gone = {name for name, ports in (("mode", modes or mode), ("flags", flags)) if ports} | parts.keys()
        fields = {name: item for name, item in fields.items() if name not in gone}
    # 2. Roles by name, direction and width: at most one role for a port.
    found = match(others, fields, state=state)
    for role, names in parts.items():
        direction, width = module.ports[names[0]].direction, sum(module.ports[name].width for name in names)
        found.roles[role] = Candidate(tuple(names), direction, width, ())
        found.remarks[role] = "fraction, exponent and sign by their names"
    if mode is not None:
        found.roles["mode"] = Candidate((mode,), "input", module.ports[mode].width, ())
    # 3. The netlist overrules names: result, clock and reset, then valid, enable and clear, then what has no
    # register.
    if structure is not None:
        find_result(found, module, structure, fields["d"].width if fields and "d" in fields else None)
    if structure is not None and structure.has_registers:
        clock_and_reset(found, module, structure)
    decide(found, module, structure, state)
    bare = structure is not None and not structure.has_registers and at_once(found, module, structure, state)
    if bare:  # Chisel gives every module clock and reset
        for role in ("clock", "reset"):
            if (each := found.roles.pop(role, None)) is not None:
                found.tied[each.ports[0]] = f"a {role} without a register"
    elif "clock" not in found.roles and (each := found.roles.pop("reset", None)) is not None:
        found.tied[each.ports[0]] = "a reset without a clock"
    # 4. How the controls act, as registers show it. Roles change only where several valids are found.
    roles = _Roles(found, modes=modes, flags=flags)
    if structure is not None:
        roles.at_once = at_once(found, module, structure, state)
        roles.clear = clear_of(found, module, structure)
        reset = roles.port("reset")
        roles.reset = structure.reset(module.ports[reset]) if reset else None
    roles.reset_clears = (
        fields is not None
        and "clear" in fields
        and "load" not in fields
        and "clear" not in found.roles
        and "reset" in found.roles
    )
    missing = [role for role in MAIN if role in (fields or ()) and role not in found.roles]
    roles.valids = several_valids(others, found, missing)
    named = [valid for valid, _, _ in roles.valids]
    if named and (other := roles.port("in_valid")) is not None and other not in named:
        found.tied[other] = "an enable that is always there"  # it was the valid while there was no better one
    if structure is not None and named and not answers_all(found, module, structure, named):
        del found.roles["out_valid"]  # it goes with one operand on its way, as in a systolic array
    # 5. Every port without a role is in `left` (inputs) or `open` (outputs).
    used = apart | {name for each in found.roles.values() for name in each.ports} | found.tied.keys()
    used |= {name for valid, ready, _ in roles.valids for name in (valid, ready) if name}
    own = {plain(roles.port(role) or "") for role in ("clock", "reset")}
    for name, port in others.ports.items():
        by_header = port.header and plain(name) in own
        if (
            name not in used and not by_header and port.width
        ):  # the wrapper connects what an interface has by their names
            (roles.open if port.direction == "output" else roles.left).append(name)
    # 6. Operands and a result that no name showed take one of these, marked as a guess.
    _take_what_is_left(roles, module, fields)
    if structure is not None:
        enable = None if roles.valids else find_enable(found, module, structure, state, roles.left)
        roles.left[:] = [name for name in roles.left if name != enable]
        roles.stages = depth_of(found, module, structure)
        roles.registers = registers_of(found, module, structure)
        _find_loads(roles, module, structure)
        _find_operation(roles, module, structure)
        factors = [roles.ports(role) for role in "ab"]
        ends = [[module.ports[name] for name in names if name in module.ports] for names in factors]
        if fields is None and all(ends) and "c" not in found.roles and not structure.multiplies(*ends):
            found.remarks["b"] = f"or c, if the unit adds{roles.others('b')}"
    if "d" not in found.roles and roles.open:
        widest = max(roles.open, key=lambda name: module.ports[name].width)
        if module.ports[widest].width:
            found.roles["d"] = Candidate((widest,), "output", module.ports[widest].width, ())
            several = min(module.ports[widest].width, 2)  # a signal of one bit is no result of several
            found.doubts["d"] = [
                name for name in roles.open if name != widest and module.ports[name].width >= several
            ]
            roles.open.remove(widest)
    return roles


def _find_loads(roles: _Roles, module: Module, structure: Structure) -> None:
    """The inputs left that load operands. One that stops the sum while it loads is a valid: the operands that
    come first lie there with it, and the others in a cycle of their own."""
    reset, low = roles.port("reset"), roles.reset is not None and roles.reset.active_low
    off = (module.ports[reset] if reset else None, low)

    def loads(controls: Sequence[str], operands: Iterable[str]) -> dict[str, str]:
        names = [name for role in operands for name in roles.ports(role) if name in module.ports]
        sources = [module.ports[name] for name in names]
        return structure.loads([module.ports[name] for name in controls], sources, *off)

    roles.loading = loads(roles.left, MAIN)
    turns = [name for name, value in roles.loading.items() if value.startswith(EITHER)]
    first = [role for role in roles.registers if not _cycles_later(roles, role)]
    free = not (roles.valids or {"in_valid", "out_valid"} & roles.found.roles.keys())
    if free and first and len(turns) == 1:
        value = loads(turns, first).get(turns[0], "")
        if value.startswith(EITHER):
            taken = {role: loads(turns, [role]).get(turns[0], "")[-1:] for role in first}
            value = "1" if len(set(taken.values())) > 1 else value[-1]
            roles.turn = _signal_of(turns[0], low=value == "0")
            roles.left.remove(turns[0])
            # What stands still while it loads comes in the next cycle, with all that comes after it.
            still = [role for role in first if taken[role] not in ("", value)]
            after = [role for role in roles.registers if role not in first] if still else []
            roles.registers |= {role: roles.registers[role] - 1 for role in (*still, *after)}


def _find_operation(roles: _Roles, module: Module, structure: Structure) -> None:
    """How the unit answers its operands, with every signal as the draft connects it."""
    operands, results = (
        [module.ports[name] for role in of for name in roles.ports(role) if name in module.ports]
        for of in (MAIN, ("d",))
    )
    if not structure.has_registers or not results:
        return
    assumed: dict[str, list[Port]] = {}

    def assume(name: str, value: str | int) -> None:
        assumed.setdefault(str(value)[-1], []).append(module.ports[name])

    for name, why in _unused_controls(roles):
        assume(name, _idle(name, why))
    for name in roles.left:
        low = module.ports[name].width == 1 and _RESET_LOW.search(name) is not None
        assume(name, roles.loading.get(name, int(low)))
    for name in (*roles.ports("enable"), *roles.ports("out_ready")):
        assume(name, int(not _acts_low(roles, name)))
    reset, start, done = (roles.port(role) for role in ("reset", "in_valid", "out_valid"))
    on = [(module.ports[name], "10"[_acts_low(roles, name)]) if name else None for name in (start, done)]
    control = Control(
        structure, (module.ports[reset] if reset else None, _is_low(roles, reset or "")), assumed, *on
    )
    if start and done and not (roles.valids or roles.port("in_ready") or roles.port("out_ready")):
        roles.answer = answer_of(control, operands, results)
    roles.keeps = keeps_a_sum(control, max(roles.stages, 1), results)


def _take_what_is_left(roles: _Roles, module: Module, fields: Mapping[str, Field] | None) -> None:
    """Gives operands that no name fits the inputs of several bits that are left, in the order of the ports:
    one of the operand's width, or where that is not known the widest one for a, and one as wide as a for b.
    Nothing that may be an operand is only tied to 0."""
    for role in MAIN:
        given, first = roles.found.roles.get(role), roles.found.roles.get("a")
        if fields is None and given is not None and first is not None and given.width == 1 < first.width:
            if any(module.ports[name].width == first.width for name in roles.left):
                roles.left += roles.found.roles.pop(role).ports  # another one is as wide as a
            wide = sorted(roles.left, key=lambda name: -module.ports[name].width)
            roles.found.doubts[role] = [name for name in wide if module.ports[name].width > 1]
        if role in roles.found.roles or (fields is not None and role not in fields):
            continue
        wide = [name for name in roles.left if module.ports[name].width > 1 and not module.ports[name].items]
        if fields is not None:
            fits = [name for name in wide if module.ports[name].width == fields[role].width]
            fits = fits or [name for name in wide if _a_part(module.ports[name], fields[role])]
        elif (first := roles.found.roles.get("a")) is not None:
            fits = [name for name in wide if role == "b" and module.ports[name].width == first.width]
        else:
            most = max((module.ports[name].width for name in wide), default=0)
            fits = [name for name in wide if module.ports[name].width == most]
        if fits:
            roles.found.roles[role] = Candidate((fits[0],), "input", module.ports[fits[0]].width, ())
            roles.found.doubts[role] = fits[1:]
            roles.left.remove(fits[0])


def _a_part(port: Port, item: Field) -> bool:
    """Whether a port has room for an equal part of the elements of an operand, which may come in several
    transfers."""
    parts, rest = divmod(item.width, port.width)
    return not rest and 1 < parts <= MOST_BEATS and item.elements % parts == 0


_PARTS = ("m|man|mant|mantissa|f|frac|fraction|sig|significand", "e|exp|exponent", "s|sign|sgn")
"""Words of the ports of a float that lies in three, the lowest bits first."""


def _in_three_parts(module: Module, unit: Instruction | None) -> dict[str, list[str]]:
    """The ports of fraction, exponent and sign of each operand that is one float and has no port as wide as
    it: of these widths, and called alike but for their words. Operands have them in the order of ports."""
    found: dict[str, list[str]] = {}
    taken = set[str]()
    for item in _layout(module, unit).fields if unit is not None else ():
        fmt = unit.formats.get(item.name) if unit is not None else None
        side = "output" if item.name in RESULTS else "input"
        ports = {name: port for name, port in module.ports.items() if port.direction == side}
        wide = any(port.width >= item.width for port in ports.values())
        if fmt is None or not fmt.is_float or item.elements > 1 or wide:
            continue
        widths = (fmt.fraction_bits, fmt.exponent_bits, int(fmt.signed))
        called: dict[str, dict[int, str]] = {}
        for name in ports if all(widths) else ():
            for at, words in enumerate(_PARTS):
                alone = re.fullmatch(rf"(?:{words})_?(?P<to>.+)|(?P<of>.+?)_?(?:{words})(_[io])?", name, re.I)
                if alone and name not in taken and ports[name].width == widths[at]:
                    called.setdefault(alone["to"] or alone["of"], {}).setdefault(at, name)
        whole = next((each for each in called.values() if len(each) == len(_PARTS)), None)
        if whole is not None:
            found[item.name] = [whole[at] for at in range(len(_PARTS))]
            taken |= set(found[item.name])
    return found


_OF_VALUES = {
    "nearest_even": {"rnd", "round", "rounding", "rm", "rmode", "frm"},
    "product": {"neg", "negate", "negates", "sub", "mod", "subtract", "invert"},
}
"""Words of ports that choose among values of which one is this."""


def _mode_ports(module: Module, unit: Instruction | None) -> dict[str, list[str]]:
    """The ports of each field of `mode`: one, or one for each of its bits. Empty where no field has a port,
    or all lie in one; a field that none is found for has no ports."""
    if unit is None or unit.modes is None:
        return {}
    found = _named_after_fields(module, unit.modes)
    taken = [module.ports[name].width for names in found.values() for name in names]
    several = len(found) > 1 or all(len(names) > 1 for names in found.values())
    whole = max(taken, default=0) >= unit.modes.bits
    return found if taken and (several or not whole) and not (several and whole) else {}


def _mode_port(module: Module, unit: Instruction | None) -> str | None:
    """The port of the only field of `mode`, which is named after the field or one of its values."""
    if unit is None or unit.modes is None or len(unit.modes.fields) > 1:
        return None
    (names,) = _named_after_fields(module, unit.modes).values()
    whole = [name for name in names if module.ports[name].width == unit.modes.bits]
    return whole[0] if len(names) == 1 and whole else None


def _named_after_fields(module: Module, modes: Modes) -> dict[str, list[str]]:
    """The inputs that each field of `mode` is for, by their names and widths."""
    found: dict[str, list[str]] = {}
    taken: set[str] = set()
    inputs = {name: port for name, port in module.ports.items() if port.direction == "input" and port.width}

    def score(name: str, part: ModeField) -> int:
        words = set(words_of(name))
        own = {"".join(words_of(part.name))} | set(words_of(part.name))
        chosen = set[str]().union(*(_OF_VALUES.get(str(value), set()) for value in part.values))
        speaks = 8 * bool(own & words) + 6 * bool(chosen & words)
        width = inputs[name].width
        return speaks and speaks + 4 * (width == part.bits) - 4 * (width > part.bits)

    for part in modes.fields:
        best = sorted(
            (
                name
                for name in inputs
                if name not in taken and inputs[name].width >= part.bits and score(name, part) > 4
            ),
            key=lambda name: -score(name, part),
        )
        bits = [name for name in inputs if inputs[name].width == 1 and score(name, part) > 0]
        names = best[:1] or (bits if len(bits) == part.bits else [])
        found[part.name] = names
        taken |= set(names)
    return found


def _flag_ports(module: Module, status: Sequence[Sequence[str]]) -> list[str]:
    """A one-bit output for each status flag; none where one is missing."""
    single = [name for name, port in module.ports.items() if port.direction == "output" and port.width == 1]
    found = [next((name for name in single if set(words) & set(words_of(name))), None) for words in status]
    names = [name for name in found if name is not None]
    return names if len(set(names)) == len(status) else []


# The instruction --------------------------------------------------------------------------------------------


def _candidates(module: Module, roles: _Roles) -> list[str]:
    """Hopper's instructions with names of their own, one of each kind, whose dot product has exactly the
    widths of the ports, plainest first."""
    widths = {
        role: roles.found.roles[role].width for role in ("a", "b", "c", "d") if role in roles.found.roles
    }
    if len(widths) < 4:
        return []
    found = []
    for name, (entry, variables) in architectures.get_architecture("hopper").names().items():
        if entry.family.is_plain(variables):
            layout = WordLayout.of(find_instruction("hopper", name))
            if {field.name: field.width for field in layout.fields} == widths:
                found.append(f"hopper:{name}")
    return sorted(found, key=lambda name: (re.search(r"\.[sub]\d+\.", name) is not None, "satfinite" in name))


def _given(name: str, folder: Path) -> list[str]:
    is_unit = name.endswith((".yaml", ".yml"))
    return [f"unit: {_scalar(os.path.relpath(name, folder))}" if is_unit else f"instruction: {name}"]


def _guessed(candidates: list[str], roles: _Roles) -> list[str]:
    bits = {role: each.width for role, each in roles.found.roles.items() if role not in CONTROL_ROLES}
    widths = ", ".join(f"{role} {width}" for role, width in sorted(bits.items()))
    if not candidates:
        return [
            f"# Bits: {widths}. No instruction of Hopper has these; see `mmagold list`, or describe your "
            "own unit in a YAML file",
            "# of your own and write `unit: my_unit.yaml` instead.",
            f"instruction: {PLACEHOLDER}{GUESS}",
        ]
    others = [f"#   {name}" for name in candidates[1:6]]
    more = (
        [f"# Bits: {widths}. The same on Hopper (other architectures: `mmagold list`):", *others]
        if others
        else []
    )
    return [*more, f"instruction: {candidates[0]}{GUESS}: it has the widths of the ports"]


# Clock, reset, handshake ------------------------------------------------------------------------------------


def _timing(module: Module, roles: _Roles, unit: Instruction | None, beats: str = "") -> list[str]:
    clock, reset = roles.port("clock"), roles.port("reset")
    lines = [f"clock: {_scalar(clock)}{roles.guess('clock')}"] if clock else ["# clock: clk"]
    if reset and not roles.reset_clears:
        by_name = f"{GUESS}: polarity by name, and whether it is synchronous"
        shape, mark = (roles.reset, "") if roles.reset else (Reset(_is_low(roles, reset), True), by_name)
        lines.append(
            f"reset: {{port: {_scalar(reset)}, active: {'low' if shape.active_low else 'high'}, "
            f"synchronous: {str(shape.synchronous).lower()}, cycles: 4}}{mark}"
        )
    lines.append("handshake:")
    out_valid = roles.port("out_valid")
    given = [_with_beats(each, beats) for each in _input(roles)] if clock else []
    answer = roles.answer
    if answer.hold and len(given) == 1 and not beats:
        held = given[0].partition(GUESS)[0].replace("}", f", hold: {answer.hold}}}", 1)
        if answer.hold == "released":
            doubt = f"{GUESS}: {out_valid} needs it, and is cleared without it"
        else:
            doubt = f"{GUESS}: {answer.doubt}" if answer.doubt else "  # registers read them until then"
        given = [f"{held}{doubt}"]
    if given and out_valid:
        out_ready = roles.port("out_ready")
        ready = bool(roles.port("in_ready") or out_ready or any(ready for _, ready, _ in roles.valids))
        lines.append(f"  kind: {'valid_ready' if ready else 'valid'}")
        doubt = f"{GUESS}: {answer.doubt}" if answer.doubt and not answer.hold else ""
        doubt = _doubt(roles, "out_valid", "out_ready") or doubt
        side = _side(roles, "output", out_valid, out_ready, doubt)
        if answer.level:
            signal = _signal(roles, out_valid)
            long = signal if signal.startswith("{") else f"{{port: {signal}}}"
            side = side.replace(f"valid: {signal}", f"valid: {long[:-1]}, level: true}}", 1)
        lines += [*given, side]
        lines += [] if ready else [_interval(answer.interval)]
    elif clock:
        enable = roles.port("enable")
        lines += [
            f"  kind: latency{GUESS}: there is no pair of valid ports",
            _latency(roles, beats),
        ]
        lines += [_with_beats(each, beats) for each in _input(roles, ready=False)]
        if roles.turn is not None:
            why = "it loads an operand, and the sum waits for it"
            lines.append(f"  input: {{valid: {roles.turn}}}{GUESS}: {why}")
        lines += (
            [_marked(roles, f"  enable: {_signal(roles, enable)}", roles.guess("enable"))] if enable else []
        )
        cycles = max(_cycles_later(roles, role) for role in MAIN) + 1
        lines.append(_interval(cycles if roles.turn is not None else 1))
        if unit is not None and unit.state and not given:
            ones = [name for name in roles.left if module.ports[name].width == 1 and not roles.stages]
            if ones:
                roles.left.remove(ones[0])
                others = f", or {_some(ones[1:])}" if ones[1:] else ""
                lines.append(
                    f"  input: {{valid: {_signal_of(ones[0], _LOW.search(ones[0]) is not None)}}}{GUESS}: "
                    f"which cycles count is not known{others}"
                )
            else:
                lines.append("  idle: zero  # no port says which cycles count: a and b are 0 in the others")
    else:
        bare = "  # there is no register" if roles.at_once else f"{GUESS}: there is no clock"
        lines.append(f"  kind: combinational{bare}")
    return lines


def _interval(cycles: int) -> str:
    said = "  # interval: 1    # cycles from one set of operands to the next"
    return said if cycles == 1 else f"  interval: {cycles}"


def _with_beats(line: str, beats: str) -> str:
    """The line of the input, of which the operands come in several transfers."""
    text, brace, rest = line.partition("}")
    return (
        f"{text}{beats}{brace}{rest or f'{GUESS}: a and b have room for a part of the elements'}"
        if beats
        else line
    )


def _latency(roles: _Roles, beats: str) -> str:
    """The line of the latency: measured, where that is possible and it is not known."""
    if roles.at_once:
        return "  latency: 0    # the operands reach the result without a register"
    if not roles.reset_clears and roles.clear.given != "before_operands" and not beats:
        return "  latency: measure    # or the number of cycles"
    why = counted(roles.stages, "register") if roles.stages else "or more; count the registers"
    return f"  latency: {max(roles.stages, 1)}{GUESS}: {why} between the operands and the result"


def _input(roles: _Roles, ready: bool = True) -> list[str]:
    """The line of the side that takes operands: one valid, several that are all needed, or a channel for each
    operand."""
    if not roles.valids:
        valid = roles.port("in_valid")
        doubt = _doubt(roles, "in_valid", *(["in_ready"] if ready else []))
        return (
            [_side(roles, "input", valid, roles.port("in_ready") if ready else None, doubt)] if valid else []
        )
    readies = [name for _, name, _ in roles.valids if name]
    if not ready or not readies or not all(operands for _, _, operands in roles.valids):
        names = ", ".join(_signal(roles, valid) for valid, _, _ in roles.valids)
        more = f"; with {', '.join(readies)}: a list of {{operands, valid, ready}}" if readies else ""
        return [_by_name(roles, f"  input: {{valid: [{names}]}}") + f"{GUESS}: all of them are needed{more}"]
    lines = ["  input:"]
    for valid, name, operands in roles.valids:
        words = f"operands: [{', '.join(operands)}], valid: {_signal(roles, valid, 'ready' if name else '')}"
        words += f", ready: {_signal(roles, name)}" if name else ""
        lines.append(_marked(roles, f"    - {{{words}}}", _left_to(roles, operands)))
    return lines


def _left_to(roles: _Roles, operands: Sequence[str]) -> str:
    """The mark behind a channel whose operand no port is named after."""
    return f"{GUESS}: its operand is what is left" if any(not roles.ports(each) for each in operands) else ""


def _doubt(roles: _Roles, *names: str) -> str:
    return next((mark for name in names if (mark := roles.guess(name))), "")


def _side(roles: _Roles, side: str, valid: str, ready: str | None, doubt: str = "") -> str:
    signals = {"valid": valid} | ({"ready": ready} if ready else {})
    waits = {} if not ready else {"input": {"valid": "ready"}, "output": {"ready": "valid"}}[side]
    words = ", ".join(
        f"{role}: {_signal(roles, name, waits.get(role, ''))}" for role, name in signals.items()
    )
    return _marked(roles, f"  {side}: {{{words}}}", doubt)


def _signal(roles: _Roles, name: str, fellow: str = "") -> str:
    """A signal of the handshake; active low where registers show it, or else its name says so. One that may
    be active only while its fellow is waits for that."""
    if fellow and (name.startswith("EN_") or "yumi" in words_of(name)):
        return f"{{port: {_scalar(name)}, only_if: {fellow}}}"
    return _signal_of(name, _acts_low(roles, name))


def _acts_low(roles: _Roles, name: str) -> bool:
    """Whether a signal of the handshake acts with 0: as registers show it, or else by its name."""
    by_name = _LOW.search(name.rpartition(".")[2]) is not None
    return roles.found.low.get(name, by_name)


def _signal_of(name: str, low: bool) -> str:
    return f"{{port: {_scalar(name)}, active: low}}" if low else _scalar(name)


def _marked(roles: _Roles, line: str, doubt: str) -> str:
    """A line of the handshake with the mark of a polarity that is guessed, or else that of a doubt."""
    marked = _by_name(roles, line)
    return marked if GUESS in marked else marked + doubt


def _is_low(roles: _Roles, reset: str) -> bool:
    """Whether the reset acts with 0: as registers show it, or else by its name."""
    return roles.reset.active_low if roles.reset else _RESET_LOW.search(reset) is not None


def _by_name(roles: _Roles, line: str) -> str:
    """A line of the handshake, marked where a polarity is guessed."""
    low = re.findall(r"port: (\S+), active: low", line)
    return f"{line}{GUESS}: polarity by name" if set(low) - roles.found.low.keys() else line


# Ports ------------------------------------------------------------------------------------------------------


def _mode_line(module: Module, roles: _Roles, unit: Instruction | None) -> str:
    """The ports of the fields of the mode; one that no port is named after gets an input of its width that
    is left."""
    widths = {part.name: part.bits for part in unit.modes.fields} if unit is not None and unit.modes else {}
    words, unsure = [], []
    for name, ports in roles.modes.items():
        if not ports:
            ports = [port for port in roles.left if module.ports[port].width == widths[name]][:1]
            roles.left[:] = [port for port in roles.left if port not in ports]
            unsure.append(f"{name} by its width" if ports else f"no port looks like {name}")
        wide = len(ports) == 1 and module.ports[ports[0]].width > widths[name]
        text = f"[{', '.join(map(_scalar, ports))}]" if len(ports) > 1 else _scalar([*ports, "PORT"][0])
        words.append(f"{name}: {{port: {text}, partial: true}}" if wide else f"{name}: {text}")
        if roles.modes[name] and name.lower() not in words_of(ports[0]):
            unsure.append(f"{name} by what it chooses")
    mark = f"{GUESS}: {', '.join(dict.fromkeys(unsure))}" if unsure else ""
    return f"  mode: {{{', '.join(words)}}}{mark}"


def _riscv(unit: Instruction | None, roles: _Roles) -> str:
    """A warning where four flags get a port of five bits: RISC-V's fflags have another one among them."""
    width = roles.found.roles["flags"].width
    if unit is None or "divide_by_zero" in unit.status or (len(unit.status), width) != (4, 5):
        return ""
    order = "inexact, underflow, overflow, divide_by_zero, invalid"
    return f"; RISC-V's five are flags: [{order}] in the unit's file"


def _ports(module: Module, roles: _Roles, layout: WordLayout | None, unit: Instruction | None) -> list[str]:
    fields = {item.name: item for item in layout.fields} if layout else {}
    lines = ["# Element 0 in the least significant bits, unless order: descending.", "ports:"]
    if roles.keeps and not (unit is not None and unit.state):
        said = "# Registers add to what earlier operands left: the unit's file then has accumulator: state."
        lines[0] += f"\n{said}{GUESS}"
    shared = _shared_port(module, roles, fields)
    for operand in fields or ("a", "b", "c", "d"):
        names = roles.ports(operand)
        if operand == "mode" and roles.modes:
            lines.append(_mode_line(module, roles, unit))
        elif operand == "flags" and roles.flags:
            lines.append(f"  flags: [{', '.join(map(_scalar, roles.flags))}]{GUESS}: flags by their names")
        elif operand in shared:
            lines.append(f"  {operand}: {shared[operand]}{GUESS}: operands in the order of the entries")
        elif names and operand in fields and roles.found.roles[operand].width < fields[operand].width:
            item, width = fields[operand], roles.found.roles[operand].width
            wider = f"; -G may widen it: {_some(module.parameters)}" if module.parameters else ""
            lines.append(
                f"  # {operand}: {', '.join(names)}{GUESS}: {width} bits, but the operand has "
                f"{item.elements} x {item.bits}{wider}{_candidates_text(module, roles, operand)}"
            )
        elif operand == "clear" and names and (roles.clear.given or roles.clear.active_low):
            low = ", active: low" if roles.clear.active_low else ""
            when = f", given: {roles.clear.given}" if roles.clear.given else ""
            lines.append(f"  clear: {{port: {_scalar(names[0])}{low}{when}}}")
        elif len(names) == 1 and (later := _cycles_later(roles, operand)):
            most = [role for role in roles.registers if not _cycles_later(roles, role)]
            lines.append(
                f"  {operand}: {{port: {_scalar(names[0])}, later: {later}}}{GUESS}: it reaches the result "
                f"through {counted(later, 'register')} fewer than {' and '.join(most)}"
            )
        elif names:
            placed = _arrangement(names, module, fields.get(operand), roles.guess(operand))
            fmt = unit.formats.get(operand) if unit is not None else None
            if fmt is not None and not fmt.is_float and (operand == "d" or fmt.signed):
                rule = "sign" if fmt.signed else "zero"  # what integers are extended with
                placed = placed.replace("partial: true}", f"partial: true, unused: {rule}}}")
            lines.append(f"  {operand}: {placed}{_riscv(unit, roles) if operand == 'flags' else ''}")
        elif operand == "clear" and roles.reset_clears:
            reset = roles.port("reset") or ""
            low, port = ", active: low" if _is_low(roles, reset) else "", _scalar(reset)
            lines.append(
                f"  clear: {{port: {port}{low}, given: before_operands}}{GUESS}: nothing but the reset "
                "seems to clear"
            )
        elif operand != "clear" or "load" not in fields:  # a load of zero clears
            lines.append(
                f"  # {operand}: PORT{GUESS}: no port looks like it{_candidates_text(module, roles, operand)}"
            )
    if all(line.startswith("  #") for line in lines[2:]):
        lines[1] = "ports: {}"
    for operand in ("flags",) if not fields and roles.ports("flags") else ():
        lines.append(f"  # {operand}: {', '.join(roles.ports(operand))}, if the instruction has it")
    return lines


def _cycles_later(roles: _Roles, operand: str) -> int:
    """How many cycles after the first operand one comes, as far as registers show it."""
    return max(roles.registers.values()) - roles.registers[operand] if operand in roles.registers else 0


def _candidates_text(module: Module, roles: _Roles, operand: str) -> str:
    left = roles.open if operand in RESULTS else roles.left
    widest = sorted(left, key=lambda name: -module.ports[name].width)  # an operand has several bits
    shown = _some(f"{name} ({counted(module.ports[name].width, 'bit')})" for name in widest)
    return f"; {'outputs' if operand in RESULTS else 'inputs'} left: {shown or 'none'}"


def _some(names: Iterable[str]) -> str:
    """The first names of a list, and how many more there are."""
    return listed(list(names), _SHOWN)


def _shared_port(module: Module, roles: _Roles, fields: Mapping[str, Field]) -> dict[str, str]:
    """The places of the operands in one port that has all of them, as entries of an array or side by side; or
    of two, where the port of one has exactly so many bits more as the other one needs."""
    main = [name for name in MAIN if name in fields]
    missing = [name for name in main if not roles.ports(name)]
    for name in main if len(missing) == 1 else ():
        ports = [module.ports[each] for each in roles.ports(name)]
        wide = fields[name].width + fields[missing[0]].width
        if len(ports) == 1 and ports[0].width == wide and not (ports[0].unpacked or ports[0].packed):
            place = f"port: {_scalar(ports[0].name)}, partial: true"
            return {name: f"{{{place}}}", missing[0]: f"{{{place}, lsb: {fields[name].width}}}"}
    total, lone = sum(fields[name].width for name in main), [name for name in main if roles.ports(name)]
    names = [*roles.left, *(port for name in lone for port in roles.ports(name))]
    for name in names if len(lone) < 2 < 1 + len(main) else ():
        port = module.ports[name]
        array = "unpacked" if port.unpacked else "packed" if port.packed else None
        widths = {fields[each].width for each in main}
        if array and entries(port, array) >= len(main) and widths == {entry_width(port, array)}:
            more = ", partial: true" if entries(port, array) > len(main) else ""
            places = [f"array: {array}, first: {at}{more}" for at in range(len(main))]
        elif not array and port.width == total:
            places = [f"lsb: {sum(fields[each].width for each in main[:at])}" for at in range(len(main))]
        else:
            continue
        roles.left[:] = [each for each in roles.left if each != name]
        return {each: f"{{port: {_scalar(name)}, {place}}}" for each, place in zip(main, places, strict=True)}
    return {}


def _arrangement(names: list[str], module: Module, item: Field | None, doubt: str = "") -> str:
    port = module.ports[names[0]]
    array = "unpacked" if port.unpacked else "packed" if port.packed else None
    lone = array is not None and entries(port, array) == 1 and array == "packed"  # [0:0][3:0][7:0]: a vector
    array = array if len(names) == 1 and not lone else None
    width = entry_width(port, array)
    count = entries(port, array) if array else len(names)
    ports = _scalar(names[0]) if len(names) == 1 else f"[{', '.join(map(_scalar, names))}]"
    if item and count > 1 and width > item.bits and width % item.bits == 0 and count * width == item.width:
        elements = f", word: {{elements: {width // item.bits}}}"
        return (
            f"{{port: {ports}"
            + (f", array: {array}" if array else "")
            + elements
            + "}"
            + GUESS
            + ": words of several elements"
        )
    text = f"{{port: {ports}, array: {array}}}" if array else ports
    widths = [module.ports[name].width for name in names]
    # A part of the only element in each port.
    if item and item.elements == 1 < len(names) and sum(widths) == item.width:
        return f"{{port: {ports}, bits: [{', '.join(map(str, widths))}]}}{doubt}"
    if item and count * width != item.width:
        if len(names) == 1 and width >= item.bits and count * width > item.width:  # or a lane of several
            lanes = f"array: {array}, " if array else ""
            text = f"{{port: {ports}, {lanes}partial: true}}"
        return f"{text}{GUESS}: {count * width} bits, but the operand has {item.elements} x {item.bits}"
    return text + doubt


def _rest(roles: _Roles, module: Module, unit: Instruction | None) -> list[str]:
    lines = []
    unused = _unused_controls(roles)
    if roles.left or unused:
        lines += [
            "# Inputs of unknown purpose, tied for now.",
            "constants:",
            *(f"  {_scalar(name)}: {_tied(module.ports[name], roles, unit)}" for name in roles.left),
            *(f"  {_scalar(name)}: {_idle(name, why)}{GUESS}: {why}" for name, why in unused),
        ]
    if roles.open:
        lines.append(f"# Outputs left open: {', '.join(roles.open)}")
        lines += _not_compared_flags(roles, module)
    return [*lines, ""]


def _not_compared_flags(roles: _Roles, module: Module) -> list[str]:
    """What lets the check compare open outputs that are called status flags, if the unit's file has none."""
    if roles.flags or roles.port("flags"):
        return []
    open_ports = {name: port for name, port in module.ports.items() if name in roles.open}
    at = {flag: _flag_ports(replace(module, ports=open_ports), [words]) for flag, words in _STATUS.items()}
    found = {flag: ports[0] for flag, ports in at.items() if ports}
    if not found:
        return []
    said = f"not compared without flags: [{', '.join(found)}] in the unit's file"
    return [f"# Status flags by their names, {said}: {', '.join(found.values())}"]


def _idle(name: str, why: str) -> int:
    """The value of a control that lets the unit run."""
    low = _RESET_LOW if why.startswith("a reset") else _LOW
    return int(bool(low.search(name)) == why.startswith("a reset"))


_SIGNED = re.compile(r"(^|_)(?P<no>un)?signed(_|$)", re.I)
"""Of an input that says whether the factors have a sign."""


def _tied(port: Port, roles: _Roles, unit: Instruction | None) -> str:
    """The value of an input that is tied: a name where its type has names."""
    value = roles.loading.get(port.name, "")
    if value.startswith(EITHER):
        return f"{value[-1]}{GUESS}: a register takes an operand with {value[-1]}, and another one does not"
    if value:
        return f"{value}{GUESS}: a register takes an operand with it"
    factors = [unit.formats[name] for name in "ab" if name in unit.formats] if unit is not None else []
    kinds = {(fmt.is_float, fmt.signed) for fmt in factors}
    if (said := _SIGNED.search(port.name)) and len(kinds) == 1 and not factors[0].is_float and not port.items:
        signed = factors[0].signed
        on = signed != bool(said["no"])
        kind = "signed" if signed else "unsigned"
        return f"{(1 << port.width) - 1 if on else 0}{GUESS}: a and b are {kind}"
    if not port.items:
        if port.width == 1 and _RESET_LOW.search(port.name):
            return f"1{GUESS}: a reset by its name"
        return f"0{GUESS}" if port.width == 1 else f"0{GUESS}: {counted(port.width, 'bit')}"
    names = list(port.items)
    return f"{names[0]}{GUESS}: one of {_some(names)}"


def _unused_controls(roles: _Roles) -> list[tuple[str, str]]:
    """Control inputs that the chosen kind of handshake does not name, and what they are: they let the unit
    run."""
    clock = roles.port("clock")
    given = bool(clock and (roles.port("in_valid") or roles.valids))
    unused = {"enable": "an enable", "out_ready": "a ready", "in_valid": "a valid"}
    if given and roles.port("out_valid"):
        unused = {"enable": "an enable"}
        if not (roles.port("in_ready") or roles.port("out_ready")):
            unused["out_ready"] = "a ready"
    elif clock:
        unused = {"out_ready": "a ready"}
    idle = [
        (name, f"{what} that is always there") for role, what in unused.items() if (name := roles.port(role))
    ]
    return [*idle, *roles.found.tied.items()]
