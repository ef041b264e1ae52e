"""How an instruction computes: formats, steps with their parameters,
diagrams and the width of every register."""

from __future__ import annotations

from typing import Any

from golden.errors import UnknownNameError
from golden.explain import specification
from golden.explain.markdown import figure, link, table
from golden.explain.specification import Chain
from golden.identify.probe.sum_properties import floor_hidden
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.number.formats import formats as builtin
from golden.program.algorithms import Algorithm, get_algorithm
from golden.program.program import Operation
from golden.program.widths import Node, operation_nodes
from golden.publish.families import Group
from golden.publish.pictures import chain as chain_picture
from golden.publish.pictures import datapath as datapath_picture
from golden.publish.pictures import formats as format_pictures
from golden.publish.pictures import tree as tree_picture
from golden.publish.templating import render
from golden.publish.variants import split_text

# Formats ----------------------------------------------------------------------------------------------------


def formats(group: Group) -> str:
    """Which operand has which formats, and the bit fields of each."""
    used = used_formats(group)
    operands: dict[str, list[str]] = {}
    for ins in group.variants:
        for operand, fmt in ins.own_formats.items():
            operands.setdefault(fmt.name, []).append(operand)
    rows = [
        (_format_link(fmt), ", ".join(dict.fromkeys(operands[fmt.name])), fmt.bits, *_format_cells(fmt))
        for fmt in used
    ]
    head = ("Format", "Operands", "Bits", "Fields", "Bias", "Exponents", "Largest", "Special codes")
    pictures = [
        figure(
            format_pictures.bit_fields(fmt, f"bits-{fmt.name}"),
            f"{fmt.name}: bit fields, most significant bit left.",
        )
        for fmt in used
    ]
    return "\n\n".join([table(head, rows), *pictures])


def used_formats(group: Group) -> list[Format]:
    """The formats of the operands of all variants, in order of first use."""
    return list({fmt.name: fmt for ins in group.variants for fmt in ins.own_formats.values()}.values())


def _format_link(fmt: Format) -> str:
    return link(fmt.name, f"formats/{fmt.name}.md") if fmt.name in builtin() else fmt.name


_SPECIALS = {
    "ieee": "infinities and NaNs as IEEE 754",
    "all_ones_nan": "NaN: all ones; no infinity",
    "negative_zero_nan": "NaN: the code of -0; no infinity",
    "none": "none",
}


def _format_cells(fmt: Format) -> tuple[str, ...]:
    facts = specification.format_dict(fmt)
    if not fmt.is_float:
        return (
            "two's complement" if fmt.signed else "unsigned",
            "-",
            "-",
            str(fmt.decode(fmt.largest).value),
            "-",
        )
    fields = f"{'1 sign + ' if fmt.signed else ''}{fmt.exponent_bits} exponent + {fmt.fraction_bits} fraction"
    if fmt.ignored_low or fmt.ignored_high:
        fields += f" ({_count_bits(fmt.ignored_low + fmt.ignored_high)} ignored)"
    return (
        fields,
        str(fmt.bias),
        f"{fmt.min_exponent} .. {fmt.max_exponent}",
        facts["largest"],
        _SPECIALS[fmt.specials],
    )


def _count_bits(count: int) -> str:
    return f"{count} bit" if count == 1 else f"{count} bits"


# Steps ------------------------------------------------------------------------------------------------------


def steps(group: Group) -> str:
    """Every chain of operations: slices, parameters, steps in words;
    the order of the operations as a picture."""
    ins, chain = group.representative, ""
    if len(ins.program.operations) > 1:
        caption = f"The operations of {ins.name} and what they hand on."
        chain = figure(chain_picture.program(ins, "program"), caption)
    others = dict.fromkeys(split_text(each) for each in group.variants)
    others.pop(split_text(ins))
    return render(
        "steps",
        ins=ins,
        several=len(group.variants) > 1,
        sum=specification.sum_text(ins),
        chain_picture=chain,
        chains=[_chain(group, chain) for chain in specification.chains(ins)],
        tree_picture=figure(
            tree_picture.summation_tree(ins, "tree"),
            "Summation tree: what is added together, and in which order.",
        ),
        not_drawn=list(others),
    )


def _chain(group: Group, chain: Chain) -> dict[str, Any]:
    """Operations of one algorithm, one after the other."""
    ins, operation = group.representative, chain[0][1]
    algorithm = algorithm_of(operation)
    return {
        "title": specification.chain_title(ins, chain),
        "slices": specification.slices_table(chain),
        "algorithm": algorithm,
        "parameters": parameters(operation),
        "source": "" if algorithm is None else " ".join(algorithm.source.split()),
        "hidden_floor": _hidden_floor(group, operation),
        "steps": specification.steps_list(ins, operation),
    }


def _hidden_floor(group: Group, operation: Operation) -> int | None:
    """The exponent floor where no operands of any variant can show it."""
    values = dict(operation.parameters)
    floor, kept = values.get("exponent_floor"), values.get("fraction_bits")
    if floor is None or kept is None or not all(floor_hidden(ins, floor, kept) for ins in group.variants):
        return None
    return int(floor)


def algorithm_of(operation: Operation) -> Algorithm | None:
    """The algorithm's file; None where a unit writes its steps out itself."""
    try:
        return get_algorithm(operation.algorithm)
    except UnknownNameError:
        return None


_SYMBOLS = {"F": "glossary.md#fraction-bits", "e_zero": "glossary.md#exponent-floor"}
"""Where the papers' symbols are explained."""


def parameters(operation: Operation) -> list[list[str]]:
    """The parameters of an operation with symbol, value and meaning; empty without parameters."""
    algorithm = algorithm_of(operation)
    if algorithm is None:
        return []
    declared: dict[str, Any] = algorithm.parameters or {}
    return [
        [
            f"`{name}`",
            _symbol(declared[name]),
            _shown(declared[name], value),
            declared[name].get("meaning", ""),
        ]
        for name, value in operation.parameters
    ]


def _symbol(rule: dict[str, Any]) -> str:
    symbol: str = rule.get("symbol", "")
    return link(symbol, _SYMBOLS[symbol]) if symbol in _SYMBOLS else symbol


def _shown(rule: dict[str, Any], value: Any) -> str:
    if rule["type"] == "word":
        return f"{value:#x}"
    return ", ".join(value) if isinstance(value, list) else str(value)


# Datapath ---------------------------------------------------------------------------------------------------


def datapath(group: Group) -> str:
    """The block diagram and the widths of every distinct operation."""
    ins = group.representative
    chains = [_drawn(group, number, chain) for number, chain in enumerate(specification.chains(ins))]
    return render("datapath", head=specification.NODE_HEAD, chains=chains)


def _drawn(group: Group, number: int, chain: Chain) -> dict[str, Any]:
    ins, (index, operation) = group.representative, chain[0]
    which = f"operation {index}" if len(chain) == 1 else f"operations {index} to {chain[-1][0]}"
    picture = datapath_picture.datapath(ins, index, f"datapath{number}")
    title = specification.algorithm_title(ins, operation)
    return {
        "which": which,
        "picture": figure(picture, f"Datapath of {which}: {title}."),
        "own": specification.node_rows(ins, operation),
        "widest": widest_rows(group, operation),
    }


def widest_rows(group: Group, operation: Operation) -> list[tuple[str, ...]]:
    """The rows of the table of widths for a unit that serves all variants: of each register the most that
    any needs."""
    alike = [
        (step.op, nodes)
        for ins in group.variants
        for other in ins.program.operations
        if (other.algorithm, other.parameters) == (operation.algorithm, operation.parameters)
        for step, nodes in operation_nodes(ins, other)
    ]
    found: dict[tuple[str, str], list[Node]] = {}
    for op, nodes in alike:
        for node in nodes:
            found.setdefault((op, node.register), []).append(node)
    return [(op, register, *_widest(nodes)) for (op, register), nodes in found.items()]


def _widest(nodes: list[Node]) -> tuple[str, ...]:
    formats = {node.format.name: node.format for node in nodes if node.format}
    count, whole, fraction = (
        max(getattr(node, name) for node in nodes) for name in ("count", "integer_bits", "fraction_bits")
    )
    signed = int(any(node.signed for node in nodes))
    width = (
        f"{next(iter(formats.values())).bits} ({'/'.join(formats)})"
        if formats
        else str(signed + whole + fraction)
    )
    low, high = min(node.exponents[0] for node in nodes), max(node.exponents[1] for node in nodes)
    exponents = "fixed point" if nodes[0].fixed else f"{low} .. {high}"
    return str(count), str(signed), str(whole), str(fraction), width, exponents


def notes(ins: Instruction) -> list[str]:
    """What the algorithms' files remark."""
    found = [algorithm_of(operation) for operation in ins.program.operations]
    return list(
        dict.fromkeys(" ".join(note.split()) for algorithm in found if algorithm for note in algorithm.notes)
    )
