"""Integer accumulators to their ends: a unit that keeps its accumulator overflows only after thousands of dot
products, and no sequence of the usual vectors is so long. A register that is too narrow, or an overflow that
saturates where it should wrap, shows here alone.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.instruction import Instruction
from golden.stimuli import KINDS
from golden.stimuli.sequences import making
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.engines.job import Job, Traffic

Operands = dict[str, npt.NDArray[Any]]
MOST = 200_000
"""Dot products of both climbs at most: `fast` runs them in less than a second."""


BEYOND = 3
"""Of the largest dot products at an end."""
_STEPS = 16
"""Dot products that may lead onto an end."""


def try_climbs(job: Job, engine: str = "fast") -> tuple[VectorSet, Job, Verdict] | None:
    """Runs the climbs of a job's unit at full throughput; None where there are none."""
    ins = job.dut.instruction
    operands = climbs(ins) if job.dut.level == "dot" else None
    if operands is None:
        return None
    kinds = np.full(len(operands["a"]), KINDS.index("near_overflow"), np.uint8)
    vectors = VectorSet.of(ins, "dot", operands, ins.answers(operands), kinds, job.vectors.seed)
    job = replace(job, vectors=vectors, traffic=Traffic(seed=job.traffic.seed))
    return vectors, job, judge(vectors, engines.run(engine, job), job.dut.compare)


def climbs(ins: Instruction) -> Operands | None:
    """The operands (n, ...) of two sequences that fill an integer accumulator until it overflows, either way:
    up to its end exactly, one beyond and back, and then far beyond.

    None where the unit keeps no integer, has operands beside a and b, or would need more than MOST vectors.
    """
    fmt = ins.formats["d"]
    if not ins.state or fmt.is_float or ins.modes is not None:
        return None
    steepest = [(operands, value) for operands, value in _steepest(ins) if value]
    ends = [fmt.largest if value > 0 else -fmt.least for _, value in steepest]
    lengths = [max(end // value, 0) for end, (_, value) in zip(ends, steepest, strict=True)]
    if not steepest or sum(lengths) > MOST:
        return None
    rows: list[Operands] = []
    clear: list[int] = []
    for end, length, (operands, value) in zip(ends, lengths, steepest, strict=True):
        first = int("clear" in ins.alone)  # has no products that count
        part = [operands] * (first + length) + _landing(ins, end - length * value, (operands, value))
        rows += part
        clear += [1] + [0] * (len(part) - 1)
    rows += [rows[0]]
    clear += [1]  # forgets what the last climb left
    found = {name: np.stack([operands[name] for operands in rows]) for name in ("a", "b")}
    if ins.load:
        found |= {"c": np.zeros(len(rows), fmt.dtype), "load": np.zeros(len(rows), np.uint8)}
    return found | {"clear": np.array(clear, np.uint8)}


def _landing(ins: Instruction, rest: int, steepest: tuple[Operands, int]) -> list[Operands]:
    """Dot products from `rest` below an end: onto it, staying there with no product and with two that cancel,
    one beyond, where an accumulator that wraps is at its other end, staying, back; far beyond, and back. Only
    far beyond where the end cannot be reached; nothing back where no product is negative."""
    operands, value = steepest
    step = 1 if value > 0 else -1
    onto, back = _onto(ins, rest), _onto(ins, -value)
    if onto is None:
        return [operands] * BEYOND
    stay = [*(_onto(ins, 0, 1) or []), *_cancelling(ins)]
    near = _onto(ins, -step)
    if near is None or back is None:  # no way back
        return [*onto, *stay, *[operands] * BEYOND]
    around = [*stay, *(_onto(ins, step) or []), *stay, *near]
    return [*onto, *around, *[operands] * BEYOND, *back * BEYOND]


def _onto(ins: Instruction, value: int, least: int = 0) -> list[Operands] | None:
    """Dot products, `least` or more, that are a number together; None where the operands cannot make it."""
    found: list[Operands] = []
    fmt = ins.formats["d"]
    while value or len(found) < least:
        code = np.array([value & _mask(ins, "d")], fmt.dtype)
        made = making(ins.stateless, {}, code, np.zeros(1, np.int64), np.random.default_rng(1))
        operands = {name: made[name][0] for name in ("a", "b")}
        reached = _value(ins, operands)
        if abs(value - reached) >= abs(value) > 0 or len(found) == _STEPS:
            return None
        found.append(operands)
        value -= reached
    return found


def _cancelling(ins: Instruction) -> list[Operands]:
    """A dot product of two products that cancel, in a list; none where b has no negative numbers."""
    shape = ins.stateless.operand_shapes(False)["a"]
    a, b = (np.zeros(shape, ins.formats[name].dtype) for name in ("a", "b"))
    if a.size < 2 or a.shape != b.shape:
        return []
    a.flat[:2], b.flat[:2] = 1, (1, _mask(ins, "b"))
    operands = {"a": a, "b": b}
    return [operands] if not _value(ins, operands) else []


def _value(ins: Instruction, operands: Operands) -> int:
    d = ins.stateless.dot(**operands, c=np.zeros((), ins.formats["c"].dtype))
    return int(ins.formats["d"].decode(int(d)).value)


def _mask(ins: Instruction, name: str) -> int:
    return (1 << ins.formats[name].integer_bits) - 1


def _steepest(ins: Instruction) -> list[tuple[Operands, int]]:
    """The largest and the least dot product of operands at the ends of their ranges, with their values."""
    plain = ins.stateless
    shapes = {name: shape for name, shape in plain.operand_shapes(False).items() if name != "c"}
    if set(shapes) != {"a", "b"} or any(ins.formats[name].is_float for name in shapes):
        return []
    ends = []
    for name in shapes:
        fmt = ins.formats[name]
        ends.append([fmt.largest, *([1 << (fmt.integer_bits - 1)] if fmt.signed else [])])
    found = []
    for codes in product(*ends):
        operands = {
            name: np.full(shape, code, ins.formats[name].dtype)
            for (name, shape), code in zip(shapes.items(), codes, strict=True)
        }
        found.append((operands, _value(ins, operands)))
    found.sort(key=lambda one: one[1])
    return [found[-1], found[0]] if found[-1][1] != found[0][1] else found[:1]
