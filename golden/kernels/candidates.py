"""The plans that a search tries: instructions that take the operands, and the ways in which kernels cut K."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from golden.catalog.lookup import instructions
from golden.errors import OperandError
from golden.kernels.epilogues import KEYS as EPILOGUE
from golden.kernels.order import bounds, divides, first_is_filled, listed_and_actual
from golden.kernels.plan import Plan, build
from golden.kernels.plan_files import plans
from golden.model.instruction import Instruction
from golden.number.formats import Format

SPLITS = (*range(2, 17), 18, 20, 24, 28, 32, 48, 64)
DEALT = (*range(2, 11), 12, 16)
"""Blocks among which tiles of K are dealt out in turn."""
DEALT_SUMS = {9: (0, 5, 8, (1, 6), (2, 7), 3, 4)}
"""By number of blocks, the order in which their sums are added, in addition to ORDERS: found by calls of
cuBLAS's f64."""
MOST_CUTS = 64
"""Parts of a named plan's K."""
ORDERS = ("ascending", "descending", "tree")
Epilogue = Mapping[str, Any]
"""Options of plans that say what follows the sum."""
_NONE: tuple[Epilogue, ...] = ({},)
_SCALES = frozenset({"scale_a", "scale_b"})


@dataclass(frozen=True)
class Candidate:
    """Plans whose parts of K have the same sums, each: they differ in how these are reduced."""

    plans: tuple[Plan, ...]


def candidates(
    architecture: str, formats: dict[str, Format], k: int, epilogues: Sequence[Epilogue] = _NONE
) -> Iterator[Candidate]:
    """All of them with each epilogue, simple ones first; plans that are the same at this K come once, a named
    one with its name."""
    tried: set[object] = set()
    of_sums = [one for one in plans(architecture) if takes(one, formats)]
    named = [one.but(**more) if more else one for one in of_sums for more in _after(epilogues)]
    units = _units(architecture, formats)
    made = [_as_candidate([one], tried, k) for one in named]
    for one in named:
        for size in cuts(one, k) if one.options.parts is None else ():
            made.append(_as_candidate(_in_parts(one, size, formats["d"].name), tried, k))
    for options in _structures(k):
        for unit, convert in units:
            variants = _variants(unit, {**convert, **options}, formats, epilogues)
            made.append(_as_candidate(variants, tried, k))
            yield from (one for one in made if one.plans)
            made = []
    yield from (one for one in made if one.plans)


def with_known_cuts(
    architecture: str, formats: dict[str, Format], k: int, structures: list[dict[str, Any]]
) -> Iterator[Candidate]:
    """The same for known ways to cut K; they replace the ways of named plans."""
    tried: set[object] = set()
    for one in plans(architecture):
        for options in structures if takes(one, formats) else ():
            found = []
            for order in ORDERS:
                try:
                    found.append(one.but(**{"reduce": order, **options}) if options else one)
                except OperandError:
                    break
            yield from _nonempty(_as_candidate(found, tried, k))
    units = _units(architecture, formats)
    for options in structures:
        for unit, convert in units:
            yield from _nonempty(_as_candidate(_variants(unit, {**convert, **options}, formats), tried, k))


def candidates_of(units: list[Instruction], formats: dict[str, Format], k: int) -> Iterator[Plan]:
    """Plans of these instructions, each arithmetic once, in every way to cut K."""
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
    """Elements of K in a part, the largest first: for each number of parts whole tiles and, for kernels that
    fill the first tile in part, other lengths."""
    # Elements by which kernels that fill a tile in part cut K: four f32 are 128 bits, CUTLASS's alignment.
    filled = 4
    units = [plan.tile, *([filled] if plan.options.edge == "first" else [])]
    sizes = {-(-k // (many * unit)) * unit for unit in units for many in range(2, MOST_CUTS + 1)}
    return [size for size in sorted(sizes, reverse=True) if size < k]


def _in_parts(plan: Plan, size: int, out: str) -> list[Plan]:
    """A named plan with K in parts, in the orders and formats of their sums, where it goes with parts."""
    formats_of_sums = [None, out] if out in ("f16", "bf16") else [None]
    try:
        return [
            plan.but(part=size, reduce=order, reduce_format=fmt)
            for order in ORDERS
            for fmt in formats_of_sums
        ]
    except OperandError:
        return []


def _nonempty(candidate: Candidate) -> list[Candidate]:
    return [candidate] if candidate.plans else []


def takes(plan: Plan, formats: dict[str, Format], more: Set[str] = frozenset()) -> bool:
    """Whether the plan takes exactly A and B of these formats and these further operands."""
    scales = _SCALES if plan.options.scales != "none" else frozenset()
    bias = {"bias"} if plan.options.bias != "none" else set[str]()
    return bool(_same([plan], formats)) and extra_operands(plan.instruction) | scales | bias == more


def extra_operands(unit: Instruction) -> frozenset[str]:
    """The operands that an instruction takes in addition to A, B and C."""
    sparse = {"metadata"} if unit.pattern is not None else set[str]()
    return frozenset(sparse) | (_SCALES if unit.scale_block is not None else frozenset())


def _fits(plan: Plan, k: int) -> bool:
    of_k = plan.options.parts is None or sum(plan.options.parts) == k
    said, found = listed_and_actual(plan, k)
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
    of_parts, slices, every = _cut(plan, k)
    last = options.reduce_format if len(of_parts) == 1 else None  # the one rounding of the only part
    if last == plan.accumulates.name or (last == plan.formats["d"].name and _ends(plan)):
        last = None
    if every and len(of_parts) == slices == 1:  # like parts, each added to the sum of its predecessors
        (first, stop), *_ = of_parts
        of_parts = tuple((start, min(start + every, stop)) for start in range(first, stop, every))
        options, every = replace(options, reduce="ascending", reduce_format=None), 0
    several = len(of_parts) > 1
    order = options.reduce if several or slices > 1 else None
    if order == "tree" and slices < 3 and len(of_parts) < 4:
        order = "ascending"  # trees of three are chains
    if order == "descending" and max(slices, len(of_parts)) == 2:
        order = "ascending"  # two have one sum
    fmt = (options.reduce_format or plan.accumulates.name) if several else None
    return (
        _arithmetic(plan.instruction),
        tuple(plan.formats[name].name for name in "abd"),
        options.convert if plan.formats["a"] != plan.instruction.formats["a"] else None,
        options.products,
        options.order,
        plan.tile if first_is_filled(plan, k) else None,
        of_parts,
        slices,
        plan.tile_steps // options.slices if slices > 1 else None,
        every,
        order,
        fmt,
        last,
        tuple(getattr(options, name) for name in EPILOGUE),
    )


def _ends(plan: Plan) -> bool:
    """Whether nothing changes the sum before it is rounded to D; C may."""
    return plan.options.alpha == 1 and plan.options.bias == "none"


def _cut(plan: Plan, k: int) -> tuple[tuple[tuple[int, int], ...], int, int]:
    """Bounds of the parts of K in steps, the most slices that one of them has, and after how many steps sums
    are promoted, 0 where no chain has more."""
    of_parts = bounds(plan, k)
    longest = max(stop - first for first, stop in of_parts)  # whole tiles
    width = plan.tile_steps // plan.options.slices
    chain = longest // plan.tile_steps * width
    every = plan.promoted_steps
    return of_parts, min(plan.options.slices, -(-longest // width)), every if every < chain else 0


@lru_cache(maxsize=4096)
def _arithmetic(unit: Instruction) -> object:
    operations = tuple(replace(one.arithmetic, to="", seed="") for one in unit.program.operations)
    seeds = tuple((one.seed, one.to) for one in unit.program.operations)
    return repr((operations, seeds if len(seeds) > 1 else None, unit.k, sorted(unit.formats)))


def _units(architecture: str, formats: dict[str, Format]) -> list[tuple[Instruction, dict[str, Any]]]:
    """Dense instructions that take the operands as they are or converted, one for each arithmetic."""
    found: dict[object, tuple[Instruction, dict[str, Any]]] = {}
    seen: set[object] = set()  # instructions that differ only in M and N share a program
    for unit in instructions(architecture):
        key = id(unit.program), unit.k, *(unit.formats[name] for name in "abcd")
        if extra_operands(unit) or key in seen:
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
    # Numbers of steps after which a sum is promoted.
    intervals = (2, 4, 8, 16)
    promoted = [{"promoted": steps} for steps in intervals]
    tiles = (32, 64, 128)
    # Parts of a step's K, each with a chain of its own.
    slices = (2, 4, 8)
    sliced = [
        {"slices": n, "tile_k": tile}
        for n in slices
        for tile in (*tiles, 256)
        if tile >= 16 * n and tile < 2 * k
    ]
    parts = (1 << n for n in range(5, 12))
    split: list[dict[str, Any]] = [{"part": size} for size in parts if size < k]
    split += [{"split_k": n, "tile_k": tile} for n in SPLITS for tile in tiles if n * tile < k + n * 32]
    dealt = [{"slices": n, "tile_k": n * tile} for n in DEALT for tile in (16, *tiles) if n * tile < 2 * k]
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


def _variants(
    unit: Instruction,
    options: dict[str, Any],
    formats: dict[str, Format],
    epilogues: Sequence[Epilogue] = _NONE,
) -> list[Plan]:
    """The plans of one way to cut K: orders and formats of the reduction, and what follows it."""
    out, d = formats["d"].name, unit.formats["d"]
    options = dict(options)
    split = any(key in options for key in ("part", "parts", "split_k"))
    cut = split or "slices" in options
    if not d.is_float and (cut or "promoted" in options):
        return []  # sums of integers are the same in any order
    if cut or "promoted" in options:
        epilogues = _after(epilogues)
    if "promoted" in options:
        options["promote"] = options.pop("promoted") * unit.k
    formats_of_sums: list[str | None] = [None]
    if split and out in ("f16", "bf16"):
        formats_of_sums.append(out)
    made = []
    for order in _orders(options) if cut else ORDERS[:1]:
        for fmt in formats_of_sums:
            for more in epilogues:
                given = {**options, "reduce": order, "reduce_format": fmt, "out": out, **more}
                try:
                    made.append(build(unit, given))
                except OperandError:  # tiles that this instruction's steps do not divide, C of another type
                    if "c" not in more:
                        return made
    return made


def _after(epilogues: Sequence[Epilogue]) -> list[Epilogue]:
    """The epilogues that go with any cut of K: C enters after the sum."""
    return [one for one in epilogues if one.get("c") != "seed"]


def _orders(options: dict[str, Any]) -> tuple[Any, ...]:
    """In which the sums of parts or of slices are tried to be added."""
    if "reduce" in options:
        return (options["reduce"],)
    dealt = DEALT_SUMS.get(options.get("slices", 0)) if "split_k" not in options else None
    return ORDERS if dealt is None else (*ORDERS, dealt)
