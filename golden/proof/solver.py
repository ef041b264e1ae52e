"""Questions to a solver about words: can all of some conditions hold at once?

    answer = Solver().ask([condition, ...], free=words, seconds=5)
    answer.result, answer.values

bitwuzla answers them. `smtlib` writes the same question as text, for any other solver.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from golden.circuit.words import COMMUTATIVE, CircuitError, Word, Words, order
from golden.errors import ToolMissing

HOLD, NEVER, UNKNOWN = "hold", "never", "unknown"
"""They hold at once for some values; for none; not known in the time given."""
GET_BITWUZLA = "pip install bitwuzla"
_PLAIN = {
    "add": "bvadd", "sub": "bvsub", "mul": "bvmul", "neg": "bvneg", "not": "bvnot", "and": "bvand",
    "or": "bvor", "xor": "bvxor", "shl": "bvshl", "lshr": "bvlshr", "ashr": "bvashr", "eq": "bvcomp",
    "concat": "concat",
}  # fmt: skip
"""Operations that SMT-LIB has as they are; eq gives a bit there, too."""
_LESS = {"ult": "bvult", "slt": "bvslt"}


@dataclass(frozen=True)
class Answer:
    """What came of a question: HOLD, NEVER or UNKNOWN, and where they hold the values of variables by name
    and of free words."""

    result: str
    variables: Mapping[str, int] = field(default_factory=dict)


class Solver:
    """bitwuzla, with the terms of one table of words.

    Raises:
        ToolMissing: it is not installed.
    """

    def __init__(self) -> None:
        if importlib.util.find_spec("bitwuzla") is None:
            raise ToolMissing(f"the solver bitwuzla was not found; install it with: {GET_BITWUZLA}")
        self.api: Any = importlib.import_module("bitwuzla")
        self.manager = self.api.TermManager()
        self._terms: dict[Word, Any] = {}
        self._variables: dict[str, Any] = {}
        self._zero, self._one = (self.manager.mk_bv_value(self.manager.mk_bv_sort(1), bit) for bit in (0, 1))

    def ask(
        self,
        conditions: Sequence[Word],
        free: Collection[Word] = (),
        seconds: float = 10.0,
        until: float = math.inf,
    ) -> Answer:
        """Whether conditions, words of one bit, hold at once.

        Args:
            free: words of which nothing is known; whatever they are made of.
            seconds: of this process's computing: what is proved is the same on a busy machine.
            until: the time, as time.monotonic has it, at which it stops in any case.
        """
        api, manager = self.api, self.manager
        options = api.Options()
        options.set(api.Option.PRODUCE_MODELS, True)
        terms = dict.fromkeys(free) if free else self._terms
        for word in free:
            terms[word] = manager.mk_const(manager.mk_bv_sort(word.width), f"free{word.number}")
        for word in order(conditions, [*free] if free else self._terms.keys()):
            if terms.get(word) is None:
                terms[word] = self._term(word, terms)
        solver = api.Bitwuzla(manager, options)
        for word in conditions:
            solver.assert_formula(manager.mk_term(api.Kind.EQUAL, [terms[word], self._one]))
        end = time.process_time() + seconds
        solver.configure_terminator(lambda: time.process_time() > end or time.monotonic() > until)
        result = solver.check_sat()
        if result == api.Result.UNSAT:
            return Answer(NEVER)
        if result != api.Result.SAT:
            return Answer(UNKNOWN)
        return Answer(
            HOLD, {name: int(solver.get_value(term).value(10)) for name, term in self._variables.items()}
        )

    def _term(self, word: Word, terms: Mapping[Word, Any]) -> Any:
        kinds, manager = self.api.Kind, self.manager
        sort = manager.mk_bv_sort(word.width)
        args = [terms[arg] for arg in word.args]
        match word.op:
            case "const":
                return manager.mk_bv_value(sort, word.value)
            case "var":
                name = str(word.value)
                if name not in self._variables:
                    self._variables[name] = manager.mk_const(sort, name)
                return self._variables[name]
            case "ult" | "slt":
                less = manager.mk_term(kinds.BV_ULT if word.op == "ult" else kinds.BV_SLT, args)
                return manager.mk_term(kinds.ITE, [less, self._one, self._zero])
            case "ite":
                return manager.mk_term(
                    kinds.ITE, [manager.mk_term(kinds.EQUAL, [args[0], self._one]), *args[1:]]
                )
            case "extract":
                assert isinstance(word.value, int)
                return manager.mk_term(kinds.BV_EXTRACT, args, [word.value + word.width - 1, word.value])
            case "sext":
                return manager.mk_term(kinds.BV_SIGN_EXTEND, args, [word.width - word.args[0].width])
        name = {"eq": "COMP", "lshr": "SHR"}.get(word.op, word.op.upper())
        return manager.mk_term(getattr(kinds, f"BV_{name}"), args)


def ask_text(text: str, seconds: float, options: Mapping[str, Any] | None = None) -> str:
    """What bitwuzla says about a question as SMT-LIB: HOLD, NEVER or UNKNOWN.

    Args:
        seconds: of this process's computing. options: of bitwuzla, by name.
    """
    api: Any = importlib.import_module("bitwuzla")
    given = api.Options()
    for name, value in (options or {}).items():
        given.set(getattr(api.Option, name), value)
    parser = api.Parser(api.TermManager(), given)
    parser.parse(text.replace("(check-sat)\n", ""), True, False)
    solver, end = parser.bitwuzla(), time.process_time() + seconds
    solver.configure_terminator(lambda: time.process_time() > end)
    result = solver.check_sat()
    return {api.Result.UNSAT: NEVER, api.Result.SAT: HOLD}.get(result, UNKNOWN)


def smtlib(conditions: Sequence[Word], free: Iterable[Word] = ()) -> str:
    """The text of a Question."""
    return Question(conditions, free).text


class Question:
    """The question whether conditions hold at once, as SMT-LIB.

    Two questions of one structure have one text, so that what holds of the first element of an operand is
    known of the last one: words are numbered as a walk from the conditions meets them, the arguments of a
    commutative operation stand in an order that does not depend on their numbers, and of a free word or a
    variable of which only pieces are used no more is declared than these reach.

    Attributes:
        text: the question.
    """

    def __init__(self, conditions: Sequence[Word], free: Iterable[Word] = ()) -> None:
        cut = {*free}
        shape = _Shape(conditions, cut)
        lines, names = ["(set-logic QF_BV)"], {word: f"w{at}" for at, word in enumerate(shape.met)}
        self._places: list[tuple[str, int, int]] = []
        for word in shape.met:
            if word in shape.reach:
                low, high = shape.reach[word]
                lines.append(f"(declare-const {names[word]} (_ BitVec {high - low}))")
                if word not in cut:
                    self._places.append((str(word.value), low, high - low))
            else:
                text = _text(word, [names[arg] for arg in shape.args(word)], shape.first(word))
                lines.append(f"(define-fun {names[word]} () (_ BitVec {word.width}) {text})")
        lines += [f"(assert (= {names[word]} #b1))" for word in conditions]
        self.text = "\n".join([*lines, "(check-sat)", ""])

    def numbers(self, variables: Mapping[str, int]) -> tuple[int, ...]:
        """What variables hold, of each the declared bits, in the order of the text: the same for all
        questions of one text."""
        return tuple(variables.get(name, 0) >> low & ((1 << width) - 1) for name, low, width in self._places)

    def variables(self, numbers: Sequence[int]) -> dict[str, int]:
        """Values of variables of `numbers`; bits that are not declared are 0."""
        return {
            name: (number & ((1 << width) - 1)) << low
            for (name, low, width), number in zip(self._places, numbers, strict=False)
        }


class _Shape:
    """What two questions of one structure have in common.

    Attributes:
        reach: the bits of each free word and variable, from and below, that something is made of.
        met: all words, arguments first, in the order in which a walk meets them.
    """

    def __init__(self, conditions: Sequence[Word], free: Iterable[Word]) -> None:
        cut = {*free}
        every = order(conditions, cut)
        leaves = {word for word in every if word in cut or word.op == "var"}
        self.reach = {word: (0, word.width) for word in leaves if word in conditions}
        self._hash: dict[Word, int] = {}
        for word in every:
            for arg in word.args if word not in leaves else ():
                if arg in leaves:
                    low, high = 0, arg.width
                    if word.op == "extract":
                        low = int(word.value or 0)
                        high = low + word.width
                    before = self.reach.get(arg, (low, high))
                    self.reach[arg] = min(before[0], low), max(before[1], high)
        for word in every:  # alike for words of one structure, whatever their numbers are
            if word in leaves:
                low, high = self.reach[word]
                self._hash[word] = _number("leaf", high - low)
            else:
                args = [self._hash[arg] for arg in word.args]
                value = word.value if word.op == "const" else self.first(word)
                self._hash[word] = _number(word.op, word.width, value, *self._ordered(word.op, args))
        self.met = self._walked(conditions)

    def _ordered(self, op: str, keys: list[int]) -> list[int]:
        return sorted(keys) if op in COMMUTATIVE else keys

    def args(self, word: Word) -> Sequence[Word]:
        """The arguments in an order that does not depend on their numbers, where they may be exchanged."""
        return sorted(word.args, key=lambda arg: self._hash[arg]) if word.op in COMMUTATIVE else word.args

    def first(self, word: Word) -> int:
        """Of a piece, its lowest bit among those of its argument that are declared."""
        if word.op != "extract":
            return 0
        return int(word.value or 0) - self.reach.get(word.args[0], (0, 0))[0]

    def _walked(self, roots: Sequence[Word]) -> list[Word]:
        found: dict[Word, None] = {}
        open_ = [(root, False) for root in reversed(roots)]
        while open_:
            word, made = open_.pop()
            if made or word in self.reach or not word.args:
                found[word] = None
            elif word not in found:
                open_.append((word, True))
                open_ += [(arg, False) for arg in reversed(self.args(word))]
        return [*found]


def _number(*parts: object) -> int:
    """A number of what a word is: two words with one number are alike but by chance."""
    return zlib.crc32(repr(parts).encode())


def _text(word: Word, names: Sequence[str], first: int) -> str:
    """A word in terms of its arguments; `first`: of a piece, its lowest bit."""
    args = " ".join(names)
    match word.op:
        case "const":
            return f"(_ bv{word.value} {word.width})"
        case "ult" | "slt":
            return f"(ite ({_LESS[word.op]} {args}) #b1 #b0)"
        case "ite":
            return f"(ite (= {names[0]} #b1) {names[1]} {names[2]})"
        case "extract":
            return f"((_ extract {first + word.width - 1} {first}) {args})"
        case "sext":
            return f"((_ sign_extend {word.width - word.args[0].width}) {args})"
    if word.op not in _PLAIN:
        raise CircuitError(f"no operation {word.op!r}")
    return f"({_PLAIN[word.op]} {args})"


def again(words: Words, word: Word, args: Sequence[Word]) -> Word:
    """The operation of a word on other arguments of the same widths."""
    match word.op:
        case "const" | "var":
            return word
        case "extract":
            assert isinstance(word.value, int)
            return words.extract(args[0], word.value, word.width)
        case "sext":
            return words.extend_signed(args[0], word.width)
    made: Word = getattr(words, _METHODS[word.op])(*args)
    return made


_METHODS = {
    "add": "add", "sub": "sub", "mul": "mul", "neg": "neg", "not": "invert", "and": "both", "or": "either",
    "xor": "differ", "shl": "shift_left", "lshr": "shift_right", "ashr": "shift_right_signed", "eq": "equal",
    "ult": "less", "slt": "less_signed", "ite": "choose", "concat": "concat",
}  # fmt: skip
