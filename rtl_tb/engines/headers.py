"""The header of Verilator's runtime, read by the compiler once for all designs.

g++ needs longer to read `verilated.h`, with the standard library behind it, than to compile what Verilator
writes of most units. It is precompiled for each compiler and set of options into $MMAGOLD_CACHE, else
~/.cache/mmagold. g++ itself takes a precompiled header only where compiler, macros and options are those it
was made with, and reads the text otherwise; without a place for it, or with another compiler, nothing is
precompiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from golden.errors import MmagoldError
from golden.paths import cache_folder
from rtl_tb.dut.description import Dut
from rtl_tb.engines import contents
from rtl_tb.engines.builds import HDL, stamp
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import Simulator

HEADER = "verilated.h"
_STAMPS = "headers.json"
_MACROS = ["-DVERILATOR=1"]
_MACROS += [f"-DVM_{name}=0" for name in ("COVERAGE", "SC", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")]
_PLAIN = re.compile(r"[\w./+@-]+")
"""Paths that neither make nor a shell reads in a way of its own."""


def optimisation(level: str, dut: Dut, simulator: Simulator, options: Sequence[str]) -> str:
    """OPT_FAST=... for Verilator's makefile: compile with this level, and with the precompiled header where
    that can be.

    A large design, of which make compiles several files at a time, has a precompiled header of its own; one
    with delays is compiled with coroutines, and takes only a header that was, too.

    Args:
        level: such as -O2.
        options: the others that change what the header means.
    """
    header = None
    if all(source.suffix in HDL for source in dut.sources):  # C++ of the user is left alone
        header = _precompiled(simulator, (level, *options))
    if header is None:
        return f"OPT_FAST={level}"
    # Several files at a time, waits in the design: as make sees them when Verilator has read the design.
    like_these = f"0{int('-fcoroutines' in options)}"
    return (
        f"OPT_FAST={level} $(if $(filter {like_these},$(VM_PARALLEL_BUILDS)$(VM_TIMING)),-include {header})"
    )


def _precompiled(simulator: Simulator, options: tuple[str, ...]) -> Path | None:
    """The header beside which the precompiled one lies, made where there is none of the headers of today;
    None where it cannot be."""
    found = _compiler(simulator.compiler, simulator.env["PATH"])
    if found is None:
        return None
    compiler, about, include = found
    key = repr((about, simulator.identity, str(include), options))
    digest = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:24]
    folder = cache_folder().absolute() / f"verilated_{digest}"
    if not _PLAIN.fullmatch(str(folder)):
        return None
    with contextlib.suppress(OSError, ValueError, MmagoldError):
        if not _is_of_today(folder):
            _make(
                simulator,
                [compiler, *options, *_MACROS, f"-I{include}", f"-I{include / 'vltstd'}"],
                include,
                folder,
            )
        return folder / HEADER
    return None


@lru_cache(maxsize=8)
def _compiler(verilator: Path, path: str) -> tuple[str, str, Path] | None:
    """Path and version of the compiler that Verilator's makefile names, if it is g++, and the folder of the
    headers."""
    root = verilator.resolve().parent.parent
    for include in (root / "include", root / "share" / "verilator" / "include"):
        makefile = include / "verilated.mk"
        if not makefile.is_file() or not (include / HEADER).is_file():
            continue
        named = re.findall(r"^CXX *= *(\S+)$", makefile.read_text(encoding="utf-8"), re.MULTILINE)
        program = shutil.which(named[-1], path=path) if named else None
        if program is None:
            return None
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        return (program, said, include) if "Free Software Foundation" in said else None
    return None


def _is_of_today(folder: Path) -> bool:
    """Whether a precompiled header is there and not damaged, and every file that was read for it is as it
    was. g++ takes a part of one for the whole, and what it then says sounds like a fault of the design."""
    if not _undamaged(folder, stamp(folder / f"{HEADER}.gch"), stamp(folder / _STAMPS)):
        return False
    stamps = json.loads((folder / _STAMPS).read_text(encoding="utf-8"))
    return all(_stamp(Path(name)) == before for name, before in stamps.items())


@lru_cache(maxsize=8)
def _undamaged(folder: Path, *_stamps: tuple[int, ...]) -> bool:
    """Whether all lies there as it was made; 70 MB take a tenth of a second, and are read again only after a
    write."""
    return contents.intact(folder)


def _stamp(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _make(simulator: Simulator, command: Sequence[str], include: Path, folder: Path) -> None:
    """Precompiles into a folder of its own, which then gets its name in one step; where another process was
    faster, its header serves."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="verilated_", dir=folder.parent) as temporary:
        place = Path(temporary) / "new"
        place.mkdir()
        header, read = place / HEADER, place / "read.d"
        header.write_text(f'#include "{include / HEADER}"\n', encoding="utf-8")
        words: list[str | Path] = [*command, "-MD", "-MF", read, "-x", "c++-header", header]
        words += ["-o", f"{header}.gch"]
        simulators.run(words, folder=place, env=simulator.env, log=place / "log")
        names = read.read_text(encoding="utf-8").partition(":")[2].replace("\\\n", " ").split()
        stamps = {name: _stamp(Path(name)) for name in names if not Path(name).is_relative_to(place)}
        (place / _STAMPS).write_text(json.dumps(stamps), encoding="utf-8")
        contents.write(place)
        if folder.exists() and not _is_of_today(folder):
            folder.rename(Path(temporary) / "old")
        with contextlib.suppress(OSError):
            place.rename(folder)
