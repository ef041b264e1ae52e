"""What a design needs in addition to its sources, as a command line gives it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from golden.errors import SpecError
from golden.files.inputs import elsewhere
from rtl_tb.dut.ports import Design
from rtl_tb.dut.sources import Sources, check_sizes, in_vhdl, matching, packages_first, read_list
from rtl_tb.dut.vhdl import Vhdl
from rtl_tb.dut.yaml_text import flow


@dataclass(frozen=True)
class Given:
    """What a design needs in addition to its sources."""

    filelists: Sequence[Path] = ()
    include: Sequence[Path] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """The files of libraries of VHDL other than work, by name."""

    @property
    def vhdl(self) -> Vhdl:
        """What a unit in VHDL needs in addition to its sources."""
        given = self.libraries.items()
        return Vhdl(libraries={name.lower(): tuple(map(Path.absolute, files)) for name, files in given})

    def design(self, files: Sequence[Path], top: str | None) -> Design:
        """The whole design; raises SpecError where a file list is wrong, or a source is no file."""
        found = Sources()
        for name in self.filelists:
            found.add(read_list(name))
        for file in files:
            named = [Path(file)] if Path(file).is_file() else matching(Path(), str(file), ())
            if not named:
                raise SpecError(
                    f"source '{file}' is no file; looked for it at {Path(file).absolute()}{elsewhere(file)}"
                )
            found.files |= dict.fromkeys(path.absolute() for path in named)
        check_sizes([*found.files, *(path for files in self.libraries.values() for path in files)])
        found.include |= dict.fromkeys(path.absolute() for path in self.include)
        defines = found.defines | dict(self.defines)
        if in_vhdl(found.files):
            if found.include or defines or found.libraries or self.types:
                raise SpecError("include folders, macros, types and -y mean nothing in VHDL")
            return Design(tuple(found.files), top, parameters=self.parameters)
        if self.libraries:
            raise SpecError("--library is for units in VHDL, but no source is")
        ordered = packages_first(found.files)
        include, libraries = tuple(found.include), found.searched
        return Design(ordered, top, include, defines, self.parameters, libraries, self.types)

    def lines(self, folder: Path, standard: str = "") -> list[str]:
        """The same as keys of a dut.yaml, with the edition of VHDL where it is not that of the default."""
        keys: dict[str, Any] = {
            "filelist": paths_from(self.filelists, folder),
            "include": paths_from(self.include, folder),
            "defines": dict(self.defines),
            "parameters": dict(self.parameters),
            "types": dict(self.types),
        }
        libraries = {name: paths_from(files, folder) for name, files in self.libraries.items()}
        edition = {"standard": standard} if standard else {}
        keys["vhdl"] = edition | ({"libraries": libraries} if libraries else {})
        return [f"{key}: {flow(value)}" for key, value in keys.items() if value]


def paths_from(paths: Iterable[Path], folder: Path) -> list[str]:
    """Paths as a file in a folder writes them."""
    return [os.path.relpath(path, folder) for path in paths]


_NUMBER = re.compile(r"(?:\d+\s*)?'([bodh])([\da-f][\da-f_]*)", re.IGNORECASE)
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


def parameter_value(text: str) -> int | str:
    """The value of a parameter as a command line gives it: a number, also as SystemVerilog writes it (8'h3f),
    or a text, in quotes or not."""
    if re.fullmatch(r"[+-]?\d+(_\d+)*", text, re.ASCII):
        return int(text)
    number = _NUMBER.fullmatch(text)
    if number is not None:
        try:
            return int(number[2], _BASES[number[1].lower()])
        except ValueError:  # a digit that the base has not
            return text
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
