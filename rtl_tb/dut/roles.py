"""What each port of a designer's module is for, as far as names, widths and the netlist show it.

`find_roles` decides it in a fixed order: names and widths (rtl_tb/dut/matching.py), then the netlist, which
overrules them (rtl_tb/dut/controls.py), then how the unit runs from its reset (rtl_tb/dut/operation.py).
`complete` gives ports that are left to what still lacks one; these are guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
from rtl_tb.dut.keys import MOST_BEATS
from rtl_tb.dut.matching import MAIN, Candidate, Match, match, operand_by_name, several_valids, words_of
from rtl_tb.dut.operation import Answer, Control, answer_of, keeps_a_sum
from rtl_tb.dut.port_check import entries, entry_width, plain
from rtl_tb.dut.port_fields import leaves
from rtl_tb.dut.ports import Module, Port
from rtl_tb.dut.structure import EITHER, Reset, Structure

RESET_LOW = re.compile(r"((^|_)n_?(rst|reset))|((rst|reset)(_?n|_ni|_b|_l)(_i|_in)?$)", re.I)
_LOW = re.compile(
    r"(^|_)n_?(valid|vld|ready|rdy)|(valid|vld|ready|rdy|en|ena|enable|ce)_?n(i|o|_i|_o|_in|_out)?$|(^|_)busy",
    re.I,
)
"""Names of signals that mean with 0 what their fellows mean with 1; a unit that is busy is not ready."""
STATUS = {
    "inexact": ("inexact", "nx", "ine"),
    "underflow": ("underflow", "uf", "unf"),
    "overflow": ("overflow", "of", "ovf"),
    "invalid": ("invalid", "nv", "inv"),
    "divide_by_zero": ("dz", "dbz", "divzero", "divbyzero"),
}
"""Words of outputs that are one status flag each."""
SHOWN = 5
"""Candidates that a comment lists: more are no help."""


@dataclass(frozen=True)
class Beats:
    """The transfers that bring the elements of a and b.

    Attributes:
        count: how many there are.
        marks: the inputs that are active in the first and in the last one, by the keys of `input`.
    """

    count: int = 1
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> dict[str, Any]:
        """What `input` says of them."""
        return {} if self.count == 1 else {"beats": self.count, **self.marks}


@dataclass
class Roles:
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

    turn: tuple[str, bool] | None = None
    """An input that lets a register take the operands which come first, and stops the others meanwhile; and
    whether it does with 0."""

    clear: Clear = field(default_factory=Clear)
    """How the clear acts."""

    reset_clears: bool = False
    """Whether the reset is all that clears an accumulator: it then is no reset to the bench."""

    beats: Beats = field(default_factory=Beats)
    """The transfers that bring a and b."""

    guessed_modes: dict[str, str] = field(default_factory=dict)
    """Why the port of a field of the mode is a guess, by field."""

    shared: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where operands lie in a port that several of them share, as the keys of `ports`."""

    counted: list[str] = field(default_factory=list)
    """Inputs of one bit of which one may say which cycles an accumulator counts, if nothing else does."""

    def port(self, role: str) -> str | None:
        """The only port of a role."""
        candidate = self.found.roles.get(role)
        return candidate.ports[0] if candidate is not None else None

    def ports(self, role: str) -> list[str]:
        """The ports of an operand or a result."""
        candidate = self.found.roles.get(role)
        return list(candidate.ports) if candidate is not None else []

    def doubt(self, *roles: str) -> str:
        """Why the first role that is not sure is not: a remark, or the other candidates. "": all are sure."""
        for role in roles:
            if role in self.found.remarks:
                return self.found.remarks[role]
            if role in self.found.doubts:
                return self.others(role).removeprefix(", ") or "by what is left"
        return ""

    def others(self, role: str) -> str:
        """The other candidates of a role, as the end of a sentence."""
        return "".join(
            f"{', or' * (not at) or ','} {name}"
            for at, name in enumerate(self.found.doubts.get(role, ())[:SHOWN])
        )


def layout_of(module: Module, unit: Instruction) -> WordLayout:
    """The operands of a dot product, or of a tile where the unit has several dot products in one and outputs
    have room for the results of all of them, and of one only by leaving bits."""
    dot = WordLayout.of(unit)
    if unit.state or unit.m * unit.n == 1:
        return dot
    tile = WordLayout.of(unit, "tile")
    widths = {port.width for port in module.ports.values() if port.direction == "output"}
    return tile if tile.fields[-1].width in widths and dot.fields[-1].width not in widths else dot


def taken_apart(module: Module) -> Module:
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


def find_roles(module: Module, unit: Instruction | None, structure: Structure | None = None) -> Roles:
    """What each port is for; of a `unit` that is known only what it has. The registers of the `structure`
    decide what is a valid and what an enable."""
    state = unit is not None and unit.state
    # 1. Ports that belong to a part of an operand. Afterwards `others` holds every port that may be a whole
    # operand or a control.
    parts = _parts_of_operands(module, unit)
    others = replace(
        module, ports={name: each for name, each in module.ports.items() if name not in parts.ports}
    )
    # 2. Roles by name, direction and width: at most one role for a port.
    found = match(others, parts.fields, state=state)
    for role, names in parts.of_floats.items():
        direction, width = module.ports[names[0]].direction, sum(module.ports[name].width for name in names)
        found.roles[role] = Candidate(tuple(names), direction, width, ())
        found.remarks[role] = "fraction, exponent and sign by their names"
    if parts.mode is not None:
        found.roles["mode"] = Candidate((parts.mode,), "input", module.ports[parts.mode].width, ())
    # 3. The netlist overrules names.
    _overrule_names(found, module, structure, parts.fields, state)
    # 4. How the controls act, as registers show it. Roles change only where several valids are found.
    roles = Roles(found, modes=parts.modes, flags=parts.flags)
    _find_how_controls_act(roles, module, others, structure, parts.fields, state)
    # 5. Every port without a role is in `left` (inputs) or `open` (outputs).
    _list_ports_without_a_role(roles, others, parts.ports)
    # 6. Operands and a result that no name showed take one of these, marked as a guess.
    _take_what_is_left(roles, module, parts.fields)
    if structure is not None:
        _find_what_registers_show(roles, module, structure, parts.fields, state)
    if "d" not in found.roles and roles.open:
        _take_a_result(roles, module)
    return roles


@dataclass(frozen=True)
class _Parts:
    """Ports that belong to a part of an operand.

    Attributes:
        fields: the operands and controls of a known unit that a whole port may be, by name; None: any.
        modes, flags: the ports of each field of the mode, and of each status flag.
        mode: the port of a mode of one field.
        of_floats: the fraction, exponent and sign of an operand, by its name.
    """

    fields: dict[str, Field] | None
    modes: dict[str, list[str]]
    flags: list[str]
    mode: str | None
    of_floats: dict[str, list[str]]

    @property
    def ports(self) -> set[str]:
        """All of them."""
        several = (*self.modes.values(), *self.of_floats.values())
        single = [] if self.mode is None else [self.mode]
        return {*(name for names in several for name in names), *self.flags, *single}


def _parts_of_operands(module: Module, unit: Instruction | None) -> _Parts:
    """Fields of the mode, status flags; and fraction, exponent and sign that have a port each."""
    fields = {item.name: item for item in layout_of(module, unit).fields} if unit else None
    modes = _mode_ports(module, unit)
    status = [STATUS.get(name, (name.lower(),)) for name in unit.status] if unit else []
    state = unit is not None and unit.state
    word = match(module, fields, state=state).roles.get("flags") if status else None
    # One port with a bit for each flag says more than a port each: the order of its bits is given.
    flags = [] if word is not None and word.width == len(status) else flag_ports(module, status)
    # A mode of one field in one port is matched here: the names of its values mean nothing to `match`.
    mode = None if modes else _mode_port(module, unit)
    of_floats = _in_three_parts(module, unit)
    if fields is not None:
        gone = {
            name for name, ports in (("mode", modes or mode), ("flags", flags)) if ports
        } | of_floats.keys()
        fields = {name: item for name, item in fields.items() if name not in gone}
    return _Parts(fields, modes, flags, mode, of_floats)


def _overrule_names(
    found: Match,
    module: Module,
    structure: Structure | None,
    fields: Mapping[str, Field] | None,
    state: bool,
) -> None:
    """Takes result, clock and reset from the netlist, then valid, enable and clear, then what has no
    register."""
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


def _find_how_controls_act(
    roles: Roles,
    module: Module,
    others: Module,
    structure: Structure | None,
    fields: Mapping[str, Field] | None,
    state: bool,
) -> None:
    """Finds how reset and clear act, and which valids there are."""
    found = roles.found
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


def _list_ports_without_a_role(roles: Roles, others: Module, apart: set[str]) -> None:
    """Lists them; the wrapper connects what an interface has by their names."""
    found = roles.found
    used = apart | {name for each in found.roles.values() for name in each.ports} | found.tied.keys()
    used |= {name for valid, ready, _ in roles.valids for name in (valid, ready) if name}
    own = {plain(roles.port(role) or "") for role in ("clock", "reset")}
    for name, port in others.ports.items():
        by_header = port.header and plain(name) in own
        if name not in used and not by_header and port.width:
            (roles.open if port.direction == "output" else roles.left).append(name)


def _find_what_registers_show(
    roles: Roles,
    module: Module,
    structure: Structure,
    fields: Mapping[str, Field] | None,
    state: bool,
) -> None:
    """Finds an enable among the inputs that are left, how many registers lie between operands and result, and
    how the unit runs from its reset."""
    found = roles.found
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


def _take_a_result(roles: Roles, module: Module) -> None:
    """Guesses that the widest output without a role is the result."""
    found = roles.found
    widest = max(roles.open, key=lambda name: module.ports[name].width)
    if not module.ports[widest].width:
        return
    found.roles["d"] = Candidate((widest,), "output", module.ports[widest].width, ())
    several = min(module.ports[widest].width, 2)  # a signal of one bit is no result of several
    found.doubts["d"] = [
        name for name in roles.open if name != widest and module.ports[name].width >= several
    ]
    roles.open.remove(widest)


def complete(roles: Roles, module: Module, unit: Instruction, layout: WordLayout) -> WordLayout:
    """Gives inputs that are left to what still lacks a port: the marks of transfers, a valid of an
    accumulator, fields of the mode, operands that share a port. Each is a guess.

    Returns:
        The layout of one transfer of the operands.
    """
    roles.beats = _beats(roles, unit, layout)
    if (beats := roles.beats.count) > 1:
        parted = [
            replace(item, elements=item.elements // beats) if item.name in ("a", "b") else item
            for item in layout.fields
        ]
        layout = replace(layout, fields=tuple(parted))
    # Nothing else says which cycles count: then one of the inputs of one bit may.
    if (
        unit.state
        and roles.port("clock")
        and not (roles.valids or roles.port("in_valid"))
        and not roles.stages
    ):
        roles.counted = [name for name in roles.left if module.ports[name].width == 1]
        roles.left[:] = [name for name in roles.left if name not in roles.counted[:1]]
    roles.shared = _shared_port(roles, module, {item.name: item for item in layout.fields})
    widths = {part.name: part.bits for part in unit.modes.fields} if unit.modes else {}
    for name, ports in roles.modes.items():
        if ports:
            if name.lower() not in words_of(ports[0]):
                roles.guessed_modes[name] = f"{name} by what it chooses"
            continue
        ports += [port for port in roles.left if module.ports[port].width == widths[name]][:1]
        roles.left[:] = [port for port in roles.left if port not in ports]
        roles.guessed_modes[name] = f"{name} by its width" if ports else f"no port looks like {name}"
    return layout


_ENDS = {"first": {"first", "start", "sop", "sof", "clear", "clr"}, "last": {"last", "tlast", "eop", "eof"}}
"""Words of inputs that mark the first and the last of the transfers that bring the operands."""


def _beats(roles: Roles, unit: Instruction, layout: WordLayout) -> Beats:
    """In how many transfers a and b come, where their ports have room for an equal part of the elements."""
    items = [item for item in layout.fields if item.name in ("a", "b")]
    ports = {item.name: roles.found.roles.get(item.name) for item in items}
    counts = {item.width / port.width for item in items if (port := ports[item.name]) is not None}
    beats = int(next(iter(counts), 1))
    taken = roles.port("in_valid") or roles.port("enable")
    if counts != {beats} or not 1 < beats <= MOST_BEATS or unit.state or not taken:
        return Beats()
    if "in_valid" not in roles.found.roles:  # what stops a unit says which transfers count
        roles.found.roles["in_valid"] = roles.found.roles.pop("enable")
    marks = {end: [n for n in roles.left if words & set(words_of(n))][:1] for end, words in _ENDS.items()}
    # What lets a register take the sum marks the last transfer, whatever it is called.
    marks["last"] = marks["last"] or [name for name in roles.left if roles.loading.get(name) == "1"][:1]
    roles.left[:] = [name for name in roles.left if [name] not in marks.values()]
    return Beats(beats, {end: names[0] for end, names in marks.items() if names})


def _find_loads(roles: Roles, module: Module, structure: Structure) -> None:
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
    first = [role for role in roles.registers if not cycles_later(roles, role)]
    free = not (roles.valids or {"in_valid", "out_valid"} & roles.found.roles.keys())
    if free and first and len(turns) == 1:
        value = loads(turns, first).get(turns[0], "")
        if value.startswith(EITHER):
            taken = {role: loads(turns, [role]).get(turns[0], "")[-1:] for role in first}
            value = "1" if len(set(taken.values())) > 1 else value[-1]
            roles.turn = (turns[0], value == "0")
            roles.left.remove(turns[0])
            # What stands still while it loads comes in the next cycle, with all that comes after it.
            still = [role for role in first if taken[role] not in ("", value)]
            after = [role for role in roles.registers if role not in first] if still else []
            roles.registers |= {role: roles.registers[role] - 1 for role in (*still, *after)}


def _find_operation(roles: Roles, module: Module, structure: Structure) -> None:
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

    for name, why in unused_controls(roles):
        assume(name, idle_value(name, why))
    for name in roles.left:
        low = module.ports[name].width == 1 and RESET_LOW.search(name) is not None
        assume(name, roles.loading.get(name, int(low)))
    for name in (*roles.ports("enable"), *roles.ports("out_ready")):
        assume(name, int(not acts_low(roles, name)))
    reset, start, done = (roles.port(role) for role in ("reset", "in_valid", "out_valid"))
    on = [(module.ports[name], "10"[acts_low(roles, name)]) if name else None for name in (start, done)]
    control = Control(
        structure, (module.ports[reset] if reset else None, reset_is_low(roles, reset or "")), assumed, *on
    )
    if start and done and not (roles.valids or roles.port("in_ready") or roles.port("out_ready")):
        roles.answer = answer_of(control, operands, results)
    roles.keeps = keeps_a_sum(control, max(roles.stages, 1), results)


def _take_what_is_left(roles: Roles, module: Module, fields: Mapping[str, Field] | None) -> None:
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
    for item in layout_of(module, unit).fields if unit is not None else ():
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


def flag_ports(module: Module, status: Sequence[Sequence[str]]) -> list[str]:
    """A one-bit output for each status flag; none where one is missing."""
    single = [name for name, port in module.ports.items() if port.direction == "output" and port.width == 1]
    found = [next((name for name in single if set(words) & set(words_of(name))), None) for words in status]
    names = [name for name in found if name is not None]
    return names if len(set(names)) == len(status) else []


def acts_low(roles: Roles, name: str) -> bool:
    """Whether a signal of the handshake acts with 0: as registers show it, or else by its name."""
    return roles.found.low.get(name, acts_low_by_name(name))


def acts_low_by_name(name: str) -> bool:
    """Whether a signal of the handshake acts with 0, by its name alone."""
    return _LOW.search(name.rpartition(".")[2]) is not None


def reset_is_low(roles: Roles, reset: str) -> bool:
    """Whether the reset acts with 0: as registers show it, or else by its name."""
    return roles.reset.active_low if roles.reset else RESET_LOW.search(reset) is not None


def cycles_later(roles: Roles, operand: str) -> int:
    """How many cycles after the first operand one comes, as far as registers show it."""
    return max(roles.registers.values()) - roles.registers[operand] if operand in roles.registers else 0


def _shared_port(roles: Roles, module: Module, fields: Mapping[str, Field]) -> dict[str, dict[str, Any]]:
    """The places of the operands in one port that has all of them, as entries of an array or side by side; or
    of two, where the port of one has exactly so many bits more as the other one needs."""
    main = [name for name in MAIN if name in fields]
    missing = [name for name in main if not roles.ports(name)]
    for name in main if len(missing) == 1 else ():
        ports = [module.ports[each] for each in roles.ports(name)]
        wide = fields[name].width + fields[missing[0]].width
        if len(ports) == 1 and ports[0].width == wide and not (ports[0].unpacked or ports[0].packed):
            place = {"port": ports[0].name, "partial": True}
            return {name: place, missing[0]: place | {"lsb": fields[name].width}}
    total, lone = sum(fields[name].width for name in main), [name for name in main if roles.ports(name)]
    names = [*roles.left, *(port for name in lone for port in roles.ports(name))]
    for name in names if len(lone) < 2 < 1 + len(main) else ():
        port = module.ports[name]
        array = "unpacked" if port.unpacked else "packed" if port.packed else None
        widths = {fields[each].width for each in main}
        places: list[dict[str, Any]]
        if array and entries(port, array) >= len(main) and widths == {entry_width(port, array)}:
            more = {"partial": True} if entries(port, array) > len(main) else {}
            places = [{"array": array, "first": at, **more} for at in range(len(main))]
        elif not array and port.width == total:
            places = [{"lsb": sum(fields[each].width for each in main[:at])} for at in range(len(main))]
        else:
            continue
        roles.left[:] = [each for each in roles.left if each != name]
        return {each: {"port": name, **place} for each, place in zip(main, places, strict=True)}
    return {}


def idle_value(name: str, why: str) -> int:
    """The value of a control that lets the unit run."""
    low = RESET_LOW if why.startswith("a reset") else _LOW
    return int(bool(low.search(name)) == why.startswith("a reset"))


def unused_controls(roles: Roles) -> list[tuple[str, str]]:
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
