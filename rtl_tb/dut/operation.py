"""How a unit answers its operands: whether it takes the next ones before a result is there, whether they
have to stay, whether a result depends on what earlier ones left.

Its registers run cycle by cycle behind the reset, with any operands (`Structure.cycles`). What is then
constant is control: it says when a result is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtl_tb.dut.ports import Port
from rtl_tb.dut.structure import Bit, Structure, Values

_MOST = 200
"""Cycles of an operation that are followed: a serial division of 64 bits, and as many again."""
_CELLS = 300_000
"""Cells that are resolved at most in a run: three seconds or so."""
_STARTS = 3
"""Operations in a row that have to be answered in time."""


@dataclass(frozen=True)
class Answer:
    """How a unit answers a start.

    Attributes:
        interval: the least number of cycles from one start to the next.
        hold: as the key of dut.yaml; "" where neither operands nor start have to stay.
        level: whether the result's valid stays active.
        doubt: why its registers do not show that; "" where they do.
    """

    interval: int = 1
    hold: str = ""
    level: bool = False
    doubt: str = ""


@dataclass(frozen=True)
class Control:
    """The control of a unit, as a draft connects it.

    Attributes:
        reset: the reset, and whether it acts with 0. assumed: what other inputs have, by value.
        start, done: the valid of the operands and that of the result, each with the value that means it.
    """

    structure: Structure
    reset: tuple[Port | None, bool]
    assumed: Mapping[str, Sequence[Port]]
    start: tuple[Port, str] | None = None
    done: tuple[Port, str] | None = None

    def idle(self) -> Values:
        """The registers when the unit waits for operands behind its reset."""
        return self.waiting(self.structure.behind_reset(*self.reset))

    def waiting(self, state: Values) -> Values:
        """The registers when the unit has waited for operands from a state on."""
        return self.structure.settled(state, self._given(False), self.most)

    def cycles(self, state: Values, begins: Callable[[int], bool]) -> Iterator[tuple[Values, str]]:
        """Cycles from a state on, with a start in some of them; with each whether the result's valid is
        active: "1", "0", or "x" if that depends on something."""
        inputs = (self._given(begins(at)) for at in range(self.most))
        for values in self.structure.cycles(state, inputs):
            yield values, self._shows(values)

    def operation(self, state: Values) -> tuple[list[Values], str]:
        """The cycles from a start until its result may be there; and whether it is. An earlier result may
        still be there."""
        fallen = self.quiet(state) == "0"
        cycles, shown = list[Values](), ""
        for values, shown in self.cycles(state, lambda at: at == 0):
            cycles.append(values)
            if fallen and shown != "0":
                break
            fallen |= shown == "0"
        return cycles, shown

    def quiet(self, state: Values) -> str:
        """Whether the result's valid is active without a start."""
        return next((shown for _, shown in self.cycles(state, lambda _: False)), "x")

    def starts(self) -> bool:
        """Whether a result may be there once its start is given and stays, and none before."""
        idle = self.idle()
        return self.quiet(idle) == "0" and any(shown != "0" for _, shown in self.cycles(idle, lambda _: True))

    @property
    def most(self) -> int:
        """Cycles that are followed."""
        return min(_MOST, _CELLS // max(self.structure.cells, 1))

    def _given(self, start: bool) -> dict[str, list[Port]]:
        found = {value: list(ports) for value, ports in self.assumed.items()}
        port, low = self.reset
        found.setdefault("1" if low else "0", []).extend([port] if port is not None else [])
        if self.start is not None:
            port, on = self.start
            found.setdefault(on if start else "10"[int(on)], []).append(port)
        return found

    def _shows(self, values: Values) -> str:
        if self.done is None:
            return "x"
        port, on = self.done
        (bit,) = self.structure.bits(port) or ("x",)
        value = values.get(bit, bit)
        return "x" if value not in ("0", "1") else "1" if value == on else "0"


def answer_of(control: Control, operands: Sequence[Port], results: Sequence[Port]) -> Answer:
    """How a unit answers a start, with every signal as a draft connects it."""
    idle = control.idle()

    def seen(begins: Callable[[int], bool], count: int) -> str:
        rows = zip(range(count), control.cycles(idle, begins), strict=False)
        return "".join(shown for _, (_, shown) in rows)

    if control.quiet(idle) != "0":
        return Answer(doubt="it may be active before any operands")
    cycles, shown = control.operation(idle)
    after = len(cycles) - 1
    if shown == "x":
        return Answer(hold="operands", doubt="how many cycles it takes may depend on its operands")
    if shown == "0":  # not by a start of one cycle
        held = seen(lambda _: True, control.most)
        after = held.find("1")
        if after < 0 or "x" in held[:after]:
            return Answer(doubt=f"no result is there within {control.most} cycles")
        return Answer(hold="released", level="0" not in held[after:])
    if "0" not in seen(lambda at: at == 0, after + _STARTS)[after:]:
        needed = _depends_on_later(control.structure, cycles, operands, results)
        return Answer(hold="operands" if needed else "", level=True)

    def answered(interval: int) -> bool:
        want = {after + at * interval for at in range(_STARTS)}
        found = seen(lambda at: at % interval == 0, max(want) + 1)
        return {at for at, shown in enumerate(found) if shown != "0"} == want | {
            at for at in range(after, max(want)) if interval == 1
        }

    if answered(1):
        return Answer()
    if _depends_on_later(control.structure, cycles, operands, results):
        return Answer(hold="operands")
    longer = 3  # cycles behind a result in which a unit may not yet be ready
    fits = next((each for each in range(max(after - 1, 2), after + longer) if answered(each)), None)
    return Answer(hold="operands") if fits is None else Answer(interval=fits)


def _depends_on_later(
    structure: Structure, cycles: Sequence[Values], operands: Sequence[Port], results: Sequence[Port]
) -> bool:
    """Whether a result, in the last of these cycles, depends on operands of a cycle behind the first."""
    sources = {bit for port in operands for bit in structure.bits(port)}
    return _reached(structure, cycles[1:], set(), sources, results)


def _reached(
    structure: Structure,
    cycles: Sequence[Values],
    begin: set[Bit],
    sources: set[Bit],
    results: Sequence[Port],
) -> bool:
    """Whether results in the last of these cycles depend on bits of registers in the first, or on sources."""
    reached = begin
    for values in cycles[:-1]:
        reached = structure.passed_on(reached | sources, values)
    return bool(cycles) and structure.show(results, reached | sources, cycles[-1])


def keeps_a_sum(control: Control, depth: int, results: Sequence[Port]) -> bool:
    """Whether a result depends on what earlier operands left in a register that adds to itself: an
    accumulator, and no weight."""
    structure = control.structure
    sums = structure.feeding_themselves(results)
    if not sums:
        return False
    if control.done is not None:  # one operation, and then another one with what the first left
        state = control.idle()
        cycles, shown = control.operation(state)
        for values in cycles:
            state = structure.next(state, values)
        cycles, shown = control.operation(control.waiting(state))
    else:
        state = structure.behind_reset(*control.reset)
        rows = [values for values, _ in control.cycles(state, lambda _: True)]
        cycles, shown = rows[-depth - 1 :], "1"
    return shown == "1" and _reached(structure, cycles, sums, set(), results)
