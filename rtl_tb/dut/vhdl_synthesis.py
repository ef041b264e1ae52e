"""The Verilog that GHDL's synthesis makes of a unit in VHDL, without what GHDL 2.0 leaves out of it.

    made = to_verilog(design, vhdl, folder, "the DUT")

A netlist in VHDL, which GHDL writes, too, has what its Verilog lacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path

from golden.files.escape import SYSTEMVERILOG
from rtl_tb.dut.ports import Design
from rtl_tb.dut.vhdl import Vhdl, analyse, copies, first_complaint
from rtl_tb.errors import ElaborationError
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator, ToolFailed, no_build

_Step = Callable[[bytes], bytes]
_ORIGIN = re.compile(r"^\s*/\* \S+:\d+:\d+\s+\*/$")
"""The comment above an operation that names its place in the VHDL."""
_LEVELS = re.compile(rb"(?P<declared>\bfunction\s+)?\bto_ux01(?=\s*\()", re.IGNORECASE)
"""Calls of a function that GHDL 2.0 does not synthesise, and what declares one of that name. Bits of a chip
are 0 or 1, of which to_x01 makes the same."""
_SILENT = re.compile(rb'--[^\n]*|"[^"\n]*"')
"""Comments and strings."""
_ARCHITECTURE = re.compile(rb"\barchitecture\s+\w+\s+of\s+\w+\s+is\b", re.IGNORECASE)
_SIGNAL = re.compile(
    rb"^[ \t]*signal\s+(?P<names>\w+(?:\s*,\s*\w+)*)\s*:(?!\s*(?:in|out|inout|buffer)\b)[^;]*;",
    re.IGNORECASE | re.MULTILINE,
)
_READ = re.compile(rb"\b\w+\b(?!\s*'|\s*(?:\([^()]*\)\s*)?<=)")
"""Words of a source, but for names that are assigned to and names before a tick."""
_LENGTH = re.compile(rb"(\b\w+\s*\([^()]*\))'length\b", re.IGNORECASE)
"""The length of an element of an array, or of what a function gives."""
_MOVING = re.compile(
    r"^(?P<file>\S+?):(?P<line>\d+):(?P<column>\d+):(?:error:)? left and right bounds of a slice must be ",
    re.MULTILINE,
)
"""A message of GHDL 2.0, with the place of the slice's parenthesis."""
_LAST_NAME = re.compile(rb"\b[a-z]\w*\s*$", re.IGNORECASE)
_DOWNTO = re.compile(rb"\s+downto\s+", re.IGNORECASE)
_SLICE = b"".join(
    b" function mmagold_slice(x : %(kind)s; high, low : integer) return %(kind)s is begin"
    b" return %(kind)s(ieee.numeric_std.shift_right("
    b"ieee.numeric_std.shift_left(ieee.numeric_std.unsigned(x), x'high - high),"
    b" x'high - high + low - x'low)); end;" % {b"kind": kind}
    for kind in (b"ieee.std_logic_1164.std_logic_vector", b"ieee.numeric_std.unsigned")
)
_KEPT = re.compile(rb"\battribute\s+keep\b", re.IGNORECASE)
"""A source that says itself what synthesis keeps."""
_MODULE = re.compile(r"^(?:module|entity) ")
_MESSAGE = re.compile(r"^\S+:\d+:\d+:")
_WORD = re.compile(r"\w+")
_NO_VERILOG = {
    r"^  (\w+) <= std_logic_vector\(abs \$signed\((\S+)\)\);": r"  assign \1 = $signed(\2) < 0 ? -\2 : \2;",
    r"^  (\w+) <= (\S+) when (.+) else (\S+);": r"  assign \1 = \3 ? \2 : \4;",  # minimum, maximum
    r"^  localparam (\w+) = 0'b;": r"  localparam \1 = 1'b0;",  # a vector without bits, whose port has one
    r"^  assign (\w+) = (\S+) (/|%) (\S+); // (?:sdiv|srem)": r"  assign \1 = $signed(\2) \3 $signed(\4);",
    r"^  assign (\w+) = (\S+) % (\S+); // smod": (
        r"  assign \1 = $signed(\2) % $signed(\3) != 0 && ($signed(\2) < 0) != ($signed(\3) < 0) ? "
        r"$signed(\2) % $signed(\3) + $signed(\3) : $signed(\2) % $signed(\3);"
    ),
    r"^  initial\n    (\S+) <= ": r"  initial\n    \1 = ",
    r" = 1'b[XZ] \? \S+ : (\S+);": r" = \1;",  # whether a bit is neither 0 nor 1
}
"""Lines that GHDL 2.0 writes as VHDL, or without the sign, and what they mean in Verilog; and values at the
start, which Yosys reads as blocking assignments alone."""
_CHOICES = re.compile(r"^    case \(\w+\)\n(?:      \S+: (?P<target>\w+) <= \S+;\n)+", re.MULTILINE)
_OTHERS = re.compile(r"with \S+ select (?P<target>\w+) <=(?:\s+\S+ when \S+,)*\s+(?P<value>\S+) when others;")
_OF_GHDL = {"begin", "else", "if", "negedge", "or", "posedge"}
_RESERVED = re.compile(rf"(?<!\$)\b({'|'.join(sorted(SYSTEMVERILOG - _OF_GHDL))})\b")
"""Words that Verilog reserves and VHDL does not: names, unless they begin a line of GHDL's."""
_FIRST_WORD = re.compile(r"^[ (]*\w*")


def to_verilog(design: Design, vhdl: Vhdl, folder: Path, what: str, limit: float = float("inf")) -> Design:
    """The design as GHDL synthesises it: Verilog in a file of the folder, in whose comments the designer's
    own files stand. The top has its name and those of its ports in small letters. A port is a vector; of a
    record, each field is a port, as request_valid.

    Args:
        what: as messages call it. limit: seconds that GHDL may take.

    Raises:
        SimulatorMissing, SimulatorTooOld: there is no GHDL. ElaborationError: it refuses the design.
    """
    simulator = simulators.ghdl()
    folder.mkdir(parents=True, exist_ok=True)
    generics = [f"-g{key}={value}" for key, value in (design.parameters or {}).items()]

    def read_as(texts: Mapping[Path, bytes]) -> tuple[str, str]:
        top = analyse(simulator, vhdl, design.sources, folder, design.top, what, texts)
        options = [*vhdl.options, *generics, "--latches"]
        verilog, netlist = (
            _synthesised(simulator, [*options, f"--out={language}", top], folder, what, limit)
            for language in ("verilog", "vhdl")
        )
        return top, _small_ports(_in_words_of_verilog(verilog, netlist))

    files = copies(vhdl.files(design.sources))
    top, text = _first_that_is_read(files, read_as)
    for copy, path in files.items():
        text = text.replace(f"/* {copy}:", f"/* {path.resolve()}:")
    (target := folder / f"{top}.v").write_text(text, encoding="utf-8")
    return Design((target,), top)


def _first_that_is_read(
    files: Mapping[str, Path], read: Callable[[Mapping[Path, bytes]], tuple[str, str]]
) -> tuple[str, str]:
    """What `read` makes of the first texts of the sources that GHDL accepts.

    Raises:
        ElaborationError: it accepts none of them; what it says of the first ones.
    """
    readings: tuple[tuple[_Step, ...], ...] = (
        (_of_levels, _with_what_nothing_reads),
        (_of_levels, _with_what_nothing_reads, _of_lengths),
        (_of_levels,),  # a declaration was misread
    )
    refused: ElaborationError | None = None
    tried: list[dict[Path, bytes]] = []
    for steps in readings:
        slices: dict[Path, list[tuple[int, int]]] = {}
        while True:
            texts = {
                path: _of_slices(_stepped(path.read_bytes(), steps), slices.get(path, ()))
                for path in files.values()
                if path.is_file()  # `analyse` says that one is none
            }
            if texts in tried:
                break
            tried.append(texts)
            try:
                return read(texts)
            except ElaborationError as error:
                refused = refused or error
                further = _refused_slices(error, files, slices)
            # Invariant: each turn has more slices than the one before.
            for path, place in further:
                slices.setdefault(path, []).append(place)
    assert refused is not None
    raise refused


def _stepped(text: bytes, steps: Sequence[_Step]) -> bytes:
    return reduce(lambda made, step: step(made), steps, text)


def _refused_slices(
    error: ElaborationError, files: Mapping[str, Path], known: Mapping[Path, Sequence[tuple[int, int]]]
) -> list[tuple[Path, tuple[int, int]]]:
    """The slices that a message of GHDL refuses, by file, line and column, without those that are known."""
    said = error.__cause__.text if isinstance(error.__cause__, ToolFailed) else ""
    found = [
        (files[each["file"]], (int(each["line"]), int(each["column"])))
        for each in _MOVING.finditer(said)
        if each["file"] in files
    ]
    return [(path, place) for path, place in found if place not in known.get(path, ())]


def _of_slices(text: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    """A source, line for line, in which a function takes the slices at some places, one after the other: GHDL
    2.0 refuses a slice of which one bound moves. What the function gives has as many bits as the whole
    vector, zeros above the slice."""
    lines = text.split(b"\n")
    for line, column in places:
        lines[line - 1] = _with_function(lines[line - 1], column)
    made = b"\n".join(lines)
    return _ARCHITECTURE.sub(lambda each: each[0] + _SLICE, made) if made != text else text


def _with_function(line: bytes, column: int) -> bytes:
    """A line whose slice, with its parenthesis at a column, is a call."""
    at, width = 0, 1
    while at < len(line) and width < column:  # GHDL counts eight columns for a tabulator
        width = (width + 7) // 8 * 8 + 1 if line[at : at + 1] == b"\t" else width + 1
        at += 1
    name = _LAST_NAME.search(line[:at])
    depth = 0
    for end in range(at, len(line)):
        depth += (line[end : end + 1] == b"(") - (line[end : end + 1] == b")")
        if not depth:
            break
    bounds = _DOWNTO.split(line[at + 1 : end]) if name is not None and not depth else []
    if name is None or len(bounds) != 2:
        return line
    call = b"mmagold_slice(" + b", ".join((name[0].strip(), *bounds)) + b")"
    return line[: name.start()] + call + line[end + 1 :]


def _of_levels(text: bytes) -> bytes:
    """A source, line for line, that GHDL 2.0 synthesises."""
    return _LEVELS.sub(lambda call: call[0] if call["declared"] else b"to_x01", text)


def _of_lengths(text: bytes) -> bytes:
    """A source, line for line, in which a function gives the length of an element of an array: GHDL 2.0
    breaks at that attribute of an indexed name."""
    function = b" function mmagold_length(x : std_logic_vector) return natural is begin return x'length; end;"
    made, count = _LENGTH.subn(rb"mmagold_length(\1)", text)
    return _ARCHITECTURE.sub(lambda each: each[0] + function, made) if count else text


def _with_what_nothing_reads(text: bytes) -> bytes:
    """A source, line for line, of which synthesis keeps the signals that nothing reads: a fault may be that
    nothing does."""
    code = _SILENT.sub(lambda each: b" " * len(each[0]), text)
    start = _ARCHITECTURE.search(code)
    if start is None or _KEPT.search(code):
        return text
    added: dict[int, bytes] = {
        each.end(): b" attribute keep : boolean;" for each in _ARCHITECTURE.finditer(code)
    }
    read = Counter(word.lower() for word in _READ.findall(code))
    for each in _SIGNAL.finditer(code, start.end()):
        for name in map(bytes.strip, each["names"].split(b",")):
            if read[name.lower()] <= 1:  # in its declaration alone
                keep = b" attribute keep of " + name + b" : signal is true;"
                added[each.end()] = added.get(each.end(), b"") + keep
    ends = sorted(added)
    parts = [text[at:end] for at, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return b"".join([*(part + added[end] for part, end in zip(parts, ends, strict=False)), parts[-1]])


def _synthesised(
    simulator: Simulator, arguments: Sequence[str], folder: Path, what: str, limit: float
) -> str:
    """What GHDL's synthesis prints, from the first module or entity on: a message may have further lines,
    which quote the VHDL."""
    try:
        said = simulators.run(
            [*simulator.start, "--synth", *arguments],
            folder=folder,
            env=simulator.env,
            log=folder / "synthesis.log",
            timeout=min(limit, simulators.build_limit()),
        )
    except ToolFailed as error:
        raise no_build(error, simulator.version_text, what, first_complaint(error.text)) from error
    lines = [line for line in said.split("\n") if not _MESSAGE.match(line)]
    first = next((at for at, line in enumerate(lines) if _MODULE.match(line)), 0)
    return "\n".join(lines[first:])


def _small_ports(text: str) -> str:
    """The names of the top, the last module, and of its ports in small letters."""
    lines = text.split("\n")
    last = max((at for at, line in enumerate(lines) if _MODULE.match(line)), default=0)
    ends = [at for at in range(last, len(lines)) if lines[at].endswith(";")]
    names = {word for line in lines[last : ends[0] + 1 if ends else last] for word in _WORD.findall(line)}
    capital = re.compile(
        rf"(?<![.\w])({'|'.join(name for name in names if name != name.lower()) or '(?!)'})\b"
    )
    small = [
        # Escaped, since a small name may be a word of Verilog: Cell, Reg.
        line if line.lstrip().startswith("/*") else capital.sub(lambda each: f"\\{each[0].lower()} ", line)
        for line in lines[last:]
    ]
    return "\n".join([*lines[:last], *small])


def _in_words_of_verilog(text: str, netlist: str) -> str:
    """The Verilog of GHDL 2.0 without its errors: what it writes as VHDL, choices without their `when
    others`, which the same netlist in VHDL has, and names that Verilog reserves."""
    for written, meant in _NO_VERILOG.items():
        text = re.sub(written, meant, text, flags=re.MULTILINE)
    others = {found["target"]: _literal(found["value"]) for found in _OTHERS.finditer(netlist)}

    def whole(case: re.Match[str]) -> str:
        target = case["target"]
        return f"{case[0]}      default: {target} <= {others[target]};\n" if target in others else case[0]

    text = _CHOICES.sub(whole, text)
    return "\n".join(line if _ORIGIN.match(line) else _without_reserved(line) for line in text.split("\n"))


def _without_reserved(line: str) -> str:
    """A line whose names that Verilog reserves are escaped: ports keep their names."""
    begin = _FIRST_WORD.match(line)
    rest = 0 if begin is None else begin.end()
    return line[:rest] + _RESERVED.sub(r"\\\1 ", line[rest:])


def _literal(value: str) -> str:
    """A literal of VHDL, or a name, in Verilog."""
    if value[0] not in "\"'":
        return value
    bits = value.strip("\"'").replace("-", "x")
    return f"{len(bits)}'b{bits}"
