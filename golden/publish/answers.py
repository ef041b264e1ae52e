"""What an instruction answers: special values, a telling example step by step, and where it departs from
IEEE 754."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from golden import stimuli
from golden.catalog.architectures import architectures
from golden.explain.markdown import code, link, table
from golden.explain.special_values import special_cases
from golden.identify.comparing import classify
from golden.identify.probe.facts import facts
from golden.identify.probe.value_properties import assumed_nan, assumed_zero, find_nan, find_zero
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.program.steps import Additions, Align, Fma, Sum
from golden.publish import ieee
from golden.publish.dot_text import command, result_text
from golden.publish.explorer.address import address
from golden.publish.families import Group
from golden.publish.operand_text import short

# Special values ---------------------------------------------------------------------------------------------


def special_values(group: Group) -> str:
    """Each question with its operands, executed, beside the correctly rounded sum where results are
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
    told = "Each line was run through the model; operands that a line does not name are zero (scales one)."
    head = ["Case", "Operands", "d"]
    if exact is not None:
        told += (
            " The last column is the sum rounded once as IEEE 754 does, where it gives something else; "
            "NaN words aside."
        )
        head.append("IEEE 754")
    return f"{told}{_assumed(ins)}\n\n{table(head, rows)}"


def _assumed(ins: Instruction) -> str:
    """Says which of the answers nobody published: NaN words and signs of zeros that the model fills in."""
    if ins.architecture not in architectures() or ins.sparse:  # the probes are for dense units
        return ""
    known = facts(ins)
    findings = [
        ("NaN words", assumed_nan, find_nan(known)),
        ("signs of zero sums", assumed_zero, find_zero(known)),
    ]
    open_ones = [
        f"{what} ({found.text})"
        for what, assumed, found in findings
        if found is not None and assumed(ins, found)
    ]
    return (
        f" No source says the {' and the '.join(open_ones)} of this unit: the model's stand for any."
        if open_ones
        else ""
    )


def _against(d: Format, got: int, wanted: int) -> str:
    """The correctly rounded result where it is another number; "same" also for two NaNs."""
    kind = int(classify(np.array([got], d.dtype), np.array([wanted], d.dtype), d, d)[0])
    return "same" if kind in (-1, 3) else result_text(d, wanted)


_ORDINARY = "half_ulp"
"""The stimulus kind of the example where nothing tells the unit from IEEE 754: its sums are rounded."""


# One telling example ----------------------------------------------------------------------------------------


def example(group: Group) -> str:
    """The trace of the simplest operands found that tell the unit from the correctly rounded sum."""
    ins = group.representative
    if not ins.formats["d"].is_float:
        operands = ieee.overflow(ins).example if ins.is_integer else None
        if operands is None:
            return ""
        why = "The simplest operands found whose sum leaves the range of D."
        return "\n\n".join([why, *_traced(ins, operands)])
    found = ieee.findings(ins)
    if found.telling is None:
        operands = stimuli.generate(ins, _ORDINARY, 1, np.random.default_rng(ieee.SEED))
        why = (
            "No operands were found on which the unit differs from the correctly rounded sum. The first of "
            f"the stimulus kind `{_ORDINARY}`:"
        )
        return "\n\n".join([why, *_traced(ins, {name: codes[0] for name, codes in operands.items()})])
    other, what = ieee.rounded_sum(ins), "the correctly rounded sum"
    if found.telling_against == "chain":
        other = ieee.fma_chain(ins)
        links = "additions" if "b" in ins.absent else "fused multiply-adds"
        what = f"a chain of IEEE {links} (it gives the correctly rounded sum)"
    wanted = int(other.dot(**found.telling))
    why = (
        f"The simplest operands found on which the unit differs from {what}, which is "
        f"{result_text(ins.formats['d'], wanted)}."
    )
    return "\n\n".join([why, *_traced(ins, found.telling)])


def _traced(ins: Instruction, operands: dict[str, Any]) -> list[str]:
    trace = str(ins.trace(**operands))
    page = "" if ins.is_custom else f" bit by bit in {link('the explorer', address(ins, operands))}, or"
    return [code(trace), f"The same{page} from the command line:", code(command(ins, operands), "sh")]


# Against IEEE 754 -------------------------------------------------------------------------------------------


def against_ieee(group: Group) -> str:
    """How often and how far results differ from the correctly rounded sum and from a chain
    of fused multiply-adds."""
    ins = group.representative
    if not ins.formats["d"].is_float:
        return _integer(ins) if ins.is_integer else ""
    found, chain = ieee.findings(ins), _chain(ins)
    told = (
        f"{found.tried:,} dot products were tried, {found.per_kind} of each of the {len(stimuli.KINDS)} "
        f"stimulus kinds with seed {ieee.SEED}. The kinds aim at differences; the shares say how easily the "
        "units are told apart, not how often results differ in a workload. Correctly rounded: the exact "
        f"sum, rounded once to nearest even. {chain[:1].upper()}{chain[1:]}: "
        f"{_start(ins)}, k ascending, each step rounded to {ins.formats['d'].name}."
    )
    parts = (told, _tallies(found, chain), _errors(ins, found), _order(ins, found), _by_kind(found, chain))
    return "\n\n".join(part for part in parts if part)


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


def _tallies(found: ieee.Findings, chain: str) -> str:
    rows = [
        (
            label,
            share(found.rounded.classes[name], found.tried),
            share(found.chain.classes[name], found.tried),
        )
        for name, label in _LABELS.items()
    ]
    rows.append(
        (
            "any difference but the NaN word",
            share(found.rounded.numeric, found.tried),
            share(found.chain.numeric, found.tried),
        )
    )
    return table(("Result is", "Unlike correctly rounded", f"Unlike the {chain}"), rows)


def _errors(ins: Instruction, found: ieee.Findings) -> str:
    """The worst errors, with operands and the command that shows them."""
    d, rows, commands = ins.formats["d"], [], []
    for error, unit in ((found.worst, "the exact sum"), (found.worst_addend, "the largest addend")):
        if error is None:
            continue
        size = ulp_text(error.ulp)
        rows.append(
            (
                f"ULP of {unit}",
                size,
                f"`{error.kind}`",
                result_text(d, error.d),
                result_text(d, error.rounded),
            )
        )
        commands.append(f"# {size} ULP of {unit}\n{command(ins, error.operands)}")
    if not rows:
        return "Every result was within half a unit in the last place of the exact sum."
    told = (
        "The worst errors found, result less exact sum, in rational arithmetic. After cancellation the sum "
        "is small against the addends, and an error in its own ULP can be as large as it likes; the ULP of "
        "the largest addend shows what the datapath itself loses. Sums below the normal numbers do not "
        "count in the first line."
    )
    head = ("Measured in", "Worst error", "Stimulus kind", "d", "Correctly rounded")
    return "\n\n".join([told, table(head, rows), code("\n".join(commands), "sh")])


def ulp_text(ulp: Fraction) -> str:
    """An error for a reader: four digits, or a power of two where it is beyond float64's decimals that
    anybody reads."""
    if abs(ulp) >= 10**9:
        exponent = round(math.log2(abs(ulp.numerator)) - math.log2(ulp.denominator))
        return f"about {'-' if ulp < 0 else '+'}2^{exponent}"
    return f"{float(ulp):+,.4g}" if abs(ulp) < 10_000 else f"{float(ulp):+,.0f}"


def _order(ins: Instruction, found: ieee.Findings) -> str:
    if ins.k == 1:
        return ""
    terms = "elements of a" if "b" in ins.absent else "products"
    if not found.reordered or found.reordered_example is None:
        if _one_sum(ins):
            told = f"The order of the {terms} cannot matter: they enter one sum after one alignment."
            return f"**Order.** {told} In no trial of {found.tried:,} did another order give another result."
        return f"**Order.** The {terms} in another order gave another result in no trial of {found.tried:,}."
    return (
        f"**Order.** The {terms} in another order gave another result in "
        f"{share(found.reordered, found.tried)} cases: "
        f"the sum depends on the order of k. One of them: `{short(ins, found.reordered_example)}`."
    )


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


def _by_kind(found: ieee.Findings, chain: str) -> str:
    rows = [
        (
            f"`{kind}`",
            stimuli.describe(kind),
            f"{100 * found.rounded.kinds[kind] / found.per_kind:.1f} %",
            f"{100 * found.chain.kinds[kind] / found.per_kind:.1f} %",
        )
        for kind in stimuli.KINDS
    ]
    head = ("Kind", "What it aims at", "Unlike correctly rounded", f"Unlike the {chain}")
    return f"<details>\n<summary>By stimulus kind</summary>\n\n{table(head, rows)}\n\n</details>"


_OVERFLOW = {
    "wrap": "wraps modulo 2**{bits}",
    "saturate": "clamps to the ends of the range, once, after the exact total",
}


def _integer(ins: Instruction) -> str:
    found = ieee.overflow(ins)
    d = ins.formats["d"]
    if found.example is None:
        return (
            f"Integer sums are exact, and no operands leave the range of {d.name}: every result is the sum."
        )
    exact = int(ieee.integer_sum(ins, found.example))
    got = int(ins.dot(**found.example))
    agreed = "all" if not found.unlike else f"all but {found.unlike:,}"
    return (
        f"Integer sums are exact; what remains is overflow. A total beyond {d.name} "
        f"{_OVERFLOW[found.rule].format(bits=d.bits)}: "
        f"`{short(ins, found.example)}` adds up to {exact} and gives {result_text(d, got)}. Of "
        f"{found.tried:,} dot products ({ieee.PER_KIND} of each stimulus kind, seed {ieee.SEED}), "
        f"{found.beyond:,} leave the range; {agreed} results are what this rule says."
    )
