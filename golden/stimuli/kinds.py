"""The list of the kinds, and operands of any of them.

Vector files and campaigns name a kind by its number in the list, so a new one goes to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from golden.errors import OperandError, UnknownNameError, nearest
from golden.program.signature import Signature
from golden.stimuli import (
    alignment,
    boundaries,
    cancellation,
    ordinary,
    range_ends,
    rounding,
    sequences,
    specials,
)
from golden.stimuli.codes import Bits
from golden.stimuli.draw import Draw, readings_of
from golden.unit import Unit, signature_of

_GENERATORS: dict[str, Callable[[Draw], tuple[Bits, Bits, Bits]]] = {
    "random_bits": ordinary.random_bits,
    "narrow": ordinary.narrow,
    "wide": ordinary.wide,
    "cancelling": cancellation.cancelling,
    "subnormal": range_ends.subnormal,
    "tiny_zero_c": range_ends.tiny_zero_c,
    "near_overflow": range_ends.near_overflow,
    "tie": rounding.tie,
    "special_values": specials.special_values,
    "zeros": specials.zeros,
    "equal_exponents": ordinary.equal_exponents,
    "alignment_edge": alignment.alignment_edge,
    "c_dominant": alignment.c_dominant,
    "one_hot": ordinary.one_hot,
    "alignment_one_term": alignment.alignment_one_term,
    "half_ulp": rounding.half_ulp,
    "cancel_last_bit": cancellation.cancel_last_bit,
    "subnormal_product": range_ends.subnormal_product,
    "subnormal_result": range_ends.subnormal_result,
    "special_each": specials.special_each,
    "special_pairs": specials.special_pairs,
    "zero_partners": specials.zero_partners,
    "counts": specials.counts,
    "deep_cancellation": cancellation.deep_cancellation,
    "widest_sum": range_ends.widest_sum,
    "round_up": rounding.round_up,
    "floor_edge": rounding.floor_edge,
    "below_power": rounding.below_power,
    "cancelled_groups": cancellation.cancelled_groups,
    "product_tie": rounding.product_tie,
    "corner_pairs": specials.corner_pairs,
    "between_links": rounding.between_links,
    "beside_tie": rounding.beside_tie,
    "split_tie": rounding.split_tie,
    "beside_least": range_ends.beside_least,
    "total_boundary": boundaries.total_boundary,
    "cut_bits": boundaries.cut_bits,
    "product_bits": boundaries.product_bits,
    "few_bits": boundaries.few_bits,
    "class_pairs": boundaries.class_pairs,
}
KINDS: tuple[str, ...] = tuple(_GENERATORS)
BOUNDARY_KINDS = KINDS[KINDS.index("total_boundary") :]
"""The kinds that aim at every boundary of a decision, see golden/stimuli/boundaries.py."""
BOUNDARY_WEIGHT = 5.0
"""Their share among the default vectors, times that of another kind: each stands for hundreds of boundaries,
and each boundary is to be met by at least 20 of 200,000 vectors."""
SEARCH_KINDS = KINDS[: KINDS.index("one_hot") + 1]
"""The kinds that golden/identify/comparing.py spreads its budget over: fixed, so that a seed always finds
the same example."""


def generate(unit: Unit | Signature, kind: str, count: int, rng: np.random.Generator) -> dict[str, Bits]:
    """Generates `count` dot products of one kind, as keyword arguments of the unit's `dot`. Of an instruction
    they aim at its program; of any other unit at its formats alone.

    Returns:
        Raw codes: a (count, stored_k), b (count, k), c (count,); sparse: legal metadata (count, k/chunk);
        block scaled: scale_a and scale_b (count, k/scale_block); with modes: mode (count,). Elements of b
        that the metadata does not select are random bits. Of a unit that keeps its accumulator: sequences,
        with clear (count,) in place of c.

    Raises:
        UnknownNameError: no such kind.
        OperandError: count is negative.
    """
    generator = _GENERATORS.get(kind)
    if generator is None:
        raise UnknownNameError(
            f"unknown stimulus kind '{kind}', expected one of {', '.join(KINDS)}{nearest(kind, KINDS)}"
        )
    if count < 0:
        raise OperandError(f"count is {count}, expected 0 or more")
    takes = signature_of(unit)
    if takes.state:
        return sequences.arrange(takes, generate(takes.stateless, kind, count, rng), rng)[0]
    if takes.modes is not None:
        return _of_modes(takes, kind, count, rng)
    readings = list(readings_of(takes))
    if len(readings) == 1:
        return _drawn(generator, Draw(takes, count, rng))
    drawn: dict[str, Bits] = {}
    for turn, parts in enumerate(readings):
        here = slice(turn, None, len(readings))
        for name, codes in _drawn(generator, Draw(takes, len(range(count)[here]), rng, parts)).items():
            _put(drawn, name, count, here, codes)
    return drawn


def _drawn(generator: Callable[[Draw], tuple[Bits, Bits, Bits]], draw: Draw) -> dict[str, Bits]:
    """The operands that a unit takes of what a kind draws."""
    operands = draw.finish(*generator(draw))
    return {name: codes for name, codes in operands.items() if name not in draw.unit.absent}


def _put(drawn: dict[str, Bits], name: str, count: int, here: Any, codes: Bits) -> None:
    """Puts the codes (n, ...) of some of `count` rows into what is drawn of an operand."""
    whole = drawn.setdefault(name, np.zeros((count, *codes.shape[1:]), codes.dtype))
    whole[here] = codes


def _of_modes(takes: Signature, kind: str, count: int, rng: np.random.Generator) -> dict[str, Bits]:
    """Every mode in turn, in random order, each with operands that aim at its own program."""
    assert takes.modes is not None
    codes = rng.permutation(np.array([code for code, _ in takes.modes.codes()]))
    places = rng.permutation(count)
    drawn: dict[str, Bits] = {}
    for turn, code in enumerate(codes.tolist()):
        here = places[turn :: len(codes)]
        part = generate(takes.of_mode(code), kind, len(here), rng)
        part["mode"] = np.full(len(here), code, takes.modes.format.dtype)
        for name, values in part.items():
            _put(drawn, name, count, here, values)
    return drawn


def describe(kind: str) -> str:
    """Returns one line on what the kind aims at."""
    if kind not in _GENERATORS:
        raise UnknownNameError(f"unknown stimulus kind '{kind}'{nearest(kind, KINDS)}")
    return (_GENERATORS[kind].__doc__ or "").split("\n", 1)[0]
