"""Dynamic range of CDNA2: which subnormal numbers are flushed, what small gradients lose by it, and the
two remedies."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from golden.number.formats import Format
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, number, percent
from golden.studies.units import MMA, Floats, Subject, decode, dot, encode

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "cdna2-range"

UNITS = (
    Subject("volta", f"{MMA}m8n8k4.row.col.f32.f16.f16.f32", "f16"),
    Subject("ampere", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32", "f16"),
    Subject("hopper", f"{MMA}m16n8k16.row.col.f32.f16.f16.f32", "f16"),
    Subject("cdna1", "v_mfma_f32_16x16x16f16", "f16"),
    Subject("cdna2", "v_mfma_f32_16x16x16f16", "f16"),
    Subject("cdna3", "v_mfma_f32_16x16x16_f16", "f16"),
    Subject("hopper", f"{MMA}m16n8k16.row.col.f32.bf16.bf16.f32", "bf16"),
    Subject("cdna1", "v_mfma_f32_16x16x8bf16", "bf16"),
    Subject("cdna2", "v_mfma_f32_16x16x8bf16", "bf16"),
    Subject("cdna2", "v_mfma_f32_16x16x16bf16_1k", "bf16_1k"),
    Subject("cdna3", "v_mfma_f32_16x16x16_bf16", "bf16"),
    Subject("cdna2", "v_mfma_f32_16x16x4f32", "f32"),
)
SCALES = tuple(range(0, -33, -1))
LEAST = 2.0**-126
"""The smallest normal number of f32."""
K = 16
"""Products of each dot product."""


def probes(unit: Subject) -> dict[str, tuple[list[float], list[float], float]]:
    """The paper's experiments (section III-F): operands a, b and c whose exact result is a subnormal number,
    or made of one.

    Where the operands' exponents do not reach f32's subnormals (f16),
    there is no experiment on products and sums.
    """
    low = 2.0 ** unit.ins.formats["a"].min_exponent
    found = {
        "a": ([low / 2], [1.0], 0.0),
        "b": ([1.0], [low / 2], 0.0),
        "c": ([0.0], [0.0], LEAST / 2),
    }
    if low**2 < LEAST:
        found["product"] = ([2.0**-63], [2.0**-64], 0.0)
        found["sum"] = ([1.5 * 2.0**-63], [2.0**-63], -LEAST)
    return found


def flushes(unit: Subject) -> dict[str, bool]:
    """For each probe whether the result is zero, though exactly it is not."""
    return {name: float(dot(unit.ins, *operands)) == 0 for name, operands in probes(unit).items()}


def least_operand(unit: Subject) -> int:
    """The exponent of the smallest power of two that a holds and the unit does not lose, with b = 1."""
    fmt = unit.ins.formats["a"]
    exponents = np.arange(fmt.min_exponent - fmt.fraction_bits, fmt.min_exponent + 2)
    results = dot(
        unit.ins,
        2.0 ** exponents[:, None].astype(float),
        np.ones((len(exponents), 1)),
        np.zeros(len(exponents)),
    )
    return int(exponents[results != 0][0])


class _Gradients:
    """Small numbers times ordinary ones: rows of 2^s N(0, 1) by N(0, 1), as gradients by activations."""

    def __init__(self, samples: int) -> None:
        rng = np.random.default_rng(3)
        self.a, self.b = (rng.standard_normal((samples, K)) for _ in range(2))
        self.exact = np.einsum("ij,ij->i", self.a, self.b)
        self.norm = float(np.linalg.norm(self.exact))

    def error(self, unit: Subject, scale: int, boost: int = 0) -> float:
        """The l2 norm of the error by that of the exact results; `boost`: a is multiplied by 2^boost and
        the result divided."""
        a = self.a * 2.0 ** (scale + boost)
        total = np.zeros(len(a))
        codes = encode(unit.ins, "a", a), encode(unit.ins, "b", self.b)
        c = encode(unit.ins, "c", total)
        for k in range(0, K, unit.ins.k):
            c = unit.ins.dot(codes[0][:, k : k + unit.ins.k], codes[1][:, k : k + unit.ins.k], c)
        result: Floats = decode(unit.ins, c)
        return float(np.linalg.norm(result / 2.0 ** (scale + boost) - self.exact)) / self.norm


BOOST = 12
"""Binades by which the inputs of one curve are scaled up."""
_CURVES = {
    "CDNA2 f16": (("cdna2", "f16"), 0),
    "CDNA3 f16": (("cdna3", "f16"), 0),
    f"CDNA2 f16, inputs times 2^{BOOST}": (("cdna2", "f16"), BOOST),
    "CDNA2 bf16_1k": (("cdna2", "bf16_1k"), 0),
}


def _unit(key: tuple[str, str]) -> Subject:
    return next(unit for unit in UNITS if (unit.architecture, unit.what) == key)


def curves(samples: int, progress: Progress = lambda done, total: None) -> dict[str, list[float]]:
    """The error of each way at every scale."""
    gradients, found = _Gradients(samples), {}
    for step, (label, (key, boost)) in enumerate(_CURVES.items()):
        found[label] = [gradients.error(_unit(key), scale, boost) for scale in SCALES]
        progress(step + 1, len(_CURVES))
    return found


def run(samples: int = 4000, progress: Progress = lambda done, total: None) -> Study:
    """Runs the probes on every architecture, and the gradients."""
    found = curves(samples, progress)
    flushed = {unit: flushes(unit) for unit in UNITS}
    least = {unit: least_operand(unit) for unit in UNITS}
    return Study(
        NAME,
        samples,
        _findings(found, flushed, least),
        [_flush_table(flushed, least), _sign_table(), _gradient_table(found)],
        [Figure("gradients", _CAPTION, partial(_draw, found))],
        {
            "flushes": {unit.label: result for unit, result in flushed.items()},
            "least_operand_exponent": {unit.label: exponent for unit, exponent in least.items()},
            "scales": list(SCALES),
            "errors": found,
        },
        units=UNITS,
    )


_CAPTION = (
    "Relative l2 error of dot products of 16 small numbers, 2^s N(0, 1), with N(0, 1), rounding to the "
    "operand format included. At 1 nothing is left of the result."
)


def _flush_table(flushed: dict[Subject, dict[str, bool]], least: dict[Subject, int]) -> Table:
    words = {True: "flushed", False: "kept", None: "out of reach"}
    rows = []
    for unit, result in flushed.items():
        cells = [words[result.get(name)] for name in ("a", "b", "c", "product", "sum")]
        rows.append((unit.chip, f"`{unit.name}`", *cells, f"2^{least[unit]}"))
    head = ("chip", "instruction", "subnormal a", "b", "c", "product", "sum", "least a that counts")
    return Table("flushes", "Subnormal numbers, each cell executed (the paper's section III-F)", head, rows)


def sign_cases() -> list[tuple[str, list[int], list[int], int]]:
    """CDNA2's zeros: what is flushed, and raw codes of a, b (bf16, others are +0 times -1) and c (f32)."""
    one, minus_one, minus_zero = 0x3F80, 0xBF80, 0x80000000
    tiny = 0x0D80  # 2**-100
    return [
        ("operand -2^-127 times 1, c = -0", [0x8040], [one], minus_zero),
        ("operand 2^-127 times -1, c = -0", [0x0040], [minus_one], minus_zero),
        ("product -2^-100 * 2^-100, c = -0", [0x8000 | tiny], [tiny], minus_zero),
        ("product 2^-100 * 2^-100, c = -0", [tiny], [tiny], minus_zero),
        ("c = -2^-127, products -0", [0x0000], [minus_one], 0x80400000),
    ]


def sign_result(a: list[int], b: list[int], c: int) -> int:
    """The word that CDNA2's bf16_1k answers; the other products are +0 * -1 = -0."""
    ins = _unit(("cdna2", "bf16_1k")).ins
    fmt: Format = ins.formats["a"]
    row_a, row_b = np.zeros(ins.k, fmt.dtype), np.full(ins.k, 0xBF80, fmt.dtype)
    row_a[: len(a)], row_b[: len(b)] = a, b
    return int(ins.dot(row_a, row_b, np.uint32(c)))


def _sign_table() -> Table:
    rows = [(what, f"`0x{sign_result(a, b, c):08X}`") for what, a, b, c in sign_cases()]
    caption = (
        "The sign of a flushed number on CDNA2 (all other addends are -0, so that one +0 makes the result +0)"
    )
    return Table("signs", caption, ("flushed", "result"), rows)


def _gradient_table(found: dict[str, list[float]]) -> Table:
    shown = [SCALES.index(s) for s in (0, -6, -9, -12, -15, -18, -24, -30)]
    rows = [(label, *(errors[i] for i in shown)) for label, errors in found.items()]
    head = ("way", *(f"s = {SCALES[i]}" for i in shown))
    return Table("gradients", "Relative l2 error of 16 products of 2^s N(0, 1) with N(0, 1)", head, rows)


def _first(errors: list[float], threshold: float) -> str:
    """The first scale at which an error exceeds a threshold."""
    return next(
        (f"2^{scale}" for scale, error in zip(SCALES, errors, strict=True) if error > threshold),
        "no scale here",
    )


def _findings(
    found: dict[str, list[float]], flushed: dict[Subject, dict[str, bool]], least: dict[Subject, int]
) -> str:
    cdna2, cdna3, _, bf16 = found.values()
    at = SCALES.index(-15)
    return findings(
        NAME,
        chips=len({unit.architecture for unit in flushed}),
        alone=", ".join(sorted({unit.chip for unit, result in flushed.items() if any(result.values())})),
        least_cdna2=least[_unit(("cdna2", "f16"))],
        least_cdna3=least[_unit(("cdna3", "f16"))],
        cdna2_1=_first(cdna2, 0.01),
        cdna3_1=_first(cdna3, 0.01),
        cdna2_half=_first(cdna2, 0.5),
        cdna3_half=_first(cdna3, 0.5),
        cdna2_15=percent(cdna2[at]),
        cdna3_15=percent(cdna3[at]),
        boost=BOOST,
        bf16=percent(bf16[0]),
        price=number(bf16[0] / cdna3[0]),
    )


def _draw(found: dict[str, list[float]]) -> Picture:
    picture, axes = draw.canvas(height=4.4)
    for index, (label, errors) in enumerate(found.items()):
        axes.plot(SCALES, errors, label=label, markevery=4, **draw.style(index))
    axes.set_yscale("log")
    axes.invert_xaxis()
    axes.set_xlabel("s (binades; operands are 2^s N(0, 1))")
    axes.set_ylabel("Relative l2 error")
    draw.legend(axes)
    return picture
