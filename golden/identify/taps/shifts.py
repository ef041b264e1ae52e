"""Faults of the shifters that align terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from golden.identify.datapath.signals import (
    ShiftSignals,
    Tap,
)
from golden.identify.taps.steps import (
    in_each,
    in_words,
    kinds_of,
)
from golden.instruction import Instruction
from golden.program.steps import (
    Additions,
    Align,
    Fma,
    Step,
    format_of,
)


def faults(ins: Instruction) -> Iterator[Tap]:
    kinds = kinds_of(ins, Align, Additions, Fma)
    if not kinds or not ins.formats["d"].is_float:
        return
    where = in_words(kinds)
    precision = _kept(ins)
    for bits in range(3, 9):
        yield Tap(
            f"shift-modulo-{1 << bits}",
            f"{where} takes the low {bits} bits of the shift amount: a term {1 << bits} places down is not "
            "shifted",
            "shifts",
            lambda s, n=bits: setattr(s, "shift", s.shift % (1 << n)),
            weight=1.05,
        )
    for places in range(max(precision - 6, 1), 2 * precision + 8):
        yield Tap(
            f"shift-jammed-from-{places}",
            f"{where} takes a term {places} or more places down as nothing but a sticky bit",
            "shifts",
            lambda s, n=places: setattr(s, "jammed", s.jammed | (s.shift >= n)),
            weight=1.05,
        )
    yield from _shift_off_by_one(where)
    for tap in in_each(kinds, partial(_limited, precision)):
        if tap.of != (Align,):  # of these `shift_limit` is a key
            yield tap
    if Align in kinds:
        yield from _aligned_words(precision)
        yield from _left_out(ins)
        yield from _cuts_unseen(ins)
    if Additions in kinds or Fma in kinds:
        yield from _lost_bits(ins, precision)
    yield from in_each(kinds_of(ins, Additions, Fma), partial(_ored_behind, precision))


def _limited(precision: int, kind: type[Step]) -> Iterator[Tap]:
    for limit in range(1, 2 * precision + 8):
        yield Tap(
            f"shift-limit-{limit}",
            f"shifts a term that is more than {limit} places down by {limit}",
            "shifts",
            lambda s, n=limit: setattr(s, "shift", np.minimum(s.shift, n)),
        )


def _ored_behind(precision: int, kind: type[Step]) -> Iterator[Tap]:
    """A sticky bit that is no part of the addition: where the signs differ it belongs to what is taken
    away."""
    for places in range(precision, precision + 6):
        yield Tap(
            f"sticky-or-{places}",
            f"has an ORed sticky bit behind the sum for what lies more than {places} places below the "
            "largest exponent, where it belongs to the term that is added or subtracted",
            "shifts",
            lambda s, n=places: s.__dict__.update(lost_below=np.full_like(s.maximum, n), or_below=True),
        )


def _kept(ins: Instruction) -> int:
    """Fraction bits that the shifts keep: F, or those of the format that additions round to."""
    aligned = [bits for step in ins.program.steps_of(Align) for _, bits in step.fraction_bits]
    formats = [format_of(s) for kind in (Additions, Fma) for s in ins.program.steps_of(kind)]
    return max([*aligned, *(fmt.fraction_bits for fmt in formats if fmt is not None)])


def _shift_off_by_one(where: str) -> Iterator[Tap]:
    for by, word in ((-1, "less"), (1, "more")):
        yield Tap(
            f"shift-one-{word}",
            f"{where} shifts every term that moves by one place {word}",
            "shifts",
            lambda s, n=by: setattr(s, "shift", np.where(s.shift > 0, s.shift + n, s.shift)),
        )


def _aligned_words(precision: int) -> Iterator[Tap]:
    for word in range(precision + 2, precision + 9):
        yield Tap(
            f"logical-shift-{word}",
            "the alignment shifts zeros into negative terms instead of copies of the sign (words of "
            f"{word} bits)",
            "shifts",
            lambda s, n=word: setattr(s, "logical", n),
            weight=1.0 + word / 1000,
            of=(Align,),
        )
    for word in range(precision + 2, precision + 9):
        yield Tap(
            f"c-logical-shift-{word}",
            "the alignment shifts zeros into a negative c instead of copies of the sign (words of "
            f"{word} bits)",
            "shifts",
            lambda s, n=word: s.__dict__.update(logical=n, logical_of=s.owner == "c"),
            weight=1.05 + word / 1000,
            of=(Align,),
        )
    yield Tap(
        "terms-ones-complement",
        "negative terms are inverted before they are added, without the one of a negation",
        "shifts",
        lambda s: setattr(s, "complemented", True),
        of=(Align,),
    )


def _terms_of(ins: Instruction) -> Iterator[tuple[str, str, Callable[[ShiftSignals], Any]]]:
    """The terms that one of a unit's alignments may treat otherwise: slug, words, and a mask (terms,)."""
    if "c" not in ins.absent:
        yield "c", "c", lambda s: s.owner == "c"
    yield "products", "the products", lambda s: s.owner != "c"
    for j in range(len(ins.program.operations[0].k_index)):
        yield f"term-{j}", f"term {j}", partial(_is_term, j)


def _is_term(j: int, s: ShiftSignals) -> Any:
    return (s.owner != "c") & (np.arange(len(s.owner)) == j)


def _left_out(ins: Instruction) -> Iterator[Tap]:
    """Terms that the search for the largest exponent does not see."""
    rules = {
        "dropped": "lost where it lies above",
        "lost": "lost where it lies above, or alone",
        "unshifted": "not shifted where it lies above",
        "moved-left": "shifted left where it lies above",
    }
    for slug, text, mask in _terms_of(ins):
        for rule, word in rules.items() if slug != "c" else ():
            yield Tap(
                f"maximum-without-{slug}-{rule}",
                f"{text} left out of the largest exponent ({word})",
                "shifts",
                lambda s, m=mask, r=rule: _leave_out(s, m(s), r),
                weight=1.05 if slug == "products" else 1.15,
                of=(Align,),
            )


def _leave_out(s: ShiftSignals, left_out: Any, rule: str) -> None:
    """Where there is another term, the maximum is that of the others. Of a term alone it is far below all: a
    shift by a negative distance, which is a large one without its sign, takes the term, too ("lost")."""
    others = s.terms.finite & ~left_out
    some = others.any(axis=1, keepdims=True)
    own = np.where(others, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    lower = np.where(some, np.minimum(own, s.maximum), s.maximum)
    floor = s.maximum - np.where(s.terms.finite, s.terms.exponent, -_FAR).max(axis=1, keepdims=True)
    lower = np.where(floor > 0, s.maximum, lower)  # the floor decides, whoever takes part
    shift = s.shift - (s.maximum - lower)
    if rule in ("dropped", "lost"):
        s.jammed = s.jammed | (shift < 0)
    if rule == "lost":
        s.jammed = s.jammed | (left_out & s.terms.finite & ~some & (floor <= 0))
    s.shift = shift if rule == "moved-left" else np.maximum(shift, 0)
    s.maximum = lower


def _cuts_unseen(ins: Instruction) -> Iterator[Tap]:
    """Terms whose cut bits leave no trace in a sticky bit."""
    if not any(step.cut != "dropped" for step in ins.program.steps_of(Align)):
        return
    for slug, text, mask in _terms_of(ins):
        yield Tap(
            f"sticky-without-{slug}",
            f"the sticky bit does not see what is cut of {text}",
            "shifts",
            lambda s, m=mask: setattr(s, "unseen", s.unseen | m(s)),
            weight=1.05,
            of=(Align,),
        )


_FAR = 1 << 30
"""An exponent below all others."""


def _lost_bits(ins: Instruction, precision: int) -> Iterator[Tap]:
    """Bits of a term that leave the window without a sticky bit."""
    sides = {"product": "the product", "c": "c"} if kinds_of(ins, Fma) else {"": "the smaller term"}
    for places in range(precision + 1, (3 if "c" in sides else 2) * precision + 10):
        for side, text in sides.items():
            slug = f"{side}-" if side else ""
            yield Tap(
                f"{slug}bits-lost-below-{places}",
                f"the bits of {text} more than {places} places below the largest exponent are lost, without "
                "a sticky bit",
                "shifts",
                lambda s, n=places, o=side: _lose(s, n, o),
                weight=1.05,
                of=(Additions, Fma),
            )


def _lose(s: ShiftSignals, places: int, side: str) -> None:
    """In a multiply-add the window hangs on the product, unless c is far above it."""
    lost = np.where((s.owner == side) | (side == ""), places, 1 << 40)
    if side == "c":
        product = np.where(s.terms.finite[:, :1], s.terms.exponent[:, :1], s.maximum)
        s.lost_below = lost + (s.maximum - product)
    else:
        s.lost_below = lost + np.zeros_like(s.maximum)
