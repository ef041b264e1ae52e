"""Neighbours of a candidate: every key of every step with another value, steps put in, taken out or split.

The keys are those that the step classes declare, so that a key that is new is searched without a line here;
only integers, formats and words need values to try, which depend on the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

from golden.identify.blackbox import structure
from golden.identify.blackbox.candidates import Candidate, with_results
from golden.identify.blackbox.templates import START_BITS, align, has_special, inner_formats
from golden.number.formats import Format, Kind, get_format
from golden.number.frozen import replace
from golden.program import keys
from golden.program.compiling import holds
from golden.program.keys import Candidate as MaximumOf
from golden.program.keys import (
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Key,
    Names,
    Rules,
    Target,
    Widths,
    Word,
    applies,
    declared,
    key_name,
)
from golden.program.program import Operation
from golden.program.reading import WITH_PAYLOAD
from golden.program.steps import (
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
)
from golden.yamlfile import MISSING

Steps = tuple[Step, ...]
_MOST_BITS = 60
_NEAR = (-3, -2, -1, 1, 2, 3)
_MOST_GROUPED = 16
"""Of more products, only groups of equal size are tried."""
_WINDOWS = (0, *range(4, 50, 3))
_WIDTHS_TRIED = range(10, 41)
_FLOORS = range(-200, 64)
"""Of an alignment that leaves a register out, every floor: what is left out alone lies there unshifted, so
that each value has results of its own, and none is near another."""
_LEASTS = (-126, -14)
"""Exponents of subnormal numbers of f32 and bf16, and of f16."""
_WORDS_LEFT = 3
"""Words that are tried for NaNs that are left to later steps, beside each word of those that are found."""
_SPREAD = 6
"""Between values of a wide search: those between are near one of them, and what helps there helps here."""


@dataclass(frozen=True)
class Mutation:
    """One change. `key`: what it changes, "align.fraction_bits"; `value`: to what; `rank`: plain ones first.

    `only`: the operation that it is made in; None: in all that have such a step.
    """

    key: str
    value: str
    change: Callable[[Steps], Steps]
    rank: int = 0
    only: int | None = None
    where: Format | None = None
    """Only in operations with results of this format."""
    out: Format | None = None
    """Another format for the results of all operations but the last."""

    def apply(self, one: Candidate) -> Candidate | None:
        """The neighbour; None where the change means nothing there, or no unit can be that."""
        changed: list[Operation] = []
        before: tuple[Steps, Steps] | None = None
        for index, operation in enumerate(one.operations):
            steps = operation.steps
            if self.only in (None, index) and self.where in (None, operation.out_format):
                if before is None or before[0] is not steps:  # operations of a chain have the same steps
                    before = steps, self.change(steps)
                steps = before[1]
            operation = operation.with_steps(steps)
            if self.out is not None and index < len(one.operations) - 1:
                operation = replace(operation, out_format=self.out)
            changed.append(operation)
        return None if tuple(changed) == one.operations else one.with_operations(changed)

    @property
    def text(self) -> str:
        """The change in words."""
        return f"{self.key} = {self.value}"


@dataclass(frozen=True)
class Hints:
    """What values are worth a try: NaN words that the box answered, and how far the search goes.

    wide: all values of integers and all that can be added to a list, else what is near the present one.
    faults: also keys that only faults set; else those of them that are set.
    last_bit: exponent of the last bit of which the answers to c alone are multiples, where it is high.
    """

    words: tuple[int, ...] = ()
    wide: bool = True
    faults: bool = True
    last_bit: int | None = None


def mutations(one: Candidate, hints: Hints) -> Iterator[Mutation]:
    """Every single change of the keys of a candidate, and of steps that many units have."""
    seen: dict[Step, int] = {}
    for operation in one.operations:
        for step in operation.steps:
            seen.setdefault(step, len(seen))
    for step in seen:
        for faults in (False, True):
            yield from _keys(one, step, hints, faults)
        yield from _registers(one, step, hints)
    yield from _operands(one)
    yield from _structure(one, hints)
    yield from _outs(one)


def rare(one: Candidate) -> Iterator[Mutation]:
    """Changes that few units need: other registers, any step put in at any place or taken out, rounded
    additions for exact ones, other links between operations."""
    for step in dict.fromkeys(s for operation in one.operations for s in operation.steps):
        yield from _read(one, step)
        yield from _rounded_to(one, step)
    for what, make in (("in", structure.put_in), ("out", structure.taken_out), ("", structure.exchanged)):
        for label, steps, changed in make(one):
            yield Mutation(f"{label}: put {what}" if what else label, "", _swapping(steps, changed), 1)
    for label, operations in structure.linked(one):
        yield _Whole(label, "", lambda steps: steps, 1, whole=operations)


def _rounded_to(one: Candidate, step: Step) -> Iterator[Mutation]:
    """Any format that something is rounded to before the result, with how: a wrong one of the two hides that
    the other is right."""
    now = getattr(step, "format", None)
    if step.to == "d" or now is None:
        return
    for fmt, mode in product(inner_formats(one.takes), keys.ROUNDING.words):
        if fmt != now:
            new: dict[str, Any] = {"format": fmt, "rounding": mode, "nan": None}
            label = f"{step.op} of {' and '.join(step.of)}: format"
            yield Mutation(label, f"{fmt.name}, {mode}", _replacing(step, replace(step, **new)), 1)


def pairs_of_keys(one: Candidate) -> Iterator[Mutation]:
    """Two keys of one step at once: any two words, and the width of an alignment with how it cuts. What is
    cut and how it is rounded are seen together."""
    yield from _widths_and_roundings(one)
    for step in dict.fromkeys(s for operation in one.operations for s in operation.steps):
        defaults = {name: default for name, _, default in declared(step)}
        words = [
            (name, key, key.words if isinstance(key, Choice) else (True, False))
            for name, key, _ in declared(step)
            if isinstance(key, Choice | Flag)
        ]
        for (first, key, some), (second, other, more) in combinations(words, 2):
            for value, beside in product(some, more):
                words_of: dict[str, Any] = {first: value, second: beside}
                changed = replace(step, **words_of)
                held = {name: getattr(changed, name) for name in defaults}
                both = value != getattr(step, first) and beside != getattr(step, second)
                if both and applies(key, held, defaults) and applies(other, held, defaults):
                    label = f"{step.op} of {' and '.join(step.of)}: {key_name(first, key)}"
                    said = f"{_shown(value)}, {key_name(second, other)} {_shown(beside)}"
                    yield Mutation(label, said, _replacing(step, changed), key.fault + other.fault)


def _widths_and_roundings(one: Candidate) -> Iterator[Mutation]:
    """The width of an alignment together with how it cuts: a sticky bit shows at the right width alone. Also
    of the plain alignment, without what was found at a wrong width beside them."""
    for step in dict.fromkeys(
        s for operation in one.operations for s in operation.steps if isinstance(s, Align)
    ):
        rest: dict[str, Any] = {"window": (), "spared": (), "shift_limit": None, "left_out": ()}
        plain = replace(step, cut="dropped", sticky_gap=0, **rest)
        for base in dict.fromkeys((step, plain)):
            for bits, mode in product(_WIDTHS_TRIED, keys.ROUNDING.words):
                changed = replace(base, fraction_bits=tuple((name, bits) for name in step.of), rounding=mode)
                if changed.rounding != step.rounding or base != step:
                    label = f"align of {' and '.join(step.of)}: fraction_bits"
                    said = f"{bits}, {mode}" + (", nothing else" if base != step else "")
                    yield Mutation(label, said, _replacing(step, changed), 1)


def sticky(one: Candidate) -> Iterator[Mutation]:
    """A sticky bit below one width of all registers, as they are cut otherwise: at any other width than the
    right one it explains nothing where many terms leave a bit each."""
    for step in dict.fromkeys(s for o in one.operations for s in o.steps if isinstance(s, Align)):
        for cut, bits in product(keys.CUT.words, _WIDTHS_TRIED):
            changed = replace(step, cut=cut, fraction_bits=tuple((name, bits) for name in step.of))
            if cut not in (step.cut, "dropped"):
                label = f"align of {' and '.join(step.of)}: cut"
                yield Mutation(label, f"{cut}, {bits} bits", _replacing(step, changed), 1)


def _evened(one: Candidate) -> Iterator[tuple[Align, int, Align]]:
    """Alignments in which a register has a width of its own, with one width for all, and which."""
    for step in dict.fromkeys(s for o in one.operations for s in o.steps if isinstance(s, Align)):
        widths = sorted({bits for _, bits in step.fraction_bits})
        for bits in widths if len(widths) > 1 else ():
            yield step, bits, replace(step, fraction_bits=tuple((name, bits) for name in step.of))


def in_one_operation(one: Candidate, hints: Hints) -> Iterator[Mutation]:
    """The same changes in one operation alone, where there are several."""
    for index, operation in enumerate(one.operations) if len(one.operations) > 1 else ():
        part = replace(one, operations=(operation,))
        tried = [
            move
            for step in dict.fromkeys(operation.steps)
            for faults in (False, True)
            for move in _keys(one, step, hints, faults)
        ]
        for move in (*tried, *rare(part)):
            yield replace(move, only=index, rank=move.rank + 1, key=f"{operation.to}: {move.key}")


def resets(one: Candidate) -> Iterator[Mutation]:
    """Every key that was given a value, back to its default, one width for all registers of an alignment,
    and numbers that are not normalised on the way: what helped once can stand in the way later."""
    for align_, bits, even in _evened(one):
        label = f"align of {' and '.join(align_.of)}: fraction_bits"
        yield Mutation(label, f"{bits} for all", _replacing(align_, even))
    for step in dict.fromkeys(s for operation in one.operations for s in operation.steps):
        for name, key, default in declared(step):
            now = getattr(step, name)
            if default is MISSING or now in (default, None) or isinstance(key, FormatName | Target):
                continue
            label = f"{step.op} of {' and '.join(step.of)}: {key_name(name, key)}"
            yield Mutation(label, _shown(default), _replacing(step, replace(step, **{name: default})))
    for of in dict.fromkeys(s.of for o in one.operations for s in o.steps if isinstance(s, Normalize)):
        yield Mutation(f"normalize of {' and '.join(of)}", "left out, all", _not_normalized(of))


def _not_normalized(of: tuple[str, ...]) -> Callable[[Steps], Steps]:
    return lambda steps: tuple(s for s in steps if not (isinstance(s, Normalize) and s.of == of))


def settings(operations: Iterable[Operation]) -> dict[str, str]:
    """The value of every key by the name that mutations give it; of steps that differ in it, all values."""
    found: dict[str, dict[str, None]] = {}
    for step in dict.fromkeys(s for operation in operations for s in operation.steps):
        for name, key, _ in declared(step):
            label = f"{step.op} of {' and '.join(step.of)}: {key_name(name, key)}"
            found.setdefault(label, {})[_shown(getattr(step, name))] = None
    return {label: "; ".join(values) for label, values in found.items()}


# Keys -------------------------------------------------------------------------------------------------------


def _keys(one: Candidate, step: Step, hints: Hints, faults: bool = False) -> Iterator[Mutation]:
    """Every key with every other value; `faults`: those that only faults set, else the others."""
    listed = list(declared(step))
    defaults = {name: default for name, _, default in listed}
    for name, key, default in listed:
        if key.fault != faults or (faults and not hints.faults and getattr(step, name) == default):
            continue
        for value in _values(one, step, name, key, hints):
            changed = replace(step, **_beside(step, name, value), **{name: value})
            held = {other: getattr(changed, other) for other in defaults}
            if value != getattr(step, name) and applies(key, held, defaults):
                label = f"{step.op} of {' and '.join(step.of)}: {key_name(name, key)}"
                where = one.formats["d"] if isinstance(key, Word) and value is not None else None
                yield Mutation(label, _shown(value), _replacing(step, changed), 2 * key.fault, where=where)
    if isinstance(step, Multiply) and step.format is None and not faults:
        for fmt in _formats(one):
            for mode in ("nearest_even", "toward_zero", "to_odd"):
                changed = replace(step, format=fmt, rounding=mode, **_beside(step, "format", fmt))
                yield Mutation("multiply: format", f"{fmt.name}, {mode}", _replacing(step, changed))


def _beside(step: Step, name: str, value: Any) -> dict[str, Any]:
    """The keys that mean nothing beside another one's value, as they are where nobody sets them."""
    if isinstance(step, Align) and name in ("maximum", "exponent") and value not in (None, ()):
        rest = {"maximum": (), "exponent": None, "floor": None, "shift_limit": None, "left_out": ()}
        return {key: none for key, none in rest.items() if key != name} | {"zeros": "ignored"}
    if isinstance(step, Align) and name == "floor" and value is not None:
        return {"maximum": (), "exponent": None}
    if name == "format" and hasattr(step, "nan"):  # the word of a NaN is one of the format
        return {"nan": None}
    return {}


def _read(one: Candidate, step: Step) -> Iterator[Mutation]:
    """Other registers that a step reads."""
    scaled = bool(one.takes.scale_block)
    known = dict.fromkeys(
        name
        for operation in one.operations
        if step in operation.steps
        for name in structure.readable(operation, operation.steps.index(step), scaled)
    )
    for of in structure.other_registers(step, tuple(known)):
        changed = structure.with_registers(step, of)
        yield Mutation(
            f"{step.op} of {' and '.join(step.of)}", f"of {', '.join(of)}", _replacing(step, changed)
        )


def _swapping(steps: Steps, by: Steps) -> Callable[[Steps], Steps]:
    return lambda now: by if now == steps else now


def _replacing(step: Step, by: Step) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        return tuple(by if one == step else one for one in steps)

    return change


def _shown(value: Any) -> str:
    if isinstance(value, Format):
        return value.name
    if isinstance(value, tuple):
        return (
            ", ".join(" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in value)
            or "none"
        )
    return "none" if value is None else str(value)


def _values(one: Candidate, step: Step, name: str, key: Key, hints: Hints) -> Iterable[Any]:
    """Values to try for one key of a step."""
    now = getattr(step, name)
    match key:
        case Choice(words=words):
            return words
        case Flag():
            return (True, False)
        case Integer():
            whole = name == "floor" and isinstance(step, Align) and bool(step.left_out) and hints.wide
            return _integers(one, name, now, key, hints) + (list(_FLOORS) if whole else [])
        case Widths(for_all=True):
            return _widths(now, hints)
        case Widths():
            return _windows(one, step, now, name)
        case Rules(vocabulary=vocabulary):
            return [(), *(((register, word),) for register in step.of for word in vocabulary.words)]
        case FormatName():
            fixed = getattr(step, "to", "") == "d"
            return () if fixed else [*_formats(one), *([None] if isinstance(step, Multiply) else [])]
        case Word():
            return (None, *(word for word in hints.words if word < 1 << _word_bits(one, step)))
        case Grouping():
            return _groups(one)
        case Names(allowed=allowed):
            return [()] + [
                order for size in range(1, len(allowed) + 1) for order in permutations(allowed, size)
            ]
        case Causes(causes=causes):
            return _causes(now, causes if hints.wide else (), hints.words)
        case Candidates(most=most):
            return _maxima(step.of, now, most if hints.wide else 0)
        case _:
            return ()


def _causes(
    now: tuple[tuple[str, int | None], ...], causes: Sequence[str], words: Sequence[int]
) -> Iterator[tuple[tuple[str, int | None], ...]]:
    """One cause less, one with another word, one in another place, one more in any place: that between two
    others says what neither end does."""

    def given(cause: str) -> Iterator[tuple[str, int | None]]:
        yield from ((cause, word) for word in (*([None] if cause in WITH_PAYLOAD else []), *words))

    for place, (cause, _) in enumerate(now):
        rest = (*now[:place], *now[place + 1 :])
        yield rest
        yield from ((*now[:place], one, *now[place + 1 :]) for one in given(cause))
        yield from ((*rest[:to], now[place], *rest[to:]) for to in range(place))
    for cause in causes:
        if cause not in dict(now):
            for one in given(cause):
                yield from ((*now[:to], one, *now[to:]) for to in range(len(now), -1, -1))


def _maxima(of: tuple[str, ...], now: tuple[MaximumOf, ...], most: int) -> Iterator[tuple[MaximumOf, ...]]:
    """One number less that the exponent is the largest of, one more, one other, one that is split."""
    yield ()
    for place, one in enumerate(now):
        yield (*now[:place], *now[place + 1 :])
        near = (replace(one, plus=one.plus + step) for step in _NEAR)
        other = replace(one, leading=not one.leading)
        lowest = (replace(one, least=least) for least in (None, *range(-160, 20, 4)))
        ends = () if one.least is None else (replace(one, least=one.least + step) for step in _NEAR)
        yield from ((*now[:place], new, *now[place + 1 :]) for new in (*near, other, *lowest, *ends))
        for least in (None, *_LEASTS) if len(one.of) > 1 else ():
            split = (replace(one, of=(name,), least=least if name == "c" else one.least) for name in one.of)
            yield (*now[:place], *split, *now[place + 1 :])
    some = [names for size in range(1, len(of) + 1) for names in combinations(of, size)]
    if len(now) < most:
        for names, leading, plus in product(some, (False, True), range(-4, 4)):
            yield (*now, MaximumOf(names, leading, plus, None))
    if not now and most and len(of) < 3:  # two that mean nothing without each other
        yield from combinations(
            (MaximumOf(*one, None) for one in product(some, (False, True), range(-2, 1))), 2
        )


def _word_bits(one: Candidate, step: Step) -> int:
    return (format_of(step) or one.formats["d"]).bits


def _formats(one: Candidate) -> list[Format]:
    """Formats that an earlier result may have."""
    known = [one.formats["d"], one.formats["c"], *map(get_format, ("f32", "f16", "bf16", "f64"))]
    return [fmt for fmt in dict.fromkeys(known) if fmt.is_float == one.formats["d"].is_float and fmt.is_float]


def _integers(one: Candidate, name: str, now: int | None, key: Integer, hints: Hints) -> list[int | None]:
    d = one.formats["d"]
    least = d.min_exponent if d.is_float else 0
    near = [] if now is None else [now + step for step in _NEAR]
    wide: dict[str, Iterable[int]] = {
        "floor": [*range(least - 40, least + 4), *_FLOORS[:: _SPREAD if now is None else 400]],
        "min_exponent": [*range(least - 4, least + 4), -126, -14, *range(-150, 64, _SPREAD)],
        "overflow_exponent": [d.max_exponent + 1, 128, 16, 1024, *range(-42, 150, _SPREAD)],
        "exponent": [0, *range(-42, 43, _SPREAD)],
        "width": range(2, 48),
        "shift_limit": range(0, 73),
        "sticky_gap": range(0, 5),
        "result_fraction_bits": range(max(d.fraction_bits - 24, 0), d.fraction_bits),
    }
    tried = [*near, *(wide.get(name, ()) if hints.wide else ())]
    return [None if key.low > 0 or name != "sticky_gap" else 0] + [
        value for value in dict.fromkeys(tried) if key.low <= value <= key.high
    ]


def _widths(now: tuple[tuple[str, int], ...], hints: Hints) -> Iterator[tuple[tuple[str, int], ...]]:
    """All registers with one width, and each register with another."""
    span = range(_MOST_BITS + 1) if hints.wide else ()
    values = sorted({*span, *(bits + step for _, bits in now for step in (*_NEAR, 0))})
    values = [value for value in values if 0 <= value <= _MOST_BITS]
    for value in values:
        yield tuple((register, value) for register, _ in now)
    for index in range(len(now) if len(now) > 1 else 0):
        around = {now[index][1] + step for step in _NEAR}
        for value in (value for value in values if value in around or value % 3 == 0):
            yield tuple((r, value if i == index else bits) for i, (r, bits) in enumerate(now))


def _windows(
    one: Candidate, step: Step, now: tuple[tuple[str, int], ...], name: str
) -> Iterator[tuple[tuple[str, int], ...]]:
    """No window (or spared numbers), or one register's."""
    yield ()
    least = {fmt.min_exponent for fmt in one.formats.values() if fmt.is_float} if name == "spared" else set()
    values = _WINDOWS if name == "window" else (*sorted(least), *range(-140, 10, _SPREAD))
    for register in step.of:
        near = [dict(now)[register] + one for one in _NEAR] if register in dict(now) else []
        for value in (value for value in (*near, *values) if name != "window" or value >= 0):
            yield ((register, value),)


def _groups(one: Candidate) -> Iterator[tuple[str, int] | None]:
    k = one.takes.stored_k
    yield None
    yield from (group for group in structure.groups(k) if k <= _MOST_GROUPED or k % group[1] == 0)


def _registers(one: Candidate, step: Step, hints: Hints) -> Iterator[Mutation]:
    """Special values that are looked for elsewhere, also without what was found of the registers before."""
    if not isinstance(step, SpecialValues):
        return
    words = tuple(dict.fromkeys((step.nan, *hints.words)))
    plain = replace(step, nans=(), opposite_infinities="nan")
    for base in dict.fromkeys((step, plain)):
        more = "" if base == step else ", nothing else"
        for of in _sources(one, step):
            for word in words if of != step.of else ():
                changed = replace(base, of=of, nan=word)
                said = " and ".join(of) + ("" if word == step.nan else f", {_shown(word)}") + more
                where, rank = (None, 0) if word == step.nan else (one.formats["d"], 1)
                yield Mutation("special_values: of", said, _replacing(step, changed), rank, where=where)
                for rest in words[:_WORDS_LEFT] if set(of) < set(step.of) else ():
                    left = _leaving(step, changed, rest)
                    rounded = f"{said}, others rounded, {_shown(rest)}"
                    yield Mutation("special_values: of", rounded, left, 1, where=one.formats["d"])
    if not step.nans:
        for cause in ("a", "b", "factor", "c"):
            handed_on = _replacing(step, replace(step, nans=((cause, None),)))
            yield Mutation("special_values: nans", f"{cause} handed on", handed_on, 1)


def _sources(one: Candidate, step: SpecialValues) -> list[tuple[str, ...]]:
    """Registers in which special values can be looked for: any of what is added, or a sum."""
    held = {"c": True, "scales": bool(one.takes.scale_block)}
    for operation in one.operations:
        if step in operation.steps:
            held |= {"products": bool(operation.k_index), "addends": bool(operation.addends)}
            held |= {"dot": any(other.to == "dot" for other in operation.steps)}
    terms = [name for name in ("products", "c", "addends", "scales") if held.get(name)]
    sets = [of for size in range(1, len(terms) + 1) for of in combinations(terms, size)]
    rest = [of for of in sets if "products" not in of] if held.get("dot") else []
    return [*sets, ("total",), *(("dot", *of) for of in ((), *rest))] if rest else [*sets, ("total",)]


def _leaving(step: SpecialValues, by: SpecialValues, word: int | None) -> Callable[[Steps], Steps]:
    """A search for special values in fewer registers, and a word for what it leaves to later steps."""

    def change(steps: Steps) -> Steps:
        if step not in steps:
            return steps
        place = steps.index(step)
        kinds = (Round, Additions)
        rest = (replace(s, nan=word) if isinstance(s, kinds) else s for s in steps[place + 1 :])
        return (*steps[:place], by, *rest)

    return change


# Structure --------------------------------------------------------------------------------------------------


def _structure(one: Candidate, hints: Hints) -> Iterator[Mutation]:
    """Steps put in, taken out, split."""
    for kind in (Flush, Normalize, Align, SpecialValues, HiddenBit, Scale):
        for step in dict.fromkeys(s for o in one.operations for s in o.steps if isinstance(s, kind)):
            yield Mutation(f"{step.op} of {' and '.join(step.of)}", "left out", _without(step))
    yield from _flushes(one)
    yield from _same_words(one, hints)
    yield from _numbers_for_nans(one, hints)
    yield from _converted(one)
    yield from _inserted(one, hints)
    yield from _split(one)


def _without(step: Step) -> Callable[[Steps], Steps]:
    return lambda steps: tuple(s for s in steps if s != step)


def _flushes(one: Candidate) -> Iterator[Mutation]:
    for sign in ("signed", "positive"):
        for of in (("a", "b", "c"), ("a", "b"), ("c",), ("a",), ("b",)):
            yield Mutation(f"flush of {' and '.join(of)}", sign, _flushing(of, sign))


def _flushing(of: tuple[str, ...], sign: str) -> Callable[[Steps], Steps]:
    """Operands flushed before anything else, where an operation reads them: those that add earlier results
    alone have no a and b."""

    def change(steps: Steps) -> Steps:
        names = {name for step in steps for name in step.of}
        names |= {"c"} if any(isinstance(step, Fma) and step.start == "c" for step in steps) else set()
        read = tuple(name for name in of if name in names)
        return (Flush(of=read, sign=sign), *steps) if read else steps

    return change


def _same_words(one: Candidate, hints: Hints) -> Iterator[Mutation]:
    """One word for every NaN that a step makes, with those of operands handed on, or not, or by adders alone:
    while a later step makes words of its own, what earlier ones make does not show, and a NaN that an adder
    hands on is the word of what made it."""
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

            text = f"{word:#x}, those of operands {said}"
            yield Mutation("nan of every step", text, change, where=one.formats["d"])


def _numbers_for_nans(one: Candidate, hints: Hints) -> Iterator[Mutation]:
    """A number for NaNs of operands where products are made, and a NaN for all others where an operation
    adds none: where most NaNs have one answer, that word of the last operation explains more than either."""
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
        yield _Whole("nans of products", said, lambda steps: steps, 1, whole=tuple(found))


def _with_words(step: Step, word: int, kept: bool) -> Step:
    match step:
        case Additions():
            return replace(step, nan=word, first_nan=kept)
        case Fma():
            return replace(step, nan=word, nan_order=("a", "b", "c") if kept else ())
        case SpecialValues():
            return replace(step, nan=word, nans=(("factor", None), ("c", None)) if kept else ())
    return step


def _converted(one: Candidate) -> Iterator[Mutation]:
    """Operands whose subnormal numbers are normalised first, as a conversion to a wider format does."""
    for of in (("c",), ("a", "b", "c")):
        if all(one.formats[name].is_float for name in of):
            widths = tuple((name, one.formats[name].fraction_bits) for name in of if name != "b")
            names = tuple(name for name, _ in widths)
            step = Normalize(of=names, fraction_bits=widths, rounding="toward_zero")
            yield Mutation(
                f"normalize of {' and '.join(names)}",
                "first",
                lambda steps, n=step: (n, *steps),  # type: ignore[misc]
            )


def _inserted(one: Candidate, hints: Hints) -> Iterator[Mutation]:
    """A step behind another one: special values and normalised numbers behind what wrote them, an alignment
    before a sum."""
    for step in dict.fromkeys(s for o in one.operations for s in o.steps):
        if isinstance(step, Multiply | Scale | Fma) and step.to != "d" and has_special(one.takes):
            term = step.to or step.of[0]
            for of in ((term,), (term, "c")):
                yield Mutation(
                    "special_values of " + " and ".join(of), "looked for", _behind(step, SpecialValues(of=of))
                )
        if isinstance(step, Sum) and step.to != "d":
            yield from _renormalized(one, step, hints)
        if isinstance(step, Sum):
            yield Mutation("align before sum", "put in", _before(step, align(step.of, step.group)), 1)
        if isinstance(step, Round) and step.to == "d" and one.formats["d"].is_float:
            for fmt in _formats(one):
                for mode in ("nearest_even", "toward_zero"):
                    first = replace(step, to="partial", format=fmt, rounding=mode, nan=None)
                    twice: Steps = (first, replace(step, of=("partial",)))
                    yield Mutation("round", f"first to {fmt.name}, {mode}", _instead(step, twice), 1)


def _renormalized(one: Candidate, step: Sum, hints: Hints) -> Iterator[Mutation]:
    """The sum normalised and cut once more, alone and with one bit more in what it is the sum of."""
    wider = next(
        (s for o in one.operations for s in o.steps if isinstance(s, Align) and s.of == step.of), None
    )
    for mode in ("down", "toward_zero", "nearest_even"):
        for bits in range(20, 40) if hints.wide else (START_BITS,):
            normal = Normalize(of=(step.to,), fraction_bits=((step.to, bits),), rounding=mode)
            yield Mutation(f"normalize of {step.to}", f"{bits}, {mode}", _behind(step, normal), 1)
            if hints.last_bit is not None:
                least = replace(normal, min_exponent=hints.last_bit + bits)
                said = f"{bits}, {mode}, not below 2^{least.min_exponent}"
                yield Mutation(f"normalize of {step.to}", said, _behind(step, least), 1)
            if wider is not None:
                table = tuple((name, n + 1 if name == step.of[0] else n) for name, n in wider.fraction_bits)
                before = _replacing(wider, replace(wider, fraction_bits=table))
                both = _after(before, _behind(step, normal))
                yield Mutation(f"normalize of {step.to}", f"{bits}, {mode}, one bit more before it", both, 1)


def _after(first: Callable[[Steps], Steps], then: Callable[[Steps], Steps]) -> Callable[[Steps], Steps]:
    return lambda steps: then(first(steps))


def _behind(step: Step, new: Step) -> Callable[[Steps], Steps]:
    return _instead(step, (step, new))


def _before(step: Step, new: Step) -> Callable[[Steps], Steps]:
    return _instead(step, (new, step))


def _instead(step: Step, by: Sequence[Step]) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        return tuple(new for one in steps for new in (by if one == step else (one,)))

    return change


def _split(one: Candidate) -> Iterator[Mutation]:
    """Products (or groups) aligned and summed by themselves before they meet c; by groups before that."""
    for name in ("products", "groups"):
        pair = _sum_with_c(one, name)
        if pair is None:
            continue
        step, total = pair
        dot: Steps = (_own(step, (name,)), Sum(of=(name,), to="dot"))
        for bits in (*range(22, 40, 2), START_BITS):
            meet = align(("dot", "c"), bits=bits)
            meet = replace(meet, floor=step.floor)
            then: Steps = (*dot, meet, replace(total, of=("dot", "c")))
            yield Mutation("c", f"meets the sum of {name}, at {bits} bits", _exchange(step, total, then), 1)
    for step in dict.fromkeys(s for o in one.operations for s in o.steps if isinstance(s, Align)):
        if step.of == ("products",) and step.group is None:
            sums = [s for o in one.operations for s in o.steps if isinstance(s, Sum) and s.of == step.of]
            for group in filter(None, _groups(one)) if sums else ():
                inner: Steps = (replace(step, group=group), Sum(of=("products",), to="groups", group=group))
                outer: Steps = (_renamed(step, "groups"), replace(sums[0], of=("groups",)))
                yield Mutation(
                    "products", f"summed by groups, {group}", _exchange(step, sums[0], (*inner, *outer)), 1
                )


def _sum_with_c(one: Candidate, name: str) -> tuple[Align, Sum] | None:
    steps = [s for o in one.operations for s in o.steps]
    aligned = next((s for s in steps if isinstance(s, Align) and set(s.of) == {name, "c"}), None)
    total = next((s for s in steps if isinstance(s, Sum) and set(s.of) == {name, "c"}), None)
    return None if aligned is None or total is None else (aligned, total)


def _own(step: Align, of: tuple[str, ...]) -> Align:
    widths = tuple(item for item in step.fraction_bits if item[0] in of)
    return replace(step, of=of, fraction_bits=widths, window=(), spared=(), floor=None)


def _renamed(step: Align, name: str) -> Align:
    return replace(step, of=(name,), fraction_bits=((name, step.fraction_bits[0][1]),))


def _exchange(first: Step, second: Step, by: Steps) -> Callable[[Steps], Steps]:
    def change(steps: Steps) -> Steps:
        if first not in steps or second not in steps:
            return steps
        place = steps.index(first)
        rest = tuple(s for s in steps if s not in (first, second))
        return (*rest[:place], *by, *rest[place:])

    return change


def _outs(one: Candidate) -> Iterator[Mutation]:
    """Other formats for the results of earlier operations."""
    for fmt in _formats(one) if len(one.operations) > 1 else ():
        yield _Outs("earlier results: format", fmt.name, lambda steps: steps, out=fmt)


class _Outs(Mutation):
    """Changes the format of the results of all operations but the last one."""

    def apply(self, one: Candidate) -> Candidate | None:
        """As of a move."""
        assert self.out is not None
        changed = (*(with_results(o, self.out) for o in one.operations[:-1]), one.operations[-1])
        return None if changed == one.operations else one.with_operations(changed)


def _operands(one: Candidate) -> Iterator[Mutation]:
    """a and b converted to a wider format first, in which subnormal numbers have exponents of their own."""
    a, b = one.formats["a"], one.formats["b"]
    if a.is_float and b.is_float:
        for fmt in (None, *map(get_format, ("f16", "bf16", "f32"))):
            if fmt is None or (fmt not in (a, b) and holds(fmt, a) and holds(fmt, b)):
                yield _Operands("a and b: format", _shown(fmt), lambda steps: steps, out=fmt)


class _Operands(Mutation):
    """Changes the format of a and b in all operations that multiply."""

    def apply(self, one: Candidate) -> Candidate | None:
        """As of a move."""
        changed = tuple(replace(o, operand_format=self.out) if o.k_index else o for o in one.operations)
        return None if changed == one.operations else one.with_operations(changed)


@dataclass(frozen=True)
class _Whole(Mutation):
    """Other operations altogether."""

    whole: tuple[Operation, ...] = ()

    def apply(self, one: Candidate) -> Candidate | None:
        """As of a move."""
        return None if self.whole == one.operations else one.with_operations(self.whole)


def nan_words(one: Format, codes: Iterable[int], most: int = 6) -> tuple[int, ...]:
    """The NaNs among codes, the commonest first."""
    counts: dict[int, int] = {}
    for code in codes:
        counts[code] = counts.get(code, 0) + 1
    found = [code for code in sorted(counts, key=lambda c: -counts[c]) if one.decode(code).kind == Kind.NAN]
    return tuple(found[:most])
