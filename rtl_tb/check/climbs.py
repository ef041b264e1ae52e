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
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.check.verdict import Verdict, judge
from rtl_tb.engines.job import Job, Traffic

Operands = dict[str, npt.NDArray[Any]]
MOST = 200_000
"""Dot products of both climbs at most: `fast` runs them in less than a second."""


def try_climbs(job: Job) -> tuple[VectorSet, Job, Verdict] | None:
    """Runs the climbs of a job's unit at full throughput with `fast`; None where there are none."""
    ins = job.dut.instruction
    operands = climbs(ins) if job.dut.level == "dot" else None
    if operands is None:
        return None
    kinds = np.full(len(operands["a"]), KINDS.index("near_overflow"), np.uint8)
    vectors = VectorSet.of(ins, "dot", operands, ins.answers(operands), kinds, job.vectors.seed)
    job = replace(job, vectors=vectors, traffic=Traffic(seed=job.traffic.seed))
    return vectors, job, judge(vectors, engines.run("fast", job), job.dut.compare)


def climbs(ins: Instruction) -> Operands | None:
    """The operands (n, ...) of two sequences that fill an integer accumulator until it overflows, either way.

    None where the unit keeps no integer, has operands beside a and b, or would need more than MOST vectors.
    """
    fmt = ins.formats["d"]
    if not ins.state or fmt.is_float or ins.modes is not None:
        return None
    steepest = _steepest(ins)
    room = max(fmt.largest, 1)
    parts = [(operands, room // abs(value) + 3) for operands, value in steepest if value]
    if not parts or sum(length for _, length in parts) > MOST:
        return None
    found = {
        name: np.concatenate([np.repeat(operands[name][None], length, axis=0) for operands, length in parts])
        for name in ("a", "b")
    }
    clear = np.zeros(len(found["a"]), np.uint8)
    clear[np.cumsum([0, *(length for _, length in parts)])[:-1]] = 1
    return found | {"clear": clear}


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
        d = plain.dot(**operands, c=np.zeros((), ins.formats["c"].dtype))
        found.append((operands, int(ins.formats["d"].decode(int(d)).value)))
    found.sort(key=lambda one: one[1])
    return [found[-1], found[0]] if found[-1][1] != found[0][1] else found[:1]
