"""What an instruction computes, in one paragraph, and the table of its variants, with the SASS names of
several instructions as patterns: N and the types of A and B stand as letters where they vary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from golden.catalog.type_words import types_of
from golden.errors import MmagoldError, counted
from golden.explain.markdown import code, link, table
from golden.explain.specification import sum_text
from golden.model.instruction import Instruction
from golden.number.format_words import format_words
from golden.paths import checkout
from golden.program.steps import Additions, Fma, Round
from golden.publish.families import Group, own_type
from golden.publish.templating import render
from golden.vectors import captured

LISTED = 24
"""Most variants with a row each; more are folded by N and operand types, with the full names in a list."""
_N = re.compile(r"(?<=\d)n\d+(?=k\d)")


# What it computes -------------------------------------------------------------------------------------------


def summary(group: Group) -> str:
    """One paragraph: formula, shape, sparsity, scales, blocks, native or emulated."""
    ins, d = group.representative, group.representative.formats["d"]
    formats = {name: " or ".join(_different(group, name)) for name in "abcd" if name in ins.own_formats}
    if own_type(group.variants) and len(_different(group, "a")) > 1:
        formats["b"] = "the same type"
    kept = ins.program.operations[-1].result_fraction_bits
    last = ins.program.operations[-1].final
    lengths = {each.stored_k for each in group.variants}
    return render(
        "summary",
        ins=ins,
        d=d,
        absent=ins.absent,
        sum=sum_text(ins),
        held=", ".join(f"{name.upper()} in {fmt.name}" for name, fmt in ins.own_formats.items()),
        kept=kept if d.is_float and kept < d.fraction_bits else None,
        formats=formats,
        product=_product(ins),
        last=ins.stored_k - 1 if len(lengths) == 1 else "K - 1",
        nibbles=[] if ins.pattern is None else [f"{c:#x}" for c in ins.pattern.legal(ins.ordered_metadata)],
        ordered=all(each.ordered_metadata for each in group.variants),
        scales=[] if ins.scale_block is None else _scales(group),
        called=_called(group),
        blocks=max(each.blocks for each in group.variants),
        clamped=isinstance(last, Round) and last.overflow == "saturate" and not d.is_float,
        rounded=_rounded(group),
        emitted=[f"`{word}`" for word in ins.sass],
    )


def _different(group: Group, operand: str) -> list[str]:
    return list(dict.fromkeys(ins.formats[operand].name for ins in group.variants))


def _product(ins: Instruction) -> str:
    if ins.formats["a"].bits == 1:
        return f"(a[k] {(ins.program.bit_operation or 'and').upper()} b[k])"
    return "scale_a[k] * scale_b[k] * a[k] * b[k]" if ins.scale_block else "a[k] * b[k]"


def _scales(group: Group) -> list[str]:
    scales = (f"{each.formats['scale_a'].name} for each {each.scale_block}" for each in group.variants)
    return list(dict.fromkeys(scales))


def _called(group: Group) -> list[str]:
    """What data sheets call types with such scales: NVFP4, MXFP4."""
    found = dict.fromkeys(word for ins in group.variants for word in types_of(ins))
    return [word.upper() for word in found if format_words()[word].scales is not None]


def _rounded(group: Group) -> str | list[str]:
    """Where a unit of floats rounds: a word, or how the products are split into operations, for every length
    and, where it differs, operand type."""
    steps = group.representative.program.operations[0].steps
    if not group.representative.formats["d"].is_float:
        return ""
    if any(isinstance(step, Fma) for step in steps):
        return "fma"
    if any(isinstance(step, Additions) for step in steps):
        return "additions"
    if all(len(ins.program.operations) == 1 for ins in group.variants):
        return "once"
    longest_first = sorted(group.variants, key=lambda ins: -ins.k)
    return list(dict.fromkeys(f"{_typed(group, ins)}{split_text(ins)}" for ins in longest_first))


def _typed(group: Group, ins: Instruction) -> str:
    """The operand type, where the length alone does not determine the split in this group."""
    splits = {(other.stored_k, split_text(other)) for other in group.variants}
    return f"{ins.formats['a'].name}: " if len(splits) > len({k for k, _ in splits}) else ""


def split_text(ins: Instruction) -> str:
    """How an instruction splits its products: "16 products in 2 operations of 8"."""
    sizes = [len(operation.k_index) for operation in ins.program.operations if operation.k_index]
    rest = len(ins.program.operations) - len(sizes)
    count = f"{counted(len(sizes), 'operation')} of {' and '.join(map(str, dict.fromkeys(sizes)))}"
    more = f" and {rest} without products" if rest else ""
    return f"{counted(ins.stored_k, 'product')} in {count}{more}"


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
        recorded = any(ins.evidence.kind == "captured" for ins in members)
        return "not in this installation" if recorded and checkout() is None else "none"
    total = f"{sum(entry['dots'] for entry in entries):,}"
    return (
        link(total, f"vectors/{members[0].architecture}/{entries[0]['file']}") if len(entries) == 1 else total
    )


def captured_entry(ins: Instruction) -> dict[str, Any] | None:
    """What the manifest of the captured vectors says about an instruction; None where nothing was
    captured."""
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


def patterns(members: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """The members by their machine code as text;
    those that differ in N or types alone share "`HGMMA.64xNx16.F32`"."""
    found: dict[str, list[Instruction]] = {}
    for ins in members:
        found.setdefault(_pattern(ins), []).append(ins)
    return {(pattern if _several(same) else _exact(same[0])): same for pattern, same in found.items()}


def cell(members: Sequence[Instruction]) -> str:
    """All patterns of a group, each with its N where there are several: "`HGMMA.64xNx16.F32` (N = 8 to 256
    by 8)"."""
    shown = []
    for text, same in patterns(members).items():
        sizes = sorted({ins.n for ins in same})
        shown.append(f"{text} (N = {progression(sizes)})" if "xNx" in text and len(sizes) > 1 else text)
    return ", ".join(shown)


def _exact(ins: Instruction) -> str:
    return " ".join(f"`{word}`" for word in ins.sass)


def _several(members: Sequence[Instruction]) -> bool:
    return len({ins.sass for ins in members}) > 1


def _pattern(ins: Instruction) -> str:
    types = rf"\.{ins.formats['a'].name}\.{ins.formats['b'].name}(?![A-Z0-9])"
    shaped = re.sub(rf"(?<=x){ins.n}(?=x)", "N", _exact(ins)) if ins.traits.swept else _exact(ins)
    return re.sub(types, ".A.B", shaped, flags=re.I)


def progression(values: list[int]) -> str:
    """ "8 to 256 by 8", "8, 16, 24, 32 to 256 by 16", or the values."""
    parts: list[str] = []
    while values:
        step = values[1] - values[0] if len(values) > 1 else 0
        length = next((i for i in range(1, len(values)) if values[i] - values[i - 1] != step), len(values))
        if length < 4:
            parts, values = [*parts, str(values[0])], values[1:]
        else:
            parts, values = [*parts, f"{values[0]} to {values[length - 1]} by {step}"], values[length:]
    return ", ".join(parts)
