"""Numeric profiling of a matrix unit: section 8 of W. Sun et al.,
"Dissecting Tensor Cores" (arXiv 2206.02874).

Three experiments feed operands drawn from N(0, 1) and compare with f32 arithmetic of a CPU; each is one
dot product:

- multiplication: d = a0 * b0;
- inner product: d = a0 * 1 + a1 * 1, an addition among the products;
- accumulation: d = a0 * 1 + c0, the addition of C.

The paper draws the same values for a1 and c0, and its figures are those of factors 1: with random factors the
inner product's error would be 20 % larger. Operands are drawn in f32 and rounded on their way to the unit
(`f32`), or rounded before the CPU sees them too (`low`). The fourth experiment, the chain D = A B, A = D,
compares after each of N products (Figure 17).

    profile = numeric.profile("ampere", samples=100_000)
    print(profile.errors["bf16"]["accumulation"]["low"])

The unit is the model of an instruction, or what should be that instruction: on a GPU, behind an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.lookup import instruction
from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.number.formats import from_float, to_float
from golden.paths import spec_folder
from golden.unit import Unit
from golden.vectors.vectorset import MOST_AT_ONCE
from golden.yamlfile import Section, read

Bits = npt.NDArray[Any]
Single = npt.NDArray[np.float32]
Dot = Callable[[Bits, Bits, Bits], Bits]
OPERATIONS = ("multiplication", "inner_product", "accumulation", "accumulation_f32_c")
"""The paper's three, and an accumulation whose C keeps its f32 value under both initialisations."""
INITS = ("low", "f32")
CHAIN_LENGTH = 20
"""Products of a chain by default."""
_M, _N, _K = 16, 8, 8
"""Shape of the products of a chain."""


@dataclass(frozen=True)
class Case:
    """Operand types of one column of the paper, computed by mma.sync m16n8k8,
    the shape that all types have."""

    name: str
    ab: str
    cd: str

    @property
    def ptx(self) -> str:
        """The instruction."""
        return f"mma.sync.aligned.m16n8k8.row.col.{self.cd}.{self.ab}.{self.ab}.{self.cd}"


CASES = tuple(
    Case(*row)
    for row in (
        ("bf16", "bf16", "f32"),
        ("f16", "f16", "f32"),
        ("f16_f16", "f16", "f16"),
        ("tf32", "tf32", "f32"),
    )
)


@dataclass
class Profile:
    """Mean absolute errors and the chain's mean relative errors.

    errors[case][operation][init] is the error against f32; errors_f16 the same against the CPU's result
    rounded to f16, for cases with f16 results. chain[case][init][i] is the error after i + 1 products, None
    from the first overflow on. mismatches counts results in which a GPU differs from the model, or is None
    when only the model ran.
    """

    architecture: str
    samples: int
    chains: int
    seed: int
    errors: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    errors_f16: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    chain: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    results: int = 0
    mismatches: int | None = None


@dataclass(frozen=True)
class Published:
    """One printed figure of the paper; `against` is f32 or f16."""

    table: str
    case: str
    against: str
    operation: str
    init: str
    value: float


def profile(
    architecture: str,
    samples: int = 100_000,
    chains: int = 1000,
    length: int = CHAIN_LENGTH,
    seed: int = 1,
    unit: Callable[[Instruction], Unit] | None = None,
) -> Profile:
    """Runs all experiments on the model, or on what `unit` gives for an instruction, with every result held
    against the model's bits.

    Raises:
        OperandError: a count below 1, or too large to be held in memory. UnknownNameError: the architecture
            lacks mma.sync m16n8k8 of a type.
    """
    for name, value in (("samples", samples), ("chains", chains), ("length", length)):
        if not 1 <= value <= MOST_AT_ONCE:
            raise OperandError(f"{name} is {value}, expected 1 to {MOST_AT_ONCE}")
    found = Profile(architecture, samples, chains, seed, mismatches=None if unit is None else 0)
    for case in CASES:
        ins = instruction(architecture, case.ptx)
        dot = _checked(ins, None if unit is None else unit(ins), found)
        for operation in OPERATIONS:
            for init in INITS:
                _element(found, case, operation, init, dot)
        found.chain[case.name] = {init: _chain(found, case, init, length, dot) for init in INITS}
    return found


def published() -> list[Published]:
    """Returns the figures of Tables XII to XV, from spec/profile/sun_numeric.yaml; raises SpecError where
    it is wrong."""
    top = read(spec_folder() / "profile" / "sun_numeric.yaml")
    for key in ("source", "device", "architecture"):
        top.take(key, str)
    figures = []
    for table in top.take("tables", list):
        number = table.take("table", str)
        case = table.take_choice("case", [case.name for case in CASES])
        against = table.take_choice("against", ("f32", "f16"))
        for operation in OPERATIONS[:3]:
            row = table.take(operation, Section)
            figures += [
                Published(number, case, against, operation, init, float(row.take(init, (int, float))))
                for init in INITS
            ]
            row.done()
        table.done()
    top.done()
    return figures


def _checked(ins: Instruction, unit: Unit | None, found: Profile) -> Dot:
    """The unit, counting results, and mismatches with the model where it is not the model."""

    def dot(a: Bits, b: Bits, c: Bits) -> Bits:
        expected = ins.dot(a, b, c)
        found.results += expected.size
        if unit is None:
            return expected
        actual = unit.dot(a, b, c)
        found.mismatches = (found.mismatches or 0) + int((actual != expected).sum())
        return actual

    return dot


def _round(fmt: str, values: Single) -> Single:
    """Values rounded to a format (to nearest even), as f32."""
    return to_float(fmt, from_float(fmt, values)).astype(np.float32)


def _normal(seed: int, count: int) -> Single:
    """The same values for every case, init and operation: columns a0, a1 (and c0), b0."""
    return np.random.default_rng(seed).standard_normal((count, 3), dtype=np.float32)


def _element(found: Profile, case: Case, operation: str, init: str, dot: Dot) -> None:
    """Runs one experiment and adds its mean absolute errors."""
    drawn = _normal(found.seed, found.samples)
    x = _round(case.ab, drawn) if init == "low" else drawn
    addend = drawn[:, 1] if operation == "accumulation_f32_c" else x[:, 1]
    exact = _cpu(x, addend, operation)
    a, b, c = _operands(operation, x, addend)
    d = to_float(case.cd, dot(from_float(case.ab, a), from_float(case.ab, b), from_float(case.cd, c)))
    error = float(np.abs(exact.astype(np.float64) - d).mean())
    found.errors.setdefault(case.name, {}).setdefault(operation, {})[init] = error
    if case.cd == "f16":
        rounded = float(np.abs(_round("f16", exact).astype(np.float64) - d).mean())
        found.errors_f16.setdefault(case.name, {}).setdefault(operation, {})[init] = rounded


def _operands(operation: str, x: Single, addend: Single) -> tuple[Single, Single, Single]:
    """The values of a, b and c of every sample."""
    a, b = (np.zeros((len(x), _K), np.float32) for _ in "ab")
    a[:, 0], b[:, 0] = x[:, 0], x[:, 2] if operation == "multiplication" else 1.0
    if operation == "inner_product":
        a[:, 1], b[:, 1] = x[:, 1], 1.0
    return a, b, addend if operation.startswith("accumulation") else np.zeros(len(x), np.float32)


def _cpu(x: Single, addend: Single, operation: str) -> Single:
    """The result in f32, as a CPU computes it."""
    if operation == "multiplication":
        return x[:, 0] * x[:, 2]
    return x[:, 0] + (x[:, 1] if operation == "inner_product" else addend)


def _chain(found: Profile, case: Case, init: str, length: int, dot: Dot) -> list[float | None]:
    """Mean l2 error (equation 1 of the paper, relative to the unit's result)
    after each product of the chain."""
    rng = np.random.default_rng(found.seed + 1)
    errors: list[float | None] = []
    draws = _draws(rng, case, init, found.chains)
    exact = next(draws)((_M, _K))
    a = from_float(case.ab, exact)
    c = from_float(case.cd, np.zeros((found.chains, _M, _N)))
    for _ in range(length):
        b = next(draws)((_K, _N))
        columns = from_float(case.ab, b).swapaxes(1, 2)
        d = to_float(case.cd, dot(a[:, :, None, :], columns[:, None, :, :], c))
        exact = _product(exact, b)
        a = from_float(case.ab, d)
        errors.append(
            _relative(d, exact) if np.isfinite(d).all() and (not errors or errors[-1] is not None) else None
        )
    return errors


def _draws(
    rng: np.random.Generator, case: Case, init: str, chains: int
) -> Iterator[Callable[[tuple[int, int]], Single]]:
    def draw(shape: tuple[int, int]) -> Single:
        x = rng.standard_normal((chains, *shape), dtype=np.float32)
        return _round(case.ab, x) if init == "low" else x

    while True:
        yield draw


def _product(a: Single, b: Single) -> Single:
    """A B in f32, k ascending, each product and each sum rounded."""
    total = np.zeros((a.shape[0], a.shape[1], b.shape[2]), np.float32)
    for k in range(a.shape[2]):
        total += a[:, :, k, None] * b[:, None, k, :]
    return total


def _relative(d: npt.NDArray[np.float64], exact: Single) -> float:
    difference = np.sqrt(((d - exact) ** 2).sum(axis=(1, 2)))
    return float((difference / np.sqrt((d**2).sum(axis=(1, 2)))).mean())
