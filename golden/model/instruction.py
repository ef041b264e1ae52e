"""One instruction: what it is called, what it takes, and the call that computes it.

`Instruction` joins a spec entry with the two models: `ins(A, B, C)` and `ins.dot(a, b, c)` run the C core,
`ins.trace` runs the reference and explains. Raw bits in,
raw bits out (see golden/number/formats.py for the widths).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, ShapeError
from golden.notebook import NotebookHtml
from golden.program.program import Program
from golden.program.signature import Signature
from golden.program.words import is_integer
from golden.traits import Traits

if TYPE_CHECKING:
    from golden.explain.trace import Trace
    from golden.model.engine import Engine
    from golden.model.unit_engines import ModeEngine, SequenceEngine
    from golden.registers.fragments import Fragments

Bits = npt.NDArray[Any]
CUSTOM = "custom"
"""What stands for the architecture of a unit from a file of its own."""


@dataclass(frozen=True)
class Evidence:
    """Why the instruction's rule is believed: captured on hardware, published,
    or derived from others."""

    kind: str
    source: str
    vectors: str | None = None
    device: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Instruction(Signature, NotebookHtml):
    """A matrix instruction (or a designer's unit) that can be called: a program for a signature.

    `blocks` independent products are batch entries in the matrix API.
    """

    architecture: str
    program: Program
    evidence: Evidence
    sass: tuple[str, ...] = ()
    emulated: bool = False
    layout: str | None = None
    blocks: int = 1
    family: str = ""
    source: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    traits: Traits = field(default_factory=Traits)
    mode_units: dict[int, Instruction] = field(default_factory=dict)
    """The unit in each mode, by the code of `mode`; `formats` and `program` here belong to the first mode."""
    mode_code: int | None = None
    """Of a unit that is another in one of its modes: the code of that mode."""

    def __repr__(self) -> str:
        return f"<Instruction {self.architecture} {self.name}>"

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or another process gets: the fields. The engine, which holds pointers into the core,
        and whatever else was worked out on use, is made anew there."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def is_custom(self) -> bool:
        """Whether it is a unit from a file of its own, which no architecture lists."""
        return self.architecture == CUSTOM

    @cached_property
    def is_integer(self) -> bool:
        """See golden.program.words.is_integer."""
        return is_integer(self.program, self.own_formats)

    @cached_property
    def engine(self) -> Engine | ModeEngine | SequenceEngine:
        """The C core loaded with this instruction's program, or with the programs of its modes."""
        if self.state:
            from golden.model.unit_engines import SequenceEngine

            return SequenceEngine(self, self.engine_of_one)
        return self.engine_of_one

    @cached_property
    def engine_of_one(self) -> Engine | ModeEngine:
        """The same for dot products with c as an operand, also where the unit holds it."""
        from golden.model.engine import Engine
        from golden.model.unit_engines import ModeEngine

        if self.state:
            return self.stateless.engine_of_one
        if self.modes is None:
            return Engine(self.program, self)
        return ModeEngine(self, {code: (unit.program, unit) for code, unit in self.mode_units.items()})

    @cached_property
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
        out: Bits | None = None,
    ) -> Bits:
        """Computes D = A @ B + C as the unit would.

        Args:
            a: raw codes (..., m, k); (..., m, k/2) when sparse.
            b: raw codes (..., k, n); left out where the unit has no b.
            c: raw codes (..., m, n); left out where the unit has no c.
            metadata: sparse only, nibbles (..., m, k/chunk), see golden/registers/sparsity.py.
            scale_a, scale_b: block-scaled only, (..., m, k/scale_block) and (..., k/scale_block, n).
            mode: units with modes only, one code for each product of matrices (...).
            out: an array (..., m, n) of D's dtype that takes the results and is returned; without it each
            call takes new memory. It must share no memory with an operand.
            Leading dimensions broadcast against each other.

        Returns:
            Raw codes (..., m, n) of D's format.

        Raises:
            ShapeError, DTypeError, OperandError, MetadataError: as their names say; nothing is computed.
        """
        if out is not None:
            return self._into(out, True, (a, b, c, metadata, scale_a, scale_b, mode))
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
        clear: npt.ArrayLike | None = None,
        load: npt.ArrayLike | None = None,
        out: Bits | None = None,
    ) -> Bits:
        """Computes dot products alone: a, b (..., k), c (...) to d (...). Sparse a is (..., k/2), scales
        (..., k/scale_block), mode (...). `out` (...) takes the results, as in a call.

        A unit that keeps its accumulator takes `clear` (...) instead of c, or in addition to c if it has
        `load` (...); the last of the leading axes is time, see golden/program/state.py.
        """
        given = (a, b, c, metadata, scale_a, scale_b, mode, clear, load)
        return self.engine.dots(*given) if out is None else self._into(out, False, given)

    def _into(self, out: Bits, matrices: bool, given: Sequence[npt.ArrayLike | None]) -> Bits:
        """Computes into the caller's array; raises what `check_out` does."""
        from golden.model.engine import Engine, check_out

        engine = self.engine
        if self.state and matrices:
            return engine.matrices(*given)  # which refuses them
        checked = self.check_operands(given, matrices)
        check_out(self, checked, matrices, out)
        if isinstance(engine, Engine) and out.flags.c_contiguous:
            engine.compute(checked, matrices, out=out)
        else:
            out[...] = engine.compute(checked, matrices)
        return out

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
        """Explains one dot product step by step with the reference model: a, b (k,), c a single code, also
        of a unit that holds it. `print` it."""
        from golden.explain.trace import Trace
        from golden.model import reference  # not needed by those who compute: `import golden` stays quick

        one = self.stateless
        operands = one.complete(one.check_dot(a, b, c, metadata, scale_a, scale_b, mode))
        if operands["c"].ndim:
            raise ShapeError(
                f"argument 'c' has shape {operands['c'].shape}, expected one code: trace explains one dot "
                "product"
            )
        events: list[reference.Event] = []
        unit, operands = one.in_mode_of(operands)
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
        **others: npt.ArrayLike | None,
    ) -> int:
        """One dot product by the reference model, with the operands of `trace`; returns the raw code of d."""
        from golden.model import reference

        one = self.stateless
        operands = one.complete(one.check_named({"a": a, "b": b, "c": c, **others}))
        unit, operands = one.in_mode_of(operands)
        row_a, row_b, scales = unit.reference_operands(operands)
        return reference.evaluate(unit.program, unit.formats, row_a, row_b, int(operands["c"]), scales)

    def flags(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike | None = None,
        c: npt.ArrayLike | None = None,
        **others: npt.ArrayLike | None,
    ) -> Bits:
        """The status flags of dot products, with the operands of `dot`.

        Returns:
            Codes (...), uint8: bit i is the flag `status[i]`.

        Raises:
            OperandError: the unit has no status flags. Else as `dot`.
        """
        if not self.status:
            raise OperandError(f"{self.name} has no status flags (key 'flags' of a unit's file)")
        return self.answers(self.check_named({"a": a, "b": b, "c": c, **others}))["flags"]

    def answers(self, operands: Mapping[str, Bits], matrices: bool = False, held: int = 0) -> dict[str, Bits]:
        """All results of checked operands by name: d and, where the unit has status flags, flags, of one
        shape: that of `dot`, or of the matrix API. `held`: what a unit that keeps its accumulator holds at
        first."""
        if self.state:
            from golden.model.unit_engines import SequenceEngine

            return SequenceEngine(self, self.engine_of_one).results(dict(operands), matrices, held)
        return self.engine_of_one.results(dict(operands), matrices)

    @property
    def plain(self) -> Instruction:
        """The unit itself or, where it has modes, the unit in the first, with c as an operand: what a
        document describes."""
        return next(iter(self.mode_units.values()), self).stateless

    @cached_property
    def stateless(self) -> Instruction:
        """The unit whose operand c is what this one holds; this one itself where it holds nothing. Whatever
        looks at one dot product (trace, coverage, diagnosis) takes it."""
        if not self.state:
            return self
        units = {code: unit.stateless for code, unit in self.mode_units.items()}
        return replace(self, state=False, load=False, alone=(), mode_units=units)

    def of_mode(self, code: int) -> Instruction:
        """The unit in one mode."""
        return self.mode_units[code]

    def in_mode_of(self, operands: Mapping[str, Bits]) -> tuple[Instruction, dict[str, Bits]]:
        """The unit in the mode of one dot product, and the other operands; see Signature.in_mode_of."""
        unit, rest = super().in_mode_of(operands)
        assert isinstance(unit, Instruction)
        return unit, rest

    def by_mode(self, operands: Mapping[str, Bits]) -> Iterator[tuple[Instruction, dict[str, Bits], Bits]]:
        """Yields (unit, operands without `mode`, indices) of the dot products (count, ...) of each mode."""
        if self.modes is None:
            yield self, dict(operands), np.arange(len(next(iter(operands.values()))))
            return
        for code, unit in self.mode_units.items():
            index = np.flatnonzero(operands["mode"] == code)
            if len(index):
                yield unit, {n: codes[index] for n, codes in operands.items() if n != "mode"}, index

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
