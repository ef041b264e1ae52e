"""Words that the stages of a datapath share."""

from __future__ import annotations

from collections.abc import Sequence

from golden.number.rounding import ROUNDINGS
from golden.program.steps import Align, Sum
from golden.program.widths import Node
from golden.publish.pictures.sheet import Sheet

MODES_SHORT = {name: rounding.note for name, rounding in ROUNDINGS.items()}
OVERFLOW = {
    "infinity": "overflow becomes infinity",
    "largest": "overflow becomes the largest number",
    "ieee": "overflow as in IEEE 754",
    "nan": "overflow becomes NaN",
    "wrap": "wraps modulo 2^width",
    "saturate": "clamps to the range",
}
ZERO = {
    "positive": "every zero result is +0",
    "signed": "zeros keep their sign",
    "signed_underflow": "a cancelled sum is +0, a result that underflows keeps its sign",
}
FLUSH = {"signed": "subnormal results become zero of their sign", "positive": "subnormal results become +0"}


def labels(sheet: Sheet, node: Node) -> list[str]:
    """Names of the wires that are drawn: the first two and the last of products (k) or groups (g)."""
    if node.register == "products":
        names = [f"k{k}" for k in sheet.operation.k_index]
    else:
        names = [f"{node.register[0]}{i}" for i in range(node.count)] if node.count > 1 else []
    return names if len(names) <= 3 else [*names[:2], names[-1]]


def names_of(names: Sequence[str]) -> str:
    """Register names in a sentence."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def grouped(step: Align | Sum) -> str:
    """How a grouped step takes its terms; nothing where it takes all."""
    if step.group is None:
        return ""
    kind, size = step.group
    return (
        f", every {size}th together"
        if kind == "interleaved" and size > 2
        else (", even and odd k apart" if kind == "interleaved" else f", in groups of {size}")
    )
