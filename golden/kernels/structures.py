"""Ways to cut K that a sum tree shows: the options of plans that could have it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from golden.kernels.sum_tree import Chain, Form, Node, Sums, form


def structures(tree: Node) -> list[dict[str, Any]]:
    """Options of golden.kernels.options that may stand behind a tree, simple ones first: every length of a
    part in it as a part and as what is promoted, every way in which parts are dealt out, alone and in
    twos."""
    whole = form(tree)
    lengths: dict[int, int] = {}
    dealt: dict[tuple[int, int], int] = {}
    for part in _parts(whole):
        runs = _runs(sorted(part.places))
        if len(runs) == 1:
            length = runs[0][1]
            lengths[length] = lengths.get(length, 0) + 1
        else:
            key = runs[0][1], runs[1][0] - runs[0][0]
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
    runs = [_runs(sorted(one.places)) for one in _chains(whole)]
    if len(runs) < 2 or any(len(run) > 1 for run in runs):
        return ()
    return tuple(length for _, length in sorted(run[0] for run in runs))


def _sums(whole: Form) -> tuple[Any, ...]:
    """Which sums are added to which, each by the place of its first element among those of all; nothing where
    chains are added in turn, or neighbours in pairs, which have words."""
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


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """Stretches of neighbours: first, length."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and place == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((place, 1))
    return runs


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
