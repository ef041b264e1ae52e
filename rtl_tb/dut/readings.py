"""The top of a design whose sources are refused as they are given: read without files that it does not need,
without what synthesis leaves out, or as older VHDL; and where a file lies that is missing.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rtl_tb.dut.ports import Design, Module, read_ports
from rtl_tb.dut.pragmas import files_without_off
from rtl_tb.dut.sources import MAX_LIST, VHDL, packages_first, text_of
from rtl_tb.dut.text import write
from rtl_tb.dut.vhdl import Vhdl, read_entity
from rtl_tb.errors import ElaborationError

_LONGEST = 200
"""Characters of a simulator's message in a comment."""
_DEFINED = re.compile(
    r"^\s*(?:virtual\s+|extern\s+)?(?:module|macromodule|interface|package|primitive|entity)\s+"
    r"(?:automatic\s+|static\s+|body\s+)?(\w+)|^\s*architecture\s+\w+\s+of\s+(\w+)",
    re.MULTILINE | re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
MAX_SEARCHED = 2000
"""Files at most that are searched for one that is missing: a large repository's, in a second or two."""


def _defined_in(path: Path) -> set[str]:
    """What modules, interfaces, packages and entities a file defines, in small letters."""
    text = _without_comments(path)
    return {name.lower() for found in _DEFINED.finditer(text) for name in found.groups() if name}


def _without_comments(path: Path) -> str:
    text = text_of(path)
    return re.sub(r"--[^\n]*", " ", text) if path.suffix.lower() in VHDL else text


def needed(files: Sequence[Path], top: str) -> tuple[Path, ...]:
    """Those of the files that define the top, or what a needed one names, or nothing: macros and text of
    others. A repository's folder may hold a second copy of a module, or a test bench."""
    homes: dict[str, list[Path]] = {}
    own = {path: _defined_in(path) for path in files}
    for path, names in own.items():
        for name in names:
            homes.setdefault(name, []).append(path)
    found = {path for path, names in own.items() if not names}
    left = list(homes.get(top.lower(), ()))
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            names = {word.lower() for word in _NAME.findall(_without_comments(path))}
            left += [home for name in names & homes.keys() for home in homes[name]]
    return tuple(path for path in files if path in found)


_MISSING = (
    (
        re.compile(
            r"Cannot find include file: '?\"?([\w./-]+)|'([\w./-]+)': no such file|"
            r"nclude file ([\w./-]+) not found"
        ),
        True,
    ),
    (
        re.compile(
            r"containing module: '(\w+)'|package not found: '(\w+)'|Package/class [^;]*not found: '(\w+)'|"
            r"Package/class '(\w+)' not found|unknown (?:module|package) '(\w+)'|"
            r"Unknown module type: (\w+)|unit \"(\w+)\" not found|components without an entity: (\w+)",
        ),
        False,
    ),
)
"""What readers say of a file that is to be included, and of a module, a package or an entity, that they do
not have."""


@dataclass(frozen=True)
class _Lacking:
    """What a reader misses, and where it lies: a source, or the `folder` of a file that is included."""

    name: str
    path: Path
    folder: bool

    def __str__(self) -> str:
        return f"{'-I ' * self.folder}{self.path} (has {self.name})"

    def added_to(self, design: Design) -> Design:
        """The design with it."""
        if self.folder:
            return replace(design, include=(*design.include, self.path))
        return replace(design, sources=packages_first([*design.sources, self.path]))


def _lacking(design: Design, said: str) -> _Lacking | None:
    """What a reader misses that lies in the folders around the sources; None where it misses nothing of the
    kind, or it is nowhere near."""
    for pattern, included in _MISSING:
        found = pattern.search(said)
        name: str = next(filter(None, found.groups()), "") if found else ""
        for path in _around([*design.sources, *design.include]) if name else ():
            if included and path.as_posix().endswith(f"/{name}"):
                return _Lacking(name, Path(path.as_posix().removesuffix(f"/{name}")), True)
            if not included and name.lower() in _names_if_source(path):
                return _Lacking(name, path, False)
    return None


def where_is(design: Design, said: str, read: Callable[[Design], object]) -> str:
    """Where everything lies that a reader misses, the end of a message: what it says once it has the first
    names the second. "" where it misses nothing that is near."""
    found: list[_Lacking] = []
    rest = ""
    most = 50  # of a unit that was named without its libraries; a reading takes a second
    while len(found) < most and (one := _lacking(design, said)) is not None and one not in found:
        found.append(one)
        design = one.added_to(design)
        try:
            read(design)
        except ElaborationError as error:
            said = rest = " ".join(str(error).split())
        else:
            rest = ""
            break
    if not found:
        return ""
    key = "; in dut.yaml a folder belongs to include" * any(one.folder for one in found)
    still = f"; with {'it' if len(found) == 1 else 'them'}: {rest}" * bool(rest)
    return f"; name this, too: {', '.join(map(str, found))}{key}{still}"


def _names_if_source(path: Path) -> set[str]:
    suffixes = (".v", ".sv", ".svh", ".vh", *VHDL)
    return _defined_in(path) if path.suffix.lower() in suffixes and path.stat().st_size < MAX_LIST else set()


def _around(files: Iterable[Path]) -> Iterator[Path]:
    """The files in the folders of these, then in those two above, the nearest first; no more than
    MAX_SEARCHED."""
    above = 2  # levels: from rtl/core/alu to rtl, which also has rtl/common
    seen = set[Path]()
    roots = list(dict.fromkeys(path.absolute().parent for path in files))
    for _ in range(above + 1):
        for root in roots:
            for folder, folders, names in os.walk(root):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(names):
                    path = Path(folder) / name
                    if path in seen or not path.is_file():
                        continue
                    seen.add(path)
                    yield path
                    if len(seen) >= MAX_SEARCHED:
                        return
        roots = list(dict.fromkeys(root.parent for root in roots))


def elaborated(design: Design, vhdl: Vhdl | None) -> tuple[Module, Design, Vhdl | None, list[str]]:
    """The top of a design, the design and the edition of the language with which it is read, and as a comment
    what was left out for it: a text that is refused is read without files that the top does not need, without
    what synthesis leaves out, and as VHDL-93.

    Raises:
        ElaborationError: no simulator takes it either way.
    """

    def read(design: Design, vhdl: Vhdl | None) -> Module:
        return read_entity(design, vhdl) if vhdl else read_ports(design)

    try:
        return read(design, vhdl), design, vhdl, []
    except ElaborationError as error:
        refused = error
    why = " ".join(str(refused).split())
    fewer = replace(design, sources=needed(design.sources, design.top)) if design.top else design
    older = [replace(vhdl, standard="1993")] if vhdl else []
    for edition, what in (
        (vhdl, "Without files that the top does not need"),
        *((each, "As VHDL-93") for each in older),
    ):
        reading = replace(fewer, sources=_without_bare_text(fewer.sources, why))
        while reading.sources and (reading, edition) != (design, vhdl):
            try:
                return read(reading, edition), reading, edition, [f"# {what}: else {shortened_message(why)}"]
            except ElaborationError as error:
                left = _without_bare_text(reading.sources, str(error))
            if left == reading.sources:
                break
            reading = replace(reading, sources=left)
    texts = files_without_off(design.sources)
    with tempfile.TemporaryDirectory(prefix="mmagold_init_") as name:
        moved = {path: Path(name) / f"{at}_{path.name}" for at, path in enumerate(texts)}
        for path, text in texts.items():
            write(moved[path], text)
        sources = [moved.get(path, path) for path in design.sources]
        include = [*design.include, *dict.fromkeys(path.parent for path in moved)]
        with suppress(ElaborationError):
            module = read(replace(design, sources=sources, include=include), vhdl) if texts else None
            if module is not None:
                remark = (
                    "# Read without what stands between the pragmas translate_off and translate_on, as by "
                    f"synthesis: with it {why}"
                )
                return module, design, vhdl, [remark]
    hint = where_is(design, str(refused), lambda design: read(design, vhdl))
    raise ElaborationError(f"{str(refused).rstrip('.')}{hint}") from refused.__cause__ if hint else refused


def _without_bare_text(sources: Sequence[Path], said: str) -> tuple[Path, ...]:
    """The sources without those that a reader complained of and that define nothing: an empty file, or one
    that is no source."""
    complained_of = re.compile("|".join(re.escape(str(path)) + r":\d" for path in sources))
    found = {text.rpartition(":")[0] for text in complained_of.findall(said)}
    return tuple(path for path in sources if str(path) not in found or _defined_in(path))


def shortened_message(text: str) -> str:
    """The beginning of a message, for a comment, with files by their names."""
    text = re.sub(r"\S*/(?=[\w.-]+\.\w+:\d)", "", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ..."
