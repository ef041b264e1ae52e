"""The neighbourhood of a candidate: every key of every step with another value, steps inserted or removed,
and every change taken back.

The keys come from the step classes, so a new key is searched without a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product

from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.key_values import meaningless_beside, result_formats_tried, values_of
from golden.identify.blackbox.moves import Hints, Move, Steps, key_label, replacing_step, shown_value
from golden.identify.blackbox.step_changes import operand_formats, owned, structural
from golden.number.formats import Format, Kind
from golden.number.frozen import replace
from golden.program import keys
from golden.program.keys import Word, applies, declared, key_name
from golden.program.program import Operation
from golden.program.steps import Additions, Multiply, Round, SpecialValues, Step

WIDTHS = ("fraction_bits", "rounding")
"""Ends of the names of keys that say how many bits are kept, and how the others are cut."""


def single_changes(one: Candidate, hints: Hints) -> Iterator[Move]:
    """Every single change of the keys of a candidate, and of common steps."""
    seen: dict[Step, int] = {}
    for operation in one.operations:
        for step in operation.steps:
            seen.setdefault(step, len(seen))
    # Plain keys of a step come before those that only faults set.
    for step in seen:
        for faults in (False, True):
            yield from _keys(one, step, hints, faults)
        yield from _registers(one, step, hints)
    yield from operand_formats(one)
    yield from structural(one, hints)


def in_one_operation(one: Candidate) -> Iterator[Move]:
    """Other widths and roundings in one operation alone: the operations of a chain begin with equal steps."""
    if len(one.operations) == 1:
        return
    for move in single_changes(one, Hints(wide=False)):
        if move.key.endswith(WIDTHS):
            for place in range(len(one.operations)):
                yield replace(move, value=f"{move.value}, in operation {place + 1}", only=place)


def settings(operations: Iterable[Operation]) -> dict[str, str]:
    """The value of every key by the name that moves use; several values if steps differ."""
    found: dict[str, dict[str, None]] = {}
    for step in dict.fromkeys(s for operation in operations for s in operation.steps):
        for name, key, _ in declared(step):
            label = key_label(step, key_name(name, key))
            found.setdefault(label, {})[shown_value(getattr(step, name))] = None
    return {label: "; ".join(values) for label, values in found.items()}


def _keys(one: Candidate, step: Step, hints: Hints, faults: bool = False) -> Iterator[Move]:
    """Every key with every other value; `faults`: only keys that faults set; if false, the others."""
    listed = list(declared(step))
    defaults = {name: default for name, _, default in listed}
    for name, key, default in listed:
        if key.fault != faults or (faults and not hints.faults and getattr(step, name) == default):
            continue
        for value in values_of(one, step, name, key, hints):
            changed = replace(step, **meaningless_beside(step, name, value), **{name: value})
            held = {other: getattr(changed, other) for other in defaults}
            if value != getattr(step, name) and applies(key, held, defaults):
                label = key_label(step, key_name(name, key))
                where = one.formats["d"] if isinstance(key, Word) and value is not None else None
                yield Move(
                    label, shown_value(value), replacing_step(step, changed), 2 * key.fault, where=where
                )
    if isinstance(step, Multiply) and step.format is None and not faults:
        modes = ("nearest_even", "toward_zero", "to_odd")
        for fmt, mode, flush in product(result_formats_tried(one), modes, keys.FLUSH.words):
            rest = meaningless_beside(step, "format", fmt)
            changed = replace(step, format=fmt, rounding=mode, flush=flush, **rest)
            said = f"{fmt.name}, {mode}" + ("" if flush == "none" else f", flushed, {flush}")
            yield Move("multiply: format", said, replacing_step(step, changed))


def _registers(one: Candidate, step: Step, hints: Hints) -> Iterator[Move]:
    """Special values detected in other registers, also without earlier findings about the registers
    before."""
    if not isinstance(step, SpecialValues):
        return
    words = tuple(dict.fromkeys((step.nan, *hints.words)))
    # Earlier findings can hide that a register is wrong: each change is also tried without them.
    plain = replace(step, nans=(), opposite_infinities="nan")
    for base in dict.fromkeys((step, plain)):
        more = "" if base == step else ", nothing else"
        for of in _sources(one, step):
            for word in words if of != step.of else ():
                changed = replace(base, of=of, nan=word)
                said = " and ".join(of) + ("" if word == step.nan else f", {shown_value(word)}") + more
                where, rank = (None, 0) if word == step.nan else (one.formats["d"], 1)
                yield Move("special_values: of", said, replacing_step(step, changed), rank, where=where)
                # With fewer registers the other NaNs are left to later steps: three words for these are tried
                # with each word that was found.
                for rest in words[:3] if set(of) < set(step.of) else ():
                    left = _leaving(step, changed, rest)
                    rounded = f"{said}, others rounded, {shown_value(rest)}"
                    yield Move("special_values: of", rounded, left, 1, where=one.formats["d"])
    # Whether a NaN of an operand is handed on shows in its payload.
    if not step.nans:
        for (cause,) in owned(one, ("a",), ("b",), ("factor",), ("c",)):
            handed_on = replacing_step(step, replace(step, nans=((cause, None),)))
            yield Move("special_values: nans", f"{cause} handed on", handed_on, 1)


def _sources(one: Candidate, step: SpecialValues) -> list[tuple[str, ...]]:
    """Registers in which special values can be detected: any addend, or a sum."""
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
    """Detection of special values in fewer registers, and a word for NaNs that are left to later steps."""

    def change(steps: Steps) -> Steps:
        if step not in steps:
            return steps
        place = steps.index(step)
        kinds = (Round, Additions)
        rest = (replace(s, nan=word) if isinstance(s, kinds) else s for s in steps[place + 1 :])
        return (*steps[:place], by, *rest)

    return change


def nan_words(one: Format, codes: Iterable[int], most: int = 6) -> tuple[int, ...]:
    """The NaNs among codes, the most common first."""
    counts: dict[int, int] = {}
    for code in codes:
        counts[code] = counts.get(code, 0) + 1
    found = [code for code in sorted(counts, key=lambda c: -counts[c]) if one.decode(code).kind == Kind.NAN]
    return tuple(found[:most])
