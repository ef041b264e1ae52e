"""The keys of an accumulation plan: what each takes and means. Python's keywords, YAML files, the editors'
schema and the page are all read from here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from golden.errors import nearest
from golden.number.formats import formats
from golden.program.steps import MAX_K

OUT = ("f16", "bf16", "f32", "f64", "s32")
"""The formats that results can have."""
REDUCED = ("f16", "bf16", "f32", "f64", "s32")
ROUNDINGS = ("none", "nearest_even", "toward_zero", "nearest_away")
FUSED = ("promotion", "c")
MOST_K = 1 << 31
MOST_PARTS = 4096
MOST_DEEP = 16
MOST_CUT = 4
"""Parts into which `products` cuts an operand."""
Nested = tuple[Any, ...]
"""Which sums are added to which: numbers, and tuples of such, each added in turn."""

Fail = Callable[[str], Exception]
Schema = dict[str, Any]


@dataclass(frozen=True)
class Check:
    """What a key takes: `read(name, value, fail)` gives the checked value, `schema()` says it to editors.
    Neither reads a spec before it is called: importing this module must work without one."""

    read: Callable[[str, Any, Fail], Any]
    schema: Callable[[], Schema]


def _integer(low: int, high: int) -> Check:
    def read(name: str, value: Any, fail: Fail) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise fail(f"'{name}' is {_shown(value)}, expected an integer from {low} to {high}")
        return value

    return Check(read, lambda: {"type": "integer", "minimum": low, "maximum": high})


def _one_of(words: tuple[str, ...]) -> Check:
    def read(name: str, value: Any, fail: Fail) -> str:
        if not isinstance(value, str) or value not in words:
            raise fail(
                f"'{name}' is {_shown(value)}, expected one of {', '.join(words)}{nearest(str(value), words)}"
            )
        return value

    return Check(read, lambda: {"enum": list(words)})


def _number() -> Check:
    def read(name: str, value: Any, fail: Fail) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise fail(f"'{name}' is {_shown(value)}, expected a finite number")
        return float(value)

    return Check(read, lambda: {"type": "number"})


def _format() -> Check:
    def names() -> Check:
        return _one_of(tuple(formats()))

    return Check(lambda name, value, fail: names().read(name, value, fail), lambda: names().schema())


def _integers(low: int, high: int, count: int | None = None) -> Check:
    one = _integer(low, high)

    def read(name: str, value: Any, fail: Fail) -> tuple[int, ...]:
        many = f"{count}" if count else "a list of"
        if not isinstance(value, (list, tuple)) or (count and len(value) != count):
            raise fail(f"'{name}' is {_shown(value)}, expected {many} integers from {low} to {high}")
        return tuple(one.read(name, each, fail) for each in value)

    of_count = {"minItems": count, "maxItems": count} if count else {}
    return Check(read, lambda: {"type": "array", "items": one.schema(), **of_count})


def _sums(words: tuple[str, ...]) -> Check:
    """One of the words, or a list of numbers and of lists of two or more of them."""

    def ordered(name: str, value: Any, fail: Fail, depth: int) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)) or len(value) < 2 or depth > MOST_DEEP:
            raise fail(
                f"'{name}' has {_shown(value)}, expected {', '.join(words)}, or a list of two numbers or "
                f"lists or more, {MOST_DEEP} deep at most"
            )
        numbers = _integer(0, MOST_PARTS - 1)
        return tuple(
            ordered(name, one, fail, depth + 1)
            if isinstance(one, (list, tuple))
            else numbers.read(name, one, fail)
            for one in value
        )

    def read(name: str, value: Any, fail: Fail) -> str | Nested:
        if isinstance(value, str):
            return str(word.read(name, value, fail))
        found = ordered(name, value, fail, 1)
        if sorted(leaves(found)) != list(range(len(leaves(found)))):
            raise fail(f"'{name}' is {_shown(value)}, expected each of the numbers from 0 on once")
        return found

    word = _one_of(words)
    number = {"type": "integer", "minimum": 0, "maximum": MOST_PARTS - 1}
    one = {"anyOf": [number, {"type": "array", "minItems": 2}]}
    return Check(read, lambda: {"anyOf": [word.schema(), {"type": "array", "items": one, "minItems": 2}]})


def leaves(order: Nested) -> tuple[int, ...]:
    """The sums in the order in which they come."""
    return tuple(leaf for one in order for leaf in ([one] if isinstance(one, int) else leaves(one)))


def _pairs(most: int) -> Check:
    """Two pairs of numbers or more, each of 0 to `most` - 1."""
    pair = _integers(0, most - 1, 2)

    def read(name: str, value: Any, fail: Fail) -> tuple[tuple[int, ...], ...]:
        if not isinstance(value, (list, tuple)) or not 2 <= len(value) <= most * most:
            raise fail(
                f"'{name}' is {_shown(value)}, expected a list of two to {most * most} pairs of numbers"
            )
        found = tuple(pair.read(name, each, fail) for each in value)
        if len(set(found)) < len(found):
            raise fail(f"'{name}' is {_shown(value)}, expected each pair once")
        return found

    many = {"minItems": 2, "maxItems": most * most}
    return Check(read, lambda: {"type": "array", "items": pair.schema(), **many})


def _words(words: tuple[str, ...]) -> Check:
    one = _one_of(words)

    def read(name: str, value: Any, fail: Fail) -> tuple[str, ...]:
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, (list, tuple)):
            raise fail(f"'{name}' is {_shown(value)}, expected a list of {', '.join(words)}")
        found = tuple(one.read(name, each, fail) for each in given)
        return tuple(word for word in words if word in found)

    return Check(read, lambda: {"anyOf": [one.schema(), {"type": "array", "items": one.schema()}]})


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} too deep to show"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _key(check: Check, default: Any, takes: str, meaning: str) -> Any:
    return field(default=default, metadata={"check": check, "takes": takes, "meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class Options:
    """All keys of a plan beside its instruction. None: see the key's meaning."""

    a: str | None = _key(_format(), None, "format", "format of A's codes; default: the instruction's")
    b: str | None = _key(_format(), None, "format", "the same of B")
    convert: str = _key(
        _one_of(ROUNDINGS),
        "nearest_even",
        " | ".join(ROUNDINGS),
        "how A and B of another format are rounded to the instruction's; `none` hands f32 codes to tf32 as "
        "they are, and the unit drops the low bits",
    )
    products: tuple[tuple[int, ...], ...] | None = _key(
        _pairs(MOST_CUT),
        None,
        "list of pairs",
        "A and B in f32 are cut into parts of the instruction's format: part 0 is the number rounded by "
        "`convert`, part 1 what it lacks, rounded, and so on (of tf32 the last part is not rounded: the unit "
        "drops its low bits). In each tile of K each [part of A, part of B] is multiplied, in this order, in "
        "one chain, where a NaN before the last pair becomes 0; its sum is promoted",
    )
    tile_k: int | None = _key(
        _integer(1, MOST_K),
        None,
        "integer",
        "elements of K that a kernel takes at once: what `slices` and `order` divide, and parts are "
        "multiples of; default: the instruction's k times `slices`",
    )
    order: tuple[int, ...] | None = _key(
        _integers(0, MAX_K * 64 - 1),
        None,
        "list of integers",
        "element of a tile that stands at each place; default: as they come",
    )
    slices: int = _key(
        _integer(1, 1024),
        1,
        "integer",
        "warps that share each tile of K, every one with a chain of its own; their sums are added in "
        "`reduce`'s order in the accumulator's format",
    )
    promote: int | None = _key(
        _integer(1, MOST_K),
        None,
        "integer",
        "elements of K after which a sum, begun at zero, is added to an f32 accumulator (f64 for f64); each "
        "part and each slice counts its own from its first on; default: one chain",
    )
    split_k: int = _key(
        _integer(1, MOST_PARTS), 1, "integer", "parts of K that are computed apart, each of as many tiles"
    )
    part: int | None = _key(
        _integer(1, MOST_K), None, "integer", "elements of K of a part, instead of `split_k`"
    )
    parts: tuple[int, ...] | None = _key(
        _integers(1, MOST_K),
        None,
        "list of integers",
        "elements of K of each part, in their order, instead of `part`; K is their sum",
    )
    reduce: str | tuple[Any, ...] = _key(
        _sums(("ascending", "descending", "tree")),
        "ascending",
        "ascending | descending | tree | list",
        "order in which the sums of parts (and of slices) are added; tree: neighbours in pairs; a list as "
        "[0, 2, [1, 3]]: in turn as it stands there, inner lists first, parts or slices numbered from 0",
    )
    reduce_format: str | None = _key(
        _one_of(REDUCED),
        None,
        " | ".join(REDUCED),
        "format to which the sums of parts, and each sum of them, are rounded, also where all of K is one "
        "part; default: the accumulator's",
    )
    edge: str = _key(
        _one_of(("zeros", "first", "refused")),
        "zeros",
        "zeros | first | refused",
        "a part of K that tiles do not divide, each part by itself: zeros fill the end of its last tile, or "
        "of its first one, which then has what the others leave, as CUTLASS does it; or it is an error",
    )
    scales: str = _key(
        _one_of(("none", "tensor", "row", "block")),
        "none",
        "none | tensor | row | block",
        "f32 factors of A and B: one each, whose product multiplies the sum; one for each column of B and "
        "row of A, which multiply it in that order; one for each block, which multiply the sums that are "
        "promoted in `scale_order`",
    )
    scale_a_block: tuple[int, ...] = _key(
        _integers(1, MOST_K, 2), (1, 128), "[rows, k]", "extent of a block of A that has a scale"
    )
    scale_b_block: tuple[int, ...] = _key(
        _integers(1, MOST_K, 2), (128, 128), "[k, columns]", "extent of a block of B that has a scale"
    )
    scale_order: str = _key(
        _one_of(("product", "a_first")),
        "product",
        "product | a_first",
        "scales of blocks: the sum that is promoted is multiplied by their product; or by A's, and the "
        "rounded result by B's",
    )
    alpha: float = _key(_number(), 1.0, "number", "f32 factor of the sum (f64 for f64)")
    beta: float = _key(_number(), 1.0, "number", "f32 factor of C (f64 for f64)")
    c: str = _key(
        _one_of(("after", "seed")),
        "after",
        "after | seed",
        "where C enters: after the whole sum, as in BLAS, or as the c of the first step",
    )
    c_format: str | None = _key(
        _format(), None, "format", "format of C's codes; default: `out`, of a seed c's"
    )
    bias: str = _key(
        _one_of(("none", "rows", "columns")),
        "none",
        "none | rows | columns",
        "one more addend of each row or column of D, in the format `out`, added last",
    )
    activation: str = _key(
        _one_of(("none", "relu", "masked")),
        "none",
        "none | relu | masked",
        "what becomes of the sum before it is rounded to `out`; relu: what is below zero, and -0, is +0, a "
        "NaN stays one; masked: times 1, or times 0 where it is -infinity, which makes a NaN",
    )
    fma: tuple[str, ...] = _key(
        _words(FUSED),
        (),
        f"list of {', '.join(FUSED)}",
        "where a product and the sum after it are rounded once: a block's scale (with `a_first` B's) times "
        "the sum that is promoted; alpha times the sum, before beta times C is added",
    )
    out: str | None = _key(
        _one_of(OUT),
        None,
        " | ".join(OUT),
        "format of the results, rounded to nearest even; default: the instruction's d",
    )


KEYS = {one.name: one.metadata for one in fields(Options)}
"""What each key takes and means, by name."""


def check_options(given: dict[str, Any], fail: Callable[[str, str], Exception]) -> Options:
    """The options of checked values; `fail(message, key)` makes the error. None stands for the default."""
    for name in given:
        if name not in KEYS:
            raise fail(f"unknown key '{name}', expected one of {', '.join(KEYS)}{nearest(name, KEYS)}", name)

    def checked(name: str, value: Any) -> Any:
        return KEYS[name]["check"].read(name, value, lambda message: fail(message, name))

    return Options(**{name: checked(name, value) for name, value in given.items() if value is not None})
