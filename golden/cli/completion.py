"""What the shell completes: architectures, cards, names of instructions, formats.

Bash takes a colon for the end of a word: it hands over hopper:HM as three words and replaces the last of
them. `rejoined` makes one word of them again, and cuts what is printed to what Bash will replace.

Names are kept in the cache folder, under a digest of what they were made of.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import typer

from golden import __version__, catalog
from golden.errors import MmagoldError
from golden.paths import cache_folder, spec_folder

_CATALOG = Path(catalog.__path__[0])


@contextmanager
def rejoined() -> Iterator[None]:
    """Around what answers Bash: joins the words that it parted at colons, in the variables in which it hands
    them over, and cuts the answers."""
    cut = _rejoin()
    if cut == 0:
        yield
        return
    answers = io.StringIO()
    try:
        with redirect_stdout(answers):
            yield
    finally:
        sys.stdout.write("".join(f"{line[cut:]}\n" for line in answers.getvalue().splitlines()))


def _rejoin() -> int:
    """Joins the words; returns how many characters of the completed one Bash will not replace."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    cursor = int(os.environ.get("COMP_CWORD") or 0)
    joined: list[str] = []
    glue, place, cut = False, cursor, 0
    for index, word in enumerate(words):
        colons = re.fullmatch(":+", word) is not None
        if joined and (colons or glue):
            joined[-1] += word
        else:
            joined.append(word)
        glue = colons
        if index == cursor:
            place = len(joined) - 1
            cut = joined[-1].rfind(":") + 1
    if len(joined) < len(words):
        os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(joined), str(place)
    return cut


def command() -> str:
    """The command or group whose words are being completed; "" where the cursor stands on its own name."""
    if "COMP_WORDS" in os.environ:  # Bash: the whole line, and the number of the cursor's word
        words, cursor = os.environ["COMP_WORDS"].split(), int(os.environ.get("COMP_CWORD") or 0)
    else:  # the line up to the cursor, in which a new word has no character yet
        words = f"{os.environ.get('_TYPER_COMPLETE_ARGS', '')}_".split()
        cursor = len(words) - 1
    return "".join(words[1:2]) if cursor > 1 else ""


def _fitting(candidates: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in candidates if name.startswith(incomplete)]


# Names that specs give --------------------------------------------------------------------------------------


def _digest() -> str:
    """Of everything that the names depend on: the specs, and the code that makes names of them."""
    digest = hashlib.sha256(__version__.encode())
    for folder, pattern in ((spec_folder(), "**/*.yaml"), (_CATALOG, "*.py")):
        for path in sorted(folder.glob(pattern)):
            digest.update(f"{path}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _cached(name: str, make: Callable[[], Any]) -> Any:
    """What `make` returned for these specs, from a file of the cache where there is one: reading the specs
    takes three times as long as all else that an answer needs."""
    path, digest = cache_folder() / "completion" / f"{name}.json", _digest()
    with suppress(OSError, ValueError, LookupError, TypeError):
        kept = json.loads(path.read_bytes())
        if kept["digest"] == digest:
            return kept["value"]
    value = make()
    with suppress(OSError, MmagoldError):  # a cache that cannot be written costs time alone
        from golden.files.output import write_text

        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"digest": digest, "value": value}))
    return value


def _chips() -> dict[str, str]:
    """The architecture that each word for one means; first their own names, in the order of lists."""

    def make() -> dict[str, str]:
        from golden.catalog import architectures
        from golden.catalog.resolver import resolver

        own = {name: name for name in architectures.architectures()}
        return own | {word: chip.name for word, chip in resolver().words.items() if chip.name}

    found: dict[str, str] = _cached("chips", make)
    return found


def _meant(word: str) -> str | None:
    """The architecture that a word means, in whatever spelling."""
    if (found := _chips().get(word)) is not None:
        return found
    from golden.catalog.resolver import resolver

    return resolver().meant(word)


def _names(chip: str) -> list[str]:
    """The names of an architecture's instructions."""

    def make() -> list[str]:
        from golden.catalog.resolver import resolver

        return resolver().known_names(chip)

    found: list[str] = _cached(chip, make)
    return found


def _words(incomplete: str, end: str) -> list[str]:
    """Architectures; the other words that mean one where no name fits."""
    words = _chips()
    names = _fitting((f"{word}{end}" for word, chip in words.items() if word == chip), incomplete)
    return names or _fitting((f"{word}{end}" for word in words), incomplete.lower())


# What commands complete -------------------------------------------------------------------------------------


def architecture(incomplete: str) -> list[str]:
    """Architectures; the words that mean one where no name fits."""
    return _words(incomplete, "")


def instruction(ctx: typer.Context, incomplete: str) -> list[str]:
    """architecture:instruction, or the instructions of --arch."""
    arch = str(ctx.params.get("arch") or "")
    if arch and (chosen := _meant(arch)) is not None:
        return _fitting(_names(chosen), incomplete)
    prefix, colon, _ = incomplete.partition(":")
    meant = _meant(prefix) if colon else None
    if meant is not None:
        return _fitting((f"{prefix}:{name}" for name in _names(meant)), incomplete)
    return _words(incomplete, ":")


def document(ctx: typer.Context, incomplete: str) -> list[str]:
    """An architecture, or what `instruction` completes."""
    return [*architecture(incomplete), *instruction(ctx, incomplete)]


def number_format(incomplete: str) -> list[str]:
    """Formats and the words for types of operands."""
    from golden.number.format_words import format_words
    from golden.number.formats import formats

    return _fitting(dict.fromkeys((*formats(), *format_words())), incomplete)
