"""Writes a special-function unit as C and CUDA: the tables and the sequences of spec/functions between the
operations of templates/c/functions.h. It is a second model of the same tables, in integers, one code at a
time.

    text = c_text("hopper")      # uint32_t mg_ex2_approx_ftz_f32(uint32_t), and one more for each function
"""

from __future__ import annotations

from pathlib import Path

from golden.functions.functions import Function, functions
from golden.functions.sequences import OPERAND, RESULT, Step, constant
from golden.functions.tables import Table
from golden.paths import plain_name

_TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "c" / "functions.h"
_LISTED = ("tanh",)
"""Tables whose block an exponent chooses: their segments lie in one array, with places."""


def c_text(architecture: str) -> str:
    """Returns the header of an architecture's unit.

    Raises:
        UnknownNameError: see golden.functions.functions.
    """
    known = functions(architecture)
    unit = next(iter(known.values()))
    text = _TEMPLATE.read_text(encoding="utf-8").replace("@ARCHITECTURE@", unit.architecture)
    text = text.replace("@TABLES@", "\n".join(map(_table, unit.tables.values())))
    bodies = [_function(one) for name, one in known.items() if not name.startswith("MUFU")]
    return text.replace("@FUNCTIONS@", "\n\n".join(bodies))


def c_name(name: str) -> str:
    """The C function of a PTX function or of an operation: mg_ex2_approx_f32, mg_MUFU_EX2."""
    return "mg_" + plain_name(name).replace(".", "_")


def _table(table: Table) -> str:
    rows = ["{" + ", ".join(map(str, row)) + "}" for row in table.scaled.T.tolist()]
    upper, lines = table.name.upper(), []
    starts, bits = table.places.tolist()
    if table.name in _LISTED:
        lines.append(f"MG_TABLE int64_t mg_{table.name}_all[][3] = {{{', '.join(rows)}}};")
        lines.append(f"MG_TABLE int mg_{table.name}_starts[] = {{{', '.join(map(str, starts))}}};")
        lines.append(f"MG_TABLE int mg_{table.name}_bits[] = {{{', '.join(map(str, bits))}}};")
        lines.append(f"#define MG_{upper}_FIRST ({table.blocks[0].exponent})")
    else:
        for block, (start, width) in enumerate(zip(starts, bits, strict=True)):
            own = ", ".join(rows[start : start + (1 << width)])
            lines.append(f"MG_TABLE int64_t mg_{table.name}_{block}[][3] = {{{own}}};")
        lines.append(f"#define MG_{upper}_BITS {bits[0]}")
    lines.append(f"#define MG_{upper}_LOW {table.low}")
    return "\n".join(lines)


def _function(function: Function) -> str:
    name = c_name(function.name)
    whole = name if not function.packed else f"{name}_half"
    lines = [f"MG_FUNCTION uint32_t {whole}(uint32_t {OPERAND})", "{"]
    written = sorted({step.target for step in function.steps} - {OPERAND})
    lines += [f"    {'int' if target[0] == 'P' else 'uint32_t'} {target} = 0;" for target in written]
    lines += [f"    {_statement(step)}" for step in function.steps]
    lines += [f"    return {RESULT};", "}"]
    if function.packed:
        lines.append(f"MG_FUNCTION uint32_t {name}(uint32_t x)")
        lines.append(f"{{\n    return {whole}(x & 0xffff) | {whole}(x >> 16) << 16;\n}}")
    return "\n".join(lines)


def _statement(step: Step) -> str:
    sources = [_source(source) for source in step.sources]
    if step.name.startswith("FSETP"):
        value = f"{c_name(step.name)}({sources[1]}, {sources[2]})"
    elif step.name == "FSEL":
        value = f"{sources[2]} ? {sources[0]} : {sources[1]}"
    elif step.name == "MOV":
        value = sources[0]
    else:
        value = f"{c_name(step.name)}({', '.join(sources)})"
    condition = f"if ({'!' if step.negated else ''}{step.predicate}) " if step.predicate else ""
    return f"{condition}{step.target} = {value};"


def _source(source: str) -> str:
    """A register, a magnitude, a predicate or a constant's code in C."""
    if source.startswith("|"):
        return f"({source.strip('|')} & ~MG_SIGN)"
    if source.lstrip("!")[0] in "RP":
        return source
    return f"{constant(source):#010x}u"
