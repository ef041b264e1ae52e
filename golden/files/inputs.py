"""Every file that the project reads: how large, deep and well formed it may be, decided before anything is
made of it.

    text = read_text(path)                    # UTF-8, at most MAX_TEXT bytes
    value = read_json(path)                   # no key twice, no NaN, not nested deeper than MAX_NESTING

Whatever a file holds, the answer is its content or one FileFormatError that names the file: no crash, no
endless work.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import itertools
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from golden.errors import FileFormatError, SpecError, nearest
from golden.files.output import followed
from golden.paths import installed

MAX_NESTING = 64  # levels of lists and mappings, and of files that name files
MAX_TEXT = 64 << 20
"""Bytes of a file that is read as one text: specs, manifests, reports."""
MAX_DIGITS = 40  # of a number; 2**128 has 39
MAX_HEX = 258  # characters of a number in hexadecimal: 0x and the 1024 bits of the largest constant of a port
_MAX_COMPARED = 1000
"""Names of a folder among which the nearest is looked for, in some milliseconds."""
_NEAR_FILE = 0.8
"""Share of characters that near names of files have in common: most have the same suffix."""
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)


@contextmanager
def opened(path: str | Path) -> Iterator[IO[bytes]]:
    """A regular file, or a descriptor of this process (/dev/stdin, the /dev/fd/63 of a shell's `<(...)`), as
    a stream of bytes. What else a name can stand for has no end or never begins: a device, a FIFO.

    Raises:
        FileFormatError: it cannot be opened or read, or is neither.
    """
    try:
        _, own = followed(Path(path))
        flags = 0 if own is not None else getattr(os, "O_NONBLOCK", 0)  # a FIFO is opened without a writer
        handle = os.open(path, os.O_RDONLY | flags)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode) or (own is None and not stat.S_ISREG(mode)):
        os.close(handle)
        what = next((word for is_kind, word in _KINDS_OF_FILES if is_kind(mode)), "no file")
        raise FileFormatError(f"{path}: cannot be read: it is {what}, expected a file")
    with os.fdopen(handle, "rb") as file:
        try:
            yield file
        except OSError as error:
            raise unreadable(path, error) from None


def unreadable(path: str | Path, error: Exception) -> FileFormatError:
    """The error for a file that the system does not open or read."""
    hint = elsewhere(path) if isinstance(error, FileNotFoundError) else ""
    return FileFormatError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}{hint}")


def elsewhere(path: str | Path) -> str:
    """Where a file may be that does not exist: "; this installation has it at X" for a path of the pages that
    is not in the current folder, else "; nearest: x.yaml" in the folder of the path, or ""."""
    if (place := installed(path)) is not None:
        return f"; this installation has it at {place}"
    try:
        with os.scandir(os.path.dirname(path) or ".") as scan:
            names = [entry.name for entry in itertools.islice(scan, _MAX_COMPARED)]
    except OSError:  # no folder, or not ours to read
        return ""
    return nearest(os.path.basename(path), names, cutoff=_NEAR_FILE)


_KINDS_OF_FILES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_bytes(path: str | Path, most: int = MAX_TEXT) -> bytes:
    """The content of a file (as `opened`) of at most `most` bytes.

    Raises:
        FileFormatError: it cannot be read, or holds more.
    """
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise FileFormatError(f"{path}: larger than {most} bytes")
    return content


def read_text(path: str | Path, most: int = MAX_TEXT) -> str:
    """The content of a UTF-8 file. Raises FileFormatError: it cannot be read, is too large or not UTF-8."""
    return decoded(read_bytes(path, most), path)


def decoded(content: bytes, path: str | Path) -> str:
    """The text in the content of a UTF-8 file. Raises FileFormatError: it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not UTF-8 text at byte {error.start}") from None


# Patterns ---------------------------------------------------------------------------------------------------


def matches(folder: Path, pattern: str, most: int = 100_000) -> list[Path]:
    """The files and folders that a pattern stands for, sorted: `*`, `?` and `[...]` as in shells, `**` any
    folders below. A link to a folder above is not followed, nor does a name that begins with a dot match one
    of the others.

    Raises:
        SpecError: more than `most` files and folders would be looked at; by default those of a large
            repository, about a second.
    """
    seen = 0

    @functools.cache
    def entries(place: str) -> list[os.DirEntry[str]]:
        nonlocal seen
        try:
            with os.scandir(place or ".") as scan:
                found = list(itertools.islice(scan, most - seen + 1))
        except OSError:  # no folder, or not ours to read
            return []
        seen += len(found)
        if seen > most:
            raise SpecError(
                f"'{shortened(pattern)}' in {folder} looks at more than {most} files, expected a pattern "
                "that begins with the name of a smaller folder"
            )
        return found

    def below(place: str, above: tuple[str, ...]) -> Iterator[str]:
        yield place
        real = os.path.realpath(place)
        if real not in above:
            for entry in entries(place):
                if not entry.name.startswith(".") and os.path.isdir(entry.path):
                    yield from below(os.path.join(place, entry.name), (*above, real))

    def found(place: str, parts: tuple[str, ...]) -> Iterator[str]:
        if not parts:
            yield place
        elif parts[0] == "**":
            for each in below(place, ()):
                yield from found(each, parts[1:])
            if len(parts) == 1:
                for each in below(place, ()):
                    names = (entry.name for entry in entries(each) if not entry.name.startswith("."))
                    yield from (os.path.join(each, name) for name in names)
        elif glob.has_magic(parts[0]):
            for entry in entries(place):
                hidden = entry.name.startswith(".") and not parts[0].startswith(".")
                if not hidden and fnmatch.fnmatchcase(entry.name, parts[0]):
                    yield from found(os.path.join(place, entry.name), parts[1:])
        elif os.path.lexists(os.path.join(place, parts[0])):
            yield from found(os.path.join(place, parts[0]), parts[1:])

    whole = Path(pattern)
    start, parts = (whole.anchor, whole.parts[1:]) if whole.is_absolute() else (str(folder), whole.parts)
    return [Path(name) for name in sorted(set(found(start, parts)))]


# JSON -------------------------------------------------------------------------------------------------------


def read_json(path: str | Path) -> Any:
    """The value in a JSON file. Raises FileFormatError as `parse_json`, and where the file cannot be read."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, name: str) -> Any:
    """The value of a JSON text; `name` stands in messages for the file.

    Raises:
        FileFormatError: no JSON, nested deeper than MAX_NESTING, a key twice in one object, NaN or Infinity,
            an integer of more than MAX_DIGITS digits.
    """
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_NESTING:
            raise FileFormatError(f"{name}: no JSON of ours: nested deeper than {MAX_NESTING}")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer)
    except ValueError as error:
        raise FileFormatError(f"{name}: no JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"key '{shortened(twice)}' appears twice")
    return found


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


KINDS: Mapping[type, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def check_keys(
    value: Any, wanted: Mapping[str, type | tuple[type, ...]], where: str, others: bool = False
) -> None:
    """Raises the FileFormatError of a JSON object that lacks a key, has another one (unless `others` may
    stand there), or a value of another type."""
    if not isinstance(value, dict):
        raise FileFormatError(f"{where}: {_shown(value)} stands where an object belongs")
    for key in value:
        if key not in wanted and not others:
            raise FileFormatError(
                f"{where}: unknown key '{shortened(key)}', expected {', '.join(wanted)}{nearest(key, wanted)}"
            )
    for key, kind in wanted.items():
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if key not in value:
            raise FileFormatError(f"{where}: key '{key}' is missing")
        if not isinstance(value[key], kinds) or (isinstance(value[key], bool) and bool not in kinds):
            expected = " or ".join(_WORDS.get(k, k.__name__) for k in kinds)
            raise FileFormatError(f"{where}: key '{key}' is {_shown(value[key])}, expected {expected}")


_WORDS = {**KINDS, list: "a list", dict: "an object", type(None): "null"}


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _WORDS[type(value)]
    return "null" if value is None else shortened(json.dumps(value))


def shortened(text: str) -> str:
    """A text from outside as a message shows it."""
    return text if len(text) <= 60 else f"{text[:57]}..."
