"""Checks a proof without what made it: no signatures, no sums, no search, and another solver.

    check(certificate, seconds).by  # {"z3 5.4.1": 180, "bitwuzla without rewriting": 3, ...}

1. The lemmas are in order: each assumes bits that earlier ones prove.
2. Each lemma holds. A question to the solver is written anew as text for z3, or where that has no
   answer in time of bitwuzla without its rewriting. Two words that are said to be the same sum are made of
   additions, products, choices and bitwise operations alone, and are computed at random and extreme values of
   the words they are made of; the solver compares their lowest bits: a sum that is another one differs
   there or in half of all values, one of products of n words in one of 2^n.
3. They compose: the unit's result is made again, word by word, and becomes the specification's.

What is trusted: golden/circuit/words.py (folding), this file, the text of questions (solver.smtlib), and the
solver that answered.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from golden.circuit.words import CircuitError, Word, Words, evaluate, order
from golden.errors import MmagoldError
from golden.proof.lemmas import LINEAR, PRODUCT, SOLVER, Certificate, Lemma, product_bound
from golden.proof.solver import NEVER, UNKNOWN, again, ask_text, smtlib

_IN_SUMS = frozenset(
    {
        "add",
        "sub",
        "neg",
        "not",
        "mul",
        "ite",
        "xor",
        "and",
        "or",
        "concat",
        "extract",
        "sext",
        "const",
        "var",
    }
)
"""Operations of which sums are made. A comparison or a shift could hide a difference from random values."""
LOWEST = (3, 1)
"""Lowest bits of two sums that the solver compares; the second number, where it does not know of the first:
of 17 words in carry-save adders it does not, and their lowest bits are a parity."""
_PLAIN = {"REWRITE_LEVEL": 0, "PREPROCESS": False}
"""Settings of bitwuzla by which it does without what it may share a fault with the prover's run in."""
Ask = Callable[[str, float], str]
"""A question as SMT-LIB and seconds; NEVER, UNKNOWN or something else."""


class NotAProof(MmagoldError):
    """A certificate that does not prove what it says, or of which that is not known in the time given."""


class FalseLemma(NotAProof):
    """A lemma that a solver refutes."""


@dataclass(frozen=True)
class Checked:
    """By what the lemmas of a proof were checked, and how many by each."""

    by: dict[str, int]
    seconds: float


def check(
    certificate: Certificate, seconds: float, each: float = 10.0, executor: Executor | None = None
) -> Checked:
    """Checks a proof.

    Args:
        seconds: for all of it; `each`: for one question to one solver.
        executor: processes that answer questions; None: this one does it alone.

    Raises:
        NotAProof: a lemma does not hold or is not known to, or they do not compose.
    """
    start = time.monotonic()
    by: dict[str, int] = {}
    _composed(certificate)
    solvers = _Solvers(list(_solvers()), each)
    questions = {place: _question(certificate, place) for place in _used(certificate)}
    if executor is not None:
        long = [text for place, text in questions.items() if certificate.lemmas[place].method == SOLVER]
        solvers.ahead(executor, [text for text in long if text is not None], start + seconds)
    for place, text in questions.items():
        if time.monotonic() > start + seconds:
            raise NotAProof(f"its lemmas from {place} on were not checked in {seconds:g} s")
        name = _check_lemma(certificate, place, text, solvers)
        by[name] = by.get(name, 0) + 1
    return Checked(by, time.monotonic() - start)


def _composed(proof: Certificate) -> None:
    """Makes the unit's result again by the lemmas; raises NotAProof where that is not the specification's."""
    made: dict[Word, Word] = {}
    for word in order([proof.unit]):
        new = again(proof.words, word, [made[arg] for arg in word.args])
        if (place := proof.steps.get(word)) is not None:
            if proof.lemmas[place].left is not new:
                raise NotAProof(f"lemma {place} is about another word than {word}")
            new = proof.lemmas[place].right
        made[word] = new
    found = made[proof.unit]
    if proof.last is not None:
        lemma = proof.lemmas[proof.last]
        if lemma.left is not found:
            raise NotAProof(f"the last lemma, {proof.last}, is not about what the result becomes")
        found = lemma.right
    if found is not proof.spec:
        raise NotAProof("the lemmas do not lead from the unit's result to the specification's")


def _used(proof: Certificate) -> list[int]:
    """The places of the lemmas on which the proof rests, in order."""
    found: set[int] = set()
    open_ = [*proof.steps.values(), *([] if proof.last is None else [proof.last])]
    while open_:
        if (place := open_.pop()) not in found:
            found.add(place)
            open_ += proof.lemmas[place].facts
    return sorted(found)


class _Solvers:
    """Questions to the solvers, one after the other. A text is solved once: that is for all lemmas of one
    structure.

    Args:
        seconds: for a question to one solver; the last one has LAST as much.
    """

    def __init__(self, solvers: Sequence[tuple[str, Ask]], seconds: float) -> None:
        self._solvers, self._seconds = solvers, seconds
        self._never: dict[str, str] = {}
        self._waits = {name: seconds for name, _ in solvers}

    def ahead(self, executor: Executor, texts: Sequence[str], until: float) -> None:
        """Asks several questions at a time, so that the answers are known."""
        once = [*dict.fromkeys(texts)]
        # Parts into which the questions of a proof are dealt out to processes: a few for each of them.
        parts = 64
        lots = [once[at::parts] for at in range(parts)]
        left = until - time.monotonic()
        for found in executor.map(_answers, lots, [self._seconds] * parts, [left] * parts):
            self._never |= found

    def of(self, text: str, most: float = math.inf) -> tuple[str, str]:
        """The answer, and the solver that gave it; each is given at most `most` seconds."""
        if text in self._never:
            return NEVER, self._never[text]
        # Seconds that a solver has for a question at least, however often it knew no answer.
        least = 0.5
        # How much longer than the others the last solver has: there is none after it.
        last_factor = 6
        for at, (name, ask) in enumerate(self._solvers):
            last = at == len(self._solvers) - 1
            answer = ask(text, min(last_factor * self._seconds if last else self._waits[name], most))
            # A solver that knew no answer is waited for half as long the next time: another one has to do it.
            better = self._waits[name] * (0.5 if answer == UNKNOWN else 2)
            if most == math.inf:
                self._waits[name] = min(max(better, least), self._seconds)
            if answer == NEVER:
                self._never[text] = name
            if answer != UNKNOWN:
                return answer, name
        return UNKNOWN, ""


def _answers(texts: Sequence[str], each: float, seconds: float) -> dict[str, str]:
    """The questions whose only answer is NEVER, each with the solver that gave it."""
    solvers, until = _Solvers([*_solvers()], each), time.monotonic() + seconds
    return {
        text: name
        for text in texts
        if time.monotonic() < until
        for answer, name in [solvers.of(text)]
        if answer == NEVER
    }


def _question(proof: Certificate, place: int) -> str | None:
    """The question that has to have the answer NEVER for a lemma to hold; None: it needs no solver.

    Raises:
        NotAProof: what needs no solver is wrong already.
    """
    lemma = proof.lemmas[place]
    if lemma.left.width != lemma.right.width:
        raise NotAProof(f"lemma {place} is about words of different widths")
    for fact in lemma.facts:
        if not 0 <= fact < place or proof.lemmas[fact].right.constant != 1:
            raise NotAProof(f"lemma {place} assumes lemma {fact}, which is no earlier fact")
    facts = [proof.lemmas[fact].left for fact in lemma.facts]
    if any(word.width != 1 for word in facts):
        raise NotAProof(f"lemma {place} assumes a word that is no bit")
    pair = (lemma.left, lemma.right)
    if lemma.method == PRODUCT:
        _bounded(proof, place, lemma)
        return None
    if lemma.method == LINEAR and not facts:
        cut = {*lemma.free}
        for word in order(pair, cut):
            if word not in cut and word.op not in _IN_SUMS:
                raise NotAProof(f"lemma {place} is no equality of sums: {word} is an operation '{word.op}'")
        if (at := _differ(pair, lemma.free, place)) is not None:
            raise NotAProof(f"lemma {place}: the two sums differ, as at {at}")
        return _lowest(proof, lemma, LOWEST[0])
    if lemma.method != SOLVER:
        raise NotAProof(f"lemma {place} was proved by {lemma.method!r}, which is no method")
    apart = proof.words.invert(proof.words.equal(*pair))
    return smtlib([apart, *facts, *proof.assumed], lemma.free)


def _lowest(proof: Certificate, lemma: Lemma, bits: int) -> str:
    """The question whether two sums differ in their lowest bits."""
    words, width = proof.words, min(bits, lemma.left.width)
    pair = (words.extract(lemma.left, 0, width), words.extract(lemma.right, 0, width))
    return smtlib([words.invert(words.equal(*pair)), *proof.assumed], lemma.free)


def _check_lemma(proof: Certificate, place: int, question: str | None, solvers: _Solvers) -> str:
    """What showed that a lemma holds."""
    lemma = proof.lemmas[place]
    if question is None:
        return "the growth of products"
    # Seconds for a question about sums: most take a tenth of one, and what is open then is open after a
    # minute.
    sum_seconds = 4.0
    if lemma.method == LINEAR:
        for bits in LOWEST:
            text = question if bits == LOWEST[0] else _lowest(proof, lemma, bits)
            answer, name = solvers.of(text, sum_seconds)
            if answer == NEVER:
                return f"values, and {name} for the lowest bit{'s' if bits > 1 else ''}"
            if answer != UNKNOWN:
                break
        else:
            return "values alone"
    else:
        answer, name = solvers.of(question)
        if answer == NEVER:
            return name
    if answer != UNKNOWN:
        raise FalseLemma(f"lemma {place} ({lemma.name or lemma.left}) does not hold: {name} refutes it")
    raise NotAProof(f"lemma {place} ({lemma.name or lemma.left}) is not known to hold to a second solver")


def _bounded(proof: Certificate, place: int, lemma: Lemma) -> None:
    """Makes the bound of a product again; that products of unsigned numbers grow with these needs no
    solver."""
    try:
        bit = product_bound(proof.words, *lemma.free)
    except (CircuitError, TypeError) as error:
        raise NotAProof(f"lemma {place} bounds no product: {error}") from error
    if bit is not lemma.left or lemma.right.constant != 1 or lemma.facts:
        raise NotAProof(f"lemma {place} is another bound than that of {lemma.free[0]}")


def _differ(pair: tuple[Word, Word], free: Sequence[Word], seed: int) -> dict[str, int] | None:
    """Values of free words at which two words differ; None: the words are equal for all tried values."""
    words = Words()  # a table of its own, in which the free words are variables
    cut = set(free)
    made: dict[Word, Word] = {}
    for word in order(pair, free):
        if word in cut or word.op == "var":
            made[word] = words.variable(f"w{word.number}", word.width)
        elif word.op == "const":
            made[word] = words.constant(int(word.value or 0), word.width)
        else:
            made[word] = again(words, word, [made[arg] for arg in word.args])
    rng = random.Random(seed)
    variables = [word for word in made.values() if word.op == "var"]
    # Values at which two sums are compared: two that differ agree in half of them at most, each time, and in
    # 15 of 16 where they have products of four words.
    drawn_values = 256
    columns = {str(word.value): [_number(rng, word.width) for _ in range(drawn_values)] for word in variables}
    ends = [made[word] for word in pair]
    values = evaluate(ends, columns or {"none": [0]})
    for at in range(drawn_values if columns else 1):
        if values[ends[0]][at] != values[ends[1]][at]:
            return {name: column[at] for name, column in columns.items()}
    return None


def _number(rng: random.Random, width: int) -> int:
    """A number of this many bits: one in four is extreme, where ranges end."""
    most = (1 << width) - 1
    return (
        rng.choice((0, 1, most, most >> 1, (most >> 1) + 1)) & most
        if rng.random() < 0.25
        else rng.getrandbits(width)
    )


# Solvers ----------------------------------------------------------------------------------------------------


def _solvers() -> Iterator[tuple[str, Ask]]:
    """The installed solvers, z3 first."""
    if importlib.util.find_spec("z3") is not None:
        yield f"z3 {importlib.metadata.version('z3-solver')}", _ask_z3
    if importlib.util.find_spec("bitwuzla") is not None:
        yield "bitwuzla without rewriting", _ask_bitwuzla


def _ask_z3(text: str, seconds: float) -> str:
    z3: Any = importlib.import_module("z3")
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", int(seconds * 1000))
    solver.from_string(text)
    result = solver.check()
    return NEVER if result == z3.unsat else "holds" if result == z3.sat else UNKNOWN


def _ask_bitwuzla(text: str, seconds: float) -> str:
    return ask_text(text, seconds, _PLAIN)
