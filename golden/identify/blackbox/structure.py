"""Structural changes of a program, as opposed to changes of key values: a step inserted at any place or
removed with its register, rounded additions for exact ones, other registers as operands, other links between
operations.

Nothing here knows a datapath: the registers that can be read at a place follow from the steps before it, and
an inserted step needs one plain value for each key without a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

from golden.identify.blackbox.candidates import Candidate, with_results
from golden.identify.blackbox.step_registers import renamed, with_registers
from golden.number.formats import Format, get_format
from golden.number.frozen import replace
from golden.program.compiling import holds
from golden.program.keys import FLUSH, ORDER, Registers, declared
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    HiddenBit,
    Multiply,
    Normalize,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
)
from golden.program.steps import Fma as _Fma

Steps = tuple[Step, ...]
_BITS = (0, 3, 7, 10, 13, 16, 20, 23, 26, 31, 40, 52)
"""Fraction bits of an inserted step; fits find the widths between."""
_MODES = ("toward_zero", "nearest_even")
_SCALED = ("products", "groups", "dot")
_NARROWED, _WHOLE = "narrowed", "whole"
_F32 = get_format("f32")


# Registers --------------------------------------------------------------------------------------------------


def readable(operation: Operation, before: int, scaled: bool) -> tuple[str, ...]:
    """The registers that have a value before a step."""
    found = ["a", "b", "c"] if operation.k_index else ["c"]
    found += ["scales"] * (scaled and bool(operation.k_index)) + ["addends"] * bool(operation.addends)
    found += [step.to for step in operation.steps[:before] if step.to]
    return tuple(dict.fromkeys(found))


def other_registers(step: Step, known: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Other registers that a step could read, among those with a value: fewer, more, in another order."""
    rule = next((key for name, key, _ in declared(step) if isinstance(key, Registers)), None)
    if rule is None or isinstance(step, _Fma | Multiply):
        return
    allowed = [name for name in known if name in rule.allowed]
    now = list(step.of)
    sets = [tuple(n for n in now if n != one) for one in now if len(now) > 1]
    sets += [(*now, one) for one in allowed if one not in now and len(now) < rule.most]
    sets += [tuple(one if n == old else n for n in now) for old in now for one in allowed if one not in now]
    if isinstance(step, Additions | SpecialValues) and len(now) > 1:
        sets += [tuple(now[::-1]), *((*now[:i], *now[i + 1 :], now[i]) for i in range(len(now) - 1))]
    yield from dict.fromkeys(sets)


# Steps put in -----------------------------------------------------------------------------------------------


def steps_inserted(one: Candidate) -> Iterator[tuple[str, Steps, Steps]]:
    """(what, steps of an operation, the same with one more step), for every step at every place where it may
    have an effect."""
    scaled = bool(one.takes.scale_block)
    for operation in {o.steps: o for o in one.operations}.values():
        for place in range(len(operation.steps)):
            known = readable(operation, place, scaled)
            for register in _touched(operation.steps, place, known):
                rest = operation.steps[place:]
                for what, new, to in _new_steps(one, operation, register, place):
                    after = rest if to == register else renamed(rest, register, to)
                    changed = (*operation.steps[:place], *new, *after)
                    yield f"{what} of {register}, {_where(operation.steps, place)}", operation.steps, changed


def _touched(steps: Steps, place: int, known: Sequence[str]) -> Iterator[str]:
    """The registers for which a step at this place could have an effect: read after it, and written or read
    by the step before it (if not, the same step further up is equivalent)."""
    for register in known:
        if place and register not in (steps[place - 1].to, *steps[place - 1].of):
            continue
        for step in steps[place:]:
            if register in step.of or (register == "c" and isinstance(step, _Fma)):
                yield register
                break
            if step.to == register:
                break


def _where(steps: Steps, place: int) -> str:
    return f"before {steps[place].op} {place}"


def _new_steps(
    one: Candidate, operation: Operation, register: str, place: int
) -> Iterator[tuple[str, Steps, str]]:
    """(what, steps, the register that holds the numbers afterwards)."""
    of = (register,)
    if register in ("a", "b", "c") and place == 0:
        fmt = operation.seed_format if register == "c" else one.formats[register]
        if fmt.is_float and fmt.has_subnormals:
            yield "hidden bit", (HiddenBit(of=of),), register
    # Nothing else can be done to scales and earlier results before they are read.
    if register in ("scales", "addends"):
        return
    for sign in FLUSH.words[1:]:
        yield f"flush ({sign})", (Flush(of=of, sign=sign),), register
    if register == "b":
        return
    if one.takes.scale_block and register in _SCALED:
        yield "scale", (Scale(of=of),), register
    # Normalized or aligned: fits find the widths between.
    for mode in _MODES:
        for bits in _BITS:
            widths = ((register, bits),)
            normal = Normalize(of=of, fraction_bits=widths, rounding=mode)
            yield f"normalize ({bits}, {mode})", (normal,), register
    for bits in _BITS:
        aligned = Align(of=of, fraction_bits=((register, bits),), rounding="toward_zero")
        yield f"align ({bits})", (aligned,), register
    if register == "a":
        return
    # Intermediate results only: rounded, or summed before they are read.
    yield from _roundings(one, register)
    if register == "products" and len(operation.k_index) > 1:
        yield from _sums(one, register, len(operation.k_index))


def _roundings(one: Candidate, register: str) -> Iterator[tuple[str, Steps, str]]:
    for fmt in inner_formats(one):
        overflow = "infinity" if fmt.is_float else "saturate"
        for mode in _MODES:
            step = Round(
                to="partial", of=(register,), format=fmt, rounding=mode, overflow=overflow, zero="signed"
            )
            yield f"round ({fmt.name}, {mode})", (step,), "partial"


def _sums(one: Candidate, register: str, k: int) -> Iterator[tuple[str, Steps, str]]:
    """The products summed, or summed by groups, before they are read: exactly, or with rounding."""
    of = (register,)
    for group in (None, *groups(k)):
        to = "dot" if group is None else "groups"
        said = "" if group is None else f" by {group[0]} {group[1]}"
        yield f"sum{said}", (Sum(of=of, to=to, group=group),), to
        for fmt in inner_formats(one):
            for order in ORDER.words:
                step = Additions(of=of, to=to, group=group, order=order, format=fmt, rounding="nearest_even")
                yield f"additions{said} ({order}, {fmt.name})", (step,), to


def groups(k: int) -> Iterator[tuple[str, int]]:
    """Divisions of k terms, including those with a smaller last group."""
    for size in range(2, k):
        yield "contiguous", size
        yield "interleaved", size


def inner_formats(one: Candidate) -> list[Format]:
    """Formats to which intermediate numbers may be rounded."""
    names = ("f32", "f16", "bf16", "f64", "tf32", "s32")
    known = [one.formats["d"], *map(get_format, names)]
    whole = all(one.formats[name].is_float is False for name in "ab")
    return [fmt for fmt in dict.fromkeys(known) if fmt.is_float or whole]


# Steps taken out, and others in their place -----------------------------------------------------------------


def steps_removed(one: Candidate) -> Iterator[tuple[str, Steps, Steps]]:
    """Steps with a register of their own, removed: readers of it read the operands of the step instead."""
    for steps in one.bodies:
        for place, step in enumerate(steps[:-1]):
            if step.to and not isinstance(step, Multiply | _Fma) and len(step.of) == 1:
                rest = renamed(steps[place + 1 :], step.to, step.of[0])
                yield f"{step.op} of {step.of[0]}", steps, (*steps[:place], *rest)


def sums_exchanged(one: Candidate) -> Iterator[tuple[str, Steps, Steps]]:
    """Rounded sums for exact ones, and vice versa."""
    for steps in one.bodies:
        for place, step in enumerate(steps):
            for what, new in _other_sums(one, step):
                said = f"{what} of {' and '.join(step.of)}"
                yield said, steps, (*steps[:place], *new, *steps[place + 1 :])
        if len(steps) > 1 and isinstance(steps[-2], Sum) and isinstance(steps[-1], Round):
            yield from _rounded_sums(steps, steps[-2], steps[-1])


def _other_sums(one: Candidate, step: Step) -> Iterator[tuple[str, Steps]]:
    """The alternatives to a sum."""
    if isinstance(step, Sum):
        for fmt, order, mode in product(inner_formats(one), ORDER.words, _MODES):
            rounded = Additions(
                of=step.of, to=step.to, group=step.group, order=order, format=fmt, rounding=mode
            )
            yield f"{order} additions ({fmt.name}, {mode})", (rounded,)
    elif isinstance(step, Additions) and step.to != "d":
        yield "exact sum", (Sum(of=step.of, to=step.to, group=step.group),)
    elif isinstance(step, Additions):
        overflow = "ieee" if step.format.is_float else "saturate"
        last = Round(
            of=("total",), format=step.format, rounding=step.rounding, overflow=overflow, zero="signed"
        )
        yield "exact sum, rounded", (Sum(of=step.of, to="total"), last)


def _rounded_sums(steps: Steps, total: Sum, last: Round) -> Iterator[tuple[str, Steps, Steps]]:
    """Additions that each round, instead of one exact sum with one rounding."""
    if last.of == (total.to,) and total.group is None:
        for order in ORDER.words:
            for of in dict.fromkeys((total.of, total.of[::-1])):
                new = Additions(of=of, to="d", order=order, format=last.format, rounding=last.rounding)
                yield f"{order} additions of {' and '.join(of)} to d", steps, (*steps[:-2], new)


# Links ------------------------------------------------------------------------------------------------------


def linked(one: Candidate) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """Other seeds, addends and formats of single operations."""
    operations = one.operations
    for index, operation in enumerate(operations) if len(operations) > 1 else ():
        before = [o.to for o in operations[:index]]
        for seed in ("c", "zero", *before):
            if seed != operation.seed:
                yield f"{operation.to}: c is {seed}", _with(operations, index, seed=seed)
        for size in range(0, min(len(before), 4) + 1):
            for names in combinations(before, size):
                if names != operation.addends:
                    yield f"{operation.to}: addends {names}", _with(operations, index, addends=names)
        if index < len(operations) - 1:
            for fmt in dict.fromkeys((one.formats["d"], *map(get_format, ("f32", "f16", "bf16")))):
                if fmt != operation.out_format and fmt.is_float == one.formats["d"].is_float:
                    changed = with_results(operation, fmt)
                    yield f"{operation.to}: format {fmt.name}", _put(operations, index, changed)


def uncounted(one: Candidate, name: str, linked: bool = False) -> Candidate | None:
    """A candidate whose sums omit c, or everything except c; its special values and its alignment stay.
    `linked`: also for earlier results in the place of c."""

    def changed(step: Step) -> Step:
        if not isinstance(step, Sum | Additions) or "c" not in step.of or len(step.of) == 1:
            return step
        return with_registers(step, tuple(n for n in step.of if n != "c") if name == "c" else ("c",))

    return _where_c_is_read(one, changed, linked)


def _where_c_is_read(one: Candidate, changed: Callable[[Step], Step], linked: bool) -> Candidate | None:
    """A candidate with other steps in the operations that read c. `linked`: in the operations with products
    that read c or an earlier result in its place. None if that changes nothing or no unit can be it."""
    seeds = {"c", *(o.to for o in one.operations)} if linked else {"c"}
    operations = (
        o.with_steps(map(changed, o.steps)) if o.seed in seeds and (o.k_index or not linked) else o
        for o in one.operations
    )
    return one.changed_to(operations)


def overflowing(one: Candidate, end: int | None = None) -> Candidate | None:
    """A candidate whose products are infinite from 2^end up; by default all nonzero products."""
    least = _all_products(one) if end is None else end

    def changed(step: Step) -> Step:
        return replace(step, overflow_exponent=least) if isinstance(step, Multiply) else step

    return one.with_each_step(changed)


def _all_products(one: Candidate) -> int:
    """The exponent of the least product."""
    factors = (one.takes.formats[name] for name in "ab")
    return sum(fmt.min_exponent - fmt.fraction_bits for fmt in factors if fmt.is_float)


def in_complement(one: Candidate) -> Iterator[Candidate]:
    """A candidate that adds terms of the other sign than c in one's complement, in every exact sum, or in
    only one."""
    sums = one.steps_of(Sum)
    found: dict[object, Candidate] = {}
    for those in (tuple(sums), *((step,) for step in sums)):

        def changed(step: Step, those: Steps = those) -> Step:
            return replace(step, complement="c") if isinstance(step, Sum) and step in those else step

        new = one.with_each_step(changed)
        if those and new is not None:
            found.setdefault(new.operations, new)
    yield from found.values()


def twins(one: Candidate) -> Iterator[Candidate]:
    """The same in more operations, each with its own keys for special values and results: the roundings
    between two operations cannot be expressed in one."""
    yield from filter(None, (_apart(one), *converted(one)))


def _apart(one: Candidate) -> Candidate | None:
    """The sum of products, rounded before c is added, and that addition, as two operations."""
    whole, *others = one.operations
    body, ends = whole.steps[:-2], whole.steps[-2:]
    if others or len(ends) < 2:
        return None
    first, last = ends
    if not isinstance(first, Round) or not isinstance(last, Additions) or set(last.of) != {"c", first.to}:
        return None
    if any("c" in step.of for step in body if isinstance(step, Align | Sum | Additions)):
        return None
    inner: list[Step] = [
        with_registers(step, tuple(name for name in step.of if name != "c")) if "c" in step.of else step
        for step in body
        if step.of != ("c",)
    ]
    operands = (s for s in body if "c" in s.of and not isinstance(s, SpecialValues))
    dot = replace(whole.with_steps((*inner, replace(first, to="d"))), seed="zero", to="r0")
    add = _exact(("c", "addends"), last.format, last.rounding, last.nan)
    steps = (*(with_registers(step, ("c",)) for step in operands), *add)
    both = replace(whole.with_steps(steps), k_index=(), addends=("r0",))
    return one.with_operations((replace(dot, out_format=first.format), both))


def converted(one: Candidate) -> Iterator[Candidate]:
    """The same with separate operations that convert c and the result, from and to c's format or f32."""
    inner = dict.fromkeys((one.takes.formats["c"], _F32))
    yield from filter(None, (_converted(one, fmt) for fmt in inner))


def _converted(one: Candidate, inner: Format) -> Candidate | None:
    """A separate operation that converts c before anything reads it, and one that converts the result;
    everything between is in one format."""
    c, d = (one.takes.formats[name] for name in "cd")
    used = {operation.to for operation in one.operations} | {operation.seed for operation in one.operations}
    if not (c.is_float and d.is_float and holds(inner, c)) or used & {_NARROWED, _WHOLE}:
        return None
    *head, last = (replace(o, seed=_NARROWED) if o.seed == "c" else o for o in one.operations)
    alone = replace(last.with_steps(_exact(("c",), inner, "nearest_even")), k_index=(), addends=())
    first = replace(alone, seed="c", out_format=inner, to=_NARROWED)
    end = replace(alone.with_steps(_exact(("c",), d, "nearest_even")), seed=_WHOLE, out_format=d, to="d")
    middle = [*head, replace(last, to=_WHOLE)]
    return one.with_operations((first, *(with_results(o, inner) for o in middle), end))


def _exact(of: tuple[str, ...], fmt: Format, rounding: str, nan: int | None = None) -> Steps:
    """The steps of an exact sum of existing registers, rounded once."""
    last = Round(of=("total",), format=fmt, rounding=rounding, overflow="ieee", zero="signed")
    return (SpecialValues(of=of, nan=nan), Sum(of=of, to="total"), last)


def _with(operations: Sequence[Operation], index: int, **changes: Any) -> tuple[Operation, ...]:
    """The operations with one changed; its steps read earlier results if it has addends."""
    changed = replace(operations[index], **changes)
    if "addends" in changes:
        steps = _reading(changed.steps, bool(changes["addends"]))
        changed = changed.with_steps(steps) if steps else changed
    return _put(operations, index, changed)


def _reading(steps: Steps, addends: bool) -> Steps | None:
    """Steps whose last sum (with its alignment) reads earlier results, or no longer does."""
    sums = [step for step in steps if isinstance(step, Sum | Additions)]
    if not sums:
        return None
    last = sums[-1]

    def changed(step: Step) -> Step:
        if step.of != last.of or not isinstance(step, Sum | Additions | Align):
            return step
        rest = tuple(name for name in step.of if name != "addends")
        return with_registers(step, (*rest, "addends") if addends else rest)

    return tuple(changed(step) for step in steps) if addends or len(last.of) > 1 else None


def _put(operations: Sequence[Operation], index: int, changed: Operation) -> tuple[Operation, ...]:
    return (*operations[:index], changed, *operations[index + 1 :])
