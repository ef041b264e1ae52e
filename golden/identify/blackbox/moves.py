"""A change of a candidate, what is known of useful ones, and the ways to make one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from golden.identify.blackbox.candidates import Candidate
from golden.number.formats import Format
from golden.program.program import Operation
from golden.program.steps import Step

Steps = tuple[Step, ...]
Operations = tuple[Operation, ...]


@dataclass(frozen=True)
class Move:
    """One change. `key`: what it changes, "align.fraction_bits"; `value`: the new value; `rank`: low for
    plain ones.

    `only`: the operation that it is made in; None: all operations with such a step.
    """

    key: str
    value: str
    change: Callable[[Steps], Steps]
    rank: int = 0
    only: int | None = None
    where: Format | None = None
    """Only in operations with results of this format."""

    def apply(self, one: Candidate) -> Candidate | None:
        """The neighbour; None if the change has no meaning there, or no unit can have it."""
        new = self.unchecked(one)
        return new if new is not None and new.sound else None

    def unchecked(self, one: Candidate) -> Candidate | None:
        """The neighbour, of which `sound` says whether a unit can have it; None if the change has no meaning
        there."""
        changed: list[Operation] = []
        before: tuple[Steps, Steps] | None = None
        for index, operation in enumerate(one.operations):
            steps = operation.steps
            if self.only in (None, index) and self.where in (None, operation.out_format):
                if before is None or before[0] is not steps:  # operations of a chain have the same steps
                    before = steps, self.change(steps)
                steps = before[1]
            changed.append(operation.with_steps(steps))
        return None if tuple(changed) == one.operations else one.with_keys(changed)

    @property
    def text(self) -> str:
        """The change in words."""
        return f"{self.key} = {self.value}"


@dataclass(frozen=True)
class Hints:
    """Values that are worth a try: NaN words that the box answered, and how far the search goes.

    wide: all values of integers and all entries that can be added to a list; if false, values near the
        present one.
    faults: also keys that only faults set; if false, only the ones that are set.
    """

    words: tuple[int, ...] = ()
    wide: bool = True
    faults: bool = True


def swapping_steps(steps: Steps, by: Steps) -> Callable[[Steps], Steps]:
    return lambda now: by if now == steps else now


def replacing_step(step: Step, by: Step) -> Callable[[Steps], Steps]:
    return put_instead(step, (by,))


def key_label(step: Step, key: str) -> str:
    """The name of a key of a step, as moves and reports have it: "align of products and c: rounding"."""
    return f"{step.op} of {' and '.join(step.of)}: {key}"


def shown_value(value: Any) -> str:
    if isinstance(value, Format):
        return value.name
    if isinstance(value, tuple):
        words = (" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in value)
        return ", ".join(words) or "none"
    return "none" if value is None else str(value)


def put_behind(step: Step, new: Step) -> Callable[[Steps], Steps]:
    return put_instead(step, (step, new))


def put_before(step: Step, new: Step) -> Callable[[Steps], Steps]:
    return put_instead(step, (new, step))


def put_instead(step: Step, by: Sequence[Step]) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        return tuple(new for one in steps for new in (by if one == step else (one,)))

    return change


@dataclass(frozen=True)
class _Operations(Move):
    """A change of the operations as a whole: what `made` makes of those of a candidate."""

    made: Callable[[Operations], Operations] = lambda operations: operations

    def unchecked(self, one: Candidate) -> Candidate | None:
        """As of a move."""
        changed = self.made(one.operations)
        return None if changed == one.operations else one.with_operations(changed)


def whole_change(key: str, value: str, made: Callable[[Operations], Operations], rank: int = 0) -> Move:
    return _Operations(key, value, lambda steps: steps, rank, made=made)


def made_as(operations: Operations) -> Callable[[Operations], Operations]:
    """Other operations altogether."""
    return lambda _: operations
