"""Questions with few terms: c alone, one or two products with c and without; special values among zeros.

What one term shows depends on no order of the sum: how products are rounded and special values looked for is
fitted on these, also while the order is still wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from golden import stimuli
from golden.number.formats import from_float, to_float
from golden.program.signature import Bits, Operands, Signature

_DRAWN = (
    *("random_bits", "narrow", "wide", "subnormal", "near_overflow", "tie", "special_values", "special_each"),
    *("corner_pairs", "half_ulp"),
)
ALONE = (("c alone", "c"), ("one product", "products"))
"""Kinds of one term, and which it is."""
_SHAPES = (("c alone", 0, True), ("one product", 1, False), ("one product and c", 1, True))
_PAIRS = (("two products", 2, False), ("two products and c", 2, True))
_CAUSES, _MORE = ("special_values", "special_pairs"), 8
"""Kinds whose operands are asked among zeros, and how many times more of them: a table of causes of NaNs is
read off what two of them give."""
_AMONG_ZEROS = "special among zeros"
KINDS = frozenset((_AMONG_ZEROS, *(name for name, *_ in (*_SHAPES, *_PAIRS))))
SIGNS = "zero c of both signs"
_SIGNS_DRAWN = ("cancelling", "subnormal", "alignment_edge", "wide", "narrow")


def simple(takes: Signature, each: int, rng: np.random.Generator) -> Iterator[tuple[str, Operands]]:
    """(kind, operands) by the number of terms, `each` dot products of every kind that is drawn from."""
    k = takes.stored_k
    for name, products, with_c in (*_SHAPES, *(_PAIRS if k > 1 else ())):
        parts = [stimuli.generate(takes, kind, each, rng) for kind in _DRAWN]
        whole = {operand: np.concatenate([part[operand] for part in parts]) for operand in parts[0]}
        ranks = np.argsort(rng.random((len(whole["a"]), k)), axis=1)
        for operand in "ab":
            kept = np.where(ranks < products, whole[operand], takes.at_rest(operand))
            whole[operand] = kept.astype(whole[operand].dtype)
        if not with_c:
            whole["c"] = np.full_like(whole["c"], takes.at_rest("c"))
        yield name, whole
    if takes.formats["d"].is_float:
        for kind in _CAUSES:
            operands = stimuli.generate(takes, kind, _MORE * each, rng)
            special = rng.choice(stimuli.special_codes(takes.formats["c"]), len(operands["c"]))
            operands["c"] = np.where(rng.random(len(special)) < 0.5, special, operands["c"])
            yield _AMONG_ZEROS, among_zeros(takes, operands, rng)


def zero_c(takes: Signature, each: int, rng: np.random.Generator) -> Operands | None:
    """Dot products with c = +0, then the same with c = -0; None where c has no zeros of both signs. Nothing
    else is otherwise: a unit that answers two other numbers looks at the sign of c where it adds the rest."""
    c = takes.formats["c"]
    if not (c.is_float and c.signed and takes.formats["d"].is_float):
        return None
    parts = [stimuli.generate(takes, kind, each, rng) for kind in _SIGNS_DRAWN]
    whole = {operand: np.concatenate([part[operand] for part in parts]) for operand in parts[0]}
    zero = np.full_like(whole["c"], takes.at_rest("c"))
    both = np.concatenate([zero, stimuli.negate(c, zero)]).astype(zero.dtype)
    return {name: np.concatenate([codes, codes]) for name, codes in whole.items()} | {"c": both}


def among_zeros(takes: Signature, operands: Operands, rng: np.random.Generator) -> Operands:
    """Dot products of which two neighbours, or two far apart, are left, among zeros of both signs; c as it is
    or a zero, too. The sign of a number that is flushed, or which of two special values comes first, shows
    where nothing else has a say: every second time the two cancel, but for the last bit of a factor, and
    every fourth time the first stands there once more, which c cancels in the same way. The first is one with
    a special value, where there is one.
    """
    k, rows = takes.stored_k, np.arange(len(operands["a"]))
    chance = rng.random((4, len(rows)))
    first = np.argmax(rng.random((len(rows), k)) + _special(takes, operands), axis=1)
    second = np.where(chance[0] < 0.5, np.minimum(first ^ 1, k - 1), rng.integers(0, k, len(rows)))
    third = np.where(chance[3] < 0.5, (first + 2) % k, rng.integers(0, k, len(rows)))
    found = {name: _zeros(takes, name, operands[name].shape, rng) for name in "abc"}
    cancel, more = chance[1] < 0.5, chance[1] < 0.25
    for name in "ab":
        codes, fmt = operands[name], takes.formats[name]
        own = codes[rows, first]
        found[name][rows, third] = np.where(more, own, found[name][rows, third])
        same = own ^ ((chance[2] < 0.5) & (name == "b")).astype(codes.dtype)
        same = stimuli.negate(fmt, same) if name == "a" else same
        found[name][rows, second] = np.where(cancel, same, codes[rows, second])
        found[name][rows, first] = own
    kept = np.where(rng.random(len(rows)) < 0.5, found["c"], operands["c"])
    found["c"] = np.where(more, _cancelling(takes, operands, first, rng), kept)
    return {**operands, **{name: codes.astype(operands[name].dtype) for name, codes in found.items()}}


def beside_overflow(takes: Signature, operands: Operands, rng: np.random.Generator) -> Operands:
    """Dot products near overflow with a special value in the place of c, or of one factor: an infinity that
    finite terms become on the way meets it, and which comes first shows. Half of them with the other sign."""
    k, rows = takes.stored_k, np.arange(len(operands["a"]))
    chance, place = rng.random((2, len(rows))), rng.integers(0, k, len(rows))
    found = dict(operands)
    for name, there in (("a", chance[0] < 0.3), ("c", chance[0] >= 0.2)):
        codes, specials = (
            found[name].reshape(len(rows), -1).copy(),
            stimuli.special_codes(takes.formats[name]),
        )
        if len(specials):
            at = rows[there], (place if name == "a" else 0 * place)[there]
            codes[at] = rng.choice(specials, int(there.sum()))
        found[name] = codes.reshape(found[name].shape)
    if takes.formats["a"].is_float and takes.formats["a"].signed:
        turned = stimuli.negate(takes.formats["a"], found["a"])
        found["a"] = np.where((chance[1] < 0.5)[:, None], turned, found["a"])
    return found


def _special(takes: Signature, operands: Operands) -> npt.NDArray[np.bool_]:
    """Where a or b is special, (n, k)."""
    found = [np.isin(operands[name], stimuli.special_codes(takes.formats[name])) for name in "ab"]
    return np.asarray(found[0] | found[1])


def _cancelling(takes: Signature, operands: Operands, place: Bits, rng: np.random.Generator) -> Bits:
    """c that is the negative of one product, or next to it: as near as doubles come."""
    rows, fmt = np.arange(len(place)), takes.formats["c"]
    if not (fmt.is_float and fmt.signed):
        return operands["c"]
    a, b = (
        np.asarray(to_float(takes.formats[name], operands[name][rows, place]), np.float64) for name in "ab"
    )
    with np.errstate(all="ignore"):
        c = from_float(fmt, np.nan_to_num(-a * b, nan=0.0))
    last = (rng.random(len(rows)) < 0.5).astype(fmt.dtype)
    return np.asarray(c ^ last)


def _zeros(takes: Signature, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Zeros of both signs, where a format has them."""
    zero, fmt = takes.at_rest(name), takes.formats[name]
    other = stimuli.negate(fmt, np.full(shape, zero, fmt.dtype)) if fmt.is_float and fmt.signed else zero
    return np.where(rng.random(shape) < 0.5, zero, other)
