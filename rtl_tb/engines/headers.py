"""What does not depend on a design, compiled once for all: the header and the objects of Verilator's runtime,
and the harness of the fast engine.

g++ needs longer to read `verilated.h`, with the standard library behind it, and to compile the runtime than
to compile what Verilator writes of most units: eight seconds of processor time for each build. Both are kept
for each compiler and set of options in $MMAGOLD_CACHE, else ~/.cache/mmagold. g++ itself takes a precompiled
header only with the compiler, macros and options that it was made with; the objects are kept under all of
these, the harness also under its text and the widths of the ports. Without a place for them, or with another
compiler, nothing is kept; where the user sets OBJCACHE, that keeps the objects.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
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
RUNTIME = ("verilated.o", "verilated_threads.o")
"""Objects of the runtime that every program has."""
DELAYS = ("verilated_timing.o",)
"""What the runtime of a design with delays has in addition."""
COROUTINES = "-fcoroutines"
"""The option of g++ with which Verilator compiles a design that has delays."""
LEVEL_OF_RUNTIME = "-Og"
"""The compiler's level for the runtime, of which a unit calls little: -O1 compiles a quarter longer."""
_HEADERS_LEVEL = "-O2"
"""The level of the precompiled header, which g++ takes at every level with the same macros: -Og to -O3."""
_MACROS = ["-DVERILATOR=1"]
_MACROS += [f"-DVM_{name}=0" for name in ("COVERAGE", "SC", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")]
_PLAIN = re.compile(r"[\w./+@-]+")
"""Paths that neither make nor a shell reads in a way of its own."""


def optimisation(
    level: str, dut: Dut, simulator: Simulator, options: Sequence[str], delays: bool = False
) -> tuple[str, str]:
    """OPT_FAST=... and OPT_GLOBAL=... for Verilator's makefile: compile the design with this level, the
    runtime with LEVEL_OF_RUNTIME, and both with the precompiled header where that can be.

    A large design, of which make compiles several files at a time, has a precompiled header of its own; one
    with delays is compiled with coroutines, and takes only a header that was, too.

    Args:
        level: -Og to -O3; at others g++ reads the header as a text.
        options: the others that change what the header means.
        delays: a header for designs with delays, in addition to the one with these options.
    """
    with_header = ""
    own_compiler = any(source.suffix not in HDL for source in dut.sources)  # C++ of the user is left alone
    for more in () if own_compiler else ((), (COROUTINES,))[: 1 + delays]:
        with_these = (*options, *more)
        if (header := _precompiled(simulator, (_HEADERS_LEVEL, *with_these))) is not None:
            # Several files at a time, waits in the design: as make sees them once Verilator has read it.
            like_these = f"0{int(COROUTINES in with_these)}"
            with_header += (
                f" $(if $(filter {like_these},$(VM_PARALLEL_BUILDS)$(VM_TIMING)),-include {header})"
            )
    return f"OPT_FAST={level}{with_header}", f"OPT_GLOBAL={LEVEL_OF_RUNTIME}{with_header}"


def kept_objects(
    objects: Path, simulator: Simulator, options: Sequence[str], names: Sequence[str] = RUNTIME
) -> str:
    """Copies objects that an earlier build kept into the folder `objects`, and returns the options of make
    with which it takes them as they are; "" where there are none.

    Args:
        options: all that they depend on, apart from the compiler and the files that it read.
    """
    found = _place(simulator, ("objects", LEVEL_OF_RUNTIME, *options))
    if found is None or simulator.env.get("OBJCACHE"):
        return ""
    with contextlib.suppress(OSError, ValueError):
        if _is_of_today(found[0], names):
            for name in names:
                shutil.copyfile(found[0] / name, objects / name)
            return " ".join(f"-o {name}" for name in names)
    return ""


def keep_objects(
    objects: Path, simulator: Simulator, options: Sequence[str], names: Sequence[str] = RUNTIME
) -> None:
    """Keeps these objects of a finished build, where none are kept."""
    found = _place(simulator, ("objects", LEVEL_OF_RUNTIME, *options))
    if found is None or simulator.env.get("OBJCACHE"):
        return
    (folder, _, _), read = found, [objects / name.replace(".o", ".d") for name in names]
    with contextlib.suppress(OSError, ValueError):
        if _is_of_today(folder, names) or not all(path.is_file() for path in read):
            return

        def fill(place: Path) -> list[Path]:
            for name in names:
                shutil.copyfile(objects / name, place / name)
            return [path for each in read for path in _read_files(each) if path.is_absolute()]

        _keep(folder, names, fill)


def _place(simulator: Simulator, options: Sequence[str]) -> tuple[Path, str, Path] | None:
    """The folder for what a compiler makes of the runtime with some options, the compiler, and the folder of
    the headers; None where there is no such compiler, or no place."""
    found = _compiler(simulator.compiler, simulator.env["PATH"])
    if found is None:
        return None
    compiler, about, include = found
    key = repr((about, simulator.identity, str(include), tuple(options)))
    digest = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:24]
    folder = cache_folder().absolute() / f"verilated_{digest}"
    return (folder, compiler, include) if _PLAIN.fullmatch(str(folder)) else None


def _precompiled(simulator: Simulator, options: tuple[str, ...]) -> Path | None:
    """The header next to which the precompiled one lies, made where there is none of the headers of today;
    None where it cannot be."""
    found = _place(simulator, options)
    if found is None:
        return None
    folder, compiler, include = found
    with contextlib.suppress(OSError, ValueError, MmagoldError):
        if not _is_of_today(folder, (f"{HEADER}.gch",)):
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


def _is_of_today(folder: Path, names: Sequence[str]) -> bool:
    """Whether what was compiled is there and not damaged, and every file that was read for it is as it was.
    g++ takes a part of a header for the whole, and what it then says sounds like a fault of the design."""
    if not _undamaged(folder, *(stamp(folder / name) for name in (*names, _STAMPS))):
        return False
    stamps = json.loads((folder / _STAMPS).read_text(encoding="utf-8"))
    return all(_stamp(Path(name)) == before for name, before in stamps.items())


@lru_cache(maxsize=8)
def _undamaged(folder: Path, *_stamps: tuple[int, ...]) -> bool:
    """Whether all lies there as it was made; 70 MB take a tenth of a second, and are read again only after a
    write."""
    return contents.intact(folder)


def _stamp(path: Path) -> list[int]:
    """Size and time of a file; empty where there is none, such as one of a checkout that has moved."""
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _make(simulator: Simulator, command: Sequence[str], include: Path, folder: Path) -> None:
    """Precompiles the header."""

    def fill(place: Path) -> list[Path]:
        header, read = place / HEADER, place / "read.d"
        header.write_text(f'#include "{include / HEADER}"\n', encoding="utf-8")
        words: list[str | Path] = [*command, "-MD", "-MF", read, "-x", "c++-header", header]
        words += ["-o", f"{header}.gch"]
        simulators.run(words, folder=place, env=simulator.env, log=place / "log")
        return [path for path in _read_files(read) if not path.is_relative_to(place)]

    _keep(folder, (f"{HEADER}.gch",), fill)


def _read_files(file: Path) -> list[Path]:
    """The files that a compiler read, of what -MD writes."""
    names = file.read_text(encoding="utf-8").partition(":")[2].replace("\\\n", " ").split()
    return [Path(name) for name in names]


def _keep(folder: Path, names: Sequence[str], fill: Callable[[Path], list[Path]]) -> None:
    """Fills a folder of its own, which then gets its name in one step; where another process was faster, what
    it made serves. `fill` returns the files of which a change makes it worthless."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="verilated_", dir=folder.parent) as temporary:
        place = Path(temporary) / "new"
        place.mkdir()
        stamps = {str(path): _stamp(path) for path in fill(place)}
        (place / _STAMPS).write_text(json.dumps(stamps), encoding="utf-8")
        contents.write(place)
        if folder.exists() and not _is_of_today(folder, names):
            folder.rename(Path(temporary) / "old")
        with contextlib.suppress(OSError):
            place.rename(folder)
