"""Layout formulas against the PTX ISA's own, element by element, and the errors of bad specs and operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from golden.errors import DTypeError, OperandError, ShapeError, SpecError
from golden.registers.layouts import Layout, evaluate, family, parse_family, storage_dtype
from golden.yamlfile import parse

Rule = Callable[[int, int], tuple[int, int]]


def build(name: str, operand: str, bits: int, **parameters: int) -> Layout:
    defaults: dict[str, Any] = {
        "m": 16,
        "n": 8,
        "k": 16,
        "blocks": 1,
        "sparse": 0,
        "a_bits": bits,
        "a_col": 0,
        "b_row": 0,
    }
    layout = family(name).build(operand, container_bits=bits, **{**defaults, **parameters})
    assert layout is not None
    return layout


def check(layout: Layout, elements: int, rule: Rule) -> None:
    """Compares with `rule(laneid, i) -> (row, col)`, i counting the lane's elements from low to high."""
    places = layout.coordinates()
    width = layout.elements_per_register
    assert (layout.lanes, layout.registers * width) == (32, elements)
    for lane in range(32):
        for i in range(elements):
            at = (lane, i // width, i % width)
            assert (places["row"][at], places["col"][at]) == rule(lane, i), (lane, i)


# PTX ISA 9.1, 9.7.14.5.1 to 9.7.14.5.4: the formulas below each figure, as printed there.


def figure_46(laneid: int, i: int) -> tuple[int, int]:
    row = laneid % 4 if laneid < 16 else (laneid % 4) + 4
    col = i
    return row, col


def figure_47(laneid: int, i: int) -> tuple[int, int]:
    row = i % 4 if laneid < 16 else (i % 4) + 4
    col = laneid % 4
    return row, col


def figure_48(laneid: int, i: int) -> tuple[int, int]:
    row = laneid % 4
    col = i if laneid < 16 else i + 4
    return row, col


def figure_49(laneid: int, i: int) -> tuple[int, int]:
    row = i
    col = laneid % 4 if laneid < 16 else (laneid % 4) + 4
    return row, col


def figure_50(laneid: int, i: int) -> tuple[int, int]:
    row = laneid % 4 if laneid < 16 else (laneid % 4) + 4
    col = i
    return row, col


def figures_51_and_52(laneid: int, i: int) -> tuple[int, int]:
    x = (laneid & 0b1) + (i & 0b10)
    row = x if laneid < 16 else x + 4
    col = (i & 0b100) + (laneid & 0b10) + (i & 0b1)
    return row, col


def figure_53(laneid: int, i: int) -> tuple[int, int]:
    row = laneid >> 2
    col = laneid % 4
    return row, col


def figure_54(laneid: int, i: int) -> tuple[int, int]:
    row = laneid % 4
    col = laneid >> 2
    return row, col


def figure_55(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = group_id
    col = (thread_id_in_group * 2) + (i & 0x1)
    return row, col


def figure_56(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = group_id
    col = (thread_id_in_group * 4) + i
    return row, col


def figure_57(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = (thread_id_in_group * 4) + i
    col = group_id
    return row, col


def figure_58(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = group_id
    col = (thread_id_in_group * 2) + i
    return row, col


def figure_59(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = group_id
    col = (thread_id_in_group * 8) + i
    return row, col


def figure_60(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = (thread_id_in_group * 8) + i
    col = group_id
    return row, col


def figure_61(laneid: int, i: int) -> tuple[int, int]:
    group_id = laneid >> 2
    thread_id_in_group = laneid % 4
    row = group_id
    col = (thread_id_in_group * 2) + i
    return row, col


FIGURES: list[tuple[str, str, str, int, dict[str, int], int, Rule]] = [
    ("46", "mma_m8n8k4_f16", "a", 16, {"m": 8, "k": 4, "a_col": 0}, 4, figure_46),
    ("47", "mma_m8n8k4_f16", "a", 16, {"m": 8, "k": 4, "a_col": 1}, 4, figure_47),
    ("48", "mma_m8n8k4_f16", "b", 16, {"m": 8, "k": 4, "b_row": 1}, 4, figure_48),
    ("49", "mma_m8n8k4_f16", "b", 16, {"m": 8, "k": 4, "b_row": 0}, 4, figure_49),
    ("50", "mma_m8n8k4_f16", "c", 16, {"m": 8, "k": 4}, 8, figure_50),
    ("51-52", "mma_m8n8k4_f16", "d", 32, {"m": 8, "k": 4}, 8, figures_51_and_52),
    ("53", "mma", "a", 64, {"m": 8, "k": 4}, 1, figure_53),
    ("54", "mma", "b", 64, {"m": 8, "k": 4}, 1, figure_54),
    ("55", "mma", "c", 64, {"m": 8, "k": 4}, 2, figure_55),
    ("56", "mma", "a", 8, {"m": 8, "k": 16}, 4, figure_56),
    ("57", "mma", "b", 8, {"m": 8, "k": 16}, 4, figure_57),
    ("58", "mma", "c", 32, {"m": 8, "k": 16}, 2, figure_58),
    ("59", "mma", "a", 4, {"m": 8, "k": 32}, 8, figure_59),
    ("60", "mma", "b", 4, {"m": 8, "k": 32}, 8, figure_60),
    ("61", "mma", "d", 32, {"m": 8, "k": 32}, 2, figure_61),
]


@pytest.mark.parametrize("case", FIGURES, ids=lambda case: f"figure {case[0]}")
def test_ptx_figure(case: tuple[str, str, str, int, dict[str, int], int, Rule]) -> None:
    _, name, operand, bits, parameters, elements, rule = case
    check(build(name, operand, bits, **parameters), elements, rule)


def test_quad_pairs_own_their_block() -> None:
    """The table of 9.7.14.5.1: computation q has lanes 4q..4q+3 and 16+4q..16+4q+3."""
    for operand, bits in (("a", 16), ("b", 16), ("c", 16), ("c", 32)):
        layout = build("mma_m8n8k4_f16", operand, bits, m=8, k=4)
        assert layout.matrix_shape[0] == 4
        block = layout.coordinates()["block"]
        for q, lanes in enumerate(
            (
                (0, 1, 2, 3, 16, 17, 18, 19),
                (4, 5, 6, 7, 20, 21, 22, 23),
                (8, 9, 10, 11, 24, 25, 26, 27),
                (12, 13, 14, 15, 28, 29, 30, 31),
            )
        ):
            assert (block[list(lanes)] == q).all()


# The m16n8 shapes, in the words of PTX ISA 9.7.14.5.7 to 9.7.14.5.14: which elements are on the lower rows
# (group_id) and where the second half of K begins.


def a_rule(per_register: int, split: int, lower: Callable[[int], bool]) -> Rule:
    def rule(laneid: int, i: int) -> tuple[int, int]:
        col = (laneid % 4) * per_register + (i & (per_register - 1))
        return (laneid >> 2) + (0 if lower(i) else 8), col + (0 if i < split else 4 * per_register)

    return rule


def b_rule(per_register: int) -> Rule:
    def rule(laneid: int, i: int) -> tuple[int, int]:
        row = (laneid % 4) * per_register + (i & (per_register - 1))
        return row + (i // per_register) * 4 * per_register, laneid >> 2

    return rule


A_CASES: list[tuple[int, int, int, Rule]] = [
    (32, 4, 2, a_rule(1, 2, lambda i: i == 0)),
    (32, 8, 4, a_rule(1, 2, lambda i: i in (0, 2))),
    (64, 4, 2, a_rule(1, 2, lambda i: i == 0)),
    (64, 8, 4, a_rule(1, 2, lambda i: i in (0, 2))),
    (16, 8, 4, a_rule(2, 4, lambda i: i < 2)),
    (16, 16, 8, a_rule(2, 4, lambda i: 0 <= i < 2 or 4 <= i < 6)),
    (8, 16, 8, a_rule(4, 8, lambda i: i < 4)),
    (8, 32, 16, a_rule(4, 8, lambda i: 0 <= i < 4 or 8 <= i < 12)),
    (4, 32, 16, a_rule(8, 16, lambda i: i < 8)),
    (4, 64, 32, a_rule(8, 16, lambda i: 0 <= i < 8 or 16 <= i < 24)),
    (1, 128, 64, a_rule(32, 64, lambda i: i < 32)),
    (1, 256, 128, a_rule(32, 64, lambda i: 0 <= i < 32 or 64 <= i < 96)),
]


@pytest.mark.parametrize("bits, k, elements, rule", A_CASES)
def test_m16n8_multiplicands(bits: int, k: int, elements: int, rule: Rule) -> None:
    check(build("mma", "a", bits, k=k), elements, rule)
    check(build("mma", "b", bits, k=k), elements // 2, b_rule(max(32, bits) // bits))


def test_m16n8k16_f64_walks_k_in_fours() -> None:
    check(
        build("mma", "a", 64, k=16),
        8,
        lambda laneid, i: ((laneid >> 2) + 8 * (i % 2), laneid % 4 + 4 * (i // 2)),
    )


@pytest.mark.parametrize("bits, registers", [(16, 2), (32, 4), (64, 4)])
def test_m16n8_accumulator(bits: int, registers: int) -> None:
    layout = build("mma", "d", bits)
    assert layout.registers == registers
    check(layout, 4, lambda laneid, i: ((laneid >> 2) + (0 if i < 2 else 8), (laneid % 4) * 2 + (i & 1)))


def test_elements_lie_low_to_high() -> None:
    a = np.arange(256, dtype=np.uint16).reshape(16, 16)
    registers = build("mma", "a", 16).pack(a)
    assert registers.dtype == np.uint32 and registers.shape == (32, 4)
    assert registers[5, 0] == int(a[1, 2]) | int(a[1, 3]) << 16
    assert registers[5, 3] == int(a[9, 10]) | int(a[9, 11]) << 16


# The evaluator.


@pytest.mark.parametrize(
    "formula, value",
    [
        ("7 // 2 + 7 % 4 * 2", 9),
        ("1 << 4 | 3", 19),
        ("29 >> 2 & 3", 3),
        ("2 if x == 5 else 3", 2),
        ("1 <= x < 5", 0),
        ("x == 5 and x > 4 or x == 0", 1),
        ("4*(x >= 5)", 4),
        ("x - 7", -2),
    ],
)
def test_evaluate(formula: str, value: int) -> None:
    assert evaluate(formula, {"x": 5}) == value
    assert np.all(evaluate(formula, {"x": np.full(3, 5)}) == value)


def test_evaluate_is_elementwise() -> None:
    x = np.arange(4)
    assert evaluate("x if x & 1 else 8", {"x": x}).tolist() == [8, 1, 8, 3]
    assert evaluate("1 <= x < 3", {"x": x}).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    "formula",
    [
        "f(x)",
        "x.real",
        "x[0]",
        "__import__('os')",
        "1.5",
        "'a'",
        "x **2",
        "lambda: 1",
        "x +",
        "",
        "y",
        "x // 0",
        "x % 0",
        "x / 2",
        "True",
        "not x",
        "~x",
        "x is x",
        "1 << -1",
    ],
)
def test_evaluate_refuses(formula: str) -> None:
    with pytest.raises(SpecError, match="formula"):
        evaluate(formula, {"x": 5})


# Errors.


def test_bad_operands() -> None:
    layout = build("mma", "a", 16)
    with pytest.raises(ShapeError, match=r"\(\.\.\., 16, 16\)"):
        layout.pack(np.zeros((16, 8), np.uint16))
    with pytest.raises(ShapeError):
        layout.pack(np.uint16(0))
    with pytest.raises(ShapeError, match=r"\(\.\.\., 32, 4\)"):
        layout.unpack(np.zeros((32, 3), np.uint32))
    for dtype in (np.int16, np.uint32, np.float16):
        with pytest.raises(DTypeError, match="uint16"):
            layout.pack(np.zeros((16, 16), dtype))
    with pytest.raises(DTypeError, match="uint32"):
        layout.unpack(np.zeros((32, 4), np.uint64))


@pytest.mark.parametrize("bits, k", [(4, 64), (1, 256)])
def test_too_wide_an_element(bits: int, k: int) -> None:
    matrix = np.zeros((16, k), np.uint8)
    matrix[3, 3] = 1 << bits
    with pytest.raises(OperandError, match=f"{bits} bits"):
        build("mma", "a", bits, k=k).pack(matrix)


def test_coordinates_are_the_callers_own() -> None:
    layout = build("mma", "a", 16)
    layout.coordinates()["row"][:] = 0
    assert layout.coordinates()["row"].max() == 15


@pytest.mark.parametrize("bits, dtype", [(1, "u1"), (6, "u1"), (8, "u1"), (16, "u2"), (32, "u4"), (64, "u8")])
def test_storage_dtype(bits: int, dtype: str) -> None:
    assert storage_dtype(bits) == np.dtype(dtype)


def test_shape_without_a_rule() -> None:
    assert family("mma").build("a", container_bits=16, m=16, n=8, k=12) is None
    assert family("mma").build("a", container_bits=16, m=8, n=8, k=16) is None
    with pytest.raises(SpecError, match="operand 'x'"):
        family("mma").build("x", container_bits=16, m=16, n=8, k=16)
    with pytest.raises(
        SpecError, match="unknown layout 'nowhere', expected one of amx_tile, avx512_dot, block_scale"
    ):
        family("nowhere")


SPEC = """\
layout: toy
title: a toy
source: none
evidence: {kind: derived}
lanes: 4
operands:
  a:
    - {when: "1", shape: ["2", "2"], registers: "1", row: "L & 1", col: "L >> 1"}
"""


def toy(old: str = "", new: str = "") -> Any:
    assert old in SPEC
    return parse_family(parse(SPEC.replace(old, new), "toy.yaml")).build("a", container_bits=32)


def test_toy_spec() -> None:
    assert toy().pack(np.array([[1, 2], [3, 4]], np.uint32)).tolist() == [[1], [3], [2], [4]]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("title", "titel", "toy.yaml:1: key 'title' is missing"),
        ("lanes: 4", "lanes: 0", "toy.yaml:5: key 'lanes' is 0"),
        ("kind: derived", "kind: guessed", "toy.yaml:4: .*guessed"),
        ('"2", "2"', '"2"', "toy.yaml:8: key 'shape'"),
        ("L >> 1", "L >>", "toy.yaml:8: key 'col' is 'L >>'"),
        ("col:", "cols:", "toy.yaml:8: key 'col' is missing"),
        ("when: ", "extra: 1, when: ", "toy.yaml:8: unknown key 'extra'"),
    ],
)
def test_wrong_spec_points_at_the_line(old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        toy(old, new)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("L >> 1", "L >> 0", "col outside"),
        ("L & 1", "0", "exactly once"),
        ("L & 1", "q & 1", "unknown name 'q'"),
    ],
)
def test_formulas_that_do_not_place_every_element(old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        toy(old, new).coordinates()
