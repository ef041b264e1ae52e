"""Holds the SASS between the two clock reads of a chain against the instruction alone.

Two kernels differ in the rounds of one turn alone, so what they hold more is what a round is: the loop's own
instructions drop out. A chain is right if every round holds all that the instruction compiles to when it
stands alone, and at most what its link adds.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hw_capture.errors import SassError
from hw_capture.kernels.sass import mnemonic
from hw_capture.timing.loops import Code

MOVES = "MOV"
FITTING = frozenset({"PRMT", "SEL"})
"""What fitting a result into the next operand adds."""
NARROW = frozenset({"PRMT", "LOP3", "SGXT"})
"""What extends an operand of 16 bits, which stands clean in its register when it was just loaded."""
_CLOCK = re.compile(r"\bC?S2U?R\b.*\bSR_CLOCK")
_ALIASES = (
    (re.compile(r"IMAD\.MOV(?:\.U32)? \S+ RZ, RZ, -"), "IADD3"),  # a negation
    (re.compile(r"(?:IMAD\.MOV|IMAD\.U32|MOV|UMOV|R2UR|CS2R)\b|HFMA2(?:\.MMA)? \S+ -?RZ, -?RZ,"), MOVES),
    (re.compile(r"(?:IMAD\.IADD|IMAD\.X|UIADD3|VIADD|IADD)\b"), "IADD3"),
    (re.compile(r"IMAD\.SHL\b"), "SHF"),
    (re.compile(r"(?:HFMA2|HADD2|HMUL2)\b"), "HFMA2"),
    (re.compile(r"FSEL\b"), "SEL"),
)
"""One operation on several pipelines: ptxas takes by turns what it finds free."""


_UNIFORM = frozenset({"USHF", "ULOP3", "UISETP", "USEL", "UPRMT", "UPOPC", "UFLO", "UBREV", "ULEA"})


@dataclass(frozen=True)
class Round:
    """What one round holds: SASS names as they are printed with their numbers, and the hash of the code
    between the two clock reads."""

    sass: dict[str, float]
    kinds: dict[str, int]
    extra: dict[str, int]
    hash: str


def kind(line: str) -> str:
    """The kind of an instruction: one name for what ptxas puts on several pipelines, "MUFU.EX2" in full."""
    name = mnemonic(line)
    text = line[line.index(name) :]
    for pattern, alias in _ALIASES:
        if pattern.match(text):
            return alias
    parts = name.split(".")
    if parts[0] == "MUFU":
        return ".".join(parts[:2])
    return parts[0][1:] if parts[0] in _UNIFORM else parts[0]


def timed(code: Code) -> list[str]:
    """The instructions between the first and the last clock read; raises SassError where there are none."""
    return between_clocks(code)[1:-1]


def between_clocks(code: Code) -> list[str]:
    """The same with both reads."""
    places = [i for i, (_, line) in enumerate(code.lines) if _CLOCK.search(line)]
    if len(places) < 2:
        raise SassError(f"the kernel reads the clock {len(places)} times, expected 2 or more")
    return [line for _, line in code.lines[places[0] : places[-1] + 1]]


def kinds(lines: list[str]) -> Counter[str]:
    """How many there are of each kind, NOP aside."""
    return Counter(kind(line) for line in lines if mnemonic(line) != "NOP")


def alone(codes: dict[str, Code], chosen: bool) -> dict[str, int]:
    """What an instruction compiles to: `single` less `nothing`, subroutines behind the end not counted.

    chosen: whether its result is a predicate, which `single` stores by a select.
    """
    first, second = (kinds(_inline(codes[name])) for name in ("single", "nothing"))
    first["SEL"] -= chosen
    return {name: n - second[name] for name, n in first.items() if n > second[name]}


def _inline(code: Code) -> list[str]:
    lines = [line for _, line in code.lines]
    end = next((i for i, line in enumerate(lines) if line.startswith("EXIT")), len(lines))
    return lines[:end]


def per_round(short: Code, long: Code, rounds: tuple[int, int]) -> Round:
    """What a round of a chain holds, by two kernels of that many rounds; raises SassError for a fraction."""
    more = rounds[1] - rounds[0]
    counts = [kinds(timed(code)) for code in (short, long)]
    names = [Counter(mnemonic(line) for line in timed(code)) for code in (short, long)]
    difference = {name: counts[1][name] - counts[0][name] for name in counts[1] | counts[0]}
    text = hashlib.sha256("\n".join(timed(long)).encode()).hexdigest()[:16]
    # One in a turn may differ: what is prepared for the first round, or for the loop.
    whole = {name: round(n / more) for name, n in difference.items()}
    broken = {
        name: n / more for name, n in difference.items() if abs(n - more * whole[name]) > 1 and name != MOVES
    }
    if broken:
        raise SassError(f"a round holds {in_words(broken)}")
    kinds_of = {mnemonic(line): kind(line) for line in timed(long)}
    sass = {name: (names[1][name] - names[0][name]) / more for name in names[1]}
    return Round(
        {name: n for name, n in sass.items() if n > 0 and difference.get(kinds_of[name])},
        {name: n for name, n in whole.items() if n > 0},
        {},
        text,
    )


def check(found: Round, once: dict[str, int], link: dict[str, int], fitted: bool, narrow: bool) -> Round:
    """Holds a round against the instruction alone; returns it with the link of the instruction.

    Args:
        once: the instruction alone. link: what the link adds to each round, which has to be there, too.
        fitted: whether the result is fitted into the next operand. narrow: whether operands have 16 bits.

    Raises:
        SassError: something of the instruction or of the link is missing, or something else is there.
    """
    alone = Counter({name: n for name, n in once.items() if name != MOVES})
    wanted = alone + Counter(link)
    missing = {name: n for name, n in wanted.items() if found.kinds.get(name, 0) < n}
    more = {name: n - wanted[name] for name, n in found.kinds.items() if n > wanted[name]}
    allowed = (FITTING if fitted else frozenset()) | (NARROW if narrow else frozenset()) | {MOVES}
    if missing or not alone or any(name not in allowed for name in more):
        raise SassError(f"a round holds {in_words(found.kinds)}, the instruction alone is {in_words(alone)}")
    extra = Counter(link) + Counter({name: n for name, n in more.items() if fitted and name in FITTING})
    return Round(found.sass, found.kinds, dict(extra), found.hash)


def in_words(counts: Mapping[str, float]) -> str:
    """Counts of instructions as a line of words."""
    return ", ".join(f"{n:g} {name}" for name, n in counts.items()) or "nothing"
