"""Steps inserted, removed or joined, as known datapaths differ in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.key_values import result_formats_tried
from golden.identify.blackbox.moves import (
    Hints,
    Move,
    Operations,
    Steps,
    made_as,
    put_before,
    put_behind,
    put_instead,
    replacing_step,
    shown_value,
    swapping_steps,
    whole_change,
)
from golden.identify.blackbox.step_registers import relabelled, with_registers
from golden.identify.blackbox.templates import START_BITS, align, has_special
from golden.number.formats import Format, Kind, get_format
from golden.number.frozen import replace
from golden.program.compiling import holds
from golden.program.steps import (
    MAX_FRACTION_BITS,
    MOST_UNITS,
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
)

FACTORS_AND_C = ("a", "b", "c")


def structural(one: Candidate, hints: Hints) -> Iterator[Move]:
    """Steps inserted, removed or joined."""
    for kind in (Flush, Normalize, Align, SpecialValues, HiddenBit, Scale):
        for step in one.steps_of(kind):
            yield Move(f"{step.op} of {' and '.join(step.of)}", "left out", put_instead(step, ()))
    yield from _flushes(one)
    yield from _same_words(one, hints)
    yield from _numbers_for_nans(one, hints)
    yield from _converted(one)
    yield from _inserted(one, hints)
    yield from in_one_sum(one)


def _flushes(one: Candidate) -> Iterator[Move]:
    for sign in ("signed", "positive"):
        for of in owned(one, ("a", "b", "c"), ("a", "b"), ("c",), ("a",), ("b",)):
            yield Move(f"flush of {' and '.join(of)}", sign, flushing(of, sign))
    for of in owned(one, ("a", "b"), ("a",), ("b",), ("c",)):
        if all(one.formats[name].is_float for name in of):
            yield Move(f"hidden_bit of {' and '.join(of)}", "put in", _put_first(HiddenBit(of=of)), 1)
    for step in one.steps_of(Additions):
        if len(step.of) > 1:
            turned = replace(step, of=step.of[::-1])
            yield Move(f"sum of {' and '.join(step.of)}", "the other way", replacing_step(step, turned), 1)


def owned(one: Candidate, *sets: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Sets of operands without those that the unit lacks, each once."""
    left = (tuple(name for name in of if name not in one.takes.unread) for of in sets)
    yield from filter(None, dict.fromkeys(left))


def _put_first(new: Step) -> Callable[[Steps], Steps]:
    """A step before all others in operations that read its operands."""
    return lambda steps: (new, *steps) if set(new.of) <= {n for s in steps for n in s.of} else steps


def flushing(of: tuple[str, ...], sign: str) -> Callable[[Steps], Steps]:
    """Operands flushed before any other step in operations that read them: operations that only add earlier
    results have no a and b."""

    def change(steps: Steps) -> Steps:
        names = {name for step in steps for name in step.of}
        names |= {"c"} if any(isinstance(step, Fma) and step.start == "c" for step in steps) else set()
        read = tuple(name for name in of if name in names)
        return (Flush(of=read, sign=sign), *steps) if read else steps

    return change


def _same_words(one: Candidate, hints: Hints) -> Iterator[Move]:
    """One word for every NaN that a step makes, with NaNs of operands passed on, or not, or only by adders:
    while a later step makes its own words, the words of earlier steps do not show, and a NaN that an adder
    passes on is the word of the step that made it."""
    kinds: dict[str, tuple[type[Step], ...]] = {
        "not": (),
        "handed on": (Additions, Fma, SpecialValues),
        "handed on by adders": (Additions, Fma),
    }
    if any(isinstance(step, Fma) for operation in one.operations for step in operation.steps):
        kinds["handed on by sums"] = (Additions,)
    for word in hints.words:
        for said, handing in kinds.items():

            def change(steps: Steps, word: int = word, handing: tuple[type[Step], ...] = handing) -> Steps:
                return tuple(_with_words(step, word, isinstance(step, handing)) for step in steps)

            text = f"{word:#x}, operand NaNs {said}"
            yield Move("nan of every step", text, change, where=one.formats["d"])


def _numbers_for_nans(one: Candidate, hints: Hints) -> Iterator[Move]:
    """A number for NaN operands of products, and a NaN for all others if an operation adds no products: if
    most NaNs have one answer, that word of the last operation explains more than either change."""
    d = one.formats["d"]
    if len(one.operations) == 1 or not d.is_float:
        return
    numbers, nans = ([w for w in hints.words if (d.decode(w).kind == Kind.NAN) == kind] for kind in (0, 1))
    for number, nan, causes in product(numbers, nans, (("factor",), ("c",), ("factor", "c"))):
        given = tuple((cause, number) for cause in causes)
        found = []
        for o in one.operations:
            words: dict[str, Any] = {"nan": nan} if o.out_format == d else {}
            words["nans"] = given if o.k_index else ()
            steps = [replace(s, **words) if isinstance(s, SpecialValues) else s for s in o.steps]
            found.append(o.with_steps(steps))
        said = f"{' and '.join(causes)} {number:#x}, others {nan:#x}"
        yield whole_change("nans of products", said, made_as(tuple(found)), 1)


def _with_words(step: Step, word: int, kept: bool) -> Step:
    match step:
        case Additions():
            return replace(step, nan=word, first_nan=kept)
        case Fma():
            return replace(step, nan=word, nan_order=("a", "b", "c") if kept else ())
        case SpecialValues():
            return replace(step, nan=word, nans=(("factor", None), ("c", None)) if kept else ())
    return step


def _converted(one: Candidate) -> Iterator[Move]:
    """Operands whose subnormal numbers are normalized first, as by a conversion to a wider format."""
    for of in owned(one, ("c",), ("a", "b", "c")):
        if all(one.formats[name].is_float for name in of):
            widths = tuple((name, one.formats[name].fraction_bits) for name in of if name != "b")
            names = tuple(name for name, _ in widths)
            step = Normalize(of=names, fraction_bits=widths, rounding="toward_zero")
            yield Move(
                f"normalize of {' and '.join(names)}",
                "first",
                lambda steps, n=step: (n, *steps),  # type: ignore[misc]
            )


def _inserted(one: Candidate, hints: Hints) -> Iterator[Move]:
    """A step after another one: special values and normalization after the step that wrote the numbers, an
    alignment before a sum."""
    for step in one.steps:
        if isinstance(step, Multiply | Scale | Fma) and step.to != "d" and has_special(one.takes):
            term = step.to or step.of[0]
            for of in owned(one, (term,), (term, "c")):
                yield Move(
                    "special_values of " + " and ".join(of),
                    "looked for",
                    put_behind(step, SpecialValues(of=of)),
                )
        if isinstance(step, Sum) and step.to != "d":
            yield from _renormalized(one, step, hints)
        if isinstance(step, Sum):
            yield Move("align before sum", "put in", put_before(step, align(step.of, step.group)), 1)
        if isinstance(step, Sum | Normalize) and step.to != "d" and hints.wide:
            yield from _in_a_register(one, step)


def _in_a_register(one: Candidate, step: Sum | Normalize) -> Iterator[Move]:
    """A sum rounded to a format before the next step: a sum of zeros then has the sign that the register
    gives it."""
    name = step.to if isinstance(step, Sum) else step.of[0]
    for fmt, zero in product(result_formats_tried(one), ("positive", "signed")):
        kept = Round(of=(name,), to=name, format=fmt, rounding="nearest_even", overflow="infinity", zero=zero)
        if name not in FACTORS_AND_C:
            yield Move(f"round of {name}", f"{fmt.name}, zero {zero}", put_behind(step, kept), 1)


def _renormalized(one: Candidate, step: Sum, hints: Hints) -> Iterator[Move]:
    """A sum normalized and cut once more, alone and with one bit more in its addends."""
    wider = next((s for s in one.steps_of(Align) if s.of == step.of), None)
    for mode in ("down", "toward_zero", "nearest_even"):
        for bits in range(20, 40) if hints.wide else (START_BITS,):
            normal = Normalize(of=(step.to,), fraction_bits=((step.to, bits),), rounding=mode)
            yield Move(f"normalize of {step.to}", f"{bits}, {mode}", put_behind(step, normal), 1)
            if wider is not None:
                table = tuple((name, n + 1 if name == step.of[0] else n) for name, n in wider.fraction_bits)
                wide = replace(wider, fraction_bits=table)

                def both(steps: Steps, wide: Step = wide, normal: Step = normal) -> Steps:
                    new: dict[Step, Steps] = {wider: (wide,), step: (step, normal)}
                    return tuple(one for now in steps for one in new.get(now, (now,)))

                yield Move(f"normalize of {step.to}", f"{bits}, {mode}, one bit more before it", both, 1)


def in_one_sum(one: Candidate) -> Iterator[Move]:
    """Products (or groups) aligned and added with c in one sum, instead of a separate sum and all steps up to
    the sum with c: two sums have more keys, which nearly repeat those of one."""
    for steps in one.bodies:
        for name in ("products", "groups"):
            for said, aligned, place, end in _met_at_once(steps, name):
                total, rest = steps[end], (s for s in steps[end + 1 :] if not isinstance(s, Normalize))
                assert isinstance(total, Sum)
                by = (*steps[:place], aligned, Sum(of=aligned.of, to=total.to), *rest)
                yield Move(f"{name} and c", f"in one sum, {said}", swapping_steps(steps, by), 1)


def _met_at_once(steps: Steps, name: str) -> Iterator[tuple[str, Align, int, int]]:
    """Alignments of products (or groups) with the terms that their sum meets later: plain, and with that
    alignment's keys; and the range of steps that they replace."""
    found = _in_two(steps, name)
    if found is None:
        return
    first, last = found
    meet, total = steps[last - 1], steps[last]
    assert isinstance(meet, Align)
    of = (name, *(one for one in total.of if one in ("c", "addends")))
    widths = sorted({bits for _, bits in meet.fraction_bits})
    plain = [replace(align(of, bits=bits), floor=meet.floor) for bits in widths]
    yield from ((f"at {bits} bits", one, first, last) for bits, one in zip(widths, plain, strict=True))
    written = next(s.to for s in reversed(steps[:last]) if isinstance(s, Sum))
    alike = with_registers(relabelled(meet, written, name), of)
    assert isinstance(alike, Align)
    if alike not in plain:
        yield "as their sum met c", alike, first, last


def _in_two(steps: Steps, name: str) -> tuple[int, int] | None:
    """Where the separate sum of products (or groups) begins, including its alignment, and where the sum with
    c is; None if there are no two sums, or a rounding is between them."""
    kinds = (Align, Sum, Normalize)
    first = next((n for n, s in enumerate(steps) if isinstance(s, kinds) and s.of == (name,)), None)
    sums = [n for n, s in enumerate(steps) if isinstance(s, Sum)]
    if first is None or sum(n >= first for n in sums) < 2 or not isinstance(steps[sums[-1] - 1], Align):
        return None
    return (first, sums[-1]) if all(isinstance(s, kinds) for s in steps[first : sums[-1]]) else None


def operand_formats(one: Candidate) -> Iterator[Move]:
    """a and b converted to a wider format first, in which subnormal numbers have exponents of their own."""
    a, b = one.formats["a"], one.formats["b"]
    if a.is_float and b.is_float:
        for fmt in (None, *map(get_format, ("f16", "bf16", "f32"))):
            if fmt is None or (fmt not in (a, b) and holds(fmt, a) and holds(fmt, b)):
                yield whole_change("a and b: format", shown_value(fmt), _converting(fmt))


def _converting(fmt: Format | None) -> Callable[[Operations], Operations]:
    """Another format of a and b in all operations that multiply."""
    return lambda operations: tuple(replace(o, operand_format=fmt) if o.k_index else o for o in operations)


# One value of a sum that a unit answers as another one, as a fault of a chip does. Where a candidate is right
# but for this, the ratio of its wrong answers to the box's is the same in all of them, whatever the exponent.


def replaced_values(one: Candidate, missed: Bank) -> Iterator[Move]:
    """One value of a sum replaced by another, as the questions that a candidate gets wrong suggest."""
    for value, by in _pairs(one, missed):
        for step in one.steps_of(Sum):
            last = next((s for s in one.steps_of(Round) if s.of == (step.to,)), None)
            for places in _places(one):
                if last is None:
                    break
                new = Replace(of=(step.to,), places=places, value=value, by=by)
                yield Move(f"replace of {step.to}", f"{value} by {by} at {places}", put_before(last, new), 1)


def _places(one: Candidate) -> list[int]:
    """Where the last place of an aligned sum may lie below its exponent."""
    widths = {bits for step in one.steps_of(Align) for _, bits in step.fraction_bits}
    near = {bits + more for bits in widths for more in range(-4, 5)}
    return sorted(bits for bits in near if 0 <= bits <= MAX_FRACTION_BITS)


def _pairs(one: Candidate, missed: Bank) -> Iterator[tuple[int, int]]:
    """The odd number of units that a candidate answers, and what the box answers in the same units."""
    d, seen = missed.takes.formats["d"], Counter[tuple[int, Fraction]]()
    for own, given in zip(one.dot(**missed.operands).tolist(), missed.answers.tolist(), strict=True):
        x, y = d.decode(own), d.decode(given)
        if max(x.kind, y.kind) < Kind.INFINITY and x.value:
            odd = x.value.numerator // (x.value.numerator & -x.value.numerator)
            seen[odd, y.value / x.value] += 1
    # Two pairs are tried; three wrong answers with the same ratio are more than chance.
    common = [pair for pair, count in seen.most_common(2) if count >= 3]
    for odd, ratio in common:
        # In units in which both are whole numbers.
        value, by = odd * ratio.denominator, odd * ratio.numerator
        if max(abs(value), abs(by)) <= MOST_UNITS:
            yield value, by
