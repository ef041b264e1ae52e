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
from collections.abc import Iterator
from pathlib import Path
from string import Template

from golden import __version__
from golden.errors import OperandError
from golden.files import escape
from golden.files.output import write_folder
from golden.model.instruction import Instruction
from golden.model.program_text import CORE, INTERPRETER, core_source, program_source
from golden.program.flags import codes_by_mask
from golden.vectors.vectorset import VectorSet, default_set
from golden.vectors.word import Field, WordLayout

_TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "dpi"
_UNITS = (*INTERPRETER, "mg_gather.c", "mg_run.c")
_EXAMPLES = 56
"""Vectors of the test bench that comes with a model."""
_FLAGS = "    uint8_t raised = 0;\n    call.flags = (mg_array){.data = (char *)&raised};\n"


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
    words = _words(ins, prefix)
    texts = _model(ins, prefix, words) | {
        f"{prefix}_tb.sv": _filled(ins, "testbench.sv", words),
        f"{prefix}_vectors.hex": _examples(ins),
        "Makefile": _filled(ins, "Makefile", words),
        f"{prefix}.core": _filled(ins, "fusesoc.core", words),
        "README.md": _filled(ins, "README.md", words),
    }
    return write_folder(folder, texts)


def model_texts(ins: Instruction, prefix: str) -> dict[str, str]:
    """PREFIX_dpi.c and PREFIX_pkg.sv, the model itself, by name; for a testbench of another's making. Raises
    OperandError as `write`."""
    return _model(ins, prefix, _words(ins, prefix))


def _model(ins: Instruction, prefix: str, words: dict[str, str]) -> dict[str, str]:
    return {
        f"{prefix}_dpi.c": _filled(ins, "model.c", words),
        f"{prefix}_pkg.sv": _filled(ins, "package.sv", words),
    }


def _filled(ins: Instruction, template: str, words: dict[str, str]) -> str:
    return _fill(template, words | {"instruction": _instruction(ins, template)})


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


def _fill(template: str, words: dict[str, str]) -> str:
    return Template((_TEMPLATES / template).read_text()).substitute(words)


def _words(ins: Instruction, prefix: str) -> dict[str, str]:
    _check(ins, prefix)
    layout = WordLayout.of(ins)
    inputs, results = layout.operand_fields, layout.result_fields
    width = layout.result_width
    flags = codes_by_mask(ins.status) if ins.status else []
    return {
        "prefix": prefix,
        "version": __version__,
        "core": core_source(_UNITS),
        "renamed": "\n".join(f"#define {name} {prefix}_{name}" for name in _globals()),
        "program": _programs(ins, flags),
        "c_program": "mg_program_of(mg_dpi_bits(mode, 0, 32))" if ins.modes else "&mg_the_program",
        "c_results": ", ".join(f"uint32_t *{field.name}" for field in results),
        "c_flags": _FLAGS * bool(flags),
        "c_raised": "    flags[0] = mg_flags_of[raised];\n" * bool(flags),
        "c_arguments": ", ".join(f"const uint32_t *{field.name}" for field in inputs),
        "c_unpack": "\n".join([*(_unpack(ins, f) for f in inputs if f.name != "mode"), *_missing(ins)]),
        "c_result": f"uint{ins.formats['d'].storage}_t",
        "d_width": str(results[-1].width),
        "sv_result": f"bit [{width - 1}:0]",
        "sv_arguments": ", ".join(f"input bit [{field.width - 1}:0] {field.name}" for field in inputs),
        "sv_outputs": ", ".join(f"output bit [{field.width - 1}:0] {field.name}" for field in results),
        "sv_results": "\n".join(f"    bit [{field.width - 1}:0] {field.name};" for field in results),
        "sv_result_names": ", ".join(field.name for field in results),
        "sv_word": "{flags, d}" if flags else "d",
        "sv_names": ", ".join(field.name for field in inputs),
        "sv_declarations": "\n".join(f"    bit [{field.width - 1}:0] {field.name};" for field in inputs),
        "word_width": str(layout.operand_width + width),
        "examples": str(_EXAMPLES),
        "fields": "\n".join(_describe(ins, field) for field in layout.fields),
    }


def _programs(ins: Instruction, flags: list[int]) -> str:
    """The program of each mode and which one is whose, or the only one; then the codes of status flags by
    the core's mask."""
    lines = [program_source(ins.program, ins)] if ins.modes is None else []
    if ins.modes is not None:
        cases = [f"    case {code}: return &mg_the_program_{code};" for code in ins.mode_units]
        lines += [program_source(unit.program, unit, suffix=f"_{c}") for c, unit in ins.mode_units.items()]
        lines += ["static const mg_program *mg_program_of(uint64_t mode) {", "    switch (mode) {", *cases]
        lines += ["    }", "    return NULL;", "}"]
    if flags:
        lines.append(f"static const uint8_t mg_flags_of[] = {{{', '.join(map(str, flags))}}};")
    return "\n".join(lines)


def _describe(ins: Instruction, field: Field) -> str:
    name = "metadata nibble" if field.name == "metadata" else ins.code_format(field.name).name
    return f"| `{field.name}` | {field.width} | {field.elements} x {name} |"


def _unpack(ins: Instruction, field: Field) -> str:
    """C that spreads one packed operand over an array of the format's storage and describes it to mg_run."""
    storage = 8 if field.name == "metadata" else ins.formats[field.name].storage
    name, size = field.name, storage // 8
    array = "e" if name == "metadata" else name
    strides = (0, size) if name in ("a", "metadata", "scale_a") else (size, 0)
    return (
        f"    uint{storage}_t {name}_codes[{field.elements}];\n"
        f"    for (uint32_t i = 0; i < {field.elements}; i++)"
        f" {name}_codes[i] = (uint{storage}_t)mg_dpi_bits({name}, i * {field.bits}, {field.bits});\n"
        f"    call.{array} = (mg_array){{.data = (char *){name}_codes, .row = {strides[0]}, .column = "
        f"{strides[1]}}};"
    )


def _missing(ins: Instruction) -> Iterator[str]:
    """C for a b or c that the unit does not have: the core wants both, and reads the code 0."""
    for name in ins.absent:
        yield (
            f"    static const uint8_t no_{name}[{ins.k}] = {{0}};\n"
            f"    call.{name} = (mg_array){{.data = (char *)no_{name}, .row = 1, .column = 0}};"
        )


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
