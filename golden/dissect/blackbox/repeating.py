"""Whether a unit answers the same question the same, whatever it was asked before and beside it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from golden import stimuli
from golden.dissect.blackbox.box import Box

_OF_EACH_KIND = 16


def asked_again(box: Box, rng: Callable[..., np.random.Generator]) -> tuple[int, int]:
    """How many questions of all kinds had another answer when they were asked again, in another order, one
    alone and the others in batches of other sizes (which may be summed otherwise); and of how many.

    Args:
        rng: of the place of a kind.

    Raises:
        BudgetEnded, OperandError: as `Box.ask`.
    """
    parts = [
        stimuli.generate(box.takes, kind, _OF_EACH_KIND, rng(place))
        for place, kind in enumerate(stimuli.KINDS)
    ]
    operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    asked, first = box.ask(operands)
    turned = np.arange(len(first))[::-1]
    parts_again = np.split(turned, [1, len(turned) // 3])
    told = [box.ask({name: codes[part] for name, codes in operands.items()}) for part in parts_again]
    again = np.concatenate([answers for _, answers in told])[turned]
    same = np.concatenate([part["c"] for part, _ in told])[turned] == asked["c"]
    return int(((first != again) & same).sum()), len(first)
