"""Every file that the project reads: how large, deep and well formed it may be, decided before anything is
made of it.

    text = read_text(path)                    # UTF-8, at most MAX_TEXT bytes
    value = read_json(path)                   # no key twice, no NaN, not nested deeper than MAX_NESTING

Whatever a file holds, the answer is its content or one FileFormatError that names the file: no crash, no
endless work.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from golden.errors import FileFormatError, nearest

MAX_NESTING = 64
MAX_TEXT = 64 << 20
"""Bytes of a file that is read as one text: specs, manifests, reports."""
MAX_DIGITS = 40
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)


def read_bytes(path: str | Path, most: int = MAX_TEXT) -> bytes:
    """The content of a file or pipe of at most `most` bytes.

    Raises:
        FileFormatError: it cannot be read, or holds more.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}") from None
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


# JSON -------------------------------------------------------------------------------------------------------


def read_json(path: str | Path, most: int = MAX_TEXT) -> Any:
    """The value in a JSON file. Raises FileFormatError as `parse_json`, and where the file cannot be read."""
    return parse_json(read_text(path, most), str(path))


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
    value: Any, wanted: Mapping[str, type | tuple[type, ...]], where: str, optional: Iterable[str] = ()
) -> None:
    """Raises the FileFormatError of a JSON object that lacks a key, has another one,
    or a value of another type."""
    if not isinstance(value, dict):
        raise FileFormatError(f"{where}: {_shown(value)} stands where an object belongs")
    for key in value:
        if key not in wanted:
            raise FileFormatError(
                f"{where}: unknown key '{shortened(key)}', expected {', '.join(wanted)}{nearest(key, wanted)}"
            )
    for key, kind in wanted.items():
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if key not in value:
            if key in optional:
                continue
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
