"""What people type to find instructions: parts of names, types (nvfp4), cards (b200), in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from golden.catalog import architectures, machine_code
from golden.catalog.families import Variables, fill
from golden.model.instruction import Instruction
from golden.number.format_words import FormatWord, format_word, format_words


def split(text: str) -> list[str]:
    """The words of a search: those between spaces, and those around the colon of b200:nvfp4."""
    found = []
    for word in text.split():
        head, colon, rest = word.partition(":")
        apart = colon and not rest.startswith(":") and architectures.meant(head) is not None
        found += [part for part in (head, rest) if part] if apart else [word]
    return found


def known() -> list[str]:
    """The words that mean an architecture or a type of operands."""
    return [*architectures.known_words(), *format_words()]


def are_types(text: str) -> bool:
    """Whether every word is a type of operands."""
    return bool(text.split()) and all(format_word(word) for word in text.split())


def has_types(ins: Instruction, text: str) -> bool:
    """Whether an instruction has the types that every word means."""
    kinds = [kind for word in text.split() if (kind := format_word(word)) is not None]
    return all(means_types_of(kind, ins) for kind in kinds)


def but_for_n(name: str) -> str:
    """The name with an asterisk for N, the same for the instructions of one sweep over N."""
    return re.sub(r"(m\d+n)\d+(k\d+)", r"\1*\2", name)


def matches(architecture: str, text: str) -> Iterator[str]:
    """The names of an architecture's instructions that every word of `text` fits: the word means the
    architecture, is a type of an operand, or is part of one of the instruction's names (PTX, SASS, AMD)."""
    rest = _unmet(architecture, text)
    for name, (entry, variables) in architectures.get_architecture(architecture).names().items():
        if all(_fits(word, entry, variables) for word in rest):
            yield name


def in_name(architecture: str, text: str, name: str) -> bool:
    """Whether every word means the architecture or is part of `name`."""
    return all(machine_code.plain(word) in machine_code.plain(name) for word in _unmet(architecture, text))


def _unmet(architecture: str, text: str) -> list[str]:
    """The words that do not mean the architecture; "RTX 5090" is one word where all of it means one."""
    if architectures.meant(text) is not None:
        return [] if architectures.meant(text) == architecture else [text]
    return [word for word in split(text) if architectures.meant(word) != architecture]


def _stored(block: int | None, sparse: bool) -> int | None:
    """The stored elements that share a scale; with the zeros of sparsity a block has twice this number."""
    return block // 2 if block is not None and sparse else block


def means_types_of(word: FormatWord, ins: Instruction) -> bool:
    """Whether an instruction has the types that a word means."""
    return word.fits(*_types(ins))


def types_of(ins: Instruction) -> tuple[str, ...]:
    """Every word that means types of an instruction: what people call them (fp8, nvfp4)."""
    names, block = _types(ins)
    return _that_mean(frozenset(names.items()), block)


def _types(ins: Instruction) -> tuple[dict[str, str], int | None]:
    """The names of an instruction's formats by operand, and the stored elements that share a scale."""
    names = {operand: fmt.name for operand, fmt in ins.own_formats.items()}
    return names, _stored(ins.scale_block, ins.sparse)


@lru_cache(maxsize=1024)  # the pages ask for thousands of instructions of some hundred combinations
def _that_mean(operands: frozenset[tuple[str, str]], block: int | None) -> tuple[str, ...]:
    names = dict(operands)
    return tuple(word for word, meant in format_words().items() if meant.fits(names, block))


def _fits(word: str, entry: architectures.Entry, variables: Variables) -> bool:
    family = entry.family
    kind = format_word(word)
    if kind is not None:
        operands = {operand: fill(fmt, variables) for operand, fmt in family.formats.items()}
        if kind.fits(operands, _stored(fill(family.scale_block, variables), family.sparse)):
            return True
    part = machine_code.plain(word)
    return any(
        part in machine_code.plain(name)
        for names in (family.spellings(variables), machine_code.names(entry, variables))
        for name in names
    )
