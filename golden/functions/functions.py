"""The functions of an architecture's special-function unit by their PTX names, as maps from codes to codes.

    ex2 = golden.mufu("hopper", "ex2.approx.ftz.f32")
    ex2(np.array([0x3F800000], dtype=np.uint32))         # array([0x40000000])
    ex2.sass                                             # ("MUFU.EX2 R5, R0",)

Data: spec/functions, one file an architecture.
"""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.resolver import resolver
from golden.errors import DTypeError, UnknownNameError, nearest
from golden.functions import sequences
from golden.functions.operations import INFINITY, OPERATIONS, SIGN, TABLES
from golden.functions.tables import FRACTION, LOWEST, Block, Integers, Table
from golden.model.instruction import Evidence
from golden.number.arrays import plain
from golden.paths import spec_folder
from golden.values import Integer, Many
from golden.yamlfile import Section, read

Codes = npt.NDArray[np.unsignedinteger]

_WEIGHT = Integer(LOWEST, 0)
_INTEGER = Integer(-(1 << 31), (1 << 31) - 1)
_EVIDENCE = ("captured", "published", "derived")


@dataclass(frozen=True, eq=False)
class Function:
    """One function of a special-function unit; call it with codes.

    name: in PTX, or an operation of MUFU in SASS. sass: the instructions that it becomes, R0 the operand and
    R5 the result. width: bits of a code, 16 or 32; in a code of an x2 form each half is an operand.
    """

    architecture: str
    name: str
    width: int
    sass: tuple[str, ...]
    evidence: Evidence
    tables: AnyMapping[str, Table]
    steps: tuple[sequences.Step, ...]

    def __call__(self, codes: npt.ArrayLike) -> Codes:
        """Returns the result's code for each operand's code, in an array of the same shape.

        codes: raw codes, uint32 (f32, and two f16 or bf16 in the x2 forms) or uint16 (f16, bf16); integers
        that fit are taken as well.

        Raises:
            DTypeError: other values. OperandError: a masked array.
        """
        dtype = np.dtype(np.uint16 if self.width == 16 else np.uint32)
        given = plain(codes, "codes")
        if given.dtype != dtype:
            _refuse_others(given, dtype)
        flat = given.reshape(-1)
        found = np.empty(flat.shape, dtype=dtype)
        # Codes computed at once: their intermediate arrays stay in a processor's cache.
        chunk = 1 << 18
        for start in range(0, flat.size, chunk):
            part = flat[start : start + chunk].astype(np.int64)
            if self.packed:
                found[start : start + chunk] = self._run(part & 0xFFFF) | self._run(part >> 16) << 16
            else:
                found[start : start + chunk] = self._run(part)
        return found.reshape(given.shape)

    @property
    def packed(self) -> bool:
        """Whether a code holds two operands, the first in its lower half."""
        return self.name.endswith("x2")

    @property
    def format(self) -> str:
        """The format of operands and results: f32, f16 or bf16."""
        last = self.name.removesuffix("x2").rpartition(".")[2]
        return last if last in ("f16", "bf16") else "f32"

    def _run(self, codes: Integers) -> Integers:
        return sequences.run(self.steps, self._operation, codes)

    def _operation(self, name: str, codes: Integers) -> Integers:
        """An operation of MUFU. Its 16-bit forms widen the operand, which is exact, and cut the result."""
        operation, _, form = name.partition(".")[2].partition(".")
        compute = OPERATIONS[f"MUFU.{operation}"]
        if form == "F16":
            return _f16(compute(self.tables, _widened(codes)))
        if form == "BF16":
            return compute(self.tables, codes << 16) >> 16
        return compute(self.tables, codes)

    def __repr__(self) -> str:
        return f"<{self.architecture}:{self.name}>"


def _refuse_others(given: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Raises DTypeError for an array of anything but integers that fit `dtype`."""
    if given.dtype.kind not in "iu":
        same = given.dtype.itemsize == dtype.itemsize
        hint = f": codes.view(np.{dtype})" if same else ""
        raise DTypeError(
            f"argument 'codes' has dtype {given.dtype}, expected raw codes of type np.{dtype}{hint}"
        )
    most = np.iinfo(dtype).max
    for code in (int(given.min()), int(given.max())) if given.size else ():
        if not 0 <= code <= most:
            raise DTypeError(f"argument 'codes' holds {code}, expected codes from 0 to {most:#x}")


def mufu(architecture: str, name: str) -> Function:
    """Returns a function of an architecture's special-function unit.

    Args:
        architecture: "hopper", or one of its chips, such as "h100".
        name: a PTX instruction such as "ex2.approx.ftz.f32", or a SASS operation such as "MUFU.EX2".

    Raises:
        UnknownNameError: the architecture, its unit or the function is unknown; names near ones.
    """
    known = functions(architecture)
    if name not in known:
        raise UnknownNameError(
            f"unknown function '{name}' of {resolver().called(architecture)}, expected one of "
            f"{', '.join(known)}{nearest(name, known)}"
        )
    return known[name]


def functions(architecture: str) -> dict[str, Function]:
    """Every function of an architecture's special-function unit, by its name.

    Raises:
        UnknownNameError: the architecture is unknown, or nobody measured its unit. SpecError: its file is
        wrong.
    """
    own = resolver().called(architecture)
    folder = spec_folder() / "functions"
    if not (folder / f"{own}.yaml").is_file():
        known = sorted(path.stem for path in folder.glob("*.yaml"))
        raise UnknownNameError(
            f"the special-function unit of '{own}' is not known, expected one of {', '.join(known)}"
        )
    return _functions(own)


@cache
def _functions(architecture: str) -> dict[str, Function]:
    top = read(spec_folder() / "functions" / f"{architecture}.yaml")
    top.take_choice("architecture", (architecture,))
    source = top.take("source", str)
    given = top.take("evidence", Section)
    evidence = Evidence(
        given.take_choice("kind", _EVIDENCE), source, given.take("vectors", str), given.take("device", str)
    )
    for key in ("compute_capability", "cuda", "driver", "date"):
        given.take(key, str)
    given.done()
    entries = top.take("tables", Section)
    for name in TABLES:
        entries.take(name, Section)
    entries.done()
    tables = {name: _table(name, entries[name]) for name in TABLES}
    names = top.take("functions", Section)
    written = {name: tuple(names.take_names(name)) for name in names}
    written |= {name: (f"{name} {sequences.RESULT}, {sequences.OPERAND}",) for name in OPERATIONS}
    found = {}
    for name, lines in written.items():
        steps = sequences.parsed(lines)
        if steps is None:
            raise names.error(
                f"'{name}' is no sequence of golden/functions/sequences.py from {sequences.OPERAND} to "
                f"{sequences.RESULT}",
                name,
            )
        width = 16 if name.endswith("f16") else 32
        found[name] = Function(architecture, name, width, lines, evidence, tables, steps)
    top.done()
    return found


def _table(name: str, entry: Section) -> Table:
    value, unit = entry.take_value("bias", Many(Integer(), 2, 2))
    low = entry.take_int("low", 16, 17)
    blocks: list[Block] = []
    for block in entry.take("blocks", list):
        segments = block.take_value("segments", Many(Many(_INTEGER, 3, 3), 1))
        if len(segments) & len(segments) - 1 or len(segments) << low > 1 << FRACTION:
            most = 1 << FRACTION - low
            raise block.error(f"{len(segments)} segments, expected a power of two up to {most}", "segments")
        units = block.take_value("units", Many(_WEIGHT, 3, 3))
        exponent = block.take_int("exponent", -126, 127, len(blocks))
        if blocks and exponent != blocks[-1].exponent + 1:
            raise block.error(f"exponent is {exponent}, expected {blocks[-1].exponent + 1}", "exponent")
        blocks.append(Block(exponent, tuple(units), tuple(map(tuple, segments))))
        block.done()
    table = Table(name, entry.take("argument", str), low, value << unit - LOWEST, tuple(blocks))
    entry.done()
    return table


def _widened(codes: Integers) -> Integers:
    """f16 codes as f32 codes."""
    return codes.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32).astype(np.int64)


def _f16(codes: Integers) -> Integers:
    """f32 codes as f16 codes, cut towards zero; 2^16 and more is infinity, a NaN 0x7fff."""
    sign, magnitude = codes >> 16 & 0x8000, codes & ~SIGN
    with np.errstate(all="ignore"):
        numbers = magnitude.astype(np.uint32).view(np.float32)
        rounded = numbers.astype(np.float16)
        # towards zero: where rounding went up, one code less
        up = rounded.astype(np.float32) > numbers
    cut = rounded.view(np.uint16).astype(np.int64) - up
    cut = np.where(magnitude >= 0x47800000, 0x7C00, cut)  # 2^16
    return np.where(magnitude > INFINITY, 0x7FFF, cut | sign)
