"""The words for types (fp8, nvfp4) that fit an instruction."""

from __future__ import annotations

from functools import lru_cache

from golden.model.instruction import Instruction
from golden.number.format_words import FormatWord, format_word, format_words


def has_types(ins: Instruction, text: str) -> bool:
    """Whether an instruction has the types that every word means."""
    kinds = [kind for word in text.split() if (kind := format_word(word)) is not None]
    return all(means_types_of(kind, ins) for kind in kinds)


def means_types_of(word: FormatWord, ins: Instruction) -> bool:
    """Whether an instruction has the types that a word means."""
    return word.fits(*_types(ins))


def types_of(ins: Instruction) -> tuple[str, ...]:
    """Every word that means types of an instruction: what people call them (fp8, nvfp4)."""
    names, block = _types(ins)
    return _that_mean(frozenset(names.items()), block)


def stored_block(block: int | None, sparse: bool) -> int | None:
    """The stored elements that share a scale; with the zeros of sparsity a block has twice this number."""
    return block // 2 if block is not None and sparse else block


def _types(ins: Instruction) -> tuple[dict[str, str], int | None]:
    """The names of an instruction's formats by operand, and the stored elements that share a scale."""
    names = {operand: fmt.name for operand, fmt in ins.own_formats.items()}
    return names, stored_block(ins.scale_block, ins.sparse)


@lru_cache(maxsize=1024)  # the pages ask for thousands of instructions of some hundred combinations
def _that_mean(operands: frozenset[tuple[str, str]], block: int | None) -> tuple[str, ...]:
    names = dict(operands)
    return tuple(word for word, meant in format_words().items() if meant.fits(names, block))
