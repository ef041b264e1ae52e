"""Units with modes, and units that keep their accumulator, on the C core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import ShapeError
from golden.model.engine import Engine
from golden.program.signature import broadcast
from golden.program.state import CONTROLS, held_or_given, places, without_products

if TYPE_CHECKING:
    from golden.program.program import Program
    from golden.program.signature import Signature

Bits = npt.NDArray[Any]


class ModeEngine:
    """Has the calls of an `Engine`: every dot product goes to the engine of its mode, loaded when the mode
    first comes."""

    def __init__(self, signature: Signature, programs: Mapping[int, tuple[Program, Signature]]) -> None:
        self.signature, self.programs = signature, programs
        self.engines: dict[int, Engine] = {}

    def matrices(self, *operands: npt.ArrayLike | None, general: bool = False) -> Bits:
        """As Engine.matrices: one mode for each product of matrices."""
        return self.compute(self.signature.check_operands(operands, matrices=True), True, general)

    def dots(self, *operands: npt.ArrayLike | None, general: bool = False) -> Bits:
        """As Engine.dots: one mode for each dot product."""
        return self.compute(self.signature.check_operands(operands, matrices=False), False, general)

    def compute(self, checked: dict[str, Bits], matrices: bool, general: bool = False) -> Bits:
        """D or d for operands that were checked."""
        return self._spread(
            checked, matrices, lambda engine, part: {"d": engine.compute(part, matrices, general)}
        )["d"]

    def results(self, checked: dict[str, Bits], matrices: bool) -> dict[str, Bits]:
        """As Engine.results."""
        return self._spread(checked, matrices, lambda engine, part: engine.results(part, matrices))

    def _spread(
        self,
        checked: dict[str, Bits],
        matrices: bool,
        answer: Callable[[Engine, dict[str, Bits]], dict[str, Bits]],
    ) -> dict[str, Bits]:
        """What the engine of each mode answers for its dot products, at their places."""
        unit, mode = self.signature, checked["mode"]
        shapes = unit.operand_shapes(matrices)
        operands = {name: codes for name, codes in checked.items() if name != "mode"}
        leading = {name: codes.shape[: codes.ndim - len(shapes[name])] for name, codes in checked.items()}
        batch = broadcast(leading)
        first = self._engine(next(iter(self.programs)))
        shape = (*batch, *((unit.m, unit.n) if matrices else ()))
        results = {"d": first.empty(shape)}
        if unit.flags_format is not None:
            results["flags"] = np.empty(shape, unit.flags_format.dtype)
        spread = {name: np.broadcast_to(codes, (*batch, *shapes[name])) for name, codes in operands.items()}
        modes = np.broadcast_to(mode, batch)
        for code in np.unique(modes).tolist():
            engine, here = self._engine(code), modes == code
            whole = bool(here.all())
            part = operands if whole else {name: codes[here] for name, codes in spread.items()}
            for name, codes in answer(engine, part).items():
                results[name][... if whole else here] = codes
        return results

    def _engine(self, code: int) -> Engine:
        if code not in self.engines:
            self.engines[code] = Engine(*self.programs[code])
        return self.engines[code]


class SequenceEngine:
    """Has the calls of an `Engine`; dot products come in order of time, and `stateless` computes one with a
    given c.

    Dot products at one place after the start of their sequences are computed at once, so that many short
    sequences take about as long as independent dot products; one long sequence takes a call for each.
    """

    def __init__(self, signature: Signature, stateless: Engine | ModeEngine) -> None:
        self.signature, self.stateless = signature, stateless

    def matrices(self, *operands: npt.ArrayLike | None, general: bool = False) -> Bits:
        """Refuses: what order the elements of D come in, only the unit's owner knows."""
        raise ShapeError(
            f"{self.signature.name} keeps its accumulator and takes dot products one after the other: call "
            "dot(a, b, clear=...), or `stateless` with C for whole matrices"
        )

    def dots(self, *operands: npt.ArrayLike | None, general: bool = False) -> Bits:
        """As Engine.dots; the last leading axis is time."""
        return self.compute(self.signature.check_operands(operands, matrices=False), False, general)

    def compute(self, checked: dict[str, Bits], matrices: bool, general: bool = False, held: int = 0) -> Bits:
        """d for operands that were checked; a first dot product without `clear` starts from `held`."""
        shapes = self.signature.operand_shapes(matrices=False)
        batch = self.signature.batch_of(checked)
        clear = np.broadcast_to(checked["clear"], batch or (1,))
        count = clear.size
        flat = {
            name: np.broadcast_to(codes, (*batch, *shapes[name])).reshape(count, *shapes[name])
            for name, codes in checked.items()
            if name != "clear"
        } | {"clear": clear.reshape(count)}
        first = np.full(count, held, self.signature.formats["d"].dtype)
        return self._in_order(flat, places(clear).reshape(count), first, general).reshape(batch)

    def results(self, checked: dict[str, Bits], matrices: bool, held: int = 0) -> dict[str, Bits]:
        """As Engine.results, from `held` on."""
        if matrices:
            self.matrices()
        d = self.compute(checked, False, held=held)
        given = self.signature.resolve(checked, d, held)
        return {"d": d} if not self.signature.status else self.stateless.results(given, False)

    def _in_order(self, operands: dict[str, Bits], place: Bits, first: Bits, general: bool) -> Bits:
        """d (count,) of operands (count, ...) that lie at these places of their sequences, which follow one
        another without gaps; `first` is what the unit holds at place 0."""
        d = np.zeros(len(place), self.signature.formats["d"].dtype)
        order = np.argsort(place, kind="stable")
        for turn in np.split(order, np.cumsum(np.bincount(place))[:-1]) if len(order) else ():
            held = d[turn - 1] if place[turn[0]] else first[turn]
            given = {name: codes[turn] for name, codes in operands.items()}
            own = {name: codes for name, codes in given.items() if name not in CONTROLS}
            own |= without_products(given, self.signature.alone) | {"c": held_or_given(given, held)}
            d[turn] = self.stateless.compute(own, False, general)
        return d
