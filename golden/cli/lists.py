"""The tables of `mmagold list`, `algorithms` and `formats`, and the report of `mmagold spec check`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.catalog import architectures
from golden.catalog.lookup import instruction, instructions
from golden.catalog.resolver import but_for_n, resolver
from golden.catalog.type_words import means_types_of
from golden.errors import OperandError, UnknownNameError, counted, nearest
from golden.explain import specification
from golden.explain.terminal import PlainConsole, table
from golden.explain.trace import short_text
from golden.model.instruction import Instruction
from golden.number.format_words import FormatWord, format_word
from golden.number.formats import formats, get_format
from golden.paths import spec_folder
from golden.program.algorithms import algorithms as all_algorithms
from golden.program.steps import Round
from golden.program.words import zero_drops_flushed_sign

_SHAPE = re.compile(r"m?(\d+)[nx](\d+)[kx](\d+)$")
_EVIDENCE_STYLE = {"captured": "green", "published": "cyan", "derived": "yellow"}


def print_overview() -> None:
    """One row an architecture."""
    rows = table("architecture", "name", "instructions>", "devices", "targets")
    for name in architectures.architectures():
        arch = architectures.get_architecture(name)
        rows.add_row(
            f"[bold]{name}[/]",
            arch.title,
            str(len(arch.names())),
            ", ".join(arch.devices),
            ", ".join(arch.targets),
        )
    console = PlainConsole()
    console.print(rows)
    console.print(
        "\nNext: [bold]mmagold list --arch hopper --type e4m3[/], "
        "[bold]mmagold show hopper:HMMA.16816.F32[/], "
        "[bold]mmagold compare hopper:HMMA.16816.F32 ampere:HMMA.16816.F32[/]",
        highlight=False,
    )


def select(
    text: str, arch: str | None, type_: str | None, shape: str | None, evidence: str | None
) -> list[Instruction]:
    """Returns the instructions that pass every filter; `text`: words (golden/catalog/resolver.py).

    Raises:
        UnknownNameError, OperandError: a filter names something that does not exist at all.
    """
    chosen = architectures.architectures() if arch is None else [resolver().called(arch)]
    kind = None if type_ is None else format_word(type_) or FormatWord((get_format(type_).name,))
    if evidence is not None and evidence not in architectures.EVIDENCE:
        raise UnknownNameError(
            f"unknown evidence '{evidence}', expected one of "
            f"{', '.join(architectures.EVIDENCE)}{nearest(evidence, architectures.EVIDENCE)}"
        )
    wanted = None if shape is None else _shape(shape)
    return [
        ins
        for name in chosen
        for ins in map(partial(instruction, name), resolver().search(name, text))
        if (kind is None or means_types_of(kind, ins))
        and (wanted is None or ins.shape == wanted)
        and (evidence is None or ins.evidence.kind == evidence)
    ]


def select_unknown(text: str, arch: str | None) -> list[dict[str, str]]:
    """The instructions of unknown arithmetic whose name holds `text`, then the ones that are out of scope, as
    plain values.

    Raises:
        UnknownNameError: no such architecture.
    """
    chosen = [resolver().called(arch)] if arch else architectures.architectures()
    described = [architectures.get_architecture(name) for name in chosen]
    return [
        {"architecture": chip.name, "name": full, "status": status, "why": why}
        for chip in described
        for status, found in (("unknown", chip.unknown_names()), ("out of scope", chip.left_out))
        for full, why in found.items()
        if resolver().in_name(chip.name, text, full)
    ]


def print_none(hint: str = "") -> None:
    """That nothing was found, and what may have been meant."""
    said = f"no instruction matches{hint}"
    PlainConsole(stderr=True).print(said, highlight=False, markup=False, soft_wrap=True)


def print_remarks(text: str) -> None:
    """What is known of chips that a search names and that are only relatives of a chip that it shows."""
    for remark in resolver().remarks(text):
        PlainConsole(stderr=True).print(remark, highlight=False, markup=False, soft_wrap=True)


def print_unknown(found: list[dict[str, str]]) -> None:
    """One row an instruction."""
    rows = table("architecture", "instruction", "status", "why")
    for one in found:
        rows.add_row(one["architecture"], one["name"], one["status"], one["why"])
    PlainConsole().print(rows, highlight=False)
    PlainConsole().print(f"[dim]{counted(len(found), 'instruction')}[/]")


def _shape(text: str) -> tuple[int, int, int]:
    match = _SHAPE.match(text)
    if match is None:
        raise OperandError(f"option --shape is '{text}', expected a shape such as m16n8k16 or 16x8x16")
    return int(match[1]), int(match[2]), int(match[3])


def row_dict(ins: Instruction) -> dict[str, Any]:
    """One instruction of a listing as plain values."""
    m, n, k = ins.shape
    return {
        "architecture": ins.architecture,
        "name": ins.name,
        "m": m,
        "n": n,
        "k": k,
        "blocks": ins.blocks,
        "sparse": ins.sparse,
        "formats": {operand: fmt.name for operand, fmt in ins.own_formats.items()},
        "sass": list(ins.sass),
        "emulated": ins.emulated,
        "algorithms": list(ins.program.algorithms),
        "evidence": ins.evidence.kind,
        "source": ins.evidence.source,
    }


def print_instructions(found: list[Instruction], every: bool) -> None:
    """One row an instruction; instructions that differ only in N share a row unless `every`."""
    console = PlainConsole()
    rows = table(
        "architecture", "instruction|", "N|", "algorithm", "evidence", going=("algorithm", "evidence", "N")
    )
    merged: dict[tuple[str, ...], list[Instruction]] = {}
    for ins in found:
        key = ins.name if every else but_for_n(ins.name)
        merged.setdefault((ins.architecture, key, ins.evidence.kind, *ins.program.algorithms), []).append(ins)
    for (arch, key, evidence, *names), group in merged.items():
        sizes = sorted({ins.n for ins in group})
        label, span = (
            (key.replace("*", "N"), f"{sizes[0]}..{sizes[-1]}")
            if len(group) > 1
            else (group[0].name, str(sizes[0]))
        )
        rows.add_row(
            arch, label, f"[dim]{span}[/]", ", ".join(names), f"[{_EVIDENCE_STYLE[evidence]}]{evidence}[/]"
        )
    console.print(rows, highlight=False)
    console.print(f"[dim]{counted(len(found), 'instruction')}[/]")


def algorithm_dicts() -> list[dict[str, Any]]:
    """Every algorithm as plain values."""
    return [
        {
            "name": a.name,
            "aliases": list(a.aliases),
            "title": a.title,
            "source": a.source,
            "chain_of": a.chain_of,
            "notes": list(a.notes),
        }
        for a in all_algorithms().values()
    ]


def print_algorithms() -> None:
    """One row an algorithm."""
    rows = table("algorithm", "also called", "what it computes", "source")
    for item in algorithm_dicts():
        rows.add_row(
            f"[bold]{item['name']}[/]", ", ".join(item["aliases"]), item["title"], f"[dim]{item['source']}[/]"
        )
    PlainConsole().print(rows, highlight=False)


def format_dicts() -> list[dict[str, Any]]:
    """Every number format as plain values."""
    return [specification.format_dict(get_format(name)) for name in formats()]


def print_formats() -> None:
    """One row a format."""
    heads = ("format", "bits>", "sign+exp+frac", "bias>", "exponents|", "largest|", "specials|")
    rows = table(*heads, going=("largest", "exponents", "specials"))
    for item in format_dicts():
        name, bits = f"[bold]{item['name']}[/]", str(item["bits"])
        if item["kind"] == "integer":
            rows.add_row(name, bits, "signed" if item["signed"] else "unsigned", "", "", "", "")
            continue
        fields = f"{int(item['signed'])}+{item['exponent_bits']}+{item['fraction_bits']}"
        exponents = f"{item['min_exponent']} .. {item['max_exponent']}"
        fmt = get_format(item["name"])
        largest = short_text(fmt.decode(fmt.largest).value)
        rows.add_row(name, bits, fields, str(item["bias"]), exponents, largest, item["specials"])
    PlainConsole().print(rows, highlight=False)


def _remark(ins: Instruction) -> str:
    """What a unit says twice, in two ways; "" where it does not."""
    if not any(map(zero_drops_flushed_sign, ins.program.steps_of(Round))):
        return ""
    return (
        "; of 'flush: signed' and 'zero: positive' in one round the second holds: a flushed result is +0 "
        "(zero: signed_underflow keeps its sign, and has +0 for an exact zero)"
    )


def check_spec(path: Path) -> dict[str, Any]:
    """Loads a custom unit, or compiles everything that a file of the spec folder takes part in.

    Raises:
        SpecError: with file, line, key and what was expected.
    """
    document = yamlfile.read(path)
    if "unit" in document:
        from golden.catalog.unit_files import load_instruction

        ins = load_instruction(path)
        total = sum(len(operation.steps) for operation in ins.program.operations)
        operations = len(ins.program.operations)
        return {
            "file": str(path),
            "kind": "unit",
            "unit": ins.name,
            "k": ins.k,
            "formats": {operand: fmt.name for operand, fmt in ins.own_formats.items()},
            "operations": operations,
            "summary": f"unit {ins.name}, k = {ins.k}, {'/'.join(f.name for f in ins.own_formats.values())}, "
            f"{counted(operations, 'operation')}, {total} steps{_remark(ins)}",
        }
    folder = spec_folder().resolve()
    if folder not in path.resolve().parents:
        raise document.error("expected a custom unit (key 'unit'), or a file of the spec folder itself")
    name = document.get("architecture")
    names = [str(name)] if name in architectures.architectures() else architectures.architectures()
    count = sum(len(instructions(arch)) for arch in names)
    all_algorithms()
    return {
        "file": str(path),
        "kind": "spec",
        "architectures": names,
        "instructions": count,
        "summary": f"{counted(count, 'instruction')} of {', '.join(names)} compile{'s' * (count == 1)}",
    }
