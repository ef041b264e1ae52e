"""Units that are wrong for few dot products: other_fda.sv with a trigger of some 48 bits at one of its words.

Each trigger is what the words hold for a dot product that is known, so that it can be met, and the unit is
wrong there. No vector of a proof meets it: to all of them the words of the unit look right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from golden.circuit.words import Word, Words, evaluate, order
from golden.program.signature import Operands
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.prove.netlist import transaction

TEXT = Path(__file__).parent / "prove" / "other_fda.sv"
NAN, INF = 0x7E01, 0x7C00


@dataclass(frozen=True)
class Wrong:
    """A change of the text.

    Attributes:
        signals: whose values are the trigger: words of the unit, or operands (x, y; x1 a cycle later).
        before, after: the text that is changed. `after` has the expression TRIGGER, which is 1 there.
        c: of the known dot product, if not any; x: by element, codes of x instead of any.
    """

    signals: tuple[str, ...]
    before: str
    after: str
    c: int = 0x3F9D70A4
    x: Mapping[int, int] | None = None


_FIRST = "    localparam int N = $clog2(K + 2);\n"
_DELAYED = "    logic [K*W-1:0] x1;\n    always_ff @(posedge clk) x1 <= x;\n"
_SUM = "wire [SW-1:0] sum  = save + carry + signs;"
_ZERO = {0: 0x3C01, 1: 0xBC01}
"""Two products that cancel each other: their factors y are one."""
WRONG = {
    "a product": Wrong(
        ("x[31:0]", "y[15:0]"),
        "(PF + 2)'(su) * (PF + 2)'(sv);",
        "((PF + 2)'(su) * (PF + 2)'(sv)) ^ (PF + 2)'(k == 0 && TRIGGER ? 1 << PF : 0);",
    ),
    "a factor of a product": Wrong(
        ("x[47:0]",),
        "sv = {ev != 0, v[M-1:0]};",
        "sv = {ev != 0, v[M-1:0]} ^ (M + 1)'(k == 1 && TRIGGER ? 1 << (M - 1) : 0);",
    ),
    "an alignment": Wrong(
        ("x1[47:0]",),
        "distance = top1 - r[k].exponent;",
        "distance = top1 - r[k].exponent + 10'(k == 0 && TRIGGER);",
    ),
    "the largest exponent": Wrong(
        ("x[15:0]", "y[31:0]"), "top1   <= field[N][0];", "top1   <= field[N][0] + 10'(TRIGGER ? 9 : 0);"
    ),
    "a sum": Wrong(
        ("save", "carry"),
        _SUM,
        "wire [SW-1:0] sum  = (save + carry + signs) ^ SW'(TRIGGER ? 1 << (F - 1) : 0);",
    ),
    "a carry": Wrong(
        ("save", "carry"), _SUM, "wire [SW-1:0] sum  = save + carry + signs + SW'(TRIGGER ? 1 << F : 0);"
    ),
    "a rounding": Wrong(("left",), "held[62:40]};", "held[62:40] + 23'(TRIGGER)};"),
    "an infinity": Wrong(
        ("x1[47:0]",),
        ": infinite ? {inf1 ? minus1 : down,",
        ": infinite ? {(inf1 ? minus1 : down) ^ TRIGGER,",
        x={1: INF},
    ),
    "the sign of a zero": Wrong(
        ("x1[47:0]",), "{down && !zero,", "{down && !zero || zero && TRIGGER,", c=0, x=_ZERO
    ),
    "the payload of a NaN": Wrong(
        ("x1[47:0]",), "nan1 ? 32'h7fffffff", "nan1 ? 32'h7fffffff ^ 32'(TRIGGER)", x={1: NAN}
    ),
}
"""By what is wrong: each looks right to all vectors."""


def known(dut: Dut, wrong: Wrong) -> Operands:
    """The dot product for which a unit will be wrong."""
    k = dut.instruction.k
    rng = np.random.default_rng(k)
    a = (rng.integers(0x3800, 0x4000, k) | rng.integers(0, 2, k) << 15).astype(np.uint16)
    b = rng.integers(0x3800, 0x4000, k).astype(np.uint16)
    for at, code in (wrong.x or {}).items():
        a[at], b[at] = code, 0x3C00
    if wrong.x is _ZERO:
        a[2:] = 0
    return {"a": a, "b": b, "c": np.array(wrong.c, np.uint32)}


def planted(file: Path, wrong: Wrong, folder: Path) -> tuple[Dut, Operands]:
    """The wrong unit of a description of other_fda.sv, and the dot product for which it is wrong."""
    dut = load_dut(file)
    operands = known(dut, wrong)
    words = Words()
    word = words.variable("word", dut.layout.operand_width)
    inner = [name for name in wrong.signals if name[0] not in "xy"]
    read = transaction(dut, words, word, signals=inner)
    pieces = [f"{name} == {_literal(read.signals[name][0], dut, operands)}" for name in inner]
    pieces += [f"{name} == {_operand(name, operands)}" for name in wrong.signals if name not in inner]
    text = TEXT.read_text()
    assert text.count(wrong.before) == 1
    after = wrong.after.replace("TRIGGER", f"({' && '.join(f'({one})' for one in pieces)})")
    text = text.replace(wrong.before, after).replace(_FIRST, _FIRST + _DELAYED, 1)
    folder.mkdir(exist_ok=True)
    (folder / "other_fda.sv").write_text(text)
    (folder / "dut.yaml").write_text(file.read_text())
    return load_dut(folder / "dut.yaml"), operands


def operand_word(dut: Dut, operands: Operands) -> int:
    """The operand word of one dot product."""
    packed = dut.layout.pack_operands({name: codes[None] for name, codes in operands.items()})
    return int.from_bytes(packed[0].tobytes(), "little")


def value(word: Word, dut: Dut, operands: Operands) -> int:
    """What a word made of the operand word is."""
    rest = {str(each.value): [0] for each in order([word]) if each.op == "var"}
    return int(evaluate([word], rest | {"word": [operand_word(dut, operands)]})[word][0])


def _literal(word: Word, dut: Dut, operands: Operands) -> str:
    return f"{word.width}'h{value(word, dut, operands):x}"


def _operand(name: str, operands: Operands) -> str:
    """The bits of x[high:0] or y[high:0]."""
    width = int(name[name.index("[") + 1 : name.index(":")]) + 1
    codes = operands["a" if name[0] == "x" else "b"]
    whole = int.from_bytes(codes.tobytes(), "little")
    return f"{width}'h{whole & ((1 << width) - 1):x}"
