"""The text of a unit as one tool reads it: its sources in one, without comments, with the place of each line.

Tools differ in the macros that they define by themselves, and in pragmas such as `translate_off`, which
synthesis obeys and simulators do not.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtl_tb.dut.description import Dut
from rtl_tb.dut.pragmas import PIECES, VENDOR, as_attribute, files_without_off, without_off
from rtl_tb.dut.text import as_bytes, write
from rtl_tb.dut.text import read as read_source
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
"""Options that undefine the macros that Verilator defines by itself (-E --dump-defines lists them), and the
ones that every simulator defines."""
_NO_MORE = (*_NOT_SIMULATED, "-USYSTEMVERILOG")
"""The same without macros that neither Icarus Verilog nor Yosys defines."""
_PLAIN = _NO_MORE
"""Options of the plain reading, without any macro of a tool: that of rtl_tb/dut/translated.py."""
SIMULATORS = {
    "verilator": ("--timing",),  # as every engine builds: it defines VERILATOR_TIMING
    "icarus": (*_NO_MORE, "-D__ICARUS__=1"),
    "vcs": (*_NOT_VERILATOR, "-DVCS=1"),
    "questa": (*_NOT_VERILATOR, "-DQUESTA=1", "-DMODEL_TECH=1"),
    "xcelium": (*_NOT_VERILATOR, "-DXCELIUM=1", "-DINCA=1"),
}
"""The macros of each simulator, as options of Verilator, whose preprocessor reads for all."""
_TOOLS = SIMULATORS | {
    "cocotb": (*_NO_MORE, "-DCOCOTB_SIM=1"),
    "slang": (*_NO_MORE, "-D__slang__=1", "-D__slang_major__=10", "-D__slang_minor__=0"),
}
SYNTHESIS = {
    "synthesis": (*_NOT_SIMULATED, "-DSYNTHESIS=1"),
    "Yosys": (*_NO_MORE, "-DSYNTHESIS=1", "-DYOSYS=1"),
}
"""The macros of synthesis, in general and of Yosys."""
_FLAGS = re.compile(rf"\s*(?:{VENDOR}\s*,?\s*)+([\w\s,]*)$")
_CASES = re.compile(r"\b(?:full|parallel)_case\b")
_KEPT = re.compile(r"/\*verilator (?:full|parallel)_case\*/")
"""The form of a pragma that the preprocessor keeps."""
_DECLARED = re.compile(
    r"\b(?:unique0?|priority)(?=\s+(?:case[xz]?|if)\b)|/\*verilator (?:full|parallel)_case\*/"
    r"|\(\*\s*(?:full|parallel)_case\s*(?:,\s*(?:full|parallel)_case\s*)?\*\)"
)
"""Declarations for which Verilator asserts that one item matches; here a text has to run, whatever
matches."""
_COMMENTS = ("//", "/*", "(*")
_CONDITION = re.compile(rb"`(?:ifn?def|elsif)\b")
_LINE = re.compile(r'`line\s+(\d+)\s+"([^"]*)"')


@dataclass(frozen=True)
class SourceText:
    """A unit's text as a tool reads it: `text` can be compiled, and has a `line for each file."""

    text: str

    def lines(self) -> list[tuple[str, str]]:
        """(code, "file:line") of every line with code: without comments except pragmas of a `case`, without
        `timescale, and with single spaces."""
        found, file, number = [], "", 0
        for line in PIECES.sub(_without_comments, self.text).split("\n"):
            if (mark := _LINE.match(line.strip())) is not None:
                file, number = Path(mark[2]).name, int(mark[1])
                continue
            code = " ".join(line.split())
            if code and not code.startswith("`timescale"):  # no logic hangs on it
                found.append((code, f"{file}:{number}"))
            number += 1
        return found

    def place(self, at: int) -> str:
        """The "file:line" of a character of the text."""
        file, number = "", 0
        for line in self.text[:at].split("\n"):
            if (mark := _LINE.match(line.strip())) is not None:
                file, number = Path(mark[2]).name, int(mark[1])
            else:
                number += 1
        return f"{file}:{number - 1}"

    def differs(self, other: SourceText) -> str:
        """The place where another reading first has other code, "file:line"; "" if it has the same."""
        mine, its = self.lines(), other.lines()
        for (one, place), (two, _) in zip(mine, its, strict=False):
            if one != two:
                return place
        return "" if len(mine) == len(its) else max(mine, its, key=len)[min(len(mine), len(its))][1]


def text_of_run(job: Job) -> SourceText | None:
    """The reading of a job's simulator, see `read`."""
    return read(job.dut, SIMULATORS[job.simulator], pragmas=False)


def read(dut: Dut, options: Sequence[str], pragmas: bool) -> SourceText | None:
    """The reading of a DUT by a tool, and the modules that it takes from libraries then: with these options
    of Verilator's preprocessor, with or without pragmas. None if the DUT has no source in Verilog.

    Raises:
        SimulatorMissing: there is no Verilator. ElaborationError: it refuses the text.
    """
    sources = verilog_of(dut)
    if not sources:
        return None
    if dut.libraries:
        sources += library_modules(dut, files_read(dut, simulators.verilator(), options))
    with tempfile.TemporaryDirectory(prefix="mmagold_text_") as name:
        folder = Path(name)
        text = _preprocessed(dut, sources, options, folder)
        headers = [folder / name for _, name in _LINE.findall(text)]
        files = [path for path in (*sources, *headers) if path.is_file()]
        if copies := _marked(files, folder, _as_attribute if pragmas else _as_flag):
            folders = [_copy_of(path, folder) for path in (*dut.include, *dut.libraries)]
            text = _preprocessed(dut, [_copy_of(path, folder) for path in sources], options, folder, folders)
            text = _LINE.sub(
                lambda line: line[0].replace(line[2], str(copies.get(Path(line[2]), line[2]))), text
            )
    return SourceText(without_off(text) if pragmas else text)


def other_readings(dut: Dut) -> Iterator[tuple[str, SourceText]]:
    """The texts that tools read in place of the plain one, each once, with "file:line: as who reads it"; the
    place is the first that differs.

    Raises:
        As read does.
    """
    plain = read(dut, _PLAIN, pragmas=False)
    if plain is None:
        return
    headers = [Path(name) for _, name in _LINE.findall(plain.text)]
    texts = {path: path.read_bytes() for path in (*dut.sources, *headers) if path.is_file()}
    if not any(_CONDITION.search(text) for text in texts.values()) and not files_without_off(texts):
        return
    seen = [plain]
    for who, options in (_TOOLS | SYNTHESIS).items():
        text = read(dut, options, pragmas=who in SYNTHESIS)
        if text is not None and (place := plain.differs(text)) and all(map(text.differs, seen)):
            seen.append(text)
            yield f"{place}: as {who} reads it", text


def of_text(dut: Dut, file: Path) -> Dut:
    """A DUT whose Verilog is that of one file, which a tool has read."""
    others = tuple(path for path in dut.sources if path not in verilog_of(dut))
    return replace(dut, sources=(file, *others), include=(), defines={}, libraries=())


def on_text(job: Job, text: str, name: str) -> Job:
    """A job in Verilator on a text that replaces all Verilog of its DUT."""
    mine = of_text(job.dut, kept_text(job.build, name, text))
    return replace(job, dut=mine, simulator="verilator", program=None, waves=None)


def synthesised(dut: Dut, build: Path) -> Dut | None:
    """The DUT without the text between pragmas `translate_off` and `translate_on`; None if there is none."""
    texts = files_without_off(dut.sources if dut.vhdl is not None else verilog_of(dut))
    if not texts:
        return None
    written = {path: kept_text(build, path.stem, as_bytes(text), path.suffix) for path, text in texts.items()}
    sources = tuple(written.get(path, path) for path in dut.sources)
    if dut.vhdl is not None:
        return replace(dut, sources=sources)
    folders = dict.fromkeys(path.parent for path in written)  # of what they include
    return replace(dut, sources=sources, include=(*dut.include, *folders))


def synthesis_files(dut: Dut, files: Iterable[Path]) -> list[Path]:
    """The files that synthesis reads of a DUT of which a simulator reads `files`; none if synthesis cannot
    elaborate it."""
    found: dict[Path, None] = {}
    if any(_CONDITION.search(path.read_bytes()) for path in files):
        for options in SYNTHESIS.values():
            with contextlib.suppress(RtlError):
                found |= dict.fromkeys(files_read(dut, simulators.verilator(), options))
    return list(found)


def undeclared(text: str) -> str:
    """A text without declarations of full or parallel choices: whatever matches, it runs to its end."""
    return _DECLARED.sub(" ", text)


def _preprocessed(
    dut: Dut, sources: Sequence[Path], options: Sequence[str], folder: Path, before: Sequence[Path] = ()
) -> str:
    """The text without comments, except Verilator's own. (With --pp-comments Verilator keeps a comment that
    ends a `define in every use of the macro, where it hides the rest of the line.)"""
    words: list[str | Path] = [f"-I{path}" for path in before]
    words += [*design_options(dut, "verilator"), *options, *sources]
    return simulators.preprocessed(words, folder=folder, what=dut.name)


def _marked(files: Iterable[Path], folder: Path, mark: Callable[[re.Match[str]], str]) -> dict[Path, Path]:
    """Copies of all files of a design, in which `mark` turns pragmas in comments into text that the
    preprocessor keeps, and the file of each; nothing if no file has any. All are copied, so that each
    includes the copies of its neighbours."""
    before = {path: read_source(path) for path in files}
    after = {path: PIECES.sub(mark, text) for path, text in before.items()}
    if before == after:
        return {}
    for path, text in after.items():
        target = _copy_of(path, folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        write(target, text)
    return {_copy_of(path, folder): path for path in after}


def _copy_of(path: Path, folder: Path) -> Path:
    """The path of the copy of a file or a folder below a folder."""
    return folder / "copies" / os.path.abspath(path).lstrip("/")


def _as_flag(piece: re.Match[str]) -> str:
    """A pragma of a `case` as the comment in which Verilator keeps it; other text unchanged."""
    said = _FLAGS.match(piece["line"] or piece["block"] or "")
    flags = _CASES.findall(said[1]) if said is not None else []
    if not flags:
        return piece[0]
    return "".join(f"/*verilator {flag}*/" for flag in flags) + "\n" * piece[0].count("\n")


def _as_attribute(piece: re.Match[str]) -> str:
    marked = as_attribute(piece)
    return _as_flag(piece) if marked == piece[0] else marked


def _without_comments(piece: re.Match[str]) -> str:
    """The text without comments, except pragmas of a `case`, which allow transformations of it."""
    if not piece[0].startswith(_COMMENTS) or _KEPT.fullmatch(piece[0]):
        return piece[0]
    return " " + "\n" * piece[0].count("\n")
