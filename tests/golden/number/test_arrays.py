"""What callers may hand over: masked arrays, other dtypes and other classes
of arrays never become a wrong answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import golden
from golden.errors import DTypeError, MmagoldError, OperandError, ShapeError
from golden.identify.diagnosis import diagnose
from golden.identify.minimising import minimise
from golden.model.instruction import Instruction
from golden.number import arrays

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


def test_masks_are_refused_outside_the_instruction() -> None:
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
        match=r"'scale_c' is no operand, expected a, b, c, .*, mode, clear, load; nearest: scale_",
    ):
        minimise(SCALED, operands | {"scale_c": operands["scale_a"]}, lambda _: np.array([True]))


def test_more_dimensions_than_numpy_has_are_refused() -> None:
    one = {name: codes[0] for name, codes in dots(HMMA).items()}
    deep = one["a"].reshape(*(1,) * 63, -1)
    with pytest.raises(ShapeError, match="argument 'a' has 64 dimensions"):
        HMMA.dot(**one | {"a": deep})


# Arrays of ml_dtypes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bf16", "e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1", "ue8m0"]
)
def test_the_type_of_ml_dtypes_that_is_the_format_holds_its_codes(name: str) -> None:
    """Every code, by the array's own bytes: what ml_dtypes calls the value is what the format decodes."""
    fmt = golden.get_format(name)
    raw = np.arange(1 << fmt.bits, dtype=fmt.dtype)
    native = np.dtype(getattr(ml_dtypes, str(fmt.library_name)))
    numbers = raw.view(native)
    assert np.array_equal(arrays.codes(numbers, fmt, "a"), raw)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = numbers.astype(np.float64)
    assert np.array_equal(golden.to_float(fmt, numbers), values, equal_nan=True)


def test_a_unit_takes_them_and_answers_raw_codes() -> None:
    rng = np.random.default_rng(5)
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    a, b = (rng.normal(size=(40, 16)).astype(ml_dtypes.bfloat16) for _ in "ab")
    c = rng.integers(0, 1 << 32, 40, np.uint32)
    assert np.array_equal(ins.dot(a, b, c), ins.dot(a.view(np.uint16), b.view(np.uint16), c))
    assert ins.dot(a, b, c).dtype == np.uint32


@pytest.mark.parametrize(
    ("unit", "dtype", "reported"),
    [
        (
            "f16.f16",
            np.float16,
            r"'a' has dtype float16, expected uint16 \(raw f16 bits\); raw codes: a\.view\(np\.uint16\)$",
        ),
        (
            "f16.f16",
            ml_dtypes.bfloat16,
            r"dtype bfloat16.*; golden\.from_float\('f16', a\) rounds numbers to it; raw codes: a\.view",
        ),
        ("bf16.bf16", np.float16, r"golden\.from_float\('bf16', a\) rounds numbers to it; raw codes: a\."),
        ("bf16.bf16", np.float32, r"dtype float32.*golden\.from_float\('bf16', a\) rounds numbers to it$"),
        ("f16.f16", np.int64, r"raw codes of another type: a\.astype\(np\.uint16\)"),
    ],
)
def test_what_to_do_with_numbers(unit: str, dtype: Any, reported: str) -> None:
    ins = golden.instruction("hopper", f"mma.sync.aligned.m16n8k16.row.col.f32.{unit}.f32")
    zeros = np.zeros(16, np.uint16)
    with pytest.raises(DTypeError, match=reported):
        ins.dot(np.ones(16, dtype), zeros, 0)


def test_types_that_are_not_quite_the_format_are_refused() -> None:
    """ue4m3 drops the bit that float8_e4m3fn has, and a unit's own bf16 may be anything."""
    with pytest.raises(DTypeError):
        arrays.codes(np.ones(3, ml_dtypes.float8_e4m3fn), golden.get_format("ue4m3"), "a")
    own = replace(golden.get_format("bf16"), bias=100)
    with pytest.raises(DTypeError):
        arrays.codes(np.ones(3, ml_dtypes.bfloat16), own, "a")
    other = np.ones(3, ml_dtypes.bfloat16).astype(np.dtype(ml_dtypes.bfloat16).newbyteorder(">"))
    with pytest.raises(DTypeError):
        arrays.codes(other, golden.get_format("bf16"), "a")


@pytest.mark.parametrize(("form", "dtype"), [("bf16.bf16", ml_dtypes.bfloat16), ("f16.f16", None)])
def test_a_small_product_takes_them_again_and_again(form: str, dtype: Any) -> None:
    """The second call of the same shapes goes a shorter way; codes between must not be taken for numbers."""
    ins = golden.instruction("hopper", f"mma.sync.aligned.m16n8k16.row.col.f32.{form}.f32")
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, 1 << 14, shape, np.uint16) for shape in ((16, 16), (16, 8))]
    given = [array.view(dtype) for array in codes] if dtype else [array.T.copy().T for array in codes]
    c = np.zeros((16, 8), np.uint32)
    expected = ins(np.stack([codes[0]] * 2), np.stack([codes[1]] * 2), c)[0]
    for operands in (given, codes, given, given):
        np.testing.assert_array_equal(ins(*operands, c), expected)
