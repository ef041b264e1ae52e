"""The budget of a search for the fault in a text: every number, with its unit and reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchPolicy:
    """Counts, shares of the budget and seconds.

    Attributes:
        names: names that may replace one: a module's registers of one width are rarely more.
        first: failing vectors on which every change is tried: fourteen leave few chance repairs and cost a
            millisecond.
        failing, passing: vectors on which a change is counted if it is right on the first ones.
        more_failing, more_passing: vectors on which a change is tried that is right on all of these: a
            twentieth of a second, where a build of the designer's text takes two.
        more_cycles: of the wrong and of the right vectors on which one is tried that is right on these, too:
            half a second.
        before, behind: vectors around a failing one that are tried with it, if traffic makes it fail: more
            than the stages of a pipeline, or than a FIFO holds. windows: how many failing ones then.
        sequence, first_sequence: vectors of a unit that keeps its accumulator, with those before them.
        at_once: changes that one process tries: starting it costs as much as ten runs, and the clock is read
            between processes.
        one_run: seconds after which a run is given up: a change that makes the unit hang is no repair.
        slower, least_run: the same for a choice in a build that has run without one: this many times the
            seconds that the vectors took then, and at least these. A loop that a change makes endless costs
            no more.
        one_build: seconds for a constant, which may make a design of any size.
        likely: choices of the first build, if the places are ranked; each later one has twice as many, up to
            `largest`. A build takes one to three seconds without any choice, and 500 to 2,000 choices double
            that: smaller builds would spend the time on what they have in common.
        refused: places that Verilator may refuse in a build of choices before it is given up.
        probing: share of the budget that ranking the places may take.
        searching: share at which the trials of single changes end; `pairs`: the share for a second change;
            the rest is for the confirmation.
        rivals: share until which less likely places are tried once a change makes everything right: half of
            the trials' time, so that the other half is left to confirm what was found.
        confirmed: changes that are built and run on all vectors.
        shown: equally consistent changes in the report.
        chance: a change that repairs a smaller part of the wrong vectors may do so by chance.
        make_up: vectors that a change has to repair for each that it breaks.
        counted: of the changes in one process that repair a part of the first vectors, how many are counted
            on all.
        firsts: changes that repair a part, with each of which all others are tried.
    """

    names: int = 24
    first: int = 14
    failing: int = 160
    passing: int = 96
    more_failing: int = 2000
    more_passing: int = 20_000
    more_cycles: int = 250_000
    before: int = 16
    behind: int = 4
    windows: int = 48
    sequence: int = 512
    first_sequence: int = 96
    at_once: int = 50
    one_run: float = 5.0
    slower: float = 20.0
    least_run: float = 0.03
    one_build: float = 20.0
    likely: int = 500
    largest: int = 2000
    refused: int = 12
    probing: float = 0.1
    searching: float = 0.85
    pairs: float = 0.9
    rivals: float = 0.6
    confirmed: int = 4
    shown: int = 3
    chance: float = 0.1
    make_up: int = 20
    counted: int = 2
    firsts: int = 3


DEFAULT = SearchPolicy()
"""The policy of `rtl check`."""
