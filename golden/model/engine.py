"""The fast model: the C core in golden/core, called through ctypes with NumPy buffers.

`Engine` lowers a compiled program (golden/program/program.py) to the plain structs of golden/core/mmagold.h,
once, and then hands strided arrays to `mg_run`. Programs whose every operation has a fast form take it; all
others run on the general interpreter. golden/model/core_library.py loads it and reads the variables that
steer it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from golden.errors import CoreError, DTypeError, OperandError, ShapeError
from golden.model import core_library
from golden.model.doubles import fits_doubles
from golden.model.kernels import select_kernels
from golden.model.layout import FormatStruct, StepStruct, lower_format, lower_steps, number
from golden.program.flags import codes_by_mask
from golden.program.keys import OPERATION, ROUNDING, ZERO_RULE
from golden.program.program import NO_SEED, Operation
from golden.program.signature import broadcast

if TYPE_CHECKING:
    from golden.number.formats import Format
    from golden.program.program import Program
    from golden.program.signature import Signature

Bits = npt.NDArray[Any]
_MAX_BATCH_DIMS = 16  # leading dimensions: MG_MAX_BATCH_DIMS of golden/core/mmagold.h
_i32, _i64, _u64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64

_KINDS = "fda", "gdfs", "fdrda", "fma", "integer", "add", "ieee", "exact"
FAST = {name: number for number, name in enumerate(_KINDS, 1)}
SPARSITY = {None: 0, "2:4": 1, "1:2": 2, "4:8 pairs": 3}


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class _Operation(ctypes.Structure):
    _fields_ = [
        ("steps", ctypes.POINTER(StepStruct)),
        ("k_index", ctypes.POINTER(_i32)),
        *_fields(_i32, "step_count k_count seed addend_count"),
        ("addends", _i32 * 4),
        ("has_operand_format", _i32),
        *_fields(FormatStruct, "operand_format seed_format out_format"),
        *_fields(
            _i32,
            "fast fraction_bits product_fraction floor result_fraction_bits chunk group dot_fraction_bits "
            "sum_fraction_bits window product_overflow rounding zero_rule combine saturate scale_block",
        ),
        ("nan", _u64),
    ]


class _Table(ctypes.Structure):
    _fields_ = [
        ("value", ctypes.c_float * 256),
        ("significand", ctypes.c_float * 256),
        ("exponent", _i32 * 256),
        ("looked_up", _i32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [
        ("operations", ctypes.POINTER(_Operation)),
        *_fields(_i32, "operation_count k logical_k sparsity scale_block"),
        *_fields(FormatStruct, "a b c d scale_a scale_b"),
        *_fields(_i32, "all_fast in_doubles"),
        *_fields(ctypes.POINTER(_Table), "table_a table_b table_scale_a table_scale_b"),
    ]


class _Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("batch_stride", _i64 * _MAX_BATCH_DIMS),
        ("row", _i64),
        ("column", _i64),
    ]


class _Call(ctypes.Structure):
    _fields_ = [
        *_fields(_i32, "batch_dims m n threads force_general"),
        ("batch_shape", _i64 * _MAX_BATCH_DIMS),
        *_fields(_Array, "a b c d e scale_a scale_b flags"),
    ]


STRUCTS = {
    "mg_format": FormatStruct,
    "mg_step": StepStruct,
    "mg_operation": _Operation,
    "mg_program": _Program,
    "mg_call": _Call,
    "mg_array": _Array,
}
"""The structs of golden/core/mmagold.h that a caller fills."""
_SIZED = ("mg_format", "mg_step", "mg_operation", "mg_program", "mg_call")
"""The structs whose sizes mg_struct_sizes gives, in its order."""


class _Ready(NamedTuple):
    """A call for one small matrix product, with room for its operands and its result: to copy them there
    takes a quarter of the time of asking NumPy for their addresses."""

    call: _Call
    reference: Any
    rooms: list[Bits]
    """For the operands, each with the dtype that the caller's has: one of ml_dtypes, too."""
    d: Bits


_MOST_READY = 32
"""Calls that an engine keeps for operands that come again."""


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Loads the core; raises CoreError when it is missing or was built from other sources."""
    core, path = core_library.load()
    sizes = (_i64 * len(_SIZED))()
    core.mg_struct_sizes(sizes)
    expected = [ctypes.sizeof(STRUCTS[name]) for name in _SIZED]
    if list(sizes) != expected:
        raise CoreError(
            f"{path}: the C core has another layout of its structs (sizes {list(sizes)}, expected {expected})"
        )
    core.mg_run.argtypes = [ctypes.POINTER(_Program), ctypes.POINTER(_Call)]
    core.mg_observe_layout.argtypes = [ctypes.POINTER(_Program), ctypes.c_void_p, _i32]
    core.mg_observe.argtypes = [ctypes.POINTER(_Program), ctypes.POINTER(_Call), ctypes.c_void_p, _i32]
    core.mg_decode_codes.argtypes = [ctypes.POINTER(FormatStruct), ctypes.c_void_p, _i64, ctypes.c_void_p]
    return core


def simd() -> str:
    """The instruction set in use: "avx512", "avx2" or "portable"."""
    core_library.check_simd(library())
    return str(library().mg_simd().decode())


# Lowering ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _unit(products: tuple[int, int, int, int], formats: tuple[tuple[str, Format], ...]) -> bytes:
    """A program of which all is set that is the unit's; `products`: how many a dot product stores and stands
    for, how many share a scale, and the sparsity."""
    stored, logical, block, sparsity = products
    program = _Program(k=stored, logical_k=logical, scale_block=block, sparsity=sparsity)
    for name, fmt in formats:
        setattr(program, name, lower_format(fmt))
    return bytes(program)


@lru_cache(maxsize=256)
def _formats_of(operands: Format | None, seed: Format, out: Format) -> bytes:
    """An operation of which the formats alone are set."""
    low = _Operation(
        has_operand_format=operands is not None, seed_format=lower_format(seed), out_format=lower_format(out)
    )
    if operands is not None:
        low.operand_format = lower_format(operands)
    return bytes(low)


@lru_cache(maxsize=256)
def _lower_places(k_index: tuple[int, ...]) -> ctypes.Array[ctypes.c_int32]:
    return (_i32 * max(len(k_index), 1))(*k_index)


def _lower_operation(
    operation: Operation, results: dict[str, int], fast: dict[str, Any] | None
) -> _Operation:
    low = _Operation.from_buffer_copy(_formats_of(*operation.formats))
    low.steps, low.step_count = lower_steps(operation.steps), len(operation.steps)
    low.k_index, low.k_count = _lower_places(operation.k_index), len(operation.k_index)
    low.seed, low.addend_count = results[operation.seed], len(operation.addends)
    for place, name in enumerate(operation.addends):
        low.addends[place] = results[name]
    words = {"rounding": ROUNDING, "zero_rule": ZERO_RULE, "combine": OPERATION}
    for name, value in (fast or {}).items():
        if name == "fast":
            low.fast = FAST[value]
        else:
            setattr(low, name, number(words[name], value) if name in words else value)
    return low


def core_path(program: Program, signature: Signature) -> str:
    """The way of a program through the core, as docs/core.md names it; the core itself is not loaded."""
    kernels = select_kernels(program.operations, signature)
    if kernels is not None:
        return "fast form: " + " and ".join(sorted({kernel["fast"] for kernel in kernels}))
    doubles = fits_doubles(program.operations, signature)
    return "blocks of doubles" if doubles else "blocks of integers, or the interpreter"


class Engine:
    """One program for operands of a signature, loaded into the C core."""

    def __init__(self, program: Program, signature: Signature) -> None:
        if signature.modes is not None:
            raise CoreError(f"{signature.name}: a unit with modes has a program for each of them")
        if signature.state:
            raise CoreError(f"{signature.name}: a unit that keeps its accumulator computes in order of time")
        self.program, self.signature = program, signature
        self.core = library()
        kernels = select_kernels(program.operations, signature)
        self.in_doubles = fits_doubles(program.operations, signature)
        self._program = self.lower(kernels)
        self._tables: list[Any] = []
        if kernels is not None:
            self._attach_tables()
        self.fast = kernels is not None
        self._ready: dict[Hashable, _Ready] = {}
        self._laid: dict[Hashable, tuple[tuple[int, ...], _Call]] = {}
        self._reference = ctypes.byref(self._program)

    def lower(self, kernels: list[dict[str, Any]] | None) -> _Program:
        """The program as the core's structs: with the parameters of the fast form; None: without a
        fast form, so that the core runs it in blocks of lanes, or in the interpreter."""
        operations = self.program.operations
        results = {"c": 0, "zero": 1, NO_SEED: 1} | {
            operation.to: 2 + i for i, operation in enumerate(operations)
        }
        if max(len(operation.addends) for operation in operations) > 4:
            raise CoreError(f"{self.signature.name}: an operation adds more than four earlier results")
        lowered = (_Operation * len(operations))(
            *(
                _lower_operation(operation, results, kernels[i] if kernels else None)
                for i, operation in enumerate(operations)
            )
        )
        unit, pattern = self.signature, self.signature.pattern
        block = unit.scale_block * unit.stored_k // unit.k if unit.scale_block else 0
        products = unit.stored_k, unit.k, block, SPARSITY[pattern.name if pattern else None]
        program = _Program.from_buffer_copy(_unit(products, tuple(unit.formats.items())))
        program.operation_count, program.operations = len(operations), lowered
        program.all_fast, program.in_doubles = kernels is not None, self.in_doubles
        return program

    def _attach_tables(self) -> None:
        """Decoded codes of the 8-bit storage formats, as the fast form reads them."""
        target = next(
            (
                operation.operand_format
                for operation in self.program.operations
                if operation.operand_format and operation.k_index
            ),
            None,
        )
        for name, fmt in self.signature.formats.items():
            if name in ("c", "d") or fmt.storage != 8:
                continue
            table = _Table()
            low_target = ctypes.byref(lower_format(target)) if target and name in ("a", "b") else None
            self.core.mg_build_table(ctypes.byref(lower_format(fmt)), low_target, ctypes.byref(table))
            self._tables.append(table)
            setattr(self._program, f"table_{name}", ctypes.pointer(table))

    def matrices(self, *operands: npt.ArrayLike | None, general: bool = False) -> Bits:
        """D for (a, b, c, metadata, scale_a, scale_b, mode) of the matrix API; see Instruction.__call__."""
        key, given = self._layout(operands, general), [array for array in operands if array is not None]
        ready = self._ready.pop(key, None)  # nobody else has it until it is put back
        if ready is None:
            checked = self.signature.check_operands(operands, matrices=True)
            one_product = key is not None and all(array.ndim == 2 for array in checked.values())
            # Bytes of operands up to which a call is kept ready.
            small = 1 << 14
            if not one_product or sum(array.nbytes for array in checked.values()) > small:
                return self.compute(checked, True, general)
            ready = self._prepare(checked, given, general)
        if self.core.mg_objects():
            self._threads()
        for room, array in zip(ready.rooms, given, strict=True):
            room[...] = array
        if self.core.mg_run(self._reference, ready.reference):
            raise CoreError("the C core ran out of memory")
        result = ready.d.copy()
        if len(self._ready) < _MOST_READY:
            self._ready[key] = ready
        return result

    def _layout(self, operands: Sequence[npt.ArrayLike | None], general: bool) -> Hashable:
        """What decides whether operands are sound; None where their codes do, too."""
        if not self._any_code:
            return None
        key: list[Hashable] = [general]
        for array in operands:
            if type(array) is np.ndarray:
                key += array.dtype, array.shape
            elif array is None:
                key.append(None)
            else:
                return None
        return tuple(key)

    @cached_property
    def _any_code(self) -> bool:
        """Whether operands of the right shapes and dtypes are sound, whatever their codes."""
        unit = self.signature
        return (
            unit.pattern is None
            and not unit.absent
            and all(f.bits == f.storage for f in unit.formats.values())
        )

    def dots(self, *operands: npt.ArrayLike | None, general: bool = False) -> Bits:
        """d for the operands of Instruction.dot. `general` forces the general interpreter (the tests
        compare)."""
        return self.compute(self.signature.check_operands(operands, matrices=False), False, general)

    def tiles(self, operands: dict[str, Bits], m: int, n: int) -> Bits:
        """D (..., m, n) of matrices of any m and n, whatever the unit's own are: a dot product knows neither.

        Args:
            operands: checked, as for `matrices`, with rows and columns m and n. Leading dimensions broadcast.

        Raises:
            CoreError: an operand of the unit is missing.
        """
        wanted = self.signature.operand_shapes(True)
        if missing := wanted.keys() - operands.keys():
            raise CoreError(f"the core was given no {' and no '.join(sorted(missing))}")
        return self._run(operands, m, n, False, None)

    def compute(
        self, checked: dict[str, Bits], matrices: bool, general: bool = False, out: Bits | None = None
    ) -> Bits:
        """D or d for operands that were checked; `out`: see `check_out`."""
        return self._compute(checked, matrices, general, None, out)

    def results(self, checked: dict[str, Bits], matrices: bool) -> dict[str, Bits]:
        """D or d and, where the unit has status flags, their codes of the same shape; the operands were
        checked."""
        if not self.signature.status:
            return {"d": self.compute(checked, matrices)}
        masks: list[Bits] = []
        d = self._compute(checked, matrices, True, masks)
        return {"d": d, "flags": np.array(codes_by_mask(self.signature.status), np.uint8)[masks[0]]}

    def _compute(
        self,
        checked: dict[str, Bits],
        matrices: bool,
        general: bool,
        masks: list[Bits] | None,
        out: Bits | None = None,
    ) -> Bits:
        """D or d; `masks`: takes an array of the status flags that each result raises, as the core writes
        them."""
        checked = self.signature.complete(checked, matrices)
        if matrices:
            return self._run(checked, self.signature.m, self.signature.n, general, masks, out)
        views = {name: array[_AS_MATRIX[name]] for name, array in checked.items()}
        room = None if out is None else out[..., None, None]
        d = self._run(views, 1, 1, general, masks, room)[..., 0, 0]
        if masks is not None:
            masks[:] = [masks[0][..., 0, 0]]
        return d

    def _run(
        self,
        operands: dict[str, Bits],
        m: int,
        n: int,
        general: bool,
        masks: list[Bits] | None,
        out: Bits | None = None,
    ) -> Bits:
        key = (m, n, *((name, array.shape, array.strides) for name, array in operands.items()))
        if masks is None and out is None and (laid := self._laid.get(key)) is not None:
            return self._run_again(operands, *laid, general)
        shapes = [array.shape[:-2] for array in operands.values()]
        same = all(shape == shapes[0] for shape in shapes)
        batch = shapes[0] if same else broadcast(dict(zip(operands, shapes, strict=True)))
        threads = self._threads()
        result = self.empty((*batch, m, n)) if out is None else out
        raised = {} if masks is None else {"flags": np.empty(result.shape, np.uint8)}
        if masks is not None:
            masks[:] = [raised["flags"]]
        if result.size == 0:
            return result
        call = _Call(m=m, n=n, threads=threads, force_general=general)
        arrays = {**operands, "d": result, **raised}
        views = _collapse(arrays, batch)
        if views is None:
            return self._run(
                {
                    name: np.ascontiguousarray(np.broadcast_to(array, (*batch, *array.shape[-2:])))
                    for name, array in operands.items()
                },
                m,
                n,
                general,
                masks,
                out,
            )
        _lay_out(call, arrays, *views)
        if masks is None and out is None and len(self._laid) < _MOST_READY:
            self._laid[key] = result.shape, _Call.from_buffer_copy(call)
        if self.core.mg_run(self._reference, ctypes.byref(call)):
            raise CoreError("the C core ran out of memory")
        return result

    def _run_again(
        self, operands: dict[str, Bits], shape: tuple[int, ...], laid: _Call, general: bool
    ) -> Bits:
        """The results (shape) of operands that lie as those of a call before, but elsewhere: to find out how
        costs as much as some thousand dot products."""
        result = self.empty(shape)
        call = _Call.from_buffer_copy(laid)
        call.threads, call.force_general = self._threads(), general
        for name, array in (*operands.items(), ("d", result)):
            getattr(call, _member(name)).data = array.__array_interface__["data"][0]
        if self.core.mg_run(self._reference, ctypes.byref(call)):
            raise CoreError("the C core ran out of memory")
        return result

    def observe(self, operands: Mapping[str, Bits], records: Bits) -> Bits:
        """d (count,) of dot products, and every number behind them; see golden/model/registers.py.

        Args:
            operands: as `dots` takes them, checked, with one leading dimension (count,).
            records: (records of the program, count), C-contiguous, of the core's numbers; it is written.
        """
        result = self.empty((len(operands["c"]), 1, 1))
        views = {name: array[_AS_MATRIX[name]] for name, array in operands.items()} | {"d": result}
        call = _Call(m=1, n=1, threads=self._threads(), force_general=True)
        _lay_out(call, views, [len(result)], {name: [array.strides[0]] for name, array in views.items()})
        status = self.core.mg_observe(self._reference, ctypes.byref(call), records.ctypes.data, len(records))
        if status:
            what = "ran out of memory" if status == -1 else "made other records of this program than it said"
            raise CoreError(f"the C core {what}")
        return result[:, 0, 0]

    def record_layout(self) -> npt.NDArray[np.int32]:
        """What each record of an observed dot product is, (records, 5): the fields of struct mg_record."""
        count = self.core.mg_observe_layout(self._reference, None, 0)
        layout = np.empty((max(count, 0), 5), np.int32)
        if count < 0 or self.core.mg_observe_layout(self._reference, layout.ctypes.data, count) != count:
            raise CoreError("the C core ran out of memory")
        return layout

    def _threads(self) -> int:
        """What the environment asks for, checked at every call: a process may set it at any time."""
        core_library.check_simd(self.core)
        return core_library.threads()

    def empty(self, shape: tuple[int, ...]) -> Bits:
        """Room for results; raises ShapeError where there is none."""
        dtype = self.signature.formats["d"].dtype
        try:
            return np.empty(shape, dtype)
        except (MemoryError, ValueError):  # ValueError: more bytes than an address has
            raise ShapeError(
                f"the results have shape {shape} of {dtype}, more than fits into memory"
            ) from None

    def _prepare(self, operands: dict[str, Bits], given: list[Any], general: bool) -> _Ready:
        """The call for one matrix product of operands of these shapes and dtypes: no batch to lay out, which
        keeps a small call quick."""
        rooms = {name: np.empty(array.shape, array.dtype) for name, array in operands.items()}
        d = self.empty((self.signature.m, self.signature.n))
        call = _Call(m=self.signature.m, n=self.signature.n, threads=1, force_general=general)
        _lay_out(call, rooms | {"d": d}, [1], {name: [0] for name in (*rooms, "d")})
        as_given = [room.view(array.dtype) for room, array in zip(rooms.values(), given, strict=True)]
        return _Ready(call, ctypes.byref(call), as_given, d)


def check_out(signature: Signature, checked: Mapping[str, Bits], matrices: bool, out: Any) -> Bits:
    """Returns `out`, the caller's room for D or d, if it has the shape and the dtype of the results, can be
    written, and shares no memory with an operand.

    Raises:
        ShapeError, DTypeError, OperandError: it is none.
    """
    wanted = (*signature.batch_of(dict(checked), matrices), *((signature.m, signature.n) if matrices else ()))
    dtype = signature.formats["d"].dtype
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        raise DTypeError(f"argument 'out' is {getattr(out, 'dtype', type(out).__name__)}, expected {dtype}")
    if out.shape != wanted:
        raise ShapeError(f"argument 'out' has shape {out.shape}, expected {wanted}")
    repeated = any(size > 1 and not stride for size, stride in zip(out.shape, out.strides, strict=True))
    if (repeated and out.size) or not out.flags.writeable:
        raise OperandError("argument 'out' is read-only or has two elements in one place, expected an array")
    for name, array in checked.items():
        if np.may_share_memory(out, array):
            raise OperandError(f"argument 'out' shares memory with operand '{name}', expected its own")
    return out


_AS_MATRIX: dict[str, Any] = {
    "a": (..., None, slice(None)),
    "b": (..., None),
    "c": (..., None, None),
    "metadata": (..., None, slice(None)),
    "scale_a": (..., None, slice(None)),
    "scale_b": (..., None),
}


def _member(name: str) -> str:
    """Of _Call, that of an operand or a result."""
    return "e" if name == "metadata" else name


def _lay_out(
    call: _Call, arrays: Mapping[str, Bits], shape: list[int], strides: dict[str, list[int]]
) -> None:
    """Says in `call` where the operands and the results lie: (batch, rows, columns) each, and their batch
    strides."""
    call.batch_dims, call.batch_shape = len(shape), (_i64 * _MAX_BATCH_DIMS)(*shape)
    for name, array in arrays.items():
        low: _Array = getattr(call, _member(name))
        low.data = array.__array_interface__["data"][0]
        low.batch_stride = (_i64 * _MAX_BATCH_DIMS)(*strides[name])
        low.row, low.column = array.strides[-2:]


def _collapse(
    arrays: dict[str, Bits], batch: tuple[int, ...]
) -> tuple[list[int], dict[str, list[int]]] | None:
    """Batch shape and strides with neighbouring dimensions merged where every array allows; None if too
    many remain."""
    strides = {name: _batch_strides(array, batch) for name, array in arrays.items()}
    if len(batch) <= 1:
        return list(batch) or [1], {name: own or [0] for name, own in strides.items()}
    shape: list[int] = []
    merged: dict[str, list[int]] = {name: [] for name in arrays}
    for dim in range(len(batch) - 1, -1, -1):
        if batch[dim] == 1:
            continue
        if shape and all(own[dim] == merged[name][0] * shape[0] for name, own in strides.items()):
            shape[0] *= batch[dim]
            continue
        shape.insert(0, batch[dim])
        for name, own in strides.items():
            merged[name].insert(0, own[dim])
    if not shape:
        return [1], {name: [0] for name in arrays}
    return (shape, merged) if len(shape) <= _MAX_BATCH_DIMS else None


def _batch_strides(array: Bits, batch: Sequence[int]) -> list[int]:
    missing = len(batch) - (array.ndim - 2)
    own = zip(array.shape[:-2], array.strides[:-2], strict=True)
    return [0] * missing + [0 if size == 1 else stride for size, stride in own]
