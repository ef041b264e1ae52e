"""What callers may hand over: masked arrays, other dtypes and other classes
of arrays never become a wrong answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from golden.dissect.diagnosis import diagnose
from golden.dissect.minimising import minimise
from golden.errors import DTypeError, MmagoldError, OperandError, ShapeError
from golden.instruction import Instruction

HMMA = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
FP8 = golden.instruction("hopper", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
SCALED = golden.instruction(
    "rtx_blackwell",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
)
SPARSE = golden.instruction(
    "hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
)


def dots(ins: Instruction, count: int = 3) -> dict[str, Any]:
    return golden.stimuli.generate(ins, "narrow", count, np.random.default_rng(1))


def hidden(array: Any) -> Any:
    """The array with its first element masked."""
    masked = np.ma.masked_array(array, np.zeros(array.shape, bool))
    masked.mask.flat[0] = True
    return masked


@pytest.mark.parametrize("mask", [hidden, np.ma.masked_array])
@pytest.mark.parametrize("ins", [HMMA, SCALED, SPARSE], ids=["dense", "scaled", "sparse"])
def test_a_masked_operand_is_refused(ins: Instruction, mask: Any) -> None:
    operands = dots(ins)
    matrices = {
        name: np.zeros((2, *shape), operands[name].dtype)
        for name, shape in ins.operand_shapes(matrices=True).items()
    }
    for name, codes in operands.items():
        with pytest.raises(
            OperandError, match=f"^argument '{name}' is a masked array, expected every element: fill it first"
        ):
            ins.dot(**operands | {name: mask(codes)})
        with pytest.raises(OperandError, match=f"'{name}' is a masked array"):
            ins(**matrices | {name: mask(matrices[name])})
        with pytest.raises(OperandError, match=f"'{name}' is a masked array"):
            ins.reference_dot(
                **{key: mask(row[0]) if key == name else row[0] for key, row in operands.items()}
            )


def test_a_mask_inside_a_list_is_refused() -> None:
    operands = dots(HMMA)
    with pytest.raises(OperandError, match="'a' is a masked array"):
        HMMA.dot(**operands | {"a": [hidden(row) for row in operands["a"]]})
    with pytest.raises(OperandError, match="'c' is a masked array"):
        HMMA.dot(**operands | {"c": [1, np.ma.masked, 3]})


def test_masks_are_refused_beside_the_instruction() -> None:
    operands = dots(HMMA)
    d = HMMA.dot(**operands)
    fragment = HMMA.fragments
    assert fragment is not None
    calls = [
        lambda: golden.to_float("f16", hidden(operands["a"])),
        lambda: golden.from_float("f16", hidden(np.ones(3))),
        lambda: diagnose(HMMA, operands, hidden(d)),
        lambda: minimise(
            HMMA,
            {name: hidden(codes[0]) if name == "a" else codes[0] for name, codes in operands.items()},
            lambda _: [True],
        ),
        lambda: fragment.a.pack(hidden(np.zeros((16, 16), np.uint16))),
    ]
    for call in calls:
        with pytest.raises(OperandError, match="masked array"):
            call()


OTHERS: list[tuple[Any, type[MmagoldError]]] = [
    (np.ones((3, 32)), DTypeError),
    (np.ones((3, 32), np.float16), DTypeError),
    (np.ones((3, 32), bool), DTypeError),
    ([[True] * 32] * 3, DTypeError),
    ([[1.0] * 32] * 3, DTypeError),
    ([[-1] * 32] * 3, DTypeError),
    ([[256] * 32] * 3, DTypeError),
    (np.full((3, 32), -1, np.int8), DTypeError),
    (np.ones((3, 32), np.uint16), DTypeError),
    (np.ones((3, 32), ">u2"), DTypeError),
    (np.ones((3, 32), "datetime64[s]"), DTypeError),
    (np.ones((3, 32), complex), DTypeError),
    (np.ones((3, 31), np.uint8), ShapeError),
    (np.ones((3, 0), np.uint8), ShapeError),
    (np.ones(3, np.uint8), ShapeError),
    (np.ones((2, 32), np.uint8), ShapeError),
    (None, ShapeError),
]


@pytest.mark.parametrize(("value", "error"), OTHERS)
def test_other_arrays_are_refused(value: Any, error: type[MmagoldError]) -> None:
    with pytest.raises(error) as said:
        FP8.dot(**dots(FP8) | {"a": value})
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    "given",
    [
        np.array([0x3C00, 0.5]),
        np.array([-1, 1]),
        np.array([1 << 16]),
        np.array([1.0], np.float16),
        [1.5],
        "text",
        [[True]],
    ],
)
def test_codes_are_not_bent_to_fit(given: Any) -> None:
    """Each was once cast: 0.5 to the code 0, -1 to 0xFFFF."""
    with pytest.raises(DTypeError, match=r"argument 'codes' has dtype .*, expected uint16"):
        golden.to_float("f16", given)
    with pytest.raises(DTypeError, match=r"argument 'actual' has dtype .*, expected uint32"):
        diagnose(HMMA, dots(HMMA), np.array([1.0, 2.0, 3.0], np.float32))


def test_harmless_classes_of_arrays_are_arrays() -> None:
    """A matrix stays two-dimensional whatever is asked of it; its codes are as good as any."""
    rng = np.random.default_rng(1)
    operands = {
        name: rng.integers(
            0, 1 << 8 * np.dtype(HMMA.formats[name].dtype).itemsize, shape, HMMA.formats[name].dtype
        )
        for name, shape in HMMA.operand_shapes(matrices=True).items()
    }
    matrices = {name: codes.view(np.matrix) for name, codes in operands.items()}
    assert np.array_equal(HMMA(**matrices), HMMA(**operands)) and type(HMMA(**matrices)) is np.ndarray
    one = {name: codes[0] for name, codes in dots(HMMA).items()}
    assert HMMA.dot(**one | {"a": one["a"].view(np.recarray)}) == HMMA.dot(**one)


def test_operands_of_other_names_are_refused() -> None:
    operands = {name: codes[0] for name, codes in dots(SCALED).items()}
    with pytest.raises(
        ShapeError,
        match=r"'scale_c' is no operand, expected a, b, c, .*, mode, clear; nearest: scale_",
    ):
        minimise(SCALED, operands | {"scale_c": operands["scale_a"]}, lambda _: np.array([True]))


def test_more_dimensions_than_numpy_has_are_refused() -> None:
    one = {name: codes[0] for name, codes in dots(HMMA).items()}
    deep = one["a"].reshape(*(1,) * 63, -1)
    with pytest.raises(ShapeError, match="argument 'a' has 64 dimensions"):
        HMMA.dot(**one | {"a": deep})
