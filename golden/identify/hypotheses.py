"""What a unit may do instead: changes of an instruction's program, each with a name, for
golden/identify/diagnosis.py to try.

A `Change` turns an instruction into a neighbour of it, or into None where it means nothing there. Changes are
made from the program's own steps, so they exist for every instruction, and they can be applied one after the
other. docs/diagnosis.md lists the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard, assert_never

from golden.instruction import Instruction
from golden.number.formats import Format, formats, get_format
from golden.number.rounding import FLOAT_OVERFLOWS, INTEGER_OVERFLOWS, MODES
from golden.program.keys import Candidate
from golden.program.program import Operation, Program, S
from golden.program.steps import (
    MAX_FRACTION_BITS,
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
    format_of,
    grouping,
)
from golden.program.widths import operation_nodes

Apply = Callable[[Instruction], Instruction | None]
Rewrite = Callable[[Step, Operation], "Step | tuple[Step, ...]"]
MODE_NAMES = {
    "toward_zero": "RZ",
    "nearest_even": "RNE",
    "nearest_away": "RNA",
    "down": "RD",
    "up": "RU",
    "to_odd": "RTO",
}


@dataclass(frozen=True)
class Change:
    """One thing that a unit may do otherwise. `weight` ranks changes that explain equally much: the
    likelier is lower."""

    slug: str
    text: str
    apply: Apply
    weight: float = 1.0


def changes(ins: Instruction, nan: int | None = None) -> list[Change]:
    """Every single change to try, the plain ones first; `nan`: the NaN word that the unit was seen to
    answer, if another."""
    makers = (
        _widths,
        _roundings,
        _sticky,
        _maximum,
        _candidates,
        _shifts,
        _sums,
        _order,
        _results,
        _specials,
        _operands,
        _formats,
    )
    found = [change for maker in makers for change in maker(ins)]
    return found + ([_nan_word(nan)] if nan is not None else [])


# Rewriting programs -----------------------------------------------------------------------------------------


def with_operations(ins: Instruction, operations: Iterable[Operation]) -> Instruction | None:
    """The instruction with other operations, or None where they are the same ones, or are not whole: a
    change meant for a sum leaves nothing that writes the result of a unit without one."""
    new = tuple(operations)
    assert ins.modes is None, "a hypothesis is of one mode"
    if new == ins.program.operations or not all(map(_is_whole, new)):
        return None
    return replace(ins, program=Program(new))


def _is_whole(operation: Operation) -> bool:
    """Whether every register is written before it is read, and the last step alone writes the result."""
    written = {"a", "b", "c", "scales", "addends"}
    for step in operation.steps:
        if "d" in written or not written.issuperset(step.of):
            return False
        written.add(step.to)
    return "d" in written


def rewrite(rule: Rewrite) -> Apply:
    """Applies a rule to every step of every operation."""

    def apply(ins: Instruction) -> Instruction | None:
        operations = []
        for operation in ins.program.operations:
            steps: list[Step] = []
            for step in operation.steps:
                new = rule(step, operation)
                steps += new if isinstance(new, tuple) else (new,)
            operations.append(operation.with_steps(steps))
        return with_operations(ins, operations)

    return apply


def _on(kind: type[S], rule: Callable[[S], Step]) -> Apply:
    return rewrite(lambda step, _: rule(step) if isinstance(step, kind) else step)


def _insert(make: Callable[[Instruction, Operation], Step | None]) -> Apply:
    """Puts a step before all others of every operation that can take it."""

    def apply(ins: Instruction) -> Instruction | None:
        operations = []
        for operation in ins.program.operations:
            step = make(ins, operation)
            steps = operation.steps if step is None else (step, *operation.steps)
            operations.append(operation.with_steps(steps))
        return with_operations(ins, operations)

    return apply


def _steps(ins: Instruction, kind: type[S]) -> list[S]:
    """The different steps of one kind, in order."""
    return list(dict.fromkeys(ins.program.steps_of(kind)))


def _signed(number: int) -> str:
    return f"minus-{-number}" if number < 0 else f"{number}"


# Widths -----------------------------------------------------------------------------------------------------


def _widths(ins: Instruction) -> Iterator[Change]:
    """Fraction bits after alignment and normalisation, a few more or less."""
    aligned = {name: bits for step in _steps(ins, Align) for name, bits in step.fraction_bits}
    main = {name: bits for name, bits in aligned.items() if name != "dot" or len(aligned) == 1}
    normal = {name: bits for step in _steps(ins, Normalize) for name, bits in step.fraction_bits}
    for delta in (-1, 1, -2, 2, -3, 3, -4, 4):
        weight = 1 + abs(delta) / 20
        if main:
            base = next(iter(main.values()))
            yield _width(Align, tuple(main), "", f"F = {base + delta} instead of {base}", delta, weight)
        for name in aligned if len(aligned) > 1 else ():
            bits = aligned[name]
            if name == "dot" or len(set(aligned.values())) == 1:
                text = f"{bits + delta} fraction bits instead of {bits} for {name}"
                yield _width(Align, (name,), f"{name}-", text, delta, weight + 0.2)
        for name, bits in normal.items():
            text = f"{bits + delta} fraction bits instead of {bits} in the normalised {name}"
            yield _width(Normalize, (name,), "sum-", text, delta, weight + 0.1)


def _width(
    kind: type[Align | Normalize], names: tuple[str, ...], prefix: str, text: str, delta: int, weight: float
) -> Change:
    def wider(step: Align | Normalize) -> Step:
        table = tuple(
            (name, min(max(bits + delta, 0), MAX_FRACTION_BITS) if name in names else bits)
            for name, bits in step.fraction_bits
        )
        return replace(step, fraction_bits=table)

    sign = "plus" if delta > 0 else "minus"
    return Change(f"{prefix}fraction-bits-{sign}-{abs(delta)}", text, _on(kind, wider), weight)


# Rounding ---------------------------------------------------------------------------------------------------


def _rounds_last(step: Step) -> TypeGuard[Round | Fma | Additions | Multiply]:
    """Steps that round to a number format: the last one, and every IEEE operation."""
    return format_of(step) is not None


def _roundings(ins: Instruction) -> Iterator[Change]:
    usual = next(
        (
            s.rounding
            for operation in ins.program.operations
            for s in operation.steps[::-1]
            if _rounds_last(s)
        ),
        "",
    )
    cuts = [step.rounding for step in _steps(ins, Align)]
    for mode in MODES:
        slug, name = mode.replace("_", "-"), MODE_NAMES[mode]
        text = f"{name} instead of {MODE_NAMES.get(usual, usual)}"
        yield Change(
            f"round-{slug}",
            text,
            rewrite(lambda s, _, m=mode: replace(s, rounding=m) if _rounds_last(s) else s),  # type: ignore[misc]
        )
        yield Change(
            f"increment-{slug}",
            f"{text}, but for what overflows",
            _on(Round, lambda s, m=mode: _incremented(s, m)),  # type: ignore[misc]
            1.05,
        )
        if cuts:
            text = f"alignment rounds the cut bits {name} instead of {MODE_NAMES[cuts[0]]}"
            yield Change(f"align-{slug}", text, _on(Align, lambda s, m=mode: replace(s, rounding=m)), 1.1)  # type: ignore[misc]
        for index in range(len(cuts) if len(cuts) > 1 else 0):
            text = f"alignment {index + 1} rounds the cut bits {name} instead of {MODE_NAMES[cuts[index]]}"
            yield Change(f"align-{index + 1}-{slug}", text, _at(_steps(ins, Align)[index], mode), 1.2)
        if _steps(ins, Normalize):
            text = f"the normalised sum is rounded {name}"
            yield Change(
                f"normalize-{slug}",
                text,
                _on(Normalize, lambda s, m=mode: replace(s, rounding=m)),  # type: ignore[misc]
                1.2,
            )


def _incremented(step: Round, mode: str) -> Round:
    """The step with the increment of another mode, while too large numbers become what they did."""
    over = {"toward_zero": "largest", "nearest_even": "infinity", "nearest_away": "infinity"}
    if step.overflow != "ieee":
        return replace(step, rounding=mode)
    known = step.rounding in over
    return replace(step, rounding=mode, overflow=over[step.rounding]) if known else step


def _at(wanted: Align, mode: str) -> Apply:
    """Changes the rounding of the steps that work on the same registers as `wanted`."""
    return _on(
        Align, lambda s: replace(s, rounding=mode) if (s.of, s.group) == (wanted.of, wanted.group) else s
    )


# Alignment --------------------------------------------------------------------------------------------------


def _sticky(ins: Instruction) -> Iterator[Change]:
    if not _steps(ins, Align):
        return
    yield Change(
        "sticky-added",
        "a sticky bit of each term, added or subtracted with it",
        _on(Align, lambda s: replace(s, cut="sticky_added")),
    )
    yield Change(
        "sticky-or",
        "one sticky bit for all terms, ORed, below the sum",
        _on(Align, lambda s: replace(s, cut="sticky_or")),
    )
    removed = _on(
        Align,
        lambda s: replace(
            s, cut="dropped", sticky_gap=0, zeros="ignored" if s.zeros == "sticky" else s.zeros
        ),
    )
    yield Change("sticky-removed", "no sticky bit", removed)
    for gap in range(1, 5):
        bits = "bit" if gap == 1 else f"{gap} bits"
        text = f"a sticky bit that does not see the {bits} right below the kept ones"
        rule = _on(Align, lambda s, g=gap: replace(s, sticky_gap=g) if s.cut != "dropped" else s)  # type: ignore[misc]
        yield Change(f"sticky-gap-{gap}", text, rule, 1.0 + gap / 20)
    zeros = _on(Align, lambda s: replace(s, zeros="sticky") if s.cut != "dropped" else s)
    yield Change("zeros-in-sticky", "zero operands set the sticky bit", zeros)


def _maximum(ins: Instruction) -> Iterator[Change]:
    """What takes part in the maximum exponent: floors, zeros, c, cancelled groups, normalised products."""
    if not _steps(ins, Align):
        return
    floors = [step.floor for step in _steps(ins, Align) if step.floor is not None]
    least = ins.formats["d"].min_exponent if ins.formats["d"].is_float else 0
    was = f" instead of {floors[0]}" if floors else ""
    for floor in range(least, least - 18, -1):
        apply = _on(Align, lambda s, e=floor: replace(s, floor=e) if _meets_c(s) else s)  # type: ignore[misc]
        yield Change(
            f"floor-{_signed(floor)}", f"exponent floor {floor}{was}", apply, 1.0 if floor == least else 1.1
        )
    yield Change("floor-none", "no exponent floor", _on(Align, lambda s: replace(s, floor=None)), 1.0)
    yield Change(
        "zeros-in-maximum",
        "zeros enter the maximum exponent",
        _on(Align, lambda s: replace(s, zeros="maximum")),
    )
    for rule in ("dropped", "unshifted"):
        apply = _on(
            Align,
            lambda s, r=rule: replace(s, left_out=(("c", r),)) if "c" in s.of and len(s.of) > 1 else s,  # type: ignore[misc]
        )
        yield Change(
            f"c-left-out-{rule}", f"c is left out of the maximum exponent ({rule} where it lies above)", apply
        )
    exact = _on(Sum, lambda s: replace(s, cancelled="zero") if s.to != "total" else s)
    yield Change("cancelled-loses-exponent", "a group that cancels to zero loses its exponent", exact)
    normalized = _on(Multiply, lambda s: replace(s, normalize=True) if s.operation == "product" else s)
    yield Change("product-normalized", "products are normalised before alignment", normalized)
    plain = _on(Multiply, lambda s: replace(s, normalize=False))
    yield Change("product-not-normalized", "products are not normalised before alignment", plain)


def _candidates(ins: Instruction) -> Iterator[Change]:
    """Units that list what their maximum is of, that spare c, that subtract in one's complement."""
    for step in _steps(ins, Align):
        for i, one in enumerate(step.maximum):
            name = f"{'leading ones' if one.leading else 'exponents'} of {' and '.join(one.of)}"
            for by in (-1, 1):
                moved = replace(one, plus=one.plus + by)
                text = f"the {name} enter the maximum with {moved.plus:+d} (not {one.plus:+d})"
                slug = f"candidate-{i + 1}-{'minus' if by < 0 else 'plus'}-1"
                yield Change(slug, text, _with_candidate(step, i, (moved,)), 1.1)
            if len(step.maximum) > 1:
                text = f"the {name} do not enter the maximum"
                yield Change(f"candidate-{i + 1}-left-out", text, _with_candidate(step, i, ()), 1.1)
    if any(step.spared for step in _steps(ins, Align)):
        text = "negative numbers below the last bit kept are rounded like others"
        yield Change("none-spared", text, _on(Align, lambda s: replace(s, spared=())))
    if any(step.complement != "none" for step in _steps(ins, Sum)):
        text = "terms are subtracted in two's complement"
        yield Change("complement-none", text, _on(Sum, lambda s: replace(s, complement="none")))
    if _steps(ins, HiddenBit):
        yield Change("hidden-bit-left-out", "subnormal numbers get no hidden bit", rewrite(_no_hidden_bit))


def _with_candidate(step: Align, index: int, new: tuple[Candidate, ...]) -> Apply:
    """Puts others in the place of one candidate of `step`."""
    maximum = (*step.maximum[:index], *new, *step.maximum[index + 1 :])
    return _on(Align, lambda s: replace(s, maximum=maximum) if s.maximum == step.maximum else s)


def _no_hidden_bit(step: Step, operation: Operation) -> Step | tuple[Step, ...]:
    return () if isinstance(step, HiddenBit) else step


def _meets_c(step: Align) -> bool:
    return "c" in step.of or step.floor is not None


def _shifts(ins: Instruction) -> Iterator[Change]:
    """Shifters that stop short, and windows below which c is dropped."""
    aligned = [bits for step in _steps(ins, Align) for _, bits in step.fraction_bits]
    if not aligned:
        return
    low, high = min(aligned), max(aligned)
    for limit in sorted({*range(2 * high + 1), 31, 63}):
        text = f"shifts of more than {limit} count as {limit}"
        apply = _on(Align, lambda s, n=limit: replace(s, shift_limit=n))  # type: ignore[misc]
        yield Change(f"shift-limit-{limit}", text, apply, 1.1)
    windows = [window for step in _steps(ins, Align) for _, window in step.window]
    near = {w + d for w in windows for d in (-2, -1, 1, 2)} if windows else set(range(low - 1, low + 4))
    for window in sorted(near):
        text = f"c more than {window} below the maximum exponent counts as zero" + (
            f" (not {windows[0]})" if windows else ""
        )
        apply = _on(Align, lambda s, n=window: replace(s, window=(("c", n),)) if "c" in s.of else s)  # type: ignore[misc]
        yield Change(f"window-{window}", text, apply, 1.1)
    yield Change("window-none", "c is never too small to count", _on(Align, lambda s: replace(s, window=())))


# Sums and order ---------------------------------------------------------------------------------------------


def _sums(ins: Instruction) -> Iterator[Change]:
    needed = 0
    for operation in ins.program.operations:
        for step, nodes in operation_nodes(ins, operation):
            if isinstance(step, Sum) and nodes:
                needed = max(needed, nodes[0].integer_bits + 1)
    integers = not ins.formats["d"].is_float
    for width in range(needed - 1, max(needed - (22 if integers else 6), 1), -1):
        text = f"the sum has {width} integer bits (not {needed}) and loses its carry"
        yield Change(f"sum-width-{width}", text, _on(Sum, lambda s, w=width: _narrow(s, w)), 1.1)  # type: ignore[misc]
    if integers:
        yield Change(
            "saturate-per-step", "the sum saturates after every product", _saturated(ins.formats["d"])
        )
        return
    yield from _late_c(ins)


def _narrow(step: Sum, width: int) -> Step:
    return replace(step, width=width) if step.exponent is None else step


def _saturated(fmt: Format) -> Apply:
    """c plus one product after the other, clamped each time."""

    def rule(step: Step, _: Operation) -> Step | tuple[Step, ...]:
        if isinstance(step, Sum):
            return Additions(
                order="sequential",
                of=("c", "products"),
                to="d",
                group=step.group,
                format=fmt,
                rounding=step.rounding,
                overflow="saturate",
            )
        return () if isinstance(step, Round) else step

    return rewrite(rule)


def _late_c(ins: Instruction) -> Iterator[Change]:
    """c added to the rounded dot product instead of inside the sum, and the reverse."""
    for mode in ("nearest_even", "toward_zero"):
        suffix = "" if mode == "nearest_even" else "-toward-zero"
        text = f"c is added after the sum of the products was rounded ({MODE_NAMES[mode]})"
        yield Change(f"c-after-sum{suffix}", text, rewrite(lambda s, o, m=mode: _without_c(s, o, m)), 1.0)  # type: ignore[misc]


def _without_c(step: Step, operation: Operation, mode: str) -> Step | tuple[Step, ...]:
    if not operation.k_index or not any(len(s.of) > 1 and "c" in s.of for s in operation.steps_of(Align)):
        return step
    of = tuple(name for name in step.of if name != "c")
    match step:
        case Sum() if "c" in step.of:
            return replace(step, of=of, complement="none")
        case Align() if "c" in step.of:
            return _aligned_without_c(step, of)
        case Round(to="d", format=fmt, nan=nan):
            add = Additions(
                order="sequential", of=("partial", "c"), to="d", format=fmt, rounding=mode, nan=nan
            )
            return replace(step, to="partial"), add
        case Sum() | Align() | Round() | Multiply() | Scale() | Additions() | Normalize() | Fma():
            return step  # c is not among its terms
        case Flush() | HiddenBit() | SpecialValues():
            return step  # c is flushed and looked at as before
        case _:
            assert_never(step)


def _aligned_without_c(step: Align, of: tuple[str, ...]) -> Align:
    """The alignment of the other registers."""
    bits, window, spared = (
        tuple(item for item in table if item[0] != "c")
        for table in (step.fraction_bits, step.window, step.spared)
    )
    named = (replace(one, of=tuple(name for name in one.of if name != "c")) for one in step.maximum)
    maximum = tuple(one for one in named if one.of)
    return replace(
        step, of=of, fraction_bits=bits, window=window, spared=spared, maximum=maximum, left_out=()
    )


def _order(ins: Instruction) -> Iterator[Change]:
    for order in ("tree", "sequential"):
        apply = _on(
            Additions,
            lambda s, o=order: replace(s, order=o) if len(s.of) == 1 else s,  # type: ignore[misc]
        )
        yield Change(
            f"order-{order}", f"products are added {'as a tree' if order == 'tree' else 'one by one'}", apply
        )
    count = ins.stored_k
    least = 1 if ins.formats["d"].is_float else 2  # integers one by one are `saturate-per-step`, or right
    sizes = [size for size in range(least, count + 1) if count % size == 0]
    for size in sizes:
        text = "all k in one step" if size == count else f"a chain of steps of k = {size}"
        yield Change(f"chain-of-{size}", text, lambda i, n=size: _chained(i, _slices(_all_k(i), n)), 1.0)  # type: ignore[misc]
        if 1 < size < count:
            text = f"a chain of steps of k = {size}, interleaved"
            every = lambda i, n=size: _chained(i, [_all_k(i)[j :: count // n] for j in range(count // n)])  # noqa: E731
            yield Change(f"chain-of-{size}-interleaved", text, every, 1.1)
    yield Change(
        "chain-halves-swapped",
        "the halves of k are swapped in the chain",
        _permuted(lambda k: k[len(k) // 2 :] + k[: len(k) // 2]),
    )
    yield Change("k-reversed", "k descends in the chain", _permuted(lambda k: k[::-1]))
    yield from _k_in_another_order(ins)
    yield Change("fma-unfused", "products are rounded before they are added", rewrite(_unfused))


_MOST_SWAPS = 64
"""Pairs of blocks of one size that may be exchanged; of more blocks only neighbours."""


def _k_in_another_order(ins: Instruction) -> Iterator[Change]:
    """Where roundings follow each other: halves interleaved, and two elements or blocks of k exchanged."""
    count = len(_all_k(ins))
    rounding = any(isinstance(step, Additions | Fma) for o in ins.program.operations for step in o.steps)
    if not (rounding or len(ins.program.operations) > 1) or count < 4 or not ins.formats["d"].is_float:
        return
    interleaved = _permuted(
        lambda k: tuple(x for pair in zip(k, k[count // 2 :], strict=False) for x in pair)
    )
    if count % 2 == 0:
        yield Change("k-halves-interleaved", "the order of k takes its halves in turn", interleaved, 1.1)
        yield Change(
            "k-even-first", "the order of k takes even ones first", _permuted(lambda k: k[::2] + k[1::2]), 1.1
        )
    for size in (size for size in range(1, count // 2 + 1) if count % size == 0):
        blocks = count // size
        pairs = [(i, j) for i in range(blocks) for j in range(i + 1, blocks)]
        near = pairs if len(pairs) <= _MOST_SWAPS else [(i, j) for i, j in pairs if j == i + 1]
        for i, j in near if blocks > 2 else ():
            what = f"k = {i} and {j}" if size == 1 else f"blocks {i} and {j} of {size} elements of k"
            slug = f"k-{i}-and-{j}-swapped" if size == 1 else f"k-blocks-of-{size}-{i}-and-{j}-swapped"
            apply = _permuted(lambda k, n=size, x=i, y=j: _swapped(k, n, x, y))  # type: ignore[misc]
            yield Change(slug, f"{what} change places in the order of k", apply, 1.15)


def _swapped(k: tuple[int, ...], size: int, one: int, other: int) -> tuple[int, ...]:
    """With two blocks in each other's place."""
    blocks = _slices(k, size)
    blocks[one], blocks[other] = blocks[other], blocks[one]
    return tuple(number for block in blocks for number in block)


def _all_k(ins: Instruction) -> tuple[int, ...]:
    return tuple(k for operation in ins.program.operations for k in operation.k_index)


def _slices(k_index: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    return [k_index[i : i + size] for i in range(0, len(k_index), size)]


def _is_chain(operations: tuple[Operation, ...]) -> bool:
    """Whether all operations run the same steps, each from the result before it."""
    seeds = ["c", *(operation.to for operation in operations[:-1])]
    return all(
        operation.steps == operations[0].steps
        and operation.seed == seed
        and operation.k_index
        and not operation.addends
        for operation, seed in zip(operations, seeds, strict=True)
    )


def _chained(ins: Instruction, parts: list[tuple[int, ...]]) -> Instruction | None:
    """The same steps over other slices of k."""
    operations = ins.program.operations
    if not _is_chain(operations):
        return None
    first, last = operations[0], operations[-1]
    new = []
    for index, part in enumerate(parts):
        if any(group is not None and group[1] > len(part) for group in map(grouping, first.steps)):
            return None
        seed, fmt = (f"part{index - 1}", last.out_format) if index else ("c", first.seed_format)
        to = "d" if index == len(parts) - 1 else f"part{index}"
        new.append(replace(first, k_index=part, seed=seed, seed_format=fmt, to=to))
    same = [operation.k_index for operation in operations] == parts
    return None if same else with_operations(ins, new)


def _permuted(order: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Apply:
    """Hands the products to the places of the program in another order."""

    def apply(ins: Instruction) -> Instruction | None:
        old = _all_k(ins)
        places = dict(zip(old, order(old), strict=True))
        return with_operations(
            ins, (replace(o, k_index=tuple(places[k] for k in o.k_index)) for o in ins.program.operations)
        )

    return apply


def _unfused(step: Step, _: Operation) -> Step | tuple[Step, ...]:
    if not isinstance(step, Fma) or step.start != "c" or step.group is not None:
        return step
    multiply = Multiply(
        to="products",
        format=step.format,
        rounding=step.rounding,
        nan=step.nan,
        flush=step.flush,
    )
    add = Additions(
        order="sequential",
        of=("c", "products"),
        to=step.to,
        format=step.format,
        rounding=step.rounding,
        nan=step.nan,
    )
    return multiply, add


# Results ----------------------------------------------------------------------------------------------------

_ZERO_TEXTS = {
    "signed": "zeros keep the sign that IEEE 754 gives them",
    "signed_underflow": "a negative total that underflows gives -0",
    "positive": "every zero is +0",
}


_TINY_TEXTS = {
    "subnormal_result": "a result that is subnormal once it is rounded",
    "unbounded": "a result that would be below the least normal number with any exponent (tininess after "
    "rounding)",
    "before_rounding": "a result that is below the least normal number before it is rounded (tininess before "
    "rounding)",
}


def _flushes_results(step: Step) -> TypeGuard[Round | Fma | Additions | Multiply]:
    return _rounds_last(step) and step.flush != "none"


def _results(ins: Instruction) -> Iterator[Change]:
    fmt = ins.formats["d"]
    for overflow in FLOAT_OVERFLOWS if fmt.is_float else INTEGER_OVERFLOWS:
        if overflow == "nan" and fmt.nan is None:
            continue
        apply = _on(Round, lambda s, o=overflow: replace(s, overflow=o))  # type: ignore[misc]
        name = {
            "largest": "the largest finite number",
            "ieee": "what IEEE 754 says for the mode",
            "nan": "NaN",
        }.get(overflow, overflow)
        text = f"overflow gives {name}" if fmt.is_float else f"overflow: {name}"
        yield Change(f"overflow-{overflow}", text, apply)
    if not fmt.is_float:
        return
    for zero, text in _ZERO_TEXTS.items():
        apply = _on(Round, lambda s, z=zero: replace(s, zero=z))  # type: ignore[misc]
        yield Change(f"zero-{zero.replace('_', '-')}", text, apply)
    for flush in ("signed", "positive", "none"):
        apply = rewrite(lambda s, _, f=flush: replace(s, flush=f) if _rounds_last(s) else s)  # type: ignore[misc]
        text = (
            "subnormal results are kept" if flush == "none" else f"subnormal results become {_flushed(flush)}"
        )
        yield Change("result-not-flushed" if flush == "none" else f"result-flushed-{flush}", text, apply)
    for tiny, text in _TINY_TEXTS.items():
        apply = rewrite(lambda s, _, t=tiny: replace(s, tiny=t) if _flushes_results(s) else s)  # type: ignore[misc]
        yield Change(f"tiny-{tiny.replace('_', '-')}", f"what is flushed is {text}", apply, 0.95)
    for gap in range(1, 5):
        apply = _on(Round, lambda s, g=gap: replace(s, sticky_gap=g))  # type: ignore[misc]
        unseen = "the bit" if gap == 1 else f"the {gap} bits"
        yield Change(
            f"round-sticky-gap-{gap}",
            f"the final rounding does not see {unseen} right below the round bit",
            apply,
        )
    blind = _on(Round, lambda s: replace(s, sticky_gap=64))
    yield Change("round-no-sticky", "the final rounding sees the round bit alone, no sticky bit", blind, 1.05)
    lost = _on(Round, lambda s: replace(s, subnormal_carry="lost"))
    yield Change(
        "subnormal-carry-lost",
        "a subnormal result that rounds up to the least normal number becomes zero",
        lost,
    )
    for bits in sorted({fmt.fraction_bits - 1, fmt.fraction_bits - 2, 13, 10, 7, fmt.fraction_bits}):
        if 0 < bits <= fmt.fraction_bits:
            apply = _on(Round, lambda s, n=bits: replace(s, result_fraction_bits=n) if s.to == "d" else s)  # type: ignore[misc]
            yield Change(f"result-bits-{bits}", f"{bits} fraction bits in the result", apply, 1.1)


def _flushed(flush: str) -> str:
    return "+0" if flush == "positive" else "zero of their sign"


# Special values and operands --------------------------------------------------------------------------------


def _specials(ins: Instruction) -> Iterator[Change]:
    for rule in ("infinity", "zero"):
        apply = rewrite(
            lambda s, _, r=rule: replace(s, zero_times_infinity=r) if isinstance(s, Multiply | Fma) else s  # type: ignore[misc]
        )
        yield Change(f"zero-times-infinity-is-{rule}", f"0 x infinity gives {rule}, not NaN", apply)
    signs = {
        "first": "the first infinity's sign",
        "last": "the last infinity's sign",
        "positive": "+",
        "negative": "-",
    }
    for rule, sign in signs.items():
        apply = _on(SpecialValues, lambda s, r=rule: replace(s, opposite_infinities=r))  # type: ignore[misc]
        yield Change(
            f"opposite-infinities-{rule}",
            f"infinity - infinity gives an infinity, not NaN (sign: {sign})",
            apply,
        )


def _nan_word(nan: int) -> Change:
    def rule(step: Step, operation: Operation) -> Step:
        if not isinstance(step, SpecialValues) and not _rounds_last(step):
            return step
        fmt = format_of(step) or operation.out_format
        return replace(step, nan=nan) if step.nan is not None and fmt == operation.out_format else step

    return Change("nan-word", f"the NaN word is {nan:#x}", rewrite(rule))


def _operands(ins: Instruction) -> Iterator[Change]:
    for flush in ("signed", "positive"):
        for slug, names in (("operands", "abc"), ("ab", "ab"), ("c", "c")):
            apply = _flush(names, flush)
            zeros = " and zero" if flush == "positive" else ""
            yield Change(
                f"{slug}-flushed-{flush}",
                f"subnormal{zeros} {', '.join(names)} become {_flushed(flush)}",
                apply,
            )
    kept = rewrite(lambda s, _: () if isinstance(s, Flush) else s)
    yield Change("operands-not-flushed", "subnormal operands are not flushed", kept)
    for slug, names in (("", "ab"), ("-abc", "abc"), ("-a", "a"), ("-b", "b"), ("-c", "c")):
        for zeros in ("", "-zeros"):
            apply = _insert(lambda i, o, n=names, z=zeros: _hidden_step(i, o, n, bool(z)))  # type: ignore[misc]
            text = f"subnormal {', '.join(names)} get the hidden bit" + (", zeros too" if zeros else "")
            yield Change(f"hidden-bit-set{slug}{zeros}", text, apply)


def _flush(names: str, rule: str) -> Apply:
    """Flushes these operands in this way, in place of what an operation does with them now."""

    def apply(ins: Instruction) -> Instruction | None:
        return with_operations(ins, [o.with_steps(_flushing(o, names, rule)) for o in ins.program.operations])

    return apply


def _flushing(operation: Operation, names: str, rule: str) -> tuple[Step, ...]:
    of = tuple(name for name in names if name == "c" or operation.k_index)
    if not of or not operation.seed_format.is_float:
        return operation.steps
    kept = (
        replace(s, of=tuple(n for n in s.of if n not in of)) if isinstance(s, Flush) else s
        for s in operation.steps
    )
    return (Flush(of=of, sign=rule), *(s for s in kept if s.of))


def _hidden_step(ins: Instruction, operation: Operation, names: str, zeros: bool) -> Step | None:
    table = {"a": ins.formats["a"], "b": ins.formats["b"], "c": operation.seed_format}
    of = tuple(
        n for n in names if (n == "c" or operation.k_index) and table[n].is_float and table[n].has_subnormals
    )
    return HiddenBit(of=of, zeros="set" if zeros else "kept") if of else None


# Formats ----------------------------------------------------------------------------------------------------


def _formats(ins: Instruction) -> Iterator[Change]:
    a, b = ins.formats["a"], ins.formats["b"]
    if "tf32" in (a.name, b.name):
        yield Change("tf32-low-bits", "the 13 low bits of tf32 operands are used", _whole_tf32)
    for other in (get_format(name) for name in formats()):
        for slug, names in (("a", "a"), ("b", "b"), ("operands", "ab")):
            if all(_same_words(ins.formats[name], other) for name in names):
                apply = _reading(names, other)
                yield Change(
                    f"{slug}-read-as-{other.name}", f"{' and '.join(names)} read as {other.name}", apply, 1.2
                )
    for name in ("a", "b", "c"):
        fmt = ins.formats[name]
        if fmt.is_float and fmt.specials != "none" and name not in ins.absent and fmt.name != "tf32":
            text = f"infinities and NaNs of {name} are taken as numbers"
            yield Change(f"{name}-specials-ignored", text, _reading(name, _without_nan(fmt)), 1.1)
    if ins.scale_block is not None:
        yield from _scale_formats()


def _whole_tf32(ins: Instruction) -> Instruction | None:
    return _read_as(ins, {name: get_format("f32") for name in "ab" if ins.formats[name].name == "tf32"})


def _same_words(fmt: Format, other: Format) -> bool:
    return (
        (fmt.storage, fmt.bits) == (other.storage, other.bits)
        and fmt != other
        and fmt.is_float == other.is_float
    )


def _reading(names: str, fmt: Format) -> Apply:
    return lambda ins: _read_as(ins, dict.fromkeys(names, fmt))


def _read_as(ins: Instruction, table: dict[str, Format]) -> Instruction | None:
    if not table or all(ins.formats[name] == fmt for name, fmt in table.items()):
        return None
    changed = replace(ins, formats=ins.formats | table)
    return (
        changed if changed.pattern == ins.pattern else None
    )  # the meaning of metadata follows the format of a


def _scale_formats() -> Iterator[Change]:
    def numbers(ins: Instruction) -> Instruction | None:
        table = {n: _without_nan(ins.formats[n]) for n in ("scale_a", "scale_b")}
        return _read_as(ins, table)

    def signed(ins: Instruction) -> Instruction | None:
        names = [n for n in ("scale_a", "scale_b") if ins.formats[n].name == "ue4m3"]
        return _read_as(ins, dict.fromkeys(names, get_format("e4m3")))

    yield Change("scale-nan-ignored", "a NaN scale is taken as a number", numbers)
    yield Change("scale-sign-used", "bit 7 of the scales is a sign", signed)


def _without_nan(fmt: Format) -> Format:
    return fmt if fmt.specials == "none" else replace(fmt, name=f"{fmt.name}_no_nan", specials="none")
