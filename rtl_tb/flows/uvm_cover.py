"""The coverpoints of operands and results (golden/cover) as SystemVerilog: functions that classify codes,
covergroups with the bins that can be reached, and what falls into them.

Classes are read off golden/cover itself: a function of a code is evaluated at every place where it could
change, and written as a list of ranges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.cover.coverage import Coverage
from golden.cover.points.classes import classify, coarse_bins, coarse_of
from golden.cover.points.point import Coverpoint
from golden.model.instruction import Instruction
from golden.model.registers import decode
from golden.number.formats import Format, Kind
from golden.program.modes import mode_text
from golden.program.state import CONTROLS
from golden.vectors.word import WordLayout

Codes = npt.NDArray[np.uint64]
Answer = Callable[[Codes], npt.NDArray[Any]]


@dataclass(frozen=True)
class CodeFunction:
    """A function of a code of `width` bits: of the `kept` bits above the lowest `shift`, as ranges (last
    code, value) in ascending order."""

    name: str
    width: int
    shift: int
    kept: int
    pieces: list[tuple[int, int]]

    @property
    def mask(self) -> int:
        """What is kept of the shifted code; 0 where that is all of it."""
        return (1 << self.kept) - 1 if self.kept < self.width - self.shift else 0


@dataclass
class _Writer:
    """Collects functions and coverpoints while the samples of a unit are written."""

    known: dict[str, Coverpoint]
    functions: dict[str, CodeFunction] = field(default_factory=dict)
    points: list[Coverpoint] = field(default_factory=list)

    def hit(self, name: str, number: str) -> list[str]:
        """The statement that counts a bin; none where the unit has no such coverpoint."""
        if name not in self.known:
            return []
        self.points.append(self.known[name])
        return [f"hit({len(self.points) - 1}, {number});"]

    def call(self, what: str, fmt: Format, code: str, dropped: int = 0) -> str:
        """A call of a function of codes: "class", "coarse", "sign" or "zero"."""
        name = f"{what}_of_{re.sub(r'[^a-z0-9]+', '_', fmt.name.lower())}" + (
            f"_{dropped}" if dropped else ""
        )
        if name not in self.functions:
            self.functions[name] = code_function(name, what, fmt, dropped)
        return f"{name}({code})"


def coverage_words(ins: Instruction, dot: WordLayout) -> dict[str, Any]:
    """What the template coverage.svh says of an instruction whose dot products are laid out as `dot`."""
    points = Coverage(ins).points
    writer = _Writer({point.name: point for point in points})
    common = [*_sequence(writer, ins)] if ins.state else []
    units: list[dict[str, Any]] = []
    if ins.modes is None:
        units.append({"code": None, "lines": list(_samples(writer, ins, dot, ""))})
    else:
        places = "".join(f"t.mode == {code} ? {i} : " for i, code in enumerate(list(ins.mode_units)[:-1]))
        common += writer.hit("mode", f"{places}{len(ins.mode_units) - 1}")
        for code, values in ins.modes.codes():
            lines = list(_samples(writer, ins.mode_units[code].stateless, dot, f"{mode_text(values)}: "))
            units.append({"code": code, "lines": lines})
    seen = {point.name for point in writer.points}
    parts = ("operands", "special values", "result", "status flags", "sequence")
    others = [point for point in points if point.part in parts and point.name not in seen]
    return {
        "functions": list(writer.functions.values()),
        "points": [_template_point(point) for point in writer.points],
        "most_bins": max(len(point.bins) for point in writer.points),
        "common": common,
        "units": units,
        "left_out": sorted({f"`{point.name.rpartition(': ')[2]}`" for point in others}),
    }


def _template_point(point: Coverpoint) -> dict[str, Any]:
    reach = list(point.bins.items())
    return {
        "name": re.sub(r'["\\]', "'", point.name),
        "size": len(reach),
        "bins": [(i, f"b{i}_{_identifier(label)}") for i, (label, can) in enumerate(reach) if can],
        "mask": sum(1 << i for i, (_, can) in enumerate(reach) if can),
    }


def _identifier(label: str) -> str:
    words = label.replace("+", " plus ").replace("-", " minus ")
    return "_".join(re.findall(r"\w+", words, re.ASCII)) or "bin"


def _samples(writer: _Writer, ins: Instruction, dot: WordLayout, prefix: str) -> Iterator[str]:
    """Statements that count one dot product `t`, as golden/cover/points samples it."""
    fields = {one.name: one for one in dot.fields}
    for name in ("a", "b", "scale_a", "scale_b"):
        if name in fields and not (name == "b" and ins.pattern is not None):
            one = fields[name]
            code = f"t.{name}[i*{one.bits}+:{one.bits}]"
            bucket = f"(i == 0 ? 0 : i == {one.elements - 1} ? 2 : 1)"
            number = f"{writer.call('class', ins.formats[name], code)} * 3 + {bucket}"
            for line in writer.hit(f"{prefix}class of {name}, position", number):
                yield f"for (int i = 0; i < {one.elements}; i++) {line}"
    if "c" in fields:
        yield from writer.hit(f"{prefix}class of c", writer.call("class", ins.formats["c"], "t.c"))
    if ins.pattern is None and "b" in fields:
        yield from ("begin", *_pairs(writer, ins, dot, prefix), "end")
    fmt = ins.formats["d"]
    dropped = fmt.fraction_bits - ins.program.operations[-1].result_fraction_bits if fmt.is_float else 0
    yield from writer.hit(f"{prefix}class of d", writer.call("class", fmt, "t.d", dropped))
    for bit, name in enumerate(ins.status):
        yield from writer.hit(f"{prefix}flag {name}", f"int'(t.flags[{bit}])")
    if len(ins.status) > 1:
        yield from writer.hit(f"{prefix}flags raised together", "int'(t.flags)")


def _pairs(writer: _Writer, ins: Instruction, dot: WordLayout, prefix: str) -> Iterator[str]:
    """What the factors of each product are, and how many products are not zero."""
    bits = {one.name: one.bits for one in dot.operand_fields}
    a, b = ins.formats["a"], ins.formats["b"]
    x, y = (f"t.{name}[i*{bits[name]}+:{bits[name]}]" for name in "ab")
    classes = f"{writer.call('coarse', a, x)} * {len(coarse_bins(b))} + {writer.call('coarse', b, y)}"
    signs = f"{writer.call('sign', a, x)} * 2 + {writer.call('sign', b, y)}"
    there = f"{writer.call('zero', a, x)} == 0 && {writer.call('zero', b, y)} == 0"
    k = ins.stored_k
    yield "int count = 0, last = 0;"
    yield f"for (int i = 0; i < {k}; i++) begin"
    yield from (f"  {line}" for line in writer.hit(f"{prefix}class of a, class of b", classes))
    yield from (f"  {line}" for line in writer.hit(f"{prefix}signs of a and b", signs))
    yield f"  if ({there}) begin"
    yield from ("    count++;", "    last = i;", "  end", "end")
    named = f"count == 0 ? 0 : count == {k} ? 5 : count == {k - 1} ? 4 : count == 1 ? 1 : count == 2 ? 2 : 3"
    yield from writer.hit(f"{prefix}non-zero products", named)
    for line in writer.hit(f"{prefix}the only non-zero product", "last"):
        yield f"if (count == 1) {line}"
    if "c" in bits:
        c = f"{writer.call('coarse', ins.formats['c'], 't.c')} * 2 + (count > 0 ? 1 : 0)"
        yield from writer.hit(f"{prefix}class of c, non-zero products", c)


def _sequence(writer: _Writer, one: Instruction) -> Iterator[str]:
    """How the dot products of a unit that keeps its accumulator follow one another."""
    yield "since = t.clear || !begun ? 1 : since + 1;"
    yield from writer.hit("clear", "int'(t.clear)")
    yield from writer.hit("dot products since clear", "since <= 1 ? 0 : since <= 2 ? 1 : since <= 8 ? 2 : 3")
    names = [name for name in CONTROLS if name == "clear" or one.load]
    held = writer.call("coarse", one.formats["c"], "held")
    yield "if (begun) begin"
    for name, does in zip(names, ("forgets", "replaces"), strict=False):
        in_a_row = f"2 * int'(last_{name}) + int'(t.{name})"
        for line in writer.hit(f"{name} of two dot products in a row", in_a_row):
            yield f"  {line}"
        for line in writer.hit(f"class of what {name} {does}", held):
            yield f"  if (t.{name}) {line}"
    yield from ("end", "begun = 1;", *(f"last_{name} = t.{name};" for name in names), "held = t.d;")


# Functions of codes -----------------------------------------------------------------------------------------


def code_function(name: str, what: str, fmt: Format, dropped: int) -> CodeFunction:
    """One of "class", "coarse", "sign" and "zero" of a format's codes.

    `dropped`: how many of their lowest fraction bits are always zero.
    """
    shift = fmt.ignored_low + dropped
    kept = fmt.bits - shift - fmt.ignored_high

    def answer(values: Codes) -> npt.NDArray[Any]:
        codes = (values << np.uint64(shift)).astype(fmt.dtype)[:, None]
        numbers = decode(fmt, codes)
        match what:
            case "class":
                found = classify(fmt, numbers, codes, dropped)
            case "coarse":
                found = coarse_of(fmt, numbers)
            case "sign":
                found = numbers.sign
            case _:
                found = numbers.kind == Kind.ZERO
        return np.asarray(found, np.int64)[:, 0]

    return CodeFunction(name, fmt.bits, shift, kept, pieces(answer, kept))


def pieces(answer: Answer, width: int) -> list[tuple[int, int]]:
    """A function of codes of `width` bits as ranges (last code, value), ascending.

    It may change where codes have few runs of ones and zeros, as fields that are all ones, all zeros or one
    bit are, and once between two such codes.
    """
    codes = _places(width)
    values = answer(codes)
    found: list[tuple[int, int]] = []
    for i in range(len(codes) - 1):
        if values[i] != values[i + 1]:
            last = _last(answer, int(codes[i]), int(codes[i + 1]), int(values[i]))
            found.append((last, int(values[i])))
    return [*found, ((1 << width) - 1, int(values[-1]))]


def _places(width: int) -> Codes:
    # Narrow codes are evaluated one by one.
    enumerated = 16
    if width <= enumerated:
        return np.arange(1 << width, dtype=np.uint64)
    runs = {(1 << i) - (1 << j) for i in range(width + 1) for j in range(i + 1)}
    near = {run + step for run in runs for step in (-2, -1, 0, 1, 2)}
    both = near | {code ^ (1 << (width - 1)) for code in near if code >= 0}
    return np.array(sorted(code for code in both if 0 <= code < 1 << width), np.uint64)


def _last(answer: Answer, low: int, high: int, value: int) -> int:
    """The last code from `low` on with that value; the one at `high` is another."""
    while high - low > 1:
        middle = (low + high) // 2
        same = int(answer(np.array([middle], np.uint64))[0]) == value
        low, high = (middle, high) if same else (low, middle)
    return low
