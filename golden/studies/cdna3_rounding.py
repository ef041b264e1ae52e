"""Asymmetric rounding of CDNA3: the histogram of the paper's Figure 2, the bias in numbers, and what
avoids it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.catalog.lookup import instruction
from golden.identify.diagnose.mutations.mutation import with_operations
from golden.model.instruction import Instruction
from golden.program.steps import Align, Normalize, Round
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, number, percent, published
from golden.studies.units import MMA, Floats, Subject, decode, dot, encode

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "cdna3-rounding"

DEVIATIONS = (1, 3, 10, 30, 100, 300, 1000, 3000)
"""Standard deviations of the operands for which the error is shown."""
_BLOCK = 1 << 17
"""Dot products that are computed at once, to bound the memory."""
_BINS = np.linspace(-0.25, 0.25, 101)

Compute = Callable[[Any, Any, Any], npt.NDArray[Any]]


@dataclass
class Deviations:
    """Moments of delta = D - real, and its histogram over _BINS."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    below: int = 0
    above: int = 0
    histogram: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_BINS) - 1, np.int64))

    def add(self, delta: Floats) -> None:
        """Takes in a block."""
        self.count += delta.size
        self.total += float(delta.sum())
        self.squares += float((delta**2).sum())
        self.below += int((delta < 0).sum())
        self.above += int((delta > 0).sum())
        self.histogram = self.histogram + np.histogram(delta, _BINS)[0]

    @property
    def mean(self) -> float:
        """The bias."""
        return self.total / self.count

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(max(self.squares / self.count - self.mean**2, 0.0)))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / float(np.sqrt(self.count))


@lru_cache(maxsize=1)
def cdna3() -> Instruction:
    """The paper's instruction."""
    return instruction("cdna3", published(NAME)["instruction"])


@lru_cache(maxsize=1)
def hypothetical() -> Instruction:
    """The paper's hypothetical instruction: every rounding down made a rounding to zero."""
    ins = cdna3()
    operations = [
        replace(
            operation,
            steps=tuple(
                replace(s, rounding="toward_zero")
                if isinstance(s, Align | Normalize | Round) and s.rounding == "down"
                else s
                for s in operation.steps
            ),
        )
        for operation in ins.program.operations
    ]
    changed = with_operations(ins, operations)
    assert changed is not None
    return changed


def separate_c(a: Any, b: Any, c: Any) -> npt.NDArray[Any]:
    """The paper's advice for software: the matrix product with C = 0, then one addition in f32."""
    product = cdna3().dot(a, b, np.zeros_like(c))
    added: npt.NDArray[Any] = product.view(np.float32) + c.view(np.float32)
    return added.view(np.uint32)


def units() -> dict[str, Compute]:
    """What is compared; all take the codes of f16 rows of 8 and an f32 c."""
    return {
        "CDNA3 (rounds down)": cdna3().dot,
        "hypothetical, rounds to zero": hypothetical().dot,
        "CDNA3 with C = 0, then f32 add": separate_c,
        "CDNA2 (nearest, f32)": instruction("cdna2", "v_mfma_f32_32x32x8f16").dot,
        "Hopper mma (to zero)": instruction("hopper", f"{MMA}m16n8k8.row.col.f32.f16.f16.f32").dot,
    }


def measure(
    computes: dict[str, Compute], samples: int, deviation: float, progress: Progress | None = None
) -> dict[str, Deviations]:
    """Deviations from the result in f64 of A, B from deviation * N(0, 1) in f16 and C from N(0, 1), as the
    paper draws them."""
    found = {label: Deviations() for label in computes}
    ins = cdna3()
    for start in range(0, samples, _BLOCK):
        count = min(_BLOCK, samples - start)
        rng = np.random.default_rng([2, start])
        a, b = (
            encode(ins, name, deviation * rng.standard_normal((count, ins.k), dtype=np.float32))
            for name in "ab"
        )
        c = encode(ins, "c", rng.standard_normal(count, dtype=np.float32))
        real = np.einsum(
            "ij,ij->i", a.view(np.float16).astype(np.float64), b.view(np.float16).astype(np.float64)
        )
        real += c.view(np.float32)
        for label, compute in computes.items():
            found[label].add(decode(ins, compute(a, b, c)) - real)
        if progress is not None:
            progress(start + count, samples)
    return found


def run(samples: int = 1_000_000, progress: Progress = lambda done, total: None) -> Study:
    """Runs the paper's example, its histogram, and the bias over a range of magnitudes (a tenth of the
    samples each)."""
    found = measure(units(), samples, published(NAME)["histogram"]["a_b_deviation"], progress)
    pair = dict(list(units().items())[:2])
    few = max(samples // 10, 1)
    growth = {scale: measure(pair, few, scale) for scale in DEVIATIONS}
    return Study(
        NAME,
        samples,
        _findings(found, growth),
        [_case_table(), _bias_table(found), _growth_table(growth)],
        _figures(found, growth),
        {
            "bias": {
                label: {
                    "mean": d.mean,
                    "deviation": d.deviation,
                    "standard_error": d.standard_error,
                    "below": d.below,
                    "above": d.above,
                    "count": d.count,
                }
                for label, d in found.items()
            },
            "bins": _BINS.tolist(),
            "histograms": {label: d.histogram.tolist() for label, d in found.items()},
            "bias_by_deviation": {
                str(scale): {label: d.mean for label, d in ways.items()} for scale, ways in growth.items()
            },
        },
        units=tuple(case_units()),
    )


def case_result(ins: Instruction) -> float:
    """The paper's example on an instruction with f32 results: 2048 * 2048 - 2048 * 2048 - 0.000001."""
    case = published(NAME)["case"]
    return float(dot(ins, case["a"], case["b"], case["c"]))


def case_units() -> list[Subject]:
    """The f16 instructions of every architecture, and CDNA3's bf16, xf32 and FP8 ones."""
    names = {
        "volta": f"{MMA}m8n8k4.row.col.f32.f16.f16.f32",
        "cdna1": "v_mfma_f32_32x32x8f16",
        "cdna2": "v_mfma_f32_32x32x8f16",
        "cdna3": published(NAME)["instruction"],
    }
    nvidia = ("turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
    names |= dict.fromkeys(nvidia, f"{MMA}m16n8k8.row.col.f32.f16.f16.f32")
    others = ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_32x32x4_xf32")
    return [Subject(architecture, name) for architecture, name in names.items()] + [
        Subject("cdna3", name) for name in others
    ]


def _case_table() -> Table:
    paper = published(NAME)["case"]
    rows: list[tuple[Any, ...]] = []
    exact = paper["c"]
    for unit in case_units():
        result = case_result(unit.ins)
        printed = paper["result"] if unit.architecture == "cdna3" else paper["other_result"]
        rows.append((unit.chip, f"`{unit.name}`", f"{result:g}", f"{printed:g}", f"{abs(result - exact):g}"))
    caption = "2048 * 2048 - 2048 * 2048 - 0.000001, executed"
    return Table("case", caption, ("chip", "instruction", "result", "the paper's", "absolute error"), rows)


def _bias_table(found: dict[str, Deviations]) -> Table:
    rows = [
        (label, d.mean, d.standard_error, d.deviation, percent(d.below / d.count), percent(d.above / d.count))
        for label, d in found.items()
    ]
    head = ("unit", "mean", "standard error", "standard deviation", "below real", "above real")
    return Table("bias", "delta = D - real: A, B from 1000 * N(0, 1), C from N(0, 1)", head, rows)


def _growth_table(growth: dict[int, dict[str, Deviations]]) -> Table:
    labels = list(next(iter(growth.values())))
    rows = [
        (scale, *(ways[label].mean for label in labels), ways[labels[0]].deviation)
        for scale, ways in growth.items()
    ]
    head = (
        "deviation of A and B",
        *(f"mean, {label}" for label in labels),
        f"standard deviation, {labels[0]}",
    )
    return Table("growth", "The bias by the magnitude of A and B", head, rows)


def _findings(found: dict[str, Deviations], growth: dict[int, dict[str, Deviations]]) -> str:
    down, zero, separate = list(found.values())[:3]
    paper, fp8 = published(NAME), fp8_case()
    first = next(iter(found))
    return findings(
        NAME,
        case=f"{case_result(cdna3()):g}",
        printed=f"{paper['case']['result']:g}",
        c=f"{paper['case']['c']:f}",
        other=f"{case_result(instruction('hopper', f'{MMA}m16n8k8.row.col.f32.f16.f16.f32')):g}",
        count=down.count,
        down=number(down.mean),
        down_error=number(down.standard_error),
        down_sigma=_sigmas(down),
        printed_down=paper["histogram"]["down"],
        zero=number(zero.mean),
        zero_sigma=_sigmas(zero),
        printed_zero=paper["histogram"]["toward_zero"],
        at_100=number(growth[100][first].mean),
        at_1000=number(growth[1000][first].mean),
        separate=number(separate.mean),
        separate_sigma=_sigmas(separate),
        far=f"{fp8['far']:g}",
        near=f"{fp8['near']:g}",
    )


def _sigmas(found: Deviations) -> str:
    """The mean in standard errors."""
    return f"{abs(found.mean) / found.standard_error:.1f}"


def fp8_case() -> dict[str, float]:
    """256 * 256 - 256 * 256 + c on CDNA3's FP8: c beyond and at the edge of the window in which it is
    rounded down."""
    ins = instruction("cdna3", "v_mfma_f32_32x32x16_fp8_fp8")
    top = 128.0
    products = [top, 0, top], [top, 0, -top]
    return {"far": float(dot(ins, *products, -(2.0**-12))), "near": float(dot(ins, *products, -(2.0**-11)))}


def _figures(found: dict[str, Deviations], growth: dict[int, dict[str, Deviations]]) -> list[Figure]:
    pair = {label: found[label] for label in list(found)[:2]}
    outside = 1 - min(float(np.sum(deviations.histogram)) / deviations.count for deviations in pair.values())
    caption = (
        "The paper's Figure 2 from the models: distributions of D - real over "
        f"{next(iter(found.values())).count:,} samples, "
        f"A and B from 1000 * N(0, 1), C from N(0, 1). Dotted lines: the means. At most {percent(outside)} "
        "lie outside."
    )
    means = {label: [abs(ways[label].mean) for ways in growth.values()] for label in pair}
    return [
        Figure("histogram", caption, partial(_histogram, pair)),
        Figure(
            "growth",
            "Magnitude of the mean of D - real; the lower curve is about its sampling error.",
            partial(_growth, means),
        ),
    ]


def _histogram(pair: dict[str, Deviations]) -> Picture:
    picture, axes = draw.canvas()
    for index, (label, found) in enumerate(pair.items()):
        colour = draw.COLOURS[1 - index]
        share = found.histogram / found.count * 100
        axes.stairs(share, _BINS, fill=True, alpha=0.3, color=colour)
        axes.stairs(share, _BINS, color=colour, linewidth=1.6, linestyle=("-", "--")[index], label=label)
        axes.axvline(found.mean, color=colour, linestyle=":", linewidth=1.6)
    axes.set_xlabel("D - real")
    axes.set_ylabel("Samples (% per bin of 0.005)")
    draw.legend(axes, 1)
    return picture


def _growth(means: dict[str, list[float]]) -> Picture:
    picture, axes = draw.canvas(height=3.8)
    for index, (label, values) in enumerate(means.items()):
        axes.plot(DEVIATIONS, values, label=label, **draw.style(1 - index))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("Standard deviation of A and B")
    axes.set_ylabel("|mean of D - real|")
    draw.legend(axes, 1)
    return picture
