"""Operands that a unit's documentation leaves out, and what it answers then.

    exclude: {a: subnormal, b: [subnormal, nan], d: subnormal, answer: anything}

Where the unit may answer anything, such vectors are replaced by others before a run, so that the requested
number counts. Where it must answer a NaN, or raise a flag, they stay, and are held to that. No verdict
says less than which operands did not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.state import places
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb.dut.policy import Bits, Mask, is_infinite, is_nan, is_subnormal, is_zero, sign_of

CLASSES = {
    "zero": is_zero,
    "subnormal": is_subnormal,
    "infinity": is_infinite,
    "nan": is_nan,
    "negative": sign_of,
}
"""Classes of codes by name. Of an integer there are `zero` and `negative`."""
OF_INTEGERS = ("zero", "negative")
ANSWERS = ("anything", "nan")
"""What a unit answers to an excluded vector, if not a flag."""
_DRAWS = 20
"""Times that vectors are drawn anew for results that are excluded: a class that one result in two has is
left in one vector of a million."""
_STRIDE = 0x5EED
"""The distance between the seeds of these draws."""


@dataclass(frozen=True, eq=False)
class Exclusion:
    """What does not count.

    Attributes:
        classes: names of CLASSES by operand, and by d.
        answer: one of ANSWERS, or the name of a status flag that is then raised.
    """

    classes: Mapping[str, tuple[str, ...]]
    answer: str = "anything"

    @property
    def words(self) -> str:
        """What is excluded: "subnormal a and b"."""
        by_class: dict[tuple[str, ...], list[str]] = {}
        for name, classes in self.classes.items():
            by_class.setdefault(classes, []).append(name)
        parts = [f"{' or '.join(classes)} {' or '.join(names)}" for classes, names in by_class.items()]
        return ", ".join(parts)

    def of(self, ins: Instruction, operands: Mapping[str, Bits], d: Bits) -> Mask:
        """Which vectors are excluded, (count,). Of a unit that keeps its accumulator also those that start
        from the
        result of one: what it holds then is not known."""
        found = np.zeros(len(d), np.bool_)
        for name in self.classes:
            codes = d if name == "d" else np.asarray(operands[name])
            element = self._of_codes(ins, name, codes)
            found |= element.reshape(len(d), -1).any(axis=1)
        if ins.state:
            at = np.arange(len(found))
            since = at - places(np.asarray(operands["clear"]))
            last = np.maximum.accumulate(np.where(found, at, -1))
            found = last >= since
        return found

    def said(self, count: int) -> str:
        """What a verdict says of it, with the number of excluded vectors that there were."""
        if self.answer == "anything":
            return f"{self.words} did not count" + (f" ({count:,} vectors)" if count else "")
        answer = "gives NaN" if self.answer == "nan" else f"raises {self.answer}"
        return f"{self.words} {answer} ({count:,} vectors)"

    def _of_codes(self, ins: Instruction, name: str, codes: Bits) -> Mask:
        fmt = ins.formats["d"] if name == "d" else ins.code_format(name)
        found = np.zeros(codes.shape, np.bool_)
        for each in self.classes[name]:
            found |= of_class(fmt, codes, each)
        return found

    def right(self, ins: Instruction, came: Mapping[str, Bits]) -> Mask:
        """Which results (count,) would be right as those of excluded vectors."""
        codes = came["d"].reshape(len(came["d"]), -1)
        if self.answer == "nan":
            return np.asarray(is_nan(ins.formats["d"], codes).all(axis=1))
        if self.answer == "anything":
            return np.ones(len(codes), np.bool_)
        flags = came["flags"].reshape(len(codes), -1)
        return np.asarray((flags >> ins.status.index(self.answer) & 1 != 0).all(axis=1))

    def replaced(self, vectors: VectorSet) -> VectorSet:
        """The vectors with others in place of excluded ones, where the unit may answer
        anything.

        First whole vectors are drawn anew, then excluded elements become others of their operand. Of a
        unit that
        keeps its accumulator only elements are replaced: its sequences stay as they are.
        """
        ins = vectors.instruction
        if self.answer != "anything" or not len(vectors):
            return vectors
        if ins.state:
            return self._substituted(vectors, vectors.seed)
        for number in range(_DRAWS):
            bad = np.flatnonzero(self.of(ins, vectors.operands, vectors.d))
            if not len(bad):
                break
            seed = vectors.seed + _STRIDE * (number + 1)
            fresh = default_set(ins, len(bad), seed, vectors.level)
            if number:
                fresh = self._substituted(fresh, seed)
            good = ~self.of(ins, fresh.operands, fresh.d)
            vectors = _put(vectors, bad[good], fresh, np.flatnonzero(good))
        return vectors

    def _substituted(self, vectors: VectorSet, seed: int) -> VectorSet:
        """The vectors with excluded elements replaced by elements of their operand in other vectors."""
        ins, rng = vectors.instruction, np.random.default_rng([seed, _STRIDE])
        operands = dict(vectors.operands)
        for name in self.classes:
            if name == "d":
                continue
            codes = operands[name].copy()
            bad = self._of_codes(ins, name, codes)
            good = codes[~bad]
            if bad.any() and len(good):
                codes[bad] = rng.choice(good, int(bad.sum()))
            operands[name] = codes
        results = ins.answers(operands, vectors.level == "tile")
        return VectorSet.of(ins, vectors.level, operands, results, vectors.kinds, vectors.seed, vectors.held)


def of_class(fmt: Format, codes: Bits, name: str) -> Mask:
    """Which codes of a format are of a class."""
    if fmt.is_float:
        return np.asarray(CLASSES[name](fmt, codes))
    if name == "zero":
        return np.asarray(codes == 0)
    return np.asarray(sign_of(fmt, codes))


def _put(vectors: VectorSet, at: Bits, fresh: VectorSet, chosen: Bits) -> VectorSet:
    """The vectors with those of another set at these places."""

    def mixed(old: Bits, new: Bits) -> Bits:
        codes = old.copy()
        codes[at] = new[chosen]
        return codes

    operands = {name: mixed(codes, fresh.operands[name]) for name, codes in vectors.operands.items()}
    results = {name: mixed(codes, fresh.results[name]) for name, codes in vectors.results.items()}
    kinds = mixed(vectors.kinds, fresh.kinds)
    return VectorSet.of(
        vectors.instruction, vectors.level, operands, results, kinds, vectors.seed, vectors.held
    )
