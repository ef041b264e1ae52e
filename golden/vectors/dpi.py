"""An instruction as a DPI-C model: one C file, a SystemVerilog package and an example testbench, for any
simulator with DPI.

    files = write(golden.instruction("hopper", "HMMA.16816.F32"), "out", prefix="hmma")

The C file holds the general interpreter of golden/core and this instruction's program as constants, so that
it needs nothing but a C11 compiler. The package declares the imported function and a wrapper
that returns the result:

    function automatic logic [31:0] hmma_dot(input bit [255:0] a, input bit [255:0] b, input bit [31:0] c);

Every operand is a packed vector with element 0 in its least significant bits (golden/vectors/word.py); sparse
units also take `metadata` (a nibble a chunk), block-scaled ones `scale_a` and `scale_b`, units with modes
`mode`, whose unused codes end the simulation. The result of a unit with status flags is the word {flags, d}.
X and Z arrive as 0, as DPI converts them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from golden import __version__
from golden.errors import OperandError
from golden.files import escape
from golden.files.output import write_folder
from golden.files.templates import template_of
from golden.model.instruction import Instruction
from golden.model.program_text import CORE, INTERPRETER, core_source, program_source
from golden.program.flags import codes_by_mask
from golden.vectors.vectorset import VectorSet, default_set
from golden.vectors.word import WordLayout

_TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "dpi"
_UNITS = (*INTERPRETER, "mg_gather.c", "mg_run.c")
_EXAMPLES = 56
"""Vectors of the test bench that comes with a model."""


def default_prefix(ins: Instruction) -> str:
    """The names' common start: architecture and instruction as one identifier."""
    return re.sub(r"[^a-z0-9]+", "_", f"{ins.architecture}_{ins.name}".lower()).strip("_")


def write(ins: Instruction, folder: str | Path, prefix: str | None = None) -> list[Path]:
    """Writes PREFIX_dpi.c, PREFIX_pkg.sv, PREFIX_tb.sv, PREFIX_vectors.hex,
    Makefile, PREFIX.core (FuseSoC) and README.md into `folder`.

    Raises:
        OperandError: the unit keeps its accumulator; the prefix is no identifier of C and SystemVerilog; the
            formats of its modes take different bits.
        FileFormatError: the folder cannot be made or written.
    """
    prefix = default_prefix(ins) if prefix is None else prefix
    facts = _facts(ins, prefix)
    texts = _model(ins, prefix, facts) | {
        f"{prefix}_tb.sv": _filled(ins, "testbench.sv", facts),
        f"{prefix}_vectors.hex": _examples(ins),
        "Makefile": _filled(ins, "Makefile", facts),
        f"{prefix}.core": _filled(ins, "fusesoc.core", facts),
        "README.md": _filled(ins, "README.md", facts),
    }
    return write_folder(folder, texts)


def model_texts(ins: Instruction, prefix: str) -> dict[str, str]:
    """PREFIX_dpi.c and PREFIX_pkg.sv, the model itself, by name; for a testbench of another's making. Raises
    OperandError as `write`."""
    return _model(ins, prefix, _facts(ins, prefix))


def _model(ins: Instruction, prefix: str, facts: dict[str, Any]) -> dict[str, str]:
    return {
        f"{prefix}_dpi.c": _filled(ins, "model.c", facts),
        f"{prefix}_pkg.sv": _filled(ins, "package.sv", facts),
    }


def _filled(ins: Instruction, template: str, facts: dict[str, Any]) -> str:
    return template_of(_TEMPLATES / template).render(facts, instruction=_instruction(ins, template))


def _check(ins: Instruction, prefix: str) -> None:
    """Refuses what a model cannot be."""
    if ins.state:
        raise OperandError(
            f"{ins.name} keeps its accumulator; a DPI model keeps nothing: write its `stateless`, and hand "
            "each result back as c"
        )
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", prefix):
        raise OperandError(f"argument 'prefix' is '{prefix}', expected an identifier (letters, digits, _)")
    widths = {tuple((f.storage, f.bits) for f in u.formats.values()) for u in ins.mode_units.values()}
    if len(widths) > 1:
        raise OperandError(
            f"{ins.name} has modes whose formats take different bits; a DPI model has one width for each "
            "operand: write each of `mode_units` under a prefix of its own"
        )


def _instruction(ins: Instruction, template: str) -> str:
    """What is modelled, as the language of a template takes it: comments, except for the README."""
    name = f"{ins.architecture} {ins.name}"
    if template == "README.md":
        return escape.markdown(name)
    return escape.block_comment(name) if template.endswith(".c") else escape.line_comment(name)


def _facts(ins: Instruction, prefix: str) -> dict[str, Any]:
    """What the templates show."""
    _check(ins, prefix)
    layout = WordLayout.of(ins)
    units = [(unit, f"_{code}") for code, unit in ins.mode_units.items()] or [(ins, "")]
    return {
        "prefix": prefix,
        "version": __version__,
        "core": core_source(_UNITS),
        "names_of_the_core": _globals(),
        "programs": [program_source(unit.program, unit, suffix=suffix) for unit, suffix in units],
        "modes": list(ins.mode_units),
        "flags": codes_by_mask(ins.status) if ins.status else [],
        "ins": ins,
        "inputs": list(layout.operand_fields),
        "results": list(layout.result_fields),
        "fields": layout.fields,
        "width": layout.result_width,
        "word_width": layout.operand_width + layout.result_width,
        "examples": _EXAMPLES,
    }


def _examples(ins: Instruction) -> str:
    """A few vectors of every kind as readmemh words; the expected results come from the reference model."""
    vectors = default_set(ins, count=_EXAMPLES, seed=1)
    layout = WordLayout.of(ins)
    return "".join(
        f"{_word(layout, vectors, i):0{(layout.operand_width + layout.result_width + 3) // 4}x}\n"
        for i in range(_EXAMPLES)
    )


def _word(layout: WordLayout, vectors: VectorSet, i: int) -> int:
    one = {name: array[i : i + 1] for name, array in vectors.operands.items()}
    ins, dot = vectors.instruction, {name: array[0] for name, array in one.items()}
    expected = {"d": ins.reference_dot(**dot), "flags": ins.trace(**dot).flags or 0 if ins.status else 0}
    result = sum(expected[field.name] << field.lsb for field in layout.result_fields)
    operands = int.from_bytes(layout.pack_operands(one)[0].tobytes(), "little")
    return operands << layout.result_width | result


# The C model ------------------------------------------------------------------------------------------------


def _globals() -> list[str]:
    """Names that the core shows to the linker; each model renames them,
    so that one simulation can hold several."""
    headers = "".join((CORE / name).read_text() for name in _UNITS if name.endswith(".h"))
    return sorted(set(re.findall(r"^\w[\w ]*[ *](mg_\w+)\(", headers, flags=re.MULTILINE)))
