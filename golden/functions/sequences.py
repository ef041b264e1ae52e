"""Runs the few instructions that ptxas sets around an operation of MUFU: it scales an operand that the unit
would flush to zero, and the result back.

Registers hold f32 codes. FMUL and FADD round to nearest and FMUL.RZ towards zero, all three with subnormals;
of a NaN they make the code 0x7fffffff. `|R0|` is a magnitude, a number stands for its f32 code, `@!P0` in
front lets an instruction write only where the predicate is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.functions.operations import NAN, OPERATIONS, SIGN
from golden.functions.tables import Integers

Predicate = npt.NDArray[np.bool_]
OPERAND, RESULT = "R0", "R5"
"""The registers in which every sequence finds its operand and leaves its result."""
_SHAPE = re.compile(r"(?:@(!?)(P\d) )?([A-Z][A-Z0-9.]*) (.+)")
_REGISTER = re.compile(r"(\|?)(R\d)\|?")
_PLACE = re.compile(r"R\d|\|R\d\||!?P\d|PT")
"""What an instruction reads apart from constants."""


@dataclass(frozen=True)
class Step:
    """One instruction: its name, the register that it writes, what it reads, and the predicate that it
    obeys."""

    name: str
    target: str
    sources: tuple[str, ...]
    predicate: str
    negated: bool


def parsed(lines: Sequence[str]) -> tuple[Step, ...] | None:
    """The instructions of a sequence; None if a line is none, reads what no line before it wrote, or nothing
    writes RESULT."""
    steps, written = [], {OPERAND, "PT"}
    for line in lines:
        step = _step(line)
        if step is None:
            return None
        read = {source.strip("|!") for source in step.sources if not _is_number(source)}
        if not read | ({step.predicate} - {""}) <= written:
            return None
        written.add(step.target)
        steps.append(step)
    return tuple(steps) if RESULT in written else None


def _step(text: str) -> Step | None:
    found = _SHAPE.fullmatch(text)
    if not found:
        return None
    negated, predicate, name, operands = found.groups()
    target, *sources = operands.split(", ")
    operation = name.removesuffix(".F16").removesuffix(".BF16") in OPERATIONS
    if (not operation and name not in _READS) or len(sources) != _READS.get(name, 1):
        return None
    if not all(_PLACE.fullmatch(source) or _is_number(source) for source in sources):
        return None
    return Step(name, target, tuple(sources), predicate or "", bool(negated))


def run(steps: Sequence[Step], unit: Callable[[str, Integers], Integers], codes: Integers) -> Integers:
    """Runs a sequence on f32 codes. unit(name, codes) computes the operations of MUFU."""
    registers: dict[str, Integers] = {OPERAND: codes}
    predicates: dict[str, Predicate] = {"PT": np.ones(codes.shape, dtype=np.bool_)}
    for step in steps:
        chosen = predicates[step.predicate] != step.negated if step.predicate else predicates["PT"]
        if step.name.startswith("FSETP"):
            a, b = (_numbers(_read(registers, source, codes)) for source in step.sources[1:3])
            predicates[step.target] = (a > b) if ".GT." in step.name else ~(a < b)  # GEU: also of a NaN
            continue
        if step.name == "FSEL":
            yes, no = (_read(registers, source, codes) for source in step.sources[:2])
            which = step.sources[2]
            found = np.where(predicates[which.lstrip("!")] != which.startswith("!"), yes, no)
        else:
            values = [_read(registers, source, codes) for source in step.sources]
            found = _ARITHMETIC[step.name](*values) if step.name in _ARITHMETIC else unit(step.name, *values)
        registers[step.target] = np.where(chosen, found, registers.get(step.target, found))
    return registers[RESULT]


def _is_number(source: str) -> bool:
    """Whether an operand is a finite constant, and no register or predicate."""
    try:
        return bool(np.isfinite(np.float32(source)))
    except ValueError:
        return False


def _read(registers: dict[str, Integers], source: str, codes: Integers) -> Integers:
    """The codes of a register, of its magnitude, or of a constant."""
    if found := _REGISTER.fullmatch(source):
        value = registers[found[2]]
        return value & ~SIGN if found[1] else value
    return np.full_like(codes, constant(source))


def constant(text: str) -> int:
    """The f32 code of a number as SASS writes it."""
    return int(_codes(np.array([text]).astype(np.float32))[0])


def _numbers(codes: Integers) -> npt.NDArray[np.float32]:
    return codes.astype(np.uint32).view(np.float32)


def _codes(numbers: npt.NDArray[np.float32]) -> Integers:
    """f32 numbers as codes, with one code for every NaN."""
    return np.where(np.isnan(numbers), NAN, numbers.view(np.uint32).astype(np.int64))


def _multiply(a: Integers, b: Integers) -> Integers:
    with np.errstate(all="ignore"):
        return _codes(_numbers(a) * _numbers(b))


def _multiply_cut(a: Integers, b: Integers) -> Integers:
    """The product towards zero: a double holds it, and a float of greater magnitude is one code too far."""
    with np.errstate(all="ignore"):
        exact = _numbers(a).astype(np.float64) * _numbers(b).astype(np.float64)
        nearest = exact.astype(np.float32)
        return _codes(nearest) - (np.abs(nearest.astype(np.float64)) > np.abs(exact))


def _add(a: Integers, b: Integers) -> Integers:
    with np.errstate(all="ignore"):
        return _codes(_numbers(a) + _numbers(b))


_ARITHMETIC: dict[str, Callable[..., Integers]] = {
    "FADD": _add,
    "FMUL": _multiply,
    "FMUL.RZ": _multiply_cut,
    "MOV": lambda a: a,
}
_READS = {"FADD": 2, "FMUL": 2, "FMUL.RZ": 2, "FSEL": 3, "MOV": 1, "FSETP.GEU.AND": 4, "FSETP.GT.AND": 4}
"""How many sources each instruction has; FSETP's first and last are PT."""
