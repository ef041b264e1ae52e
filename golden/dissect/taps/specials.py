"""Faults in telling NaNs and infinities apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from golden.dissect.datapath.signals import (
    SpecialSignals,
    Tap,
)
from golden.instruction import Instruction
from golden.number.formats import Kind
from golden.program.steps import (
    SpecialValues,
)

_SIGNS = {
    "first": "the first one",
    "last": "the last one",
    "positive": "+",
    "negative": "-",
}


def faults(ins: Instruction) -> Iterator[Tap]:
    steps = ins.program.steps_of(SpecialValues)
    if not steps or "c" in ins.absent or not any("c" in step.of and len(step.of) > 1 for step in steps):
        return
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
