"""The keys of an accumulation plan: what each takes and means. Python's keywords, YAML files, the editors'
schema and the page are all read from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from golden.errors import nearest
from golden.number.formats import formats
from golden.program.steps import MAX_K
from golden.values import Choice, Fail, Integer, Key, Many, Number, Schema, Value, shown

OUT = ("f16", "bf16", "f32", "f64", "s32")
"""The formats that results can have."""
REDUCED = ("f16", "bf16", "f32", "f64", "s32")
ROUNDINGS = ("none", "nearest_even", "toward_zero", "nearest_away")
FUSED = ("promotion", "c")
MOST_K = 1 << 31
MOST_PARTS = 4096  # slices or parts that K is cut into
MOST_DEEP = 16  # levels of nested sums: a binary tree of 65536 terms
MOST_CUT = 4
"""Parts into which `products` cuts an operand."""
Nested = tuple[Any, ...]
"""Which sums are added to which: numbers, and tuples of such, each added in turn."""

_TERM = Integer(0, MOST_PARTS - 1)
"""The number of a part or of a slice."""


@dataclass(frozen=True)
class Sums(Value):
    """Which sums are added to which: a word, or a list of numbers and of lists of two or more of them."""

    words: tuple[str, ...]

    def _expected(self) -> str:
        lists = f"a list of two numbers or lists or more, {MOST_DEEP} deep at most"
        return f"one of {', '.join(self.words)}, or {lists}"

    def _takes(self) -> str:
        return f"{Choice(self.words).takes}, or a list"

    def schema(self) -> Schema:
        """See Value."""
        one = {"anyOf": [_TERM.schema(), {"type": "array", "minItems": 2}]}
        return {"anyOf": [{"enum": list(self.words)}, {"type": "array", "items": one, "minItems": 2}]}

    def _check(self, value: Any, fail: Fail, verb: str) -> str | Nested:
        if isinstance(value, str):
            return str(Choice(self.words).check(value, fail, verb))
        found = self._nested(value, fail, 1)
        if sorted(leaves(found)) != list(range(len(leaves(found)))):
            raise fail(f"{verb} {_in_full(value)}, expected each of the numbers from 0 on once")
        return found

    def _nested(self, value: Any, fail: Fail, depth: int) -> Nested:
        if not isinstance(value, (list, tuple)) or len(value) < 2 or depth > MOST_DEEP:
            raise fail(f"{'is' if depth == 1 else 'holds'} {_in_full(value)}, expected {self.expected}")
        return tuple(
            self._nested(one, fail, depth + 1)
            if isinstance(one, (list, tuple))
            else _TERM.check(one, fail, "holds")
            for one in value
        )


def _in_full(value: Any) -> str:
    """A list as it is written, where it is short."""
    try:
        return shown(repr(value)).strip("'\"")
    except RecursionError:
        return "a list too deep to show"


def leaves(order: Nested) -> tuple[int, ...]:
    """The sums in the order in which they come."""
    return tuple(leaf for one in order for leaf in ([one] if isinstance(one, int) else leaves(one)))


def _key(value: Value, default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"value": value, "meaning": meaning})


_FORMAT = Choice(known=formats, what="a format")
_MANY_OF_K = Integer(1, MOST_K)
_PAIRS = Many(
    Many(Integer(0, MOST_CUT - 1), 2, 2),
    2,
    MOST_CUT * MOST_CUT,
    different=True,
    what=f"a list of 2 to {MOST_CUT * MOST_CUT} different pairs of numbers from 0 to {MOST_CUT - 1}",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """All keys of a plan without its instruction. None: see the key's meaning."""

    a: str | None = _key(_FORMAT, None, "the format of A's codes; default: the instruction's")
    b: str | None = _key(_FORMAT, None, "the same for B")
    convert: str = _key(
        Choice(ROUNDINGS),
        "nearest_even",
        "how A and B are rounded if their format is not the instruction's; `none` passes f32 codes to tf32 "
        "unchanged, and the unit drops the low bits",
    )
    products: tuple[tuple[int, ...], ...] | None = _key(
        _PAIRS,
        None,
        "A and B in f32 are split into parts of the instruction's format: part 0 is the number rounded by "
        "`convert`, part 1 the rounded remainder, and so on (the last part for tf32 is not rounded: the "
        "unit drops its low bits). In each tile of K every [part of A, part of B] is multiplied, in this "
        "order and in one chain; a NaN before the last pair becomes 0. The sum is promoted",
    )
    tile_k: int | None = _key(
        _MANY_OF_K,
        None,
        "elements of K that a kernel takes at once; `slices` and `order` divide this tile, and parts are "
        "multiples of it; default: the instruction's k times `slices`",
    )
    order: tuple[int, ...] | None = _key(
        Many(Integer(0, MAX_K * 64 - 1)),
        None,
        "for each place of a tile, the element that stands there; default: ascending",
    )
    slices: int = _key(
        Integer(1, MOST_PARTS),
        1,
        "how many warps share each tile of K, each with its own chain; their sums are added in the order "
        "of `reduce`, in the accumulator's format",
    )
    promote: int | None = _key(
        _MANY_OF_K,
        None,
        "after this many elements of K, the sum is added to an f32 accumulator (f64 for f64) and restarts "
        "at zero; each part and each slice counts from its own first element; default: one chain",
    )
    split_k: int = _key(
        Integer(1, MOST_PARTS),
        1,
        "how many parts of K are computed separately, each with the same number of tiles",
    )
    part: int | None = _key(_MANY_OF_K, None, "elements of K in each part, instead of `split_k`")
    parts: tuple[int, ...] | None = _key(
        Many(_MANY_OF_K),
        None,
        "elements of K in each part, as a list, instead of `part`; K is their sum",
    )
    reduce: str | tuple[Any, ...] = _key(
        Sums(("ascending", "descending", "tree")),
        "ascending",
        "the order in which the sums of parts (and of slices) are added. `tree`: neighbours in pairs; a "
        "list such as [0, 2, [1, 3]]: in this order, inner lists first, parts or slices numbered from 0",
    )
    reduce_format: str | None = _key(
        Choice(REDUCED),
        None,
        "the format to which the sum of each part, and each sum of these, is rounded, even if K is one "
        "part; default: the accumulator's",
    )
    edge: str = _key(
        Choice(("zeros", "first", "refused")),
        "zeros",
        "what happens if tiles do not divide a part of K: zeros fill the end of its last tile (`zeros`), "
        "or of its first tile, which then takes the remainder, as CUTLASS does (`first`); or it is an "
        "error (`refused`)",
    )
    scales: str = _key(
        Choice(("none", "tensor", "row", "block")),
        "none",
        "f32 factors of A and B. `tensor`: one each, and their product multiplies the sum; `row`: one for "
        "each column of B and row of A, which multiply it in that order; `block`: one for each block, "
        "which multiply the promoted sums in `scale_order`",
    )
    scale_a_block: tuple[int, ...] = _key(
        Many(_MANY_OF_K, 2, 2, what="[rows, k]: 2 integers"),
        (1, 128),
        "the size of a block of A with one scale",
    )
    scale_b_block: tuple[int, ...] = _key(
        Many(_MANY_OF_K, 2, 2, what="[k, columns]: 2 integers"),
        (128, 128),
        "the size of a block of B with one scale",
    )
    scale_order: str = _key(
        Choice(("product", "a_first")),
        "product",
        "how the scales of blocks multiply the promoted sum: by their product (`product`); or by A's, and "
        "the rounded result by B's (`a_first`)",
    )
    alpha: float = _key(Number(), 1.0, "the f32 factor of the sum (f64 for f64)")
    beta: float = _key(Number(), 1.0, "the f32 factor of C (f64 for f64)")
    c: str = _key(
        Choice(("after", "seed")),
        "after",
        "where C enters: after the whole sum, as in BLAS, or as the c of the first step",
    )
    c_format: str | None = _key(
        _FORMAT, None, "the format of C's codes; default: `out`, or c's with `c: seed`"
    )
    bias: str = _key(
        Choice(("none", "rows", "columns")),
        "none",
        "one more addend for each row or column of D, in the format `out`, added last",
    )
    activation: str = _key(
        Choice(("none", "relu", "masked")),
        "none",
        "applied to the sum before it is rounded to `out`. `relu`: negative numbers and -0 become +0, a "
        "NaN stays a NaN; `masked`: times 1, or times 0 for -infinity, which gives a NaN",
    )
    fma: tuple[str, ...] = _key(
        Many(Choice(FUSED), different=True, alone=True),
        (),
        "where a product and the following sum are rounded once: `promotion`: a block's scale (with "
        "`a_first` B's) times the promoted sum; `c`: alpha times the sum, before beta times C is added",
    )
    out: str | None = _key(
        Choice(OUT),
        None,
        "the format of the results, rounded to nearest even; default: the instruction's d",
    )


KEYS = {
    one.name: Key(one.name, one.metadata["value"], one.metadata["meaning"], one.default)
    for one in fields(Options)
}
"""What each key takes and means, by name."""


def check_options(given: dict[str, Any], fail: Callable[[str, str], Exception]) -> Options:
    """The options of checked values; `fail(message, key)` makes the error. None stands for the default."""
    for name in given:
        if name not in KEYS:
            raise fail(f"unknown key '{name}', expected one of {', '.join(KEYS)}{nearest(name, KEYS)}", name)

    def checked(name: str, value: Any) -> Any:
        return KEYS[name].value.check(value, lambda message: fail(f"'{name}' {message}", name))

    found = {name: checked(name, value) for name, value in given.items() if value is not None}
    if "fma" in found:
        found["fma"] = tuple(word for word in FUSED if word in found["fma"])
    return Options(**found)
