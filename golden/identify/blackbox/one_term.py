"""What answers to one term show, whatever the order of the sum: the terms that a unit negates, the rounding
of its results, the registers of its sums, and the products that it loses.

Only c, or only one product, is in these questions. While such a property is wrong, every order of the sum is
wrong on most questions, and the nearest order is not near the unit. So skeletons get it before they are
ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate, with_results
from golden.identify.blackbox.questions import AGREEING, ALONE, ENOUGH
from golden.identify.blackbox.step_registers import with_registers
from golden.number.formats import Format, Kind, get_format
from golden.number.frozen import replace
from golden.number.rounding import MODES, encode_fraction
from golden.program.compiling import holds
from golden.program.keys import NEGATE
from golden.program.program import Operation
from golden.program.steps import Additions, Align, Multiply, Round, Scale, SpecialValues, Step, Sum

Signs = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Terms:
    """Finite nonzero terms that were alone in a question, their places among the products (0 for c), their
    exponents, and the finite answers."""

    values: Numbers
    places: npt.NDArray[np.int64]
    exponents: npt.NDArray[np.int64]
    answers: Numbers


def _terms(bank: Bank, name: str) -> _Terms:
    """The terms of questions with one term, "c" or "products", and what was answered."""
    alone = bank.of_kinds(frozenset(kind for kind, term in ALONE if term == name))
    factors = [alone.values("c")[:, None]] if name == "c" else [alone.values("a"), alone.values("b")]
    with np.errstate(all="ignore"):
        each = np.prod(factors, axis=0)
    place = np.argmax(np.nan_to_num(np.abs(each)), axis=1)
    rows = np.arange(len(alone))
    answers = alone.values("d")
    known = np.isfinite(each).all(axis=1) & np.isfinite(answers) & (each[rows, place] != 0)
    some = [one[rows, place][known] for one in factors]
    exponents = np.stack([np.frexp(one)[1] - 1 for one in some]).sum(axis=0)
    return _Terms(each[rows, place][known], place[known], np.asarray(exponents, np.int64), answers[known])


# Factor -----------------------------------------------------------------------------------------------------


def with_factor(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that scale every product, or the last sum, by the power of two which answers to one product
    show, as integers in fixed point are; unchanged if there is none."""
    takes = bank.takes
    if takes.scale_block or any(takes.formats[name].is_float for name in "abd"):
        return list(skeletons)
    # 1. The power that most answers have which are large enough for rounding to hide no factor of two.
    terms, least = _terms(bank, "products"), 1 / (2.0**_ROUNDED - 1)
    large = np.abs(terms.answers) >= least
    ratios = np.log2(np.abs(terms.answers[large] / terms.values[large]))
    powers, counts = np.unique(np.rint(ratios), return_counts=True)
    power = int(powers[np.argmax(counts)]) if len(powers) else 0
    # 2. All answers have to be that product, rounded: a unit that clamps or wraps has others. Results of few
    # bits have few large answers, but many small ones.
    expected = terms.values * 2.0**power
    shown = np.abs(expected) >= 1 / 2
    near = np.abs(terms.answers - expected)[shown] < 1
    if not power or np.count_nonzero(near) < max(ENOUGH, AGREEING * len(near)):
        return list(skeletons)
    both = (_scaled(one, power, whole) for whole in (False, True) for one in skeletons)
    return [one for one in both if one is not None] or list(skeletons)


def _scaled(one: Candidate, power: int, whole: bool) -> Candidate | None:
    """A candidate that scales its products, or the sum that its last step rounds (`whole`)."""
    last = one.operations[-1].final

    def scaled(step: Step) -> tuple[Step, ...]:
        if whole and step is last and isinstance(step, Round):
            return Scale(of=step.of, power=power), step
        return (
            (step, Scale(of=("products",), power=power))
            if isinstance(step, Multiply) and not whole
            else (step,)
        )

    return one.changed_to(o.with_steps(new for s in o.steps for new in scaled(s)) for o in one.operations)


# Signs ------------------------------------------------------------------------------------------------------


def with_signs(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that negate the terms that answers to one term show to be negated; if only some skeletons
    can, these. Signs that no skeleton can produce are ignored: sums that wrap have either.

    An operation that negates its c negates the sum so far: along a chain the products of earlier operations
    come out with one sign, the products of later ones with the other."""
    seen = {name: _terms(bank, name) for _, name in ALONE}
    upright = _Turned(1, np.ones(bank.takes.stored_k, np.int64))
    if all(_agree(name, terms, upright) for name, terms in seen.items()):
        return list(skeletons)
    words = [_words(one) for one in skeletons]
    every = [turned for some in words for _, turned in some]
    decided = {
        name: terms for name, terms in seen.items() if any(_agree(name, terms, turned) for turned in every)
    }
    found = [_turning(one, some, decided) for one, some in zip(skeletons, words, strict=True)]
    return [one for some in found for one in some] or list(skeletons)


def subtracted_products(bank: Bank) -> tuple[int, ...]:
    """The places of products that a unit subtracts while it adds others, as answers to one product show them;
    none if a place has too few questions, or both signs."""
    terms = _terms(bank, "products")
    signs = np.sign(terms.values) * np.sign(terms.answers)
    needed = 4  # questions for a place, as for lost products
    found: dict[int, int] = {}
    for k in range(bank.takes.stored_k):
        own = signs[(terms.places == k) & (signs != 0)]
        if len(own) < needed or abs(own.mean()) < AGREEING:
            return ()
        found[k] = int(np.sign(own.mean()))
    both = len(set(found.values())) > 1
    return tuple(k for k, sign in found.items() if sign < 0) if both else ()


@dataclass(frozen=True)
class _Turned:
    """The sign, 1 or -1, with which a program adds c, and each product; 0: it does not."""

    c: int
    products: Signs


def _agree(name: str, terms: _Terms, turned: _Turned) -> bool:
    """Whether most answers to c alone, or to one product, have the signs that a program produces, or too few
    have a sign: of integers that wrap, most have the sign of the sum."""
    some = terms.answers != 0
    of = turned.c if name == "c" else turned.products[terms.places]
    right = np.count_nonzero((np.sign(terms.values) * of * np.sign(terms.answers))[some] > 0)
    count = np.count_nonzero(some)
    return bool(count < ENOUGH or right >= AGREEING * count)


_Words = list[tuple[tuple[str, ...], _Turned]]


def _words(one: Candidate) -> _Words:
    """A word of `negate` for each operation, and the signs with which the program then adds its terms: its
    own words; one word for all; or one for operations that read c, while operations that add to earlier
    results negate no sum again."""
    given = [tuple(map(_word, one.operations)), *((word,) * len(one.operations) for word in NEGATE.words)]
    for word, rest in product(NEGATE.words, ("none", "product")):
        given.append(tuple(word if o.seed == "c" else rest for o in one.operations))
    return [(words, _of_program(one.operations, words, one.takes.stored_k)) for words in given]


def _turning(one: Candidate, words: _Words, seen: Mapping[str, _Terms]) -> list[Candidate]:
    """A candidate that negates as observed; several if c, or some products, showed no sign."""
    said = [said for said, turned in words if all(_agree(*shown, turned) for shown in seen.items())]
    plain = [words for words in said if len(set(words)) == 1]
    made = (one.with_operations(map(_with_word, one.operations, words)) for words in plain or said[:1])
    return list({new.operations: new for new in made if new is not None}.values())


def _word(operation: Operation) -> str:
    return next((step.negate for step in operation.steps if isinstance(step, Multiply)), "none")


def _with_word(operation: Operation, word: str) -> Operation:
    steps = [replace(step, negate=word) if isinstance(step, Multiply) else step for step in operation.steps]
    return operation.with_steps(steps)


def _of_program(operations: Sequence[Operation], words: Sequence[str], k: int) -> _Turned:
    """The signs with which a program adds its terms, if its operations have these words, the last one first:
    what an operation negates, it negates of all that its c consists of."""
    c, products = 0, np.zeros(k, np.int64)
    signs: dict[str, int] = {operations[-1].to: 1}
    for operation, word in zip(reversed(operations), reversed(words), strict=True):
        sign = signs.get(operation.to, 0)
        multiplies = any(isinstance(step, Multiply) for step in operation.steps)
        products[list(operation.k_index)] = sign * (-1 if multiplies and word in ("product", "both") else 1)
        own = sign * (-1 if multiplies and word in ("c", "both") else 1)
        if operation.seed == "c":
            c = own
        signs[operation.seed] = own
        signs |= dict.fromkeys(operation.addends, sign)
    return _Turned(c, products)


# Rounding ---------------------------------------------------------------------------------------------------


_Rounded = tuple[Fraction, int]
"""A term with the sign of its answer, and the answer."""


def as_rounded(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons with the final rounding that answers to one term show, if they show one."""
    d = bank.takes.formats["d"]
    if not d.is_float:
        return list(skeletons)
    shown = {
        _mode(d, list(_rounded_terms(bank.of_kinds(frozenset((kind,))), name))) for kind, name in ALONE
    } - {None}
    mode = shown.pop() if len(shown) == 1 else None
    return list(skeletons) if mode is None else [one.with_last(rounding=mode) or one for one in skeletons]


def _rounded_terms(alone: Bank, name: str) -> Iterator[_Rounded]:
    """Terms that lie between two normal results."""
    takes = alone.takes
    d = takes.formats["d"]
    given = [alone.operands[one] for one in ("c" if name == "c" else "ab")]
    codes = [(some[:, None] if name == "c" else some).tolist() for some in given]
    for *rows, code in zip(*codes, alone.answers.tolist(), strict=True):
        answer = d.decode(code)
        value = _term([takes.formats[one] for one in ("c" if name == "c" else "ab")], rows)
        if value and answer.kind == Kind.FINITE and _is_between(d, abs(value)):
            yield (-abs(value) if answer.sign else abs(value)), code


def _term(formats: Sequence[Format], rows: Sequence[Sequence[int]]) -> Fraction | None:
    """The only product of finite factors that is not zero, or c; None where there is none."""
    for codes in zip(*rows, strict=True):
        numbers = [fmt.decode(code) for fmt, code in zip(formats, codes, strict=True)]
        if all(one.kind == Kind.FINITE and one.value for one in numbers):
            first, *others = (one.value for one in numbers)
            return first * others[0] if others else first
    return None


def _is_between(d: Format, size: Fraction) -> bool:
    within = Fraction(2) ** d.min_exponent <= size < Fraction(2) ** d.max_exponent
    return within and encode_fraction(d, size, "down") != encode_fraction(d, size, "up")


def _mode(d: Format, terms: Sequence[_Rounded]) -> str | None:
    """The rounding of most answers, if no other one fits equally many."""
    if len(terms) < ENOUGH:
        return None
    right = {mode: sum(encode_fraction(d, value, mode) == code for value, code in terms) for mode in MODES}
    first, second = sorted(MODES, key=lambda mode: -right[mode])[:2]
    return first if right[first] > max(right[second], AGREEING * len(terms)) else None


# Registers --------------------------------------------------------------------------------------------------

_ROUNDED = 1 / 16
"""The largest distance from an integer of the logarithm of a loss: results are rounded."""


def with_lost_products(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons that lose the products which change no answer; empty if all products show, or none does, or
    no skeleton loses exactly these.

    A chain may add nothing to its earlier result. Then only the products of its last operation show."""
    takes = bank.takes
    if not all(takes.formats[name].is_float for name in "abd"):
        return []
    exponents = _exponents(bank)
    lost = {k for k, values in exponents.items() if len(values) <= 1}
    every = {exponent for k in lost for exponent in exponents[k]}  # that of no product where there is one
    shown = exponents.keys() - lost
    if not lost or not shown or len(every) > 1:
        return []
    earlier = [(one, _before_the_last(one)) for one in skeletons]
    chains = [one for one, before in earlier if lost <= before and not shown & before]
    made = (uncounted(one, "c", linked=True) for one in chains)
    return [one for one in made if one is not None]


def _exponents(bank: Bank) -> dict[int, frozenset[int]]:
    """By product, the exponents of the answers to it alone; only products with enough questions."""
    terms = _terms(bank, "products")
    found = {k: terms.answers[terms.places == k] for k in range(bank.takes.stored_k)}
    # With fewer questions a product does not count as lost.
    needed = 4
    return {
        k: frozenset((np.frexp(values[values != 0])[1] - 1).tolist())
        for k, values in found.items()
        if len(values) >= needed
    }


def _before_the_last(one: Candidate) -> frozenset[int]:
    """The products of all operations except the last one that has any."""
    *earlier, _ = [frozenset(o.k_index) for o in one.operations if o.k_index] or [frozenset()]
    return frozenset().union(*earlier)


def with_register_limits(bank: Bank, skeletons: Sequence[Candidate]) -> list[Candidate]:
    """Skeletons whose exact sums have the registers that answers to c alone, or to one product, show. The
    register of c may also belong to operations that convert c and the result.

    A register that is too narrow for one term changes every such term alike, or bounds every answer. A
    fixed-point sum cuts all terms at the same place, whatever it holds."""
    if not bank.takes.formats["d"].is_float:
        return list(skeletons)
    shown = {name: _register(bank, name) for _, name in ALONE}
    made = list(skeletons)
    for name, keys in shown.items():
        made = [_with_register(one, name, keys) for one in made] if keys else made
    apart = [new for one in skeletons for new in converted(one)] if shown["c"] else []
    return [*made, *(_with_register(one, "c", shown["c"], alone=True) for one in apart)]


def _register(bank: Bank, name: str) -> dict[str, Any]:
    """The keys of the sum of a term; none where all terms fit."""
    terms = _terms(bank, name)
    top = _top(terms, bank.takes.formats["d"].max_exponent)
    if top is not None:
        ends = np.abs(terms.answers[(terms.answers != 0) & (np.abs(terms.values) >= 2.0 ** (top + 1))])
        clamps = 2 * np.count_nonzero(ends > (1 - 2.0**-6) * 2.0**top) > len(ends)  # near the largest
        point = min(top, 0)
        return {"exponent": point, "width": top + 1 - point, "overflow": "saturate" if clamps else "wrap"}
    width = _width(terms)
    return {} if width is None else {"width": width}


def _top(terms: _Terms, most: int) -> int | None:
    """The power of two that no answer exceeds, although terms do; None if that is the format's own limit, or
    if larger terms give zero."""
    size = float(np.abs(terms.answers).max(initial=0.0))
    top = int(np.ceil(np.log2(size))) if size else most
    above = (np.frexp(terms.values)[1] > top + 1) & (terms.answers != 0)
    return top if top < most and np.count_nonzero(above) >= ENOUGH else None


def _width(terms: _Terms) -> int | None:
    """The width of a register that wraps: how many places above its own exponent the number lies that was
    lost from a term, if most terms with a large loss agree."""
    lost = np.abs(terms.values - terms.answers)
    much = lost > np.abs(terms.values) / 2
    places = np.log2(lost[much]) - terms.exponents[much]
    whole = np.rint(places)
    found, counts = np.unique(whole[np.abs(places - whole) < _ROUNDED], return_counts=True)
    if not len(found) or counts.max() < max(ENOUGH, np.count_nonzero(much) / 2):
        return None
    width = int(found[np.argmax(counts)])
    return width if width >= 1 else None


def _with_register(one: Candidate, name: str, keys: dict[str, Any], alone: bool = False) -> Candidate:
    """A candidate whose exact sums of a term, or of the term `alone`, have these keys; itself if no unit can
    have them."""

    def changed(step: Step) -> Step:
        holds = isinstance(step, Sum) and (step.of == (name,) if alone else name in step.of)
        return replace(step, **keys) if holds else step

    return one.with_each_step(changed) or one


# What a program adds ----------------------------------------------------------------------------------------


Steps = tuple[Step, ...]
_NARROWED, _WHOLE = "narrowed", "whole"
_F32 = get_format("f32")


def uncounted(one: Candidate, name: str, linked: bool = False) -> Candidate | None:
    """A candidate whose sums omit c, or everything except c; its special values and its alignment stay. None
    if that changes nothing or no unit can be it.

    Args:
        linked: in the operations with products that read c or an earlier result in its place.
    """
    seeds = {"c", *(o.to for o in one.operations)} if linked else {"c"}

    def changed(step: Step) -> Step:
        if not isinstance(step, Sum | Additions) or "c" not in step.of or len(step.of) == 1:
            return step
        return with_registers(step, tuple(n for n in step.of if n != "c") if name == "c" else ("c",))

    return one.changed_to(
        o.with_steps(map(changed, o.steps)) if o.seed in seeds and (o.k_index or not linked) else o
        for o in one.operations
    )


def overflowing(one: Candidate) -> Candidate | None:
    """A candidate whose nonzero products are all infinite."""
    factors = (one.takes.formats[name] for name in "ab")
    least = sum(fmt.min_exponent - fmt.fraction_bits for fmt in factors if fmt.is_float)
    return one.with_each_step(
        lambda step: replace(step, overflow_exponent=least) if isinstance(step, Multiply) else step
    )


def twins(one: Candidate) -> Iterator[Candidate]:
    """The same in more operations, each with its own keys for special values and results: the roundings
    between two operations cannot be expressed in one."""
    yield from filter(None, (_apart(one), *converted(one)))


def _apart(one: Candidate) -> Candidate | None:
    """The sum of products, rounded before c is added, and that addition, as two operations."""
    whole, *others = one.operations
    body, ends = whole.steps[:-2], whole.steps[-2:]
    if others or len(ends) < 2:
        return None
    first, last = ends
    if not isinstance(first, Round) or not isinstance(last, Additions) or set(last.of) != {"c", first.to}:
        return None
    if any("c" in step.of for step in body if isinstance(step, Align | Sum | Additions)):
        return None
    inner: list[Step] = [
        with_registers(step, tuple(name for name in step.of if name != "c")) if "c" in step.of else step
        for step in body
        if step.of != ("c",)
    ]
    operands = (s for s in body if "c" in s.of and not isinstance(s, SpecialValues))
    dot = replace(whole.with_steps((*inner, replace(first, to="d"))), seed="zero", to="r0")
    add = _exact(("c", "addends"), last.format, last.rounding, last.nan)
    steps = (*(with_registers(step, ("c",)) for step in operands), *add)
    both = replace(whole.with_steps(steps), k_index=(), addends=("r0",))
    return one.with_operations((replace(dot, out_format=first.format), both))


def converted(one: Candidate) -> Iterator[Candidate]:
    """The same with separate operations that convert c and the result, from and to c's format or f32."""
    inner = dict.fromkeys((one.takes.formats["c"], _F32))
    yield from filter(None, (_converted(one, fmt) for fmt in inner))


def _converted(one: Candidate, inner: Format) -> Candidate | None:
    """A separate operation that converts c before anything reads it, and one that converts the result;
    everything between is in one format."""
    c, d = (one.takes.formats[name] for name in "cd")
    used = {operation.to for operation in one.operations} | {operation.seed for operation in one.operations}
    if not (c.is_float and d.is_float and holds(inner, c)) or used & {_NARROWED, _WHOLE}:
        return None
    *head, last = (replace(o, seed=_NARROWED) if o.seed == "c" else o for o in one.operations)
    alone = replace(last.with_steps(_exact(("c",), inner, "nearest_even")), k_index=(), addends=())
    first = replace(alone, seed="c", out_format=inner, to=_NARROWED)
    end = replace(alone.with_steps(_exact(("c",), d, "nearest_even")), seed=_WHOLE, out_format=d, to="d")
    middle = [*head, replace(last, to=_WHOLE)]
    return one.with_operations((first, *(with_results(o, inner) for o in middle), end))


def _exact(of: tuple[str, ...], fmt: Format, rounding: str, nan: int | None = None) -> Steps:
    """The steps of an exact sum of existing registers, rounded once."""
    last = Round(of=("total",), format=fmt, rounding=rounding, overflow="ieee", zero="signed")
    return (SpecialValues(of=of, nan=nan), Sum(of=of, to="total"), last)
