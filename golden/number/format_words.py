"""What people call the types of operands: fp16, fp8, nvfp4 (spec/formats/words.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from golden import yamlfile
from golden.number.formats import formats, library_names
from golden.paths import spec_folder

SCALE = "scale_a"
"""The operand that says which type the scales of a word have."""


@dataclass(frozen=True)
class FormatWord:
    """What a word means: an operand of one of `formats`; where `scales` is given, with scales of that format,
    one for `block` elements."""

    formats: tuple[str, ...]
    scales: str | None = None
    block: int | None = None

    def fits(self, operands: Mapping[str, str], block: int | None) -> bool:
        """Whether an instruction with these formats, by operand, is meant; `block`: stored elements that
        share a scale."""
        if self.scales is not None and (operands.get(SCALE) != self.scales or block != self.block):
            return False
        return any(name in operands.values() for name in self.formats)

    def __str__(self) -> str:
        text = " or ".join(self.formats)
        return text if self.scales is None else f"{text} with one {self.scales} scale for {self.block}"


@lru_cache(maxsize=1)
def format_words() -> dict[str, FormatWord]:
    """Every word, and the formats themselves, as `plain_word` spells them.

    Raises:
        SpecError: with file, line, key and what was expected.
    """
    document = yamlfile.read(spec_folder() / "formats" / "words.yaml")
    document.take("source", str)
    table = document.take("words", yamlfile.Section)
    document.done()
    found = {plain_word(library): FormatWord((name,)) for library, name in library_names().items()}
    found |= {plain_word(word): _load(table, word) for word in table}
    return found | {plain_word(name): FormatWord((name,)) for name in formats()}


def plain_word(word: str) -> str:
    """A word without regard to case, spaces, hyphens and underscores: "RTX 5090" is rtx5090."""
    return "".join(word.lower().split()).replace("-", "").replace("_", "")


def format_word(word: str) -> FormatWord | None:
    """What a word means; None for one that is no type of operands."""
    return format_words().get(plain_word(word))


def _load(table: yamlfile.Section, word: str) -> FormatWord:
    section = table.take(word, yamlfile.Section)
    names = tuple(section.take_names("formats"))
    for name in names:
        if name not in formats():
            raise section.error(f"key 'formats' holds '{name}', expected formats of formats.yaml", "formats")
    if plain_word(word) in map(plain_word, formats()):
        raise table.error(f"'{word}' is a format, expected other words for formats", word)
    scales = section.take_choice("scales", formats(), None)
    block = section.take_int("block", 1, 4096, None)
    section.done()
    if (scales is None) != (block is None):
        raise table.error(f"'{word}' needs both of 'scales' and 'block', or neither", word)
    return FormatWord(names, scales, block)
