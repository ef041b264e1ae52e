"""Accumulation precision and rounding modes of every architecture, found as the paper finds them: by
asking the unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from golden.identify.blackbox.plugins import Chip
from golden.identify.probe import probes
from golden.identify.probe.probes import Probe
from golden.kernels.sum_tree import C
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, published
from golden.studies.units import MMA, Subject, and_on, who_answered

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "accumulation-precision"

_M8 = f"{MMA}m16n8k8.row.col.f32"
_QMMA = f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32"
_LATER = ("ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
UNITS = (
    Subject("volta", f"{MMA}m8n8k4.row.col.f32.f16.f16.f32", "f16"),
    Subject("turing", f"{_M8}.f16.f16.f32", "f16"),
    *(Subject(name, f"{_M8}.f16.f16.f32", "f16") for name in _LATER),
    *(Subject(name, f"{_M8}.bf16.bf16.f32", "bf16") for name in _LATER),
    *(Subject(name, f"{MMA}m16n8k4.row.col.f32.tf32.tf32.f32", "tf32") for name in _LATER),
    Subject("ada", _QMMA, "e4m3"),
    Subject("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "e4m3"),
    Subject("blackwell", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e4m3.e4m3", "e4m3"),
    Subject("rtx_blackwell", _QMMA, "e4m3"),
    Subject("cdna2", "v_mfma_f32_32x32x8f16", "f16"),
    Subject("cdna2", "v_mfma_f32_32x32x8bf16_1k", "bf16"),
    Subject("cdna3", "v_mfma_f32_32x32x8_f16", "f16"),
    Subject("cdna3", "v_mfma_f32_32x32x8_bf16", "bf16"),
    Subject("cdna3", "v_mfma_f32_32x32x4_xf32", "tf32"),
    Subject("cdna3", "v_mfma_f32_32x32x16_fp8_fp8", "e4m3fnuz"),
)
_PLACES = {"e4m3fnuz": (0, 2, 4)}
"""Products that are X, the small addend and -X: all in the same fused sum (CDNA3's FP8 splits even and odd
k)."""


@dataclass(frozen=True)
class Found:
    """What the probes say: fraction bits of a product and of c next to 2**0, None for more than can be
    measured; the roundings."""

    unit: Subject
    product_bits: int | None
    c_bits: int | None
    product_rounding: str
    c_rounding: str
    result_rounding: str

    @property
    def printed(self) -> int | None:
        """The paper's fraction bits."""
        bits = published(NAME)["fraction_bits"].get(self.unit.architecture, {}).get(self.unit.what)
        return None if bits is None else int(bits)


def find(unit: Subject) -> Found:
    """Asks a unit what the dissection's probes ask (golden/identify/probe)."""
    probe = Probe(unit.answering)
    first, middle, last = _PLACES.get(unit.what, (0, 1, 2))

    def cut(small: int) -> tuple[int | None, str]:
        places = small, first, last
        bits = probes.kept_bits(probe, places)
        return bits, "not cut" if bits is None else probes.cut_mode(probe, bits, places)

    (product_bits, product_cut), (c_bits, c_cut) = cut(middle), cut(C)
    return Found(
        unit, product_bits, c_bits, product_cut, c_cut, probes.rounding(probe, probes.result_bits(probe))
    )


def run(samples: int = 1, progress: Progress = lambda done, total: None, chip: Chip | None = None) -> Study:
    """Probes every unit."""
    found, units = [], tuple(and_on(chip, UNITS))
    for step, unit in enumerate(units):
        found.append(find(unit))
        progress(step + 1, len(units))
    return Study(
        NAME,
        samples,
        _findings(found),
        [_table(found)],
        [Figure("bits", _CAPTION, partial(_draw, found))],
        {
            f"{item.unit.label if item.unit.on else f'{item.unit.architecture} {item.unit.what}'}": {
                "product_bits": item.product_bits,
                "c_bits": item.c_bits,
                "printed": item.printed,
                "product_rounding": item.product_rounding,
                "c_rounding": item.c_rounding,
                "result_rounding": item.result_rounding,
            }
            for item in found
        },
        units=units,
        random=False,
    )


_CAPTION = "Fraction bits of a product that survive next to a large one, by chip and operand type, measured."


def _bits(bits: int | None) -> Any:
    return "all" if bits is None else bits


def _table(found: list[Found]) -> Table:
    rows = [
        (
            item.unit.chip,
            item.unit.what,
            _bits(item.product_bits),
            "" if item.printed is None else item.printed,
            _bits(item.c_bits),
            item.product_rounding,
            item.c_rounding,
            item.result_rounding,
        )
        for item in found
    ]
    head = (
        "chip",
        "operands",
        "bits of a product",
        "paper",
        "bits of c",
        "a product is cut",
        "c is cut",
        "the result is rounded",
    )
    return Table(
        "bits", "Fraction bits kept next to 2^0, and the modes by the paper's Tables I and II", head, rows
    )


def _findings(found: list[Found]) -> str:
    printed = [item for item in found if item.printed is not None]
    few = [item for item in found if item.product_bits is not None and item.product_bits < 23]
    return findings(
        NAME,
        equal=sum(item.printed == item.product_bits for item in printed),
        printed=len(printed),
        few=" and ".join(f"{item.unit.label} ({item.product_bits})" for item in few),
        cdna2=next(item.product_bits for item in found if item.unit.architecture == "cdna2"),
        down=", ".join(item.unit.what for item in found if item.c_rounding == "RD"),
        who=who_answered(item.unit for item in found),
    )


def _draw(found: list[Found]) -> Picture:
    picture, axes = draw.canvas(height=5.8)
    types = list(dict.fromkeys(item.unit.what.replace("fnuz", "") for item in found))
    shown = [(item.unit, item.product_bits) for item in reversed(found) if item.product_bits is not None]
    for row, (unit, bits) in enumerate(shown):
        axes.barh(row, bits, color=draw.COLOURS[types.index(unit.what.replace("fnuz", ""))], height=0.7)
        axes.text(bits + 0.4, row, str(bits), va="center", fontsize=9)
    axes.axvline(23, color="black", linestyle=":", linewidth=1.2)
    axes.set_yticks(range(len(shown)), [unit.label for unit, _ in shown], fontsize=9)
    axes.set_xlabel("Fraction bits (dotted: the 23 of f32)")
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", alpha=0.3)
    return picture
