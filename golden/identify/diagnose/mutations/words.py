"""The words in which mutations speak: rounding modes, steps, and the operands that a unit has."""

from __future__ import annotations

import re
from dataclasses import replace

from golden.identify.diagnose.mutations.mutation import Mutation
from golden.model.instruction import Instruction
from golden.number.rounding import ROUNDINGS
from golden.program.steps import Additions, Align, Fma, Multiply, Round, Step, Sum

MODE_NAMES = {name: rounding.short for name, rounding in ROUNDINGS.items()}
STEP_NAMES: dict[type[Step], str] = {
    Align: "the alignment",
    Additions: "each addition",
    Fma: "each multiply-add",
    Multiply: "each multiplication",
    Round: "the final rounding",
    Sum: "the sum",
}
NEIGHBOURS = ((1, "before", "before"), (-1, "behind", "after"))
"""Places by which a vector's neighbour is rolled to it, and its name in slugs and texts."""
OTHERS = {"a": "b", "b": "a"}
"""The other factor of each."""


def signed_slug(number: int) -> str:
    """A number as a part of a slug."""
    return f"minus-{-number}" if number < 0 else f"{number}"


def in_words_of(ins: Instruction, mutation: Mutation) -> Mutation:
    """The mutation in the words of a unit: without b it has no products, but a or elements of a."""
    if "b" not in ins.absent:
        return mutation
    one, several = ("a", "a") if ins.stored_k == 1 else ("element of a", "elements of a")
    text = re.sub(r"\bproducts that come\b", "a that comes", mutation.text)
    text = re.sub(r"\bproducts\b", several, text)
    text = re.sub(r"(?<!dot )\bproduct\b", one, text)
    if ins.stored_k == 1:  # a has no article
        text = re.sub(r"\b(the|a|an|each|one) a\b", "a", text)
    return replace(mutation, text=text)
