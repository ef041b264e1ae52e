"""An instruction held against IEEE 754: the correctly rounded sum, and the chain of fused multiply-adds that
software runs.

Both are units of the same operands, written as steps and run by the same C core. Operands come from every
kind of golden/stimuli/ with a fixed seed, so a page says the same whenever it is built. The search is a
sample: counts say how often a difference was met among operands that aim at differences, not how often one
occurs in a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import stimuli, yamlfile
from golden.catalog import relatives
from golden.explain.trace import exact_terms, ulp_exponent
from golden.identify.comparing import CLASSES, classify
from golden.identify.minimising import cost, costs, minimise
from golden.model.instruction import Instruction
from golden.number.formats import Format, to_float
from golden.program.compiling import compile_program
from golden.program.program import OperandFormats
from golden.program.signature import FIRST_COLUMNS, SCALES, Bits, Operands
from golden.program.steps import Additions, Round

PER_KIND = 500
"""Dot products of each stimulus kind."""
SEED = 1  # of the operands, so that a page is the same in every build
_NEAR = 24  # dot products with the largest errors in doubles, whose errors are then computed exactly


# The units of IEEE 754 --------------------------------------------------------------------------------------


def rounded_sum(ins: Instruction) -> Instruction:
    """The unit that rounds the exact c + sum(a[k] * b[k]) once, to nearest even,
    with signed zeros and subnormals; without b or c where `ins` has none."""
    terms, nan = ", ".join(_terms(ins)), ins.formats["d"].nan
    steps = [
        *_products(ins),
        *([] if nan is None else [f"special_values: {{of: [{terms}], nan: {nan}}}"]),
        f"sum: {{of: [{terms}], to: total}}",
        "round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}",
    ]
    return _unit(ins, steps)


def fma_chain(ins: Instruction) -> Instruction:
    """The unit of fused multiply-adds from c, k ascending, each rounded to nearest even in D's format; of
    additions alone where `ins` has scales or no b."""
    d = ins.formats["d"]
    rounds = f"to: d, format: {d.name}, rounding: nearest_even" + ("" if d.nan is None else f", nan: {d.nan}")
    if ins.scale_block or "b" in ins.absent:
        terms = ", ".join(reversed(_terms(ins)))
        return _unit(ins, [*_products(ins), f"sum: {{of: [{terms}], order: sequential, {rounds}}}"])
    start = "product" if "c" in ins.absent else "c"
    return _unit(ins, [f"fma: {{start: {start}, {rounds}, nan_order: []}}"])


def _terms(ins: Instruction) -> list[str]:
    """The registers that are added: the products, or a where there is no b, and c where there is one."""
    return ["a" if "b" in ins.absent else "products", *([] if "c" in ins.absent else ["c"])]


def _products(ins: Instruction) -> list[str]:
    """The steps that make the exact products with their scales."""
    scale = ["scale: {of: products}"] if ins.scale_block else []
    return [] if "b" in ins.absent else ["multiply: {to: products}", *scale]


def _unit(ins: Instruction, steps: list[str]) -> Instruction:
    """An instruction with the operands of `ins` and these steps."""
    scales = {name: fmt for name, fmt in ins.formats.items() if name in SCALES}
    document = yamlfile.parse("".join(["steps:\n", *(f"  - {step}\n" for step in steps)]), "IEEE 754")
    a, b, c, d = (ins.formats[name] for name in "abcd")
    formats = OperandFormats(a, b, c, d, ins.stored_k, _local(ins), scales)
    return replace(ins, program=compile_program([document], document, formats))


def _local(ins: Instruction) -> dict[str, Format]:
    return {fmt.name: fmt for fmt in ins.formats.values()}


# What was found ---------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Differences from one of the two units, by class (golden.identify.comparing.CLASSES)
    and by stimulus kind."""

    classes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def numeric(self) -> int:
        """Differences that are more than NaN payloads."""
        return sum(self.classes[name] for name in CLASSES[:3])


@dataclass(frozen=True)
class Error:
    """One dot product with its error, measured in exact rationals. `ulp`: (d - exact)
    in units of a last place."""

    kind: str
    operands: Operands
    d: int
    rounded: int
    ulp: Fraction


@dataclass(frozen=True)
class Findings:
    """What a search found.

    worst: the largest error in ULP of the exact sum, of sums that are normal numbers of D. worst_addend: in
    ULP of the largest addend. reordered: dot products whose result changes when the products come in another
    order. example: the simplest operands found where the result is not the correctly rounded one (or, failing
    that, not the FMA chain's).
    """

    per_kind: int
    tried: int
    rounded: Tally
    chain: Tally
    worst: Error | None
    worst_addend: Error | None
    reordered: int
    reordered_example: Operands | None
    example: Operands | None
    example_against: str


def findings(ins: Instruction) -> Findings:
    """Searches; float results only. Instructions of one arithmetic on operands
    of the same shape share the answer."""
    return _findings(_Key(ins))


def search_key(ins: Instruction) -> Hashable:
    """Equal for instructions that share the answer of a search."""
    return _Key(ins)


class _Key:
    """An instruction that equals another one when no operand can distinguish them."""

    def __init__(self, ins: Instruction) -> None:
        self.ins = ins
        formats = tuple(sorted((name, fmt.name, repr(fmt)) for name, fmt in ins.formats.items()))
        self.value = (
            formats,
            ins.k,
            ins.pattern,
            ins.ordered_metadata,
            ins.scale_block,
            relatives.arithmetic(ins),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.value == other.value

    def __hash__(self) -> int:
        return hash(str(self.value[:-1]))


@cache
def _findings(key: _Key) -> Findings:
    search = _Search(key.ins)
    for index, kind in enumerate(stimuli.KINDS):
        search.run(kind, np.random.default_rng([SEED, index]))
    return search.result()


_Near = tuple[float, str, Operands, int, int]
"""A large error: about how large, kind, operands, the instruction's code and that of the rounded sum."""


class _Search:
    """Runs every kind through the instruction and both units and keeps what the page shows."""

    def __init__(self, ins: Instruction) -> None:
        self.ins, self.exact, self.software = ins, rounded_sum(ins), fma_chain(ins)
        self.d = ins.formats["d"]
        self.rounded, self.chain = Tally(), Tally()
        self.tried = self.reordered = 0
        self.reordered_example: Operands | None = None
        self.errors: list[_Near] = []
        self.crossing_errors: list[_Near] = []
        self.addend_errors: list[_Near] = []
        self.different: dict[str, list[tuple[float, Operands]]] = {"rounded": [], "chain": []}

    def run(self, kind: str, rng: np.random.Generator) -> None:
        """Tries one kind."""
        operands = stimuli.generate(self.ins, kind, PER_KIND, rng)
        codes, exact, software = (unit.dot(**operands) for unit in (self.ins, self.exact, self.software))
        self.tried += PER_KIND
        for name, tally, other in (("rounded", self.rounded, exact), ("chain", self.chain, software)):
            classes = classify(codes, other, self.d, self.d)
            for index, label in enumerate(CLASSES):
                tally.classes[label] += int(np.count_nonzero(classes == index))
            tally.kinds[kind] = int(np.count_nonzero((classes >= 0) & (classes < 3)))
            self._keep_simplest(name, operands, np.flatnonzero(classes == 0))
        self._keep_errors(kind, operands, codes, exact)
        self._reorder(operands, codes, rng)

    def _keep_simplest(self, name: str, operands: Operands, rows: npt.NDArray[np.intp]) -> None:
        if len(rows):
            found = costs(self.ins, _row(operands, rows[:64]))
            best = int(np.argmin(found))
            self.different[name].append((float(found[best]), _row(operands, rows[best])))

    def _keep_errors(self, kind: str, operands: Operands, codes: Bits, exact: Bits) -> None:
        """Keeps the rows of the largest errors by float64; `_worst` measures them exactly."""
        got, wanted = to_float(self.d, codes), to_float(self.d, exact)
        with np.errstate(all="ignore"):
            error = np.abs(got - wanted)
            normal = np.isfinite(error) & (np.abs(wanted) >= 2.0**self.d.min_exponent)
            # A sum that rounds up to a power of two has the unit of the numbers below it, half of that
            # which its result has: these rows are a list of their own.
            crosses = normal & (np.abs(np.frexp(wanted)[0]) == 0.5)
            ulps = np.where(normal & ~crosses, error / self._ulp(wanted), 0)
            below = np.where(crosses, 2 * error / self._ulp(wanted), 0)
            largest = largest_addend(self.ins, operands)
            addend = np.where(
                np.isfinite(error) & np.isfinite(largest) & (largest > 0), error / self._ulp(largest), 0
            )
        for kept, sizes in (
            (self.errors, ulps),
            (self.crossing_errors, below),
            (self.addend_errors, addend),
        ):
            rows = np.argsort(-sizes, kind="stable")[:_NEAR]
            kept += [
                (float(sizes[row]), kind, _row(operands, row), int(codes[row]), int(exact[row]))
                for row in rows
                if sizes[row] > 0
            ]

    def _ulp(self, value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        exponent = np.frexp(np.where(np.isfinite(value), value, 1.0))[1] - 1
        return np.asarray(np.ldexp(1.0, np.maximum(exponent, self.d.min_exponent) - self.d.fraction_bits))

    def _reorder(self, operands: Operands, codes: Bits, rng: np.random.Generator) -> None:
        other = self.ins.dot(**reordered(self.ins, operands, rng))
        classes = classify(codes, other, self.d, self.d)
        changed = np.flatnonzero((classes >= 0) & (classes < 3))
        self.reordered += len(changed)
        if len(changed) and self.reordered_example is None:
            self.reordered_example = _row(operands, changed[0])

    def result(self) -> Findings:
        """Measures the worst errors exactly and simplifies the example."""
        sums = [
            self._worst(kept, lambda terms: sum(terms, Fraction(0)))
            for kept in (self.errors, self.crossing_errors)
        ]
        worst = max(filter(None, sums), key=lambda error: abs(error.ulp), default=None)
        addend = self._worst(self.addend_errors, lambda terms: max(abs(term) for term in terms))
        against = "rounded" if self.different["rounded"] or not self.different["chain"] else "chain"
        example = self._example(against)
        return Findings(
            PER_KIND,
            self.tried,
            self.rounded,
            self.chain,
            worst,
            addend,
            self.reordered,
            self.reordered_example,
            example,
            against,
        )

    def _worst(self, found: list[_Near], unit_of: Callable[[list[Fraction]], Fraction]) -> Error | None:
        near = sorted(found, key=lambda one: -one[0])[:_NEAR]
        errors = [self._measured(one, unit_of) for one in near]
        return max(errors, key=lambda error: abs(error.ulp)) if errors else None

    def _measured(self, near: _Near, unit_of: Callable[[list[Fraction]], Fraction]) -> Error:
        _, kind, operands, code, rounded = near
        terms = exact_terms(self.ins, operands)
        assert terms is not None
        ulp = Fraction(2) ** ulp_exponent(unit_of(terms), self.d)
        error = self.d.decode(code).value - sum(terms, Fraction(0))
        return Error(kind, operands, code, rounded, error / ulp)

    def _example(self, against: str) -> Operands | None:
        """The simplest of the minimised candidates."""
        other = self.exact if against == "rounded" else self.software

        def differs(batch: Operands) -> npt.NDArray[np.bool_]:
            return np.asarray(classify(self.ins.dot(**batch), other.dot(**batch), self.d, self.d) == 0)

        most_candidates = 3  # the simplest examples found, of which the simplest after minimising is shown
        candidates = sorted(self.different[against], key=lambda one: one[0])[:most_candidates]
        least = [minimise(self.ins, operands, differs, rounds=None) for _, operands in candidates]
        if not least:
            return None
        return plain_metadata(self.ins, min(least, key=lambda operands: cost(self.ins, operands)))


def _row(operands: Operands, row: Any) -> Operands:
    return {name: codes[row] for name, codes in operands.items()}


def selected_b(ins: Instruction, operands: Operands) -> Bits:
    """The elements of b that meet the stored elements of a: all of a dense b, those that the metadata
    selects else."""
    if ins.pattern is None:
        return operands["b"]
    return np.asarray(np.take_along_axis(operands["b"], ins.pattern.columns(operands["metadata"]), axis=-1))


def plain_metadata(ins: Instruction, operands: Operands) -> Operands:
    """The same products with the metadata that selects the lowest columns; elements of b that meet nothing
    are zero."""
    if ins.pattern is None:
        return operands
    metadata = np.full_like(operands["metadata"], FIRST_COLUMNS)
    b = np.zeros_like(operands["b"])
    np.put_along_axis(b, ins.pattern.columns(metadata), selected_b(ins, operands), axis=-1)
    return operands | {"b": b, "metadata": metadata}


def products(ins: Instruction, operands: Operands) -> npt.NDArray[np.float64]:
    """The products with their scales in float64, (..., stored_k); a where there is no b."""
    a, b = to_float(ins.formats["a"], operands["a"]), to_float(ins.formats["b"], selected_b(ins, operands))
    value = a * b
    if ins.scale_block is not None:
        block = ins.scale_block * ins.stored_k // ins.k
        for name in ("scale_a", "scale_b"):
            value = value * np.repeat(to_float(ins.formats[name], operands[name]), block, axis=-1)
    return np.asarray(value)


def largest_addend(ins: Instruction, operands: Operands) -> npt.NDArray[np.float64]:
    """The largest magnitude among c and the products, (...)."""
    operands = ins.complete(operands)
    c = np.abs(to_float(ins.formats["c"], operands["c"]))
    return np.asarray(np.maximum(np.abs(products(ins, operands)).max(axis=-1), c))


def reordered(ins: Instruction, operands: Operands, rng: np.random.Generator) -> Operands:
    """The same products in another order: k permuted within each scale block, whole chunks where the
    metadata selects."""
    chunk = ins.pattern.chunk if ins.pattern else 1
    block = ins.scale_block or ins.k
    starts = np.arange(0, ins.k, block)
    order = np.concatenate([start // chunk + rng.permutation(block // chunk) for start in starts])
    moved = {}
    for name, codes in operands.items():
        if name in ("a", "b", "metadata"):
            grouped = codes.reshape(*codes.shape[:-1], len(order), -1)
            moved[name] = np.ascontiguousarray(grouped[..., order, :].reshape(codes.shape))
        else:
            moved[name] = codes
    return moved


# Integers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overflow:
    """An integer instruction against the exact sum: dot products tried, sums beyond the range, results
    unlike `rule`."""

    tried: int
    beyond: int
    rule: str
    unlike: int
    example: Operands | None


def overflow(ins: Instruction) -> Overflow:
    """Runs every kind through an integer instruction; the simplest operands whose sum leaves D's range, None
    where no sum did."""
    return _overflow(_Key(ins))


@cache
def _overflow(key: _Key) -> Overflow:
    ins = key.ins
    d = ins.formats["d"]
    low, high = -(1 << (d.bits - 1)) if d.signed else 0, int(d.decode(d.largest).value)
    final = ins.program.operations[-1].final
    rule = "saturate" if isinstance(final, Round | Additions) and final.overflow == "saturate" else "wrap"
    tried = beyond = unlike = 0
    found: list[tuple[float, Operands]] = []
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, PER_KIND, np.random.default_rng([SEED, index]))
        exact, got = (
            integer_sum(ins, operands),
            to_float(ins.formats["d"], ins.dot(**operands)).astype(np.int64),
        )
        wanted = np.clip(exact, low, high) if rule == "saturate" else (exact - low) % (high - low + 1) + low
        outside = np.flatnonzero((exact < low) | (exact > high))
        tried, beyond, unlike = (
            tried + PER_KIND,
            beyond + len(outside),
            unlike + int(np.count_nonzero(got != wanted)),
        )
        found += [(cost(ins, _row(operands, row)), _row(operands, row)) for row in outside[:4]]

    def leaves(batch: Operands) -> npt.NDArray[np.bool_]:
        total = integer_sum(ins, batch)
        return (total < low) | (total > high)

    example = None
    if found:
        _, simplest = min(found, key=lambda one: one[0])
        example = plain_metadata(ins, minimise(ins, simplest, leaves, rounds=None))
    return Overflow(tried, beyond, rule, unlike, example)


def integer_sum(ins: Instruction, operands: Operands) -> npt.NDArray[np.int64]:
    """c + the sum of the products of an integer instruction, exact in int64, (...)."""
    operands = ins.complete(operands)
    b = selected_b(ins, operands)
    if ins.formats["a"].bits == 1:
        bits = operands["a"] ^ b if ins.program.bit_operation == "xor" else operands["a"] & b
        total = bits.astype(np.int64).sum(axis=-1)
    else:
        a = to_float(ins.formats["a"], operands["a"]).astype(np.int64)
        total = (a * to_float(ins.formats["b"], b).astype(np.int64)).sum(axis=-1)
    return np.asarray(total + to_float(ins.formats["c"], operands["c"]).astype(np.int64))
