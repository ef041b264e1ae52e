"""Which control input is the clock, the reset, a valid, and which stops the pipeline: the registers of
the unit decide (rtl_tb/dut/structure.py); what they do not decide stays as the names say it, with a remark.

An enable stops every register before the result and its valid. A valid travels through registers to an
output, or lets an accumulator add while a clear or another register goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from rtl_tb.dut.matching import CONTROL_ROLES, MAIN, SURE, Candidate, Match, words_of
from rtl_tb.dut.operation import Control
from rtl_tb.dut.ports import Module, Port
from rtl_tb.dut.structure import Structure

ON_NO_REGISTER = "an enable of a combinational path"
GOES_ON = "an enable that is always there; registers before the result go on without it"
_FURTHER = "a reset as well"
_VALIDS = {"valid", "vld", "dv", "nvalid", "nvld", "v", "stb", "strobe", "nd"}
"""Words of an input that say that it is a valid; others (en, ce, start, go) may be either."""
_DROPS = {"flush", "clear", "clr", "kill", "abort", "cancel"}
"""Words of an input that drops what is in flight."""
_ALONE = 100
"""A score that no other port comes near, so that this valid is the only one."""
_ONE_REGISTER = "with one register a valid and an enable are the same"


def decide(found: Match, module: Module, structure: Structure | None, state: bool) -> None:
    """Corrects the roles `enable`, `in_valid` and `out_valid` of a match in place, and finds a `clear`.

    Args:
        state: the unit keeps its accumulator.
    """
    if structure is not None:
        _no_further_resets(found, module, structure)
    if structure is not None and state:
        _find_clear(found, module, structure)
    _find_roles(found, module, structure, state)
    if structure is not None:
        _confirm_valid(found, module, structure)
        _find_polarities(found, _Seen(found, module, structure, state))


def _find_roles(found: Match, module: Module, structure: Structure | None, state: bool) -> None:
    if "enable" not in found.roles and "in_valid" not in found.roles:
        if structure is not None:
            _find_valid(found, module, structure)
        return
    if any(found.roles[role].method for role in ("enable", "in_valid") if role in found.roles):
        return
    seen = None if structure is None else _Seen(found, module, structure, state)
    if seen is None or not seen.known:
        _by_names(found)
    elif seen.combinational:
        _on_no_register(found, state)
    else:
        _by_registers(found, seen, state)


def find_result(found: Match, module: Module, structure: Structure, width: int | None) -> None:
    """Corrects the role `d` in place: names choose among the outputs that depend on the operands. If none of
    these is called a result, or only a part of one, it is the widest one that depends on most of their bits.

    Args:
        width: of the result, where it is known.
    """
    end = found.roles.get("d")
    if end is not None and len(end.ports) > 1:
        return
    taken = _not_results(found)
    inputs = [port for port in module.ports.values() if port.direction == "input"]
    named = [port for port in inputs if any(port.name in _ports_of(found, role) for role in MAIN)]
    sources = named or [port for port in inputs if port.width > 1 and port.name not in taken]
    reach = {
        name: structure.reached(sources, port)
        for name, port in module.ports.items()
        if port.direction == "output" and port.width >= (width or 2) and name not in taken
    }
    if not reach and width and (halves := _halves(found, module, structure, width)):
        found.roles["d"] = Candidate(halves, "output", width, ())
        found.remarks["d"] = "halves of a result, the lower one first"
        return
    most = max(reach.values(), default=0)
    part = 2  # a result depends on at least 1/2 of these bits: a sum's carry on all, a copy of a on fewer
    fits = [name for name, bits in reach.items() if most and bits * part >= most]
    widest = max((port.width for port in named), default=0)
    whole = [name for name in fits if reach[name] == most and module.ports[name].width == widest]
    if end is not None:
        bits, (name,) = reach.get(end.ports[0], 0), end.ports
        a_part = width is None and bool(whole) and end.width < widest
        if not fits or (name in fits and not a_part):
            wider = [each for each in fits if module.ports[each].width > end.width and reach[each] >= bits]
            if wider and width is None:
                found.doubts["d"] = list(dict.fromkeys([*found.doubts.get("d", ()), *wider]))
            return
    if not fits:
        return

    def rank(name: str) -> tuple[bool, int, int]:  # of equal ones that of the last stage
        ways = [structure.distance(source, [module.ports[name]]) or 0 for source in sources]
        return name in whole, 0 if name in whole else module.ports[name].width, max(ways, default=0)

    fits.sort(key=rank, reverse=True)
    best = next(name for name in fits if reach[name] == most)
    others = [name for name in (*fits, *_ports_of(found, "d")) if name != best]
    found.roles["d"] = Candidate((best,), "output", module.ports[best].width, words_of(best))
    found.scores["d"] = _ALONE
    found.doubts.pop("d", None)
    if others:
        found.doubts["d"] = others


def _not_results(found: Match) -> set[str]:
    """The ports that have another role than the result."""
    return {name for role, each in found.roles.items() if role != "d" for name in each.ports}


def _reset_of(found: Match, module: Module, structure: Structure) -> tuple[Port | None, bool]:
    """The reset of a match, and whether it acts with 0."""
    reset = next((module.ports[name] for name in _ports_of(found, "reset")), None)
    shape = structure.reset(reset) if reset is not None else None
    return reset, shape is not None and shape.active_low


def _halves(found: Match, module: Module, structure: Structure, width: int) -> tuple[str, ...]:
    """The only two outputs that are together as wide as the result: first the one whose lowest bit depends on
    fewer bits of the operands. Nothing if there are several such pairs."""
    operands = [module.ports[name] for role in MAIN for name in _ports_of(found, role)]
    taken = _not_results(found)
    ports = [port for port in module.ports.values() if port.direction == "output" and port.name not in taken]
    pairs = [pair for pair in combinations(ports, 2) if sum(port.width for port in pair) == width]
    pairs = [pair for pair in pairs if all(structure.reached(operands, port) for port in pair)]
    if len(pairs) != 1:
        return ()
    low_first = sorted(pairs[0], key=lambda port: structure.reached(operands, port, lowest=True))
    return tuple(port.name for port in low_first)


def clock_and_reset(found: Match, module: Module, structure: Structure) -> None:
    """Corrects the roles `clock` and `reset` in place: of several inputs with such names, that on which a
    register depends. The others are tied. Without such a name an input is the reset that sets most registers
    at once: nothing else does, and tied to the wrong value it would hold the unit for ever."""

    def resets(port: Port) -> int:
        return int(structure.reset(port) is not None)

    for role, counted in (("clock", structure.clocked), ("reset", resets)):
        chosen = found.roles.get(role)
        others = [name for name in found.doubts.get(role, ()) if name in module.ports]
        if chosen is None or not others or counted(module.ports[chosen.ports[0]]):
            continue
        best = max(others, key=lambda name: counted(module.ports[name]))
        if counted(module.ports[best]):
            found.roles[role] = Candidate((best,), "input", 1, words_of(best))
            found.tied[chosen.ports[0]] = f"a {role} without a register"
            del found.doubts[role]
    if "reset" not in found.roles:
        free = [port for port in _free(found, module) if structure.set_at_once(port)]
        if free:
            name = max(free, key=structure.set_at_once).name
            found.roles["reset"] = Candidate((name,), "input", 1, words_of(name))


def _no_further_resets(found: Match, module: Module, structure: Structure) -> None:
    """Ties what is called a valid or an enable and with 1 sets no fewer registers than the reset does: a unit
    that takes operands while it resets takes none."""
    whole = [module.ports[name] for name in _ports_of(found, "reset")]
    for role in ("in_valid", "enable") if whole else ():
        for name in () if role in found.roles and found.roles[role].method else _ports_of(found, role):
            shape = structure.reset(module.ports[name])
            sets = structure.sets(module.ports[name])
            if shape is not None and not shape.active_low and sets >= structure.sets(whole[0]) > 0:
                del found.roles[role]
                found.tied[name] = _FURTHER


def _find_clear(found: Match, module: Module, structure: Structure) -> None:
    """What sets the accumulator to a constant with one of its values clears it: not what no name says to be a
    clear and does not, but what is called a valid or an enable and does it with 0, or any other input."""
    kept = structure.registers_at([module.ports[name] for name in _ports_of(found, "d")])
    runs = [module.ports[name] for role in ("in_valid", "enable") for name in _ports_of(found, role)]

    def clears(name: str, value: str) -> bool:
        port = module.ports[name]
        given = {value: [port], "1" if value == "0" else "0": []}
        given["1"] = [*given["1"], *(each for each in runs if each is not port)]
        return bool(kept) and kept <= structure.set_to_constants(given)

    for name in _ports_of(found, "clear") if found.scores.get("clear", SURE) < SURE else ():
        if kept and not clears(name, "0") and not clears(name, "1"):
            del found.roles["clear"]
    for role in ("in_valid", "enable") if "clear" not in found.roles else ():
        for name in _ports_of(found, role):
            if clears(name, "0") and not clears(name, "1"):
                found.roles["clear"] = found.roles.pop(role)
    for port in _free(found, module) if "clear" not in found.roles and "load" not in found.roles else ():
        if clears(port.name, "0") != clears(port.name, "1"):
            found.roles["clear"] = Candidate((port.name,), "input", 1, words_of(port.name))
            return


def _ports_of(found: Match, role: str) -> tuple[str, ...]:
    return found.roles[role].ports if role in found.roles else ()


def _free(found: Match, module: Module) -> list[Port]:
    """The inputs of one bit that have no role."""
    taken = {name for each in found.roles.values() for name in each.ports} | found.tied.keys()
    return [
        port
        for name, port in module.ports.items()
        if (port.direction, port.width) == ("input", 1) and name not in taken
    ]


def at_once(found: Match, module: Module, structure: Structure, state: bool) -> bool:
    """Whether every operand reaches the result without a register, and no part of it through one unless the
    unit keeps it."""
    return _Seen(found, module, structure, state).combinational


def depth_of(found: Match, module: Module, structure: Structure) -> int:
    """How many registers lie between the first operand and the result, on the shortest way of each; of ways
    through memories 1 for one register, and else 2."""
    seen = _Seen(found, module, structure)
    ways = [structure.distance(one, seen.data) for one in seen.operands]
    known = [way for way in ways if way is not None]
    return max(known, default=0) if len(known) == len(ways) else seen.stages


def registers_of(found: Match, module: Module, structure: Structure) -> dict[str, int]:
    """How many registers lie between each operand and the result, where some have fewer than others and
    come later by that number of cycles: a c that joins behind the product, or operands that meet a weight
    which a register keeps. Nothing where they come together, or where the valid of the result may be that of
    a unit of many cycles: how many, its registers do not show."""
    roles = [role for role in ("a", "b", "c") if role in found.roles]
    if len(roles) < 2 or "d" not in found.roles or "in_ready" in found.roles:
        return {}
    results = [module.ports[name] for name in found.roles["d"].ports if name in module.ports]
    counts: dict[str, int] = {}
    for role in roles:
        ports = [module.ports[name] for name in found.roles[role].ports if name in module.ports]
        ways = [way for port in ports if (way := structure.distance(port, results)) is not None]
        if not ways:
            return {}
        counts[role] = min(ways)
    one = counts.get("c") == 0 and structure.stages(results) == 1
    return counts if len(set(counts.values())) > 1 and (one or "out_valid" not in found.roles) else {}


def answers_all(found: Match, module: Module, structure: Structure, valids: Sequence[str]) -> bool:
    """Whether the valid of the result depends on every valid of the operands, or on none that is known."""
    if "out_valid" not in found.roles:
        return True
    output = module.ports[found.roles["out_valid"].ports[0]]
    reached = [structure.reaches(module.ports[name], output) for name in valids]
    return all(reached) or not any(reached)


@dataclass(frozen=True)
class Clear:
    """How a clear acts, as registers show it.

    Attributes:
        active_low: whether it acts with 0. given: of one that sets registers without the valid: with_operands
            where it leaves the operands of its cycle, before_operands where it drops them; "" where it waits
            for the valid or nothing is known.
    """

    active_low: bool = False
    given: str = ""


def clear_of(found: Match, module: Module, structure: Structure) -> Clear:
    """How the clear acts. Valid and enable are taken to act with 1, the reset as registers show it."""
    if not {"clear", "d"} <= found.roles.keys():
        return Clear()
    port = {
        role: module.ports[found.roles[role].ports[0]]
        for role in ("clear", "in_valid", "enable", "reset")
        if role in found.roles
    }
    shape = structure.reset(port["reset"]) if "reset" in port else None
    if shape is None and "reset" in port:
        return Clear()
    idle: dict[str, list[Port]] = {"0": [], "1": [port["enable"]] if "enable" in port else []}
    idle["0"] += [module.ports[name] for name, why in found.tied.items() if why == _FURTHER]
    if shape is not None:
        idle["1" if shape.active_low else "0"].append(port["reset"])

    def sets(clear: str, valid: str) -> set[int]:
        assumed = {value: list(ports) for value, ports in idle.items()}
        assumed[clear].append(port["clear"])
        assumed[valid] += [port["in_valid"]] if "in_valid" in port else []
        return structure.set_to_constants(assumed)

    low = sets("0", "1") > sets("1", "1")
    on, off = ("0", "1") if low else ("1", "0")
    without = sets(on, "0") - sets(off, "0")
    if not without:
        return Clear(low)
    return Clear(low, "before_operands" if without <= sets(on, "1") else "with_operands")


@dataclass
class _Seen:
    """What the registers say of the ports of a match."""

    found: Match
    module: Module
    structure: Structure
    state: bool = False

    def __post_init__(self) -> None:
        operands = [port for role in MAIN for port in self._ports(role)]
        self.data, self.operands = self._ports("d"), operands
        self.combinational = bool(operands and self.data) and all(
            any(self.structure.reaches(one, end, False) for end in self.data)
            and (self.state or not any(self.structure.reaches_later(one, end) for end in self.data))
            for one in operands
        )
        self.stages = self.structure.stages(self.data)
        self.known = self.combinational or self.stages > 0
        self.reset = _reset_of(self.found, self.module, self.structure)

    def _ports(self, role: str) -> list[Port]:
        each = self.found.roles.get(role)
        return [self.module.ports[name] for name in each.ports] if each is not None else []

    def stops(self, role: str) -> bool:
        """Whether the port of a role stops every register before the result and its valid."""
        (port,) = self._ports(role)
        return bool(self.stopped_by(port))

    def stopped_by(self, port: Port, assumed: Mapping[str, Sequence[Port]] = MappingProxyType({})) -> str:
        """The value of a port that stops every register before the result and its valid while others have
        `assumed` values; "" where none does."""
        ends = [*self.data, *self._ports("out_valid")]
        return self.structure.stops(port, ends, *self.reset, assumed)

    def takes(self, ports: Sequence[Port]) -> dict[str, str]:
        """The values of ports with which registers take the operands."""
        return self.structure.loads(ports, self.operands, *self.reset, behind=0)

    def travels(self, role: str) -> list[str]:
        """The outputs of one bit to which the port of a role comes through registers: the one that is called
        a valid, or else those that it reaches through nothing else, and no operand does. One that comes
        before all operands have is none: it goes on to a neighbour."""
        (port,) = self._ports(role)
        ways = [self.structure.distance(one, self.data) for one in self.operands]
        least = max((way for way in ways if way is not None), default=0)
        named = self._ports("out_valid")
        if any(self.structure.reaches_later(port, output) for output in named):
            return [output.name for output in named]
        return [
            name
            for name, output in self.module.ports.items()
            if output.direction == "output"
            and output.width == 1
            and self.structure.reaches_later(port, output)
            and not self.structure.reaches(port, output, False)
            and (self.structure.distance(port, [output]) or least) >= least
            and not any(self.structure.reaches(one, output) for one in self.operands)
        ]


def _by_names(found: Match) -> None:
    """Nothing is known of registers: what may be either says so. A result with a valid has operands with
    one."""
    if "out_valid" in found.roles and "in_valid" not in found.roles:
        found.roles["in_valid"] = found.roles.pop("enable")
        found.scores["in_valid"] = _ALONE
        found.remarks["in_valid"] = "by its name; or an enable"
    elif "enable" in found.roles and "in_valid" not in found.roles:
        found.remarks["enable"] = "by its name; or input: {valid: ...}"
    elif "out_valid" not in found.roles and not _VALIDS & set(found.roles["in_valid"].words):
        found.remarks["in_valid"] = "by its name; or enable: ..."
    if {"enable", "in_valid"} <= found.roles.keys() and "out_valid" not in found.roles:
        found.remarks["in_valid"] = f"by its name; or {found.roles['enable'].ports[0]}"
        found.remarks["enable"] = f"by its name; or {found.roles['in_valid'].ports[0]}"


def _on_no_register(found: Match, state: bool) -> None:
    """The operands reach the result in the same cycle: there is no pipeline to stop. What lets an accumulator
    add says which cycles count."""
    enable = found.roles.pop("enable", None)
    if state:
        if enable is not None and "in_valid" not in found.roles:
            found.roles["in_valid"], found.scores["in_valid"] = enable, _ALONE
        return
    if enable is not None:
        found.tied[enable.ports[0]] = ON_NO_REGISTER
    if "out_valid" not in found.roles and "in_valid" in found.roles:
        found.tied[found.roles.pop("in_valid").ports[0]] = ON_NO_REGISTER


def _by_registers(found: Match, seen: _Seen, state: bool) -> None:
    enable, valid = found.roles.get("enable"), found.roles.get("in_valid")
    # 1. Exchanged: the one that stops all is the enable.
    if enable and valid and seen.stops("in_valid") and not seen.stops("enable"):
        found.roles["enable"], found.roles["in_valid"] = valid, enable
        found.scores["in_valid"] = _ALONE
        return
    # 2. An enable that does not stop all is a valid, where it comes to an output, or else there is none.
    if enable and not seen.stops("enable"):
        ends = seen.travels("enable")
        if valid is None and (ends or state):
            _make_valid(found, ends, seen.module)
        else:  # the wrapper could not stop the unit with it
            found.tied[found.roles.pop("enable").ports[0]] = GOES_ON
        return
    # 3. A valid that stops all, without one of the result, is an enable, unless one register alone obeys it.
    if valid and not enable and "out_valid" not in found.roles and seen.stops("in_valid"):
        if seen.stages > 1:
            found.roles["enable"] = found.roles.pop("in_valid")
        elif not state and not _VALIDS & set(valid.words):
            found.remarks["in_valid"] = f"or enable: {valid.ports[0]}; {_ONE_REGISTER}"
    elif enable and valid and "out_valid" not in found.roles and seen.stops("in_valid"):
        found.remarks["in_valid"] = f"or {enable.ports[0]}; each of them stops every register"
        found.remarks["enable"] = f"or {valid.ports[0]}"
    elif enable and not valid and seen.stages == 1:
        found.remarks["enable"] = f"or input: {{valid: {enable.ports[0]}}}; {_ONE_REGISTER}"


def _confirm_valid(found: Match, module: Module, structure: Structure) -> None:
    """Takes another valid of the operands than the one that names say, if that one alone never brings a
    result and the other one does."""
    if not {"in_valid", "out_valid"} <= found.roles.keys() or found.roles["in_valid"].method:
        return
    (named,) = _ports_of(found, "in_valid")
    idle = [name for name, why in found.tied.items() if why in (ON_NO_REGISTER, GOES_ON)]
    others = [module.ports[name] for name in (named, *idle)] + _free(found, module)
    runs = [module.ports[name] for role in ("enable", "out_ready") for name in _ports_of(found, role)]
    reset = _reset_of(found, module, structure)
    done = module.ports[found.roles["out_valid"].ports[0]]

    def starts(port: Port) -> bool:
        zeros = [each for each in others if each is not port]
        return Control(structure, reset, {"0": zeros, "1": runs}, (port, "1"), (done, "1")).starts()

    better = [] if starts(module.ports[named]) else [port.name for port in others[1:] if starts(port)]
    if better:
        found.tied.pop(better[0], None)
        found.roles["in_valid"] = Candidate((better[0],), "input", 1, words_of(better[0]))
        found.scores["in_valid"] = _ALONE
        rest = "".join(f", or {name}" for name in better[1:])
        found.remarks["in_valid"] = f"{done.name} answers it, and not {named} alone{rest}"


def _find_valid(found: Match, module: Module, structure: Structure) -> None:
    """Gives the valid of the result an input as its fellow where no name says that it is one: one that comes
    to it through registers, and through which no operand does."""
    end = found.roles.get("out_valid")
    if end is None:
        return
    output = module.ports[end.ports[0]]
    pulses = [port.name for port in _free(found, module) if structure.reaches_later(port, output)]
    operands = [module.ports[name] for role in MAIN for name in _ports_of(found, role)]
    loading = structure.loads([module.ports[name] for name in pulses], operands, behind=0)
    # What drops results brings none; what lets a register take operands is more probably it.
    pulses.sort(key=lambda name: (not _DROPS.isdisjoint(words_of(name)), name not in loading))
    if pulses:
        found.roles["in_valid"] = Candidate((pulses[0],), "input", 1, words_of(pulses[0]))
        found.scores["in_valid"] = _ALONE
        others = f", or {', '.join(pulses[1:])}" if pulses[1:] else ""
        found.remarks["in_valid"] = f"it comes to {output.name} through registers{others}"


def find_enable(
    found: Match, module: Module, structure: Structure, state: bool, left: Sequence[str]
) -> str | None:
    """Of the inputs `left` without a role the one that stops every register while the others let registers
    take operands: the enable, where no name says that there is an enable or a valid."""
    seen = _Seen(found, module, structure, state)
    if {"enable", "in_valid", "out_valid"} & found.roles.keys() or not seen.known or seen.combinational:
        return None
    controls = [module.ports[name] for name in left]
    takes = seen.takes(controls)
    for port in controls:
        others = [each for each in controls if each is not port]
        assumed = {value: [each for each in others if takes.get(each.name) == value] for value in "01"}
        if port.width == 1 and (stop := seen.stopped_by(port, assumed)):
            # What lets the only register of an accumulator add says what counts.
            role = "in_valid" if state and seen.stages == 1 else "enable"
            found.roles[role] = Candidate((port.name,), "input", 1, words_of(port.name))
            found.remarks[role] = "it stops every register"
            found.low[port.name] = stop == "1"
            return port.name
    return None


def _find_polarities(found: Match, seen: _Seen) -> None:
    """Whether enable and valid act with 0: the one does not stop with it, with the other registers take."""
    for role in ("enable", "in_valid"):
        for name in () if role in found.roles and found.roles[role].method else _ports_of(found, role):
            port = seen.module.ports[name]
            stop = seen.stopped_by(port)
            runs = {"0": "1", "1": "0", "": seen.takes([port]).get(name, "")}[stop]
            if runs in ("0", "1"):
                found.low[name] = runs == "0"


def _make_valid(found: Match, ends: Sequence[str], module: Module) -> None:
    """Makes an enable the valid of the operands, and the output that it comes to the result's."""
    found.roles["in_valid"] = found.roles.pop("enable")
    found.scores["in_valid"] = _ALONE
    before = found.roles.get("out_valid")
    if not ends or (before is not None and before.ports[0] in ends):
        return
    taken = {name: role for role in CONTROL_ROLES if role in found.roles for name in found.roles[role].ports}
    # One with a role already is named like a signal of a handshake.
    end = max(ends, key=lambda name: (name in taken, -list(module.ports).index(name)))
    if end in taken:
        del found.roles[taken[end]]
    found.roles["out_valid"] = Candidate((end,), "output", 1, words_of(end))
    found.scores["out_valid"] = SURE
    if len(ends) > 1:
        found.doubts["out_valid"] = [name for name in ends if name != end]
