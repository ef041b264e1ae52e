"""The special-function unit: results of an H200, digests of all codes, exact errors, a second model."""

from __future__ import annotations

import ctypes
import json
import random
import re
import shutil
import subprocess
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from long_run import long_after
from pages import ROOT

import golden
from golden.errors import DTypeError, FileFormatError, OperandError, SpecError, UnknownNameError
from golden.functions import functions as functions_module
from golden.functions import sequences
from golden.functions.c_text import c_name, c_text
from golden.functions.functions import functions
from golden.functions.recorded import GROUPS, archive, digest, group_digest, recorded
from golden.functions.tables import FRACTION, LOWEST, SQUARE, squares
from golden.yamlfile import read

ARCHIVE = ROOT / "vectors" / "functions" / "hopper.npz"
RECORDED = recorded(ARCHIVE)
NAMES = tuple(RECORDED.words)
SWEPT = tuple(RECORDED.digests)
"""The functions of 32-bit codes, of which there are digests."""


# Against the GPU --------------------------------------------------------------------------------------------


def test_every_ptx_function_is_recorded() -> None:
    known = {name for name in functions("hopper") if not name.startswith("MUFU.")}
    assert set(NAMES) == known
    assert set(SWEPT) == {name for name in known if functions("hopper")[name].width == 32}
    assert archive("hopper") == ARCHIVE


@pytest.mark.parametrize("name", NAMES)
def test_recorded_words_come_out(name: str) -> None:
    assert np.array_equal(golden.mufu("hopper", name)(RECORDED.codes[name]), RECORDED.words[name])


@pytest.mark.parametrize(
    ("name", "group"), long_after(1, [("lg2.approx.f32", 126), ("ex2.approx.ftz.f32", 382)])
)
def test_a_group_of_codes_has_the_digest_of_the_gpu(name: str, group: int) -> None:
    """2^23 codes with the same sign and exponent: (-1, -0.5], and [0.5, 1), where logarithms cancel."""
    assert group_digest(golden.mufu("hopper", name), group) == RECORDED.digests[name][group]


def test_a_digest_sees_one_wrong_bit_and_two_results_exchanged() -> None:
    codes, words = RECORDED.codes[SWEPT[0]][1000:1064], RECORDED.words[SWEPT[0]][1000:1064]
    right = digest(codes, words)
    assert digest(codes[::-1], words[::-1]) == right
    wrong = words.copy()
    wrong[17] ^= 1
    assert digest(codes, wrong) != right
    wrong = words.copy()
    wrong[[3, 4]] = wrong[[4, 3]]
    assert wrong[3] != wrong[4] and digest(codes, wrong) != right


def test_the_manifest_counts_all_codes_and_no_difference() -> None:
    manifest = json.loads(ARCHIVE.with_suffix(".json").read_text("utf-8"))
    for name, entry in manifest["functions"].items():
        assert entry == {"codes": 1 << functions("hopper")[name].width, "differences": 0, "first": []}
    assert set(manifest["functions"]) == set(NAMES)
    evidence = golden.mufu("hopper", NAMES[0]).evidence
    assert evidence.device == manifest["device"]["name"]
    assert (ROOT / str(evidence.vectors)) == ARCHIVE


# A second model: the same tables in C -----------------------------------------------------------------------

_DRIVER = """
void mg_run(uint32_t (*f)(uint32_t), const uint32_t *codes, uint32_t *results, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        results[i] = f(codes[i]);
}
uint64_t mg_group(uint32_t (*f)(uint32_t), uint32_t group)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1u << 23; i++)
        sum += mg_digest(group << 23 | i, f(group << 23 | i));
    return sum;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The unit in C, compiled."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("functions")
    (folder / "unit.c").write_text("#define MG_FUNCTION\n" + c_text("hopper") + _DRIVER)
    options = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, "-o", "unit.so", "unit.c", "-lm"], cwd=folder, check=True)
    found = ctypes.CDLL(str(folder / "unit.so"))
    found.mg_group.restype = ctypes.c_uint64
    return found


@pytest.mark.parametrize("name", functions("hopper"))
def test_both_models_agree(name: str, library: ctypes.CDLL) -> None:
    """On random codes and around every exponent; the operations of SASS as well, which PTX cannot call."""
    function = golden.mufu("hopper", name)
    rng = np.random.default_rng(3)
    edges = (np.arange(GROUPS, dtype=np.uint32)[:, None] << 23) + np.arange(-4, 5).astype(np.uint32)
    codes = np.concatenate([edges.ravel(), rng.integers(0, 1 << 32, 20000, dtype=np.uint32)])
    if function.width == 16:
        codes = np.arange(1 << 16, dtype=np.uint32)
    results = np.empty_like(codes)
    pointer = ctypes.POINTER(ctypes.c_uint32)
    library.mg_run(
        getattr(library, c_name(name)),
        codes.ctypes.data_as(pointer),
        results.ctypes.data_as(pointer),
        ctypes.c_int64(codes.size),
    )
    assert np.array_equal(results, function(codes.astype(f"uint{function.width}")))


@pytest.mark.parametrize("name", SWEPT)
def test_some_groups_of_codes_have_the_digests_of_the_gpu(name: str, library: ctypes.CDLL) -> None:
    group = random.Random(name).randrange(GROUPS)
    assert library.mg_group(getattr(library, c_name(name)), group) == RECORDED.digests[name][group], group


@pytest.mark.long
@pytest.mark.parametrize("name", SWEPT)
def test_all_groups_of_codes_have_the_digests_of_the_gpu(name: str, library: ctypes.CDLL) -> None:
    """All 2^32 codes of each function."""
    function = getattr(library, c_name(name))
    assert [library.mg_group(function, group) for group in range(GROUPS)] == RECORDED.digests[name].tolist()


# Against exact arithmetic -----------------------------------------------------------------------------------


def test_the_squarer_leaves_out_what_it_says() -> None:
    """Products of single bits in both orders, as fractions: a pair of two bits has twice its weight."""
    for bits in (16, 17):
        for x in random.Random(bits).sample(range(1 << bits), 200):
            digits = [i for i in range(1, bits + 1) if x >> bits - i & 1]
            kept = Fraction(0)
            for i in digits:
                for j in digits:
                    weight = Fraction(1, 1 << i + j)
                    if (weight if i == j else 2 * weight) >= Fraction(1, 1 << -SQUARE):
                        kept += weight
            assert Fraction(int(squares(bits)[x]), 1 << -SQUARE) == kept


@pytest.mark.long
def test_reciprocals_are_within_one_ulp_and_never_far_above() -> None:
    """All 2^23 significands, in exact integers: |r m - 2^47| / m is the error in units of 2^-24."""
    fraction = np.arange(1 << FRACTION, dtype=np.int64)
    code = golden.mufu("hopper", "rcp.approx.ftz.f32")((fraction + 0x3F800000).astype(np.uint32)).astype(
        np.int64
    )
    result = np.where(code == 0x3F800000, 1 << 24, (code & 0x7FFFFF) | 1 << 23)
    significand = fraction | 1 << FRACTION
    error = np.abs(result * significand - (1 << 47)) / significand
    worst = int(error.argmax())
    assert (worst, round(float(error[worst]), 4)) == (0x01CFFF, 0.9749)
    exact = np.rint((1 << 47) / significand).astype(np.int64)  # no quotient of 47 bits lies near a half
    assert round(100 * float((result == exact).mean()), 1) == 86.8


@pytest.mark.parametrize("name", ("rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "tanh"))
def test_sums_stay_within_what_the_cut_takes(name: str) -> None:
    """No coefficient is so large, and no sum so small, that 64 bits or the cut would be wrong."""
    table = golden.mufu("hopper", "MUFU.RCP").tables[name]
    fraction = np.unique(np.random.default_rng(0).integers(0, 1 << FRACTION, 1 << 16))
    for block in range(len(table.blocks)):
        sums = table.interpolate(np.full_like(fraction, block), fraction)
        assert sums.min() >= 0 and sums.max() < 1 << 2 - LOWEST


# What a user meets ------------------------------------------------------------------------------------------


def test_shapes_and_types() -> None:
    ex2 = golden.mufu("h100", "ex2.approx.ftz.f32")
    assert ex2(np.zeros((2, 0, 3), dtype=np.uint32)).shape == (2, 0, 3)
    assert ex2(0x3F800000).tolist() == 0x40000000
    assert ex2([[0, 0x3F800000]]).tolist() == [[0x3F800000, 0x40000000]]
    codes = np.arange(1 << 20, dtype=np.uint32)[::4097]
    assert np.array_equal(ex2(codes), ex2(codes.copy()))
    half = golden.mufu("hopper", "ex2.approx.f16")
    assert half(np.array([0x3C00], dtype=np.uint16)).dtype == np.uint16
    both = golden.mufu("hopper", "ex2.approx.f16x2")
    assert both([0x3C00C000]).tolist() == [0x40003400]


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        (
            np.array([1.0], dtype=np.float32),
            r"dtype float32, expected raw codes of type np.uint32: codes.view",
        ),
        ([0, -1], "holds -1, expected codes from 0 to 0xffffffff"),
        ([1 << 32], "holds 4294967296, expected"),
        ([True], "dtype bool"),
        (["0x1"], "expected raw codes"),
    ],
)
def test_what_is_no_code_is_refused(codes: object, error: str) -> None:
    with pytest.raises(DTypeError, match=error):
        golden.mufu("hopper", "rcp.approx.ftz.f32")(codes)  # type: ignore[arg-type]


def test_a_mask_is_refused() -> None:
    with pytest.raises(OperandError, match="masked"):
        golden.mufu("hopper", "rcp.approx.ftz.f32")(np.ma.masked_array([1], dtype=np.uint32))


@pytest.mark.parametrize(
    ("architecture", "name", "error"),
    [
        ("hopper", "ex2.aprox.f32", "nearest: ex2.approx.f32"),
        ("volta", "ex2.approx.f32", "unit of 'volta' is not known, expected one of hopper"),
        ("hoper", "ex2.approx.f32", "unknown architecture 'hoper'"),
    ],
)
def test_unknown_names_have_near_ones(architecture: str, name: str, error: str) -> None:
    with pytest.raises(UnknownNameError, match=error):
        golden.mufu(architecture, name)


GOOD = """\
argument: x
low: 17
bias: [1, -38]
blocks:
- exponent: -1
  units: [-26, -23, -24]
  segments: [[1, 2, 3]]
- exponent: 0
  units: [-26, -23, -24]
  segments: [[1, 2, 3], [4, 5, 6]]
"""


def test_a_table_is_read(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(GOOD)
    table = functions_module._table("x", read(tmp_path / "table.yaml"))
    assert table.bias == 4 and table.blocks[1].segments == ((1, 2, 3), (4, 5, 6))
    place = np.array([1 << 22 | 3 << 5], dtype=np.int64)  # x = 3 in the second segment
    assert table.interpolate(np.array([1]), place).tolist() == [(4 << 14) + 4 + 5 * 3]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("[4, 5, 6]]", "[4, 5, 6], [7, 8, 9]]", "10: 3 segments, expected a power of two up to 64"),
        ("exponent: 0", "exponent: 1", "8: exponent is 1, expected 0"),
        ("low: 17", "low: 18", "2: key 'low' is 18"),
        ("[1, 2, 3]]", "[1, 2]]", "7: key 'segments'"),
        ("units: [-26", "units: [-41", "6: key 'units'"),
        ("argument: x", "argument: x\nlo: 3", "unknown key 'lo'"),
    ],
)
def test_a_wrong_table_is_refused(old: str, new: str, error: str, tmp_path: Path) -> None:
    assert old in GOOD
    (tmp_path / "table.yaml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(SpecError, match=re.escape(error)):
        functions_module._table("x", read(tmp_path / "table.yaml"))


def test_an_archive_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "unit.npz").write_text("no archive")
    with pytest.raises(FileFormatError, match="expected an archive of recorded functions"):
        recorded(tmp_path / "unit.npz")


# The sequences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    (
        "FMUL R5, R0",
        "FFMA R5, R0, R0, R0",
        "FMUL R5, R0, nan",
        "FMUL R5, R0, x",
        "FMUL R5, R0, R1",
        "@P0 FMUL R5, R0, R0",
        "MUFU.RCP R4, R0",
        "MUFU.RCP R5, R0, R0",
        "MUFU.ROOT R5, R0",
        "",
    ),
)
def test_what_is_no_sequence_is_none(text: str) -> None:
    assert sequences.parsed([text]) is None
    assert sequences.parsed(["MUFU.RCP R5, R0"]) is not None


@pytest.mark.parametrize("seed", range(3))
def test_the_arithmetic_around_the_unit_is_ieee(seed: int) -> None:
    """Products and sums against exact rationals, rounded to nearest or towards zero, with subnormals."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 0x7F7FFFFF, 400) | rng.integers(0, 2, 400) << 31
    codes[:100] &= 0x80FFFFFF
    a, b = codes[::2], codes[1::2]
    for name in ("FMUL", "FMUL.RZ", "FADD"):
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            steps = sequences.parsed([f"{name} R5, R0, {_number(y)}"])
            assert steps is not None
            found = sequences.run(steps, _no_unit, np.array([x], dtype=np.int64))
            assert int(found[0]) == _exact(name, x, y), (name, hex(x), hex(y))


def _no_unit(name: str, codes: np.ndarray) -> np.ndarray:
    raise AssertionError(name)


def _number(code: int) -> str:
    return repr(float(np.array([code], dtype=np.uint32).view(np.float32)[0]))


@cache
def _fraction(code: int) -> Fraction:
    exponent, part = code >> 23 & 255, code & 0x7FFFFF
    value = Fraction(part | (1 << 23 if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 150)
    return -value if code >> 31 else value


def _exact(name: str, x: int, y: int) -> int:
    """The result in exact rationals: the code below it in magnitude, or the one above if that is nearer."""
    a, b = _fraction(x), _fraction(y)
    value = a + b if name == "FADD" else a * b
    sign = (x ^ y) >> 31 << 31 if name != "FADD" else (1 << 31 if value < 0 else 0)
    low, high = (
        0,
        0x7F800000,
    )  # _fraction takes infinity's code for 2^128, which is the bound that IEEE rounds at
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fraction(middle) <= abs(value) else (low, middle)
    if _fraction(low) == abs(value) or name == "FMUL.RZ":
        return sign | low
    above, below = _fraction(high) - abs(value), abs(value) - _fraction(low)
    return sign | (high if above < below or (above == below and low & 1) else low)
