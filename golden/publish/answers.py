"""What an instruction answers: special values, an example step by step, and where it departs from
IEEE 754."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from golden import stimuli
from golden.catalog.architectures import architectures
from golden.explain.special_values import special_cases
from golden.explain.terminal import trace_text
from golden.identify.comparing import classify
from golden.identify.probe.facts import facts
from golden.identify.probe.value_properties import assumed_nan, assumed_zero, find_nan, find_zero
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.steps import Additions, Align, Fma, Sum
from golden.publish import ieee
from golden.publish.dot_text import command, result_text, short
from golden.publish.explorer.address import address
from golden.publish.families import Group
from golden.publish.templating import render

# Special values ---------------------------------------------------------------------------------------------


def special_values(group: Group) -> str:
    """Each question with its operands, executed, with the correctly rounded sum where results are
    floating point."""
    ins = group.representative
    d = ins.formats["d"]
    exact = ieee.rounded_sum(ins) if d.is_float else None
    rows = []
    for question, operands in special_cases(ins):
        got = int(ins.dot(**operands))
        row = [question, f"`{short(ins, operands)}`", result_text(d, got)]
        if exact is not None:
            row.append(_against(d, got, int(exact.dot(**operands))))
        rows.append(row)
    head = ["Case", "Operands", "d", *(["IEEE 754"] if exact is not None else [])]
    return render("special_values", head=head, rows=rows, assumed=list(_assumed(ins)))


def _assumed(ins: Instruction) -> Iterator[str]:
    """Which of the answers nobody published: NaN words and signs of zeros that the model fills in."""
    if ins.architecture not in architectures() or ins.sparse:  # the probes are for dense units
        return
    known = facts(ins)
    findings = [
        ("NaN words", assumed_nan, find_nan(known)),
        ("signs of zero sums", assumed_zero, find_zero(known)),
    ]
    for what, assumed, found in findings:
        if found is not None and assumed(ins, found):
            yield f"{what} ({found.text})"


def _against(d: Format, got: int, wanted: int) -> str:
    """The correctly rounded result where it is another number; "same" also for two NaNs."""
    kind = int(classify(np.array([got], d.dtype), np.array([wanted], d.dtype), d, d)[0])
    return "same" if kind in (-1, 3) else result_text(d, wanted)


_ORDINARY = "half_ulp"
"""The stimulus kind of the example of a unit that equals IEEE 754: its sums are rounded."""


# One example ----------------------------------------------------------------------------------------


def example(group: Group) -> str:
    """The trace of the simplest operands found that distinguish the unit from the correctly rounded sum."""
    ins = group.representative
    if not ins.formats["d"].is_float:
        operands = ieee.overflow(ins).example if ins.is_integer else None
        return "" if operands is None else _traced(ins, operands, "overflow")
    found = ieee.findings(ins)
    if found.example is None:
        drawn = stimuli.generate(ins, _ORDINARY, 1, np.random.default_rng(ieee.SEED))
        return _traced(ins, {name: codes[0] for name, codes in drawn.items()}, "same")
    other = ieee.fma_chain(ins) if found.example_against == "chain" else ieee.rounded_sum(ins)
    wanted = result_text(ins.formats["d"], int(other.dot(**found.example)))
    return _traced(ins, found.example, found.example_against, wanted)


def _traced(ins: Instruction, operands: dict[str, Any], case: str, wanted: str = "") -> str:
    # Of a trace on a page: the width of its box on a screen of 1440 pixels, and of a PDF's page.
    columns = 104
    return render(
        "example",
        case=case,
        kind=_ORDINARY,
        wanted=wanted,
        links="additions" if "b" in ins.absent else "fused multiply-adds",
        trace=trace_text(ins.trace(**operands), columns),
        explorer="" if ins.is_custom else address(ins, operands),
        command=command(ins, operands),
    )


# Against IEEE 754 -------------------------------------------------------------------------------------------


def against_ieee(group: Group) -> str:
    """How often and how far results differ from the correctly rounded sum and from a chain
    of fused multiply-adds."""
    ins = group.representative
    if not ins.formats["d"].is_float:
        return _integer(ins) if ins.is_integer else ""
    found, chain = ieee.findings(ins), _chain(ins)
    errors = list(_errors(ins, found))
    example = found.reordered_example
    return render(
        "against_ieee",
        found=found,
        seed=ieee.SEED,
        chain=chain,
        start=_start(ins),
        d=ins.formats["d"].name,
        k=ins.k,
        tallies=_tallies(found),
        errors=[row for row, _ in errors],
        commands="\n".join(command for _, command in errors),
        terms="elements of a" if "b" in ins.absent else "products",
        reordered=share(found.reordered, found.tried) if found.reordered and example is not None else "",
        reordered_example="" if example is None else short(ins, example),
        one_sum=_one_sum(ins),
        kinds=[_kind_row(found, kind) for kind in stimuli.KINDS],
    )


def _chain(ins: Instruction) -> str:
    """What `ieee.fma_chain` is called."""
    return "chain of additions" if "b" in ins.absent else "FMA chain"


def _start(ins: Instruction) -> str:
    """What the chain begins with."""
    if "c" not in ins.absent:
        return "from c"
    return "from the first element" if "b" in ins.absent else "from the first product"


_LABELS = {
    "value": "another finite number",
    "special": "a number against an infinity or a NaN",
    "zero_sign": "+0 against -0",
    "nan_payload": "NaNs with another word",
}


def share(part: int, whole: int) -> str:
    """A count with its percentage."""
    return f"{part:,} ({100 * part / whole:.1f} %)" if part else "0"


def _tallies(found: ieee.Findings) -> list[list[str]]:
    rows = [
        [label, *(share(tally.classes[name], found.tried) for tally in (found.rounded, found.chain))]
        for name, label in _LABELS.items()
    ]
    numeric = (share(tally.numeric, found.tried) for tally in (found.rounded, found.chain))
    return [*rows, ["any difference but the NaN word", *numeric]]


def _errors(ins: Instruction, found: ieee.Findings) -> Iterator[tuple[list[str], str]]:
    """The worst errors: a row, and the command that shows it."""
    d = ins.formats["d"]
    for error, unit in ((found.worst, "the exact sum"), (found.worst_addend, "the largest addend")):
        if error is not None:
            size = ulp_text(error.ulp)
            results = (result_text(d, error.d), result_text(d, error.rounded))
            row = [f"ULP of {unit}", size, f"`{error.kind}`", *results]
            yield row, f"# {size} ULP of {unit}\n{command(ins, error.operands)}"


def ulp_text(ulp: Fraction) -> str:
    """An error for a reader: four digits, or a power of two where it is beyond float64's decimals that
    anybody reads."""
    if abs(ulp) >= 10**9:
        exponent = round(math.log2(abs(ulp.numerator)) - math.log2(ulp.denominator))
        return f"about {'-' if ulp < 0 else '+'}2^{exponent}"
    return f"{float(ulp):+,.4g}" if abs(ulp) < 10_000 else f"{float(ulp):+,.0f}"


def _one_sum(ins: Instruction) -> bool:
    """Whether the program is one operation with one alignment and one sum at most: only then no order of k
    can matter."""
    program = ins.program
    sums = len(program.steps_of(Sum)) + len(program.steps_of(Additions))
    return (
        len(program.operations) == 1
        and not program.steps_of(Fma)
        and max(len(program.steps_of(Align)), sums) <= 1
    )


def _kind_row(found: ieee.Findings, kind: str) -> list[str]:
    shares = (100 * tally.kinds[kind] / found.per_kind for tally in (found.rounded, found.chain))
    return [f"`{kind}`", stimuli.describe(kind), *(f"{share:.1f} %" for share in shares)]


def _integer(ins: Instruction) -> str:
    found, d = ieee.overflow(ins), ins.formats["d"]
    example = found.example
    return render(
        "integer_range",
        found=found,
        d=d.name,
        bits=d.bits,
        per_kind=ieee.PER_KIND,
        seed=ieee.SEED,
        example="" if example is None else short(ins, example),
        exact=0 if example is None else int(ieee.integer_sum(ins, example)),
        got="" if example is None else result_text(d, int(ins.dot(**example))),
    )
