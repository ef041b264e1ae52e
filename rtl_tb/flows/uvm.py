"""A UVM environment for one unit: items, sequences, agent, predictor, scoreboard, covergroups and test.

    write(load_dut("dut.yaml"), "uvm", count=2000)

The unit sits in the wrapper of rtl_tb/dut/wrapper.py, which knows the ports; the predictor asks the DPI-C
model of golden/vectors/dpi.py; stimuli come from a vector file; rtl_tb/flows/uvm.py makes the
covergroups. The text is that of rtl_tb/templates/uvm.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from golden import __version__
from golden.cover.coverage import Coverage
from golden.cover.points.classes import classify, coarse_bins, coarse_of
from golden.cover.points.point import Coverpoint
from golden.files.escape import line_comment, markdown
from golden.files.output import Fill, write_folder
from golden.model.instruction import Instruction
from golden.model.registers import decode
from golden.number.formats import Format, Kind
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
    """What the templates say about this unit."""
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
    # Cycles after the last result in which one too many is waited for, in addition to the latency.
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
        "gather": [_gather(field, n) for field in dot.operand_fields if field.name in _names(inputs)],
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


def _gather(field: Field, n: int) -> str:
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


Codes = npt.NDArray[np.uint64]
Answer = Callable[[Codes], npt.NDArray[Any]]


@dataclass(frozen=True)
class CodeFunction:
    """A function of a code of `width` bits: of the `kept` bits above the lowest `shift`, as ranges (last
    code, value) in ascending order."""

    name: str
    width: int
    shift: int
    kept: int
    pieces: list[tuple[int, int]]

    @property
    def mask(self) -> int:
        """What is kept of the shifted code; 0 where that is all of it."""
        return (1 << self.kept) - 1 if self.kept < self.width - self.shift else 0


@dataclass
class _Writer:
    """Collects functions and coverpoints while the samples of a unit are written."""

    known: dict[str, Coverpoint]
    functions: dict[str, CodeFunction] = field(default_factory=dict)
    points: list[Coverpoint] = field(default_factory=list)

    def hit(self, name: str, number: str) -> list[str]:
        """The statement that counts a bin; none where the unit has no such coverpoint."""
        if name not in self.known:
            return []
        self.points.append(self.known[name])
        return [f"hit({len(self.points) - 1}, {number});"]

    def call(self, what: str, fmt: Format, code: str, dropped: int = 0) -> str:
        """A call of a function of codes: "class", "coarse", "sign" or "zero"."""
        name = f"{what}_of_{re.sub(r'[^a-z0-9]+', '_', fmt.name.lower())}" + (
            f"_{dropped}" if dropped else ""
        )
        if name not in self.functions:
            self.functions[name] = code_function(name, what, fmt, dropped)
        return f"{name}({code})"


def coverage_words(ins: Instruction, dot: WordLayout) -> dict[str, Any]:
    """What the template coverage.svh says about an instruction whose dot products are laid out as `dot`."""
    points = Coverage(ins).points
    writer = _Writer({point.name: point for point in points})
    common = [*_sequence(writer, ins)] if ins.state else []
    units: list[dict[str, Any]] = []
    if ins.modes is None:
        units.append({"code": None, "lines": list(_samples(writer, ins, dot, ""))})
    else:
        places = "".join(f"t.mode == {code} ? {i} : " for i, code in enumerate(list(ins.mode_units)[:-1]))
        common += writer.hit("mode", f"{places}{len(ins.mode_units) - 1}")
        for code, text in ins.modes.texts().items():
            lines = list(_samples(writer, ins.mode_units[code].stateless, dot, f"{text}: "))
            units.append({"code": code, "lines": lines})
    seen = {point.name for point in writer.points}
    parts = ("operands", "special values", "result", "status flags", "sequence")
    others = [point for point in points if point.part in parts and point.name not in seen]
    return {
        "functions": list(writer.functions.values()),
        "points": [_template_point(point) for point in writer.points],
        "most_bins": max(len(point.bins) for point in writer.points),
        "common": common,
        "units": units,
        "left_out": sorted({f"`{point.name.rpartition(': ')[2]}`" for point in others}),
    }


def _template_point(point: Coverpoint) -> dict[str, Any]:
    reach = list(point.bins.items())
    return {
        "name": re.sub(r'["\\]', "'", point.name),
        "size": len(reach),
        "bins": [(i, f"b{i}_{_identifier(label)}") for i, (label, can) in enumerate(reach) if can],
        "mask": sum(1 << i for i, (_, can) in enumerate(reach) if can),
    }


def _identifier(label: str) -> str:
    words = label.replace("+", " plus ").replace("-", " minus ")
    return "_".join(re.findall(r"\w+", words, re.ASCII)) or "bin"


def _samples(writer: _Writer, ins: Instruction, dot: WordLayout, prefix: str) -> Iterator[str]:
    """Statements that count one dot product `t`, as golden/cover/points samples it."""
    fields = {one.name: one for one in dot.fields}
    for name in ("a", "b", "scale_a", "scale_b"):
        if name in fields and not (name == "b" and ins.pattern is not None):
            one = fields[name]
            code = f"t.{name}[i*{one.bits}+:{one.bits}]"
            bucket = f"(i == 0 ? 0 : i == {one.elements - 1} ? 2 : 1)"
            number = f"{writer.call('class', ins.formats[name], code)} * 3 + {bucket}"
            for line in writer.hit(f"{prefix}class of {name}, position", number):
                yield f"for (int i = 0; i < {one.elements}; i++) {line}"
    if "c" in fields:
        yield from writer.hit(f"{prefix}class of c", writer.call("class", ins.formats["c"], "t.c"))
    if ins.pattern is None and "b" in fields:
        yield from ("begin", *_pairs(writer, ins, dot, prefix), "end")
    fmt = ins.formats["d"]
    dropped = fmt.fraction_bits - ins.program.operations[-1].result_fraction_bits if fmt.is_float else 0
    yield from writer.hit(f"{prefix}class of d", writer.call("class", fmt, "t.d", dropped))
    for bit, name in enumerate(ins.status):
        yield from writer.hit(f"{prefix}flag {name}", f"int'(t.flags[{bit}])")
    if len(ins.status) > 1:
        yield from writer.hit(f"{prefix}flags raised together", "int'(t.flags)")


def _pairs(writer: _Writer, ins: Instruction, dot: WordLayout, prefix: str) -> Iterator[str]:
    """What the factors of each product are, and how many products are not zero."""
    bits = {one.name: one.bits for one in dot.operand_fields}
    a, b = ins.formats["a"], ins.formats["b"]
    x, y = (f"t.{name}[i*{bits[name]}+:{bits[name]}]" for name in "ab")
    classes = f"{writer.call('coarse', a, x)} * {len(coarse_bins(b))} + {writer.call('coarse', b, y)}"
    signs = f"{writer.call('sign', a, x)} * 2 + {writer.call('sign', b, y)}"
    there = f"{writer.call('zero', a, x)} == 0 && {writer.call('zero', b, y)} == 0"
    k = ins.stored_k
    yield "int count = 0, last = 0;"
    yield f"for (int i = 0; i < {k}; i++) begin"
    yield from (f"  {line}" for line in writer.hit(f"{prefix}class of a, class of b", classes))
    yield from (f"  {line}" for line in writer.hit(f"{prefix}signs of a and b", signs))
    yield f"  if ({there}) begin"
    yield from ("    count++;", "    last = i;", "  end", "end")
    named = f"count == 0 ? 0 : count == {k} ? 5 : count == {k - 1} ? 4 : count == 1 ? 1 : count == 2 ? 2 : 3"
    yield from writer.hit(f"{prefix}non-zero products", named)
    for line in writer.hit(f"{prefix}the only non-zero product", "last"):
        yield f"if (count == 1) {line}"
    if "c" in bits:
        c = f"{writer.call('coarse', ins.formats['c'], 't.c')} * 2 + (count > 0 ? 1 : 0)"
        yield from writer.hit(f"{prefix}class of c, non-zero products", c)


def _sequence(writer: _Writer, one: Instruction) -> Iterator[str]:
    """How the dot products of a unit that keeps its accumulator follow one another."""
    yield "since = t.clear || !begun ? 1 : since + 1;"
    yield from writer.hit("clear", "int'(t.clear)")
    yield from writer.hit("dot products since clear", "since <= 1 ? 0 : since <= 2 ? 1 : since <= 8 ? 2 : 3")
    names = [name for name in CONTROLS if name == "clear" or one.load]
    held = writer.call("coarse", one.formats["c"], "held")
    yield "if (begun) begin"
    for name, does in zip(names, ("forgets", "replaces"), strict=False):
        in_a_row = f"2 * int'(last_{name}) + int'(t.{name})"
        for line in writer.hit(f"{name} of two dot products in a row", in_a_row):
            yield f"  {line}"
        for line in writer.hit(f"class of what {name} {does}", held):
            yield f"  if (t.{name}) {line}"
    yield from ("end", "begun = 1;", *(f"last_{name} = t.{name};" for name in names), "held = t.d;")


# Functions of codes -----------------------------------------------------------------------------------------


def code_function(name: str, what: str, fmt: Format, dropped: int) -> CodeFunction:
    """One of "class", "coarse", "sign" and "zero" of a format's codes.

    `dropped`: how many of their lowest fraction bits are always zero.
    """
    shift = fmt.ignored_low + dropped
    kept = fmt.bits - shift - fmt.ignored_high

    def answer(values: Codes) -> npt.NDArray[Any]:
        codes = (values << np.uint64(shift)).astype(fmt.dtype)[:, None]
        numbers = decode(fmt, codes)
        match what:
            case "class":
                found = classify(fmt, numbers, codes, dropped)
            case "coarse":
                found = coarse_of(fmt, numbers)
            case "sign":
                found = numbers.sign
            case _:
                found = numbers.kind == Kind.ZERO
        return np.asarray(found, np.int64)[:, 0]

    return CodeFunction(name, fmt.bits, shift, kept, pieces(answer, kept))


def pieces(answer: Answer, width: int) -> list[tuple[int, int]]:
    """A function of codes of `width` bits as ranges (last code, value), ascending.

    It may change where codes have few runs of ones and zeros, as fields that are all ones, all zeros or one
    bit are, and once between two such codes.
    """
    codes = _places(width)
    values = answer(codes)
    found: list[tuple[int, int]] = []
    for i in range(len(codes) - 1):
        if values[i] != values[i + 1]:
            last = _last(answer, int(codes[i]), int(codes[i + 1]), int(values[i]))
            found.append((last, int(values[i])))
    return [*found, ((1 << width) - 1, int(values[-1]))]


def _places(width: int) -> Codes:
    # Narrow codes are evaluated one by one.
    enumerated = 16
    if width <= enumerated:
        return np.arange(1 << width, dtype=np.uint64)
    runs = {(1 << i) - (1 << j) for i in range(width + 1) for j in range(i + 1)}
    near = {run + step for run in runs for step in (-2, -1, 0, 1, 2)}
    both = near | {code ^ (1 << (width - 1)) for code in near if code >= 0}
    return np.array(sorted(code for code in both if 0 <= code < 1 << width), np.uint64)


def _last(answer: Answer, low: int, high: int, value: int) -> int:
    """The last code from `low` on with that value; the one at `high` is another."""
    while high - low > 1:
        middle = (low + high) // 2
        same = int(answer(np.array([middle], np.uint64))[0]) == value
        low, high = (middle, high) if same else (low, middle)
    return low
