"""Consistency: which architectures answer with the same bits to the same operands, and how often the
others differ."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.number.formats import from_float, to_float
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, number, percent
from golden.studies.units import MMA, Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "consistency"

K = 32
"""Products of each dot product."""
_NVIDIA = ("turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
_SPARSE_K = f"{MMA}m16n8k16.row.col.f32"
_QMMA = f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32"


def _largest(name: str, types: str) -> str:
    return (
        f"{MMA}m16n8k8.row.col.f32.{types}.{types}.f32"
        if name == "turing"
        else f"{_SPARSE_K}.{types}.{types}.f32"
    )


GROUPS = {
    "f16": (
        Subject("volta", f"{MMA}m8n8k4.row.col.f32.f16.f16.f32"),
        *(Subject(name, _largest(name, "f16")) for name in _NVIDIA),
        Subject("cdna1", "v_mfma_f32_16x16x16f16"),
        Subject("cdna2", "v_mfma_f32_16x16x16f16"),
        Subject("cdna3", "v_mfma_f32_16x16x16_f16"),
    ),
    "bf16": (
        *(Subject(name, _largest(name, "bf16")) for name in _NVIDIA[1:]),
        Subject("cdna1", "v_mfma_f32_16x16x8bf16"),
        Subject("cdna2", "v_mfma_f32_16x16x16bf16_1k"),
        Subject("cdna3", "v_mfma_f32_16x16x16_bf16"),
    ),
    "tf32": (
        *(Subject(name, f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32") for name in _NVIDIA[1:]),
        Subject("cdna3", "v_mfma_f32_16x16x8_xf32"),
    ),
    "e4m3": (
        Subject("ada", _QMMA, "mma"),
        Subject("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "wgmma"),
        Subject("hopper", _QMMA, "mma"),
        Subject("blackwell", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e4m3.e4m3", "tcgen05"),
        Subject("rtx_blackwell", _QMMA, "mma"),
        Subject("cdna3", "v_mfma_f32_16x16x32_fp8_fp8"),
    ),
}


def results(types: str, samples: int) -> npt.NDArray[np.uint32]:
    """The results of every unit for the same values: (units, samples) f32 words of a sum of K products of
    N(0, 1) and c."""
    rng = np.random.default_rng(7)
    a, b = (to_float(types, from_float(types, rng.standard_normal((samples, K)))) for _ in range(2))
    c = rng.standard_normal(samples, dtype=np.float32).view(np.uint32)
    return np.stack([_chained(unit, a, b, c) for unit in GROUPS[types]])


def _chained(unit: Subject, a: Any, b: Any, c: Any) -> npt.NDArray[np.uint32]:
    """K products by a chain of instructions, each with the previous result as its c."""
    ins = unit.ins
    x, y = (from_float(ins.formats[name], values) for name, values in (("a", a), ("b", b)))
    for k in range(0, K, ins.k):
        c = ins.dot(x[:, k : k + ins.k], y[:, k : k + ins.k], c)
    return np.asarray(c)


def differing(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """The share of results in which two units differ, for all pairs."""
    return np.array([[(x != y).mean() for y in words] for x in words])


def classes(units: tuple[Subject, ...], shares: npt.NDArray[np.float64]) -> list[list[Subject]]:
    """Units with the same bits in every sample, together."""
    found: list[list[Subject]] = []
    for place, unit in enumerate(units):
        twin = next((group for group in found if shares[units.index(group[0]), place] == 0), None)
        if twin is None:
            found.append([unit])
        else:
            twin.append(unit)
    return found


def run(samples: int = 20_000, progress: Progress = lambda done, total: None) -> Study:
    """Compares all units of each operand type."""
    words, shares = {}, {}
    for step, types in enumerate(GROUPS):
        words[types] = results(types, samples)
        shares[types] = differing(words[types])
        progress(step + 1, len(GROUPS))
    caption = (
        f"Results (%) in which two architectures differ: {K} products of f16 N(0, 1) and an f32 c, "
        f"{samples:,} dot products. An equals sign: none."
    )
    return Study(
        NAME,
        samples,
        _findings(words, shares),
        [_class_table(shares), *(_pair_table(types, shares[types]) for types in GROUPS)],
        [Figure("f16", caption, partial(_draw, shares["f16"]))],
        {
            types: {"units": [u.label for u in GROUPS[types]], "differing": shares[types].tolist()}
            for types in GROUPS
        },
        units=tuple(unit for units in GROUPS.values() for unit in units),
    )


def _names(group: list[Subject]) -> str:
    return " = ".join(unit.label for unit in group)


def _class_table(shares: dict[str, npt.NDArray[np.float64]]) -> Table:
    rows = [
        (types, index, _names(group), ", ".join(f"`{unit.name}`" for unit in group[:1]))
        for types, found in shares.items()
        for index, group in enumerate(classes(GROUPS[types], found), 1)
    ]
    return Table(
        "classes", "Units that agree in every sample", ("operands", "group", "chips", "instruction"), rows
    )


def _pair_table(types: str, shares: npt.NDArray[np.float64]) -> Table:
    labels = [unit.label for unit in GROUPS[types]]
    rows = [
        (label, *(percent(float(share)) for share in row)) for label, row in zip(labels, shares, strict=True)
    ]
    return Table(f"pairs_{types}", f"Results that differ, {types} operands", ("chip", *labels), rows)


def _median_difference(words: npt.NDArray[np.uint32]) -> float:
    """The median of the relative differences that are not zero, between all pairs."""
    values = words.view(np.float32).astype(np.float64)
    found = []
    for place in range(len(values)):
        for other in range(place):
            apart = words[place] != words[other]
            found.append(np.abs(values[place] / values[other] - 1)[apart])
    return float(np.median(np.concatenate(found)))


def _findings(words: dict[str, npt.NDArray[np.uint32]], shares: dict[str, npt.NDArray[np.float64]]) -> str:
    f16 = classes(GROUPS["f16"], shares["f16"])
    apart = shares["f16"][shares["f16"] > 0]
    return findings(
        NAME,
        f16_groups=len(f16),
        f16="; ".join(_names(group) for group in f16),
        least=percent(float(apart.min())),
        most=percent(float(apart.max())),
        types="f16",
        k=K,
        median=number(_median_difference(words["f16"])),
        fp8="; ".join(_names(group) for group in classes(GROUPS["e4m3"], shares["e4m3"])),
    )


def _draw(shares: npt.NDArray[np.float64]) -> Picture:
    labels = [unit.chip for unit in GROUPS["f16"]]
    picture, axes = draw.canvas(height=5.2)
    axes.grid(visible=False)
    percents = 100 * shares
    axes.pcolormesh(percents, cmap="cividis", vmin=0, vmax=100)
    axes.invert_yaxis()
    for row in range(len(labels)):
        for column in range(len(labels)):
            colour = "#fdfdfd" if percents[row, column] < 50 else "#101010"
            text = "=" if shares[row, column] == 0 else f"{percents[row, column]:.0f}"
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=9, color=colour)
    middles = [place + 0.5 for place in range(len(labels))]
    axes.set_xticks(middles, labels, rotation=45, ha="right", fontsize=9)
    axes.set_yticks(middles, labels, fontsize=9)
    return picture
