"""Candidates: programs that can be run and held against the box, none that the loader would refuse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from golden.catalog.relatives import arithmetic
from golden.errors import CoreError, SpecError
from golden.instruction import CUSTOM, Evidence, Instruction
from golden.number.formats import Format, Kind
from golden.program.checks import StepChecks
from golden.program.program import OWN_STEPS, OperandFormats, Operation, Program
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
)
from golden.yamlfile import Section

_NOWHERE = Section("candidate", 1)
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
        """What decides its results."""
        return arithmetic(self.instruction)

    @property
    def formats(self) -> dict[str, Format]:
        """As of a unit."""
        return self.takes.formats

    def dot(self, **operands: Bits) -> Bits:
        """What it answers."""
        return self.instruction.dot(**operands)

    @cached_property
    def program(self) -> Program:
        """Its operations."""
        return Program(self.operations)

    def with_operations(self, operations: Iterable[Operation]) -> Candidate | None:
        """The same with other operations; None where no unit can be that."""
        return candidate(self.takes, operations, self.order)


def operation(
    takes: Signature,
    steps: Sequence[Step],
    k_index: Sequence[int],
    seed: str,
    addends: tuple[str, ...],
    out: Format,
    to: str,
) -> Operation:
    """One operation; the formats of what it reads are set when the program is whole (`candidate`)."""
    return Operation(
        OWN_STEPS, tuple(steps), tuple(k_index), seed, addends, None, takes.formats["c"], out, to
    )


def candidate(takes: Signature, operations: Iterable[Operation], order: str) -> Candidate | None:
    """The program with the formats of earlier results filled in; None where the loader would refuse it."""
    results: dict[str, Format] = {}
    linked: list[Operation] = []
    for one in operations:
        seed = takes.formats["c"] if one.seed == "c" else results.get(one.seed, one.out_format)
        if any({**results, "c": takes.formats["c"]}.get(name) != one.out_format for name in one.addends):
            return None
        steps = tuple(_with_word(step, one.out_format) for step in one.steps)
        whole = one if steps == one.steps else one.with_steps(steps)
        linked.append(whole if whole.seed_format == seed else replace(whole, seed_format=seed))
        results[one.to] = one.out_format
    if not linked or linked[-1].out_format != takes.formats["d"]:
        return None
    found = Candidate(takes, tuple(linked), order)
    return found if all(_sound(takes, one) for one in found.operations) else None


def _with_word(step: Step, out: Format) -> Step:
    """The step with the word of a NaN filled in where it names none, as the loader does."""
    if isinstance(step, SpecialValues | Multiply | Additions | Fma | Round) and step.nan is None:
        return replace(step, nan=(format_of(step) or out).nan)
    return step


def _sound(takes: Signature, one: Operation) -> bool:
    """Whether the loader would take an operation; a NaN that it makes for a later one is a NaN."""
    formats = tuple(takes.formats[name] for name in "abcd")
    scales = tuple((name, takes.formats[name]) for name in ("scale_a", "scale_b") if name in takes.formats)
    block = None if takes.scale_block is None else takes.scale_block * takes.stored_k // takes.k
    places = tuple(range(len(one.k_index))) if block is None else one.k_index
    frame = _frame(places, one.seed, one.addends, one.operand_format, one.seed_format, one.out_format)
    return _checked(one.steps, frame, formats, scales, takes.stored_k, block)


@lru_cache(maxsize=1 << 10)
def _frame(
    places: tuple[int, ...],
    seed: str,
    addends: tuple[str, ...],
    operand_format: Format | None,
    seed_format: Format,
    out_format: Format,
) -> Operation:
    """An operation without its steps, and without what they do not depend on: the same object for the same
    frame."""
    return Operation(OWN_STEPS, (), places, seed, addends, operand_format, seed_format, out_format, "")


def _is_nan(word: int | None, fmt: Format) -> bool:
    """Whether a word is a NaN of the format, or the format has none."""
    if word is None or fmt.nan is None:
        return True
    return word < 1 << fmt.bits and fmt.decode(word).kind == Kind.NAN


def _checked(
    steps: tuple[Step, ...],
    frame: Operation,
    formats: tuple[Format, ...],
    scales: tuple[tuple[str, Format], ...],
    k: int,
    block: int | None,
) -> bool:
    if _followed(steps, frame, formats, scales, k, block) is None:
        return False
    last, out = steps[-1], frame.out_format
    if not all(_is_nan(getattr(step, "nan", None), format_of(step) or out) for step in steps):
        return False
    return last.to == "d" and getattr(last, "format", None) == out


def _of_its_own(step: Step, out: Format) -> bool:
    """Whether a step speaks of registers that it reads, and of words of its format: what the reader of YAML
    alone asks."""
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


@lru_cache(maxsize=1 << 15)
def _followed(
    steps: tuple[Step, ...],
    frame: Operation,
    formats: tuple[Format, ...],
    scales: tuple[tuple[str, Format], ...],
    k: int,
    block: int | None,
) -> StepChecks | None:
    """The registers after some steps; None where the loader refuses one. Neighbours of a candidate share
    their first steps with it, and what is known of those is not asked again."""
    a, b, c, d = formats
    if not steps:
        return StepChecks(frame, OperandFormats(a, b, c, d, k, {}, dict(scales), scale_block=block))
    before = _followed(steps[:-1], frame, formats, scales, k, block)
    if before is None:
        return None
    checks, step = before.fork(), steps[-1]
    if not _of_its_own(step, frame.out_format):
        return None
    try:
        StepReader(step.op, _NOWHERE, frame.out_format, {}).check(step)
        checks.add(step, _NOWHERE)
    except (SpecError, CoreError):
        return None
    return checks
