"""Pages on the architectures: what the chip is, its instruction table,
and what changed from the generation before.

The tables are the ones of the MMA-Sim paper (III for NVIDIA, IV for AMD), written anew from spec/: one row
for each group of instructions that computes by one rule, with the parameters,
the machine's own names and the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from golden.catalog import architectures
from golden.catalog.architectures import Architecture
from golden.catalog.relatives import arithmetic
from golden.errors import counted, listed
from golden.explain.markdown import link
from golden.identify.diagnose.mutations.words import MODE_NAMES
from golden.identify.probe import special_probes
from golden.identify.probe.facts import facts
from golden.model.instruction import Instruction
from golden.program.algorithms import get_algorithm
from golden.program.program import OWN_STEPS
from golden.publish import generations, variants
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.families import Group, group_of, groups
from golden.publish.generations import Changes, Pair
from golden.publish.program_text import LABELS, algorithm_name, changed_parameters, program_text, value_text
from golden.publish.templating import Page, render

_SHARES = "generations"


def pages() -> list[Page]:
    """The page of every architecture and their index."""
    found = [
        Page(path_of(name), architectures.get_architecture(name).title, partial(markdown, name), _SHARES)
        for name in architectures.architectures()
    ]
    return [Page("architectures/index.md", "Architectures", index), *found]


def path_of(architecture: str) -> str:
    """Where the page of an architecture lies in the site."""
    return f"architectures/{architecture}.md"


def architecture_link(architecture: str) -> str:
    """A link to the page of an architecture, with its title."""
    return link(architectures.get_architecture(architecture).title, path_of(architecture))


def index() -> str:
    """Returns the table of all architectures."""
    chips = [architectures.get_architecture(name) for name in architectures.architectures()]
    lines = dict.fromkeys(f"{chip.vendor} {chip.line}".strip() for chip in chips)
    return render(
        "architectures", lines=[f"{line} by age" for line in lines], rows=[_index_row(chip) for chip in chips]
    )


def _index_row(chip: Architecture) -> list[object]:
    members = [ins for group in groups(chip.name) for ins in group.variants]
    captured = sum(ins.evidence.kind == "captured" for ins in members)
    return [
        architecture_link(chip.name),
        ", ".join(chip.devices),
        _targets(chip),
        f"{len(members):,}",
        len({arithmetic(ins) for ins in members}),
        f"{captured:,}" if captured else "none",
    ]


def _targets(chip: Architecture) -> str:
    return ", ".join(f"`{target}`" for target in chip.targets)


def markdown(architecture: str) -> str:
    """Returns the page of one architecture.

    Raises:
        UnknownNameError: no such architecture.
    """
    chip = architectures.get_architecture(architecture)
    before = generations.previous(architecture)
    return render(
        "architecture",
        chip=chip,
        facts=_facts(chip),
        machine=chip.maker.heading,
        sections=list(_sections(architecture)),
        unknown=_unknown(chip),
        left_out=_left_out(chip),
        changes=None if before is None else _changes(generations.changes(before, architecture)),
    )


def _facts(chip: Architecture) -> list[list[str]]:
    members = [ins for group in groups(chip.name) for ins in group.variants]
    evidence = {kind: sum(ins.evidence.kind == kind for ins in members) for kind in architectures.EVIDENCE}
    file = f"spec/architectures/{chip.name}.yaml"
    return [
        ["Devices", ", ".join(chip.devices)],
        ["Compiler targets", _targets(chip)],
        *([["Matrix units", chip.matrix_units]] if chip.matrix_units else []),
        ["Instructions", f"{len(members):,} in {counted(len(groups(chip.name)), 'group')}"],
        ["Evidence", ", ".join(f"{count:,} {kind}" for kind, count in evidence.items() if count)],
        ["Source", chip.source],
        ["Spec", link(f"`{file}`", f"sources/{file}")],
    ]


def _unknown(chip: Architecture) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for one in chip.unknown:
        rows.setdefault(one.why, []).extend(f"`{name}`" for name in one.names())
    return [[", ".join(names), why] for why, names in rows.items()]


def _left_out(chip: Architecture) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for name, why in chip.left_out.items():
        rows.setdefault(why, []).append(f"`{name}`")
    return [[", ".join(names), why] for why, names in rows.items()]


# The instruction table --------------------------------------------------------------------------------------


def _sections(architecture: str) -> Iterator[dict[str, Any]]:
    """The groups by what they compute with, and whether the chip has them: each with its rows, the sources of
    the evidence, and the algorithms' names in full."""
    for title, is_float in (("Floating point", True), ("Integer and binary", False)):
        for emulated in (False, True):
            found = [
                group
                for group in groups(architecture)
                if (group.representative.formats["d"].is_float, group.representative.emulated)
                == (is_float, emulated)
            ]
            notes: dict[str, int] = {}
            rows = [
                [
                    link(group.title, group.path),
                    _machine_names(group),
                    algorithm_text(group),
                    parameter_text(group),
                    evidence_text(group, notes),
                ]
                for group in found
            ]
            if rows:
                yield {
                    "title": f"{title}, emulated" if emulated else title,
                    "emulated": emulated,
                    "rows": rows,
                    "sources": list(notes),
                    "in_full": _in_full(found),
                }


def _in_full(found: Iterable[Group]) -> str:
    """What the short names of the algorithms stand for: "FDA: fused dot-add"."""
    operations = [op for group in found for ins in group.variants for op in ins.program.operations]
    known = dict.fromkeys(op.algorithm for op in operations if op.algorithm != OWN_STEPS)
    titles = {
        algorithm_name(op): get_algorithm(op.algorithm).title
        for name in known
        for op in operations
        if op.algorithm == name
    }
    parts = [f"{name}: {title[:1].lower()}{title[1:]}" for name, title in titles.items() if name.isupper()]
    return f"{'; '.join(parts)}." if parts else ""


def _machine_names(group: Group) -> str:
    """What the instructions are called by the machine: patterns of its mnemonics, or their own names."""
    if not group.representative.sass:
        return ", ".join(f"`{ins.name}`" for ins in group.variants)
    if group.representative.emulated:
        return " ".join(f"`{word}`" for word in group.representative.sass)
    return variants.cell(group.variants)


def algorithm_text(group: Group) -> str:
    """The algorithm of a group with its steps: "FDA over K = 8; 2 x FDA of 8 for K = 16"."""
    programs = [(ins, program_text(ins)) for ins in group.variants]
    # Whether K alone does not identify the text.
    ambiguous = len({(ins.k, text) for ins, text in programs}) > len({ins.k for ins, _ in programs})
    found: dict[tuple[str, str], list[int]] = {}
    for ins, text in programs:
        found.setdefault((text, f" ({ins.formats['a'].name})" if ambiguous else ""), []).append(ins.k)
    texts = []
    for (text, types), sizes in found.items():
        lengths = ", ".join(map(str, sorted(set(sizes))))
        several = "" if len(found) == 1 else f" for K = {lengths}"
        texts.append((f"{text} over K = {lengths}" if text.isalnum() else f"{text}{several}") + types)
    return "; ".join(texts)


def parameter_text(group: Group) -> str:
    """The parameters of a group's program: F, exponent floor, widths,
    rounding and bits of the result, NaN word."""
    operations = [operation for operation in group.representative.program.operations if operation.k_index]
    values = dict(operations[0].parameters)
    values.pop("result_fraction_bits", None)  # `_result_text` has them
    words = [_assigned(label, values[name]) for name, label in LABELS.items() if name in values]
    return "; ".join([*words, *_result_text(group.representative)])


def _assigned(label: str, value: object) -> str:
    return (
        f"{label}{value}"
        if label.endswith("^")
        else f"{label} {value}"
        if label in _WORDS
        else f"{label} = {value}"
    )


_WORDS = {"floor", "operation", "overflow", "group", "c window"}


def _result_text(ins: Instruction) -> Iterator[str]:
    last = ins.program.operations[-1]
    if not ins.formats["d"].is_float:
        return
    yield f"{MODE_NAMES[last.final.rounding]} to {last.result_fraction_bits} bits"
    nan = facts(ins).measured(special_probes.generated_nans)[0]
    if nan:
        yield f"NaN `{next(iter(nan.values()))}`"


def evidence_text(group: Group, notes: dict[str, int]) -> str:
    """How the rule of a group is known: kinds with the numbers of the notes that name their sources, captured
    ones with how many of the instructions. `notes`: source and number; new sources are added."""
    found: dict[tuple[str, str], int] = {}
    for ins in group.variants:
        source = ins.evidence.source.removeprefix("recorded on an ").replace("; rule: ", "; rule from: ")
        key = ins.evidence.kind, source
        found[key] = found.get(key, 0) + 1
    total = len(group.variants)
    return "; ".join(
        f"**{kind}**{'' if count == total else f' ({count:,} of {total:,})'} "
        f"[{notes.setdefault(source, len(notes) + 1)}]"
        for (kind, source), count in found.items()
    )


# What changed -----------------------------------------------------------------------------------------------


def _changes(found: Changes) -> dict[str, Any]:
    """What the part of the page on the generation before says."""
    different: list[list[Pair]] = []
    equal: list[list[Pair]] = []
    for pairs in generations.by_program(found).values():
        tally = generations.tally(pairs[0])
        (different if tally.count or tally.nan_payloads else equal).append(pairs)
    emulated = [pair for pair in found.pairs if pair.became_emulated or pair.became_native]
    rows = list(_different(different))
    return {
        "old": architectures.get_architecture(found.old).title,
        "new": architectures.get_architecture(found.new).title,
        "pairs": len(found.pairs),
        "tried": sum(generations.tally(pairs[0]).tried for pairs in (*different, *equal)),
        "equal": sum(map(len, equal)),
        "unequal": sum(map(len, different)),
        "added": len(found.added),
        "gone": len(found.gone),
        "different": rows,
        "explained": any("**" in row[-1] for row in rows),
        "examples": list(_examples(different)),
        "same": _same(equal),
        "emulated": _emulated(emulated),
        "new_groups": _listed(found.added),
        "gone_groups": _listed(found.gone),
    }


def _different(found: list[list[Pair]]) -> Iterator[list[str]]:
    """One row for the pairs of one group that differ for one reason."""
    merged: dict[tuple[str, str], list[list[Pair]]] = {}
    for pairs in found:
        merged.setdefault((group_of(pairs[0].new).slug, _why(pairs[0])), []).append(pairs)
    for (_, why), several in merged.items():
        total = generations.together(generations.tally(pairs[0]) for pairs in several)
        share = f"{total.count:,} of {total.tried:,} ({total.count / total.tried:.1%})"
        nan = f", {total.nan_payloads:,} NaN words" if total.nan_payloads else ""
        worst = f"{total.worst} ({total.different[total.worst] / (total.tried // len(total.different)):.0%})"
        yield [_names_text([pair.new for pairs in several for pair in pairs]), share + nan, worst, why]


def _why(pair: Pair) -> str:
    changed = [
        f"**{one.name}: {one.old} became {one.new}**"
        if one.explains
        else f"{one.name}: {one.old} became {one.new}"
        for one in generations.parameters(pair)
    ]
    if changed:
        return "; ".join(changed)
    old, new = (program_text(ins) for ins in (pair.old, pair.new))
    same = set(pair.old.program.algorithms) == set(pair.new.program.algorithms)
    parts = [f"another {'sequence' if same else 'algorithm'}: {old} became {new}"] if old != new else []
    parts += [
        f"{LABELS.get(name, name)}: {value_text(x)} became {value_text(y)}"
        for name, x, y in changed_parameters(pair.old, pair.new)
    ]
    return "; ".join(parts) or "several parameters"


def _examples(found: list[list[Pair]]) -> Iterator[dict[str, Any]]:
    """The examples of all pairs of programs; one that shows the difference of several stands once."""
    shown: list[dict[int, Pair]] = []  # by example: the pair whose example it is
    for first, *_ in found:
        result = generations.example(first)
        if result is not None and not any(id(result[1]) in pairs for pairs in shown):
            same = next(
                (pairs for pairs in shown if generations.shows(next(iter(pairs.values())), first)), None
            )
            shown += [{}] if same is None else []
            (shown[-1] if same is None else same)[id(result[1])] = first
    for pairs in shown:
        yield _example(list(pairs.values()))


def _example(pairs: list[Pair]) -> dict[str, Any]:
    """The example of the first pair, and where else the same numbers do the same."""
    result = generations.example(pairs[0])
    assert result is not None
    run, shortest = result
    return {
        "name": run.new.name,
        "kind": shortest.kind,
        "operands": operands_text(run.new, shortest.operands_y),
        "others": ", ".join(f"`{pair.new.name}`" for pair in pairs[1:]),
        "results": [
            result_text(run.old.formats["d"], shortest.x),
            result_text(run.new.formats["d"], shortest.y),
        ],
        "commands": "\n".join(command(ins, shortest.operands_y) for ins in (run.old, run.new)),
    }


def _same(found: list[list[Pair]]) -> list[list[str]]:
    """Groups whose instructions all gave the same bits, with how many and how hard it was tried."""
    rows: dict[str, list[int]] = {}
    for pairs in found:
        for pair in pairs:
            rows.setdefault(_group_link(pair.new), [0, 0])[0] += 1
        rows[_group_link(pairs[0].new)][1] += generations.tally(pairs[0]).tried
    return [
        [name, f"{count:,}", f"{tried:,}" if tried else "as above"] for name, (count, tried) in rows.items()
    ]


def _emulated(pairs: list[Pair]) -> list[list[object]]:
    """Native against emulated, one row for each group and pattern of machine names."""
    by_group: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_group.setdefault(_group_link(pair.new), []).append(pair)
    rows: list[list[object]] = []
    for name, found in by_group.items():
        for before, olds in variants.patterns([pair.old for pair in found]).items():
            news = [pair.new for pair in found if pair.old in olds]
            after = " or ".join(
                dict.fromkeys(
                    _becomes(ins, text) for text, same in variants.patterns(news).items() for ins in same
                )
            )
            rows.append([name, len(olds), _becomes(olds[0], before), after])
    return rows


def _becomes(ins: Instruction, text: str) -> str:
    return f"{'emulated' if ins.emulated else 'native'}: {text}"


def _group_link(ins: Instruction) -> str:
    group = group_of(ins)
    return link(group.title, group.path)


def _names_text(members: list[Instruction]) -> str:
    """The groups of instructions, each with how many of them."""
    found: dict[str, list[Instruction]] = {}
    for ins in members:
        found.setdefault(_group_link(ins), []).append(ins)
    return "; ".join(
        f"{name}: {listed([f'`{ins.name}`' for ins in some], 1)}" for name, some in found.items()
    )


def _listed(members: Iterable[Instruction]) -> list[list[str]]:
    return [[name, f"{count:,}"] for name, count in Counter(map(_group_link, members)).items()]
