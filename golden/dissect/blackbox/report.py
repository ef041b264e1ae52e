"""The report of a dissection as Markdown: the outcome, what it was held against, the steps, the questions
that show each rule, and what was not decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from golden.dissect.blackbox.evidence import Property
from golden.dissect.blackbox.found import IN_TURNS, Found, Rival
from golden.dissect.blackbox.nearness import differences
from golden.explain.numbers import hex_text
from golden.files import escape
from golden.number.formats import Format
from golden.program.signature import Operands
from golden.program.words import is_integer, step_text

STEPS = "## What it computes"
"""The heading before which a picture can stand."""
_MOST_PLACES = 6
_MOST_VALUES = 6


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
    if found.order:
        yield from (f"Order of the sum, as masks showed it: `{found.order}`.", "")


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
        yield from ("Found in this order:", "", *(f"- {_rule(rule)}" for rule in found.rules), "")


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
    by = f"{min(each.questions for each in one.witnesses):,}" if one.witnesses else ""
    values = ", ".join(shortened([_value(one.key, value) for value in one.undecided]))
    return f"{one.ruled_out}", by, values, _question(one, formats)


def _value(key: str, value: str) -> str:
    """A value of a key; words of NaNs in hex."""
    return f"{int(value):#x}" if key.endswith("nan") and value.isdigit() else value


def _rule(text: str) -> str:
    """A change that was taken, "key = value"."""
    key, equals, value = text.partition(" = ")
    return escape.markdown(f"{key}{equals}{_value(key, value)}")


def shortened(values: Sequence[str]) -> Sequence[str]:
    """Values of a key; of many the first and the last."""
    return values if len(values) <= _MOST_VALUES else (*values[:3], "...", values[-1])


def _question(one: Property, formats: Mapping[str, Format]) -> str:
    """The first witness with both answers, in a line."""
    if not one.witnesses:
        return ""
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
