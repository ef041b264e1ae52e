"""Operands that a unit's documentation leaves out, and what it answers then.

    exclude: {a: subnormal, b: [subnormal, nan], d: subnormal, answer: anything}
    exclude: [{where: {a: infinity, b: zero}, answer: {port: error}}, {where: {mode: {op: reserved}}}]

A mapping excludes each operand by itself, a list the vectors in which all conditions of an item hold. Where
the unit may answer anything, such vectors are replaced by others before a run, so that the requested number
counts. Where it must answer a NaN, raise a flag or set a port, they stay, and are held to that. No verdict
says less than which operands did not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from golden.model.instruction import Instruction
from golden.number.classes import is_infinite, is_nan, is_negative, is_subnormal, is_zero
from golden.number.formats import Format
from golden.program.state import places
from golden.vectors.vectorset import VectorSet, default_set
from rtl_tb.dut.policy import Bits, Mask

CLASSES = {
    "zero": is_zero,
    "subnormal": is_subnormal,
    "infinity": is_infinite,
    "nan": is_nan,
    "negative": is_negative,
}
"""Classes of codes by name. Of an integer there are `zero` and `negative`."""
OF_INTEGERS = ("zero", "negative")
ANSWERS = ("anything", "nan")
"""What a unit answers to an excluded vector, if not a flag."""
_STRIDE = 0x5EED
"""The distance between the seeds of these draws."""


@dataclass(frozen=True)
class Output:
    """An output of one bit that says that a vector is excluded."""

    name: str
    active_low: bool = False


@dataclass(frozen=True, eq=False)
class Case:
    """Vectors that do not count: those in which every condition holds.

    Attributes:
        operands: by operand, and by d, of which classes (names of CLASSES) or codes some element is.
            Conditions on a and on b hold for elements that meet in a product.
        modes: by field of the mode, the values that it has.
        answer: one of ANSWERS, or the name of a status flag that is then raised.
        port: the output that is then active, and in no other vector; the answer is anything, or as said.
    """

    operands: Mapping[str, tuple[str | int, ...]]
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answer: str = "anything"
    port: Output | None = None

    @property
    def free(self) -> bool:
        """Whether the unit may give anything, so that other vectors take the place of these."""
        return self.answer == "anything" and self.port is None

    @property
    def words(self) -> str:
        """What is excluded: "subnormal a with zero b"."""
        parts = [
            f"{' or '.join(_word(each) for each in kinds)} {name}" for name, kinds in self.operands.items()
        ]
        parts += [f"{name} {' or '.join(values)}" for name, values in self.modes.items()]
        return " with ".join(parts)

    def of(self, ins: Instruction, operands: Mapping[str, Bits], d: Bits) -> Mask:
        """The vectors, (count,), in which it holds."""
        found = np.ones(len(d), np.bool_)
        codes = {name: d if name == "d" else operands[name] for name in self.operands}
        modes = operands.get("mode")
        masks = {name: self.elements(ins, name, each, modes) for name, each in codes.items()}
        if {"a", "b"} <= masks.keys() and masks["a"].shape == masks["b"].shape and ins.pattern is None:
            masks["a"] = masks["a"] & masks.pop("b")
        for mask in masks.values():
            found &= mask.reshape(len(d), -1).any(axis=1)
        for name, values in self.modes.items():
            assert ins.modes is not None
            chosen = [code for code, one in ins.modes.codes() if str(one[name]) in values]
            found &= np.isin(operands["mode"], chosen).reshape(len(d), -1).any(axis=1)
        return found

    def elements(self, ins: Instruction, name: str, codes: Bits, modes: Bits | None) -> Mask:
        """Which elements of an operand, or of d, are of its classes, as the format in the mode of each vector
        says."""
        units = {code: ins.mode_units[code] for code, _ in ins.modes.codes()} if ins.modes is not None else {}
        found = np.zeros(codes.shape, np.bool_)
        for code, unit in units.items() if modes is not None else ((0, ins),):
            here = np.zeros(codes.shape, np.bool_)
            fmt = unit.formats["d"] if name == "d" else unit.code_format(name)
            for each in self.operands[name]:
                here |= of_class(fmt, codes, each) if isinstance(each, str) else codes == each
            found |= here if modes is None else here & (modes == code).reshape(-1, *[1] * (codes.ndim - 1))
        return found

    def right(self, ins: Instruction, came: Mapping[str, Bits]) -> Mask:
        """Which results (count,) would be right as those of its vectors."""
        codes = came["d"].reshape(len(came["d"]), -1)
        if self.answer == "nan":
            return np.asarray(is_nan(ins.formats["d"], codes).all(axis=1))
        if self.answer == "anything":
            return np.ones(len(codes), np.bool_)
        flags = came["flags"].reshape(len(codes), -1)
        return np.asarray((flags >> ins.status.index(self.answer) & 1 != 0).all(axis=1))


def _word(condition: str | int) -> str:
    return condition if isinstance(condition, str) else f"{condition:#x}"


@dataclass(frozen=True, eq=False)
class Exclusion:
    """What does not count: the vectors of any of these cases."""

    cases: tuple[Case, ...]

    @property
    def free(self) -> Exclusion | None:
        """The cases in which the unit may give anything; None: there is none."""
        cases = tuple(case for case in self.cases if case.free)
        return Exclusion(cases) if cases else None

    @property
    def words(self) -> str:
        """What is excluded: "subnormal a or b, infinity a with zero b"."""
        alone: dict[tuple[str | int, ...], list[str]] = {}
        parts = []
        for case in self.cases:
            if len(case.operands) == 1 and not case.modes:
                ((name, kinds),) = case.operands.items()
                alone.setdefault(kinds, []).append(name)
            else:
                parts.append(case.words)
        return ", ".join(
            [f"{' or '.join(map(_word, kinds))} {' or '.join(names)}" for kinds, names in alone.items()]
            + parts
        )

    def of(self, ins: Instruction, operands: Mapping[str, Bits], d: Bits) -> Mask:
        """Which vectors are excluded, (count,). Of a unit that keeps its accumulator also those that start
        from the result of one: what it holds then is not known."""
        found = np.zeros(len(d), np.bool_)
        for case in self.cases:
            found |= case.of(ins, operands, d)
        if ins.state:
            at = np.arange(len(found))
            since = at - places(np.asarray(operands["clear"]))
            last = np.maximum.accumulate(np.where(found, at, -1))
            found = last >= since
        return found

    def sentence(self, ins: Instruction, operands: Mapping[str, Bits], d: Bits) -> str:
        """What a verdict on these vectors says of it, with the number of excluded ones among them."""
        count = int(np.count_nonzero(self.of(ins, operands, d)))
        groups: dict[tuple[str, str], list[Case]] = {}
        for case in self.cases:
            groups.setdefault((case.answer, case.port.name if case.port else ""), []).append(case)
        parts = []
        for (answer, port), cases in groups.items():
            given = {"anything": "did not count", "nan": "gives NaN"}.get(
                answer, f"raises {answer}, with any d"
            )
            if port:
                given = f"sets {port}, with any d" if answer == "anything" else f"sets {port} and {given}"
            # A case without an answer, which takes its vectors away, may hold for all of them.
            if not cases[0].free and not any(case.of(ins, operands, d).any() for case in cases):
                given += ", which no vector tried"
            parts.append(f"{Exclusion(tuple(cases)).words} {given}")
        return "; ".join(parts) + (f" ({count:,} vectors)" if count or self.free is None else "")

    def accepted(
        self, ins: Instruction, operands: Mapping[str, Bits], d: Bits, came: Mapping[str, Bits]
    ) -> tuple[Mask, Mask]:
        """Which vectors are excluded, and which of their results are right: as one of their cases says."""
        excluded = self.of(ins, operands, d)
        right = np.zeros(len(d), np.bool_)
        for case in self.cases:
            here = excluded if ins.state and case.free else case.of(ins, operands, d)
            right |= here & case.right(ins, came)
        return excluded, right

    def replaced(self, vectors: VectorSet) -> VectorSet:
        """The vectors with others in place of excluded ones, where the unit may answer
        anything.

        First whole vectors are drawn anew, then excluded elements become others of their operand. Of a
        unit that
        keeps its accumulator only elements are replaced: its sequences stay as they are.
        """
        ins, free = vectors.instruction, self.free
        if free is None or not len(vectors):
            return vectors
        return free._replaced(ins, vectors)

    def _replaced(self, ins: Instruction, vectors: VectorSet) -> VectorSet:
        if ins.state:
            return self._substituted(vectors, vectors.seed)
        # Times that vectors are drawn anew for results that are excluded: a class that one result in two has
        # is left in one vector of a million.
        draws = 20
        for number in range(draws):
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
        for case in self.cases:
            name = next((name for name in case.operands if name != "d"), None)
            here = case.of(ins, operands, vectors.d)
            if name is None or not here.any():
                continue
            codes = operands[name].copy()
            of_it = case.elements(ins, name, codes, operands.get("mode"))
            bad = of_it & here.reshape(-1, *[1] * (codes.ndim - 1))
            good = codes[~of_it]
            if bad.any() and len(good):
                codes[bad] = rng.choice(good, int(bad.sum()))
            operands[name] = codes
        results = ins.answers(operands, vectors.level == "tile")
        return VectorSet.of(ins, vectors.level, operands, results, vectors.kinds, vectors.seed, vectors.held)


def of_class(fmt: Format, codes: Bits, name: str) -> Mask:
    """Which codes of a format are of a class."""
    return CLASSES[name](fmt, codes)


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
