"""Faults in telling NaNs and infinities apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from golden.identify.datapath.arrays import Array
from golden.identify.datapath.signals import (
    SpecialSignals,
    Tap,
)
from golden.identify.taps.steps import kinds_of
from golden.instruction import Instruction
from golden.number.formats import Kind
from golden.program.steps import (
    Additions,
    Fma,
    SpecialValues,
)

_SIGNS = {
    "first": "the first one",
    "last": "the last one",
    "positive": "+",
    "negative": "-",
}


_UNSEEN: dict[str, tuple[str, Callable[[SpecialSignals], Array]]] = {
    "nan": ("NaN", lambda s: s.kind == Kind.NAN),
    "infinity": ("infinity", lambda s: s.kind == Kind.INFINITY),
    "plus-infinity": ("positive infinity", lambda s: (s.kind == Kind.INFINITY) & ~s.sign),
    "minus-infinity": ("negative infinity", lambda s: (s.kind == Kind.INFINITY) & s.sign),
    "special": ("NaN or infinity", lambda s: s.kind >= Kind.INFINITY),
}
"""What a unit may not see, and where it is."""


def faults(ins: Instruction) -> Iterator[Tap]:
    """Of units that look for special values, and of IEEE additions."""
    if not ins.formats["d"].is_float:
        return
    steps = ins.program.steps_of(SpecialValues)
    if steps or kinds_of(ins, Additions, Fma):
        yield from _unseen(ins)
        if ins.formats["d"].infinity is not None and ins.formats["d"].signed:
            yield from _signs_of_answers()
    if steps:
        yield from _answers()
        if ins.formats["d"].infinity is not None and ins.formats["d"].signed:  # elsewhere they answer a NaN
            yield from _signs_of_sums()
        yield from _of_both_signs("c" not in ins.absent)
    with_c = "c" not in ins.absent and any("c" in step.of and len(step.of) > 1 for step in steps)
    if with_c:
        yield from _opposites()
    if with_c or kinds_of(ins, Fma):
        yield from _signs()


def _unseen(ins: Instruction) -> Iterator[Tap]:
    """Special values that are taken for the numbers that their codes would be."""
    owners, adds = {"": ("", "as a term")}, bool(kinds_of(ins, Additions, Fma))
    if "c" not in ins.absent:
        owners |= {"c-": ("c", "as c"), "products-": ("", "as a product")}
    for slug, (owner, where) in owners.items():
        for what, (text, mask) in _UNSEEN.items():
            yield Tap(
                f"{slug}{what}-unseen",
                f"{text} {where} is not seen: it counts as a number",
                "specials",
                lambda s, m=mask, o=owner, e=slug == "products-": _overlook(s, m(s), o, e),
                weight=1.0 if slug else 1.05,
            )
            if adds:
                yield Tap(
                    f"{slug}{what}-unseen-wraps",
                    f"{text} {where} is not seen, and a sum with it is zero: the exponent, one more than "
                    "that of infinities, wraps around",
                    "specials",
                    lambda s, m=mask, o=owner, e=slug == "products-": _wrap(s, m(s), o, e),
                    weight=1.1 if slug else 1.15,
                )


def _overlook(s: SpecialSignals, there: Array, owner: str, but_c: bool) -> None:
    if owner:
        there = there & (s.owner == owner)
    if but_c:
        there = there & (s.owner != "c")
    s.unseen = there if s.unseen is None else s.unseen | there


def _wrap(s: SpecialSignals, there: Array, owner: str, but_c: bool) -> None:
    _overlook(s, there, owner, but_c)
    s.wraps = True


def _answers() -> Iterator[Tap]:
    """Answers that are not given although their cause was seen."""
    yield Tap(
        "infinity-not-answered",
        "an infinite result is not answered: the result is made of the terms as numbers",
        "specials",
        _lose_infinities,
    )
    for rule in ("positive", "negative"):
        yield Tap(
            f"nan-not-answered-{rule}",
            "a NaN is not answered: infinities decide, of both signs the "
            f"{rule} one, and without them the terms as numbers",
            "specials",
            lambda s, r=rule: _lose_nans(s, r),
        )
        yield Tap(
            f"infinity-before-nan-{rule}",
            f"an infinity is answered before a NaN is looked for; of both signs the {rule} one",
            "specials",
            lambda s, r=rule: _prefer_infinities(s, r),
        )
    for late, word in ((1, "before"), (-1, "behind")):
        yield Tap(
            f"special-of-vector-{word}",
            f"NaNs and infinities are those of the vector {word}",
            "specials",
            lambda s, n=late: _take_specials(s, n),
            in_order=True,
        )
        yield Tap(
            f"infinity-signs-of-vector-{word}",
            f"the signs of infinities are those that the terms of the vector {word} have",
            "specials",
            lambda s, n=late: setattr(
                s, "sign", np.where(s.kind == Kind.INFINITY, np.roll(s.sign, n, axis=0), s.sign)
            ),
            weight=1.1,
            in_order=True,
        )
    for sign, word in ((0, "positive"), (1, "negative")):
        yield Tap(
            f"{word}-terms-are-infinite",
            f"every {word} term counts as infinite",
            "specials",
            lambda s, n=sign: setattr(s, "kind", np.where(s.sign == n, np.maximum(s.kind, 2), s.kind)),
            weight=1.2,
        )


def _of_both_signs(with_c: bool) -> Iterator[Tap]:
    """A test for an infinity of one sign that looks at no sign."""
    owners = {"products": "as a product"} | ({"c": "as c"} if with_c else {})
    for sign, word in ((0, "positive"), (1, "negative")):
        for name, where in owners.items():
            yield Tap(
                f"{word}-infinite-{name}-of-both-signs",
                f"a {word} infinity {where} counts as one of either sign, and gives NaN",
                "specials",
                lambda s, n=sign, o=name: _oppose(s, n, o),
            )


def _oppose(s: SpecialSignals, sign: int, name: str) -> None:
    there = (s.kind == Kind.INFINITY) & (s.sign == sign) & ((s.owner == "c") == (name == "c"))
    s.kind = np.where(there, int(Kind.NAN), s.kind)


def _signs_of_sums() -> Iterator[Tap]:
    """An infinite result whose sign comes from the datapath of the numbers."""
    parts = {"sum": ("the terms as numbers", Kind.FINITE), "finite-sum": ("its finite terms", Kind.ZERO)}
    for slug, (text, kind) in parts.items():
        yield Tap(
            f"infinite-result-sign-of-{slug}",
            f"the sign of an infinite result is that of the sum of {text}",
            "specials",
            lambda s, k=kind: _sign_by_sum(s, k),
        )


def _sign_by_sum(s: SpecialSignals, infinities_as: Kind) -> None:
    s.signed_by_sum = _is_infinite(s)
    s.unseen_as = infinities_as
    _overlook(s, (s.kind == Kind.INFINITY) & s.signed_by_sum[:, None], "", but_c=False)


def _is_infinite(s: SpecialSignals) -> Array:
    """(n,): which answers are an infinity, and no NaN."""
    infinite = s.kind == Kind.INFINITY
    both = (infinite & s.sign).any(axis=1) & (infinite & ~s.sign).any(axis=1)
    return np.asarray(infinite.any(axis=1) & ~both & ~(s.kind == Kind.NAN).any(axis=1))


def _take_specials(s: SpecialSignals, late: int) -> None:
    """Its own ones are numbers then."""
    _overlook(s, s.kind >= Kind.INFINITY, "", but_c=False)
    s.skew = late


def _lose_infinities(s: SpecialSignals) -> None:
    _overlook(s, (s.kind == Kind.INFINITY) & _is_infinite(s)[:, None], "", but_c=False)


def _lose_nans(s: SpecialSignals, rule: str) -> None:
    _overlook(s, s.kind == Kind.NAN, "", but_c=False)
    s.excused, s.opposite = np.ones(len(s.kind), np.bool_), rule


def _prefer_infinities(s: SpecialSignals, rule: str) -> None:
    infinite = (s.kind == Kind.INFINITY).any(axis=1)
    _overlook(s, (s.kind == Kind.NAN) & infinite[:, None], "", but_c=False)
    s.excused, s.opposite = infinite, rule


_RULES: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "inverted": ("inverted", np.logical_not),
    "positive": ("always +", np.zeros_like),
    "negative": ("always -", np.ones_like),
}
"""What else the sign of an infinity may be."""


def _signs_of_answers() -> Iterator[Tap]:
    """Infinities of operands that end with another sign; what overflows is no such one."""
    for slug, (text, rule) in _RULES.items():
        yield Tap(
            f"infinite-operand-sign-{slug}",
            f"an infinite operand gives an infinity whose sign is {text}",
            "specials",
            lambda s, r=rule: _sign_infinities(s, _is_infinite(s)[:, None], r(s.sign)),
            weight=1.0,
        )


def _signs() -> Iterator[Tap]:
    """Infinities that are seen, and take a sign that is not theirs."""
    for slug, (text, rule) in _RULES.items():
        yield Tap(
            f"infinite-c-sign-{slug}",
            f"the sign of an infinite c is {text}",
            "specials",
            lambda s, r=rule: _sign_infinities(s, s.owner == "c", r(s.sign)),
        )
    yield Tap(
        "infinite-product-sign-of-c",
        "the sign of an infinite product is that of c",
        "specials",
        _take_sign_of_c,
    )
    yield Tap(
        "infinite-result-sign-of-c",
        "the sign of an infinite result is that of c",
        "specials",
        lambda s: _sign_result(s, s.owner == "c"),
    )
    yield Tap(
        "infinite-result-sign-of-product",
        "the sign of an infinite result is that of the product",
        "specials",
        lambda s: _sign_result(s, np.isin(s.owner, ("product", "products"))),
    )


def _sign_result(s: SpecialSignals, owner: Array) -> None:
    """The sign of one term for infinities that are answered; what gives NaN is seen as it is."""
    if owner.sum() == 1:  # of several products there is no such sign
        own = (s.kind == Kind.INFINITY) & _is_infinite(s)[:, None]
        s.sign = np.where(own, s.sign[:, owner], s.sign)


def _take_sign_of_c(s: SpecialSignals) -> None:
    """Not of the additions of a unit that looks for special values first: their terms have other owners."""
    if (c := s.owner == "c").any():
        _sign_infinities(s, ~c, s.sign[:, c])


def _sign_infinities(s: SpecialSignals, owner: Array, sign: Array) -> None:
    """Of a multiply-add `owner` and `sign` are of its two terms; c of a later one is the sum so far."""
    s.sign = np.where((s.kind == Kind.INFINITY) & owner, sign, s.sign)


def _opposites() -> Iterator[Tap]:
    """Infinities of both signs, and NaNs, that are taken otherwise."""
    for rule, sign in _SIGNS.items():
        yield Tap(
            f"c-not-in-opposites-{rule}",
            f"an infinite product and the opposite infinity as c give an infinity, not NaN (sign: {sign})",
            "specials",
            lambda s, r=rule: _excuse(s, r, with_c=True),
        )
        yield Tap(
            f"products-not-in-opposites-{rule}",
            f"infinite products of both signs give an infinity, not NaN (sign: {sign})",
            "specials",
            lambda s, r=rule: _excuse(s, r, with_c=False),
        )
    for name in ("products", "c"):
        yield Tap(
            f"{name}-nan-is-infinity",
            f"a NaN {'product' if name == 'products' else 'as c'} counts as an infinity",
            "specials",
            lambda s, n=name: _nan_as_infinity(s, n),
        )


def _excuse(s: SpecialSignals, rule: str, with_c: bool) -> None:
    """Infinities of both signs are no NaN where c is one of them (or where it is not)."""
    infinite, others = s.kind == Kind.INFINITY, s.owner != "c"
    plus, minus = infinite & ~s.sign, infinite & s.sign
    among = plus[:, others].any(axis=1) & minus[:, others].any(axis=1)
    s.excused, s.opposite = ~among if with_c else among, rule


def _nan_as_infinity(s: SpecialSignals, name: str) -> None:
    s.kind = np.where((s.owner == name) & (s.kind == Kind.NAN), int(Kind.INFINITY), s.kind)
