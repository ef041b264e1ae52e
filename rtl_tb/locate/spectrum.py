"""Fault localisation: places ranked by the effect of another value there on failing and on passing vectors.

Spectrum-based fault localisation, with a spectrum that works for hardware, where every assignment is always
executed: a bit of a result *depends* on a value or condition if it changes when that is complemented.
No single change at a place can repair a vector that does not depend on it. Ochiai's coefficient weighs
the wrong bits that depend on a place against the right ones that do. If the complement itself
repairs failing vectors, as it does for a condition that is evaluated once, the place comes first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rtl_tb.dut.description import Dut
from rtl_tb.engines.builds import warnings_of
from rtl_tb.locate.changes import Changes, Choice
from rtl_tb.locate.kinds import Change
from rtl_tb.locate.sources import Place, Within

Flags = npt.NDArray[np.bool_]
_TRIAL = 150
"""Characters of a build that cost as much time as the trial of one choice, about a millisecond."""
_LACKING = 0.25
"""How likely a place lacks a text, of how likely its own text is wrong: so it is with a fifth of 89 mutants
that others planted. There are twenty texts to add for each one to change."""
_OPERAND = 15.0
"""How much likelier other changes of an operand are, if one makes every failing vector right: an operand has
a hundred, of which a dozen are tried first."""
_STEPS = 4
"""Steps in which a rank counts the doublings of what is expected of a choice; equal ones take turns."""
_WORD = re.compile(
    r"\\\S+|\b(?!(?:if|else|begin|end|assign|wire|reg|logic|signed|case|default|input|output)\b)[A-Za-z_][\w$]*"
)
"""A name, also an escaped one, as generators of Verilog write."""
_LINT_KINDS = (
    "WIDTH",
    "SELRANGE",
    "ASCRANGE",
    "UNUSED",
    "UNDRIVEN",
    "UNSIGNED",
    "CMPCONST",
    "PINCONNECTEMPTY",
)
_MISFIT, _UNREAD = "expects", 0.25
"""A word of the warnings of values that are wider or narrower than what takes them; and the weight of other
warnings: most are of bits that nobody reads, which designers leave."""
_MOST_LINES = 30
"""Lines; if the lint warns of more, the unit was not written for it, and its warnings are ignored."""
_LINT_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):\d+: ")
_LINT_NAME = re.compile(r"'(?:\w+\.)*([A-Za-z_][\w$]*)'")
_DECLARES = (
    r"^[^/\n]*\b(?:logic|wire|reg|int|bit|localparam|parameter|input|output)\b[^;\n]*(?<![\w$\\]){}(?![\w$])"
)


@dataclass
class Spectrum:
    """Counts for each place, of probes there.

    Attributes:
        failing: (count, bits), which bits of the results are wrong without a change.
        depends: for each place which bits depend on it.
        repairs: for each place the largest share of failing vectors that a probe or a change there makes
            right, and which one. A change of a number is a better probe than its complement, which is rarely
            near the right value.
        operands: the same share for each text that was changed.
    """

    failing: Flags
    depends: dict[Place, Flags] = field(default_factory=dict)
    repairs: dict[Place, tuple[float, Change | None]] = field(default_factory=dict)
    operands: dict[Place, float] = field(default_factory=dict)
    _scores: dict[Place | None, float] = field(default_factory=dict)

    def note(
        self, place: Place, changed: Flags | None, wrong: Flags | None, probe: Change | None = None
    ) -> None:
        """Records one probe: which bits it changed, (count, bits), and which vectors are wrong with it,
        (count,); None: the unit no longer answered, so all depend on it."""
        depends = np.ones_like(self.failing) if changed is None else changed
        self.depends[place] = self.depends.get(place, np.zeros_like(self.failing)) | depends
        failed = self.failing.any(axis=1)
        fixed = 0 if wrong is None else int((failed & ~wrong).sum())
        self.note_repairs({place: (fixed / max(int(failed.sum()), 1), probe)})

    def note_repairs(
        self,
        found: Mapping[Place, tuple[float, Change | None]],
        operands: Mapping[Place, float] | None = None,
    ) -> None:
        """Records which share of failing vectors a change at each place makes right, and of each text."""
        for text, share in (operands or {}).items():
            self.operands[text] = max(self.operands.get(text, 0.0), share)
        for place, (share, change) in found.items():
            if share > self._share(place):
                self.repairs[place] = share, change
        self._scores.clear()

    def suspects(self) -> list[tuple[Place, float, Change]]:
        """Places where a probe or a change makes at least half of the failing vectors right, with their share
        and with it, the likeliest first."""
        half = 0.5
        found = [
            (place, share, change)
            for place, (share, change) in self.repairs.items()
            if change is not None and share >= half
        ]
        return sorted(found, key=lambda one: -self.score(one[0]))

    def _share(self, place: Place) -> float:
        return self.repairs.get(place, (0.0, None))[0]

    def score(self, place: Place | None) -> float:
        """The suspiciousness of a place, 0: no change was seen to matter; 1 to 2: a probe or a change repairs
        failing vectors. Of a place without a probe that of the likeliest within it; where there is none, what
        the others are on average, as squares, by which choices are ranked."""
        if not self._scores:  # for all at once: there are hundreds of each
            self._scores |= {one: self._score(one) for one in self.depends}
            count = max(len(self._scores), 1)
            self._scores[None] = math.hypot(*self._scores.values()) / count**0.5 if self.depends else 0.5
        if place is not None and place not in self._scores:
            inside = [self._scores[one] for one in self.depends if one.lies_in(place)]
            own = max(inside, default=self._scores[None])
            self._scores[place] = max(own, self._share(place))
        return self._scores[place]

    def _score(self, place: Place) -> float:
        depends, failing = self.depends[place], self.failing
        both, other = int((depends & failing).sum()), int((depends & ~failing).sum())
        ochiai = both / max(float(failing.sum() * (both + other)) ** 0.5, 1.0)
        return float(ochiai) + self._share(place)

    def by_name(self, changes: Changes, ignored: Sequence[str] = ()) -> Mapping[str, float]:
        """The score of the likeliest place that reads a name, or whose line mentions it."""
        found: dict[str, float] = {}
        for place in self.depends:
            text = changes.sources.texts[place.file]
            start = text.rfind("\n", 0, place.start) + 1
            score = self.score(place)
            for name in set(_WORD.findall(text[start : place.end])):
                found[name] = max(found.get(name, 0.0), score)
        return found


def ranked(listed: Sequence[Choice], spectrum: Spectrum | None) -> list[Choice]:
    """Choices, those first of which most is expected for their time: the likeliest places, and short texts
    that few instances have; texts to change before texts to add. Of one place they are in their order; the
    tenth name is a tenth as likely as the first one, so that the operator next to it has its turn before."""
    if spectrum is None:
        return list(listed)

    def rank(one: Choice, turn: int) -> int:
        likelier = 1 + _OPERAND * spectrum.operands.get(one.change.place, 0.0)
        expected = likelier * max(spectrum.score(one.root), 0.01) ** 2 / (_TRIAL + one.size) / turn
        return round(-_STEPS * math.log2(expected * (_LACKING if one.change.adds else 1)))

    turns: dict[object, int] = {}
    keyed = []
    for at, one in enumerate(listed):
        group = one.change.place, one.change.adds
        turn = turns[group] = turns.get(group, 0) + 1
        keyed.append((rank(one, turn), turn, at))
    return [listed[at] for *_, at in sorted(keyed)]


def ranked_constants(
    changes: Changes,
    listed: Sequence[Change],
    spectrum: Spectrum | None,
    hinted: Mapping[tuple[Path, int], float],
) -> list[Change]:
    """Constants: lines with a lint warning first, then by the likeliest
    place that reads a name of their line; of each place the first ones before further ones of any. The bits
    of a declaration are one number: its sign, one bit more and one less come before other texts of it."""
    texts = changes.sources.texts
    in_bits = Within(
        [
            replace(place, end=texts[place.file].find("]", place.end))
            for place in {one.place for one in listed if one.kind == "width"}
        ]
    )
    names = {} if spectrum is None else spectrum.by_name(changes)
    turns: dict[Place, int] = {}
    keyed = []
    for at, one in enumerate(listed):
        text, line = texts[one.place.file], changes.line(one)
        start, end = text.rfind("\n", 0, one.place.start) + 1, text.find("\n", one.place.end)
        said = _WORD.findall(text[start : end if end >= 0 else None].split("//")[0])
        score = max((names.get(name, 0.0) for name in said), default=0.0)
        turn = turns[one.place] = turns.get(one.place, -1) + 1
        weight = hinted.get((one.place.file, line), 0.0)
        odd = one.kind not in ("width", "sign") and in_bits(one.place)
        keyed.append((not weight, odd, turn // 3, -round(score + weight, 2), turn, at))
    return [listed[at] for *_, at in sorted(keyed)]


def suspicious_lines(dut: Dut, changes: Changes) -> dict[tuple[Path, int], float]:
    """File and line of each lint warning, and of the declarations of the signals that it names or, if it
    names none, its line: a wrong constant often leaves a signal a bit short, or selects missing bits. Each
    with a weight: a warning that points to one line weighs 1, one that points to several is shared out."""
    said = [(warning, _LINT_PLACE.match(warning)) for warning in warnings_of(dut, _LINT_KINDS)]
    here = [
        (warning, (Path(place["file"]).resolve(), int(place["line"]))) for warning, place in said if place
    ]
    warned = [(warning, at) for warning, at in here if at[0] in changes.texts]
    if len({at for _, at in warned}) > _MOST_LINES:
        return {}
    found = dict[tuple[Path, int], float]()
    for warning, (file, number) in warned:
        text = changes.texts[file]
        line = text.split("\n")[number - 1].split("//")[0]
        whole = 1.0 if _MISFIT in warning else _UNREAD
        for names in (_LINT_NAME.findall(warning), _WORD.findall(line)):
            lines = {text.count("\n", 0, one.end()) + 1 for name in names for one in _declared(name, text)}
            for each in lines:
                found[file, each] = max(found.get((file, each), 0.0), whole / len(lines))
        found[file, number] = max(found.get((file, number), 0.0), whole / 2)
    return found


def _declared(name: str, text: str) -> Iterator[re.Match[str]]:
    """The declarations of a name in a text, each up to the name."""
    return re.finditer(_DECLARES.format(re.escape(name)), text, re.MULTILINE)
