"""Alignment of terms to one exponent: what the step `align` does, and the shifter of an IEEE addition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array, bit_length, low_bits, modulo, shifted, shl, shr
from golden.identify.diagnose.datapath.signals import Numbers, ShiftSignals
from golden.identify.diagnose.datapath.terms import HUGE, leading_of, with_sticky
from golden.number.formats import Kind
from golden.program.steps import Align

Tapped = Callable[[ShiftSignals], None]
"""Lets the faults of a datapath change its shifts."""


def aligned(terms: Numbers, owner: Array, step: Align, tapped: Tapped) -> Numbers:
    """Terms (n, terms) of one group as the step leaves them; `owner`: the register of each."""
    bits = np.array([dict(step.fraction_bits)[name] for name in owner])
    # the comparator tree: every term will have this exponent, unless a fault moves it
    maximum = _maximum(terms, owner, step)
    shift, outside = _shifts(terms, owner, maximum, step)
    terms = with_sticky(terms)
    none = np.zeros(shift.shape, np.bool_)
    signals = ShiftSignals(terms, owner, maximum, shift, bits, int(bits.max()), none)
    # the barrel shifters, one for each term: here faults change amounts and what is left of far terms
    tapped(signals)
    outside |= _spared(terms, owner, maximum - bits, step)
    if step.underflow_exponent is not None:
        outside |= maximum <= step.underflow_exponent
    return _cut(signals, outside, step)


def _maximum(terms: Numbers, owner: Array, step: Align) -> Array:
    """(n, 1): the exponent to which terms are aligned; far below all others if there are none."""
    if step.exponent is not None:
        return np.full((len(terms.kind), 1), step.exponent)
    if step.maximum:
        return _largest_candidate(terms, owner, step)
    part = terms.finite
    if step.zeros == "maximum":
        part = part | (terms.kind == Kind.ZERO)
    inside = part & ~np.isin(owner, list(dict(step.left_out)))
    largest = np.where(inside, terms.exponent, -HUGE).max(axis=1, keepdims=True)
    if step.floor is not None:
        return np.maximum(largest, step.floor)
    others = np.where(part, terms.exponent, -HUGE).max(axis=1, keepdims=True)
    return np.where(inside.any(axis=1, keepdims=True), largest, others)


def _largest_candidate(terms: Numbers, owner: Array, step: Align) -> Array:
    largest = np.full((len(terms.kind), 1), -HUGE)
    for one in step.maximum:
        there = terms.finite & np.isin(owner, list(one.of))
        if one.leading:
            there = there & (terms.significand != 0)
        place = np.where(there, leading_of(terms) if one.leading else terms.exponent, -HUGE)
        found = place.max(axis=1, keepdims=True)
        if one.least is not None:
            found = np.maximum(found, one.least)
        largest = np.maximum(largest, np.where(found == -HUGE, -HUGE, found + one.plus))
    return largest


def _shifts(terms: Numbers, owner: Array, maximum: Array, step: Align) -> tuple[Array, Array]:
    """Right shifts of the terms, and which terms count as zero because they lie too far away."""
    shift = maximum - terms.exponent
    window = np.array([dict(step.window).get(name, HUGE) for name in owner])
    outside = shift > window
    if step.exponent is not None or step.maximum:
        return shift, outside
    dropped = np.array([dict(step.left_out).get(name) == "dropped" for name in owner])
    outside = outside | ((shift < 0) & dropped)
    shift = np.where(terms.finite, np.maximum(shift, 0), shift)
    return (shift if step.shift_limit is None else np.minimum(shift, step.shift_limit)), outside


def _spared(terms: Numbers, owner: Array, last: Array, step: Align) -> Array:
    """The terms that `spared` turns into zeros."""
    least = np.array([dict(step.spared).get(name, HUGE) for name in owner])
    below = bit_length(terms.significand) + terms.lsb <= last
    return (last > least) & terms.sign & below


def _cut(signals: ShiftSignals, outside: Array, step: Align) -> Numbers:
    """The shifted terms, of which only the kept bits are left."""
    terms, bits = signals.terms, signals.fraction_bits
    finite = terms.finite & (signals.maximum != -HUGE)
    # bits below the last one kept; negative where the register has more bits than the term
    cut = signals.shift + (terms.exponent - terms.lsb) - bits
    seen = (low_bits(terms.significand, np.maximum(cut - step.sticky_gap, 0)) != 0) & ~np.asarray(
        signals.unseen
    )
    # each shifter rounds its own term; the sticky bit, seen, shows whether any cut bit was one
    kept = _rounded(signals, cut, step)
    sign = terms.sign.copy()
    if signals.logical:
        kept, sign = _logically(kept, sign, signals, cut)
    kept = np.where(outside | signals.jammed, 0, kept)
    if signals.complemented:  # ~x = -x - 1: the magnitude comes out one too large
        kept = np.where(sign & finite, kept + 1, kept)
    seen = (seen | signals.jammed) & ~np.asarray(signals.unseen)
    seen = seen & ~outside & finite
    # from here on all finite terms have one exponent and one last place: they can be added as integers
    found = Numbers(
        terms.kind,
        sign,
        np.where(finite, kept, terms.significand),
        np.where(finite, signals.maximum, terms.exponent),
        np.where(finite, signals.maximum - bits, terms.lsb),
        seen if step.cut == "sticky_or" else np.zeros_like(seen),
    )
    found = _with_sticky_added(found, seen, finite & ~outside) if step.cut == "sticky_added" else found
    return _zeros(found, signals, step) if step.zeros != "ignored" else found


def _rounded(signals: ShiftSignals, cut: Array, step: Align) -> Array:
    """Significands without the bits that are cut; each register has its own rounding."""
    terms = signals.terms
    if isinstance(step.rounding, str):
        return shifted(terms.sign, terms.significand, cut, step.rounding)
    kept = terms.significand
    for name, mode in step.rounding:
        own = np.asarray(signals.owner) == name
        kept = np.where(own, shifted(terms.sign, terms.significand, cut, mode), kept)
    return kept


def _with_sticky_added(numbers: Numbers, seen: Array, there: Array) -> Numbers:
    """Each term with its sticky bit as one more bit, which is added with the others."""
    return replace(
        numbers,
        significand=np.where(there, shl(numbers.significand, 1) | seen, numbers.significand),
        lsb=numbers.lsb - there,
    )


def _zeros(found: Numbers, signals: ShiftSignals, step: Align) -> Numbers:
    """Zeros that take part, or whose sticky bit is set if they lie far below."""
    terms, bits, there = signals.terms, signals.fraction_bits, signals.maximum != -HUGE
    zero = (terms.kind == Kind.ZERO) & there
    if step.zeros == "sticky":
        zero &= signals.maximum - terms.exponent > bits
    added = step.zeros == "sticky" and step.cut == "sticky_added"
    found = replace(
        found,
        exponent=np.where(zero, signals.maximum, found.exponent),
        lsb=np.where(zero, signals.maximum - bits - added, found.lsb),
    )
    if step.zeros == "maximum":
        return found
    return replace(
        found,
        kind=np.where(zero, int(Kind.FINITE), found.kind),
        significand=np.where(zero & added, 1, found.significand),
        sticky=found.sticky | (zero & (not added)),
    )


def _logically(kept: Array, sign: Array, signals: ShiftSignals, cut: Array) -> tuple[Array, Array]:
    """Negative terms, in words of `logical` bits, shifted with zeros from the left."""
    terms = signals.terms
    places = shl(terms.significand, np.maximum(signals.shift - cut, 0))
    moved = (signals.shift > 0) & terms.sign & terms.finite & signals.logical_of
    pattern = shr(modulo(-places, signals.logical), np.maximum(signals.shift, 0))
    return np.where(moved, pattern, kept), np.where(moved, np.False_, sign)


def moved(signals: ShiftSignals) -> Numbers:
    """The terms of an IEEE addition after their shifts."""
    terms = signals.terms
    by = np.where(terms.finite, signals.maximum - terms.exponent - signals.shift, 0)
    lsb, significand, sticky = terms.lsb + by, terms.significand, terms.sticky
    if signals.jammed.any():  # a one far below every guard bit stands for all that was shifted out
        far = np.broadcast_to(signals.maximum, lsb.shape) - 2 * signals.precision - 8
        there = signals.jammed & terms.finite
        significand, lsb = np.where(there, 1, significand), np.where(there, far, lsb)
    if signals.lost_below is not None:  # the window of the adder ends here: no bit below it is added
        lost = np.where(terms.finite, signals.maximum - signals.lost_below - lsb, 0)
        below = low_bits(significand, np.maximum(lost, 0))
        significand = significand - below
        sticky = sticky | ((below != 0) & signals.or_below)
    return replace(terms, significand=significand, lsb=lsb, sticky=sticky)
