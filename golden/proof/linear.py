"""Words as sums: the normal form by which adders in any order and of any structure are the same.

    forms = Forms()
    forms.of(word) == forms.of(other)  # then the two are equal for all operands

A word of w bits is written as a sum of atoms with whole coefficients, modulo 2^w. An atom is a word read
without a sign, the majority of three words, the product of three or more in any order, or a choice between
two sums. `-x`, `~x + 1`, `x ^ {s, s, ...} + s`, carry-save adders and sums of other widths whose ranges fit
become the same sum.
Solvers are slow at what this does at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from golden.circuit.words import Word, order

Terms = Mapping[Any, int]
"""Coefficients by atom: a Word, a Choice, a Majority or a Product."""


@dataclass(frozen=True)
class Choice:
    """One of two sums without constants, by a bit."""

    condition: Word
    then: frozenset[tuple[Any, int]]
    other: frozenset[tuple[Any, int]]


@dataclass(frozen=True)
class Majority:
    """Of three words, bit by bit."""

    words: frozenset[Word]
    width: int


@dataclass(frozen=True)
class Product:
    """Of three or more words, in the order of their numbers, as a whole number below 2^width."""

    words: tuple[Word, ...]
    width: int


@dataclass(frozen=True)
class Form:
    """A sum of atoms and a constant. As whole numbers it is the word's value up to a multiple of 2^width."""

    terms: frozenset[tuple[Any, int]]
    constant: int


def _centred(number: int, width: int) -> int:
    """The number modulo 2^width nearest to zero."""
    number %= 1 << width
    return number - (1 << width) if width > 1 and number >> (width - 1) else number


def _form(terms: Terms, constant: int, width: int) -> Form:
    reduced = ((atom, _centred(factor, width)) for atom, factor in terms.items())
    return Form(frozenset((atom, factor) for atom, factor in reduced if factor), constant % (1 << width))


def _sum(width: int, *parts: tuple[int, Form]) -> Form:
    terms: dict[Any, int] = {}
    for times, form in parts:
        for atom, factor in form.terms:
            terms[atom] = terms.get(atom, 0) + times * factor
    return _form(terms, sum(times * form.constant for times, form in parts), width)


def _range(terms: Iterable[tuple[Any, int]], constant: int) -> tuple[int, int]:
    """Bounds of a sum as a whole number, whatever its atoms hold."""
    low = high = constant
    for atom, factor in terms:
        if isinstance(atom, Choice):
            both = _range(atom.then, 0), _range(atom.other, 0)
            ends = min(both[0][0], both[1][0]), max(both[0][1], both[1][1])
        else:
            ends = 0, (1 << atom.width) - 1
        low += min(factor * end for end in ends)
        high += max(factor * end for end in ends)
    return low, high


class Forms:
    """The forms of words, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[Word, Form] = {}
        self._majorities: set[frozenset[Word]] = set()
        self._both: dict[frozenset[Word], Word] = {}

    def of(self, word: Word) -> Form:
        """The form of a word."""
        if word not in self._known:
            new = [each for each in order([word], self._known.keys()) if each not in self._known]
            # The carries first: a ^ b ^ c, and a ^ b, is a sum only where its carries are a word, too.
            self._majorities.update(three for each in new if (three := _majority(each)) is not None)
            self._both.update((frozenset(each.args), each) for each in new if each.op == "and")
            self._known.update((each, self._made(each)) for each in new)
        return self._known[word]

    def leaves(self, word: Word) -> list[Word]:
        """The words of which the form is made, with the words that choose: the form holds for all their
        values."""
        found: dict[Word, None] = {}

        def look(terms: Iterable[tuple[Any, int]]) -> None:
            for atom, _ in terms:
                if isinstance(atom, Choice):
                    found[atom.condition] = None
                    look(atom.then)
                    look(atom.other)
                else:
                    found.update(dict.fromkeys([atom] if isinstance(atom, Word) else atom.words))

        look(self.of(word).terms)
        return [*found]

    # Rules --------------------------------------------------------------------------------------------------

    def _made(self, word: Word) -> Form:
        """The form of a word whose arguments have theirs."""
        width, args = word.width, word.args
        itself = Form(frozenset({(word, 1)}), 0)
        if word.constant is not None:
            return Form(frozenset(), word.constant)
        if width == 1:
            return itself
        forms = [self._known[arg] for arg in args]
        match word.op:
            case "add":
                return _sum(width, (1, forms[0]), (1, forms[1]))
            case "sub":
                return _sum(width, (1, forms[0]), (-1, forms[1]))
            case "neg":
                return _sum(width, (-1, forms[0]))
            case "not":  # -x - 1
                return _sum(width, (-1, forms[0]), (-1, Form(frozenset(), 1)))
            case "mul":
                for one, other in ((0, 1), (1, 0)):
                    if (times := args[one].constant) is not None:
                        return _sum(width, (_centred(times, width), forms[other]))
                return self._product(word) or itself
            case "ite":
                return self._choice(width, args[0], forms[1], forms[2])
            case "xor":
                return self._exclusive(word) or itself
            case "or":
                if (three := _majority(word)) is not None:
                    return Form(frozenset({(Majority(three, width), 1)}), 0)
            case "extract":
                if word.value == 0:
                    return _sum(width, (1, forms[0]))
            case "concat":  # high * 2^n + low, where low is a whole number
                return _sum(width, (1 << args[1].width, forms[0]), (1, self._whole(args[1])))
            case "sext":
                bits = args[0].width
                if bits == 1:
                    return _sum(width, (-1, forms[0]))
                constant = _centred(forms[0].constant, bits)
                low, high = _range(forms[0].terms, constant)
                if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1):
                    return _form(dict(forms[0].terms), constant, width)
        return itself

    def _whole(self, word: Word) -> Form:
        """A word's value without a sign as a whole number: its sum, where that is one, else an atom."""
        form = self._known[word]
        for constant in (form.constant, _centred(form.constant, word.width)):
            low, high = _range(form.terms, constant)
            if low >= 0 and high < 1 << word.width:
                return Form(form.terms, constant)
        return Form(frozenset({(word, 1)}), 0)

    def _choice(self, width: int, condition: Word, then: Form, other: Form) -> Form:
        """What both have in common, a multiple of the bit, and a choice of what is left."""
        common = then.terms & other.terms
        terms: dict[Any, int] = dict(common)
        rest = then.terms - common, other.terms - common
        if rest[0] or rest[1]:
            terms[Choice(condition, *rest)] = 1
        if apart := _centred(then.constant - other.constant, width):
            terms[condition] = terms.get(condition, 0) + apart
        return _form(terms, other.constant, width)

    def _product(self, word: Word) -> Form | None:
        """A product of three words or more; of two the word is an atom itself."""
        factors = [each for arg in word.args for each in self._factors(arg, word.width)]
        # Most factors of a Product: the checker's random values distinguish sums of such products.
        most_factors = 4
        if not 2 < len(factors) <= most_factors:
            return None
        factors.sort(key=lambda each: each.number)
        product = Product(tuple(factors), sum(each.width for each in factors))
        return _form({product: 1}, 0, word.width)

    def _factors(self, word: Word, width: int) -> list[Word]:
        """The words whose product a word is, modulo 2^width; itself, if nothing else is known."""
        form = self._known[word]
        if form.constant or len(form.terms) != 1:
            return [word]
        ((atom, times),) = form.terms
        if times != 1 or isinstance(atom, Choice | Majority):
            return [word]
        if isinstance(atom, Product):
            return [*atom.words]
        if atom.op == "mul":
            inner = [each for arg in atom.args for each in self._factors(arg, atom.width)]
            # Its own width has to hold the product, or all that the question needs of it.
            if sum(each.width for each in inner) <= atom.width or atom.width >= width:
                return inner
        return [atom]

    def _exclusive(self, word: Word) -> Form | None:
        """x ^ {s, s, ...} is -x - 1 or x; a ^ b ^ c is a + b + c - 2 majority(a, b, c), and a ^ b is
        a + b - 2 (a & b), where there are such carries."""
        for one, other in (word.args, word.args[::-1]):
            if (bit := _repeated(one)) is not None:
                plain = self._known[other]
                turned = _sum(word.width, (-1, plain), (-1, Form(frozenset(), 1)))
                return self._choice(word.width, bit, turned, plain)
        for one, other in (word.args, word.args[::-1]):
            if one.op == "xor" and (three := frozenset((*one.args, other))) in self._majorities:
                twice = Form(frozenset({(Majority(three, word.width), 1)}), 0)
                parts = [(1, self.of(each)) for each in three]
                return _sum(word.width, *parts, (-2, twice))
        if (carry := self._both.get(frozenset(word.args))) is not None:
            both = Form(frozenset({(carry, 1)}), 0)
            return _sum(word.width, (1, self.of(word.args[0])), (1, self.of(word.args[1])), (-2, both))
        return None


def _repeated(word: Word) -> Word | None:
    """The bit that a word repeats."""
    if word.op == "sext" and word.args[0].width == 1:
        return word.args[0]
    if word.op != "concat":
        return None
    ends = [arg if arg.width == 1 else _repeated(arg) for arg in word.args]
    return ends[0] if ends[0] is ends[1] else None


def _majority(word: Word) -> frozenset[Word] | None:
    """The words of (a & b) | (a & c) | (b & c), in any association, and of (a & b) | c & (a ^ b), also with
    an or for the exclusive one."""
    if word.op != "or":
        return None
    for one, other in (word.args, word.args[::-1]):
        if one.op == "or":
            pairs = [each.args for each in (*one.args, other) if each.op == "and"]
            words = frozenset(arg for pair in pairs for arg in pair)
            if len(pairs) == len({frozenset(pair) for pair in pairs}) == len(words) == 3:
                return words
        if one.op == other.op == "and":
            for carried, passed in (other.args, other.args[::-1]):
                # Three different words: of x, x and y the majority is x, which a set of the two does not say.
                words = frozenset((*one.args, carried))
                if passed.op in ("xor", "or") and set(passed.args) == set(one.args) and len(words) == 3:
                    return words
    return None
