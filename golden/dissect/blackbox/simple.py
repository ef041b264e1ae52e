"""Questions with few terms: c alone, one product, one product and c, two products.

What one term shows depends on no order of the sum: how products are rounded and special values looked for is
fitted on these, also while the order is still wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from golden import stimuli
from golden.program.signature import Operands, Signature

_DRAWN = (
    *("random_bits", "narrow", "wide", "subnormal", "near_overflow", "tie", "special_values", "special_each"),
    *("corner_pairs", "half_ulp"),
)
_SHAPES = (("c alone", 0, True), ("one product", 1, False), ("one product and c", 1, True))
_PAIRS = (("two products", 2, False), ("two products and c", 2, True))
KINDS = frozenset(name for name, *_ in (*_SHAPES, *_PAIRS))


def simple(takes: Signature, each: int, rng: np.random.Generator) -> Iterator[tuple[str, Operands]]:
    """(kind, operands) by the number of terms, `each` dot products of every kind that is drawn from."""
    k = takes.stored_k
    for name, products, with_c in (*_SHAPES, *(_PAIRS if k > 1 else ())):
        parts = [stimuli.generate(takes, kind, each, rng) for kind in _DRAWN]
        whole = {operand: np.concatenate([part[operand] for part in parts]) for operand in parts[0]}
        rows = len(whole["a"])
        ranks = np.argsort(rng.random((rows, k)), axis=1)
        for operand in "ab":
            whole[operand] = np.where(ranks < products, whole[operand], takes.at_rest(operand)).astype(
                whole[operand].dtype
            )
        if not with_c:
            whole["c"] = np.full_like(whole["c"], takes.at_rest("c"))
        yield name, whole
