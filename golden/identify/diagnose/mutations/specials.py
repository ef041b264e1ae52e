"""Faults in the detection of NaNs and infinities, and in the answers to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from golden.identify.diagnose.datapath.arrays import Array
from golden.identify.diagnose.datapath.signals import SpecialSignals
from golden.identify.diagnose.mutations.mutation import Mutation, change, fields, kinds_of, sets, signal
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
        yield from _unseen(ins)
        if signed:
            yield from _signs_of_answers()
    if with_c:
        yield from _opposites()


_UNSEEN: dict[str, tuple[str, _Mask]] = {
    "nan": ("NaN", lambda s: s.kind == Kind.NAN),
    "infinity": ("infinity", lambda s: s.kind == Kind.INFINITY),
    "plus-infinity": ("positive infinity", lambda s: (s.kind == Kind.INFINITY) & ~s.sign),
    "minus-infinity": ("negative infinity", lambda s: (s.kind == Kind.INFINITY) & s.sign),
    "special": ("NaN or infinity", lambda s: s.kind >= Kind.INFINITY),
}
"""Special values that a unit may miss, and where they are."""


def _unseen(ins: Instruction) -> Iterator[Mutation]:
    """Special values mistaken for the numbers that their codes would be."""
    owners = {"": "a term", **({} if "c" in ins.absent else {"c-": "c", "products-": "a product"})}
    for slug, where in owners.items():
        for what, (text, mask) in _UNSEEN.items():
            said = f"{text} as {where} is not seen: it counts as a number"
            rule = partial(_overlook, mask=mask, owner=slug)
            yield _special(f"{slug}{what}-unseen", said, rule, 1.0 if slug else 1.05)


def _overlook(s: SpecialSignals, mask: _Mask, owner: str) -> None:
    """These terms continue as numbers."""
    there = mask(s) & ((owner == "") | ((s.owner == "c") == (owner == "c-")))
    s.unseen = there if s.unseen is None else s.unseen | there


def _answered_infinities(s: SpecialSignals) -> Array:
    """(n, terms): infinities that lead to an infinite answer without a NaN."""
    infinite = s.kind == Kind.INFINITY
    both = (infinite & s.sign).any(axis=1) & (infinite & ~s.sign).any(axis=1)
    answered = ~both & ~(s.kind == Kind.NAN).any(axis=1)
    return np.asarray(infinite & answered[:, None])


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


def _opposites() -> Iterator[Mutation]:
    """Infinities of both signs, and NaNs, mistaken for something else."""
    for rule, sign in _OPPOSITES.items():
        sign = sign.replace("infinity's sign", "one")
        text = f"an infinite product and the opposite infinity as c give an infinity, not NaN (sign: {sign})"
        yield _special(f"c-not-in-opposites-{rule}", text, partial(_excuse, rule=rule, with_c=True))
        text = f"infinite products of both signs give an infinity, not NaN (sign: {sign})"
        yield _special(f"products-not-in-opposites-{rule}", text, partial(_excuse, rule=rule, with_c=False))


def _excuse(s: SpecialSignals, rule: str, with_c: bool) -> None:
    """Infinities of both signs give no NaN if c is one of them (or if it is not)."""
    infinite, others = s.kind == Kind.INFINITY, s.owner != "c"
    plus, minus = infinite & ~s.sign, infinite & s.sign
    among = plus[:, others].any(axis=1) & minus[:, others].any(axis=1)
    s.excused, s.opposite = ~among if with_c else among, rule
