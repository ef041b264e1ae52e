"""What the shell completes: architectures, cards, names of instructions, formats.

Bash takes a colon for the end of a word: it hands over hopper:HM as three words and replaces the last of
them. `rejoined` makes one word of them again, and cuts what is printed to what Bash will replace.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout

import typer


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


def _fitting(candidates: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in candidates if name.startswith(incomplete)]


def architecture(incomplete: str) -> list[str]:
    """Architectures; the words that mean one where no name fits."""
    from golden.catalog import architectures

    names = _fitting(architectures.architectures(), incomplete)
    return names or _fitting(_cards(), incomplete.lower())


def instruction(ctx: typer.Context, incomplete: str) -> list[str]:
    """architecture:instruction, or the instructions of --arch."""
    from golden.catalog import architectures
    from golden.catalog.resolver import resolver

    chosen = resolver().meant(str(ctx.params.get("arch") or ""))
    if chosen is not None:
        return _fitting(resolver().known_names(chosen), incomplete)
    prefix, colon, _ = incomplete.partition(":")
    meant = resolver().meant(prefix) if colon else None
    if meant is not None:
        return _fitting((f"{prefix}:{name}" for name in resolver().known_names(meant)), incomplete)
    names = _fitting((f"{name}:" for name in architectures.architectures()), incomplete)
    return names or _fitting((f"{card}:" for card in _cards()), incomplete.lower())


def document(ctx: typer.Context, incomplete: str) -> list[str]:
    """An architecture, or what `instruction` completes."""
    return [*architecture(incomplete), *instruction(ctx, incomplete)]


def number_format(incomplete: str) -> list[str]:
    """Formats and the words for types of operands."""
    from golden.number.format_words import format_words
    from golden.number.formats import formats

    return _fitting(dict.fromkeys((*formats(), *format_words())), incomplete)


def _cards() -> list[str]:
    """The words for architectures, as one word each."""
    from golden.catalog.resolver import resolver

    return [word for word, chip in resolver().words.items() if chip.name]
