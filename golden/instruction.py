"""One instruction: what it is called, what it takes, and the call that computes it.

`Instruction` joins a spec entry with the two models: `ins(A, B, C)` and `ins.dot(a, b, c)` run the C core,
`ins.trace` runs the reference and explains. Raw bits in,
raw bits out (see golden/number/formats.py for the widths).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import ShapeError, nearest
from golden.model import reference
from golden.number.arrays import plain
from golden.number.formats import Format
from golden.program.modes import Modes
from golden.program.program import NOTHING, ONE, Program
from golden.registers.sparsity import Pattern
from golden.traits import Traits

if TYPE_CHECKING:
    from golden.explain.trace import Trace
    from golden.model.dispatch import ModeEngine
    from golden.model.engine import Engine
    from golden.registers.fragments import Fragments

Bits = npt.NDArray[Any]
CUSTOM = "custom"
"""What stands for the architecture of a unit from a file of its own."""


@dataclass(frozen=True)
class Evidence:
    """Why anybody should believe the instruction's rule: captured on hardware, published,
    or derived from others."""

    kind: str
    source: str
    vectors: str | None = None
    device: str | None = None


@dataclass(frozen=True, eq=False)
class Instruction:
    """A matrix instruction (or a designer's unit) that can be called.

    `k` is the logical K; `pattern` the sparsity pattern of A, None where A is dense; `ordered_metadata`
    whether the two indices of a metadata nibble must ascend. `blocks` independent products are batch entries
    in the matrix API.
    """

    name: str
    architecture: str
    m: int
    n: int
    k: int
    formats: dict[str, Format]
    program: Program
    evidence: Evidence
    sass: tuple[str, ...] = ()
    emulated: bool = False
    layout: str | None = None
    pattern: Pattern | None = None
    ordered_metadata: bool = True
    blocks: int = 1
    scale_block: int | None = None
    family: str = ""
    source: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    traits: Traits = field(default_factory=Traits)
    modes: Modes | None = None
    mode_units: dict[int, Instruction] = field(default_factory=dict)
    """The unit in each mode, by the code of `mode`; `formats` and `program` here are those of the first."""

    def __repr__(self) -> str:
        return f"<Instruction {self.architecture} {self.name}>"

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Those of b and c that the unit does not have."""
        stands_for = {"b": ONE, "c": NOTHING}
        return tuple(name for name, fmt in stands_for.items() if self.formats[name] == fmt)

    @cached_property
    def own_formats(self) -> dict[str, Format]:
        """The formats of the operands and of d, without what the unit does not have."""
        return {name: fmt for name, fmt in self.formats.items() if name not in self.absent}

    @property
    def is_custom(self) -> bool:
        """Whether it is a unit from a file of its own, which no architecture lists."""
        return self.architecture == CUSTOM

    @property
    def sparse(self) -> bool:
        """Whether A is sparse: it stores k/2 elements of a row, and metadata say which."""
        return self.pattern is not None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k)."""
        return self.m, self.n, self.k

    @property
    def stored_k(self) -> int:
        """Elements of A that one dot product multiplies: k, or k/2 when A is sparse."""
        return self.k // 2 if self.sparse else self.k

    @cached_property
    def engine(self) -> Engine | ModeEngine:
        """The C core loaded with this instruction's program, or with those of its modes."""
        from golden.model.dispatch import ModeEngine
        from golden.model.engine import Engine

        return Engine(self) if self.modes is None else ModeEngine(self)

    @property
    def fragments(self) -> Fragments | None:
        """Register layouts of A, B, C, D, metadata and scales,
        or None where the unit has no register fragments."""
        from golden.registers.fragments import for_instruction

        return for_instruction(self)

    def __call__(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
        mode: npt.ArrayLike | None = None,
    ) -> Bits:
        """Computes D = A @ B + C as the unit would.

        Args:
            a: raw codes (..., m, k); (..., m, k/2) when sparse.
            b: raw codes (..., k, n); left out where the unit has no b.
            c: raw codes (..., m, n); left out where the unit has no c.
            metadata: sparse only, nibbles (..., m, k/chunk), see golden/registers/sparsity.py.
            scale_a, scale_b: block-scaled only, (..., m, k/scale_block) and (..., k/scale_block, n).
            mode: units with modes only, one code for each product of matrices (...).
            Leading dimensions broadcast against each other.

        Returns:
            Raw codes (..., m, n) of D's format.

        Raises:
            ShapeError, DTypeError, OperandError, MetadataError: as their names say; nothing is computed.
        """
        return self.engine.matrices(a, b, c, metadata, scale_a, scale_b, mode)

    def dot(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
        mode: npt.ArrayLike | None = None,
    ) -> Bits:
        """Computes dot products alone: a, b (..., k), c (...) to d (...). Sparse a is (..., k/2), scales
        (..., k/scale_block), mode (...)."""
        return self.engine.dots(a, b, c, metadata, scale_a, scale_b, mode)

    def trace(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
        mode: npt.ArrayLike | None = None,
    ) -> Trace:
        """Explains one dot product step by step with the reference model: a, b (k,), c a single code.
        `print` it."""
        from golden.explain.trace import Trace

        operands = self.complete(self.check_dot(a, b, c, metadata, scale_a, scale_b, mode))
        if operands["c"].ndim:
            raise ShapeError(
                f"argument 'c' has shape {operands['c'].shape}, expected one code: trace explains one dot "
                "product"
            )
        events: list[reference.Event] = []
        unit, operands = self.in_mode_of(operands)
        row_a, row_b, scales = unit.reference_operands(operands)
        code = reference.evaluate(
            unit.program, unit.formats, row_a, row_b, int(operands["c"]), scales, events
        )
        return Trace(unit, row_a, row_b, int(operands["c"]), scales, events, code)

    def reference_dot(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
        mode: npt.ArrayLike | None = None,
    ) -> int:
        """One dot product by the reference model: a, b (k,), c a single code; returns the raw code of d."""
        operands = self.complete(self.check_dot(a, b, c, metadata, scale_a, scale_b, mode))
        unit, operands = self.in_mode_of(operands)
        row_a, row_b, scales = unit.reference_operands(operands)
        return reference.evaluate(unit.program, unit.formats, row_a, row_b, int(operands["c"]), scales)

    @property
    def plain(self) -> Instruction:
        """The unit itself or, where it has modes, the unit in the first: what a document describes."""
        return next(iter(self.mode_units.values()), self)

    def in_mode_of(self, operands: Mapping[str, Bits]) -> tuple[Instruction, dict[str, Bits]]:
        """The unit in the mode of one dot product, which has no operand `mode`, and the other operands.

        Raises:
            ShapeError: `mode` is not one code. OperandError: a code that the unit does not use.
        """
        rest = {name: codes for name, codes in operands.items() if name != "mode"}
        if self.modes is None:
            return self, rest
        mode = np.asarray(operands["mode"])
        if mode.ndim:
            raise ShapeError(f"argument 'mode' has shape {mode.shape}, expected one code")
        self.modes.check(mode)
        return self.mode_units[int(mode)], rest

    def by_mode(self, operands: Mapping[str, Bits]) -> Iterator[tuple[Instruction, dict[str, Bits], Bits]]:
        """Yields (unit, operands without `mode`, indices) of the dot products (count, ...) of each mode."""
        if self.modes is None:
            yield self, dict(operands), np.arange(len(next(iter(operands.values()))))
            return
        for code, unit in self.mode_units.items():
            index = np.flatnonzero(operands["mode"] == code)
            if len(index):
                yield unit, {n: codes[index] for n, codes in operands.items() if n != "mode"}, index

    def code_format(self, name: str) -> Format:
        """The format of an operand's codes; metadata and modes are plain integers."""
        if name == "mode" and self.modes is not None:
            return self.modes.format
        return self.formats.get(name, _METADATA)

    def reference_operands(
        self, operands: dict[str, Bits]
    ) -> tuple[list[int], list[int], tuple[Sequence[int], Sequence[int], int] | None]:
        """Turns checked one-dot operands into the lists that the reference takes; sparse b is selected by
        the metadata."""
        b = operands["b"]
        if self.pattern is not None:
            b = b[self.pattern.columns(operands["metadata"])]
        scales = None
        if self.scale_block is not None:
            scales = (
                operands["scale_a"].tolist(),
                operands["scale_b"].tolist(),
                self.scale_block * self.stored_k // self.k,
            )
        return operands["a"].tolist(), b.tolist(), scales

    @cached_property
    def _shapes(self) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        return self._operand_shapes(matrices=False), self._operand_shapes(matrices=True)

    def operand_shapes(self, matrices: bool) -> dict[str, tuple[int, ...]]:
        """Returns the trailing shape of every operand, of the matrix API or of `dot`."""
        return self._shapes[matrices]

    def _operand_shapes(self, matrices: bool) -> dict[str, tuple[int, ...]]:
        rows, columns = ((self.m,), (self.n,)) if matrices else ((), ())
        shapes = {"a": (*rows, self.stored_k), "b": (self.k, *columns), "c": (*rows, *columns)}
        shapes = {name: shape for name, shape in shapes.items() if name not in self.absent}
        if self.pattern is not None:
            shapes["metadata"] = (*rows, self.k // self.pattern.chunk)
        if self.scale_block is not None:
            shapes |= {
                "scale_a": (*rows, self.k // self.scale_block),
                "scale_b": (self.k // self.scale_block, *columns),
            }
        if self.modes is not None:
            shapes["mode"] = ()
        return shapes

    def result_shape(self, matrices: bool) -> tuple[int, ...]:
        """The trailing shape of D, or of d."""
        return (self.m, self.n) if matrices else ()

    def complete(self, operands: Mapping[str, Bits], matrices: bool = False) -> dict[str, Bits]:
        """The operands with what stands for a b or c that the unit does not have: the models and the views
        of a unit know only units that have both."""
        rows, columns = ((self.m,), (self.n,)) if matrices else ((), ())
        shapes = {"b": (self.k, *columns), "c": (*rows, *columns)}
        leading = operands["a"].shape[: operands["a"].ndim - len(rows) - 1] if self.absent else ()
        return dict(operands) | {
            name: np.broadcast_to(np.zeros((), self.formats[name].dtype), (*leading, *shapes[name]))
            for name in self.absent
        }

    def check_dot(self, *given: npt.ArrayLike | None) -> dict[str, Bits]:
        """Checks the operands of `dot`; see `check_operands`."""
        return self.check_operands(given, matrices=False)

    def check_named(self, operands: Mapping[str, npt.ArrayLike]) -> dict[str, Bits]:
        """Checks the operands of `dot`, given by their names."""
        unknown = next((name for name in operands if name not in _OPERANDS), None)
        if unknown is not None:
            raise ShapeError(
                f"argument '{unknown}' is no operand, expected "
                f"{', '.join(_OPERANDS)}{nearest(unknown, _OPERANDS)}"
            )
        return self.check_operands([operands.get(name) for name in _OPERANDS], matrices=False)

    def check_operands(self, given: Sequence[npt.ArrayLike | None], matrices: bool) -> dict[str, Bits]:
        """Checks presence, dtype, trailing shape and codes of (a, b, c, metadata, scale_a, scale_b, mode);
        returns the arrays."""
        shapes = self._shapes[matrices]
        checked: dict[str, Bits] = {}
        for name, value in zip_longest(_OPERANDS, given):
            if name not in shapes:
                if value is not None:
                    raise ShapeError(f"argument '{name}' was given, but {self.name} takes none")
                continue
            if value is None:
                raise ShapeError(
                    f"argument '{name}' is missing: {self.name} needs it with shape (..., "
                    f"{_shape_text(shapes[name])})"
                )
            checked[name] = self._check_operand(name, value, shapes[name])
        return checked

    def _check_operand(self, name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Bits:
        fmt = self.code_format(name)
        array = value if type(value) is np.ndarray else _as_codes(value, fmt, name)
        trailing = array.shape[array.ndim - len(shape) :] if array.ndim >= len(shape) else None
        if trailing != shape:
            raise ShapeError(
                f"argument '{name}' has shape {array.shape}, expected (..., {_shape_text(shape)}) for "
                f"{self.name}"
            )
        if array.ndim - len(shape) > _MOST_BATCH:
            raise ShapeError(
                f"argument '{name}' has {array.ndim} dimensions, expected at most {_MOST_BATCH + len(shape)}"
            )
        if array.dtype != fmt.dtype or fmt.bits < fmt.storage:
            fmt.check(array, name)
        if name == "metadata" and self.pattern is not None:
            self.pattern.check(array, self.ordered_metadata)
        if name == "mode" and self.modes is not None:
            self.modes.check(array)
        return array


_OPERANDS = ("a", "b", "c", "metadata", "scale_a", "scale_b", "mode")
_MOST_BATCH = 62
"""Leading dimensions: NumPy has 64, and the results have two more."""
_METADATA = Format("metadata nibble", False, 8, signed=False, integer_bits=4)


def _as_codes(value: npt.ArrayLike, fmt: Format, argument: str) -> Bits:
    """Lists and Python integers become arrays of the format's dtype when every element fits; others keep
    their dtype."""
    array = plain(value, argument)
    if (
        array.dtype.kind in "iu"
        and array.dtype != fmt.dtype
        and not isinstance(value, np.generic | np.ndarray)
    ):
        low, high = (array.min(), array.max()) if array.size else (0, 0)
        if low >= 0 and int(high) <= np.iinfo(fmt.dtype).max:
            return array.astype(fmt.dtype)
    return array


def _shape_text(shape: tuple[int, ...]) -> str:
    return ", ".join(str(n) for n in shape) if shape else "scalar"
