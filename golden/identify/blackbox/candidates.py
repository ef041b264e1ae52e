"""Candidates: programs that can be run and compared with the box, and that the loader accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import is_
from typing import Any, TypeVar

from golden.catalog.relatives import arithmetic
from golden.errors import CoreError, OperandError, SpecError
from golden.identify.blackbox.missing_operands import read_alone
from golden.model.instruction import CUSTOM, Evidence, Instruction
from golden.number.formats import Format, Kind
from golden.number.frozen import replace
from golden.program.checks import StepChecks
from golden.program.program import NO_SEED, OWN_STEPS, OperandFormats, Operation, Program
from golden.program.reading import WITH_PAYLOAD, StepReader
from golden.program.signature import Bits, Signature
from golden.program.steps import (
    Additions,
    Align,
    Fma,
    Multiply,
    Normalize,
    Round,
    SpecialValues,
    Step,
    format_of,
    grouping,
)
from golden.yamlfile import Section

T = TypeVar("T", bound=Step)
_NOWHERE = Section("candidate", 1)
_WITH_WORDS = (SpecialValues, Multiply, Additions, Fma, Round)
EVIDENCE = Evidence("derived", "found by questions to a black box (mmagold dissect)")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A program that may be the box's. `order`: its skeleton in words."""

    takes: Signature
    operations: tuple[Operation, ...]
    order: str

    @cached_property
    def instruction(self) -> Instruction:
        """The program as a unit."""
        return Instruction(
            "dissected",
            1,
            1,
            self.takes.k,
            self.takes.formats,
            pattern=self.takes.pattern,
            scale_block=self.takes.scale_block,
            architecture=CUSTOM,
            program=self.program,
            evidence=EVIDENCE,
            family=CUSTOM,
            source="mmagold dissect",
        )

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for candidates with the same results."""
        return arithmetic(self.instruction)

    @property
    def formats(self) -> dict[str, Format]:
        """As of a unit."""
        return self.takes.formats

    def dot(self, **operands: Bits) -> Bits:
        """Its answers."""
        return self.instruction.dot(**operands)

    @cached_property
    def program(self) -> Program:
        """Its operations."""
        return Program(self.operations)

    @property
    def bodies(self) -> list[tuple[Step, ...]]:
        """The steps of each operation; equal ones once, because the operations of a chain have the same."""
        return list(dict.fromkeys(one.steps for one in self.operations))

    @property
    def steps(self) -> list[Step]:
        """The steps of all operations, in order; equal ones once."""
        return list(dict.fromkeys(step for one in self.operations for step in one.steps))

    def steps_of(self, kind: type[T]) -> list[T]:
        """The steps of one kind in all operations, in order; equal ones once."""
        return list(dict.fromkeys(s for one in self.operations for s in one.steps if isinstance(s, kind)))

    def with_operations(self, operations: Iterable[Operation]) -> Candidate | None:
        """The same with other operations; None if no unit can have them."""
        return candidate(self.takes, operations, self.order)

    def with_keys(self, operations: Iterable[Operation]) -> Candidate | None:
        """The same with other operations. If these differ in values of keys alone, nobody has checked yet
        whether a unit can have them (`sound`): that takes longer than to run it on the few questions which
        rule most of them out. No array of the core has a size or an index that depends on these values."""
        made = tuple(operations)
        alike = len(made) == len(self.operations) and all(map(_same_shape, made, self.operations))
        return candidate(self.takes, made, self.order, checked=not alike)

    @cached_property
    def sound(self) -> bool:
        """Whether a unit can have its operations."""
        return _all_sound(self.takes, self.operations)

    def changed_to(self, operations: Iterable[Operation]) -> Candidate | None:
        """The same with other operations; None also if they are its own."""
        found = self.with_operations(operations)
        return None if found is None or found.operations == self.operations else found

    def with_last(self, kind: type[Step] = Round, **keys: Any) -> Candidate | None:
        """The same with other keys of its last step; None if that is of another kind."""
        *head, last = self.operations
        if not isinstance(last.final, kind):
            return None
        return self.with_operations((*head, last.with_steps((*last.steps[:-1], replace(last.final, **keys)))))

    def with_each_step(self, changed: Callable[[Step], Step], checked: bool = True) -> Candidate | None:
        """The same with every step changed; None if no unit can have them, unless `checked` leaves that to
        `sound`."""
        operations = (o.with_steps(map(changed, o.steps)) for o in self.operations)
        return self.with_operations(operations) if checked else self.with_keys(operations)


def operation(
    takes: Signature,
    steps: Sequence[Step],
    k_index: Sequence[int],
    seed: str,
    addends: tuple[str, ...],
    out: Format,
    to: str,
) -> Operation:
    """One operation; the formats of its operands are set when the program is complete (`candidate`)."""
    return Operation(
        OWN_STEPS, tuple(steps), tuple(k_index), seed, addends, None, takes.formats["c"], out, to
    )


def candidate(
    takes: Signature, operations: Iterable[Operation], order: str, checked: bool = True
) -> Candidate | None:
    """The program with the formats of earlier results filled in; None if the loader would refuse it.
    `checked`: false leaves that to `sound`."""
    results: dict[str, Format] = {}
    linked: list[Operation] = []
    filled: dict[tuple[int, Format], tuple[Step, ...]] = {}
    given = read_alone(takes, operations)
    if given is None:
        return None
    for one in given:
        seed = _as_c(takes.formats["c"], results.get(one.seed, one.out_format))
        seed = takes.formats["c"] if one.seed == "c" else seed
        if any({**results, "c": takes.formats["c"]}.get(name) != one.out_format for name in one.addends):
            return None
        whole = one
        key = id(one.steps), one.out_format
        if key not in filled:
            filled[key] = _with_words(one.steps, one.out_format)
        if filled[key] is not one.steps:
            whole = one.with_steps(filled[key])
        same = next((before.steps for before in linked if before.steps == whole.steps), whole.steps)
        if same is not whole.steps or whole.seed_format != seed:  # one object for equal steps of a chain
            whole = replace(whole, steps=same, seed_format=seed)
        linked.append(whole)
        results[one.to] = one.out_format
    if not linked or linked[-1].out_format != takes.formats["d"]:
        return None
    found = Candidate(takes, tuple(linked), order)
    return found if not checked or found.sound else None


@lru_cache(maxsize=64)
def _as_c(c: Format, result: Format) -> Format:
    """The format in which an earlier result is read: that of c if only special values differ, because a unit
    whose c has no infinities has none in its own results either."""
    same = replace(c, name="", specials="") == replace(result, name="", specials="")
    return c if same else result


def _same_shape(one: Operation, other: Operation) -> bool:
    """Whether two operations have the same steps, registers, groups and links: only keys differ."""
    links = (one.k_index, one.seed, one.addends, one.to, one.operand_format, one.out_format)
    others = (other.k_index, other.seed, other.addends, other.to, other.operand_format, other.out_format)
    return (
        len(one.steps) == len(other.steps)
        and links == others
        and all(
            x is y or (type(x) is type(y) and (x.of, x.to, grouping(x)) == (y.of, y.to, grouping(y)))
            for x, y in zip(one.steps, other.steps, strict=True)
        )
    )


def _all_sound(takes: Signature, operations: Sequence[Operation]) -> bool:
    """Whether the loader would accept the operations of a program."""
    seen: set[tuple[object, ...]] = set()
    for one in operations:
        like = id(one.steps), len(one.k_index), one.seed == NO_SEED, len(one.addends), one.operand_format
        alike = (*like, one.seed_format, one.out_format)
        if takes.scale_block is not None or alike not in seen:
            if not _sound(takes, one):
                return False
            seen.add(alike)
    return True


def candidate_of(takes: Signature, near: Instruction) -> Candidate:
    """An instruction as the start of a search for a unit with the same operands.

    Raises:
        OperandError: it takes others.
    """
    formats = {name: fmt for name, fmt in near.own_formats.items() if takes.formats.get(name) != fmt}
    if formats or near.stored_k != takes.k:
        own = ", ".join(f"{name} {fmt.name}" for name, fmt in takes.formats.items())
        wrong = ", ".join(f"{name} {fmt.name}" for name, fmt in formats.items()) or f"k {near.stored_k}"
        raise OperandError(f"argument 'near' has {wrong}, expected the box's {own}, k {takes.k}")
    operations = tuple(one.arithmetic for one in near.program.operations)
    return Candidate(takes, operations, "what it is meant to be")


def _with_words(steps: tuple[Step, ...], out: Format) -> tuple[Step, ...]:
    """The steps with their NaN words; unchanged if they have them."""
    filled = tuple([with_word(step, out) for step in steps])
    return steps if all(map(is_, filled, steps)) else filled


def with_word(step: Step, out: Format) -> Step:
    """The step with the word of a NaN filled in if it has none, as the loader does."""
    if isinstance(step, _WITH_WORDS) and step.nan is None:
        word = (format_of(step) or out).nan
        return step if word is None else replace(step, nan=word)
    return step


def with_results(one: Operation, fmt: Format) -> Operation:
    """The operation with results of another format, and that format's words of NaNs: words of the previous
    one would be numbers, or no codes at all, which the loader refuses."""
    if fmt == one.out_format:
        return one
    last = replace(one.final, format=fmt, nan=None)
    return replace(one.with_steps([*(_without_words(s, fmt) for s in one.steps[:-1]), last]), out_format=fmt)


def _without_words(step: Step, fmt: Format) -> Step:
    """A step that speaks of the result's NaNs, with another format's."""
    if isinstance(step, SpecialValues):
        nans = tuple((cause, None if word is None else fmt.nan) for cause, word in step.nans)
        return replace(step, nan=None, nans=nans)
    return replace(step, nan=None) if isinstance(step, Multiply) and step.format is None else step


def _sound(takes: Signature, one: Operation) -> bool:
    """Whether the loader would accept an operation: a NaN that it makes for a later one is a NaN."""
    places = one.k_index if takes.scale_block is not None else tuple(range(len(one.k_index)))
    checks = _begun(takes, places, one.seed == NO_SEED, len(one.addends), *one.formats)
    for step in one.steps:
        checks = checks.then(step)
        if checks is _REFUSED:
            return False
    last = one.steps[-1]
    return last.to == "d" and getattr(last, "format", None) == one.out_format


@lru_cache(maxsize=64)
def _begun(
    takes: Signature,
    places: tuple[int, ...],
    no_seed: bool,
    addends: int,
    operands: Format | None,
    seed: Format,
    out: Format,
) -> _Followed:
    """An operation before its first step: the state of its checks. `places`: of its products, for blocks of
    scales; operations of a chain share it."""
    seed_name = NO_SEED if no_seed else "c"
    frame = Operation(OWN_STEPS, (), places, seed_name, ("",) * addends, operands, seed, out, "")
    a, b, c, d = (takes.formats[name] for name in "abcd")
    scales = {name: fmt for name, fmt in takes.formats.items() if name.startswith("scale")}
    block = None if takes.scale_block is None else takes.scale_block * takes.stored_k // takes.k
    formats = OperandFormats(a, b, c, d, takes.stored_k, {}, scales, scale_block=block)
    return _Followed(StepChecks(frame, formats))


@lru_cache(maxsize=1 << 12)
def _is_nan(word: int | None, fmt: Format) -> bool:
    """Whether a word is a NaN of the format, or the format has none."""
    if word is None or fmt.nan is None:
        return True
    return word < 1 << fmt.bits and fmt.decode(word).kind == Kind.NAN


class _Followed:
    """The registers after some steps, cached: neighbours of a candidate share its first steps, and all later
    steps of which the bounds of registers do not depend.

    alike: earlier entries of the same operation, by everything that later checks read.
    """

    def __init__(self, checks: StepChecks | None, alike: dict[object, _Followed] | None = None) -> None:
        self.checks = checks
        self.next: dict[Step, _Followed] = {}
        self.alike: dict[object, _Followed] = {} if alike is None else alike

    def then(self, step: Step) -> _Followed:
        """The state after one more step; `_REFUSED` if the loader would refuse it."""
        found = self.next.get(step)
        if found is None:
            if len(self.next) >= _MOST_NEXT:
                self.next.clear()
            found = self.next[step] = self._after(step)
        return found

    def _after(self, step: Step) -> _Followed:
        assert self.checks is not None
        out = self.checks.frame.out_format
        if not _always_sound(step, out) or not _is_nan(getattr(step, "nan", None), format_of(step) or out):
            return _REFUSED
        checks = self.checks.fork()
        try:
            StepReader(step.op, _NOWHERE, out, {}).check(step)
            checks.add(step, _NOWHERE)
        except (SpecError, CoreError):
            return _REFUSED
        if len(self.alike) >= _MOST_NEXT:
            self.alike.clear()
        return self.alike.setdefault(_later_checks_read(checks), _Followed(checks, self.alike))


def _later_checks_read(checks: StepChecks) -> object:
    """Everything that checks of later steps of an operation read."""
    return frozenset(checks.registers.items()), checks.scales, frozenset(checks.blocks.items())


_REFUSED = _Followed(None)
_MOST_NEXT = 2048
"""Cached followers of one entry, to bound the memory. Chosen, not measured."""


def _always_sound(step: Step, out: Format) -> bool:
    """Whether a step only names registers that it reads, and words of its format: the checks of the YAML
    reader alone."""
    if isinstance(step, SpecialValues):
        return all(
            cause in WITH_PAYLOAD if word is None else word < 1 << out.bits for cause, word in step.nans
        )
    if not isinstance(step, Align | Normalize):
        return True
    named = {name for name, _ in step.fraction_bits}
    if isinstance(step, Align):
        more = (*step.window, *step.spared, *step.left_out)
        known = {name for name, _ in more} | {name for one in step.maximum for name in one.of}
        if not known <= set(step.of) or not all(one.of for one in step.maximum):
            return False
    return named == set(step.of)
