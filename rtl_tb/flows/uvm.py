"""A UVM environment for one unit: items, sequences, agent, predictor, scoreboard, covergroups and test.

    write(load_dut("dut.yaml"), "uvm", count=2000)

The unit sits in the wrapper of rtl_tb/dut/wrapper.py, which knows the ports; the predictor asks the DPI-C
model of golden/vectors/dpi.py; stimuli come from a vector file; rtl_tb/flows/uvm_cover.py makes the
covergroups. The text is that of rtl_tb/templates/uvm.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from golden import __version__
from golden.files.escape import line_comment, markdown
from golden.files.output import Fill, write_folder
from golden.program.state import CONTROLS
from golden.stimuli import KINDS
from golden.vectors import dpi, files
from golden.vectors.vectorset import VectorSet, default_set
from golden.vectors.word import RESULTS, Field, WordLayout
from rtl_tb.check.report import environment
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import Dut
from rtl_tb.dut.keys import IDENTIFIER
from rtl_tb.dut.wrapper import wrapper_of
from rtl_tb.engines import traffic
from rtl_tb.engines.job import Traffic
from rtl_tb.engines.selfcheck import FILES, TIMESCALE, TIMESCALE_TEXT, file_list
from rtl_tb.engines.selfcheck_text import compare_function
from rtl_tb.errors import RtlError
from rtl_tb.flows.uvm_cover import coverage_words

PARTS = ("item", "sequences", "agent", "predictor", "scoreboard", "coverage", "env")
"""The files that the package includes, in order."""
VECTORS = "vectors.hex"
TRAFFIC_FILE = "traffic.hex"
HONEST = (
    "Environments like this one were compiled and run with Verilator against a small package with those "
    "classes of UVM that they use; Verilator ignores covergroups. VCS, Questa and Xcelium were not run: "
    "their commands are those that their manuals show."
)


def write(
    dut: Dut, folder: str | Path, count: int = 2000, seed: int = 1, prefix: str | None = None
) -> list[Path]:
    """Writes the environment of a unit into a folder, and returns its files.

    Args:
        count, seed: of the vectors in vectors.hex.
        prefix: start of all names; by default the unit's name.

    Raises:
        RtlError: the prefix is no identifier; the latency is still to be measured; a file list cannot name
            the sources.
        SpecError, ElaborationError, SimulatorMissing: as `wrapper_of`.
        OperandError: the instruction cannot be a DPI model. FileFormatError: the folder cannot be written.
    """
    prefix = _default_prefix(dut) if prefix is None else prefix
    if not re.fullmatch(r"[A-Za-z]\w*", prefix, re.ASCII):
        raise RtlError(f"argument 'prefix' is '{prefix}', expected an identifier (letters, digits, _)")
    if dut.handshake.kind == "latency" and dut.handshake.latency is None:
        raise RtlError(f"{dut.file}: 'latency: measure' is for rtl check; write the number that it prints")
    vectors = default_set(dut.instruction, count, seed, dut.level)
    vectors = vectors if dut.exclude is None else dut.exclude.replaced(vectors)
    words = _words(dut, prefix, vectors)
    sources = [f"{prefix}_{name}.sv" for name in ("pkg", "if", "uvm_pkg")]
    texts: dict[str, str | Fill] = {
        **dpi.model_texts(dut.instruction.stateless, prefix),
        TIMESCALE: TIMESCALE_TEXT,
        f"{NAME}.sv": wrapper_of(dut),
        FILES: f"+incdir+.\n{file_list(dut, [f'{NAME}.sv', *sources, f'{prefix}_tb.sv'])}",
        f"{prefix}_if.sv": _filled("interface.sv", words),
        f"{prefix}_uvm_pkg.sv": _filled("package.sv", words),
        f"{prefix}_tb.sv": _filled("testbench.sv", words),
        "Makefile": _filled("Makefile", words),
        "README.md": _filled("README.md", words),
    }
    texts |= {f"{prefix}_{part}.svh": _filled(f"{part}.svh", words) for part in PARTS}
    texts[TRAFFIC_FILE] = _traffic(dut, len(vectors), seed)
    return write_folder(folder, texts | _vector_files(vectors))


def _traffic(dut: Dut, count: int, seed: int) -> str:
    """The waits of rtl_tb/engines/traffic.py, a vector a line: before it is offered, before its result is
    taken."""
    # Share of the vectors that wait, and of their results.
    share = 0.25
    usual = Traffic(share, share, seed=seed % 2**32).on(dut)
    drawn = traffic.plan(usual, max(count, 1))
    return "".join(f"{gap:04x} {stall:04x}\n" for gap, stall in zip(drawn.gap, drawn.stall, strict=True))


def _default_prefix(dut: Dut) -> str:
    name = re.sub(r"\W+", "_", dut.name, flags=re.ASCII).strip("_")
    return name if IDENTIFIER.fullmatch(name) else f"unit_{name}"


def _filled(template: str, words: dict[str, Any]) -> str:
    return environment().get_template(f"uvm/{template}").render(words)


def _vector_files(vectors: VectorSet) -> dict[str, str | Fill]:
    """vectors.hex and its manifest, written by golden/vectors/files.py."""
    with tempfile.TemporaryDirectory(prefix="mmagold_uvm_") as place:
        files.write(Path(place) / VECTORS, vectors)
        contents = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    return {name: partial(_put, content) for name, content in contents.items()}


def _put(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def _words(dut: Dut, prefix: str, vectors: VectorSet) -> dict[str, Any]:
    """What the templates say of this unit."""
    ins, layout = dut.instruction, dut.layout
    dot = WordLayout.of(ins.stateless)
    inputs, d = layout.operand_fields, dot.result_fields[-1]
    m, n = (ins.m, ins.n) if dut.level == "tile" else (1, 1)
    extra = tuple(field for field in inputs if field.name in CONTROLS)
    unused = any(code not in ins.mode_units for code in range(1 << ins.modes.bits)) if ins.modes else False
    sparse = ins.pattern.legal(ins.ordered_metadata) if ins.pattern else ()
    compare = compare_function(
        ins.formats["d"], layout.result_fields[-1].width, layout.result_width, dut.compare
    )
    # Cycles after the last result in which one too many is waited for, and those of the latency.
    drain = 64
    return {
        "p": prefix,
        "made": f"Generated by mmagold {__version__}; do not edit.",
        "version": __version__,
        "honest": HONEST,
        "dut_file": dut.file.name,
        "top": dut.top,
        "top_md": markdown(dut.top),
        "unit": line_comment(dut.instruction_name),
        "unit_md": markdown(dut.instruction_name),
        "tile": dut.level == "tile",
        "state": ins.state,
        "controls": [field.name for field in extra],
        "load": ins.load,
        "load_alone": "load" in ins.alone,
        "no_products": _no_products(ins.alone),
        "factors": [name for name in "ab" if name not in ins.absent],
        "flags": ins.status,
        "parts": PARTS,
        "in_bits": layout.operand_width,
        "out_bits": layout.result_width,
        "count": len(vectors),
        "kinds": sorted({KINDS[number] for number in set(vectors.kinds.tolist())}),
        "nan": dut.compare.nan,
        "zero": dut.compare.zero,
        "compare": compare.replace("    function ", "    function automatic "),
        "inputs": inputs,
        "names": ", ".join(field.name for field in inputs),
        "mode_codes": list(ins.mode_units) if unused else [],
        "mode_bits": ins.modes.bits if ins.modes else 0,
        "nibbles": [f"4'd{code}" for code in sparse],
        "metadata_elements": next((field.elements for field in inputs if field.name == "metadata"), 0),
        "dot_fields": (*dot.fields, *extra),
        "dot_results": dot.result_fields,
        "dot_results_word": _joined(f"dot.{field.name}" for field in dot.result_fields),
        "dot_names": ", ".join(f"dot.{field.name}" for field in dot.operand_fields),
        "result_lsb": {field.name: field.lsb for field in layout.result_fields},
        "gather": [_gather(field, inputs, n) for field in dot.operand_fields if field.name in _names(inputs)],
        "m": m,
        "n": n,
        "d": d,
        "has_reset": int(dut.reset is not None),
        "reset_cycles": dut.reset.cycles if dut.reset else 4,
        "stalls": dut.can_stall_output,
        "engaged": traffic.ENGAGED,
        "limit": traffic.LIMIT,
        "most_expired": traffic.MOST_EXPIRED,
        "holds": dut.can_stall_output and dut.handshake.kind != "combinational",
        "drain": drain + (dut.handshake.latency or 0),
        **coverage_words(ins, dot),
    }


def _no_products(alone: Sequence[str]) -> str:
    """The condition under which the products of a transfer do not count; "" where they always do."""
    words = {"clear": "t.clear", "load": "t.load && !t.clear"}
    return " || ".join(words[name] for name in CONTROLS if name in alone)


def _names(fields: tuple[Field, ...]) -> set[str]:
    return {field.name for field in fields if field.name not in RESULTS}


def _joined(names: Any) -> str:
    listed = list(names)
    return f"{{{', '.join(listed)}}}" if len(listed) > 1 else listed[0]


def _gather(field: Field, inputs: tuple[Field, ...], n: int) -> str:
    """SystemVerilog that takes an operand of element (i, j) of d out of an item: a row of a, a column of b,
    one element of c; the mode is the tile's."""
    name, width, bits = field.name, field.width, field.bits
    if name == "mode":
        return "dot.mode = t.mode;"
    if name in ("a", "metadata", "scale_a"):
        return f"dot.{name} = t.{name}[i*{width}+:{width}];"
    if name == "c":
        return f"dot.c = t.c[(i*{n}+j)*{bits}+:{bits}];"
    return (
        f"for (int e = 0; e < {field.elements}; e++) "
        f"dot.{name}[e*{bits}+:{bits}] = t.{name}[(e*{n}+j)*{bits}+:{bits}];"
    )
