"""Faults in the detection of NaNs and infinities, and in the answers to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array
from golden.identify.diagnose.datapath.signals import SpecialSignals
from golden.identify.diagnose.mutations.mutation import Mutation, change, fields, kinds_of, sets, signal
from golden.identify.diagnose.mutations.words import NEIGHBOURS
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.steps import Additions, Fma, SpecialValues

_special = partial(signal, "specials")
_Mask = Callable[[SpecialSignals], Array]
_OPPOSITES = {
    "first": "the first infinity's sign",
    "last": "the last infinity's sign",
    "positive": "+",
    "negative": "-",
}
"""The sign of the result of infinity minus infinity."""


def program(ins: Instruction) -> Iterator[Mutation]:
    """The result of infinities of both signs."""
    for rule, sign in _OPPOSITES.items():
        text = f"infinity - infinity gives an infinity, not NaN (sign: {sign})"
        yield change(f"opposite-infinities-{rule}", text, fields(SpecialValues, opposite_infinities=rule))


def signals(ins: Instruction) -> Iterator[Mutation]:
    """Changed signals of units that detect special values, and of IEEE additions."""
    if not ins.formats["d"].is_float:
        return
    looks, adds = bool(kinds_of(ins, SpecialValues)), bool(kinds_of(ins, Additions, Fma))
    signed = ins.formats["d"].infinity is not None and ins.formats["d"].signed  # elsewhere they answer a NaN
    with_c = "c" not in ins.absent and any(
        "c" in step.of and len(step.of) > 1 for step in ins.program.steps_of(SpecialValues)
    )
    if looks or adds:
        yield from _unseen(ins, adds)
        if signed:
            yield from _signs_of_answers()
    if looks:
        yield from _answers()
        if signed:
            yield from _signs_of_sums()
        yield from _of_both_signs("c" not in ins.absent)
    if with_c:
        yield from _opposites()
    if with_c or kinds_of(ins, Fma):
        yield from _signs()


_UNSEEN: dict[str, tuple[str, _Mask]] = {
    "nan": ("NaN", lambda s: s.kind == Kind.NAN),
    "infinity": ("infinity", lambda s: s.kind == Kind.INFINITY),
    "plus-infinity": ("positive infinity", lambda s: (s.kind == Kind.INFINITY) & ~s.sign),
    "minus-infinity": ("negative infinity", lambda s: (s.kind == Kind.INFINITY) & s.sign),
    "special": ("NaN or infinity", lambda s: s.kind >= Kind.INFINITY),
}
"""Special values that a unit may miss, and where they are."""
_OWNERS: dict[str, tuple[str, _Mask]] = {
    "": ("as a term", lambda s: np.True_),
    "c-": ("as c", lambda s: s.owner == "c"),
    "products-": ("as a product", lambda s: s.owner != "c"),
}
"""Terms in which it may miss them."""


def _unseen(ins: Instruction, adds: bool) -> Iterator[Mutation]:
    """Special values mistaken for the numbers that their codes would be."""
    owners = _OWNERS if "c" not in ins.absent else {"": _OWNERS[""]}
    for slug, (where, owner) in owners.items():
        for what, (text, mask) in _UNSEEN.items():
            weight = 1.0 if slug else 1.05
            said = f"{text} {where} is not seen: it counts as a number"
            rule = partial(_overlook_those, mask=mask, owner=owner)
            yield _special(f"{slug}{what}-unseen", said, rule, weight)
            if adds:
                said = (
                    f"{text} {where} is not seen, and a sum with it is zero: the exponent, one more than "
                    "that of infinities, wraps around"
                )
                rule = partial(_overlook_those, mask=mask, owner=owner, wraps=True)
                yield _special(f"{slug}{what}-unseen-wraps", said, rule, weight + 0.1)


def _overlook_those(s: SpecialSignals, mask: _Mask, owner: _Mask, wraps: bool = False) -> None:
    _overlook(s, mask(s) & owner(s))
    s.wraps = s.wraps or wraps


def _overlook(s: SpecialSignals, there: Array) -> None:
    """These terms continue as numbers."""
    s.unseen = there if s.unseen is None else s.unseen | there


def _answers() -> Iterator[Mutation]:
    """Missing answers to a detected cause."""
    text = "an infinite result is not answered: the result is made of the terms as numbers"
    yield _special("infinity-not-answered", text, lambda s: _overlook(s, _answered_infinities(s)))
    for rule in ("positive", "negative"):
        text = (
            f"a NaN is not answered: infinities decide, of both signs the {rule} one, and without them the "
            "terms as numbers"
        )
        yield _special(f"nan-not-answered-{rule}", text, partial(_lose_nans, rule=rule))
        text = f"an infinity is answered before a NaN is looked for; of both signs the {rule} one"
        yield _special(f"infinity-before-nan-{rule}", text, partial(_prefer_infinities, rule=rule))
    yield _special("infinities-of-one-sign-nan", "infinities of one sign meet and give a NaN", _refuse_pairs)
    for late, slug, word in NEIGHBOURS:
        text = f"NaNs and infinities are those of the vector {word}"
        yield _special(f"special-of-vector-{slug}", text, partial(_take_specials, late=late), in_order=True)
        text = f"the signs of infinities are those that the terms of the vector {word} have"
        sign = lambda s, n=late: np.where(s.kind == Kind.INFINITY, np.roll(s.sign, n, axis=0), s.sign)  # noqa: E731
        yield _special(f"infinity-signs-of-vector-{slug}", text, sets(sign=sign), in_order=True)
    for sign_bit, word in ((0, "positive"), (1, "negative")):
        kind = lambda s, n=sign_bit: np.where(s.sign == n, np.maximum(s.kind, int(Kind.INFINITY)), s.kind)  # noqa: E731
        yield _special(
            f"{word}-terms-are-infinite", f"every {word} term counts as infinite", sets(kind=kind), 1.2
        )


def _of_both_signs(with_c: bool) -> Iterator[Mutation]:
    """A test for an infinity of one sign that ignores the sign."""
    for sign, word in ((0, "positive"), (1, "negative")):
        for name in ("products", "c") if with_c else ("products",):
            where, owner = _OWNERS[f"{name}-"]
            text = f"a {word} infinity {where} counts as one of either sign, and gives NaN"
            slug = f"{word}-infinite-{name}-of-both-signs"
            yield _special(slug, text, partial(_oppose, sign=sign, owner=owner))


def _oppose(s: SpecialSignals, sign: int, owner: _Mask) -> None:
    there = (s.kind == Kind.INFINITY) & (s.sign == sign) & owner(s)
    s.kind = np.where(there, int(Kind.NAN), s.kind)


def _signs_of_sums() -> Iterator[Mutation]:
    """An infinite result with its sign from the datapath of numbers."""
    parts = {"sum": ("the terms as numbers", Kind.FINITE), "finite-sum": ("its finite terms", Kind.ZERO)}
    for slug, (text, kind) in parts.items():
        said = f"the sign of an infinite result is that of the sum of {text}"
        yield _special(f"infinite-result-sign-of-{slug}", said, partial(_sign_by_sum, infinities_as=kind))


def _sign_by_sum(s: SpecialSignals, infinities_as: Kind) -> None:
    there = _answered_infinities(s)
    s.signed_by_sum = there.any(axis=1)
    s.unseen_as = infinities_as
    _overlook(s, there)


def _answered_infinities(s: SpecialSignals) -> Array:
    """(n, terms): infinities that lead to an infinite answer without a NaN."""
    infinite = s.kind == Kind.INFINITY
    both = (infinite & s.sign).any(axis=1) & (infinite & ~s.sign).any(axis=1)
    answered = ~both & ~(s.kind == Kind.NAN).any(axis=1)
    return np.asarray(infinite & answered[:, None])


def _take_specials(s: SpecialSignals, late: int) -> None:
    """Then its own special values are numbers."""
    _overlook(s, s.kind >= Kind.INFINITY)
    s.skew = late


def _lose_nans(s: SpecialSignals, rule: str) -> None:
    _overlook(s, s.kind == Kind.NAN)
    s.excused, s.opposite = np.ones(len(s.kind), np.bool_), rule


def _refuse_pairs(s: SpecialSignals) -> None:
    infinite = s.kind == Kind.INFINITY
    s.kind = np.where(infinite & (infinite.sum(axis=1) > 1)[:, None], int(Kind.NAN), s.kind)


def _prefer_infinities(s: SpecialSignals, rule: str) -> None:
    infinite = (s.kind == Kind.INFINITY).any(axis=1)
    _overlook(s, (s.kind == Kind.NAN) & infinite[:, None])
    s.excused, s.opposite = infinite, rule


_SIGNS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "inverted": ("inverted", np.logical_not),
    "positive": ("always +", np.zeros_like),
    "negative": ("always -", np.ones_like),
}
"""Wrong signs of an infinity."""


def _signs_of_answers() -> Iterator[Mutation]:
    """Infinities of operands that end with another sign; an overflow is not changed."""
    for slug, (text, rule) in _SIGNS.items():
        said = f"an infinite operand gives an infinity whose sign is {text}"
        sign = lambda s, r=rule: np.where(_answered_infinities(s), r(s.sign), s.sign)  # noqa: E731
        yield _special(f"infinite-operand-sign-{slug}", said, sets(sign=sign), 1.0)


def _signs() -> Iterator[Mutation]:
    """Detected infinities with a wrong sign. The terms of a multiply-add are its two; c of a later one is the
    sum so far."""
    for slug, (text, rule) in _SIGNS.items():
        sign = lambda s, r=rule: np.where((s.kind == Kind.INFINITY) & (s.owner == "c"), r(s.sign), s.sign)  # noqa: E731
        yield _special(f"infinite-c-sign-{slug}", f"the sign of an infinite c is {text}", sets(sign=sign))
    text = "the sign of an infinite product is that of c"
    yield _special("infinite-product-sign-of-c", text, _take_sign_of_c)
    for name, owners in (("c", ("c",)), ("product", ("product", "products"))):
        text = f"the sign of an infinite result is that of {'c' if name == 'c' else 'the product'}"
        yield _special(f"infinite-result-sign-of-{name}", text, partial(_sign_result, owners=owners))


def _sign_result(s: SpecialSignals, owners: tuple[str, ...]) -> None:
    """The sign of one term for an infinite answer; a NaN is detected as it is."""
    owner = np.isin(s.owner, owners)
    if owner.sum() == 1:  # several products have no one sign
        s.sign = np.where(_answered_infinities(s), s.sign[:, owner], s.sign)


def _take_sign_of_c(s: SpecialSignals) -> None:
    """Not for the additions of a unit that detects special values first: their terms have other owners."""
    if (c := s.owner == "c").any():
        s.sign = np.where((s.kind == Kind.INFINITY) & ~c, s.sign[:, c], s.sign)


def _opposites() -> Iterator[Mutation]:
    """Infinities of both signs, and NaNs, mistaken for something else."""
    for rule, sign in _OPPOSITES.items():
        sign = sign.replace("infinity's sign", "one")
        text = f"an infinite product and the opposite infinity as c give an infinity, not NaN (sign: {sign})"
        yield _special(f"c-not-in-opposites-{rule}", text, partial(_excuse, rule=rule, with_c=True))
        text = f"infinite products of both signs give an infinity, not NaN (sign: {sign})"
        yield _special(f"products-not-in-opposites-{rule}", text, partial(_excuse, rule=rule, with_c=False))
    for name, what in (("products", "a NaN product"), ("c", "a NaN as c")):
        nan = lambda s, n=name: (s.owner == n) & (s.kind == Kind.NAN)  # noqa: E731
        rule_of = sets(kind=lambda s, m=nan: np.where(m(s), int(Kind.INFINITY), s.kind))
        yield _special(f"{name}-nan-is-infinity", f"{what} counts as an infinity", rule_of)


def _excuse(s: SpecialSignals, rule: str, with_c: bool) -> None:
    """Infinities of both signs give no NaN if c is one of them (or if it is not)."""
    infinite, others = s.kind == Kind.INFINITY, s.owner != "c"
    plus, minus = infinite & ~s.sign, infinite & s.sign
    among = plus[:, others].any(axis=1) & minus[:, others].any(axis=1)
    s.excused, s.opposite = ~among if with_c else among, rule
