"""Accumulation precision and rounding modes of every architecture, found as the paper finds them: by
asking the unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from golden.studies import draw
from golden.studies.published import published
from golden.studies.study import Figure, Progress, Study, Table
from golden.studies.units import MMA, Subject, dot, sparse_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "accumulation-precision"
TITLE = "Accumulation precision and rounding"
QUESTION = "How many bits of an addend survive beside a large one, and which way does each unit round?"
SOURCE = "MMA-Sim (arXiv 2511.10909), sections III-D, III-E and VI-A"
SAMPLES = 1
"""Every experiment is a directed one; there is nothing random."""

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
_TOP = {"e4m3": 7, "e4m3fnuz": 6}
"""The large addend is 2**(2 * top): as large as the format allows, so that the small ones can be small;
others 2**12."""
_PLACES = {"e4m3fnuz": (0, 2, 4)}
"""Elements that hold X, the small addend and -X: all in the same fused sum (CDNA3's FP8 splits even and
odd k)."""
MOST = 40


FINDINGS = """\
- The probe -X + X + e finds the fraction bits that the paper prints in {equal} of {printed} cases.
- Fewer than the 23 bits of f32 are kept by {few} only. Both Blackwells keep 25 with the same operands.
- CDNA2 adds in f32 ({cdna2} bits), to nearest. Its products cancel before c comes, so that c keeps all its
  bits.
- CDNA3 rounds c down ({down}); every other cut of a fused sum is towards zero. So are the f32 results of
  NVIDIA's units; AMD rounds them to nearest, ties to even.
"""


@dataclass(frozen=True)
class Found:
    """What the probes say: fraction bits of a product and of c beside 2**0, None for more than can be
    told; the roundings."""

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


def _top(unit: Subject) -> int:
    return _TOP.get(unit.what, 6)


def beside(unit: Subject, small: float, in_c: bool) -> float:
    """X + small - X with X = 1.5 * 2**(2 * top) from products, so that X + small has X's exponent; small
    is a product, or c."""
    top, (first, middle, last) = _top(unit), _PLACES.get(unit.what, (0, 1, 2))
    a = [(first, 1.5 * 2.0**top), (last, -1.5 * 2.0**top)]
    b = [(first, 2.0**top), (last, 2.0**top)]
    if not in_c:
        value, scale = _factors(unit, small)
        a.append((middle, value))
        b.append((middle, scale))
    k = unit.ins.k
    return float(dot(unit.ins, sparse_row(a, k), sparse_row(b, k), small if in_c else 0.0))


def _factors(unit: Subject, small: float) -> tuple[float, float]:
    """Splits a small product into two factors that the operand format holds exactly."""
    fmt = unit.ins.formats["a"]
    scale = 1.0
    while abs(small / scale) < 2.0 ** (fmt.min_exponent + 2) and scale > 2.0**fmt.min_exponent:
        scale /= 2
    return small / scale, scale


def kept_bits(unit: Subject, in_c: bool) -> int | None:
    """The fraction bits below X at which the small addend is still seen; None if none was found at which
    it is lost."""
    origin, reach = 2 * _top(unit), MOST if in_c else _reach(unit)
    for bits in range(8, reach):
        if beside(unit, 2.0 ** (origin - bits), in_c) == 0:
            return bits - 1
    return None


def _reach(unit: Subject) -> int:
    fmt = unit.ins.formats["a"]
    return min(MOST, 2 * _top(unit) - 2 * (fmt.min_exponent - fmt.fraction_bits) + 1)


def rounding_of(results: list[float], ties: list[float]) -> str:
    """The mode by Tables I and II, from what four inputs and four ties became, in units beyond 1 or -1."""
    names = [name for name, pattern in published(NAME)["modes"].items() if pattern == results]
    if names != ["to nearest"]:
        return names[0] if names else "no mode of Table I"
    ties_to = [name for name, pattern in published(NAME)["ties"].items() if pattern == ties]
    return f"to nearest, ties {ties_to[0]}" if ties_to else "to nearest"


_TABLE_I = ((1, 0.75), (1, 0.25), (-1, 0.75), (-1, 0.25))
_TABLE_II = ((1, 0.5), (1, 1.5), (-1, 0.5), (-1, 1.5))


def cut_rounding(unit: Subject, bits: int | None, in_c: bool) -> str:
    """How the small addend is cut at its last bit: the four inputs of Table I (with 2 u for 1)
    beside X - X."""
    if bits is None:
        return "not cut"
    unit_size = 2.0 ** (2 * _top(unit) - bits)

    def units(sign: int, part: float) -> float:
        return abs(beside(unit, sign * (2 + part) * unit_size, in_c)) / unit_size - 2

    return rounding_of([units(*case) for case in _TABLE_I], [units(*case) for case in _TABLE_II])


def result_rounding(unit: Subject) -> str:
    """How the sum is rounded to the result: 4.5 X + 0.75 u and so on, u being the last bit of the result.

    The 4.5 X are two products with the exponent of X, so that all quarters of u pass the alignment.
    """
    top = 2.0 ** _top(unit)
    last = 4 * top**2 * _last_place(unit)

    def units(sign: int, part: float) -> float:
        value, scale = _factors(unit, part * last)
        first, middle, third = _PLACES.get(unit.what, (0, 1, 2))
        row_a = sparse_row(
            [(first, sign * 1.5 * top), (middle, sign * 1.5 * top), (third, sign * value)], unit.ins.k
        )
        row_b = sparse_row([(first, 1.5 * top), (middle, 1.5 * top), (third, scale)], unit.ins.k)
        return (abs(float(dot(unit.ins, row_a, row_b))) - 4.5 * top**2) / last

    return rounding_of([units(*case) for case in _TABLE_I], [units(*case) for case in _TABLE_II])


def _last_place(unit: Subject) -> float:
    return 2.0 ** -unit.ins.program.operations[-1].result_fraction_bits


def find(unit: Subject) -> Found:
    """Runs every probe on a unit."""
    product, c = kept_bits(unit, False), kept_bits(unit, True)
    return Found(
        unit,
        product,
        c,
        cut_rounding(unit, product, False),
        cut_rounding(unit, c, True),
        result_rounding(unit),
    )


def run(samples: int = SAMPLES, progress: Progress = lambda done, total: None) -> Study:
    """Probes every unit."""
    found = []
    for step, unit in enumerate(UNITS):
        found.append(find(unit))
        progress(step + 1, len(UNITS))
    return Study(
        NAME,
        TITLE,
        QUESTION,
        SOURCE,
        samples,
        _findings(found),
        [_table(found)],
        [Figure("bits", _CAPTION, partial(_draw, found))],
        {
            f"{item.unit.architecture} {item.unit.what}": {
                "product_bits": item.product_bits,
                "c_bits": item.c_bits,
                "printed": item.printed,
                "product_rounding": item.product_rounding,
                "c_rounding": item.c_rounding,
                "result_rounding": item.result_rounding,
            }
            for item in found
        },
        units=UNITS,
        random=False,
    )


_CAPTION = (
    "Fraction bits of a product that survive beside a large one, by chip and operand type, measured "
    "on the models."
)


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
        "bits", "Fraction bits kept beside 2^0, and the modes by the paper's Tables I and II", head, rows
    )


def _findings(found: list[Found]) -> str:
    printed = [item for item in found if item.printed is not None]
    few = [item for item in found if item.product_bits is not None and item.product_bits < 23]
    return FINDINGS.format(
        equal=sum(item.printed == item.product_bits for item in printed),
        printed=len(printed),
        few=" and ".join(f"{item.unit.label} ({item.product_bits})" for item in few),
        cdna2=next(item.product_bits for item in found if item.unit.architecture == "cdna2"),
        down=", ".join(item.unit.what for item in found if item.c_rounding == "down"),
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
