"""A unit with everything that it is made of, copied into a folder: it can be checked there on any machine.

    dut.yaml            the description, with the paths of the copies
    instruction.yaml    the unit of one's own that it names, if it does
    rtl/                sources, headers and library modules, placed to each other as they were

What no simulator's front end reads (a file for $readmemh, the headers of C++ sources) is not known, and stays
behind; so does a header that is included by an absolute path.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from golden import yamlfile
from golden.files.output import write_text
from rtl_tb.check.source_text import synthesis_files
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.engines.builds import files_read
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.simulators import simulators

DESCRIPTION, INSTRUCTION, RTL, LIBRARIES = "dut.yaml", "instruction.yaml", "rtl", "libraries.f"


def bundle(dut: Dut, folder: Path) -> list[Path]:
    """Copies a unit into a folder, and returns its files that are still read from outside.

    Raises:
        FileFormatError: the folder cannot be written. RtlError: a file of the unit is missing, or no
            simulator can read it any more.
    """
    folder = folder.absolute()
    folders = [*dut.include, *dut.libraries]
    files = list(dict.fromkeys([*dut.sources, *read_by_any(dut)]))
    root = Path(os.path.commonpath([*(path.parent for path in files), *folders]))
    placed = {path: folder / RTL / path.relative_to(root) for path in (*files, *folders)}
    try:
        for path in folders:
            placed[path].mkdir(parents=True, exist_ok=True)
        for path in files:
            placed[path].parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, placed[path])
    except OSError as error:
        raise RtlError(f"{error.filename}: cannot be copied: {error.strerror}") from None
    write_text(folder / DESCRIPTION, _description(dut, folder, placed))
    return [path for path in read_by_any(load_dut(folder / DESCRIPTION)) if not path.is_relative_to(folder)]


def read_by_any(dut: Dut) -> list[Path]:
    """The files that the simulators of this machine read, each by its own rules, and the files of synthesis.

    Raises:
        RtlError: none reads the unit.
    """
    if dut.vhdl is not None:
        return dut.vhdl.files(dut.sources)
    found: dict[Path, None] = {}
    refused: RtlError | None = None
    for find in (simulators.verilator, simulators.icarus):
        try:
            found |= dict.fromkeys(files_read(dut, find()))
        except RtlError as error:  # missing, or it cannot read this unit
            refused = refused or error
    if not found:
        raise refused or ElaborationError(f"no simulator reads {dut.name}")
    return list(dict.fromkeys([*found, *synthesis_files(dut, found)]))


def _description(dut: Dut, folder: Path, placed: Mapping[Path, Path]) -> str:
    """The dut.yaml of the copy: the content of the file with the paths of the copies."""
    document = _plain(yamlfile.read(dut.file))
    for key in ("filelist", "include", "defines"):
        document.pop(key, None)
    document |= {
        "dut": dut.name,
        "sources": [glob.escape(name) for name in _names(folder, dut.sources, placed)],
    }
    if dut.include:
        document["include"] = _names(folder, dut.include, placed)
    if dut.defines:
        document["defines"] = dict(dut.defines)
    if libraries := [path for path in dut.libraries if path not in dut.include]:
        lines = [f'-y "{name}"\n' for name in _names(folder, libraries, placed)]
        write_text(folder / LIBRARIES, "".join(lines))
        document["filelist"] = LIBRARIES
    if dut.vhdl is not None:
        others = {key: _names(folder, files, placed) for key, files in dut.vhdl.libraries.items()}
        document["vhdl"] = {"standard": dut.vhdl.standard, "libraries": others}
    if "unit" in document:
        shutil.copyfile(dut.file.parent / document["unit"], folder / INSTRUCTION)
        document["unit"] = INSTRUCTION
    head = "# The unit as it was checked; its files are in the same folder.\n"
    return head + yaml.safe_dump(document, sort_keys=False, width=100)


def _names(folder: Path, paths: Iterable[Path], placed: Mapping[Path, Path]) -> list[str]:
    return [str(placed[path].relative_to(folder)) for path in paths]


def _plain(value: Any) -> Any:
    """Values that YAML can represent."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
