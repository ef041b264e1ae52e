"""Results into the caller's memory: `out` of a call and of `dot`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from golden.errors import DTypeError, MmagoldError, OperandError, ShapeError
from golden.paths import spec_folder

HMMA = golden.instruction("hopper", "HMMA.16816.F32")


def operands(*batch: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shapes = {name: (*batch, *shape) for name, shape in HMMA.operand_shapes(matrices=True).items()}
    return {
        name: rng.integers(0, 1 << 16, shape).astype(HMMA.formats[name].dtype)
        for name, shape in shapes.items()
    }


@pytest.mark.parametrize("batch", [(), (1,), (7, 3), (3000,), (0,)])
def test_the_results_are_those_of_the_interpreter(batch: tuple[int, ...]) -> None:
    given = operands(*batch)
    wanted = HMMA.engine.matrices(*given.values(), general=True)
    for out in (
        np.empty((*batch, 16, 8), np.uint32),
        np.empty((*batch, 16, 16), np.uint32)[..., ::2],  # not side by side
        np.empty((*batch, 8, 16), np.uint32).swapaxes(-1, -2),
    ):
        out[...] = 0xDEADBEEF
        assert HMMA(**given, out=out) is out
        assert np.array_equal(out, wanted)


def test_dot_products_too() -> None:
    given = operands(5)
    a, b, c = given["a"][:, 0], given["b"][:, :, 0], given["c"][:, 0, 0]
    out = np.empty(5, np.uint32)
    assert HMMA.dot(a, b, c, out=out) is out
    assert np.array_equal(out, HMMA.dot(a, b, c))


def test_units_with_modes_and_units_that_keep_their_accumulator() -> None:
    for name in ("fma_modes", "accumulator"):
        unit = golden.load_instruction(spec_folder() / "examples" / f"{name}.yaml")
        shapes = unit.operand_shapes(matrices=False)
        given = {name: np.zeros((4, *shape), unit.code_format(name).dtype) for name, shape in shapes.items()}
        out = np.full(4, 1, unit.formats["d"].dtype)
        assert unit.dot(**given, out=out) is out
        assert np.array_equal(out, unit.dot(**given))


def read_only() -> Any:
    out = np.empty((2, 16, 8), np.uint32)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "error", "said"),
    [
        (np.empty((2, 8, 16), np.uint32), ShapeError, r"shape \(2, 8, 16\), expected \(2, 16, 8\)"),
        (np.empty((2, 16, 8), np.float32), DTypeError, "'out' is float32, expected uint32"),
        ([0], DTypeError, "'out' is list"),
        (read_only(), OperandError, "read-only"),
        (
            np.broadcast_to(np.uint32(0), (2, 16, 8)),
            OperandError,
            "read-only or has two elements in one place",
        ),
    ],
)
def test_what_cannot_take_them_is_refused(out: Any, error: type[MmagoldError], said: str) -> None:
    with pytest.raises(error, match=said):
        HMMA(**operands(2), out=out)


def test_memory_of_an_operand_is_refused() -> None:
    """Where c is read again, for a NaN, the results would already stand there."""
    given = operands(2)
    with pytest.raises(OperandError, match="shares memory with operand 'c'"):
        HMMA(**given, out=given["c"])
