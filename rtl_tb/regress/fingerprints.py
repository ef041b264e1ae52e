"""What the result of a shard depends on: the unit's files, the simulator, mmagold itself.

A result is used again only where all of it is what it was, by content. What the simulator's front end does
not read, such as a file for $readmemh or C++ sources with headers, nobody can list: results of a unit that
has some serve the one regression that made them.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path

import golden
import rtl_tb
from golden import yamlfile
from golden.paths import spec_folder
from rtl_tb.check.source_text import synthesis_files
from rtl_tb.dut.description import Dut
from rtl_tb.dut.sources import VHDL
from rtl_tb.engines.builds import HDL, Inputs, files_read, holds_cpp, stamp
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.simulators import simulators, translators

_PACKAGES = ("cocotb", "numpy", "pyslang")
_OURS = (".py", ".so", ".dylib", ".h", ".c", ".cpp", ".sv", ".yaml")
_READS = re.compile(
    rb'\$(?:readmem[bh]|fopen|sdf_annotate|system|value\$plusargs|test\$plusargs)|"DPI'
    rb"|(?i:\bfile\s+(?:\w+|\\[^\\\n]+\\)\s*[:,]|\bforeign\b)"
)
"""What may bring in a file, or a program, that no front end lists; the words of VHDL in any case."""
_COMMENTS = re.compile(rb'("[^"\n]*")|--[^\n]*|/\*.*?\*/', re.DOTALL)
"""Of VHDL, and strings, which stay."""


def code_digest() -> str:
    """Of all that computes, draws and compares: the packages, the specs, Python and what it is given.

    Raises:
        RtlError: a file of it is not what it was when this process first read it. What runs here would then
        be
            partly the old code, whatever the files say: a worker may live for weeks.
    """
    digest, stamps = _at_first()
    now = _stamps()
    for file in now.keys() | stamps.keys():
        if now.get(file) != stamps.get(file):
            raise RtlError(
                f"{file} of mmagold was changed while {socket.gethostname()} had it loaded; start the "
                "regression, and workers of a cluster, anew"
            )
    return digest


def _files_of_ours() -> list[tuple[Path, Path]]:
    """Every file that counts, with the folder that it belongs to."""
    folders = [Path(str(package.__file__)).parent for package in (golden, rtl_tb)]
    return [
        (folder, file)
        for folder in (*folders, spec_folder())
        for file in sorted(folder.rglob("*"))
        if file.suffix in _OURS and file.is_file()
    ]


def _stamps() -> dict[Path, tuple[int, ...]]:
    return {file: stamp(file) for _, file in _files_of_ours()}


@lru_cache(maxsize=1)
def _at_first() -> tuple[str, dict[Path, tuple[int, ...]]]:
    stamps = _stamps()
    total = hashlib.sha256(platform.python_version().encode())
    for name in _PACKAGES:
        total.update(f"{name} {_version(name)}\n".encode())
    for folder, file in _files_of_ours():
        total.update(f"{folder.name}/{file.relative_to(folder)}\0".encode(errors="surrogateescape"))
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest(), stamps


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def simulator_digest(name: str) -> str:
    """The digest of a simulator's programs, wherever they lie, and of the programs that other stages of a
    check run: a stage whose program is missing finds nothing. Raises as `simulators.find`."""
    others = [other for other in ("icarus", "verilator") if other != name]
    return " ".join(
        (_programs(name), *(_found(partial(_programs, other)) for other in others), _found(_yosys))
    )


def _found(digest: Callable[[], str]) -> str:
    try:
        return digest()
    except RtlError:
        return "missing"


def _programs(name: str) -> str:
    found = simulators.find(name)
    binary = found.compiler.resolve().with_name("verilator_bin")
    return _content(found.version_text, found.identity, (found.compiler, binary, found.runtime))


def _yosys() -> str:
    tool = translators.yosys()
    program = Path(tool.command[0])
    return _content(tool.name, (str(program), str(stamp(program))), (program,))


@lru_cache(maxsize=8)
def _content(version: str, identity: tuple[str, ...], programs: tuple[Path, ...]) -> str:
    """Of the version and the programs; once for each `identity`, which distinguishes installations by place
    and date."""
    total = hashlib.sha256(version.encode())
    for program in programs:
        if program.is_file():
            total.update(hashlib.sha256(program.read_bytes()).digest())
    return total.hexdigest()


@dataclass(frozen=True)
class UnitState:
    """A unit as it is at one moment.

    Attributes:
        digest: of its description and of every file that the simulator or synthesis reads.
        inputs: these files, with data that shows whether they changed.
        listed: whether no other file can matter.
    """

    digest: str
    inputs: Inputs
    listed: bool


def unit_state(dut: Dut, simulator: str) -> UnitState:
    """Looks at a unit's files as they are now.

    Raises:
        ElaborationError: the simulator refuses the unit.
    """
    files, own = _files(dut, simulator)
    files += synthesis_files(dut, files)  # a unit that passes is run as synthesis reads it
    if simulator == "verilator":  # and in Icarus, which may find another header of a name
        with contextlib.suppress(RtlError):
            files += files_read(dut, simulators.icarus())
    inputs = Inputs.read([dut.file, *_unit_file(dut), *files])
    folder = dut.file.parent
    contents = [(_from(folder, path), content) for path, (_, content) in inputs.files.items()]
    settings = [sorted(dut.defines.items()), [_from(folder, path) for path in dut.include]]
    total = hashlib.sha256(repr((settings, contents)).encode(errors="surrogateescape"))
    listed = (
        own
        and all(path.suffix in (*HDL, *VHDL) for path in dut.sources)
        and not any(map(_reads_more, dict.fromkeys(files)))
    )
    return UnitState(total.hexdigest(), inputs, listed)


def _files(dut: Dut, simulator: str) -> tuple[list[Path], bool]:
    """The files that the simulator reads, and whether they are its own list.

    What Icarus refuses is translated for it, and commercial simulators list nothing. For both only Verilator
    can name the files, and its macros differ.
    """
    if (dut.vhdl is not None) != (simulator == "ghdl"):
        raise ElaborationError(
            f"{dut.name} is VHDL, which runs on cocotb/ghdl alone"
            if dut.vhdl is not None
            else f"{dut.name} is Verilog or SystemVerilog, and GHDL runs VHDL"
        )
    if simulator in ("verilator", "icarus", "ghdl"):
        try:
            return files_read(dut, simulators.find(simulator)), True
        except ElaborationError:
            if simulator != "icarus":
                raise
    return files_read(dut, simulators.verilator()), False


def _unit_file(dut: Dut) -> list[Path]:
    name = yamlfile.read(dut.file).get("unit")
    return [dut.file.parent / name] if isinstance(name, str) else []


def _from(folder: Path, path: Path) -> str:
    """A path that does not change when unit and description move together."""
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _reads_more(path: Path) -> bool:
    try:
        text = path.read_bytes()
        if path.suffix in VHDL:
            text = _COMMENTS.sub(rb" \1", text)
        return holds_cpp(path) or _READS.search(text) is not None
    except OSError as error:
        raise RtlError(f"{path}: cannot be read: {error.strerror}") from None
