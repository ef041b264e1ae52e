"""What a search for a plan found."""

from __future__ import annotations

from dataclasses import dataclass, replace

from golden.kernels.plan import Plan
from golden.kernels.sum_tree import Node
from golden.model.instruction import Evidence


@dataclass(frozen=True)
class SearchResult:
    """What a search found: the plan or None, and the plans that came nearest on `sampled` elements, each with
    how many of them it has. `unchecked`: plans that fit the sample and were not tried on all of D. `tree`: in
    which order a called kernel adds, None if none was called or its order is not known."""

    plan: Plan | None
    tried: int
    unchecked: int
    sampled: int
    near: tuple[tuple[int, Plan], ...]
    tree: Node | None = None


def first_plan(found: list[Plan], shape: tuple[int, ...], k: int, count: int) -> Plan | None:
    """The first of the plans that gave all of `count` products, with the others as `others`."""
    if not found:
        return None
    many = "one product" if count == 1 else f"{count} products"
    seen = Evidence("derived", f"equal in every bit of {many} of {shape[0]} x {shape[1]} x {k}")
    known = [plan if plan.name else replace(plan, evidence=seen) for plan in found]
    return replace(known[0], others=tuple(known[1:]))
