"""Reduced accumulation precision of FP8 on Hopper and Ada: the error of a long sum as K grows,
and what helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from golden.number.formats import from_float, to_float
from golden.program.steps import Align
from golden.studies import draw
from golden.studies.study import Figure, Progress, Study, Table, findings, number, percent, published
from golden.studies.units import MMA, Bits, Floats, Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

NAME = "fp8-accumulation"

LENGTHS = tuple(1 << n for n in range(5, 14))
"""Lengths of the sums, in products."""
INTERVALS = LENGTHS[:-1]
"""Products between two promotions to f32."""
DATA = {"signed": "both signs", "positive": "one sign"}
"""Operands: N(0, 1) rounded to e4m3, or their magnitudes: sums that hover around zero,
and sums that only grow."""
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
QMMA = f"{MMA}m16n8k32.row.col.f32.e4m3.e4m3.f32"


@dataclass(frozen=True)
class Way:
    """A way to compute the sum: a unit, its operands' format, and after how many elements an f32 addition
    takes over."""

    key: str
    label: str
    unit: Subject
    promote: int | None = None


HOPPER = Subject("hopper", WGMMA, "wgmma")
WAYS = (
    Way("ada", "Ada mma", Subject("ada", QMMA, "mma")),
    Way("hopper", "Hopper wgmma", HOPPER),
    Way("hopper_promoted", "Hopper wgmma, f32 add every 128", HOPPER, 128),
    Way("hopper_mma", "Hopper mma (on f16 units)", Subject("hopper", QMMA, "mma")),
    Way(
        "hopper_f16",
        "Hopper wgmma f16",
        Subject("hopper", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "wgmma f16"),
    ),
    Way(
        "blackwell",
        "Blackwell tcgen05",
        Subject("blackwell", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e4m3.e4m3"),
    ),
    Way("rtx_blackwell", "RTX Blackwell mma", Subject("rtx_blackwell", QMMA, "mma")),
    Way("cdna3", "CDNA3 mfma", Subject("cdna3", "v_mfma_f32_16x16x32_fp8_fp8", "mfma")),
)
SHOWN = ("ada", "hopper", "hopper_promoted", "blackwell", "cdna3")
"""The curves of the figures; the others lie on these or close to them."""


@dataclass
class Errors:
    """Errors of one way on one kind of operands: by length,
    relative to the mean magnitude of the exact sums."""

    mean: list[float]
    largest: list[float]
    bias: list[float]


class Runner:
    """Runs one way over slices of k, samples in parallel."""

    def __init__(self, way: Way, samples: int) -> None:
        self.way, self.ins = way, way.unit.ins
        self.partial: Bits = np.zeros(samples, np.uint32)
        self.total = np.zeros(samples, np.float32)
        self.done = 0
        self.codes = [_recoded(self.ins.formats[operand].name) for operand in "ab"]

    def feed(self, a: Bits, b: Bits) -> None:
        """Adds the products of a slice: e4m3 codes (samples, a multiple of the unit's K)."""
        x, y = self.codes[0][a], self.codes[1][b]
        for k in range(0, a.shape[1], self.ins.k):
            self.partial = self.ins.dot(x[:, k : k + self.ins.k], y[:, k : k + self.ins.k], self.partial)
            self.done += self.ins.k
            if self.way.promote is not None and self.done % self.way.promote == 0:
                self.total = self.total + self.partial.view(np.float32)
                self.partial = np.zeros_like(self.partial)

    @property
    def result(self) -> Floats:
        """The sums so far."""
        return (self.total + self.partial.view(np.float32)).astype(np.float64)


class Tally:
    """Adds up the errors of all blocks of samples."""

    def __init__(self, lengths: int) -> None:
        self.size, self.error, self.bias, self.largest = (np.zeros(lengths) for _ in range(4))

    def note(self, place: int, result: Floats, exact: Floats) -> None:
        """Adds the results of a block at one length."""
        difference = result - exact
        self.size[place] += np.abs(exact).sum()
        self.error[place] += np.abs(difference).sum()
        self.bias[place] += (np.sign(exact) * difference).sum()
        self.largest[place] = max(self.largest[place], np.abs(difference).max())

    def errors(self, samples: int) -> Errors:
        """The errors over the mean magnitude of the exact sums."""
        largest = self.largest * samples / self.size
        return Errors((self.error / self.size).tolist(), largest.tolist(), (self.bias / self.size).tolist())


@lru_cache(maxsize=8)
def _recoded(fmt: str) -> Bits:
    """The codes of another format for the 256 codes of e4m3 (only e4m3fnuz lacks some, those above 240)."""
    return from_float(fmt, to_float("e4m3", np.arange(256, dtype=np.uint8)))


def operands(data: str, samples: int, length: int, rng: np.random.Generator) -> Bits:
    """A slice of a and b, e4m3 codes (2, samples, length)."""
    codes = from_float("e4m3", rng.standard_normal((2, samples, length), dtype=np.float32))
    return codes & np.uint8(0x7F) if data == "positive" else codes


def grow(data: str, samples: int, ways: Sequence[Way], lengths: Sequence[int]) -> dict[str, Errors]:
    """Errors of each way at each length. float64 holds the exact sums: e4m3 products of N(0, 1) lie
    between 2**-18 and 2**6."""
    tallies = {way.key: Tally(len(lengths)) for way in ways}
    values = to_float("e4m3", np.arange(256, dtype=np.uint8))
    # Samples that are computed at once, to bound the memory.
    block = 500
    for start in range(0, samples, block):
        count = min(block, samples - start)
        rng = np.random.default_rng([1, start])
        runners, exact = [Runner(way, count) for way in ways], np.zeros(count)
        for place, (begin, end) in enumerate(zip((0, *lengths), lengths, strict=False)):
            a, b = operands(data, count, end - begin, rng)
            exact += np.einsum("ij,ij->i", values[a], values[b])
            for runner in runners:
                runner.feed(a, b)
                tallies[runner.way.key].note(place, runner.result, exact)
    return {key: tally.errors(samples) for key, tally in tallies.items()}


def run(samples: int = 500, progress: Progress = lambda done, total: None) -> Study:
    """Runs the study: growth with K for two kinds of operands, then the promotion intervals on Hopper."""
    found: dict[str, dict[str, Errors]] = {}
    promoted: dict[str, list[float]] = {}
    lengths = tuple(n for n in LENGTHS if n <= published(NAME)["length"])
    ways = tuple(Way(str(n), f"every {n}", HOPPER, n) for n in INTERVALS)
    for step, data in enumerate(DATA):
        progress(2 * step, 4)
        found[data] = grow(data, samples, WAYS, LENGTHS)
        progress(2 * step + 1, 4)
        promoted[data] = [errors.mean[-1] for errors in grow(data, samples, ways, lengths).values()]
    progress(4, 4)
    return Study(
        NAME,
        samples,
        _findings(found, promoted),
        [_table(data, found[data]) for data in DATA] + [_growth_table(found), _interval_table(promoted)],
        _figures(found, promoted),
        {
            "lengths": list(LENGTHS),
            "errors": _plain(found),
            "intervals": list(INTERVALS),
            "promoted": promoted,
        },
        units=tuple(dict.fromkeys(way.unit for way in WAYS)),
    )


def _at(errors: Errors, length: int) -> tuple[float, float, float]:
    i = LENGTHS.index(length)
    return errors.mean[i], errors.largest[i], errors.bias[i]


def _findings(found: dict[str, dict[str, Errors]], promoted: dict[str, list[float]]) -> str:
    paper = published(NAME)
    length, interval, bits = paper["length"], paper["promotion_interval"], paper["fraction_bits"]
    one, both = found["positive"], found["signed"]
    return findings(
        NAME,
        length=length,
        interval=interval,
        bits=bits["hopper"],
        blackwell_bits=bits["blackwell"],
        reported=paper["reported_mantissa_bits"],
        printed=f"{100 * paper['largest_relative_error']:g} %",
        hopper=percent(_at(one["hopper"], length)[0]),
        blackwell=number(_at(one["blackwell"], length)[0]),
        growth=number(_at(one["hopper"], length)[0] / _at(one["hopper"], 128)[0]),
        signed=percent(_at(both["hopper"], length)[0]),
        signed_largest=percent(_at(both["hopper"], length)[1]),
        promoted=percent(_at(one["hopper_promoted"], length)[0]),
        best=INTERVALS[int(np.argmin(promoted["positive"]))],
    )


def _table(data: str, found: dict[str, Errors]) -> Table:
    length = published(NAME)["length"]
    rows = []
    for way in WAYS:
        mean, largest, bias = _at(found[way.key], length)
        rows.append(
            (
                way.label,
                published(NAME)["fraction_bits"].get(way.key, _alignment_bits(way)),
                mean,
                largest,
                bias,
            )
        )
    caption = f"Error at K = {length}, operands of {DATA[data]}, by the mean magnitude of the exact sums"
    return Table(
        f"k{length}_{data}",
        caption,
        ("way", "F", "mean error", "largest error", "bias towards zero (-)"),
        rows,
    )


def _alignment_bits(way: Way) -> int:
    """Fraction bits that the unit's first alignment keeps."""
    return way.unit.ins.program.steps_of(Align)[0].fraction_bits[0][1]


def _growth_table(found: dict[str, dict[str, Errors]]) -> Table:
    rows = [
        (DATA[data], way.label, *(found[data][way.key].mean[i] for i in range(0, len(LENGTHS), 2)))
        for data in DATA
        for way in WAYS
    ]
    head = ("operands", "way", *(f"K = {n}" for n in LENGTHS[::2]))
    return Table("growth", "Mean error as K grows", head, rows)


def _interval_table(promoted: dict[str, list[float]]) -> Table:
    rows = [(n, *(promoted[data][i] for data in DATA)) for i, n in enumerate(INTERVALS)]
    caption = (
        f"Hopper wgmma, K = {published(NAME)['length']}: mean error by the interval between additions to f32"
    )
    return Table("intervals", caption, ("interval", *DATA.values()), rows)


def _plain(found: dict[str, dict[str, Errors]]) -> dict[str, dict[str, dict[str, list[float]]]]:
    return {data: {key: vars(errors) for key, errors in ways.items()} for data, ways in found.items()}


def _figures(found: dict[str, dict[str, Errors]], promoted: dict[str, list[float]]) -> list[Figure]:
    figures = []
    for data, title in DATA.items():
        curves = {way.label: found[data][way.key].mean for way in WAYS if way.key in SHOWN}
        caption = (
            f"Mean error of a sum of K FP8 products, operands of {title}: N(0, 1) in e4m3, by the mean "
            "magnitude of the sums. Where there is no point there is no error."
        )
        figures.append(Figure(f"growth_{data}", caption, partial(_growth, curves)))
    caption = "Hopper wgmma with f32 additions in between: the cheapest cure, and the remaining error."
    return [*figures, Figure("intervals", caption, partial(_intervals, promoted))]


def _growth(curves: dict[str, list[float]]) -> Picture:
    picture, axes = draw.canvas(height=4.4)
    for index, (label, errors) in enumerate(curves.items()):
        axes.plot(LENGTHS, errors, label=label, **draw.style(index))
    draw.powers_of_two(axes, LENGTHS)
    axes.set_yscale("log")
    axes.set_xlabel("K (products in the sum)")
    axes.set_ylabel("Mean relative error")
    draw.legend(axes)
    return picture


def _intervals(promoted: dict[str, list[float]]) -> Picture:
    picture, axes = draw.canvas(height=3.8)
    for index, (data, errors) in enumerate(promoted.items()):
        axes.plot(INTERVALS, errors, label=f"Operands of {DATA[data]}", **draw.style(index))
    draw.powers_of_two(axes, INTERVALS)
    axes.set_yscale("log")
    axes.set_xlabel("Elements between additions to f32")
    axes.set_ylabel(f"Mean relative error, K = {published(NAME)['length']}")
    draw.legend(axes)
    return picture
