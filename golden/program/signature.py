"""What a unit takes and gives: formats by operand, shapes, and the check of arrays that callers hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError, ShapeError, nearest
from golden.number.arrays import plain, viewed
from golden.number.formats import Format
from golden.number.rounding import encode_fraction
from golden.program.flags import flags_format
from golden.program.modes import Modes
from golden.program.program import ABSENT
from golden.program.state import CLEAR, CONTROLS, LOAD, before, held_or_given, without_products
from golden.registers.sparsity import Pattern

Bits = npt.NDArray[Any]
Operands = dict[str, Bits]
"""Arrays of codes by the operand's name."""
INPUTS = ("a", "b", "c", "metadata", "scale_a", "scale_b", "mode", "clear", "load")
"""What a dot product can take, in the order of the calls."""
SCALES = ("scale_a", "scale_b")
FIRST_COLUMNS = 0x4
"""The metadata nibble that selects the first elements, for every pattern."""


@dataclass(frozen=True, eq=False)
class Signature:
    """The operands and the result of a unit.

    `k` is the logical K; `pattern` the sparsity pattern of A, None where A is dense; `ordered_metadata`
    whether the two indices of a metadata nibble must ascend; `scale_block` the elements that share a scale.
    `m` and `n` are the shape of the matrix API, 1 for units that have none. `formats`: of a, b, c, d and of
    scales; where there are modes, in the first mode. `status` are the status flags of the result, the lowest
    bit first (golden/program/flags.py). `state`: whether c is what the unit holds (golden/program/state.py),
    and no operand but where it has a `load`; `alone`: which of clear and load leave out the products.
    `unread`: operands that it takes and never reads, where they stand for ones that another unit does not
    have.
    """

    name: str
    m: int
    n: int
    k: int
    formats: dict[str, Format]
    pattern: Pattern | None = None
    ordered_metadata: bool = True
    scale_block: int | None = None
    modes: Modes | None = None
    status: tuple[str, ...] = ()
    state: bool = False
    load: bool = False
    alone: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Which of b and c the unit does not have."""
        return tuple(name for name, fmt in ABSENT.items() if self.formats[name] == fmt)

    @cached_property
    def own_formats(self) -> dict[str, Format]:
        """The formats of the operands and of d, without what the unit does not have."""
        return {name: fmt for name, fmt in self.formats.items() if name not in self.absent}

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
    def flags_format(self) -> Format | None:
        """The format of the result `flags`; None where the unit has no status flags."""
        return flags_format(self.status)

    @property
    def results(self) -> dict[str, Format]:
        """The formats of what a dot product gives: d, and flags where there are any."""
        flags = {} if self.flags_format is None else {"flags": self.flags_format}
        return {"d": self.formats["d"], **flags}

    def code_format(self, name: str) -> Format:
        """The format of an operand's or a result's codes; metadata, modes and flags are plain integers."""
        if name == "flags" and self.flags_format is not None:
            return self.flags_format
        if name == "mode" and self.modes is not None:
            return self.modes.format
        if name in CONTROLS:
            return CLEAR if name == "clear" else LOAD
        return self.formats.get(name, _METADATA)

    def of_mode(self, code: int) -> Signature:
        """What the unit takes in one mode, without the operand `mode`."""
        return self._but(modes=None)

    def _but(self, **other: Any) -> Signature:
        return Signature(**{one.name: getattr(self, one.name) for one in fields(Signature)} | other)

    @property
    def stateless(self) -> Signature:
        """What one dot product takes: c is an operand, also where the unit holds it."""
        return self._but(state=False, load=False, alone=()) if self.state else self

    @property
    def restarts(self) -> int:
        """How a sequence begins again after a reset, for engines: 0: the unit holds nothing. 1: without its
        `clear`, since the unit holds zero then. 2: with zeros alone, since its products did not count."""
        return int(self.state) + int("clear" in self.alone)

    def resolve(self, operands: Mapping[str, Bits], d: Bits, held: int = 0) -> dict[str, Bits]:
        """The operands of `stateless` for the dot products that gave `d` (...): what the unit held as c, at
        first `held`.

        Give the results of a DUT, and it is what the DUT held: then each dot product can be judged alone.
        Operands that have their c already stay as they are.
        """
        if not self.state or "clear" not in operands:
            return dict(operands)
        rest = {name: codes for name, codes in operands.items() if name not in CONTROLS}
        c = held_or_given(operands, before(d, np.zeros_like(operands["clear"]), held))
        return rest | without_products(operands, self.alone) | {"c": c}

    def in_mode_of(self, operands: Mapping[str, Bits]) -> tuple[Signature, dict[str, Bits]]:
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
        return self.of_mode(int(mode)), rest

    def at_rest(self, name: str) -> int:
        """The code of an operand that does nothing: zero, a scale of one, the first columns."""
        if name == "metadata":
            return FIRST_COLUMNS
        return encode_fraction(self.formats[name], 1) if name in SCALES else 0

    @cached_property
    def _shapes(self) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        return self._operand_shapes(matrices=False), self._operand_shapes(matrices=True)

    def operand_shapes(self, matrices: bool) -> dict[str, tuple[int, ...]]:
        """Returns the trailing shape of every operand, of the matrix API or of `dot`."""
        return self._shapes[matrices]

    def _operand_shapes(self, matrices: bool) -> dict[str, tuple[int, ...]]:
        rows, columns = ((self.m,), (self.n,)) if matrices else ((), ())
        shapes = {"a": (*rows, self.stored_k), "b": (self.k, *columns), "c": (*rows, *columns)}
        without = (*self.absent, "c") if self.state and not self.load else self.absent
        shapes = {name: shape for name, shape in shapes.items() if name not in without}
        if self.pattern is not None:
            shapes["metadata"] = (*rows, self.k // self.pattern.chunk)
        if self.scale_block is not None:
            shapes |= {
                "scale_a": (*rows, self.k // self.scale_block),
                "scale_b": (self.k // self.scale_block, *columns),
            }
        if self.modes is not None:
            shapes["mode"] = ()
        if self.load:
            shapes["load"] = ()
        if self.state:
            shapes["clear"] = ()
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

    def batch_of(self, operands: Mapping[str, Bits], matrices: bool = False) -> tuple[int, ...]:
        """The leading dimensions of checked operands of `dot`, or of whole matrices, broadcast.

        Raises:
            ShapeError: they do not broadcast.
        """
        shapes = self._shapes[matrices]
        return broadcast(
            {name: codes.shape[: codes.ndim - len(shapes[name])] for name, codes in operands.items()}
        )

    def in_batches(
        self, operands: Mapping[str, Bits], answer: Callable[[dict[str, Bits]], npt.ArrayLike]
    ) -> Bits:
        """The results (...) of something that answers batches (n, ...) of checked operands of `dot`.

        Raises:
            ShapeError: leading dimensions do not broadcast. OperandError: it gives another number of results,
                or codes that d does not have.
        """
        shapes, fmt = self._shapes[False], self.formats["d"]
        batch = self.batch_of(operands)
        count = int(np.prod(batch))
        flat = {
            name: np.broadcast_to(codes, (*batch, *shapes[name])).reshape(count, *shapes[name])
            for name, codes in operands.items()
        }
        found = plain(answer(flat), "d")
        if found.shape != (count,):
            raise OperandError(f"{self.name} gave results of shape {found.shape}, expected ({count},)")
        codes = _as_codes(found.tolist(), fmt, "d") if found.dtype != fmt.dtype else found
        fmt.check(codes, "d")
        return codes.reshape(batch)

    def check_dot(self, *given: npt.ArrayLike | None) -> dict[str, Bits]:
        """Checks the operands of `dot`; see `check_operands`."""
        return self.check_operands(given, matrices=False)

    def check_named(
        self, operands: Mapping[str, npt.ArrayLike | None], matrices: bool = False
    ) -> dict[str, Bits]:
        """Checks the operands of `dot`, or of whole tiles, given by their names; None: not given."""
        unknown = next((name for name in operands if name not in INPUTS), None)
        if unknown is not None:
            raise ShapeError(
                f"argument '{unknown}' is no operand, expected {', '.join(INPUTS)}{nearest(unknown, INPUTS)}"
            )
        return self.check_operands([operands.get(name) for name in INPUTS], matrices)

    def check_operands(self, given: Sequence[npt.ArrayLike | None], matrices: bool) -> dict[str, Bits]:
        """Checks presence, dtype, trailing shape and codes of (a, b, c, metadata, scale_a, scale_b, mode,
        clear, load); returns the arrays."""
        shapes = self._shapes[matrices]
        checked: dict[str, Bits] = {}
        for name, value in zip_longest(INPUTS, given):
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
        if array.dtype != fmt.dtype:
            array = viewed(array, fmt)
        trailing = array.shape[array.ndim - len(shape) :] if array.ndim >= len(shape) else None
        if trailing != shape:
            raise ShapeError(
                f"argument '{name}' has shape {array.shape}, expected (..., {_shape_text(shape)}) for "
                f"{self.name}"
            )
        # Leading dimensions: NumPy has 64, and the results have two more.
        most_batch = 62
        if array.ndim - len(shape) > most_batch:
            raise ShapeError(
                f"argument '{name}' has {array.ndim} dimensions, expected at most {most_batch + len(shape)}"
            )
        if array.dtype != fmt.dtype or fmt.bits < fmt.storage:
            fmt.check(array, name)
        if name == "metadata" and self.pattern is not None:
            self.pattern.check(array, self.ordered_metadata)
        if name == "mode" and self.modes is not None:
            self.modes.check(array)
        return array


def broadcast(leading: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The batch that the operands' leading dimensions give; raises ShapeError where they give none."""
    try:
        return np.broadcast_shapes(*leading.values())
    except ValueError:
        named = ", ".join(f"{name} {shape}" for name, shape in leading.items())
        raise ShapeError(f"leading dimensions do not broadcast: {named}") from None


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
