"""Kernels in Triton's interpreter with Hopper's arithmetic. test_interpreter.py runs these tests in a process
of their own, because Triton reads TRITON_INTERPRET when it is imported."""

# mypy: ignore-errors
# Triton compiles the text of functions: their annotations are the language's.

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter as runtime

import golden
from golden.errors import OperandError, UnknownNameError
from golden.kernels.reductions import in_halves, in_turn
from golden.kernels.triton_dot import Dot, dot
from golden.tensors.dtypes import codes, tensor_of
from golden.tensors.operations import sum_of_quads
from mmagold.triton import emulate

F32, BF16, F16 = (golden.get_format(name) for name in ("f32", "bf16", "f16"))


@triton.jit
def one_dot(a, b, c, d, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    at = i[:, None] * N + j[None, :]
    x, y, z = (
        tl.load(a + i[:, None] * K + k[None, :]),
        tl.load(b + k[:, None] * N + j[None, :]),
        tl.load(c + at),
    )
    if HOW == "acc":
        r = tl.dot(x, y, z)
    elif HOW == "plus":
        r = tl.dot(x, y) + z
    elif HOW == "zeros":
        total = tl.zeros((M, N), tl.float32)
        z += 0.0
        total = tl.dot(x, y, total)
        r = total + z
    elif HOW == "narrow":
        r = tl.dot(x.to(y.dtype), y, z)
    elif HOW == "narrow after":
        r = tl.dot((x.to(tl.float32) * 2.0).to(y.dtype).trans().trans(), y, z)
    elif HOW == "joined":
        r = tl.dot(
            tl.reshape(tl.join(x, x), (M, 2 * K)),
            tl.reshape(tl.join(y.trans(), y.trans()), (N, 2 * K)).trans(),
            z,
        )
    elif HOW == "twice":
        s = tl.dot(x, y)
        r = s + z
        r = r * s
    elif HOW == "used before":
        s = tl.dot(x, y)
        r = s * 0.0 + (z + s)
    elif HOW == "two":
        r = tl.dot(x, y) + tl.dot(y, x)
    elif HOW == "sum":
        r = tl.broadcast_to(tl.sum(tl.abs(tl.dot(x, y, z)), 1)[:, None], (M, N))
    elif HOW == "sum of a product":
        r = tl.broadcast_to(tl.sum(tl.dot(x, y, z) * 2.0, 1)[:, None], (M, N))
    elif HOW == "sum of a load":
        r = tl.broadcast_to(tl.sum(z, 1)[:, None], (M, N))
    tl.store(d + at, r)


@triton.jit
def elementwise(x, y, z, d, N: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, N)
    a, b, c = tl.load(x + at), tl.load(y + at), tl.load(z + at)
    if HOW == "a*b+c":
        r = a * b + c
    elif HOW == "c-a*b":
        r = c - a * b
    elif HOW == "(a*b)[:,None]+c":
        r = tl.sum((a * b)[:, None] + c[:, None], 1)
    elif HOW == "a/b+c":
        r = a / b + c
    elif HOW == "product before a loop":
        p, r = a * b, c
        for _ in range(0, N // N):
            r = p + r
    elif HOW == "both in a loop":
        r = c
        for _ in tl.range(0, N // N):
            r = a * b + r
    elif HOW == "floor":
        r = tl.floor(a)
    elif HOW == "max":
        r = tl.maximum(a, b)
    elif HOW == "clamp":
        r = tl.clamp(a, -1.0, 2.0)
    elif HOW == "atomic":
        r = tl.atomic_add(z + at, a)
    elif HOW == "scan":
        r = tl.cumsum(a, 0)
    elif HOW == "log":
        r = tl.log(a)
    elif HOW == "log2":
        r = tl.log2(a)
    elif HOW == "exp2":
        r = tl.exp2(a)
    elif HOW == "exp":
        r = tl.exp(a)
    elif HOW == "sqrt":
        r = tl.sqrt(a)
    elif HOW == "rsqrt":
        r = tl.rsqrt(a)
    elif HOW == "sigmoid":
        r = tl.sigmoid(a)
    elif HOW == "/":
        r = a / b
    elif HOW == "sin":
        r = tl.sin(a)
    else:
        r = a
    tl.store(d + at, r.to(d.dtype.element_ty))


@triton.jit
def scaled(x, y, d, scale, N: tl.constexpr):
    at = tl.arange(0, N)
    scale *= 1.44269504
    tl.store(d + at, tl.load(x + at) * scale)


@triton.jit
def dot_scaled(a, d, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i[:, None] * N + i[None, :])
    s = tl.full((N, N // 32), 127, tl.uint8)
    tl.store(d + i[:, None] * N + i[None, :], tl.dot_scaled(x, s, "e4m3", x, s, "e4m3"))


def operands(m, n, k, a="f16", b="f16", seed=0):
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal(size) for size in ((m, k), (k, n), (m, n))]
    return [golden.from_float(fmt, x) for fmt, x in zip((a, b, "f32"), drawn, strict=True)]


def run(how, given, formats=("f16", "f16"), fused=True, **options):
    (m, k), n = given[0].shape, given[1].shape[1]
    tensors = [tensor_of(x, golden.get_format(fmt)) for x, fmt in zip(given, (*formats, "f32"), strict=True)]
    d = torch.zeros((m, n))
    with emulate("hopper") as chip:
        one_dot[(1,)](*tensors, d, M=m, N=n, K=k, HOW=how, **options)
    return codes(d, F32, "d"), chip


def plain(given, **more):
    (m, k), n = given[0].shape, given[1].shape[1]
    return dot(Dot(**{"a": "f16", "b": "f16", "d": "f32", "m": m, "n": n, "k": k} | more), *given)


def added(x, y):
    return (x.view(np.float32) + y.view(np.float32)).view(np.uint32)


@pytest.mark.parametrize(("m", "warps"), [(64, 4), (64, 1), (32, 4)])
def test_a_dot_is_the_rule_for_the_launch(m, warps):
    given = operands(m, 32, 64)
    found, chip = run("acc", given, num_warps=warps)
    np.testing.assert_array_equal(found, plain(given, warps=warps))
    assert [name.partition(".")[0] for name in chip.dots] == ["wgmma" if (m, warps) == (64, 4) else "mma"]
    assert not chip.cpu


def test_a_sum_with_a_dot_goes_on_with_its_chain():
    given = operands(64, 32, 64)
    chained, zeros = plain(given), plain([*given[:2], np.zeros_like(given[2])])
    assert (chained != added(zeros, given[2])).any()
    np.testing.assert_array_equal(run("plus", given)[0], chained)
    # The accumulator of a loop is no constant: a sum after its last dot is a sum.
    np.testing.assert_array_equal(run("zeros", given)[0], added(zeros, given[2]))


def test_of_two_dots_the_second_goes_on_with_the_first():
    given = operands(64, 64, 64)
    first = plain([*given[:2], np.zeros_like(given[2])])
    np.testing.assert_array_equal(run("two", given)[0], plain([given[1], given[0], first]))


def test_a_chained_dot_that_is_used_again_is_refused():
    with pytest.raises(OperandError, match="added to a block and used again"):
        run("twice", operands(64, 32, 64))


def test_a_dot_that_was_used_is_not_chained():
    given = operands(64, 32, 64)
    zeros = plain([*given[:2], np.zeros_like(given[2])])
    np.testing.assert_array_equal(run("used before", given)[0], added(zeros, given[2]))


@pytest.mark.parametrize("how", ["narrow", "narrow after"])
def test_operands_that_were_loaded_in_fewer_bits_have_another_order_of_k(how):
    given = operands(16, 32, 64, a="e5m2")
    wide = golden.from_float("f16", golden.to_float("e5m2", given[0]) * (1 if how == "narrow" else 2))
    found, _ = run(how, given, ("e5m2", "f16"))
    np.testing.assert_array_equal(found, plain([wide, *given[1:]], loaded=8))
    assert (found != plain([wide, *given[1:]])).any()


def test_a_sum_of_an_accumulator_has_the_order_of_the_threads():
    given = operands(64, 64, 32)
    d = np.abs(plain(given).view(np.float32))
    found, chip = run("sum", given)
    np.testing.assert_array_equal(found[:, 0], sum_of_quads(d).view(np.uint32))
    assert (found[:, 0] != d.sum(1).view(np.uint32)).any() and not chip.cpu
    _, chip = run("sum of a product", given)  # the compiler fuses, if both stand in one block of code
    assert dict(chip.cpu) == {"tl.sum of a product": 1}
    found, chip = run("sum of a load", given)  # four neighbours a thread, sixteen threads a row
    z = given[2].view(np.float32)
    threads = in_turn(z.reshape(64, 16, 4), 2)
    np.testing.assert_array_equal(found[:, 0], in_halves(threads, 1).view(np.uint32))
    assert (found[:, 0] != z.sum(1).view(np.uint32)).any() and not chip.cpu
    _, chip = run("sum", given, num_warps=8)  # two warps share a row
    assert dict(chip.cpu) == {"tl.sum": 1}


def test_the_order_of_the_threads_by_hand():
    """One row of 16 columns: thread t has the columns 2t, 2t + 1, 8 + 2t, 9 + 2t."""
    x = np.float32([[1e8, 1, -1e8, 2, 3, 4, 5, 6, 1, 1, 7, 8, 9, 10, 11, 12]])
    threads = []
    for t in range(4):
        total = x[0, 2 * t]
        for column in (2 * t + 1, 8 + 2 * t, 9 + 2 * t):
            total = np.float32(total + x[0, column])
        threads.append(total)
    expected = np.float32(np.float32(threads[0] + threads[2]) + np.float32(threads[1] + threads[3]))
    assert sum_of_quads(x)[0] == expected != x.sum()


@pytest.mark.parametrize(
    ("how", "name"),
    [
        *((how, name) for how in ("a*b+c", "c-a*b") for name in ("f32", "f16", "bf16")),
        ("(a*b)[:,None]+c", "f32"),
    ],
)
def test_a_product_and_a_sum_are_rounded_once(how, name):
    fmt, rng = golden.get_format(name), np.random.default_rng(1)
    x, y = (golden.from_float(fmt, rng.standard_normal(64)) for _ in range(2))
    z = golden.from_float(fmt, golden.to_float(fmt, x) * golden.to_float(fmt, y))  # the sum cancels
    d = torch.zeros(64, dtype=tensor_of(x, fmt).dtype)
    with emulate("hopper"):
        elementwise[(1,)](*(tensor_of(v, fmt) for v in (x, y, z)), d, N=64, HOW=how)
    one, two, three = (list(map(Fraction, golden.to_float(fmt, v))) for v in (x, y, z))
    sign = -1 if how == "c-a*b" else 1
    exact = [sign * a * b + c for a, b, c in zip(one, two, three, strict=True)]
    expected = golden.from_float(fmt, [float(e) for e in exact])  # exact in f64: few bits are left
    np.testing.assert_array_equal(codes(d, fmt, "d"), expected)


@pytest.mark.parametrize(("how", "fused"), [("product before a loop", False), ("both in a loop", True)])
def test_a_product_is_fused_within_a_block_of_code(how, fused):
    rng = np.random.default_rng(1)
    x, y, z = (torch.from_numpy(rng.standard_normal(64).astype(np.float32)) for _ in range(3))
    d = torch.zeros(64)
    with emulate("hopper") as chip:
        elementwise[(1,)](x, y, z, d, N=64, HOW=how)
    once = (x.double() * y.double() + z.double()).float()
    assert torch.equal(d, once if fused else x * y + z) and not torch.equal(once, x * y + z)
    assert dict(chip.cpu) == ({} if fused else {"a sum with a product of another block of code": 1})


def test_a_quotient_is_a_product_of_the_reciprocal():
    """ptxas fuses its last product: an H200's FFMA of a, 1/3 and c."""
    x, y, z = (np.array([word] * 2, np.uint32) for word in (0xE9289E0D, 0x40400000, 0xE96CC166))
    d = torch.zeros(2)
    with emulate("hopper"):
        elementwise[(1,)](*(tensor_of(v, F32) for v in (x, y, z)), d, N=2, HOW="a/b+c")
    assert codes(d, F32, "d").tolist() == [0xE9927B0B] * 2


def test_floor_flushes_subnormal_numbers():
    x, d = torch.tensor([-1e-40, 1e-40, -0.5, 2.5]), torch.zeros(4)
    with emulate("hopper"):
        elementwise[(1,)](x, x, x, d, N=4, HOW="floor")
    np.testing.assert_array_equal(codes(d, F32, "d"), np.array([0x80000000, 0, 0xBF800000, 0x40000000]))


def test_without_fusion_both_are_rounded():
    rng = np.random.default_rng(1)
    x, y, z = (torch.from_numpy(rng.standard_normal(64).astype(np.float32)) for _ in range(3))
    d = torch.zeros(64)
    with emulate("hopper"):
        elementwise[(1,)](x, y, z, d, N=64, HOW="a*b+c", enable_fp_fusion=False)
    assert torch.equal(d, x * y + z)


@pytest.mark.parametrize(
    ("target", "numbers", "expected"),
    [
        ("bf16", [1.00390625, 1.01171875, np.inf, np.nan], [0x3F80, 0x3F82, 0x7F80, 0x7FFF]),
        ("f16", [1.00048828125, 65519.9, 65520, np.nan], [0x3C00, 0x7BFF, 0x7C00, 0x7FFF]),
        ("e4m3", [1.0625, 500, -np.inf, np.nan], [0x38, 0x7E, 0xFE, 0x7F]),
        ("e5m2", [1.125, 7e4, -np.inf, np.nan], [0x3C, 0x7B, 0xFB, 0x7F]),
        ("s8", [1.9, -1.9, 300, np.nan], [1, 0xFF, 0x2C, 0]),
        ("s8", [40000, -40000, 697463, 0], [0xFF, 0, 0xFF, 0]),
        ("s32", [1e10, -1e10, np.nan, -2.5], [0x7FFFFFFF, 0x80000000, 0, 0xFFFFFFFE]),
    ],
)
def test_conversions_are_those_of_ptx(target, numbers, expected):
    """Ties to even; 8-bit floats do not overflow; integers of 8 bits come from 16. An H200 gave them."""
    fmt = golden.get_format(target)
    x = torch.tensor(numbers, dtype=torch.float32)
    d = tensor_of(np.zeros(4, fmt.dtype), fmt)
    with emulate("hopper") as chip:
        elementwise[(1,)](x, x, x, d, N=4, HOW="as it is")
    np.testing.assert_array_equal(codes(d, fmt, "d"), np.array(expected, fmt.dtype))
    assert not chip.cpu


def test_of_zeros_the_positive_one_is_larger():
    x, y, d = torch.tensor([-0.0, 0.0, -0.0, np.nan]), torch.tensor([0.0, -0.0, -0.0, 1.0]), torch.zeros(4)
    with emulate("hopper"):
        elementwise[(1,)](x, y, x, d, N=4, HOW="max")
    np.testing.assert_array_equal(codes(d, F32, "d"), np.array([0, 0, 0x80000000, 0x3F800000], np.uint32))


def test_a_nan_is_clamped_to_the_lower_bound():
    x, d = torch.tensor([np.nan, 3.0, -2.0, 0.5]), torch.zeros(4)
    with emulate("hopper") as chip:
        elementwise[(1,)](x, x, x, d, N=4, HOW="clamp")
    assert d.tolist() == [-1, 2, -1, 0.5] and not chip.cpu


@pytest.mark.parametrize(
    ("how", "counted"),
    [("sin", "tl.sin"), ("atomic", "an atomic operation on floats"), ("scan", "tl.associative_scan")],
)
def test_what_the_cpu_computed_is_counted(how, counted):
    x, d = torch.ones(4), torch.zeros(4)
    with emulate("hopper") as chip:
        elementwise[(1,)](x, x, x, d, N=4, HOW=how)
    assert dict(chip.cpu) == {counted: 1}


X = [0x0049DF7B, 0x00296C69, 0x428634BC, 0x3D9C847D, 0x4207873D, 0x41C3C0FF, 0x738A82F1, 0x873601BD]
Y = [0x5E12B9B1, 0xDB7F2B6C, 0xBF6E7444, 0xC05B0EBF, 0x42388ADF, 0xC1FC0E8B, 0x2E28DDC3, 0x02D9D9A6]
H200 = {
    "log2": [0xC2FD9607, 0xC2FF4158, 0x40C22F8F, 0xC06D6DAF, 0x40A2A36E, 0x40939CDB, 0x42D03A4C, 0x7FFFFFFF],
    "log": [0xC2AFC5C0, 0xC2B0EDF1, 0x4086996D, 0xC02492A7, 0x406176F7, 0x404CA27A, 0x4290551C, 0x7FFFFFFF],
    "exp2": [0x3F800000, 0x3F800000, 0x610978E7, 0x3F86F6A2, 0x506BE7F3, 0x4BB13340, 0x7F800000, 0x3F800000],
    "exp": [0x3F800000, 0x3F800000, 0x6FE047BB, 0x3F8A2A76, 0x57EBCFD8, 0x511DC43A, 0x7F800000, 0x3F800000],
    "sqrt": [0x00000000, 0x00000000, 0x410310F7, 0x3E8D8AD9, 0x40BA443F, 0x409E4ADE, 0x598526ED, 0x7FFFFFFF],
    "rsqrt": [0x7F800000, 0x7F800000, 0x3DFA02CC, 0x406781B4, 0x3E2FEB7F, 0x3E4F025E, 0x25761837, 0x7FFFFFFF],
    "sigmoid": [
        0x3F000000,
        0x3F000000,
        0x3F800000,
        0x3F04E388,
        0x3F800000,
        0x3F800000,
        0x3F800000,
        0x3F000000,
    ],
    "/": [0x00000000, 0x80000000, 0xC29014C2, 0xBCB6E9BC, 0x3F3C01BE, 0xBF46D0F8, 0x7F800000, 0xC3D5E136],
}
"""What an H200 answered to X (and Y), recorded on 2026-11-29 with Triton 3.6.0."""


@pytest.mark.parametrize("how", H200)
def test_functions_are_those_of_an_h200(how):
    x, y = (tensor_of(np.array(bits, np.uint32), F32) for bits in (X, Y))
    d = torch.zeros(8)
    with emulate("hopper") as chip:
        elementwise[(1,)](x, y, x, d, N=8, HOW=how)
    np.testing.assert_array_equal(codes(d, F32, "d"), np.array(H200[how], np.uint32))
    assert not chip.cpu


def test_a_float_argument_is_an_f32():
    x, d = torch.tensor([3.0]), torch.zeros(1)
    with emulate("hopper"):
        scaled[(1,)](x, x, d, 1 / 7, N=1)
    expected = np.float32(3) * (np.float32(1 / 7) * np.float32(1.44269504))
    assert d.item() == expected != np.float32(3) * np.float32(1 / 7 * 1.44269504)


def test_what_has_no_rule_is_refused_by_name():
    x = torch.zeros((64, 64), dtype=torch.float8_e4m3fn)
    with emulate("hopper"), pytest.raises(OperandError, match=r"tl\.dot_scaled has no rule"):
        dot_scaled[(1,)](x, torch.zeros((64, 64)), N=64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton, "__version__", "3.10.1")
        with pytest.raises(OperandError, match=r"Triton is 3\.10\.1, expected 3\.6 to 3\.9"):
            run("acc", operands(64, 32, 64))
    with pytest.raises(OperandError, match="num_ctas is 2"):
        run("acc", operands(64, 32, 64), num_ctas=2)
    with pytest.raises(OperandError, match="pull request 11691"):
        run("narrow", operands(16, 32, 16, a="e5m2"), ("e5m2", "f16"))
    with pytest.raises(OperandError, match=r"tl\.join"):
        run("joined", operands(16, 32, 16))
    with pytest.raises(UnknownNameError, match=r"'hoper'.*nearest.*hopper"):
        emulate("hoper")


def test_afterwards_the_interpreter_is_its_own_again():
    builder = runtime.interpreter_builder
    before = dict(vars(builder)), runtime.GridExecutor.__call__, runtime.ReduceOps.sum, runtime._implicit_cvt
    with emulate("hopper") as chip, pytest.raises(OperandError, match="entered already"):
        chip.__enter__()
    assert before == (
        dict(vars(builder)),
        runtime.GridExecutor.__call__,
        runtime.ReduceOps.sum,
        runtime._implicit_cvt,
    )
