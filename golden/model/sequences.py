"""Units that keep their accumulator, on the C core: dot products in order of time.

Those at one place after the start of their sequences are computed at once, so that many short sequences take
about as long as dot products that know nothing of each other; one long sequence takes a call for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.errors import ShapeError
from golden.program.state import CONTROLS, held_or_given, places, without_products

if TYPE_CHECKING:
    from golden.model.dispatch import ModeEngine
    from golden.model.engine import Engine
    from golden.program.signature import Signature

Bits = npt.NDArray[Any]


class SequenceEngine:
    """Has the calls of an `Engine`; `stateless` computes one dot product with a given c."""

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
