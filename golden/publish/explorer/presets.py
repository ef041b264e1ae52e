"""Operands that show something, for the explorer's list: rounding as a textbook has it, and the cases of the
studies.

A preset is data: the page offers it for every unit whose formats hold its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from golden import studies
from golden.number.formats import get_format
from golden.studies import cdna3_rounding, fp8_accumulation, product_overflow, tf32_nan
from golden.studies.published import published


def presets() -> list[dict[str, Any]]:
    """The presets.

    Each: `name`; `why`, a sentence; `a` and `b`, the first elements as text that the page reads (a number, or
    0x... for a code); `c`; `formats`, operands that need a certain format; `rounded`, whether numbers may be
    rounded to their formats.
    """
    return [*_textbook(), _lost(), *_overflows(), _downward(), *_nans()]


def _preset(name: str, why: str, a: Iterable[Any], b: Iterable[Any], c: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "why": why, "a": [*map(str, a)], "b": [*map(str, b)], "c": str(c)} | more


def _textbook() -> Iterator[dict[str, Any]]:
    """For each format of a result, numbers at its last place."""
    for name in ("f16", "bf16", "f32", "f64"):
        places = get_format(name).fraction_bits
        high, low = (places + 1) // 2, places + 1 - (places + 1) // 2
        half = [f"2^-{high}"], [f"2^-{low}"]
        only = {"formats": {"d": name}}
        yield _preset("Tie, even below", f"1 + 2^-{places + 1} lies halfway; 1 is even.", *half, 1, **only)
        odd = f"{(1 << places) + 1}*2^-{places}"
        why = f"1 + 3*2^-{places + 1} lies halfway between an odd and an even result."
        yield _preset("Tie, even above", why, *half, odd, **only)
        why = "Half a unit in the last place of 1, and a little more in a second product."
        yield _preset("Just above a tie", why, [*half[0], "2^-14"], [*half[1], "2^-14"], 1, **only)
    why = "x - x + y: what is left of a small product when large ones cancel."
    for top, low in ((12, 12), (7, 6), (2, 0)):
        yield _preset(
            f"Cancellation, 2^{2 * top} against 2^{-2 * low}",
            why,
            [f"2^{top}", f"-2^{top}", f"2^{-low}"],
            [f"2^{top}", f"2^{top}", f"2^{-low}"],
            0,
        )
    why = "Small products one after the other onto a large c: each alone is lost, together they are not."
    yield _preset("Swamping", why, ["2^-6"] * 8, ["2^-6"] * 8, "2^12")


def _lost() -> dict[str, Any]:
    """Each small product alone lies below the 13 fraction bits that Hopper and Ada keep for FP8."""
    small = ["2^-7"] * 31
    why = f"{studies.question(fp8_accumulation.NAME)} {studies.source(fp8_accumulation.NAME)}."
    return _preset("1 + 31 * 2^-14", why, [1, *small], [1, *small], 0)


def _overflows() -> Iterator[dict[str, Any]]:
    for name, (a, b, c) in product_overflow.CASES.items():
        why = f"{studies.question(product_overflow.NAME)} {studies.source(product_overflow.NAME)}."
        yield _preset(name, why, map(float.hex, a), map(float.hex, b), c.hex())


def _downward() -> dict[str, Any]:
    case = published(cdna3_rounding.NAME)["case"]
    why = f"{studies.question(cdna3_rounding.NAME)} {studies.source(cdna3_rounding.NAME)}."
    name = "2048 * 2048 - 2048 * 2048 - 0.000001"
    return _preset(name, why, case["a"], case["b"], repr(case["c"]), rounded=True)


def _nans() -> Iterator[dict[str, Any]]:
    for word, what in tf32_nan.WORDS.items():
        why = f"{what[0].upper()}{what[1:]}, times 1. {studies.source(tf32_nan.NAME)}."
        yield _preset(f"TF32 word {word:#010x}", why, [hex(word)], [1], 0, formats={"a": "tf32"})
