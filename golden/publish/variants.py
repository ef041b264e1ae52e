"""What an instruction computes, in one paragraph, and the table of its variants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from golden.catalog.words import types_of
from golden.errors import MmagoldError
from golden.explain.markdown import code, link, table
from golden.explain.specification import sum_text
from golden.instruction import Instruction
from golden.number.format_words import format_words
from golden.program.steps import Additions, Fma, Round
from golden.publish.families import Group, own_type
from golden.publish.sass_text import patterns, progression
from golden.vectors import captured

LISTED = 24
"""So many variants have a row each; more are folded by N and operand types, with the full names in a list."""
_N = re.compile(r"(?<=\d)n\d+(?=k\d)")


# What it computes -------------------------------------------------------------------------------------------


def summary(group: Group) -> str:
    """One paragraph: formula, shape, sparsity, scales, blocks, native or emulated."""
    ins = group.representative
    if ins.absent:
        held = ", ".join(f"{name.upper()} in {fmt.name}" for name, fmt in ins.own_formats.items())
        return f"Every element of D is d = {sum_text(ins)}, with {held}."
    formats = {name: " or ".join(_different(group, name)) for name in "abcd"}
    if own_type(group.variants) and len(_different(group, "a")) > 1:
        formats["b"] = "the same type"
    what = (
        "D = A x B + C" if ins.formats["a"].bits > 1 else "D = C + popcount of A and B, combined bit by bit"
    )
    text = [
        f"{what}, with A in {formats['a']}, B in {formats['b']}, C in {formats['c']} and D in "
        f"{formats['d']}. Every element of D is one dot product on its own: {_formula(group)}"
    ]
    text += [
        part(group) for part in (_sparse, _scaled, _blocks, _satfinite, _operations, _native) if part(group)
    ]
    return "\n\n".join([*_short_results(ins), " ".join(text)])


def _short_results(ins: Instruction) -> list[str]:
    """The headline of a unit whose results have fewer bits than their format holds."""
    d, kept = ins.formats["d"], ins.program.operations[-1].result_fraction_bits
    if not d.is_float or kept >= d.fraction_bits:
        return []
    return [
        f"**Results keep {kept} fraction bits of the {d.fraction_bits} of {d.name}: the low "
        f"{d.fraction_bits - kept} bits of every finite result are zero.**"
    ]


def _different(group: Group, operand: str) -> list[str]:
    return list(dict.fromkeys(ins.formats[operand].name for ins in group.variants))


def _formula(group: Group) -> str:
    ins = group.representative
    product = "scale_a[k] * scale_b[k] * a[k] * b[k]" if ins.scale_block else "a[k] * b[k]"
    if ins.formats["a"].bits == 1:
        product = f"(a[k] {(ins.program.bit_operation or 'and').upper()} b[k])"
    last = str(ins.stored_k - 1) if len({each.stored_k for each in group.variants}) == 1 else "K - 1"
    return f"d = c + the sum of {product}, k = 0 .. {last}."


def _sparse(group: Group) -> str:
    ins = group.representative
    if ins.pattern is None:
        return ""
    order = "" if ins.pattern.name == "1:2" else "; the two indices of a nibble must ascend"
    if order and not all(each.ordered_metadata for each in group.variants):
        order += " in the ordered_metadata form"
    codes = ", ".join(f"{code:#x}" for code in ins.pattern.legal(ins.ordered_metadata))
    return (
        f"A is sparse ({ins.pattern.name}): it stores {ins.stored_k} of {ins.k} elements, and the metadata "
        f"say which elements of B they meet. A nibble of metadata stands for {ins.pattern.chunk} columns, "
        f"{_places(ins.pattern.name)}; it is one of {codes}{order}."
    )


def _places(pattern: str) -> str:
    """How a nibble names the columns of the stored elements (golden/registers/sparsity.py)."""
    if pattern == "1:2":
        return "0x4: the first is stored, 0xe: the second"
    what = "pairs of columns" if "pairs" in pattern else "columns"
    return (
        f"its bits 1:0 and 3:2 are the numbers of the {what} that the first and the second half of its "
        "stored elements stand in"
    )


def _scaled(group: Group) -> str:
    ins = group.representative
    if ins.scale_block is None:
        return ""
    kinds = ", ".join(
        dict.fromkeys(
            f"{each.formats['scale_a'].name} for each {each.scale_block}" for each in group.variants
        )
    )
    called = f" This is {' and '.join(names)}." if (names := _called(group)) else ""
    return f"Neighbouring elements along k share a scale of A and one of B ({kinds} elements).{called}"


def _called(group: Group) -> list[str]:
    """What data sheets call types with such scales: NVFP4, MXFP4."""
    found = dict.fromkeys(word for ins in group.variants for word in types_of(ins))
    return [word.upper() for word in found if format_words()[word].scales is not None]


def _blocks(group: Group) -> str:
    most = max(ins.blocks for ins in group.variants)
    return (
        f"One instruction does up to {most} independent matrix products at once (blocks)." if most > 1 else ""
    )


def _satfinite(group: Group) -> str:
    ins = group.representative
    last = ins.program.operations[-1].final
    clamped = isinstance(last, Round) and last.overflow == "saturate" and not ins.formats["d"].is_float
    return f"The exact total is clamped to the range of {ins.formats['d'].name}." if clamped else ""


def _operations(group: Group) -> str:
    """How the products are split into operations, for every length and, where it differs, operand type."""
    operations = [operation for ins in group.variants for operation in ins.program.operations]
    if not group.representative.formats["d"].is_float:
        return ""
    steps = operations[0].steps
    if any(isinstance(step, Fma) for step in steps):
        return "Every fused multiply-add is rounded on its own."
    if any(isinstance(step, Additions) for step in steps):
        return "Every product and every sum of two numbers is rounded on its own."
    if all(len(ins.program.operations) == 1 for ins in group.variants):
        return "All products and c enter one operation, which rounds once."
    found = dict.fromkeys(
        f"{_typed(group, ins)}{split_text(ins)}" for ins in sorted(group.variants, key=lambda ins: -ins.k)
    )
    return f"The operations run one after the other, each with a rounding of its own: {'; '.join(found)}."


def _typed(group: Group, ins: Instruction) -> str:
    """The operand type, where the length alone does not tell the split in this group."""
    splits = {(other.stored_k, split_text(other)) for other in group.variants}
    return f"{ins.formats['a'].name}: " if len(splits) > len({k for k, _ in splits}) else ""


def split_text(ins: Instruction) -> str:
    """How an instruction splits its products: "16 products in 2 operations of 8"."""
    sizes = [len(operation.k_index) for operation in ins.program.operations if operation.k_index]
    rest = len(ins.program.operations) - len(sizes)
    count = (
        f"{len(sizes)} operation{'s' if len(sizes) > 1 else ''} of "
        f"{' and '.join(map(str, dict.fromkeys(sizes)))}"
    )
    more = f" and {rest} without products" if rest else ""
    return f"{ins.stored_k} product{'s' if ins.stored_k > 1 else ''} in {count}{more}"


def _native(group: Group) -> str:
    ins = group.representative
    if ins.is_custom:
        return ""
    if ins.emulated:
        return (
            "The architecture has no such unit: the compiler emits "
            f"{', '.join(f'`{word}`' for word in ins.sass)} (emulated)."
        )
    return ""


# The table of variants --------------------------------------------------------------------------------------


def variants(group: Group, names: bool = True) -> str:
    """The table; many variants are folded, with every full name in a list below (unless `names` is false)."""
    if len(group.variants) <= LISTED:
        head: tuple[str, ...] = ("Instruction", "Shape", "SASS", "Evidence", "Captured results")
        rows: list[tuple[str, ...]] = [_row(ins) for ins in group.variants]
        if not any(ins.sass for ins in group.variants):  # the names are the machine's own
            head, rows = (*head[:2], *head[3:]), [(*row[:2], *row[3:]) for row in rows]
        return table(head, rows)
    folded_rows = [_folded_row(label, members) for label, members in _folded(group).items()]
    folded = table(
        ("Instruction", "N", "A and B", "Variants", "SASS", "Evidence", "Captured results"), folded_rows
    )
    if not names:
        return folded
    listed = code("\n".join(ins.name for ins in group.variants))
    return (
        f"{folded}\n\n<details>\n<summary>All {len(group.variants):,} "
        f"names</summary>\n\n{listed}\n\n</details>"
    )


def _row(ins: Instruction) -> tuple[str, ...]:
    blocks = f", {ins.blocks} blocks" if ins.blocks > 1 else ""
    return (
        f"`{ins.name}`",
        "m{}n{}k{}".format(*ins.shape) + blocks,
        sass_text(ins),
        ins.evidence.kind,
        captured_cell([ins]),
    )


def sass_text(ins: Instruction) -> str:
    """The SASS of one instruction; several together where it is emulated."""
    names = " + ".join(f"`{name}`" for name in ins.sass)
    return f"{names} (emulated)" if ins.emulated else names or "-"


def captured_cell(members: Sequence[Instruction]) -> str:
    """The number of captured results, with a link to the vectors where there is one file."""
    entries = [entry for ins in members if (entry := captured_entry(ins)) is not None]
    if not entries:
        return "none"
    total = f"{sum(entry['dots'] for entry in entries):,}"
    return (
        link(total, f"vectors/{members[0].architecture}/{entries[0]['file']}") if len(entries) == 1 else total
    )


def captured_entry(ins: Instruction) -> dict[str, Any] | None:
    """What the manifest of the captured vectors says of an instruction; None where nothing was captured."""
    entry: dict[str, Any] | None = manifest(ins.architecture).get("instructions", {}).get(ins.name)
    return entry


@cache
def manifest(architecture: str) -> dict[str, Any]:
    """The manifest of an architecture's vectors; empty where there is none, or no checkout."""
    try:
        return captured.read_manifest(architecture) if architecture in captured.architectures() else {}
    except MmagoldError:
        return {}


def _folded(group: Group) -> dict[str, list[Instruction]]:
    """The variants by their name without N and without the types of A and B,
    where the family leaves them open."""
    found: dict[str, list[Instruction]] = {}
    several = len(_different(group, "a")) > 1
    for ins in group.variants:
        label = _N.sub("nN", ins.name)
        if several:
            a, b = ins.formats["a"].name, ins.formats["b"].name
            label = label.replace(f".{a}.{b}", ".A.B", 1)
        found.setdefault(label, []).append(ins)
    return found


def _folded_row(label: str, members: list[Instruction]) -> tuple[str, ...]:
    sass = sass_text(members[0]) if len(members) == 1 else " or ".join(patterns(members)) or "-"
    pairs = list(dict.fromkeys((ins.formats["a"].name, ins.formats["b"].name) for ins in members))
    evidence = ", ".join(dict.fromkeys(ins.evidence.kind for ins in members))
    n = progression(sorted({ins.n for ins in members}))
    return f"`{label}`", n, pairs_text(pairs), str(len(members)), sass, evidence, captured_cell(members)


def pairs_text(pairs: list[tuple[str, str]]) -> str:
    """Pairs of types: "f16 x f16", "e4m3, e5m2 in every pair", else all pairs."""
    first, second = list(dict.fromkeys(a for a, _ in pairs)), list(dict.fromkeys(b for _, b in pairs))
    if len(pairs) > 1 and first == second and len(pairs) == len(first) * len(second):
        return f"{', '.join(first)} in every pair"
    return ", ".join(f"{a} x {b}" for a, b in pairs)
