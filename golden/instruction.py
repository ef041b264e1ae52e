"""One instruction: what it is called, what it takes, and the call that computes it.

`Instruction` joins a spec entry with the two models: `ins(A, B, C)` and `ins.dot(a, b, c)` run the C core, `ins.trace`
runs the reference and explains. Raw bits in, raw bits out (see golden/formats.py for the widths).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden import catalog, reference
from golden.arrays import plain
from golden.compile_program import compile_program
from golden.errors import ShapeError, UnknownNameError, nearest
from golden.formats import Format, get_format
from golden.program import Operands, Program
from golden.sparsity import Pattern, pattern_for

if TYPE_CHECKING:
    from golden.engine import Engine
    from golden.fragments import Fragments
    from golden.trace import Trace

Bits = npt.NDArray[Any]


@dataclass(frozen=True)
class Evidence:
    """Why anybody should believe the instruction's rule: captured on hardware, published, or derived from others."""

    kind: str
    source: str
    vectors: str | None = None
    device: str | None = None


@dataclass(frozen=True, eq=False)
class Instruction:
    """A matrix instruction (or a designer's unit) that can be called.

    `k` is the logical K (a sparse A stores k/2); `blocks` independent products are batch entries in the matrix API.
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
    sparse: bool = False
    blocks: int = 1
    scale_block: int | None = None
    family: str = ""
    source: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Instruction {self.architecture} {self.name}>"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k)."""
        return self.m, self.n, self.k

    @property
    def stored_k(self) -> int:
        """Elements of A that one dot product multiplies: k, or k/2 when A is sparse."""
        return self.k // 2 if self.sparse else self.k

    @cached_property
    def pattern(self) -> Pattern | None:
        """The sparsity pattern, or None for a dense A."""
        return pattern_for(self.formats["a"].name, self.variables.get("kind", "")) if self.sparse else None

    @property
    def ordered_metadata(self) -> bool:
        """Whether the two indices of a metadata nibble must ascend (all but the plain mma.sp)."""
        return self.variables.get("sp") != "mma.sp"

    @cached_property
    def engine(self) -> Engine:
        """The C core loaded with this instruction's program."""
        from golden.engine import Engine

        return Engine(self)

    @property
    def fragments(self) -> Fragments | None:
        """Register layouts of A, B, C, D, metadata and scales, or None where the unit has no register fragments."""
        from golden.fragments import for_instruction

        return for_instruction(self)

    def __call__(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        c: npt.ArrayLike,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
    ) -> Bits:
        """Computes D = A @ B + C as the unit would.

        Args:
            a: raw codes (..., m, k); (..., m, k/2) when sparse.
            b: raw codes (..., k, n).
            c: raw codes (..., m, n).
            metadata: sparse only, nibbles (..., m, k/chunk), see golden/sparsity.py.
            scale_a, scale_b: block-scaled only, (..., m, k/scale_block) and (..., k/scale_block, n).
            Leading dimensions broadcast against each other.

        Returns:
            Raw codes (..., m, n) of D's format.

        Raises:
            ShapeError, DTypeError, OperandError, MetadataError: as their names say; nothing is computed.
        """
        return self.engine.matrices(a, b, c, metadata, scale_a, scale_b)

    def dot(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        c: npt.ArrayLike,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
    ) -> Bits:
        """Computes dot products alone: a, b (..., k), c (...) to d (...). Sparse a is (..., k/2), scales (..., k/scale_block)."""
        return self.engine.dots(a, b, c, metadata, scale_a, scale_b)

    def trace(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        c: npt.ArrayLike,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
    ) -> Trace:
        """Explains one dot product step by step with the reference model: a, b (k,), c a single code. `print` it."""
        from golden.trace import Trace

        operands = self.check_dot(a, b, c, metadata, scale_a, scale_b)
        if operands["c"].ndim:
            raise ShapeError(f"argument 'c' has shape {operands['c'].shape}, expected one code: trace explains one dot product")
        events: list[reference.Event] = []
        row_a, row_b, scales = self.reference_operands(operands)
        code = reference.evaluate(self.program, self.formats, row_a, row_b, int(operands["c"]), scales, events)
        return Trace(self, row_a, row_b, int(operands["c"]), scales, events, code)

    def reference_dot(
        self,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        c: npt.ArrayLike,
        *,
        metadata: npt.ArrayLike | None = None,
        scale_a: npt.ArrayLike | None = None,
        scale_b: npt.ArrayLike | None = None,
    ) -> int:
        """One dot product by the reference model: a, b (k,), c a single code; returns the raw code of d."""
        operands = self.check_dot(a, b, c, metadata, scale_a, scale_b)
        row_a, row_b, scales = self.reference_operands(operands)
        return reference.evaluate(self.program, self.formats, row_a, row_b, int(operands["c"]), scales)

    def reference_operands(
        self, operands: dict[str, Bits]
    ) -> tuple[list[int], list[int], tuple[Sequence[int], Sequence[int], int] | None]:
        """Turns checked one-dot operands into the lists that the reference takes; sparse b is selected by the metadata."""
        b = operands["b"]
        if self.pattern is not None:
            b = b[self.pattern.columns(operands["metadata"])]
        scales = None
        if self.scale_block is not None:
            scales = operands["scale_a"].tolist(), operands["scale_b"].tolist(), self.scale_block * self.stored_k // self.k
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
        if self.pattern is not None:
            shapes["metadata"] = (*rows, self.k // self.pattern.chunk)
        if self.scale_block is not None:
            shapes |= {"scale_a": (*rows, self.k // self.scale_block), "scale_b": (self.k // self.scale_block, *columns)}
        return shapes

    def check_dot(self, *given: npt.ArrayLike | None) -> dict[str, Bits]:
        """Checks the operands of `dot`; see `check_operands`."""
        return self.check_operands(given, matrices=False)

    def check_named(self, operands: Mapping[str, npt.ArrayLike]) -> dict[str, Bits]:
        """Checks the operands of `dot`, given by their names."""
        unknown = next((name for name in operands if name not in _OPERANDS), None)
        if unknown is not None:
            raise ShapeError(f"argument '{unknown}' is no operand, expected {', '.join(_OPERANDS)}{nearest(unknown, _OPERANDS)}")
        return self.check_operands([operands.get(name) for name in _OPERANDS], matrices=False)

    def check_operands(self, given: Sequence[npt.ArrayLike | None], matrices: bool) -> dict[str, Bits]:
        """Checks presence, dtype, trailing shape and codes of (a, b, c, metadata, scale_a, scale_b); returns the arrays."""
        shapes = self._shapes[matrices]
        checked: dict[str, Bits] = {}
        for name, value in zip(_OPERANDS, given, strict=True):
            if name not in shapes:
                if value is not None:
                    raise ShapeError(f"argument '{name}' was given, but {self.name} takes none")
                continue
            if value is None:
                raise ShapeError(
                    f"argument '{name}' is missing: {self.name} needs it with shape (..., {_shape_text(shapes[name])})"
                )
            checked[name] = self._check_operand(name, value, shapes[name])
        return checked

    def _check_operand(self, name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Bits:
        fmt = self.formats.get(name, _METADATA)
        array = value if type(value) is np.ndarray else _as_codes(value, fmt, name)
        trailing = array.shape[array.ndim - len(shape) :] if array.ndim >= len(shape) else None
        if trailing != shape:
            raise ShapeError(f"argument '{name}' has shape {array.shape}, expected (..., {_shape_text(shape)}) for {self.name}")
        if array.ndim - len(shape) > _MOST_BATCH:
            raise ShapeError(f"argument '{name}' has {array.ndim} dimensions, expected at most {_MOST_BATCH + len(shape)}")
        if array.dtype != fmt.dtype or fmt.bits < fmt.storage:
            fmt.check(array, name)
        if name == "metadata" and self.pattern is not None:
            self.pattern.check(array, self.ordered_metadata)
        return array


_OPERANDS = ("a", "b", "c", "metadata", "scale_a", "scale_b")
_MOST_BATCH = 62
"""Leading dimensions: NumPy has 64, and the results have two more."""
_METADATA = Format("metadata nibble", False, 8, signed=False, integer_bits=4)


def _as_codes(value: npt.ArrayLike, fmt: Format, argument: str) -> Bits:
    """Lists and Python integers become arrays of the format's dtype when every element fits; others keep their dtype."""
    array = plain(value, argument)
    if array.dtype.kind in "iu" and array.dtype != fmt.dtype and not isinstance(value, np.generic | np.ndarray):
        low, high = (array.min(), array.max()) if array.size else (0, 0)
        if low >= 0 and int(high) <= np.iinfo(fmt.dtype).max:
            return array.astype(fmt.dtype)
    return array


def _shape_text(shape: tuple[int, ...]) -> str:
    return ", ".join(str(n) for n in shape) if shape else "scalar"


# Look-up ---------------------------------------------------------------------------------------------------------------

_cache: dict[tuple[str, str], Instruction] = {}


def _build(architecture: str, name: str, entry: catalog.Entry, variables: dict[str, str]) -> Instruction:
    key = (architecture, name)
    if key not in _cache:
        _cache[key] = _build_uncached(architecture, name, entry, variables)
    return _cache[key]


def _build_uncached(architecture: str, name: str, entry: catalog.Entry, variables: dict[str, str]) -> Instruction:
    family = entry.family
    m, n, k = catalog.shape_of(variables, entry.section)
    formats = {operand: get_format(catalog.fill(text, variables)) for operand, text in family.formats.items()}
    scales = {name: fmt for name, fmt in formats.items() if name.startswith("scale")}
    operands = Operands(formats["a"], formats["b"], formats["c"], formats["d"], k // 2 if family.sparse else k, scales=scales)
    program = compile_program(catalog.fill(entry.program, variables), entry.section, operands)
    return Instruction(
        name,
        architecture,
        m,
        n,
        k,
        formats,
        program,
        _evidence(architecture, name, entry),
        _sass(entry, variables, formats, (m, n, k)),
        entry.emulated,
        None if entry.layout == "none" else entry.layout,
        family.sparse,
        int(catalog.fill(family.blocks, variables)),
        catalog.fill(family.scale_block, variables),
        family.name,
        family.source,
        variables,
    )


def _evidence(architecture: str, name: str, entry: catalog.Entry) -> Evidence:
    """Captured where vectors of exactly this instruction are committed, else what the architecture's file says."""
    captured = catalog.captures(architecture)
    if name not in captured.vectors:
        return Evidence(**entry.evidence)
    return Evidence(
        "captured", f"recorded on an {captured.device}; rule: {entry.evidence['source']}", captured.vectors[name], captured.device
    )


def _sass(
    entry: catalog.Entry, variables: dict[str, str], formats: dict[str, Format], shape: tuple[int, int, int]
) -> tuple[str, ...]:
    words = {key.upper(): formats[key].name.upper() for key in "abcd"}
    words["SAT"] = ".SAT" if variables.get("satfinite") else ""
    words["RND"] = {".rz": ".RZ", ".rm": ".RM", ".rp": ".RP"}.get(variables.get("rnd", ""), "")
    words["OPERATION"] = variables.get("operation", "").upper()
    words["ADD"] = "HADD2" if formats["d"].name == "f16" else "FADD"
    scale, vec = variables.get("scale", ""), variables.get("vec", "")
    words["SCALE"] = {"ue8m0": "E8", "ue4m3": "UE4M3"}.get(scale, "") + (".4X" if vec == "4" else "")
    words |= {"mnk": "".join(map(str, shape)), "mxnxk": "x".join(map(str, shape))}
    return tuple(template.format(**words) for template in entry.sass)


def _entry_sass(entry: catalog.Entry) -> set[str]:
    """The SASS mnemonics of an entry's variants that are spelt out one by one (not the sweeps over N)."""
    return {_sass_of(entry, variables)[0] for variables in entry.variants() if "n" not in variables and "cta" not in variables}


def _sass_of(entry: catalog.Entry, variables: dict[str, str]) -> tuple[str, ...]:
    operands = {name: get_format(catalog.fill(text, variables)) for name, text in entry.family.formats.items()}
    return _sass(entry, variables, operands, catalog.shape_of(variables, entry.section))


def _sass_key(name: str) -> str:
    return re.sub(r"(?<=\d)x(?=\d)", "", name.upper().replace("X", "x"))


def _by_sass(architecture: str, name: str) -> list[str]:
    """Names of the instructions that become the one SASS mnemonic `name`, the plainest spelling of each only."""
    wanted, found = _sass_key(name), []
    for full, (entry, variables) in catalog.get_architecture(architecture).names().items():
        plain = (
            variables.get("rnd", "") != ".rn"
            and variables.get("sp") != "mma.sp"
            and variables.get("a_layout", "row") == "row"
            and variables.get("b_layout", "col") == "col"
            and entry.family.layout != "wmma"
            and not entry.emulated
        )
        single = plain and len(entry.sass) == 1 and "n" not in variables and "cta" not in variables
        if single and _sass_key(_sass_of(entry, variables)[0]) == wanted:
            found.append(full)
    return found


def instruction(architecture: str, name: str) -> Instruction:
    """Returns the instruction of that PTX, SASS or AMD name on `architecture`.

    Raises:
        UnknownNameError: no such architecture or instruction (the message names near ones), or a SASS name that
            stands for several instructions.
    """
    cached = _cache.get((architecture, name))
    if cached is not None:
        return cached
    names = catalog.get_architecture(architecture).names()
    listed = catalog.get_architecture(architecture).spelled(name)
    if listed is not None:
        return _build(architecture, listed, *names[listed])
    found = _by_sass(architecture, name)
    if len(found) == 1:
        return instruction(architecture, found[0])
    if found:
        raise UnknownNameError(f"'{name}' names {len(found)} instructions of {architecture}: {', '.join(found[:6])}")
    elsewhere = [other for other in catalog.architectures() if catalog.get_architecture(other).spelled(name)]
    known = known_names(architecture)
    hint = f" (it exists on {', '.join(elsewhere)})" if elsewhere else nearest(name, known)
    raise UnknownNameError(f"unknown instruction '{name}' on {architecture}{hint}")


def known_names(architecture: str) -> list[str]:
    """The full names of an architecture's instructions, then the SASS names that can stand for one."""
    found = catalog.get_architecture(architecture)
    native = (entry for entry in found.entries if len(entry.sass) == 1 and not entry.emulated)
    return [*found.names(), *(mnemonic for entry in native for mnemonic in _entry_sass(entry))]


def instructions(architecture: str) -> list[Instruction]:
    """Returns every instruction of an architecture, in the order of its spec."""
    return [_build(architecture, name, *found) for name, found in catalog.get_architecture(architecture).names().items()]
