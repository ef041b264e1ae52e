"""Bits of operands that a box does not read are found, said and become its formats; no others are."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.errors import bits_text
from golden.identify.blackbox.ignored_bits import IgnoredBits, find_ignored_bits
from golden.unit import FunctionUnit

VOLTA = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")


def rng(*numbers: int) -> np.random.Generator:
    return np.random.default_rng(numbers)


def asked(answer: Callable[..., Any], asks: int = 20_000, like: Any = VOLTA) -> IgnoredBits:
    return find_ignored_bits(FunctionUnit.like(like, answer), asks, 60, rng)


def without_low(a: Any, b: Any, c: Any) -> Any:
    return VOLTA.dot(a=a & np.uint16(0xFFFC), b=b, c=c)


def stuck(a: Any, b: Any, c: Any) -> Any:
    held = a.copy()
    held[:, 2] &= np.uint16(0xFFF7)
    return VOLTA.dot(a=held, b=b, c=c)


def c_cut(a: Any, b: Any, c: Any) -> Any:
    return VOLTA.dot(a=a, b=b, c=c & np.uint32(0xFFFF0000))


def c_rounded(a: Any, b: Any, c: Any) -> Any:
    """c rounded to BF16 to the nearest, ties to even: its low bits are read, and show only at ties."""
    up = np.uint32(0x7FFF) + ((c >> np.uint32(16)) & np.uint32(1))
    return VOLTA.dot(a=a, b=b, c=np.where(c & 0x7F800000 == 0x7F800000, c, (c + up) & np.uint32(0xFFFF0000)))


@pytest.mark.parametrize("asks", [8_000, 400_000])
@pytest.mark.parametrize(
    ("answer", "said", "formats"),
    [
        (VOLTA.dot, (), {}),
        (without_low, ("bits 0 and 1 of a are not read: 0 of",), {"a": 2}),
        (stuck, ("bit 3 of a[2] is not read: 0 of",), {}),
        (c_cut, ("bits 0 to 15 of c are not read: 0 of",), {"c": 16}),
        (c_rounded, (), {}),
    ],
)
def test_what_is_not_read_is_said(
    answer: Any, said: tuple[str, ...], formats: dict[str, int], asks: int
) -> None:
    found = asked(answer, asks)
    assert len(found.said) == len(said) and all(map(str.startswith, found.said, said)), found.said
    assert {name: fmt.ignored_low for name, fmt in found.formats.items()} == formats
    assert found.queries < asks / 4


@lru_cache(maxsize=1)
def some() -> dict[str, Any]:
    return stimuli.generate(VOLTA, "narrow", 200, rng(1))


def test_questions_carry_other_bits_where_a_format_ignores_them() -> None:
    seen: list[Any] = []

    def watched(a: Any, b: Any, c: Any) -> Any:
        seen.append(a)
        return without_low(a, b, c)

    unit = asked(watched).unit
    given = some()["a"] & np.uint16(0xFFFC)
    answers = unit.dot(**some() | {"a": given})
    assert ((seen[-1] ^ given) < 4).all() and len(np.unique(seen[-1] & 3)) == 4
    assert (answers == without_low(**some())).all()
    for name in ("m16n8k16.row.col.s32.s8.s8.s32", "m16n8k8.row.col.f32.tf32.tf32.f32"):
        sound = golden.instruction("ampere", f"mma.sync.aligned.{name}")
        assert asked(sound.dot, like=sound).said == ()


def test_a_box_that_reads_a_bit_seldom_is_not_explained_without_it() -> None:
    """A bit that is read only with one code of b: no question here turns it there."""

    def answer(a: Any, b: Any, c: Any) -> Any:
        return VOLTA.dot(a=np.where(b == 0x3555, a, a & np.uint16(0xFFFE)), b=b, c=c)

    unit = asked(answer).unit
    b = np.full_like(some()["b"], 0x3555)
    one = unit.dot(**some() | {"b": b})
    assert (one != answer(**some() | {"b": b, "a": some()["a"] & np.uint16(0xFFFE)})).any()


@pytest.mark.long
def test_a_box_without_low_bits_is_explained_with_a_format(tmp_path: Path) -> None:
    found = golden.dissect(
        without_low, {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}, 4, asks=8_000, seconds=60
    )
    assert found.explains and found.yaml is not None
    assert found.not_read[0].startswith("bits 0 and 1 of a are not read")
    assert "Bits 0 and 1 of a are not read" in found.report and found.as_dict()["not_read"]
    (tmp_path / "unit.yaml").write_text(found.yaml, "utf-8")
    again = golden.load_instruction(tmp_path / "unit.yaml")
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(VOLTA, kind, 40, rng(9, index))
        assert (again.dot(**operands) == without_low(**operands)).all()


def test_bits_are_named_in_runs() -> None:
    assert [bits_text(one) for one in ((3,), (0, 1), (0, 1, 2, 3), (0, 1, 2, 7))] == [
        *("bit 3", "bits 0 and 1", "bits 0 to 3", "bits 0 to 2 and 7")
    ]


def test_bits_that_a_sum_cuts_away_are_read_where_they_make_a_nan() -> None:
    """No sum keeps the lowest ten bits of c; with an exponent of ones they decide NaN or infinity."""
    formats = "{a: f16, b: f16, c: f32, d: f32}"
    text = f"unit: cut\nshape: {{k: 4}}\nformats: {formats}\nprogram: [{{fda: {{fraction_bits: 13}}}}]\n"
    cut = build_instruction(yamlfile.parse(text))
    for asks in (8_000, 400_000):
        assert asked(cut.dot, asks, cut).said == ()
