"""Many programs on the same operands: what a search among programs asks of the core.

    trials = Trials(signature, operands)
    d = trials.answers(program)

An `Engine` prepares one program for any operands: it looks for its fast form and lays the operands of every
call out. Here the operands are laid out once, and a program is run as it is, in blocks or in the general
interpreter; in doubles where they hold its numbers and there are enough products to make up for the question.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from golden.errors import CoreError
from golden.model.doubles import fits_doubles
from golden.model.engine import _AS_MATRIX, Engine, _Call, _lay_out, library
from golden.program.program import Program
from golden.program.signature import Bits, Signature


class _Plain(Engine):
    """A program as the core's structs alone."""

    def __init__(self, program: Program, signature: Signature) -> None:
        self.program, self.signature = program, signature
        self.in_doubles, self.examined = False, False
        self.low = self.lower(None)

    def for_many(self) -> None:
        """In doubles from now on, where they hold its numbers."""
        if not self.examined:
            self.examined = True
            self.in_doubles = fits_doubles(self.program.operations, self.signature)
            self.low.in_doubles = self.in_doubles


_latest: list[_Plain] = []


def _prepared(program: Program, signature: Signature) -> _Plain:
    """The program as the core takes it; that of the last call where it is the same object: a search holds one
    candidate against a few questions first, and then against more."""
    last = _latest[0] if _latest else None
    if last is None or last.program is not program or last.signature is not signature:
        last = _Plain(program, signature)
        _latest[:] = [last]
    return last


class Trials:
    """Operands (n, ...) of dot products, as `dot` takes them, for any program with their formats.

    Raises:
        ShapeError, DTypeError, OperandError: as of `dot`.
    """

    def __init__(self, signature: Signature, operands: Mapping[str, Bits]) -> None:
        self.signature, self._core = signature, library()
        given = [operands.get(name) for name in ("a", "b", "c", "metadata", "scale_a", "scale_b")]
        checked = signature.complete(signature.check_operands(given, matrices=False), False)
        self._kept = {name: np.ascontiguousarray(array) for name, array in checked.items()}
        count = len(next(iter(self._kept.values())))
        self._d = np.empty((count, 1, 1), signature.formats["d"].dtype)
        views = {name: array[_AS_MATRIX[name]] for name, array in self._kept.items()} | {"d": self._d}
        self._call = _Call(m=1, n=1, threads=1, force_general=False)
        _lay_out(self._call, views, [count], {name: [array.strides[0]] for name, array in views.items()})

    def answers(self, program: Program) -> Bits:
        """d (n,); the array is written again by the next call.

        Raises:
            CoreError: no memory, or an operation adds more than four earlier results.
        """
        plain = _prepared(program, self.signature)
        # Products from which on it is worth asking whether doubles hold a program's numbers.
        many = 1 << 16
        if len(self._d) * self.signature.k >= many:
            plain.for_many()
        if len(self._d) and self._core.mg_run(ctypes.byref(plain.low), ctypes.byref(self._call)):
            raise CoreError("the C core ran out of memory")
        return self._d[:, 0, 0]
