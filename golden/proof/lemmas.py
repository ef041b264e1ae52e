"""What a proof is made of: lemmas, each an equality of two words for all operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from golden.circuit.words import CircuitError, Word, Words

SOLVER, LINEAR, PRODUCT = "solver", "linear", "product"


@dataclass(frozen=True)
class Lemma:
    """`left` and `right` are equal for all operands.

    Attributes:
        method: SOLVER: no values of the words in `free` make them differ where the facts hold. LINEAR: they
            are the same sum, whatever the words in `free` hold. PRODUCT: `left` is product_bound(*free).
        facts: places of earlier lemmas that are assumed.
        seconds: that it took.
        name: what it says, where it has a name.
    """

    left: Word
    right: Word
    method: str
    free: tuple[Word, ...] = ()
    facts: tuple[int, ...] = ()
    seconds: float = 0.0
    name: str = ""


class OutOfTime(Exception):
    """The seconds that were given are over."""


@dataclass(frozen=True)
class Certificate:
    """A proof, as it can be checked: the unit's result is the specification's.

    Every word of the unit is made again of what its arguments became; where `steps` has it, the lemma at that
    place says what it becomes then. What the result becomes is `spec`, or `last` is the lemma of both.

    Attributes:
        assumed: bits that are taken to be 1, on the operands alone.
    """

    words: Words
    unit: Word
    spec: Word
    assumed: tuple[Word, ...]
    lemmas: tuple[Lemma, ...]
    steps: Mapping[Word, int]
    last: int | None


def product_bound(words: Words, product: Word, *bounds: Word) -> Word:
    """The bit that a product of two words without a sign lies between the products of their bounds, where
    they lie between theirs: so products grow with their factors.

    Args:
        product: x * y, zero-extended to a width that holds every product of theirs.
        bounds: constants as wide as x, x, y and y: the least and greatest x and y.

    Raises:
        CircuitError: it is no such product, or these are no such bounds.
    """
    if product.op != "mul" or len(bounds) != 4:
        raise CircuitError(f"{product} is no product, or has {len(bounds)} bounds instead of 4")
    x, y = (plain_factor(arg) for arg in product.args)
    if x.width + y.width > product.width:
        raise CircuitError(f"{product} is too narrow for every product of {x} and {y}")
    numbers = [one.constant for one in bounds]
    least_x, most_x, least_y, most_y = (number or 0 for number in numbers)
    if None in numbers or [one.width for one in bounds] != [x.width, x.width, y.width, y.width]:
        raise CircuitError(f"the bounds of {product} are no constants of its factors' widths")

    def within(word: Word, least: int, most: int) -> Word:
        low, high = (words.constant(bound, word.width) for bound in (least, most))
        return words.invert(words.either(words.less(word, low), words.less(high, word)))

    given = words.both(within(x, least_x, most_x), within(y, least_y, most_y))
    return words.either(words.invert(given), within(product, least_x * least_y, most_x * most_y))


def plain_factor(word: Word) -> Word:
    """A factor without the zeros above it."""
    return word.args[1] if word.op == "concat" and word.args[0].constant == 0 else word
