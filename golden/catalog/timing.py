"""Reads spec/timing: the published timing tables and our own of `mmagold bench-gpu`, in one form.

    for figure in tables.load("sun_a100"):
        print(figure.instruction, figure.quantity, figure.warps, figure.ilp, figure.value, figure.unit)

A file names its source and device once and holds tables of rows; a published one may say why ours differ.
A row is one instruction with one or several numbers:

- `completion`: cycles from issue to the result's next use, 1 warp, ILP 1, through C (`completion_a`: through
  A; `completion_c`: through C where `completion` is through A and B; `completion_published`: through C, in a
  kernel as public benchmarks have it; `single`: one instruction between two
  readings of the clock, `empty`: none);
- `points`: [warps, ILP, cycles of one round of ILP instructions, throughput] each;
- `interval`: cycles from one instruction to the next, in a long sequence;
- `sizes`: [bytes, cycles] each: latency by the size of the data;
- `ways`: completion latency by the number of conflicting bank accesses;
- `value`, `range` ([low, high]) or `text`: what the table's `quantity` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from golden.errors import UnknownNameError, nearest
from golden.paths import spec_folder
from golden.yamlfile import Section, read

CYCLES = "cycles"
PARTS = ("matrix", "wmma", "scalar", "memory", "kernels")
"""What the files of one board hold: `of_board` names them."""
EXPERIMENTS = ("sun", "abdelkhalik")
"""What some boards have, too: the experiments of two papers, as they print them."""
PRINTED = "as printed"
"""The variant, or the end of it, of what was measured in the way that a paper prints: see `as_printed`."""
QUANTITIES = (
    "completion_latency",
    "latency",
    "throughput",
    "issue_interval",
    "cycles_per_instruction",
    "cycles_dependent",
    "cycles_independent",
    "chip_throughput",
    "bytes_per_warp",
    "vendor_peak",
    "kernel_cycles",
    "share_of_peak",
    "bank_conflicts",
)
_PLACEHOLDERS = ("shape", "ab", "cd", "suffix")
_ASIDE = (
    "loop",
    "zeros",
    "cold",
    "alone",
    "link",
    "spread",
    "hash",
    "beside",
    "by",
    "ends",
    "any_bits",
    "stalls",
)
"""What a row says about how it was measured."""
_NUMBERS = (
    *("value", "range", "text", "completion", "completion_a", "completion_c", "completion_published"),
    *("single", "empty", "interval", "points", "ways", "sizes"),
)


@dataclass(frozen=True)
class Key:
    """What a figure measures; two figures of one key can be compared.

    variant: "SS" or "RS" for wgmma with A from shared memory or registers; "A" for a latency through operand
    A, "C" for that through C of an emulated instruction, "C, as published" for that of a kernel as public
    benchmarks have it; "as printed", alone or behind another, for the very experiment of the paper that
    printed a figure; "single" for one instruction between two clocks and "empty" for none; "2-way" and so on
    for bank conflicts; "x 3" where three were timed together; else "".
    warps and ilp are None where the source does not say; size: bytes of the data that a chain of loads runs
    through, or None.
    """

    instruction: str
    variant: str
    quantity: str
    warps: int | None = None
    ilp: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Figure:
    """One number of one table. `low` and `high` are equal unless the source gives a range; both None for
    words alone."""

    key: Key
    low: float | None
    high: float | None
    unit: str
    device: str
    architecture: str
    source: str
    table: str
    text: str = ""
    sass: str = ""

    @property
    def value(self) -> float | None:
        """The number, or None for a range or for words."""
        return self.low if self.low == self.high else None

    @property
    def instruction(self) -> str:
        """The PTX name."""
        return self.key.instruction

    @property
    def quantity(self) -> str:
        """One of QUANTITIES."""
        return self.key.quantity

    @property
    def warps(self) -> int | None:
        """Warps on the multiprocessor."""
        return self.key.warps

    @property
    def ilp(self) -> int | None:
        """Independent instructions of a warp in one round."""
        return self.key.ilp


def names() -> list[str]:
    """Returns the names of the files in spec/timing, without the suffix."""
    return sorted(path.stem for path in (spec_folder() / "timing").glob("*.yaml"))


def load(name: str | Path) -> list[Figure]:
    """Returns all figures of one file: a name of `names()`, or a path.

    Raises:
        UnknownNameError: no such name.
        SpecError: the file is wrong; file and line.
    """
    path = _path(name)
    try:
        about = path.stat()
    except OSError:
        return list(_figures(path, 0, 0))  # says why it cannot be read
    return list(_figures(path, about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=64)  # all of spec/timing, which the pages read again and again
def _figures(path: Path, _written: int, _size: int) -> tuple[Figure, ...]:
    """The figures of one file as it was then: reading one with every point takes a second."""
    top = read(path)
    origin = {key: str(top.take(key, str)).strip() for key in ("source", "device", "architecture")}
    top.take("measured", Section, None)
    top.take("differences", list, None)
    figures = [figure for table in sections(top, "tables") for figure in _table(table, origin)]
    top.done()
    if not figures:
        raise top.error("no table holds a figure", "tables")
    return tuple(figures)


def _path(name: str | Path) -> Path:
    path = Path(name)
    if path.suffix != ".yaml":
        if str(name) not in names():
            raise UnknownNameError(
                f"no timing tables '{name}', expected one of "
                f"{', '.join(names())}{nearest(str(name), names())}"
            )
        path = spec_folder() / "timing" / f"{name}.yaml"
    return path


def of_board(board: str, part: str) -> str:
    """The name of a board's file with one of PARTS: "hopper_h100", "hopper_h100_wmma"."""
    return board if part == "matrix" else f"{board}_{part}"


def experiment(name: str) -> str:
    """Which of EXPERIMENTS a board's file holds; "" for any other file."""
    return next((part for part in EXPERIMENTS if name.endswith(f"_{part}")), "")


def measured(name: str | Path) -> bool:
    """Whether a file holds our own measurements: its key `measured` says how. Raises UnknownNameError."""
    # Not parsed: that takes seconds for a file with every point.
    return any(line.startswith("measured:") for line in _path(name).read_text("utf-8").splitlines())


@dataclass(frozen=True)
class Difference:
    """Why figures of one architecture differ from those of a published file. instructions, variants,
    quantities and devices (ours) are patterns of names ("*" for any text)."""

    architecture: str
    instructions: tuple[str, ...]
    variants: tuple[str, ...]
    quantities: tuple[str, ...]
    devices: tuple[str, ...]
    reason: str

    def explains(self, key: Key, architecture: str, device: str) -> bool:
        """Whether it speaks of a figure of ours on a device."""
        named = (
            (key.instruction, self.instructions),
            (key.variant, self.variants),
            (key.quantity, self.quantities),
            (device, self.devices),
        )
        return architecture == self.architecture and all(
            any(fnmatchcase(name, pattern) for pattern in patterns) for name, patterns in named
        )


def differences(name: str | Path) -> list[Difference]:
    """Returns the list `differences` of a file, the first that explains a figure counts; raises SpecError."""
    top = read(_path(name))
    if "differences" not in top:
        return []
    found = []
    for item in sections(top, "differences"):
        keys = ("instructions", "variants", "quantities", "devices")
        patterns = {key: tuple(str(text) for text in item.take(key, list, ["*"])) for key in keys}
        architecture, reason = item.take("architecture", str), item.take("reason", str).strip()
        found.append(Difference(architecture=architecture, reason=reason, **patterns))
        item.done()
    return found


def spellings(name: str) -> list[str]:
    """The instructions that a row of several stands for: "rem/div.u16/s16" is rem.u16, rem.s16, div.u16 and
    div.s16."""
    parts = [part.split("/") for part in name.replace("/.", "/").split(".")]
    return [".".join(chosen) for chosen in product(*parts)]


def as_printed(variant: str) -> str:
    """The variant of the same figure, measured in the way that a paper prints: "2-way, as printed"."""
    return f"{variant}, {PRINTED}" if variant else PRINTED


def conflict(ways: str | int) -> str:
    """Returns the variant of an access in which `ways` lanes meet in a bank:
    "" for 1, else such as "2-way"."""
    return "" if int(ways) == 1 else f"{ways}-way"


def sections(parent: Section, key: str) -> list[Section]:
    """Returns a list of mappings; raises SpecError for anything else."""
    items: list[Section] = parent.take(key, list)
    for item in items:
        if not isinstance(item, Section):
            raise parent.error(f"key '{key}' holds {item!r}, expected mappings only", key)
    return items


def _table(table: Section, origin: dict[str, str]) -> Iterator[Figure]:
    number = str(table.take("table", (str, int)))
    table.take("title", str)
    table.take("note", str, None)
    unit = table.take("unit", str, CYCLES)
    quantity = table.take_choice("quantity", QUANTITIES, None)
    template = table.take("instruction", str, "{instruction}")
    for row in sections(table, "rows"):
        name, variant, sass = (
            _instruction(row, template),
            row.take("variant", str, ""),
            row.take("sass", str, ""),
        )
        variant = _repeated(row, variant)
        for key in _ASIDE:
            row.take(key, (int, float, str, Section), None)
        found = list(_row(row, name, variant, quantity))
        if not found:
            raise row.error(f"the row holds none of {', '.join(_NUMBERS)}")
        row.done()
        for figure_key, low, high, text in found:
            its_unit = (
                CYCLES if figure_key.quantity in ("latency", "completion_latency", "issue_interval") else unit
            )
            yield Figure(figure_key, low, high, its_unit, table=number, text=text, sass=sass, **origin)
    table.done()


def _repeated(row: Section, variant: str) -> str:
    """The variant of a row that says how many instructions were timed together."""
    repeats = row.take("repeats", int, None)
    return variant if repeats is None else f"{variant} x {repeats}".strip()


def _instruction(row: Section, template: str) -> str:
    if template == "{instruction}":
        return str(row.take("instruction", str))
    values = {key: row.take(key, str, "" if key == "suffix" else None) for key in _PLACEHOLDERS}
    missing = [key for key, value in values.items() if value is None]
    if missing:
        raise row.error(f"key '{missing[0]}' is missing; the table's instruction is '{template}'")
    return template.format(**values)


_Found = tuple[Key, float | None, float | None, str]


def _row(row: Section, name: str, variant: str, quantity: str | None) -> Iterator[_Found]:
    """Yields key, low, high and text of every number in the row."""
    for column, its_variant, its_quantity in (
        ("completion", variant, "completion_latency"),
        ("completion_a", "A", "completion_latency"),
        ("completion_c", "C", "completion_latency"),
        ("completion_published", "C, as published", "completion_latency"),
        ("single", "single", "completion_latency"),
        ("empty", "empty", "completion_latency"),
        ("interval", variant, "issue_interval"),
    ):
        value = row.take(column, (int, float), None)
        if value is not None:
            number = _number(row, column, value)
            yield Key(name, its_variant, its_quantity), number, number, ""
    by_ways = row.take("ways", Section, Section("", 0))
    for ways in by_ways:
        value = _number(by_ways, ways, by_ways.take(ways, (int, float)))
        yield Key(name, conflict(ways), "completion_latency"), value, value, ""
    for point in row.take("points", list, []):
        yield from _point(row, Key(name, variant, ""), point)
    for pair in row.take("sizes", list, []):
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int or pair[0] <= 0:
            raise row.error(f"key 'sizes' holds {pair!r}, expected [bytes, cycles]", "sizes")
        value = _number(row, "sizes", pair[1])
        yield Key(name, variant, "latency", size=pair[0]), value, value, ""
    yield from _plain(row, name, variant, quantity)


def _point(row: Section, key: Key, point: Any) -> Iterator[_Found]:
    if not isinstance(point, list) or len(point) != 4 or not all(type(n) is int and n > 0 for n in point[:2]):
        raise row.error(f"key 'points' holds {point!r}, expected [warps, ILP, latency, throughput]", "points")
    for quantity, value in zip(("latency", "throughput"), point[2:], strict=True):
        if value is not None:
            number = _number(row, "points", value)
            yield Key(key.instruction, key.variant, quantity, *point[:2]), number, number, ""


def _plain(row: Section, name: str, variant: str, quantity: str | None) -> Iterator[_Found]:
    value, limits, text = (
        row.take("value", (int, float), None),
        row.take("range", list, None),
        row.take("text", str, ""),
    )
    if value is None and limits is None and not text:
        return
    if quantity is None:
        raise row.error("the row has a value, but its table names no 'quantity'")
    if limits is not None and (len(limits) != 2 or value is not None):
        raise row.error(f"key 'range' is {limits!r}, expected [low, high] and no 'value'", "range")
    if limits is not None:
        low, high = (_number(row, "range", limit, zero=True) for limit in limits)
        if low >= high:
            raise row.error(f"key 'range' is {limits!r}, expected the lower number first", "range")
        yield Key(name, variant, quantity), low, high, text
    else:
        number = None if value is None else _number(row, "value", value)
        yield Key(name, variant, quantity), number, number, text


def _number(row: Section, key: str, value: Any, zero: bool = False) -> float:
    """A measured number, which is more than nothing: a ratio to 0 or NaN would say anything. A range may
    begin at `zero`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf or (value == 0 and not zero):
        raise row.error(f"key '{key}' holds {value!r}, expected a number above 0", key)
    return float(value)
