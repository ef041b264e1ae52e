"""Integer accumulators to their ends: a unit that keeps its accumulator overflows only after thousands of dot
products, and no sequence of the usual vectors is that long.

Only this run shows a register that is too narrow, a carry that gets lost on the way, or an overflow that
saturates instead of wrapping.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import bits_text
from golden.model.instruction import Instruction
from golden.stimuli import KINDS
from golden.stimuli.sequences import operands_for_results
from golden.vectors.vectorset import VectorSet
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.runs.verdict import Verdict, verdict_of

Operands = dict[str, npt.NDArray[Any]]
MOST = 200_000
"""Dot products of both climbs at most: `fast` runs them in less than a second. A longer climb ends on the
way."""
BEYOND = 3
"""Times that the largest dot product is added at an end."""


def try_long_accumulation(job: Job, engine: str = "fast") -> tuple[VectorSet, Job, Verdict] | None:
    """Runs the climbs of a job's unit at full throughput; None if there are none."""
    ins = job.dut.instruction
    operands = long_accumulation(ins) if job.dut.level == "dot" else None
    if operands is None:
        return None
    kinds = np.full(len(operands["a"]), KINDS.index("near_overflow"), np.uint8)
    vectors = VectorSet.of(ins, "dot", operands, ins.answers(operands), kinds, job.vectors.seed)
    job = replace(job, vectors=vectors, traffic=Traffic(seed=job.traffic.seed))
    return vectors, job, verdict_of(engine, job)


def long_accumulation(ins: Instruction, most: int = MOST) -> Operands | None:
    """The operands (n, ...) of two sequences that fill an integer accumulator until it overflows, in either
    direction: across each power of two, once and again, exactly to its end, one beyond and back, and then far
    beyond, as far as `most` vectors allow.

    None if the unit keeps no integer, or has operands other than a and b.
    """
    fmt = ins.formats["d"]
    if not ins.state or fmt.is_float or ins.modes is not None:
        return None
    steepest = [(operands, value) for operands, value in _steepest(ins) if value]
    if not steepest:
        return None
    parts: list[tuple[Operands, int]] = []
    clear: list[npt.NDArray[np.uint8]] = []
    for operands, value in steepest:
        end = fmt.largest if value > 0 else -fmt.least
        first = int("clear" in ins.alone)  # has no products that count
        climb = [(operands, first), *_fill(ins, end, (operands, value), most // len(steepest))]
        parts += climb
        clear.append(np.zeros(sum(times for _, times in climb), np.uint8))
        clear[-1][0] = 1
    parts.append((parts[-1][0], 1))
    clear.append(np.ones(1, np.uint8))  # forgets what the last climb left
    times = [count for _, count in parts]
    found = {
        name: np.repeat(np.stack([operands[name] for operands, _ in parts]), times, axis=0) for name in "ab"
    }
    if ins.load:
        found |= {"c": np.zeros(sum(times), fmt.dtype), "load": np.zeros(sum(times), np.uint8)}
    return found | {"clear": np.concatenate(clear)}


def _fill(
    ins: Instruction, end: int, steepest: tuple[Operands, int], most: int
) -> list[tuple[Operands, int]]:
    """Dot products from zero to an end and beyond, and how often each is used. The climb stops on the last
    number before each power of two, crosses it, returns, and crosses it again, so that each carry runs
    through all bits."""
    operands, value = steepest
    step = 1 if value > 0 else -1
    found: list[tuple[Operands, int]] = []
    at = taken = 0
    across, back = _onto(ins, step), _onto(ins, -step)
    for bit in range(1, ins.formats["d"].integer_bits - 1):
        target = (1 << bit) - 1 if step > 0 else -(1 << bit)
        times = max((target - at) // value, 0)
        onto = _onto(ins, target - at - times * value)
        if onto is None or across is None:
            continue
        if taken + times > most:
            return [*found, (operands, most - taken)]
        turn = [*onto, *across, *(back or []), *(across if back else [])]
        found += [(operands, times), *((each, 1) for each in turn)]
        at, taken = target + step, taken + times + len(turn)
    times = max((end - at) // value, 0)
    if taken + times > most:
        return [*found, (operands, most - taken)]
    landing = _landing(ins, end - at - times * value, steepest)
    return [*found, (operands, times), *((each, 1) for each in landing)]


def turning_points(vectors: VectorSet, most: int) -> list[VectorSet]:
    """The parts of a climb in which something changes, if it is longer than `most`."""
    if len(vectors) <= most:
        return [vectors]
    changes = np.zeros(len(vectors), np.bool_)
    for name in ("a", "b", "clear"):
        codes = vectors.operands[name]
        changes[1:] |= (codes[1:] != codes[:-1]).reshape(len(codes) - 1, -1).any(axis=1)
    near = np.unique(
        (np.flatnonzero(changes)[:, None] + np.arange(-BEYOND, BEYOND + 1)).clip(0, len(vectors) - 1)
    )
    parts = np.split(near, np.flatnonzero(np.diff(near) > 1) + 1)
    return [vectors[int(part[0]) : int(part[-1]) + 1] for part in parts]


def unreached_bits(ins: Instruction, runs: list[VectorSet]) -> str | None:
    """Bits of an integer accumulator that no result of these runs had, in a sentence; None if each occurred
    or the unit keeps no integer."""
    fmt = ins.formats["d"]
    if not ins.state or fmt.is_float:
        return None
    mask = (1 << fmt.integer_bits) - 1
    sign = 1 << (fmt.integer_bits - 1) if fmt.signed else 0
    codes = np.concatenate([run.d.astype(np.uint64) & np.uint64(mask) for run in runs])
    negative = (codes & np.uint64(sign)) != 0
    ones = int(np.bitwise_or.reduce(codes[~negative])) if (~negative).any() else 0
    zeros = int(np.bitwise_or.reduce(~codes[negative] & np.uint64(mask))) if negative.any() else 0
    said = []
    for missing, what in (
        (~ones & mask & ~sign, "set in a sum of 0 or more"),
        (~zeros & mask & ~sign, "clear in a negative sum"),
    ):
        if missing and (what.startswith("set") or negative.any()):
            said.append(f"{_bits(missing)} never {what}")
    if not said:
        return None
    return f"of the accumulator {' and '.join(said)}: longer runs reach them, and would show faults there"


def _bits(mask: int) -> str:
    """Bits of a mask in words: "bits 29 and 30 were"."""
    places = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    return f"{bits_text(places)} {'was' if len(places) == 1 else 'were'}"


def _landing(ins: Instruction, rest: int, steepest: tuple[Operands, int]) -> list[Operands]:
    """Dot products from `rest` below an end: exactly to it, holding it with no product and with two that
    cancel, one beyond, where a wrapping accumulator is at its other end, holding, and back; then far beyond,
    and back. If the end cannot be reached, only far beyond; without negative products, no way back."""
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
    """At least `least` dot products that add up to a number; None if the operands cannot produce it."""
    found: list[Operands] = []
    fmt = ins.formats["d"]
    # Dot products that may lead exactly to an end.
    steps = 16
    while value or len(found) < least:
        code = np.array([value & _mask(ins, "d")], fmt.dtype)
        made = operands_for_results(ins.stateless, {}, code, np.zeros(1, np.int64), np.random.default_rng(1))
        operands = {name: made[name][0] for name in ("a", "b")}
        reached = _value(ins, operands)
        if abs(value - reached) >= abs(value) > 0 or len(found) == steps:
            return None
        found.append(operands)
        value -= reached
    return found


def _cancelling(ins: Instruction) -> list[Operands]:
    """A dot product of two products that cancel, in a list; empty if b has no negative numbers."""
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
