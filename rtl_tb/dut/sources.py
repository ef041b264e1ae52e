"""The files of a design: named in dut.yaml, or in the file lists that simulators take (`-f files.f`).

A file list holds source files, `+incdir+DIR`, `-I DIR`, `+define+NAME=VALUE`, `-D NAME=VALUE`, `-y DIR`,
`-v FILE` and further lists (`-f`, `-F`), with `//`, `#` and `/* */` comments and $NAME, ${NAME} or $(NAME) of
the environment. Paths in it start at its own folder, as with -F.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from golden.errors import FileFormatError, SpecError, nearest
from golden.files.inputs import MAX_NESTING, elsewhere, matches, read_text, shortened
from rtl_tb.dut.text import read

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|(?:^|(?<=\s))#[^\n]*", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r'(?:[^\s"]+|"[^"]*")+')
"""A single quote is part of a literal, as in 8'hff."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|\((\w+)\)|(\w+))")
_PACKAGE = re.compile(r"^\s*package\s+(?:automatic\s+|static\s+)?(\w+)\s*;", re.MULTILINE)
_USED = re.compile(r"\b(\w+)\s*::")
MAX_LIST = 4 << 20
"""Bytes of a file list: some hundred thousand names, read in seconds."""
MAX_SOURCE = 256 << 20
"""Bytes of a source: more than any netlist of a unit has, and little enough to be searched in memory."""
_WITH_VALUE = ("-I", "-D", "-y", "-v", "-f", "-F")
_SWITCHES = ("+libext+", "-sv", "-sverilog", "--sv", "+librescan")
"""What says nothing that the simulators here would not do anyway."""


@dataclass
class Sources:
    """Files in compile order, include folders, macros (an empty text defines without a value), and folders
    in which, after those of `include`, a module that is not defined is looked for by its name."""

    files: dict[Path, None] = field(default_factory=dict)
    include: dict[Path, None] = field(default_factory=dict)
    defines: dict[str, str] = field(default_factory=dict)
    libraries: dict[Path, None] = field(default_factory=dict)

    def add(self, other: Sources) -> None:
        """Takes in what another one has."""
        self.files |= other.files
        self.include |= other.include
        self.defines |= other.defines
        self.libraries |= other.libraries

    @property
    def searched(self) -> tuple[Path, ...]:
        """The folders in which every reader looks for a module that is not defined. Verilator takes its
        include folders for such, and first; so no reader knows fewer."""
        return tuple(self.include | self.libraries)


def read_list(
    path: Path, parents: tuple[Path, ...] = (), known: dict[Path, Sources] | None = None
) -> Sources:
    """Reads a file list and the lists in it.

    Args:
        parents: the lists that it is read for.
        known: what the lists hold that were read before; one that many name is read once.

    Raises:
        SpecError: it, or a file or folder in it, is missing, no file or too large; an option or a variable is
            unknown; a list holds itself, or lists stand too deep in each other.
    """
    known = {} if known is None else known
    path = Path(os.path.abspath(path))
    if path in parents:
        raise SpecError(f"{path} is a file list that holds itself, by way of {parents[-1]}")
    if len(parents) >= MAX_NESTING:
        raise SpecError(f"{path} is a file list in {MAX_NESTING} others, one in the other, expected fewer")
    if path not in known:
        known[path] = _read_list(path, parents, known)
    return known[path]


def _read_list(path: Path, parents: tuple[Path, ...], known: dict[Path, Sources]) -> Sources:
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # nor does a file name a pipe of the command
            raise FileFormatError(f"{path}: cannot be read: it is no file")
        text = read_text(path, MAX_LIST)
    except FileFormatError as error:
        raise SpecError(f"file list {error}") from None
    found, words = Sources(), _words(path, text)
    for word in words:
        option = next((each for each in _WITH_VALUE if word.startswith(each)), None)
        if option is not None:
            value = word[len(option) :] or next(words, "")
            if not value:
                raise SpecError(f"{path}: option {option} has no value")
            _option(found, option, value, path, parents, known)
        elif word.startswith(("+incdir+", "+define+")):
            kind, *values = word[1:].split("+")
            for value in filter(None, values):
                _option(found, "-I" if kind == "incdir" else "-D", value, path, parents, known)
        elif not word.startswith(("-", "+")):
            found.files[_file(path, word)] = None
        elif not word.startswith(_SWITCHES):
            options = [*_WITH_VALUE, "+incdir+", "+define+", *_SWITCHES]
            raise SpecError(f"{path}: unknown option '{shortened(word)}'{nearest(word, options)}")
    return found


def _words(path: Path, text: str) -> Iterator[str]:
    def value(match: re.Match[str]) -> str:
        name = next(filter(None, match.groups()))
        if name not in os.environ:
            raise SpecError(f"{path}: the environment has no variable '{name}'{nearest(name, os.environ)}")
        return os.environ[name]

    plain = _COMMENT.sub(" ", text)
    if plain.count('"') % 2:
        raise SpecError(f"{path}: a double quote is not closed")
    return iter([_VARIABLE.sub(value, word.replace('"', "")) for word in _WORD.findall(plain)])


def _option(
    found: Sources,
    option: str,
    value: str,
    path: Path,
    parents: tuple[Path, ...],
    known: dict[Path, Sources],
) -> None:
    if option == "-D":
        name, _, text = value.partition("=")
        found.defines[name] = text
    elif option == "-v":
        found.files[_file(path, value)] = None
    elif option in ("-f", "-F"):
        found.add(read_list(path.parent / value, (*parents, path), known))
    else:
        folder = path.parent / value
        if not folder.is_dir():
            raise SpecError(f"{path}: {folder} is no folder")
        (found.include if option == "-I" else found.libraries)[folder] = None


def _file(path: Path, name: str) -> Path:
    file = path.parent / name
    if not file.is_file():
        raise SpecError(f"{path}: {file} is no file{elsewhere(file)}")
    return file


def check_sizes(files: Iterable[Path]) -> None:
    """Refuses files that are too large to be sources. Raises SpecError."""
    for file in files:
        size = file.stat().st_size
        if size > MAX_SOURCE:
            raise SpecError(f"{file} has {size} bytes, expected a source of at most {MAX_SOURCE}")


def matching(folder: Path, pattern: str, without: Iterable[str]) -> list[Path]:
    """The files that a name or a pattern of dut.yaml stands for, in the order of their names.

    Raises:
        SpecError: the pattern goes through too many files.
    """
    found = matches(folder, pattern) if glob.has_magic(pattern) else [folder / pattern]
    return [path for path in found if os.path.isfile(path) and path.name not in without]


VHDL = (".vhd", ".vhdl")


def in_vhdl(files: Iterable[Path]) -> bool:
    """Whether the sources of a unit are VHDL; raises SpecError where only some are."""
    kinds: dict[bool, Path] = {path.suffix.lower() in VHDL: path for path in files}
    if len(kinds) > 1:
        raise SpecError(
            f"{kinds[True].name} is VHDL and {kinds[False].name} is not: no engine here runs a unit in two "
            "languages"
        )
    return True in kinds


def packages_first(files: Iterable[Path]) -> tuple[Path, ...]:
    """The same files, those before the others that define packages, each behind those that it uses."""
    texts = {path: text_of(path) for path in files}
    home = {name: path for path, text in texts.items() for name in _PACKAGE.findall(text)}
    ordered: dict[Path, None] = {}
    under_way: set[Path] = set()

    def place(path: Path) -> None:
        if path in ordered or path in under_way:
            return
        under_way.add(path)
        for name in _USED.findall(texts[path]):
            if home.get(name, path) != path:
                place(home[name])
        ordered[path] = None

    for path in dict.fromkeys(home.values()):
        place(path)
    return (*ordered, *(path for path in texts if path not in ordered))


def options(
    simulator: str, include: Iterable[Path], defines: Mapping[str, str], libraries: Iterable[Path]
) -> list[str]:
    """Include folders, macros and libraries as a simulator takes them. A file includes what is in the
    folder of it, as in slang, VCS, Questa and Xcelium, which need no option for it."""
    macros = [f"-D{name}={value}" if value else f"-D{name}" for name, value in defines.items()]
    folders = [word for path in libraries for word in ("-y", str(path))]
    suffix = ["-Y.sv"] if folders and simulator == "icarus" else []  # Verilator looks for .v and .sv anyway
    relative = {"verilator": ["--relative-includes"], "icarus": ["-grelative-include"]}.get(simulator, [])
    return [*relative, *(f"-I{path}" for path in include), *macros, *folders, *suffix]


def text_of(path: Path) -> str:
    """Without comments; nothing of a file that is not there, of which the simulator complains."""
    try:
        return _COMMENT.sub(" ", read(path))
    except OSError:
        return ""
