"""Pages on the architectures: what the chip is, its instruction table,
and what changed from the generation before.

The tables are the ones of the MMA-Sim paper (III for NVIDIA, IV for AMD), written anew from spec/: one row
for each group of instructions that computes by one rule, with the parameters,
the machine's own names and the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from golden.catalog import architectures
from golden.catalog.architectures import Architecture
from golden.catalog.relatives import arithmetic
from golden.explain.markdown import code, link, table
from golden.identify.diagnose.mutations.words import MODE_NAMES
from golden.identify.probe import special_probes
from golden.identify.probe.facts import facts
from golden.instruction import Instruction
from golden.program.algorithms import get_algorithm
from golden.program.program import OWN_STEPS
from golden.publish import generations, sass_text
from golden.publish.dot_text import command, operands_text, result_text
from golden.publish.families import Group, group_of, groups
from golden.publish.generations import Changes, Pair
from golden.publish.page import Page
from golden.publish.program_text import LABELS, algorithm_name, changed_parameters, program_text

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
    rows = []
    chips = [architectures.get_architecture(name) for name in architectures.architectures()]
    lines = dict.fromkeys(f"{chip.vendor} {chip.line}".strip() for chip in chips)
    for chip in chips:
        members = [ins for group in groups(chip.name) for ins in group.variants]
        captured = sum(ins.evidence.kind == "captured" for ins in members)
        rules = len({arithmetic(ins) for ins in members})
        rows.append(
            [
                architecture_link(chip.name),
                ", ".join(chip.devices),
                ", ".join(f"`{target}`" for target in chip.targets),
                f"{len(members):,}",
                rules,
                f"{captured:,}" if captured else "none",
            ]
        )
    head = [
        "Architecture",
        "Devices",
        "Targets",
        "Instructions",
        "Different programs",
        "Captured on hardware",
    ]
    return "\n\n".join(
        [
            "# Architectures",
            f"{', then '.join(f'{line} by age' for line in lines)}. Two instructions have the same "
            "program when they run the same steps, with the same "
            f"parameters, over the same k. The {link('comparison', 'comparison.md')} sets the architectures "
            "side by side.",
            table(head, rows),
        ]
    )


def markdown(architecture: str) -> str:
    """Returns the page of one architecture.

    Raises:
        UnknownNameError: no such architecture.
    """
    chip = architectures.get_architecture(architecture)
    parts = [
        f"# {chip.title}",
        _chip(chip),
        *_notes(chip),
        "## Instructions",
        *_instructions(architecture),
        *_unknown(chip),
    ]
    before = generations.previous(architecture)
    if before is not None:
        parts += [
            f"## What changed from {architectures.get_architecture(before).title}",
            *_changes(generations.changes(before, architecture)),
        ]
    return "\n\n".join(parts)


def _chip(chip: Architecture) -> str:
    members = [ins for group in groups(chip.name) for ins in group.variants]
    evidence = {kind: sum(ins.evidence.kind == kind for ins in members) for kind in architectures.EVIDENCE}
    targets = ", ".join(f"`{target}`" for target in chip.targets)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in evidence.items() if count)
    file = f"spec/architectures/{chip.name}.yaml"
    rows = [
        ["Devices", ", ".join(chip.devices)],
        ["Compiler targets", targets],
        ["Instructions", f"{len(members):,} in {len(groups(chip.name))} groups"],
        ["Evidence", kinds],
        ["Source", chip.source],
        ["Spec", link(f"`{file}`", f"sources/{file}")],
    ]
    return table(["", ""], rows)


def _notes(chip: Architecture) -> Iterator[str]:
    if chip.notes:
        yield "\n".join(f"- {note}" for note in chip.notes)


def _unknown(chip: Architecture) -> Iterator[str]:
    if not chip.unknown:
        return
    yield "## Instructions of unknown arithmetic"
    yield "The chip has them; what they compute is not known well enough for a model: no command runs them."
    rows: dict[str, list[str]] = {}
    for one in chip.unknown:
        rows.setdefault(one.why, []).extend(f"`{name}`" for name in one.names())
    yield table(["Instructions", "Why"], [[", ".join(names), why] for why, names in rows.items()])


# The instruction table --------------------------------------------------------------------------------------


def _instructions(architecture: str) -> Iterator[str]:
    yield (
        "One row for each group of instructions that computes by one rule; its page has the steps, the "
        "datapath and the vectors. F: fraction bits kept after the alignment shift. Floor: the least "
        "exponent that terms are aligned to. RZ, RNE, RD, RU: round toward zero, to nearest even, down, up. "
        "Captured: recorded on hardware, in this repository; published: from the named paper; derived: "
        "argued from others, as said; the number leads to the source below the table. N, A and B in "
        "machine names: any of the sizes or operand types of the row."
    )
    floats = [group for group in groups(architecture) if group.representative.formats["d"].is_float]
    others = [group for group in groups(architecture) if not group.representative.formats["d"].is_float]
    for title, found in (("Floating point", floats), ("Integer and binary", others)):
        native = [group for group in found if not group.representative.emulated]
        emulated = [group for group in found if group.representative.emulated]
        if native:
            yield f"### {title}"
            yield _instruction_table(native)
        if emulated:
            yield f"### {title}, emulated"
            yield "The chip has no such instruction: the compiler writes a sequence of others."
            yield _instruction_table(emulated)


def _instruction_table(found: Iterable[Group]) -> str:
    """The table, with the sources of its evidence as notes below it, and the algorithms' names in full."""
    machine, rows = "", []
    found, notes = list(found), dict[str, int]()
    for group in found:
        names = _machine_names(group)
        machine = architectures.get_architecture(group.architecture).maker.heading
        rows.append(
            [
                link(group.title, group.path),
                names,
                algorithm_text(group),
                parameter_text(group),
                evidence_text(group, notes),
            ]
        )
    listed = "\n".join(f"{number}. {source}" for source, number in notes.items())
    shown = table(["Instructions", machine, "Algorithm", "Parameters", "Evidence"], rows)
    return "\n\n".join(part for part in (shown, _in_full(found), "Evidence:", listed) if part)


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
    told = [f"{name}: {title[:1].lower()}{title[1:]}" for name, title in titles.items() if name.isupper()]
    return f"{'; '.join(told)}." if told else ""


def _machine_names(group: Group) -> str:
    """What the instructions are called by the machine: patterns of its mnemonics, or their own names."""
    if not group.representative.sass:
        return ", ".join(f"`{ins.name}`" for ins in group.variants)
    if group.representative.emulated:
        return " ".join(f"`{word}`" for word in group.representative.sass)
    return sass_text.cell(group.variants)


def algorithm_text(group: Group) -> str:
    """The algorithm of a group with its steps: "FDA over K = 8; 2 x FDA of 8 for K = 16"."""
    programs = [(ins, program_text(ins)) for ins in group.variants]
    # K alone does not tell.
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


def _changes(found: Changes) -> Iterator[str]:
    titles = {name: architectures.get_architecture(name).title for name in (found.old, found.new)}
    by_program = generations.by_program(found)
    different = [
        pairs
        for pairs in by_program.values()
        if generations.tally(pairs[0]).count or generations.tally(pairs[0]).nan_payloads
    ]
    equal = [pairs for pairs in by_program.values() if pairs not in different]
    tried = sum(generations.tally(pairs[0]).tried for pairs in by_program.values())
    yield (
        f"{len(found.pairs):,} instructions exist on both. Both models ran {tried:,} dot products, every "
        f"kind of {link('stimulus', 'vectors.md')} once for each pair of different programs and operand "
        f"formats: {sum(map(len, equal)):,} instructions gave the same bits, {sum(map(len, different)):,} "
        f"did not. {len(found.added):,} are new, {len(found.gone):,} are gone."
    )
    if different:
        yield "### Other results"
        yield from _different(different, titles[found.old], titles[found.new])
    if equal:
        yield "### Same results"
        yield _same(equal)
    emulated = [pair for pair in found.pairs if pair.became_emulated or pair.became_native]
    if emulated:
        yield "### Native and emulated"
        yield _emulated(emulated)
    for title, members in (("New", found.added), ("Gone", found.gone)):
        if members:
            yield f"### {title}"
            yield _listed(members)


def _different(found: list[list[Pair]], old: str, new: str) -> Iterator[str]:
    merged: dict[tuple[str, str], list[list[Pair]]] = {}
    for pairs in found:
        merged.setdefault((group_of(pairs[0].new).slug, _why(pairs[0])), []).append(pairs)
    rows = []
    for (_, why), several in merged.items():
        total = generations.together(generations.tally(pairs[0]) for pairs in several)
        share = f"{total.count:,} of {total.tried:,} ({total.count / total.tried:.1%})"
        nan = f", {total.nan_payloads:,} NaN words" if total.nan_payloads else ""
        worst = f"{total.worst} ({total.different[total.worst] / (total.tried // len(total.different)):.0%})"
        rows.append([_names_text([pair.new for pairs in several for pair in pairs]), share + nan, worst, why])
    bold = any("**" in why for _, why in merged)
    yield "The same operands, other bits. The last column lists what changed." + (
        f" Parameters in bold explain the example: {old} with them alone answers as {new} does."
        if bold
        else ""
    )
    yield table(["Instructions", "Different results", "Most in stimulus kind", "What changed"], rows)
    yield from _examples(found, old, new)


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
    told = [f"another {'sequence' if same else 'algorithm'}: {old} became {new}"] if old != new else []
    told += [
        f"{LABELS.get(name, name)}: {_plain(x)} became {_plain(y)}"
        for name, x, y in changed_parameters(pair.old, pair.new)
    ]
    return "; ".join(told) or "several parameters"


def _plain(value: object) -> str:
    return (
        "none"
        if value is None
        else f"{value:#x}"
        if isinstance(value, int) and value > 0xFFFF
        else str(value)
    )


def _examples(found: list[list[Pair]], old: str, new: str) -> Iterator[str]:
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
        yield from _example(list(pairs.values()), old, new)


def _example(pairs: list[Pair], old: str, new: str) -> Iterator[str]:
    """The example of the first pair, and where else the same numbers do the same."""
    result = generations.example(pairs[0])
    assert result is not None
    run, shortest = result
    others = ", ".join(f"`{pair.new.name}`" for pair in pairs[1:])
    same = f" The same numbers give the same results on {others}." if others else ""
    yield f"**{run.new.name}** ({shortest.kind}): {operands_text(run.new, shortest.operands_y)}.{same}"
    yield table(
        [old, new],
        [[result_text(run.old.formats["d"], shortest.x), result_text(run.new.formats["d"], shortest.y)]],
    )
    yield code("\n".join(command(ins, shortest.operands_y) for ins in (run.old, run.new)), "console")


def _same(found: list[list[Pair]]) -> str:
    """Groups whose instructions all gave the same bits, with how many and how hard it was tried."""
    table_rows: dict[str, list[int]] = {}
    for pairs in found:
        for pair in pairs:
            group = group_of(pair.new)
            entry = table_rows.setdefault(link(group.title, group.path), [0, 0])
            entry[0] += 1
        group = group_of(pairs[0].new)
        table_rows[link(group.title, group.path)][1] += generations.tally(pairs[0]).tried
    rows = [
        [name, f"{count:,}", f"{tried:,}" if tried else "as above"]
        for name, (count, tried) in table_rows.items()
    ]
    return table(["Instructions", "Count", "Dot products tried"], rows)


def _emulated(pairs: list[Pair]) -> str:
    """Native against emulated, one row for each group and pattern of machine names."""
    by_group: dict[str, list[Pair]] = {}
    for pair in pairs:
        group = group_of(pair.new)
        by_group.setdefault(link(group.title, group.path), []).append(pair)
    rows = []
    for name, found in by_group.items():
        for before, olds in sass_text.patterns([pair.old for pair in found]).items():
            news = [pair.new for pair in found if pair.old in olds]
            after = " or ".join(
                dict.fromkeys(
                    _becomes(ins, text) for text, same in sass_text.patterns(news).items() for ins in same
                )
            )
            rows.append([name, len(olds), _becomes(olds[0], before), after])
    old, new = (
        architectures.get_architecture(ins.architecture).title for ins in (pairs[0].old, pairs[0].new)
    )
    return table(["Instructions", "Count", old, new], rows)


def _becomes(ins: Instruction, text: str) -> str:
    return f"{'emulated' if ins.emulated else 'native'}: {text}"


def _names_text(members: list[Instruction]) -> str:
    """The groups of instructions, each with how many of them."""
    found: dict[str, list[Instruction]] = {}
    for ins in members:
        group = group_of(ins)
        found.setdefault(link(group.title, group.path), []).append(ins)
    return "; ".join(
        f"{name}: `{some[0].name}`{f' and {len(some) - 1:,} more' if len(some) > 1 else ''}"
        for name, some in found.items()
    )


def _listed(members: Iterable[Instruction]) -> str:
    counts: dict[str, int] = {}
    for ins in members:
        group = group_of(ins)
        name = link(group.title, group.path)
        counts[name] = counts.get(name, 0) + 1
    return table(["Instructions", "Count"], [[name, f"{count:,}"] for name, count in counts.items()])
