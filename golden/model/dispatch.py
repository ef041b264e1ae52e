"""Units with modes on the C core: every dot product goes to the program of its mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.model.engine import Engine
from golden.program.signature import broadcast

if TYPE_CHECKING:
    from golden.program.program import Program
    from golden.program.signature import Signature

Bits = npt.NDArray[Any]


class ModeEngine:
    """Has the calls of an `Engine`; holds one for each mode, loaded when the mode first comes."""

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
