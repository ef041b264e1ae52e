"""An instruction's specification as a document:
for machines (`specification`) and for readers (`to_markdown`).

Everything is derived from the same program that the models run, and the cells of the special-value table are
executed, so the document cannot say anything that the model does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from golden.errors import UnknownNameError, counted, runs
from golden.explain.modes import modes_dict, modes_markdown
from golden.explain.trace import float_text
from golden.files import escape
from golden.files.escape import table
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.algorithms import Algorithm, get_algorithm
from golden.program.program import NO_SEED, Operation
from golden.program.state import PRODUCTS
from golden.program.widths import Node, operation_nodes
from golden.program.words import step_text

STATE_TEXT = "c is the result before, +0 after a reset and where the operand `clear` is 1"
LOAD_TEXT = "the operand c where the operand `load` is 1"
NODE_HEAD = ("After", "Register", "Count", "Sign", "Integer bits", "Fraction bits", "Width", "Exponents")


def state_text(ins: Instruction) -> str:
    """What c is in a unit that keeps its accumulator."""
    alone = " and ".join(f"`{name}`" for name in ins.alone)
    text = STATE_TEXT + (f", {LOAD_TEXT}" if ins.load else "")
    return text + (f"; the products that come with {alone} do not count" if alone else "")


def specification(ins: Instruction) -> dict[str, Any]:
    """Returns the whole specification as plain values."""
    from golden.explain.special_values import special_values  # needs the core, which no terminal page does

    m, n, k = ins.shape
    modes = modes_dict(ins)
    return {
        "instruction": ins.name,
        "architecture": ins.architecture,
        "sass": list(ins.sass),
        "emulated": ins.emulated,
        "family": ins.family,
        "shape": {"m": m, "n": n, "k": k},
        "blocks": ins.blocks,
        "products": ins.stored_k,
        "sparsity": ins.pattern.name if ins.pattern else None,
        "scale_block": ins.scale_block,
        "formats": {operand: format_dict(fmt) for operand, fmt in ins.own_formats.items()},
        "operations": [
            _operation_dict(ins.plain, index, operation)
            for index, operation in enumerate(ins.program.operations)
        ],
        **({} if modes is None else {"modes": modes}),
        **({"flags": list(ins.status)} if ins.status else {}),
        **({"accumulator": "state", "accumulator_text": state_text(ins)} if ins.state else {}),
        **({"load": PRODUCTS["load" in ins.alone]} if ins.load else {}),
        **({"clear": "alone"} if "clear" in ins.alone else {}),
        "special_values": special_values(ins),
        "evidence": {
            "kind": ins.evidence.kind,
            "source": ins.evidence.source,
            "vectors": ins.evidence.vectors,
            "device": ins.evidence.device,
        },
        "sources": sources(ins),
        "notes": [note for algorithm in _algorithms(ins) for note in algorithm.notes],
    }


def _algorithms(ins: Instruction) -> Iterator[Algorithm]:
    for name in ins.program.algorithms:
        try:
            yield get_algorithm(name)
        except UnknownNameError:
            continue  # 'steps': a unit written out in its own file


def sources(ins: Instruction) -> list[str]:
    """Where the instruction and its algorithms come from, a line each."""
    sources = [ins.source] + [f"{algorithm.name}: {algorithm.source}" for algorithm in _algorithms(ins)]
    return [" ".join(source.split()) for source in sources if source]


def sources_text(ins: Instruction) -> list[str]:
    """The sources as Markdown: sources of the specs unchanged, a unit's own source as the text in its
    file."""
    found = sources(ins)
    return [escape.markdown(found[0]), *found[1:]] if ins.is_custom and ins.source.strip() else found


def evidence_text(ins: Instruction) -> str:
    """Where the evidence comes from, as Markdown."""
    return escape.markdown(ins.evidence.source) if ins.is_custom else ins.evidence.source


def format_dict(fmt: Format) -> dict[str, Any]:
    """One number format as plain values."""
    if not fmt.is_float:
        return {
            "name": fmt.name,
            "kind": "integer",
            "bits": fmt.bits,
            "signed": fmt.signed,
            "storage": fmt.storage,
        }
    return {
        "name": fmt.name,
        "kind": "float",
        "bits": fmt.bits,
        "signed": fmt.signed,
        "exponent_bits": fmt.exponent_bits,
        "fraction_bits": fmt.fraction_bits,
        "bias": fmt.bias,
        "min_exponent": fmt.min_exponent,
        "max_exponent": fmt.max_exponent,
        "specials": fmt.specials,
        "ignored_low": fmt.ignored_low,
        "ignored_high": fmt.ignored_high,
        "storage": fmt.storage,
        "largest": float_text(fmt.decode(fmt.largest).value),
    }


def _operation_dict(ins: Instruction, index: int, operation: Operation) -> dict[str, Any]:
    steps = [
        {
            "step": step.op,
            "text": step_text(step, ins.is_integer),
            "nodes": [node.as_dict() for node in nodes],
        }
        for step, nodes in operation_nodes(ins, operation)
    ]
    return {
        "index": index,
        "algorithm": operation.algorithm,
        "title": algorithm_title(ins, operation),
        "k": index_text(operation.k_index),
        "seed": operation.seed,
        "seed_format": operation.seed_format.name,
        "addends": list(operation.addends),
        "operand_format": operation.operand_format.name if operation.operand_format else None,
        "result": operation.to,
        "result_format": operation.out_format.name,
        "parameters": dict(operation.parameters),
        "steps": steps,
    }


def index_text(k_index: tuple[int, ...]) -> str:
    """A list of k as ranges: "0-7", "0-1, 4-5, 8-9", "none"."""
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs(k_index)]
    return ", ".join(parts) or "none"


# Markdown ---------------------------------------------------------------------------------------------------


def to_markdown(ins: Instruction) -> str:
    """Returns the specification as a Markdown document."""
    data, count = specification(ins), len(ins.program.operations)
    parts = [
        f"# {escape.markdown(ins.name)}",
        _facts(data),
        *modes_markdown(ins, table),
        "## Formats",
        _formats_table(data),
        "## Computation",
        f"d = {sum_text(ins)}, in {counted(count, 'operation')}:",
    ]
    parts += _operations_text(ins.plain)
    parts += [
        "## Special values",
        "Executed by the reference model; operands that a row does not name are zero.",
        table(
            ("Case", "d", "Value"), [(r["case"], f"`{r['d']}`", r["value"]) for r in data["special_values"]]
        ),
    ]
    parts += ["## Evidence and sources", f"**{data['evidence']['kind']}**: {evidence_text(ins)}."]
    parts += ["\n".join(f"- {source}" for source in sources_text(ins))]
    if data["notes"]:
        parts += ["## Notes", "\n".join(f"- {' '.join(note.split())}" for note in data["notes"])]
    return "\n\n".join(parts) + "\n"


def _facts(data: dict[str, Any]) -> str:
    shape = data["shape"]
    rows = [
        ("Architecture", data["architecture"]),
        ("Shape", f"m = {shape['m']}, n = {shape['n']}, k = {shape['k']}"),
    ]
    if data["sass"]:
        rows.append(
            (
                "SASS" + (" (emulated)" if data["emulated"] else ""),
                ", ".join(f"`{name}`" for name in data["sass"]),
            )
        )
    if data["blocks"] > 1:
        rows.append(("Independent blocks", str(data["blocks"])))
    if data["sparsity"]:
        rows.append(("Sparsity", f"{data['sparsity']}: {data['products']} stored elements of {shape['k']}"))
    if data["scale_block"]:
        rows.append(("Block scale", f"one scale for {data['scale_block']} elements"))
    if "flags" in data:
        rows.append(("Status flags", f"{', '.join(data['flags'])} (bit 0 first)"))
    if data.get("accumulator"):
        rows.append(("Accumulator", data["accumulator_text"]))
    return table(("", ""), [*rows, ("Evidence", data["evidence"]["kind"])])


def _formats_table(data: dict[str, Any]) -> str:
    rows = []
    for operand, fmt in data["formats"].items():
        if fmt["kind"] == "integer":
            kind = "signed integer" if fmt["signed"] else "unsigned integer"
            rows.append((operand, fmt["name"], fmt["bits"], "", "", "", kind))
        else:
            fields = f"{int(fmt['signed'])}+{fmt['exponent_bits']}+{fmt['fraction_bits']}"
            rows.append(
                (
                    operand,
                    fmt["name"],
                    fmt["bits"],
                    fields,
                    fmt["bias"],
                    f"{fmt['min_exponent']} .. {fmt['max_exponent']}",
                    f"{fmt['specials']}, largest {fmt['largest']}",
                )
            )
    return table(
        ("Operand", "Format", "Bits", "Sign+exponent+fraction", "Bias", "Exponents", "Remarks"), rows
    )


def sum_text(ins: Instruction) -> str:
    """What a dot product of the unit adds: "c + sum of 16 products", "c + a" in an adder."""
    seed, terms = "c + " * ("c" not in ins.absent), "elements of a" if "b" in ins.absent else "products"
    one = {"products": "a * b"}.get(terms, "a") if ins.stored_k == 1 and not ins.scale_block else ""
    return seed + (one or f"sum of {ins.stored_k} {terms}")


Chain = list[tuple[int, Operation]]
"""Neighbouring operations that run the same steps, with their numbers."""


def chains(ins: Instruction) -> list[Chain]:
    """The operations of the program; those that run the same steps over slices of one size are one chain."""
    alike = groupby(
        enumerate(ins.program.operations),
        key=lambda pair: (pair[1].algorithm, pair[1].steps, len(pair[1].k_index)),
    )
    return [list(run) for _, run in alike]


def _operations_text(ins: Instruction) -> list[str]:
    return [part for chain in chains(ins) for part in (chain_title(ins, chain), *_chain_parts(ins, chain))]


def _chain_parts(ins: Instruction, chain: Chain) -> list[str]:
    """Operations that run the same steps (a chain) are described once, with the list of their slices."""
    parameters = dict(chain[0][1].parameters)
    heading = [f"Parameters: {parameters_text(parameters)}."] if parameters else []
    return [slices_table(chain), *heading, steps_list(ins, chain[0][1]), nodes_table(ins, chain[0][1])]


def chain_title(ins: Instruction, chain: Chain) -> str:
    """The heading of a chain: the numbers of its operations and the algorithm's title."""
    numbers = f"{chain[0][0]}" if len(chain) == 1 else f"{chain[0][0]} to {chain[-1][0]}"
    title = escape.markdown(algorithm_title(ins, chain[0][1]))
    return f"### Operation{'s' if len(chain) > 1 else ''} {numbers}: {title}"


def slices_table(chain: Chain) -> str:
    """What each operation of a chain takes and gives, as a Markdown table."""
    rows: list[tuple[Any, ...]] = [
        (i, index_text(op.k_index), _start(op), f"{op.to} ({op.out_format.name})") for i, op in chain
    ]
    return table(("Operation", "k", "Starts from", "Gives"), rows)


def steps_list(ins: Instruction, operation: Operation) -> str:
    """The steps of an operation as a numbered Markdown list."""
    integer = ins.is_integer
    return "\n".join(
        f"{i}. **{step.op}**: {step_text(step, integer)}" for i, step in enumerate(operation.steps, 1)
    )


def algorithm_title(ins: Instruction, operation: Operation) -> str:
    """The title of an operation's algorithm; of steps that a unit's own file writes out, the unit's title."""
    try:
        return get_algorithm(operation.algorithm).title
    except UnknownNameError:
        return ins.variables.get("title", ins.name)


def _start(operation: Operation) -> str:
    converted = f", a and b as {operation.operand_format.name}" if operation.operand_format else ""
    addends = f", adds {', '.join(operation.addends)}" if operation.addends else ""
    if operation.seed == NO_SEED:
        return f"no c{addends}{converted}"
    return f"{operation.seed} ({operation.seed_format.name}){addends}{converted}"


def parameters_text(parameters: dict[str, Any]) -> str:
    """An operation's parameters as "name = value, ..."; NaN words in hex."""
    return ", ".join(
        f"{name} = {value:#x}" if name == "nan" and isinstance(value, int) else f"{name} = {value}"
        for name, value in parameters.items()
    )


def nodes_table(ins: Instruction, operation: Operation) -> str:
    """The widths of every register that an operation writes, as a Markdown table."""
    return table(NODE_HEAD, node_rows(ins, operation))


def node_rows(ins: Instruction, operation: Operation) -> list[tuple[str, ...]]:
    """The rows of the table of widths."""
    return [
        (
            step.op,
            node.register,
            str(node.count),
            str(int(node.signed)),
            str(node.integer_bits),
            str(node.fraction_bits),
            f"{node.width} ({node.format.name})" if node.format else str(node.width),
            _exponents(node),
        )
        for step, nodes in operation_nodes(ins, operation)
        for node in nodes
    ]


def _exponents(node: Node) -> str:
    return "fixed point" if node.fixed else f"{node.exponents[0]} .. {node.exponents[1]}"
