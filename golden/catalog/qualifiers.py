"""A name of an instruction as a set of qualifiers: what it says, and in what two names differ.

ptxas takes the qualifiers of `mma`, `wgmma`, `wmma.mma` and `tcgen05.mma` in any order. Only the order of the
types (d, a, b, c) and that of the layouts (a, b) say something. The same holds here for every vendor's names.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from golden.number.format_words import format_words

Key = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""What names of one instruction share: the operation, types, layouts, and the other qualifiers sorted."""

_LAYOUTS = frozenset(("row", "col"))
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)|(\d+)x(\d+)x(\d+)")
_GLUED = re.compile(r"(\d+x\d+x\d+)(?=[a-z])")
"""A shape with a type behind it, as CDNA1 writes them: 16x16x16f16."""
_OWN_TYPES = frozenset(("bf8", "fp8", "i32", "i8", "i4", "iu8", "iu4", "xf32", "f8f6f4"))
"""Types as AMD's names have them, in addition to the formats of the spec."""
_LIKE_A_TYPE = re.compile(r"(?:bf|tf|[bfsu])\d+|u?e\d+m\d+")
"""A word that stands for a type, also one that does not exist."""


@lru_cache(maxsize=1)
def known_types() -> frozenset[str]:
    """The words of a name that are types: their order says which operand has which."""
    return frozenset(format_words()) | _OWN_TYPES


def plain(name: str) -> str:
    """A name without regard to case and to how shapes are spelt: DMMA.16x8x16 is dmma.16816."""
    return re.sub(r"(?<=\d)x(?=\d)", "", name.lower())


def key_of(name: str) -> Key:
    """What `name` says, without the order that says nothing."""
    head, *rest = plain(name).split(".")
    kinds = known_types()
    types = tuple(word for word in rest if word in kinds)
    layouts = tuple(word for word in rest if word in _LAYOUTS)
    others = sorted(word for word in rest if word not in kinds and word not in _LAYOUTS)
    return head, types, layouts, tuple(others)


@dataclass(frozen=True)
class Qualifiers:
    """The parts of a name by what they are; `types` and `layouts` in their order."""

    types: tuple[str, ...]
    layouts: tuple[str, ...]
    shape: tuple[int, ...]
    shape_text: str
    words: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.types) + len(self.layouts) + len(self.words) + bool(self.shape_text)


@lru_cache(maxsize=1 << 15)
def qualifiers(name: str) -> Qualifiers:
    """The parts of a PTX, SASS, AMD or Arm name."""
    types: list[str] = []
    layouts: list[str] = []
    words: list[str] = []
    shape: tuple[int, ...] = ()
    text = ""
    for word in _parts(name.lower()):
        match = _SHAPE.fullmatch(word)
        if match or (word.isdigit() and not text):  # 16816 of HMMA.16816
            text, shape = word, tuple(int(one) for one in (match.groups() if match else (word,)) if one)
        elif word in known_types() or _LIKE_A_TYPE.fullmatch(word):
            types.append(word)
        else:
            (layouts if word in _LAYOUTS else words).append(word)
    return Qualifiers(tuple(types), tuple(layouts), shape, text, tuple(words))


def _parts(name: str) -> Iterator[str]:
    for part in name.split("."):
        if "::" in part or part in ("block_scale", "mma_async"):
            yield part
        else:
            for word in part.split("_"):
                yield from filter(None, _GLUED.split(word))


@dataclass(frozen=True)
class Difference:
    """In what a name differs from the wanted one: how much, and in words."""

    cost: float
    types: bool
    text: str


def difference(requested: str, known: str) -> Difference | None:
    """In what qualifiers `known` differs from `requested`; None where they have too little in common."""
    left, right = qualifiers(requested), qualifiers(known)
    wrong = Counter(left.words) - Counter(right.words), Counter(right.words) - Counter(left.words)
    # Differences beyond which two names have nothing to do with each other.
    farthest = 3.0
    if len(left.types) > len(right.types) + 2 or abs(left.size - right.size) > farthest:
        return None
    words = list(_pairs(sorted(wrong[0].elements()), sorted(wrong[1].elements())))
    # Of one difference, in words: a user who gets a type wrong wants another instruction, one who gets a
    # shape wrong most often another shape of the same.
    type_cost, shape_cost, word_cost = 2.5, 0.9, 1.0
    found = [(word_cost, pair) for pair in words]
    if left.shape_text != right.shape_text:
        found.append((shape_cost + _far(left.shape, right.shape), (left.shape_text, right.shape_text)))
    types = list(_in_order(left.types, right.types))
    found += [(type_cost * max(one.count(".") + 1 for one in pair), pair) for pair in types]
    found += [(word_cost, pair) for pair in _in_order(left.layouts, right.layouts)]
    cost = sum(part for part, _ in found)
    if cost > farthest or len(found) >= right.size:
        return None
    return Difference(cost, bool(types), ", ".join(_said(*pair) for _, pair in found) or "written so here")


def _pairs(requested: Sequence[str], known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each wrong word with the right one that it is like, the others alone."""
    left = list(known)
    for word in requested:
        # The share of equal letters (difflib's ratio) from which on two words count as one, misspelt.
        typo = 0.6
        near = difflib.get_close_matches(word, left, 1, typo)
        if near:
            left.remove(near[0])
        yield word, near[0] if near else ""
    yield from (("", word) for word in left)


def _in_order(requested: Sequence[str], known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The differences of two lists whose order says something."""
    if len(requested) == len(known):
        yield from (pair for pair in zip(requested, known, strict=True) if pair[0] != pair[1])
        return
    matcher = difflib.SequenceMatcher(None, requested, known, autojunk=False)
    for what, *(i, j, first, last) in matcher.get_opcodes():
        if what != "equal":
            yield ".".join(requested[i:j]), ".".join(known[first:last])


def _far(requested: Sequence[int], known: Sequence[int]) -> float:
    """Less than a difference: which of two other shapes is nearer."""
    if len(requested) != len(known):
        return 0.2
    return sum(abs(a.bit_length() - b.bit_length()) for a, b in zip(requested, known, strict=True)) / 100


def _said(requested: str, known: str) -> str:
    if not requested:
        return f"with {known}"
    return f"{known} for {requested}" if known else f"without {requested}"
