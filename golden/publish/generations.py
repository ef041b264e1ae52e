"""What changed from one generation to the next, found by running both on the same operands.

Instructions of the same name (AMD renames: of the same formats, shape and blocks) are compared with
`golden.identify.comparing`, once for each distinct pair of programs. Where they differ, the shortest example
is kept, and the parameters of the older program are replaced by those of the newer one until it answers as
the newer does: these parameters explain the example.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from golden.catalog import architectures
from golden.catalog.lookup import instructions
from golden.catalog.relatives import arithmetic
from golden.identify.comparing import CLASSES, Comparison, Example, classify, compare
from golden.identify.probe.probes import Unreachable, exact_code
from golden.model.instruction import Instruction
from golden.number.formats import Kind
from golden.program.program import Operation, Program
from golden.program.signature import Operands
from golden.program.steps import Align, Fma, Round, SpecialValues, Step, Sum
from golden.stimuli import SEARCH_KINDS, generate

TRIES_OF_A_KIND = 384
"""Dot products of each stimulus kind that a pair of different programs is run on."""

_SEED = 0  # of the operands, so that a page is the same in every build

Key = tuple[object, ...]


@dataclass(frozen=True)
class Pair:
    """One instruction on both generations."""

    old: Instruction
    new: Instruction

    @property
    def became_emulated(self) -> bool:
        """Whether the newer chip has no instruction of its own for it any more."""
        return self.new.emulated and not self.old.emulated

    @property
    def became_native(self) -> bool:
        """Whether only the newer chip has an instruction of its own for it."""
        return self.old.emulated and not self.new.emulated


@dataclass(frozen=True)
class Changes:
    """Two generations: the pairs, what only the newer one has, and what only the older one had."""

    old: str
    new: str
    pairs: tuple[Pair, ...]
    added: tuple[Instruction, ...]
    gone: tuple[Instruction, ...]


def previous(architecture: str) -> str | None:
    """Returns the generation before: the nearest earlier architecture of the same vendor and product line,
    or None for the first."""
    chosen = architectures.get_architecture(architecture)
    earlier = [architectures.get_architecture(name) for name in architectures.architectures()]
    line = chosen.vendor, chosen.line
    earlier = [
        other for other in earlier if (other.vendor, other.line) == line and other.order < chosen.order
    ]
    return max(earlier, key=lambda other: other.order).name if earlier else None


@lru_cache(maxsize=16)
def changes(old: str, new: str) -> Changes:
    """Returns the instructions that both architectures have, and the ones that only one has, in the order of
    the specs."""
    key = _name if _same_names(old, new) else _operands
    before = {key(ins): ins for ins in reversed(instructions(old))}
    after = {key(ins): ins for ins in reversed(instructions(new))}
    found = [ins for ins in instructions(new) if after[key(ins)] is ins]
    pairs = tuple(Pair(before[key(ins)], ins) for ins in found if key(ins) in before)
    added = tuple(ins for ins in instructions(new) if key(ins) not in before)
    return Changes(old, new, pairs, added, tuple(ins for ins in instructions(old) if key(ins) not in after))


def _same_names(old: str, new: str) -> bool:
    """Whether both use the same names, most names of the one with fewer: AMD renamed all its matrix
    instructions between CDNA2 and CDNA3, not its dot products."""
    before, after = (architectures.get_architecture(one).names().keys() for one in (old, new))
    return 2 * len(before & after) > min(len(before), len(after))


def _name(ins: Instruction) -> Key:
    return (ins.name,)


def _operands(ins: Instruction) -> Key:
    return (*((name, fmt.name) for name, fmt in ins.formats.items()), ins.shape, ins.blocks)


def pair_key(pair: Pair) -> Key:
    """What decides a comparison: both programs and what they take."""
    formats = tuple(fmt.name for fmt in pair.new.formats.values())
    return (arithmetic(pair.old), arithmetic(pair.new), formats, pair.new.sparse, pair.new.scale_block)


def by_program(found: Changes) -> dict[Key, list[Pair]]:
    """The pairs of two generations, grouped by their two programs."""
    groups: dict[Key, list[Pair]] = {}
    for pair in found.pairs:
        groups.setdefault(pair_key(pair), []).append(pair)
    return groups


@dataclass
class Tally:
    """How often two units answered differently: dot products tried, differences by kind of stimulus."""

    tried: int
    different: dict[str, int]
    nan_payloads: int

    @property
    def count(self) -> int:
        """Results that differ in more than the payload of a NaN."""
        return sum(self.different.values())

    @property
    def worst(self) -> str:
        """The stimulus kind with the most differences."""
        return max(self.different, key=lambda kind: self.different[kind])


def together(tallies: Iterable[Tally]) -> Tally:
    """Returns the sum of tallies."""
    total = Tally(0, dict.fromkeys(SEARCH_KINDS, 0), 0)
    for one in tallies:
        total.tried += one.tried
        total.nan_payloads += one.nan_payloads
        for kind, count in one.different.items():
            total.different[kind] += count
    return total


_tallies: dict[Key, Tally] = {}
_examples: dict[Key, Comparison[Instruction]] = {}


def tally(pair: Pair) -> Tally:
    """Runs both units of a pair on every stimulus kind;
    pairs of the same programs and formats are run once."""
    key = pair_key(pair)
    if key not in _tallies:
        # The same where both programs are the same steps: running them only checks the bookkeeping.
        tries_where_equal = 32
        tries = tries_where_equal if arithmetic(pair.old) == arithmetic(pair.new) else TRIES_OF_A_KIND
        _tallies[key] = _run(pair, tries)
    return _tallies[key]


def _run(pair: Pair, tries: int) -> Tally:
    found = Tally(0, {}, 0)
    for index, kind in enumerate(SEARCH_KINDS):
        operands = generate(pair.new, kind, tries, np.random.default_rng([_SEED, index]))
        classes = classify(
            pair.old.dot(**operands), pair.new.dot(**operands), pair.old.formats["d"], pair.new.formats["d"]
        )
        payload = classes == CLASSES.index("nan_payload")
        found.tried += tries
        found.different[kind] = int(((classes >= 0) & ~payload).sum())
        found.nan_payloads += int(payload.sum())
    return found


def example(pair: Pair) -> tuple[Pair, Example] | None:
    """Returns the shortest operands on which two programs differ, with the pair that was run; None where none
    was found.

    Pairs that differ in operand types or sparsity alone share one example.
    """
    key = (arithmetic(pair.old), arithmetic(pair.new), pair.new.scale_block, pair.new.formats["d"].name)
    if key not in _examples:
        _examples[key] = compare(pair.old, pair.new, seed=_SEED, budget=TRIES_OF_A_KIND * len(SEARCH_KINDS))
    found = _examples[key]
    return None if found.example is None else (Pair(found.first, found.second), found.example)


# Which parameter explains an example ------------------------------------------------------------------------


@dataclass(frozen=True)
class Aspect:
    """One parameter of a program: its name, how it reads, and how it is taken over from another program."""

    name: str
    value: Callable[[Program], str]
    take: Callable[[Program, Program], Program]


@dataclass(frozen=True)
class Parameter:
    """A parameter that differs between two programs. `explains`: the shortest example shows it."""

    name: str
    old: str
    new: str
    explains: bool


def parameters(pair: Pair) -> list[Parameter]:
    """Returns the parameters in which two programs of one kind differ; empty for programs of different kinds.

    The smallest set of them that makes the older unit answer the example as the newer does explains it.
    """
    old, new, different = pair.old.program, pair.new.program, _different(pair)
    explaining = _explaining(pair, different)
    return [
        Parameter(aspect.name, aspect.value(old), aspect.value(new), aspect in explaining)
        for aspect in different
    ]


def _different(pair: Pair) -> list[Aspect]:
    """What differs between two programs of one kind; empty for programs of different kinds."""
    old, new = pair.old.program, pair.new.program
    return (
        [aspect for aspect in ASPECTS if aspect.value(old) != aspect.value(new)]
        if _same_chain(old, new)
        else []
    )


def _explaining(pair: Pair, different: list[Aspect]) -> tuple[Aspect, ...]:
    found = example(pair)
    if found is None:
        return ()
    run, shortest = found
    for count in range(1, len(different) + 1):
        for chosen in itertools.combinations(different, count):
            if _with(run, chosen).reference_dot(**shortest.operands_x) == shortest.y:
                return chosen
    return ()


def _with(pair: Pair, chosen: Iterable[Aspect]) -> Instruction:
    """The older unit of a pair with some parameters of the newer."""
    program = pair.old.program
    for aspect in chosen:
        program = aspect.take(program, pair.new.program)
    return replace(pair.old, program=program)


def shows(pair: Pair, other: Pair) -> bool:
    """Whether the example of one pair shows the difference of another too: the same numbers give both the
    same two results.

    The same parameters, if any, have to explain both.
    """
    found = example(pair)
    aspects = [_explaining(one, _different(one)) for one in (pair, other)]
    if found is None or aspects[0] != aspects[1] or pair.new.formats["d"] != other.new.formats["d"]:
        return False
    run, shortest = found
    operands = _carried(run.new, other.new, shortest.operands_y)
    if operands is None or (int(other.old.dot(**operands)), int(other.new.dot(**operands))) != (
        shortest.x,
        shortest.y,
    ):
        return False
    return not aspects[0] or _with(other, aspects[0]).reference_dot(**operands) == shortest.y


def _carried(source: Instruction, target: Instruction, operands: Operands) -> dict[str, Any] | None:
    """The same numbers as operands of another instruction; None where it cannot take them."""
    if set(operands) != set("abc") or target.sparse or target.scale_block:
        return None
    moved = {
        name: np.zeros(shape, target.formats[name].dtype)
        for name, shape in target.operand_shapes(matrices=False).items()
    }
    for name, codes in operands.items():
        fmt, row = source.formats[name], np.atleast_1d(codes)
        places = np.flatnonzero(row)
        numbers = [fmt.decode(int(code)) for code in row[places]]
        if any(number.kind >= Kind.INFINITY or not number.significand for number in numbers) or (
            name != "c" and any(places >= target.k)
        ):
            return None
        try:
            moved[name].reshape(-1)[places] = [
                exact_code(target.formats[name], number.value) for number in numbers
            ]
        except Unreachable:
            return None
    return moved


def _same_chain(old: Program, new: Program) -> bool:
    """Whether both are chains of one operation, with the same kinds of steps."""
    shapes = [[step.op for step in operation.steps] for operation in (*old.operations, *new.operations)]
    chains = all(
        operation.k_index and not operation.addends for operation in (*old.operations, *new.operations)
    )
    return chains and all(shape == shapes[0] for shape in shapes)


def _slices(program: Program) -> str:
    sizes = dict.fromkeys(len(operation.k_index) for operation in program.operations)
    return "/".join(map(str, sizes))


def _take_slices(program: Program, other: Program) -> Program:
    """The first operation's steps over the slices of k of another program."""
    first = program.operations[0]
    return Program(
        tuple(
            replace(
                wanted,
                steps=first.steps,
                seed_format=first.seed_format if wanted.seed == "c" else first.out_format,
                out_format=first.out_format,
            )
            for wanted in other.operations
        )
    )


def _step_aspect(name: str, field: str, kind: type[Step]) -> Aspect:
    def value(program: Program) -> str:
        found = [getattr(step, field) for step in program.operations[0].steps_of(kind)]
        return ", ".join(_text(one) for one in dict.fromkeys(found))

    def take(program: Program, other: Program) -> Program:
        return Program(
            tuple(
                _with_field(operation, other.operations[0], field, kind) for operation in program.operations
            )
        )

    return Aspect(name, value, take)


def _with_field(operation: Operation, other: Operation, field: str, kind: type[Step]) -> Operation:
    steps: Iterator[tuple[Step, Step]] = zip(operation.steps, other.steps, strict=True)
    new = tuple(
        replace(mine, **{field: getattr(theirs, field)}) if isinstance(mine, kind) else mine
        for mine, theirs in steps
    )
    return replace(operation, steps=new)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        widths = dict.fromkeys(str(width) for _, width in value)
        return "/".join(widths)
    return "none" if value is None else str(value).replace("_", " ")


ASPECTS = (
    _step_aspect("F", "fraction_bits", Align),
    Aspect("products in one step", _slices, _take_slices),
    _step_aspect("exponent floor", "floor", Align),
    _step_aspect("rounding of the result", "rounding", Round),
    _step_aspect("fraction bits of the result", "result_fraction_bits", Round),
    _step_aspect("group", "group", Sum),
    _step_aspect("NaN word", "nan", SpecialValues),
    _step_aspect("NaN word", "nan", Fma),
)
