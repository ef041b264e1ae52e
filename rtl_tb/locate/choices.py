"""The program that holds every choice of a list."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import read
from rtl_tb.engines import fast
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, MachineError, RtlError
from rtl_tb.locate.budget import Budget
from rtl_tb.locate.changes import Changes, Choice
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.policy import SearchPolicy
from rtl_tb.locate.selector import numbers_at, with_selector
from rtl_tb.simulators import simulators

_PLACE = re.compile(r"^%Error[^/]*(?P<file>/.*/\d+_[^/\s:]*):(?P<line>\d+):\d+:", re.MULTILINE)
"""An error of Verilator in a text that `with_selector` wrote."""
_QUOTED = re.compile(r"'(?:\w+\.)*([A-Za-z_][\w$]*)'")
_NAME = re.compile(r"(?<![\w$'])[A-Za-z_][\w$]*")

_BY_LINE = 2
"""Builds that are refused for lines alone; what is refused once more, is for a name that many choices bring
in, such as one that is declared further down."""
_LOOPS = replace(fast.FOR_TRIALS, further=(*fast.FOR_TRIALS.further, "--unroll-count", "1"))
"""Loops of procedures stay loops: a simulator that unrolls them writes every choice in them as often as they
turn, and 64 turns cost 15 s where one costs one."""
_UNROLLED_ALONE = "BLKLOOPINIT"
"""The error of Verilator for a loop that it cannot keep."""

Built = tuple[list[Choice], Path]
"""Choices, number n at n - 1, and the program that holds them."""


def build(
    dut: Dut,
    changes: Changes,
    listed: list[Choice],
    job: Job,
    folder: Path,
    budget: Budget,
    policy: SearchPolicy,
    part: float = 1.0,
    *,
    wrapper: str,
) -> Built | None:
    """The program of all choices, without the ones that Verilator refuses.

    Args:
        wrapper: of the DUT, which has the same ports with any choice.
        part: of the budget, after which the build ends.

    Raises:
        ElaborationError, MachineError: Verilator refuses it for another reason. RtlError: the time is over.
    """
    how = _LOOPS
    for attempt in range(policy.refused):
        chosen = with_selector(dut, changes, listed, folder / f"choices{attempt}")
        try:
            job = replace(job, dut=chosen, build=folder / "build")
            with budget.builds(part):
                return listed, fast.build_once(job, simulators.verilator(), wrapper, how)
        except (ElaborationError, MachineError) as error:
            if budget.over(part) or attempt == policy.refused - 1:
                raise
            said = getattr(error.__cause__, "text", str(error))
            if _UNROLLED_ALONE in said and how is _LOOPS:
                how = fast.FOR_TRIALS
                continue
            kept = _not_blamed(listed, said, names=attempt >= _BY_LINE)
            if len(kept) == len(listed):  # it blames a declaration
                kept = _not_blamed(listed, said, names=True)
            if len(kept) == len(listed):  # it blames no text that is a choice's: the likelier half
                kept = listed[: len(listed) // 2]
            if not kept:
                raise
            listed = kept
        except RtlError:
            budget.look(part)  # says that the time was up, not which program was stopped
            raise
    return None


def _not_blamed(listed: list[Choice], log: str, names: bool = False) -> list[Choice]:
    """The choices on no line that Verilator refuses; `names`: and those that bring in no name for which it
    does, wherever that is."""
    lost, said = set[int](), set[str]()
    for refused in _PLACE.finditer(log):
        lost |= numbers_at(read(Path(refused["file"])), int(refused["line"]))
        said.update(_QUOTED.findall(log, refused.end(), log.find("\n", refused.end())) if names else ())
    return [
        one
        for number, one in enumerate(listed, 1)
        if number not in lost and said.isdisjoint(new_names(one.change))
    ]


def new_names(change: Change) -> set[str]:
    """The names that a change introduces."""
    return {*_NAME.findall(change.after)} - {*_NAME.findall(change.before)}
