"""The text of RTL sources: one character a byte, whatever their encoding.

text = read(path); write(path, text)        # the same bytes

RTL holds bytes above 127 only in comments and strings: of UTF-8, of Latin-1, of anything. slang counts bytes,
so its offsets are places in these texts.
"""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> str:
    """The text of a source, with every byte and line ending unchanged."""
    return path.read_bytes().decode("latin-1")


def write(path: Path, text: str) -> None:
    """Writes the result of `read`."""
    path.write_bytes(as_bytes(text))


def as_bytes(text: str) -> bytes:
    """The bytes of the result of `read`."""
    return text.encode("latin-1")


def in_ascii(text: str) -> str:
    """The text with "?" for each byte above 127: of the same length in every encoding."""
    return text.encode("ascii", "replace").decode("ascii")


def shown(text: str) -> str:
    """The text for people: UTF-8 if its bytes are valid UTF-8, else Latin-1."""
    try:
        return as_bytes(text).decode("utf-8")
    except UnicodeError:
        return text
