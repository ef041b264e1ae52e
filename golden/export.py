"""An instruction's specification as a document: for machines (`specification`) and for readers (`to_markdown`).

Everything is derived from the same program that the models run, and the cells of the special-value table are executed,
so the document cannot say anything that the model does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from golden import stimuli
from golden.errors import UnknownNameError
from golden.formats import Format
from golden.instruction import Instruction
from golden.program import Algorithm, Operation, Step, get_algorithm
from golden.trace import describe, float_text
from golden.widths import Node, operation_nodes

_MODES = {
    "toward_zero": "toward zero (cut)",
    "nearest_even": "to nearest, ties to even",
    "nearest_away": "to nearest, ties away from zero",
    "down": "down (toward minus infinity)",
    "up": "up (toward plus infinity)",
}
_OVERFLOWS = {
    "infinity": "becomes infinity",
    "largest": "becomes the largest finite number",
    "ieee": "by IEEE 754 (depends on the mode)",
    "wrap": "wraps modulo 2**width",
    "saturate": "clamps to the range",
}
_ZERO_SIGNS = {
    "positive": "+0",
    "signed": "signed",
    "signed_underflow": "+0, but keeps its sign where a number underflows",
}
_ZEROS = {
    "ignored": "zeros do not take part",
    "maximum": "zeros take part with their encoded exponent",
    "sticky": "zeros do not take part, but set the sticky bit where they lie below all kept bits",
}
_FLUSHES = {"none": "", "signed": "subnormal results become zero of their sign", "positive": "subnormal results become +0"}


_OPPOSITES = {
    "first": "where both signs occur with the sign of the first one",
    "last": "where both signs occur with the sign of the last one",
    "positive": "where both signs occur the positive one",
    "negative": "where both signs occur the negative one",
}
NODE_HEAD = ("After", "Register", "Count", "Sign", "Integer bits", "Fraction bits", "Width", "Exponents")


def specification(ins: Instruction) -> dict[str, Any]:
    """Returns the whole specification as plain values."""
    m, n, k = ins.shape
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
        "formats": {operand: format_dict(fmt) for operand, fmt in ins.formats.items()},
        "operations": [_operation_dict(ins, index, operation) for index, operation in enumerate(ins.program.operations)],
        "special_values": special_values(ins),
        "evidence": {
            "kind": ins.evidence.kind,
            "source": ins.evidence.source,
            "vectors": ins.evidence.vectors,
            "device": ins.evidence.device,
        },
        "sources": _sources(ins),
        "notes": [note for algorithm in _algorithms(ins) for note in algorithm.notes],
    }


def _algorithms(ins: Instruction) -> Iterator[Algorithm]:
    for name in ins.program.algorithms:
        try:
            yield get_algorithm(name)
        except UnknownNameError:
            continue  # 'steps': a unit written out in its own file


def _sources(ins: Instruction) -> list[str]:
    sources = [ins.source] + [f"{algorithm.name}: {algorithm.source}" for algorithm in _algorithms(ins)]
    return [" ".join(source.split()) for source in sources if source]


def format_dict(fmt: Format) -> dict[str, Any]:
    """One number format as plain values."""
    if not fmt.is_float:
        return {"name": fmt.name, "kind": "integer", "bits": fmt.bits, "signed": fmt.signed, "storage": fmt.storage}
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
    try:
        title = get_algorithm(operation.algorithm).title
    except UnknownNameError:
        title = ins.variables.get("title", ins.name)
    steps = [
        {"step": step.op, "text": step_text(step), "nodes": [node.as_dict() for node in nodes]}
        for step, nodes in operation_nodes(ins, operation)
    ]
    return {
        "index": index,
        "algorithm": operation.algorithm,
        "title": title,
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
    runs = [[k for _, k in run] for _, run in groupby(enumerate(k_index), lambda pair: pair[1] - pair[0])]
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(parts) or "none"


# Steps in words ----------------------------------------------------------------------------------------------------------


def step_text(step: Step) -> str:
    """One step with its parameters filled in, as a sentence."""
    texts = {
        "flush": _flush_text,
        "hidden_bit": _hidden_bit_text,
        "multiply": _multiply_text,
        "scale": _scale_text,
        "special_values": _special_text,
        "align": _align_text,
        "sum": _sum_text,
        "normalize": _normalize_text,
        "fma": _fma_text,
        "round": _round_text,
    }
    return texts[step.op](step)


def _names(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _group_text(step: Step) -> str:
    if step.group is None:
        return ""
    kind, size = step.group
    return f" in groups of {size} neighbours" if kind == "contiguous" else f" in {size} interleaved groups (k modulo {size})"


def _nan_text(step: Step) -> str:
    return "" if step.nan is None else f"; a NaN is {step.nan:#x}"


def _flush_text(step: Step) -> str:
    return f"Subnormal {_names(step.of)} become {'+0' if step.flush == 'positive' else 'zero of their sign'}."


def _hidden_bit_text(step: Step) -> str:
    zeros = "; zeros get it as well" if step.zeros == "set" else ""
    return f"Subnormal {_names(step.of)} get the hidden bit of normal numbers{zeros}."


def _zero_times_infinity_text(step: Step) -> str:
    return "" if step.zero_times_infinity == "nan" else f"; zero times infinity is {step.zero_times_infinity}"


def _multiply_text(step: Step) -> str:
    if step.operation != "product":
        return f"{step.to} = a {step.operation.upper()} b, bit by bit."
    text = f"{step.to} = a * b, exact"
    if step.format is not None:
        flush = f"; {_FLUSHES[step.flush]}" if step.flush != "none" else ""
        text = f"{step.to} = a * b, rounded to {step.format.name} {_MODES[step.rounding]}{flush}{_nan_text(step)}"
    elif step.normalize:
        text += ", normalised to a significand in [1, 2)"
    else:
        text += ", not normalised (exponent e_a + e_b)"
    if step.overflow_exponent is not None:
        text += f"; 2**{step.overflow_exponent} and above becomes infinity"
    return f"{text}{_zero_times_infinity_text(step)}."


def _scale_text(step: Step) -> str:
    return f"Multiply {_names(step.of)} by the product of the two block scales, exact; the scale exponents are added."


def _special_text(step: Step) -> str:
    nan = f"the NaN {(step.nan or 0):#x}"
    if step.opposite_infinities != "nan":
        return f"A NaN in {_names(step.of)} gives {nan}; infinities give an infinity, {_OPPOSITES[step.opposite_infinities]}."
    return (
        f"NaN in {_names(step.of)}, infinity times zero, or infinities of both signs give {nan}; "
        "infinities of one sign give that infinity. Otherwise go on."
    )


def _align_text(step: Step) -> str:
    bits = dict(step.fraction_bits)
    widths = str(next(iter(bits.values())))
    if len(set(bits.values())) > 1:
        widths = ", ".join(f"{value} for {name}" for name, value in bits.items())
    floor = f", at least {step.floor}" if step.floor is not None else ""
    text = (
        f"Align {_names(step.of)}{_group_text(step)} to their largest exponent{floor} ({_ZEROS[step.zeros]}); "
        f"fraction bits kept: {widths}; bits below round {_MODES[step.rounding]}"
    )
    if step.sticky:
        gap = f" (the {step.sticky_gap} bits right below the kept ones are not seen)" if step.sticky_gap else ""
        text += f"; one sticky bit below tells that something was cut{gap}"
    for name, window in step.window:
        text += f"; {name} more than {window} below the largest exponent counts as zero"
    for name, rule in step.left_out:
        text += f"; {name} does not enter the maximum and is {rule} where it lies above"
    if step.shift_limit is not None:
        text += f"; a shift of more than {step.shift_limit} counts as {step.shift_limit}"
    return text + "."


def _sum_text(step: Step) -> str:
    what = f"{step.to} = sum of {_names(step.of)}{_group_text(step)}"
    if step.order == "exact":
        fixed = f", carried with exponent {step.exponent}" if step.exponent is not None else ""
        wraps = f"; the register has {step.width} integer bits and wraps" if step.width is not None else ""
        cancelled = "; a sum of zero loses its exponent" if step.cancelled == "zero" else ""
        return f"{what}, exact{fixed}{wraps}{cancelled}."
    order = "as a balanced tree of two-input additions" if step.order == "tree" else "one after the other"
    flush = f"; {_FLUSHES[step.flush]}" if step.flush != "none" else ""
    name = step.format.name if step.format else "the result format"
    clamp = ", clamped to its range" if step.overflow == "saturate" else ""
    return f"{what}, {order}, each addition rounded to {name} {_MODES[step.rounding]}{clamp}{flush}{_nan_text(step)}."


def _normalize_text(step: Step) -> str:
    bits = ", ".join(str(value) for value in dict.fromkeys(value for _, value in step.fraction_bits))
    least = f", exponent at least {step.min_exponent}" if step.min_exponent is not None else ""
    return f"Normalise {_names(step.of)}{least}, keep {bits} fraction bits, round {_MODES[step.rounding]}."


def _fma_text(step: Step) -> str:
    start = {"c": "from c", "zero": "from +0", "product": "from the first product, rounded"}[step.start]
    name = step.format.name if step.format else "the result format"
    order = f"; the first NaN among {', '.join(step.nan_order)} is handed on, quieted" if step.nan_order else ""
    return (
        f"{step.to} = chain of fused multiply-adds {start}{_group_text(step)}, k ascending, each rounded to {name} "
        f"{_MODES[step.rounding]}{order}{_nan_text(step)}{_zero_times_infinity_text(step)}."
    )


def _round_text(step: Step) -> str:
    name = step.format.name if step.format else "the result format"
    bits = f", {step.result_fraction_bits} fraction bits" if step.result_fraction_bits is not None else ""
    flush = f"; {_FLUSHES[step.flush]}" if step.flush != "none" else ""
    sign = _ZERO_SIGNS[step.zero]
    gap = f"; the {step.sticky_gap} bits right below the round bit are not seen" if step.sticky_gap else ""
    carry = "; a subnormal that rounds up to the least normal number becomes zero" if step.subnormal_carry == "lost" else ""
    zero = f"; a zero is {sign}" if step.format is not None and step.format.is_float else ""
    return (
        f"Round {_names(step.of)} to {name}{bits} {_MODES[step.rounding]}; overflow {_OVERFLOWS[step.overflow]}"
        f"{gap}{zero}{flush}{carry} -> {step.to}."
    )


# Special values, executed ------------------------------------------------------------------------------------------------


def special_values(ins: Instruction) -> list[dict[str, Any]]:
    """Runs the reference model on the questions that a reader asks first; rows that a format cannot express are left out."""
    rows = []
    for question, a, b, c, scale in _cases(ins):
        if None in (*a, *b, c, scale):
            continue
        operands = _operands(ins, a, b, c, scale)
        code = ins.reference_dot(**operands)
        digits = (ins.formats["d"].bits + 3) // 4
        rows.append({"case": question, "d": f"0x{code:0{digits}x}", "value": describe(ins.formats["d"].decode(code))})
    return rows


def _cases(ins: Instruction) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...], Any, Any]]:
    """(question, first a codes, first b codes, c code, NaN scale or 0): everything else is zero; None: not expressible."""
    fa, fb, fc = (ins.formats[name] for name in "abc")
    one_a, one_b, one_c = stimuli.one(fa), stimuli.one(fb), stimuli.one(fc)
    minus_a, minus_c, minus_zero_a, minus_zero_c = (_negative(f, x) for f, x in ((fa, one_a), (fc, one_c), (fa, 0), (fc, 0)))
    k, least_c = ins.stored_k, 1 << fc.ignored_low
    if fa.is_float:
        yield "a NaN in a", (fa.nan,), (one_b,), 0, 0
        yield "a NaN in b", (one_a,), (fb.nan,), 0, 0
        yield "inf * 0", (fa.infinity,), (0,), 0, 0
        yield "inf * 1", (fa.infinity,), (one_b,), 0, 0
        yield "inf * 1 + (-inf) * 1", (fa.infinity, _negative(fa, fa.infinity)) if k > 1 else (None,), (one_b, one_b), 0, 0
        yield "inf * 1 + c = -inf", (fa.infinity,), (one_b,), _negative(fc, fc.infinity), 0
    if fc.is_float:
        payload = None if fc.nan is None or fc.fraction_bits < 3 else fc.nan | least_c
        yield "c = a quiet NaN with other payload bits", (0,), (0,), payload, 0
        yield "c = a signalling NaN", (0,), (0,), None if fc.infinity is None else fc.infinity | least_c, 0
        yield "c = -inf, products zero", (0,), (0,), _negative(fc, fc.infinity), 0
        yield "c = -0, products +0", (0,), (0,), minus_zero_c, 0
        yield "c = -0, products -0", (minus_zero_a,) * k, (0,) * k, minus_zero_c, 0
        yield "c = least subnormal, products zero", (0,), (0,), least_c, 0
    yield "1 * 1 + c = -1", (one_a,), (one_b,), minus_c, 0
    yield "(-1) * 1 + c = 0", (minus_a,), (one_b,), 0, 0
    yield "all a and b largest, c = 0", (fa.largest,) * k, (fb.largest,) * k, 0, 0
    yield "all a and b largest, c = largest", (fa.largest,) * k, (fb.largest,) * k, fc.largest, 0
    yield "least a * least b, c = 0", (1 << fa.ignored_low,), (1 << fb.ignored_low,), 0, 0
    if ins.scale_block is not None:
        yield "a NaN scale, all data zero", (0,), (0,), 0, ins.formats["scale_a"].nan


def _negative(fmt: Format, code: int | None) -> int | None:
    """The code of the negated number, None where the format has none (unsigned, or -0 is a NaN)."""
    if code is None or not fmt.signed or (code == 0 and (not fmt.is_float or fmt.specials == "negative_zero_nan")):
        return None
    return int(stimuli.negate(fmt, np.array([code], fmt.dtype))[0])


def _operands(ins: Instruction, a: tuple[int, ...], b: tuple[int, ...], c: int, scale: int) -> dict[str, Any]:
    """Fills one dot product: products first, the rest zeros, scales one, metadata the lowest legal columns."""
    shapes = ins.operand_shapes(matrices=False)
    operands: dict[str, Any] = {
        name: np.zeros(shape, ins.formats[name].dtype) for name, shape in shapes.items() if name != "metadata"
    }
    operands["a"][: len(a)] = a
    columns: Any = np.arange(ins.stored_k)
    if ins.pattern is not None:
        operands["metadata"] = np.full(shapes["metadata"], 0x4, np.uint8)
        columns = ins.pattern.columns(operands["metadata"])
    operands["b"][columns[: len(b)]] = b
    operands["c"] = np.array(c, ins.formats["c"].dtype)
    if ins.scale_block is not None:
        for name in ("scale_a", "scale_b"):
            operands[name][:] = stimuli.one(ins.formats[name])
        operands["scale_a"][0] = scale or operands["scale_a"][0]
    return operands


# Markdown ----------------------------------------------------------------------------------------------------------------


def to_markdown(ins: Instruction) -> str:
    """Returns the specification as a Markdown document."""
    data = specification(ins)
    parts = [f"# {ins.name}", _facts(data), "## Formats", _formats_table(data), "## Computation", _intro(data)]
    parts += _operations_text(ins)
    parts += [
        "## Special values",
        "Executed by the reference model; operands that a row does not name are zero.",
        _table(("Case", "d", "Value"), [(r["case"], f"`{r['d']}`", r["value"]) for r in data["special_values"]]),
    ]
    parts += ["## Evidence and sources", f"**{data['evidence']['kind']}**: {data['evidence']['source']}."]
    parts += ["\n".join(f"- {source}" for source in data["sources"])]
    if data["notes"]:
        parts += ["## Notes", "\n".join(f"- {' '.join(note.split())}" for note in data["notes"])]
    return "\n\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows])


def _facts(data: dict[str, Any]) -> str:
    shape = data["shape"]
    rows = [("Architecture", data["architecture"]), ("Shape", f"m = {shape['m']}, n = {shape['n']}, k = {shape['k']}")]
    if data["sass"]:
        rows.append(("SASS" + (" (emulated)" if data["emulated"] else ""), ", ".join(f"`{name}`" for name in data["sass"])))
    if data["blocks"] > 1:
        rows.append(("Independent blocks", str(data["blocks"])))
    if data["sparsity"]:
        rows.append(("Sparsity", f"{data['sparsity']}: {data['products']} stored elements of {shape['k']}"))
    if data["scale_block"]:
        rows.append(("Block scale", f"one scale for {data['scale_block']} elements"))
    return _table(("", ""), [*rows, ("Evidence", data["evidence"]["kind"])])


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
    return _table(("Operand", "Format", "Bits", "Sign+exponent+fraction", "Bias", "Exponents", "Remarks"), rows)


def _intro(data: dict[str, Any]) -> str:
    count = len(data["operations"])
    return f"d = c + sum of {data['products']} products, in {count} operation{'s' if count > 1 else ''}:"


def _operations_text(ins: Instruction) -> list[str]:
    """Operations that run the same steps (a chain) are described once, with the list of their slices."""
    numbered = list(enumerate(ins.program.operations))
    parts = []
    for _, run in groupby(numbered, key=lambda pair: (pair[1].algorithm, pair[1].steps, len(pair[1].k_index))):
        chain = list(run)
        data = _operation_dict(ins, *chain[0])
        numbers = f"{chain[0][0]}" if len(chain) == 1 else f"{chain[0][0]} to {chain[-1][0]}"
        parts.append(f"### Operation{'s' if len(chain) > 1 else ''} {numbers}: {data['title']}")
        parts.append(
            _table(
                ("Operation", "k", "Starts from", "Gives"),
                [(i, index_text(op.k_index), _start(op), f"{op.to} ({op.out_format.name})") for i, op in chain],
            )
        )
        if data["parameters"]:
            parts.append(f"Parameters: {parameters_text(data['parameters'])}.")
        parts.append("\n".join(f"{i}. **{step['step']}**: {step['text']}" for i, step in enumerate(data["steps"], 1)))
        parts.append(nodes_table(ins, chain[0][1]))
    return parts


def _start(operation: Operation) -> str:
    converted = f", a and b as {operation.operand_format.name}" if operation.operand_format else ""
    addends = f", adds {', '.join(operation.addends)}" if operation.addends else ""
    return f"{operation.seed} ({operation.seed_format.name}){addends}{converted}"


def parameters_text(parameters: dict[str, Any]) -> str:
    """An operation's parameters as "name = value, ..."; NaN words in hex."""
    return ", ".join(
        f"{name} = {value:#x}" if name == "nan" and isinstance(value, int) else f"{name} = {value}"
        for name, value in parameters.items()
    )


def nodes_table(ins: Instruction, operation: Operation) -> str:
    """The widths of every register that an operation writes, as a Markdown table."""
    return _table(NODE_HEAD, node_rows(ins, operation))


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
