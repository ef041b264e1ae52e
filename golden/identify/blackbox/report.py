"""The report of a dissection as Markdown: the outcome, what it was held against, the steps, the questions
that show each rule, and what was not decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from golden.explain.numbers import hex_text
from golden.files import escape
from golden.identify.blackbox.evidence import Property
from golden.identify.blackbox.found import IN_TURNS, Found, Rival
from golden.identify.blackbox.laws import Law
from golden.identify.blackbox.meetings import Meeting
from golden.identify.blackbox.nearness import differences
from golden.identify.blackbox.sum_order import KIND as MASKS
from golden.identify.blackbox.taken import Forced
from golden.kernels.sum_tree import C
from golden.number.formats import Format
from golden.program.signature import Operands
from golden.program.words import is_integer, step_text

STEPS = "## What it computes"
"""The heading before which a picture can stand."""
_MOST_PLACES = 6
_MOST_VALUES = 6
_MOST_NODES = 16


def markdown(found: Found) -> str:
    """The whole report."""
    if found.modes:
        return "\n".join((*_head(found), *_modes(found)))
    parts = (_head(found), _steps(found), _shown(found), _rivals(found), _open(found), _counts(found))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: Found) -> Iterator[str]:
    said = escape.markdown(found.sentence())
    asked = f"The box answered {found.asked:,} dot products in {found.seconds:.1f} s."
    if found.recorded:
        asked = "It is a recording: nothing could be asked."
    yield from (f"# {escape.markdown(found.name)}, dissected", "", f"{said}. {asked}", "")
    if found.near is not None:
        name, keys = found.near
        but = f" but for {escape.markdown('; '.join(keys))}" if keys else " in every key that was decided"
        yield from (f"It is {escape.markdown(name)}{but}.", "")
    for law in found.laws:
        yield from (f"**{escape.markdown(law.text[0].upper() + law.text[1:])}.** {_shows(law, found)}", "")
    for one in found.not_read:
        yield from (f"{escape.markdown(one[0].upper() + one[1:])}.", "")
    if found.order:
        yield from _order(found)


def _shows(law: Law, found: Found) -> str:
    """The question that shows a law to be broken."""
    if law.operands is None or found.instruction is None:
        return ""
    formats = found.instruction.formats
    told = f"{operands_text(law.operands, formats)}: the box answers {hex_text(formats['d'], law.box)}"
    return escape.markdown(f"For example {told}.")


def _order(found: Found) -> Iterator[str]:
    """The tree, and for each node the mask that shows it."""
    yield from (f"Order of the sum, as masks showed it: `{found.order}`.", "")
    wrong, count = found.differing.get(MASKS, (0, 0))
    if wrong:
        said = f"it answers {wrong:,} of {count:,} masks otherwise"
        yield from (f"**The candidate does not add in this order:** {said}.", "")
    if not found.meetings or found.instruction is None:
        return
    formats, shown = found.instruction.formats, found.meetings[:_MOST_NODES]
    yield (
        "A mask has M in one term, -M in another and y in all others. What y the sum meets between the two "
        "is lost, so that those left tell how many terms had met when M and -M did."
    )
    yield ""
    head = ("What meets", "Masks that show it", "One of them")
    yield from _table(head, ((one.node, f"{one.questions:,}", _meeting(one, formats)) for one in shown))
    if len(found.meetings) > len(shown):
        yield from (f"{len(found.meetings) - len(shown)} more nodes stand in the JSON.", "")


def _meeting(one: Meeting, formats: Mapping[str, Format]) -> str:
    """A mask, its answer, and what that were if its two large terms met elsewhere."""
    d, terms = formats["d"], [*range(len(one.operands["a"])), C]
    rest = [place for place in terms if place not in one.pair]
    little = dict.fromkeys(_term(one, place, formats, name=False) for place in rest)
    first, second = (_term(one, place, formats) for place in one.pair)
    given = f"M in {first}, -M in {second}, y elsewhere: {' and '.join(little)}"
    answers = f"the box answers {hex_text(d, one.box)}, {one.left} y left"
    other = (
        f"had the two met {one.elsewhere}, it were {hex_text(d, one.otherwise)}, {one.otherwise_left} left"
    )
    return f"{given}: {answers}; {other}"


def _term(one: Meeting, place: int, formats: Mapping[str, Format], name: bool = True) -> str:
    """One term of a mask, "k = 3: 0x7800 * 0x7800", or "c: 0x4e800000"; of scaled ones with the scales."""
    codes = one.operands
    if place == C:
        return f"{'c: ' * name}{hex_text(formats['c'], int(codes['c']))}"
    factors = [hex_text(formats[key], int(codes[key][place])) for key in "ab"]
    for key in ("scale_a", "scale_b"):
        if key in codes:
            block = place * len(codes[key]) // len(codes["a"])
            factors.append(f"{key} {hex_text(formats[key], int(codes[key][block]))}")
    return f"{f'k = {place}: ' * name}{' * '.join(factors)}"


def _modes(found: Found) -> Iterator[str]:
    """A row for each mode: in what it differs from the first; then what was found of each."""
    first = next(iter(found.modes.values()))
    yield from ("## Modes", "")
    rows = (
        (f"{code:#x}", one.name, one.sentence(), _beside(one, first)) for code, one in found.modes.items()
    )
    yield from _table(("mode", "What it is called", "Outcome", "What differs from the first"), rows)
    if IN_TURNS in found.differing:
        wrong, count = found.differing[IN_TURNS]
        said = "Asked in another mode from one dot product to the next"
        yield from (f"{said}: {wrong:,} of {count:,} differ.", "")
    elif found.instruction is not None:
        yield from ("No mode was asked beside another: the time ended before.", "")
    for code, one in found.modes.items():
        yield from (f"## Mode {code:#x}", "")
        yield re.sub(r"^#", "##", one.report, flags=re.MULTILINE)


def _beside(one: Found, first: Found) -> str:
    if one.instruction is None or first.instruction is None:
        return "not known"
    if one is first:
        return "it is the first"
    formats = one.instruction.formats.items()
    others = [f"{name} is {fmt.name}" for name, fmt in formats if fmt != first.instruction.formats[name]]
    alike = {**first.alternatives, **one.alternatives}
    said = differences(one.instruction.stateless, first.instruction.stateless, alike)
    return "; ".join(others + (["it adds in other operations"] if said is None else said)) or "nothing"


def _counts(found: Found) -> Iterator[str]:
    if found.differing:
        yield from ("## Held against the box", "")
        yield from _table(
            ("Operands", "Differ", "Of"),
            ((kind, f"{wrong:,}", f"{count:,}") for kind, (wrong, count) in found.differing.items()),
            numbers=2,
        )


def _steps(found: Found) -> Iterator[str]:
    if found.instruction is None:
        return
    yield from (STEPS, "")
    program = found.instruction.program
    integer = is_integer(program, found.instruction.own_formats)
    for one in program.operations:
        if len(program.operations) > 1:
            products = f"products {', '.join(map(str, one.k_index))}; " if one.k_index else ""
            yield from (f"{one.to}, in {one.out_format.name}: {products}c is {one.seed}", "")
        yield from (f"{index}. {step_text(step, integer)}" for index, step in enumerate(one.steps, 1))
        yield ""
    if found.rules:
        yield from ("Found in this order:", "", *_rules(found, found.instruction.formats), "")


# What shows each rule ---------------------------------------------------------------------------------------


def _shown(found: Found) -> Iterator[str]:
    """The keys that the candidate has, then the steps that could stand beside them."""
    if not found.properties or found.instruction is None:
        return
    formats = found.instruction.formats
    own = [one for one in found.properties if one.value]
    yield from ("## What shows it", "")
    yield (
        "Each row is one key of one step. A unit that differs in it alone would have answered otherwise: "
        "*ruled out* counts such other values, *by* is the number of questions that refute the one hardest "
        "to tell, and the question shown is a simple one of those. Where a value is open, every question "
        "kept has the same answer with it."
    )
    yield ""
    yield from _table(
        ("Rule", "Value", "Ruled out", "By", "Open", "One such question"),
        ((one.key, _value(one.key, one.value), *_refuted(one, formats)) for one in own),
    )
    absent = [one for one in found.properties if not one.value]
    if absent:
        yield from ("What else a unit could do, and whether this one does:", "")
        yield from _table(
            ("Change", "Ruled out", "By", "Open", "One such question"),
            ((one.key, *_refuted(one, formats)) for one in absent),
        )


def _refuted(one: Property, formats: Mapping[str, Format]) -> tuple[str, str, str, str]:
    """How many values are ruled out, by how many questions, which are not, and a question."""
    counts = [one.asked] if one.said else [each.questions for each in one.witnesses]
    by = f"{min(counts):,}" if counts else ""
    values = ", ".join(shortened([_value(one.key, value) for value in one.undecided]))
    return f"{one.ruled_out}", by, values, _question(one, formats)


def _value(key: str, value: str) -> str:
    """A value of a key; words of NaNs in hex."""
    return f"{int(value):#x}" if key.endswith("nan") and value.isdigit() else value


def _rule(text: str) -> str:
    """A change that was taken, "key = value"."""
    key, equals, value = text.partition(" = ")
    return escape.markdown(f"{key}{equals}{_value(key, value)}")


def _rules(found: Found, formats: Mapping[str, Format]) -> Iterator[str]:
    """The skeleton, then each change with the counterexample that forced it."""
    by_place = {one.place: one for one in found.forced}
    for place, rule in enumerate(found.rules, -1):  # the skeleton is no change
        yield f"- {_rule(rule)}{_why(by_place[place], formats) if place in by_place else ''}"


def _why(one: Forced, formats: Mapping[str, Format]) -> str:
    """The value that was wrong, and the question that showed it."""
    d, old = formats["d"], _value(one.rule.partition(" = ")[0], one.old)
    instead = f"instead of {old}" if old else "put in"
    answers = f"the box answers {hex_text(d, one.box)}, the candidate before {hex_text(d, one.before)}"
    more = f"; {one.questions:,} questions say so" if one.questions > 1 else ""
    return " " + escape.markdown(f"{instead}: {operands_text(one.operands, formats)}: {answers}{more}")


def shortened(values: Sequence[str]) -> Sequence[str]:
    """Values of a key; of many the first and the last."""
    return values if len(values) <= _MOST_VALUES else (*values[:3], "...", values[-1])


def _question(one: Property, formats: Mapping[str, Format]) -> str:
    """The first witness with both answers, in a line."""
    if not one.witnesses:
        return one.said
    d, first = formats["d"], one.witnesses[0]
    value = _value(one.key, first.value)
    answers = f"the box answers {hex_text(d, first.box)}, with {value} it were {hex_text(d, first.other)}"
    return f"{operands_text(first.operands, formats)}: {answers}"


def operands_text(operands: Operands, formats: Mapping[str, Format]) -> str:
    """What is not zero of the operands of one dot product: "a[0] = 0x3c00, c = 0x40000000"."""
    words = []
    for name, codes in operands.items():
        fmt, flat = formats.get(name), np.ravel(codes).tolist()
        told = [(place, code) for place, code in enumerate(flat) if code]
        for place, code in told[:_MOST_PLACES]:
            at = f"{name}[{place}]" if np.ndim(codes) else name
            words.append(f"{at} = {hex(code) if fmt is None else hex_text(fmt, code)}")
        if len(told) > _MOST_PLACES:
            words.append(f"{len(told) - _MOST_PLACES} more of {name}")
    return ", ".join(words) or "all zero"


# What a recording leaves open ------------------------------------------------------------------------------


def _rivals(found: Found) -> Iterator[str]:
    """Units that explain the recording, too, and what to ask to tell."""
    if not found.rivals or found.instruction is None:
        return
    formats = found.instruction.formats
    yield from ("## What else explains the recording", "")
    yield (
        "Each answers every recorded dot product as the candidate does. Whoever can ask the unit learns from "
        "the operands which it is."
    )
    yield ""
    yield from _table(
        ("Unit", "Operands that tell", "The candidate", "This one"),
        (_rival(one, formats) for one in found.rivals),
    )


def _rival(one: Rival, formats: Mapping[str, Format]) -> tuple[str, ...]:
    if one.operands is None:
        return one.name, f"none among {one.tried:,} that were tried", "", ""
    answers = (hex_text(formats["d"], code) for code in (one.candidate, one.rival))
    return one.name, operands_text(one.operands, formats), *answers


# The end ----------------------------------------------------------------------------------------------------


def _open(found: Found) -> Iterator[str]:
    yield from ("## Not decided", "")
    yield from (f"- {escape.markdown(one)}" for one in found.undecided)
    if not found.undecided:
        yield "Nothing that a question asked here left open."
    if found.example is not None:
        operands = ", ".join(
            f"{name} = {[hex(code) for code in codes.ravel().tolist()]}"
            for name, codes in found.example.operands.items()
        )
        yield from (
            "",
            f"The simplest difference found: {operands}: the box answers {found.example.box:#x}, the "
            f"candidate {found.example.candidate:#x}.",
        )
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> Iterator[str]:
    """A table whose last `numbers` columns hold numbers."""
    rules = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join(rules)} |"
    for row in rows:
        yield f"| {' | '.join(escape.markdown(cell) for cell in row)} |"
    yield ""
