"""The text of a unit as one tool reads it: its sources in one, without comments, with the place of each line.

Which tool reads shows in the macros that it defines by itself, and in pragmas such as `translate_off`, which
synthesis heeds and simulators do not.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.engines.builds import design_options, files_read, kept_text, library_modules, verilog_of
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators

_OWN = ("VERILATOR", "verilator", "verilator3", "VERILATOR_TIMING", "systemc_clock", "coverage_block_off")
_NOT_VERILATOR = tuple(f"-U{name}" for name in _OWN)
_OF_SIMULATORS = (
    *("START", "STOP", "RESET", "CHECK", "MODULE", "HIER", "ASSERTION", "FSM_STATE", "STATEMENT", "TOGGLE"),
    *("OVERFLOW", "ERROR", "NOCOV", "OK", "PARTIAL"),
)
_NOT_SIMULATED = (*_NOT_VERILATOR, *(f"-USV_COV_{name}" for name in _OF_SIMULATORS))
"""Neither what Verilator defines by itself (-E --dump-defines lists it) nor what every simulator does."""
_NO_MORE = (*_NOT_SIMULATED, "-USYSTEMVERILOG")
"""Icarus Verilog and Yosys define neither."""
SIMULATORS = {
    "verilator": ("--timing",),  # as every engine builds: it defines VERILATOR_TIMING
    "icarus": (*_NO_MORE, "-D__ICARUS__=1"),
    "vcs": (*_NOT_VERILATOR, "-DVCS=1"),
    "questa": (*_NOT_VERILATOR, "-DQUESTA=1", "-DMODEL_TECH=1"),
    "xcelium": (*_NOT_VERILATOR, "-DXCELIUM=1", "-DINCA=1"),
}
"""What each simulator defines, as options of Verilator, whose preprocessor reads for all."""
SYNTHESIS = {
    "synthesis": (*_NOT_SIMULATED, "-DSYNTHESIS=1"),
    "Yosys": (*_NO_MORE, "-DSYNTHESIS=1", "-DYOSYS=1"),
}
"""What is defined in synthesis, in general and by Yosys."""
_VENDOR = r"(?:synopsys|synthesis|pragma|cadence|ambit|exemplar|rtl_synthesis|xilinx|altera)"
_PRAGMA = re.compile(
    rf"\s*(?:{_VENDOR}\s*,?\s*)+"
    r"(?:(?P<off>(?:translate|synthesis)_off\b|off\s*$)|(?P<on>(?:translate|synthesis)_on\b|on\s*$))"
)
_FLAGS = re.compile(rf"\s*(?:{_VENDOR}\s*,?\s*)+([\w\s,]*)$")
_CASES = re.compile(r"\b(?:full|parallel)_case\b")
_PIECES = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\\[^\s]+'  # strings and escaped names, which hold anything
    r"|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|\(\*(?P<attribute>\s*synthesis\s*,[^*]*)\*\)",
    re.DOTALL,
)
_KEPT = re.compile(r"/\*verilator (?:full|parallel)_case\*/")
"""What becomes of such a pragma."""
_DECLARED = re.compile(
    r"\b(?:unique0?|priority)(?=\s+(?:case[xz]?|if)\b)|/\*verilator (?:full|parallel)_case\*/"
    r"|\(\*\s*(?:full|parallel)_case\s*(?:,\s*(?:full|parallel)_case\s*)?\*\)"
)
"""What makes Verilator assert that one item matches; a text shall be run, whatever matches."""
_COMMENTS = ("//", "/*", "(*")
_CONDITION = re.compile(rb"`(?:ifn?def|elsif)\b")
_LINE = re.compile(r'`line\s+(\d+)\s+"([^"]*)"')


@dataclass(frozen=True)
class Reading:
    """A unit's text as a tool reads it: `text` can be compiled, and has a `line for each file."""

    text: str

    def lines(self) -> list[tuple[str, str]]:
        """(code, "file:line") of every line with code: no comment but pragmas of a `case`, no `timescale, one
        space for several."""
        found, file, number = [], "", 0
        for line in _PIECES.sub(_without_comments, self.text).split("\n"):
            if (mark := _LINE.match(line.strip())) is not None:
                file, number = Path(mark[2]).name, int(mark[1])
                continue
            code = " ".join(line.split())
            if code and not code.startswith("`timescale"):  # no logic hangs on it
                found.append((code, f"{file}:{number}"))
            number += 1
        return found

    def differs(self, other: Reading) -> str:
        """Where another reading first has other code, "file:line"; "" where it has the same."""
        mine, its = self.lines(), other.lines()
        for (one, place), (two, _) in zip(mine, its, strict=False):
            if one != two:
                return place
        return "" if len(mine) == len(its) else max(mine, its, key=len)[min(len(mine), len(its))][1]


def as_run(job: Job) -> Reading | None:
    """What the simulator of a job reads, see `read`."""
    return read(job.dut, SIMULATORS[job.simulator], pragmas=False)


def read(dut: Dut, options: Sequence[str], pragmas: bool) -> Reading | None:
    """How a tool reads a DUT, and the modules that it takes from libraries then: with these options of
    Verilator's preprocessor, and heeding pragmas or not. None where the DUT has no source in Verilog.

    Raises:
        SimulatorMissing: there is no Verilator. ElaborationError: it refuses the text.
    """
    sources = verilog_of(dut)
    if not sources:
        return None
    if dut.libraries:
        sources += library_modules(dut, files_read(dut, simulators.verilator(), options))
    with tempfile.TemporaryDirectory(prefix="mmagold_text_") as name:
        text = _preprocessed(dut, sources, options, Path(name))
        if copies := _marked(dut, sources, text, Path(name), _as_attribute if pragmas else _as_flag):
            own = {file: copy for copy, file in copies.items() if file in sources}
            folders = [Path(name) / f"headers{at}" for at, _ in enumerate([*dut.include, *dut.libraries])]
            marked = [own.get(path, path) for path in sources]
            text = _preprocessed(dut, marked, options, Path(name), folders)
            text = _LINE.sub(
                lambda line: line[0].replace(line[2], str(copies.get(Path(line[2]), line[2]))), text
            )
    return Reading(_without_off(text) if pragmas else text)


def on_text(job: Job, text: str, name: str) -> Job:
    """A job in Verilator on a text in the place of all that is Verilog in its DUT."""
    dut = job.dut
    others = tuple(path for path in dut.sources if path not in verilog_of(dut))
    file = kept_text(job.build, name, text)
    mine = replace(dut, sources=(file, *others), include=(), defines={}, libraries=())
    return replace(job, dut=mine, simulator="verilator", program=None, waves=None)


def without_off(dut: Dut, build: Path) -> Dut | None:
    """The DUT without what stands between pragmas `translate_off` and `translate_on`, which is for a test
    bench of its author's and for no chip; None where nothing does."""
    written: dict[Path, Path] = {}
    for path in verilog_of(dut):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        marked = _PIECES.sub(_only_off, text)
        if marked != text:
            written[path] = kept_text(build, path.stem, _without_off(marked))
    if not written:
        return None
    folders = dict.fromkeys(path.parent for path in written)  # of what they include from beside them
    sources = tuple(written.get(path, path) for path in dut.sources)
    return replace(dut, sources=sources, include=(*dut.include, *folders))


def synthesis_files(dut: Dut, files: Iterable[Path]) -> list[Path]:
    """The files that synthesis reads of a DUT of which a simulator reads `files`; of a synthesis that cannot
    elaborate it none."""
    found: dict[Path, None] = {}
    if any(_CONDITION.search(path.read_bytes()) for path in files):
        for options in SYNTHESIS.values():
            with contextlib.suppress(RtlError):
                found |= dict.fromkeys(files_read(dut, simulators.verilator(), options))
    return list(found)


def undeclared(text: str) -> str:
    """A text without what declares choices full or parallel: whatever matches, it is run to its end."""
    return _DECLARED.sub(" ", text)


def _preprocessed(
    dut: Dut, sources: Sequence[Path], options: Sequence[str], folder: Path, before: Sequence[Path] = ()
) -> str:
    """The text without comments, but for Verilator's own. (With --pp-comments Verilator keeps a comment that
    ends a `define in every use of the macro, where it hides the rest of the line.)"""
    words: list[str | Path] = [f"-I{path}" for path in before]
    words += [*design_options(dut, "verilator"), *options, *sources]
    return simulators.preprocessed(words, folder=folder, what=dut.name)


def _marked(
    dut: Dut, sources: Sequence[Path], text: str, folder: Path, mark: Callable[[re.Match[str]], str]
) -> dict[Path, Path]:
    """Copies of the files that have pragmas in comments, with what `mark` makes of them, which the
    preprocessor keeps, and the file of each: of sources one each, of headers as they are included."""
    copies: dict[Path, Path] = {}
    headers = dict.fromkeys(folder / name for _, name in _LINE.findall(text))
    for number, file in enumerate(dict.fromkeys([*sources, *filter(Path.is_file, headers)])):
        before = file.read_text(encoding="utf-8", errors="surrogateescape")
        after = _PIECES.sub(mark, before)
        if after == before:
            continue
        targets = [folder / f"source{number}" / file.name]
        if file not in sources:
            targets = [
                folder / f"headers{at}" / file.relative_to(near)
                for at, near in enumerate([*dut.include, *dut.libraries])
                if file.is_relative_to(near)
            ]
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(after, encoding="utf-8", errors="surrogateescape")
            copies[target] = file
    return copies


def _as_flag(piece: re.Match[str]) -> str:
    """A pragma of a `case` as the comment in which Verilator keeps it; all else as it is."""
    said = _FLAGS.match(piece["line"] or piece["block"] or "")
    flags = _CASES.findall(said[1]) if said is not None else []
    if not flags:
        return piece[0]
    return "".join(f"/*verilator {flag}*/" for flag in flags) + "\n" * piece[0].count("\n")


def _as_attribute(piece: re.Match[str]) -> str:
    marked = _only_off(piece)
    return _as_flag(piece) if marked == piece[0] else marked


def _only_off(piece: re.Match[str]) -> str:
    """A pragma `translate_off`, or `on`, as an attribute; all else as it is."""
    said = _PRAGMA.match(piece["line"] or piece["block"] or "")
    if said is None:
        return piece[0]
    return f"(* synthesis, translate_{'off' if said['off'] else 'on'} *)" + "\n" * piece[0].count("\n")


def _without_comments(piece: re.Match[str]) -> str:
    """What is no comment; and a pragma of a `case`, which says what may be made of it."""
    if not piece[0].startswith(_COMMENTS) or _KEPT.fullmatch(piece[0]):
        return piece[0]
    return " " + "\n" * piece[0].count("\n")


def _without_off(text: str) -> str:
    """The text without what stands from a pragma `translate_off` to `translate_on`; lines keep their
    numbers."""
    kept: list[str] = []
    at, off = 0, False
    for piece in _PIECES.finditer(text):
        said = _PRAGMA.match(piece["attribute"] or "")
        if said is None:
            continue
        before = text[at : piece.start()]
        kept.append(_only_places(before) if off else before)
        at, off = piece.end(), bool(said["off"])
    return "".join([*kept, _only_places(text[at:]) if off else text[at:]])


def _only_places(text: str) -> str:
    """Empty lines in place of code; what says where the next line stands remains."""
    return "\n".join(line if line.startswith("`line") else "" for line in text.split("\n"))
