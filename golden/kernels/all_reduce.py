"""The order in which NCCL adds what several GPUs hold, and the sums in this order.

Each sum of two numbers is rounded to the arrays' format, so the order decides the bits as soon as there are
three ranks. The orders are those of NCCL's source (src/device/all_reduce.h, src/graph/trees.cc, 2.28.9); 2 to
8 ranks were compared with NCCL: docs/reports/all-reduce-h200.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.kernels.conversion import encode
from golden.kernels.plan_files import fma
from golden.number.formats import get_format, to_float

Bits = npt.NDArray[Any]
Order = tuple[Any, ...]
"""As `reduce` of a plan: ranks in the order in which they are added, inner orders first."""
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
"""The word of every NaN that an addition gives on NVIDIA's GPUs."""


def ring(ranks: int, chunk: int) -> Order:
    """Chunk c of a ring 0, 1, ...: rank c + 1 sends, each rank behind it adds its own, rank c is the last."""
    return tuple((chunk + 1 + rank) % ranks for rank in range(ranks))


def trees(nodes: int) -> tuple[Order, Order]:
    """The two binary trees over GPUs that lie in machines of their own; each takes a part of the elements.

    A GPU adds what its lower child sends to its own numbers, and then what its upper child sends. The second
    tree is the first one mirrored, or shifted by one for an odd number of GPUs.
    """

    def order(node: int, ranks: Sequence[int]) -> Any:
        inner = [order(child, ranks) for child in _children(node, nodes)]
        return (ranks[node], *inner) if inner or node == 0 else ranks[node]

    first = range(nodes)
    second = [(node + 1) % nodes for node in first] if nodes % 2 else [nodes - 1 - node for node in first]
    return order(0, first), order(0, second)


def _children(node: int, nodes: int) -> list[int]:
    """`node` less and plus half its lowest bit that is one (node 0 has an upper child only). Where the upper
    child does not exist, the next smaller power of two that leads to one is added."""
    low = node & -node if node else 1 << (nodes - 1).bit_length()
    step = low >> 1
    lower = [node - step] if node and step else []
    while step and node + step >= nodes:
        step >>= 1
    return [*lower, node + step] if step else lower


def chunks(elements: int, ranks: int, fmt: str) -> list[slice]:
    """The chunks of a ring with one channel, of a message that one turn of the ring holds: equal ones, a
    multiple of 16 bytes long; the last ones may be shorter, or empty."""
    # Bytes: a chunk of a ring begins at a multiple of them.
    vector = 16
    unit = vector // get_format(fmt).dtype.itemsize
    length = math.ceil(math.ceil(elements / ranks) / unit) * unit
    return [slice(min(c * length, elements), min((c + 1) * length, elements)) for c in range(ranks)]


def added(held: Sequence[Bits], fmt: str, order: Order, mean: bool = False) -> Bits:
    """The sum in an order, each addition rounded to nearest even in the format.

    Args:
        held: raw codes of each rank, of one shape.
        fmt: f16, bf16 or f32.
        order: of the ranks.
        mean: the average (ReduceOp.AVG) of a ring. Each rank's numbers are multiplied by 1 / ranks, which is
            rounded to the format. The first rank's products are rounded; each further product and the
            addition are one fused multiply-add.

    Returns:
        raw codes.

    Raises:
        OperandError: another format; the average in an order with inner orders.
    """
    if fmt not in NAN:
        raise OperandError(f"format is '{fmt}', expected one of {', '.join(NAN)}")
    if mean and not all(isinstance(rank, int) for rank in order):
        raise OperandError("the average is known for a ring, expected an order without inner ones")
    form, unit = get_format(fmt), fma(fmt, fmt)
    one, share = (encode(np.array([value], np.float32), form) for value in (1, 1 / len(held)))

    def plus(x: Bits, factor: Bits, y: Bits) -> Bits:
        """x times a factor plus y, rounded once."""
        codes = unit.dot(x[..., None], np.broadcast_to(factor, (*x.shape, 1)), y)
        return np.where(np.isnan(to_float(form, codes)), form.dtype.type(NAN[fmt]), codes)

    def total(item: Any) -> Bits:
        if isinstance(item, int):
            return held[item]
        sums, factor = total(item[0]), share if mean else one
        if mean:
            # A product plus -0 keeps its sign.
            sums = plus(sums, share, np.full_like(sums, 1 << (form.bits - 1)))
        for further in item[1:]:
            sums = plus(total(further), factor, sums)
        return sums

    return total(order)
