"""The plan behind one product that has more operands than A and B: the metadata of a sparse A, scales.

Each plan that takes just these is tried on a corner of D, then on a larger one, then on all of it.
`structures` are the ways to cut K that the sum tree of a called kernel shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.lookup import instructions
from golden.errors import MmagoldError, OperandError, ShapeError, runs
from golden.kernels.candidates import candidates_of, cuts, extra_operands, scaled, takes
from golden.kernels.epilogues import NOTHING, Addends
from golden.kernels.plan import Plan
from golden.kernels.plan_files import plans
from golden.kernels.product import gemm
from golden.kernels.sampling import SearchResult, first_plan
from golden.kernels.sum_tree import Chain, Form, Node, Sums, form
from golden.number.formats import Format

Bits = npt.NDArray[Any]
BLOCKS = (((1, 128), (128, 128)), ((1, 128), (128, 1)), ((128, 128), (128, 128)))
"""Extents of the blocks of A and of B that kernels scale."""
SCALES_OF_BLOCKS: list[dict[str, Any]] = [
    {
        "scales": "block",
        "promote": 128,  # elements of K whose sum is multiplied by the scales of blocks
        "scale_order": order,
        "fma": fma,
        "scale_a_block": a,
        "scale_b_block": b,
    }
    for a, b in BLOCKS
    for order in ("product", "a_first")
    for fma in ((), ("promotion",))
]


def search_with_extra_operands(
    given: Mapping[str, Bits],
    extra: Mapping[str, npt.ArrayLike],
    arch: str,
    formats: dict[str, Format],
    report: Callable[[str, int, int], None],
    addends: Addends = NOTHING,
) -> SearchResult:
    """As golden.kernels.finding.search.

    Args:
        given: raw codes a, b and d.
        extra: metadata, scale_a and scale_b, as golden.gemm takes them.
        report: called with (what is being done, plans tried, 0).
        addends: C and bias.

    Raises:
        OperandError: no plan takes these operands.
    """
    operands = {"a": given["a"], "b": given["b"]} | {name: np.asarray(x) for name, x in extra.items()}
    trial = _Trial(operands | addends.operands(), given["d"])
    epilogues = addends.epilogues(given["d"], formats["d"])
    # Rows and columns of D on which plans are tried, one after the other.
    corners = ((2, 6), (16, 32))
    first, larger, whole = (*corners, given["d"].shape)
    scores: list[tuple[int, Plan]] = []
    for plan in _followed(_plans(arch, formats, set(extra), given["b"].shape[0]), epilogues):
        equal = trial.equal(plan, *first)
        if equal is not None:
            scores.append((equal, plan))
        report("trying plans on a corner", len(scores), 0)
    if not scores:
        named = ", ".join(f"{name} {formats[name].name}" for name in ("a", "b", "d") if name in formats)
        why = f": {trial.refusal}" if trial.refusal else ", expected an architecture with such instructions"
        raise OperandError(
            f"no plan of {arch} takes A, B and {', '.join(extra)} of these formats ({named}) and shapes{why}"
        )
    fits = [plan for equal, plan in scores if equal == trial.count(*first)]
    report("trying plans on the whole product", 0, 0)
    for rows, columns in (larger, whole):
        fits = [plan for plan in fits if trial.equal(plan, rows, columns) == trial.count(rows, columns)]
    scores.sort(key=lambda pair: -pair[0])
    near = sorted(
        ((trial.equal(plan, *larger) or 0, plan) for _, plan in scores[:8]), key=lambda pair: -pair[0]
    )
    plan_found = first_plan(fits, given["d"].shape, given["b"].shape[0], 1)
    return SearchResult(plan_found, len(scores), 0, trial.count(*larger), tuple(near[:3]))


class _Trial:
    """The operands of a product, and D."""

    def __init__(self, operands: Mapping[str, Bits], d: Bits) -> None:
        self.operands, self.d = operands, d
        self.refusal = ""

    def count(self, rows: int, columns: int) -> int:
        """Elements of a corner of D."""
        return self.d[:rows, :columns].size

    def equal(self, plan: Plan, rows: int, columns: int) -> int | None:
        """How many elements of a corner a plan gives; None if it does not take the operands."""
        try:
            more: dict[str, Any] = {
                name: _of_corner(plan, name, array, rows, columns)
                for name, array in self.operands.items()
                if name not in "ab"
            }
            found = gemm(self.operands["a"][:rows], self.operands["b"][:, :columns], plan, **more)
        except MmagoldError as error:
            self.refusal = self.refusal or str(error)
            return None
        return int(np.count_nonzero(found == self.d[:rows, :columns]))


def _plans(arch: str, formats: dict[str, Format], more: set[str], k: int) -> Iterator[Plan]:
    """Named plans and their cuts of K, then instructions in every way to cut K."""
    named = [one for one in plans(arch) if takes(one, formats, more)]
    yield from named
    for one in named:
        yield from (one.but(part=size) for size in cuts(one, k))
    units = [unit for unit in instructions(arch) if extra_operands(unit) == more]
    yield from candidates_of(units, formats, k)
    if more == {"scale_a", "scale_b"}:
        dense = [unit for unit in instructions(arch) if not extra_operands(unit)]
        yield from scaled(dense, formats, k, [{"scales": "tensor"}, {"scales": "row"}, *SCALES_OF_BLOCKS])


def _followed(found: Iterable[Plan], epilogues: Sequence[Mapping[str, Any]]) -> Iterator[Plan]:
    """The plans with each epilogue that goes with them."""
    for plan in found:
        for more in epilogues:
            with suppress(OperandError):  # C before the sum goes with one chain alone
                yield plan.but(**more) if more else plan


def _of_corner(plan: Plan, name: str, array: Bits, rows: int, columns: int) -> Bits:
    """Metadata, scales, C or bias of the first rows and columns."""
    kind = plan.options.scales
    if name == "C":
        return array[:rows, :columns]
    if name == "bias":
        return array[:rows] if plan.options.bias == "rows" else array[:columns]
    if array.ndim != ({"tensor": 0, "row": 1}.get(kind, 2) if name != "metadata" else 2):
        raise ShapeError(f"argument '{name}' has shape {array.shape}, which {plan!r} does not take")
    if name == "metadata" or (name == "scale_a" and kind in ("none", "row")):
        return array[:rows]
    if kind == "tensor":
        return array
    if kind == "row":
        return array[:columns]
    if name == "scale_a":
        return array[: -(-rows // plan.options.scale_a_block[0])]
    across = plan.options.scale_b_block[1] if kind == "block" else 1
    return array[:, : -(-columns // across)]


def structures(tree: Node) -> list[dict[str, Any]]:
    """Options of golden.kernels.options that may stand behind a tree, simple ones first: every length of a
    part in it as a part and as what is promoted, every way in which parts are dealt out, alone and in
    twos."""
    whole = form(tree)
    lengths: dict[int, int] = {}
    dealt: dict[tuple[int, int], int] = {}
    for part in _parts(whole):
        first, *others = runs(sorted(part.places))
        if not others:
            lengths[len(first)] = lengths.get(len(first), 0) + 1
        else:
            key = len(first), others[0].start - first.start
            dealt[key] = dealt.get(key, 0) + 1
    # Lengths of each kind that are tried, the most frequent first.
    most = 6
    common = sorted(lengths, key=lambda length: -lengths[length])[:most]
    ways = sorted(dealt, key=lambda key: -dealt[key])[:most]
    slices = [{"slices": period // width, "tile_k": period} for width, period in ways if period % width == 0]
    parts = [{"part": length} for length in common]
    promoted = [{"promote": length} for length in common]
    found: list[dict[str, Any]] = [{}, *parts, *promoted, *slices]
    found += [{**one, **other} for one, other in product(parts, promoted) if one["part"] > other["promote"]]
    found += [{**one, **other} for one, other in product(parts, slices)]
    found += [{**one, **other} for one, other in product(slices, promoted)]
    if uneven := _lengths(whole):
        found.append({"parts": uneven})
    if own := _sums(whole):
        cuts: list[dict[str, Any]] = [*parts, *slices, *([{"parts": uneven}] if uneven else [])]
        found += [{**one, "reduce": own} for one in cuts]
    for order in _orders(whole):
        found += [{**order, **one} for one in ({}, *parts, *promoted)]
    return found


def _parts(one: Form) -> Iterator[Form]:
    """All sums and chains below the root."""
    if isinstance(one, Chain):
        return
    for part in one.parts:
        yield part
        yield from _parts(part)


def _lengths(whole: Form) -> tuple[int, ...]:
    """Elements of each chain in the order of K, where all chains are stretches of K and there are several."""
    found = [runs(sorted(one.places)) for one in _chains(whole)]
    if len(found) < 2 or any(len(each) > 1 for each in found):
        return ()
    return tuple(len(run) for run in sorted((each[0] for each in found), key=lambda run: run.start))


def _sums(whole: Form) -> tuple[Any, ...]:
    """Which sums are added to which. A sum is named by the place of its first element among the first
    elements of all. Empty where chains are added in turn, or neighbours in pairs: words say these."""
    firsts = [min(one.places) for one in _chains(whole)]
    if isinstance(whole, Chain):
        return ()
    flat = all(isinstance(one, Chain) for one in whole.parts)
    swapped = [*firsts[1::-1], *firsts[2:]]  # of the first two the order makes no difference
    if flat and any(said in (firsts, swapped) for said in (sorted(firsts), sorted(firsts, reverse=True))):
        return ()
    ranks = {place: rank for rank, place in enumerate(sorted(firsts))}
    return tuple(_nested(one, ranks) for one in _twos(whole))


def _nested(one: Form, ranks: dict[int, int]) -> Any:
    if isinstance(one, Chain):
        return ranks[min(one.places)]
    return tuple(_nested(part, ranks) for part in _twos(one))


def _twos(one: Sums) -> tuple[Form, ...]:
    """What is added in turn: of a balanced tree its halves."""
    half = len(one.parts) // 2
    if not one.balanced or half < 2:
        return one.parts
    return tuple(Sums(each, True) for each in (one.parts[:half], one.parts[half:]))


def _chains(one: Form) -> Iterator[Chain]:
    """The chains of a tree, in the order in which they are added."""
    if isinstance(one, Chain):
        yield one
        return
    for part in one.parts:
        yield from _chains(part)


def _orders(whole: Form) -> Iterator[dict[str, Any]]:
    """The order of K in the first chain, where it is that of tiles with an order of their own."""
    first = whole
    while not isinstance(first, Chain):
        first = first.parts[0]
    start = min(first.places)
    places = [place - start for place in first.places]
    if places == sorted(places):
        return
    for tile in [*range(2, len(places) // 2 + 1), len(places)]:
        tiles = [places[at : at + tile] for at in range(0, len(places) - tile + 1, tile)]
        head = tiles[0]
        if sorted(head) == list(range(tile)) and all(
            one == [place + at * tile for place in head] for at, one in enumerate(tiles)
        ):
            yield {"order": tuple(head), "tile_k": tile}
            return
