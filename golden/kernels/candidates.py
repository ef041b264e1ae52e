"""The plans that a search tries: instructions that take the operands, and the ways in which kernels cut K."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from golden.catalog.lookup import instructions
from golden.errors import OperandError
from golden.kernels.order import Runs, divides, intervals, parts, said_and_found
from golden.kernels.plan import Plan, build
from golden.kernels.plan_files import plans
from golden.model.instruction import Instruction
from golden.number.formats import Format

PROMOTED = (2, 4, 8, 16)
"""Steps whose sum is promoted."""
SPLITS = (*range(2, 17), 18, 20, 24, 28, 32, 48, 64)
TILES = (32, 64, 128)
PARTS = (32, 64, 128, 256, 512, 1024, 2048)
SLICES = (2, 4, 8)
DEALT = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16)
"""Blocks among which tiles of K are dealt out in turn."""
DEALT_SUMS = {9: (0, 5, 8, (1, 6), (2, 7), 3, 4)}
"""By number of blocks, the order in which their sums are added, in addition to ORDERS: found by calls of
cuBLAS's f64."""
MOST_CUTS = 64
"""Parts of a named plan's K."""
_FILLED = 4
"""Elements by which kernels that fill a tile in part cut K: four f32 are 128 bits, CUTLASS's alignment."""
ORDERS = ("ascending", "descending", "tree")
_SCALES = frozenset({"scale_a", "scale_b"})


@dataclass(frozen=True)
class Candidate:
    """Plans whose parts of K have the same sums, each: they differ in how these are reduced."""

    plans: tuple[Plan, ...]


def candidates(architecture: str, formats: dict[str, Format], k: int) -> Iterator[Candidate]:
    """All of them, simple ones first; plans that are the same at this K come once, a named one with its
    name."""
    tried: set[object] = set()
    named = [one for one in plans(architecture) if takes(one, formats)]
    units = _units(architecture, formats)
    made = [_as_candidate([one], tried, k) for one in named]
    for one in (each for each in named if each.options.edge == "first"):
        made += [_as_candidate([one.but(part=size)], tried, k) for size in cuts(one, k)]
    for options in _structures(k):
        for unit, convert in units:
            made.append(_as_candidate(_variants(unit, {**convert, **options}, formats), tried, k))
            yield from (one for one in made if one.plans)
            made = []
    yield from (one for one in made if one.plans)


def shaped(
    architecture: str, formats: dict[str, Format], k: int, structures: list[dict[str, Any]]
) -> Iterator[Candidate]:
    """The same of ways to cut K that are known, those of named plans replaced by them."""
    tried: set[object] = set()
    for one in plans(architecture):
        for options in structures if takes(one, formats) else ():
            found = []
            for order in ORDERS:
                try:
                    found.append(one.but(**{"reduce": order, **options}) if options else one)
                except OperandError:
                    break
            yield from _told(_as_candidate(found, tried, k))
    units = _units(architecture, formats)
    for options in structures:
        for unit, convert in units:
            yield from _told(_as_candidate(_variants(unit, {**convert, **options}, formats), tried, k))


def candidates_of(units: list[Instruction], formats: dict[str, Format], k: int) -> Iterator[Plan]:
    """Plans of these instructions, those of one arithmetic once, in every way to cut K."""
    tried, different = set[object](), _different(units)
    for options in _structures(k):
        for unit in different:
            yield from _as_candidate(_same(_variants(unit, options, formats), formats), tried, k).plans


def scaled(
    units: list[Instruction], formats: dict[str, Format], k: int, scales: list[dict[str, Any]]
) -> Iterator[Plan]:
    """The same with each of these options, of one chain, with promotion, or in parts that are added in order;
    plans that promote anyway in one way only."""
    tried, different = [set[object]() for _ in scales], _different(units)
    for options in _structures(k):
        if len(options.keys() - {"tile_k"}) > 1 or "slices" in options:
            continue
        for unit in different:
            for more, known in zip(scales, tried, strict=True):
                if "promote" not in more or not options:
                    made = _variants(unit, {**options, **more, "reduce": "ascending"}, formats)
                    yield from _as_candidate(_same(made, formats), known, k).plans


def _different(units: list[Instruction]) -> list[Instruction]:
    """The first plan of each arithmetic."""
    return list(
        {(_arithmetic(one), *(one.formats[x] for x in "ab")): one for one in reversed(units)}.values()
    )


def _same(found: list[Plan], formats: dict[str, Format]) -> list[Plan]:
    return [one for one in found if all(one.formats[name] == fmt for name, fmt in formats.items())]


def cuts(plan: Plan, k: int) -> list[int]:
    """Elements of K in a part, the largest first: for each number of parts those of whole tiles and, for
    kernels that fill the first tile in part, others."""
    units = [plan.tile, *([_FILLED] if plan.options.edge == "first" else [])]
    sizes = {-(-k // (many * unit)) * unit for unit in units for many in range(2, MOST_CUTS + 1)}
    return [size for size in sorted(sizes, reverse=True) if size < k]


def _told(candidate: Candidate) -> list[Candidate]:
    return [candidate] if candidate.plans else []


def takes(plan: Plan, formats: dict[str, Format], more: Set[str] = frozenset()) -> bool:
    """Whether the plan takes exactly A and B of these formats and these further operands."""
    scales = _SCALES if plan.options.scales != "none" else frozenset()
    bias = {"bias"} if plan.options.bias != "none" else set[str]()
    return bool(_same([plan], formats)) and beside(plan.instruction) | scales | bias == more


def beside(unit: Instruction) -> frozenset[str]:
    """The operands that an instruction takes in addition to A, B and C."""
    sparse = {"metadata"} if unit.pattern is not None else set[str]()
    return frozenset(sparse) | (_SCALES if unit.scale_block is not None else frozenset())


def _fits(plan: Plan, k: int) -> bool:
    of_k = plan.options.parts is None or sum(plan.options.parts) == k
    said, found = said_and_found(plan, k)
    return of_k and said == found and (plan.options.edge != "refused" or divides(plan, k))


def _as_candidate(found: list[Plan], tried: set[object], k: int) -> Candidate:
    fresh = []
    for one in (each for each in found if _fits(each, k)):
        key = same_sums(one, k)
        if key not in tried:
            tried.add(key)
            fresh.append(one)
    return Candidate(tuple(fresh))


def same_sums(plan: Plan, k: int) -> object:
    """What decides a plan's results at this K; plans that have it in common are one."""
    options = plan.options
    every = plan.promoted_steps
    of_parts = tuple(
        tuple(tuple(_steps(group) for group in _promoted(runs, every)) for runs in slices)
        for slices in parts(plan, k)
    )
    last = options.reduce_format if len(of_parts) == 1 else None  # the one rounding of the only part
    if last in (plan.accumulates.name, plan.formats["d"].name) and options.alpha == 1:
        last = None
    if (
        every and len(of_parts) == len(of_parts[0]) == 1
    ):  # like parts, each added to the sum of its predecessors
        of_parts = tuple(((group,),) for group in of_parts[0][0])
        options = replace(options, reduce="ascending", reduce_format=None)
    several = len(of_parts) > 1
    many = several or any(len(slices) > 1 for slices in of_parts)
    order = options.reduce if many else None
    if order == "tree" and all(len(slices) < 3 for slices in of_parts) and len(of_parts) < 4:
        order = "ascending"  # trees of three are chains
    if order == "descending" and max(map(len, [*of_parts, of_parts])) == 2 and options.reduce != "tree":
        order = "ascending"  # two have one sum
    fmt = (options.reduce_format or plan.accumulates.name) if several else None
    return (
        _arithmetic(plan.instruction),
        tuple(plan.formats[name].name for name in "abd"),
        options.convert if plan.formats["a"] != plan.instruction.formats["a"] else None,
        options.products,
        of_parts,
        order,
        fmt,
        last,
    )


def _promoted(runs: Runs, every: int) -> list[Runs]:
    return intervals(runs, every) if every else [runs]


def _steps(runs: Runs) -> tuple[tuple[int, int], ...]:
    """Ranges of steps, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for run in runs:
        if joined and joined[-1][1] == run.start:
            joined[-1] = joined[-1][0], run.stop
        else:
            joined.append((run.start, run.stop))
    return tuple(joined)


@lru_cache(maxsize=4096)
def _arithmetic(unit: Instruction) -> object:
    operations = tuple(replace(one.arithmetic, to="", seed="") for one in unit.program.operations)
    seeds = tuple((one.seed, one.to) for one in unit.program.operations)
    return repr((operations, seeds if len(seeds) > 1 else None, unit.k, sorted(unit.formats)))


def _units(architecture: str, formats: dict[str, Format]) -> list[tuple[Instruction, dict[str, Any]]]:
    """Dense instructions that take the operands as they are or converted, one for each arithmetic."""
    found: dict[object, tuple[Instruction, dict[str, Any]]] = {}
    seen: set[object] = set()  # those that differ in M and N alone share a program
    for unit in instructions(architecture):
        key = id(unit.program), unit.k, *(unit.formats[name] for name in "abcd")
        if beside(unit) or key in seen:
            continue
        seen.add(key)
        for convert in _conversions(unit, formats):
            try:
                build(unit, {**convert, "out": formats["d"].name})
            except OperandError:
                continue
            same = _arithmetic(unit), *key[2:], convert.get("convert")
            found.setdefault(same, (unit, convert))
    return sorted(found.values(), key=lambda pair: (bool(pair[1]), pair[0].emulated))


def _conversions(unit: Instruction, formats: dict[str, Format]) -> list[dict[str, Any]]:
    own = [unit.formats[x] for x in "ab"]
    given = [formats[x] for x in "ab"]
    if own == given:
        return [{}]
    names = {"a": given[0].name, "b": given[1].name}
    if {fmt.name for fmt in given} == {"f32"} and {fmt.name for fmt in own} == {"tf32"}:
        return [{**names, "convert": mode} for mode in ("nearest_even", "toward_zero", "nearest_away")]
    narrow = all(fmt.is_float and fmt.storage == 8 for fmt in given)
    if narrow and {fmt.name for fmt in own} == {"f16"}:  # exact, as kernels without an FP8 instruction do
        return [{**names, "convert": "nearest_even"}]
    return []


def _structures(k: int) -> Iterator[dict[str, Any]]:
    """Ways to cut K: one thing at a time, then two. Promotion counts steps."""
    promoted = [{"promoted": steps} for steps in PROMOTED]
    sliced = [
        {"slices": n, "tile_k": tile}
        for n in SLICES
        for tile in (*TILES, 256)
        if tile >= 16 * n and tile < 2 * k
    ]
    split: list[dict[str, Any]] = [{"part": size} for size in PARTS if size < k]
    split += [{"split_k": n, "tile_k": tile} for n in SPLITS for tile in TILES if n * tile < k + n * 32]
    dealt = [{"slices": n, "tile_k": n * tile} for n in DEALT for tile in (16, *TILES) if n * tile < 2 * k]
    yield {}
    yield from promoted
    yield from split
    yield from sliced
    yield from dealt
    for one in split:
        for other in promoted:
            yield {**one, **other}
    for one in sliced:
        for other in promoted:
            yield {**one, **other}
        for n in (2, 3, 4, 6, 8):
            yield {**one, "split_k": n}


def _variants(unit: Instruction, options: dict[str, Any], formats: dict[str, Format]) -> list[Plan]:
    """The plans of one way to cut K: orders and formats of the reduction."""
    out, d = formats["d"].name, unit.formats["d"]
    options = dict(options)
    split = any(key in options for key in ("part", "parts", "split_k"))
    cut = split or "slices" in options
    if not d.is_float and (cut or "promoted" in options):
        return []  # sums of integers are the same in any order
    if "promoted" in options:
        options["promote"] = options.pop("promoted") * unit.k
    formats_of_sums: list[str | None] = [None]
    if split and out in ("f16", "bf16"):
        formats_of_sums.append(out)
    made = []
    for order in _orders(options) if cut else ORDERS[:1]:
        for fmt in formats_of_sums:
            try:
                made.append(build(unit, {**options, "reduce": order, "reduce_format": fmt, "out": out}))
            except OperandError:  # tiles that this instruction's steps do not divide
                return made
    return made


def _orders(options: dict[str, Any]) -> tuple[Any, ...]:
    """In which the sums of parts or of slices are tried to be added."""
    if "reduce" in options:
        return (options["reduce"],)
    dealt = DEALT_SUMS.get(options.get("slices", 0)) if "split_k" not in options else None
    return ORDERS if dealt is None else (*ORDERS, dealt)
