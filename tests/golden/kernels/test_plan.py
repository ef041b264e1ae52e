"""Plans: options and what does not go together, in Python and in YAML; the named ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden.errors import UnknownArithmeticError
from golden.kernels.options import KEYS
from golden.kernels.plan_files import plan_text

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
THREE = [[1, 0], [0, 1], [0, 0]]
OF_TILES = {"a": "f32", "b": "f32", "promote": 64, "tile_k": 64}
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
WRONG = [
    (F16, {"promot": 32}, "unknown key 'promot', .*nearest: promote"),
    (F16, {"promote": 24}, "'promote' is 24, expected a multiple of the instruction's k, which is 16"),
    (F16, {"promote": True}, "'promote' is True, expected an integer"),
    (F16, {"split_k": 0}, "'split_k' is 0, expected an integer from 1"),
    (F16, {"split_k": 2, "part": 64}, "both say how K is split"),
    (F16, {"parts": [64, 32], "part": 64}, "'part' and 'parts' both say how K is split"),
    (F16, {"parts": []}, "'parts' is empty"),
    (F16, {"parts": [32, 24, 8]}, "'parts' has 24 before its last one, expected multiples of the tile of 16"),
    (F16, {"parts": [32, 0]}, "'parts' holds 0, expected an integer from 1"),
    (F16, {"parts": [32, 16], "edge": "first"}, "'first' goes with 'part' or 'split_k'"),
    (F16, {"parts": [32, 16], "c": "seed"}, "only where there is one chain"),
    (F16, {"part": 24}, "'part' is 24, expected a multiple of the tile of 16"),
    (F16, {"tile_k": 48, "slices": 2}, "does not divide into 2 slices"),
    (F16, {"tile_k": 24}, "does not divide into 1 slices of steps of 16"),
    (F16, {"tile_k": 16, "order": [0, 1]}, "each of 0 to 15"),
    (F16, {"out": "e4m3"}, "'out' is 'e4m3', expected one of f16, bf16, f32, f64, s32"),
    (F16, {"out": "s32"}, "sums in f32 are not rounded to s32"),
    (F16, {"a": "f12"}, "'a' is 'f12', expected one of"),
    (F16, {"a": "s8"}, "s8 codes cannot be converted to f16"),
    (F16, {"a": "f32", "convert": "toward_zero"}, "f32 codes cannot be converted to f16"),
    (F16, {"reduce": "up"}, "'reduce' is 'up', expected one of ascending, descending, tree"),
    (F16, {"reduce": [0, 2]}, r"'reduce' is \[0, 2\], expected each of the numbers from 0 on once"),
    (
        F16,
        {"reduce": [0, [1]]},
        r"'reduce' holds \[1\], expected one of ascending, .*, or a list of two numbers",
    ),
    (F16, {"reduce": [0, "1"]}, "'reduce' holds '1', expected an integer from 0"),
    (F16, {"reduce": 3}, "'reduce' is 3, expected one of ascending, descending, tree, or a list"),
    (F16, {"reduce": [0, 1]}, "'reduce' has numbers, which are those of parts or of slices"),
    (F16, {"activation": "gelu"}, "'activation' is 'gelu', expected one of none, relu"),
    (F16, {"reduce_format": "s32"}, "sums in f32 are not reduced in s32"),
    (F16, {"reduce_format": "f64"}, "sums in f32 are not reduced in f64"),
    (F16, {"alpha": float("nan")}, "'alpha' is nan, expected a finite number"),
    (F16, {"alpha": 1e39}, "'alpha' is 1e\\+39, .*f32"),
    (F16, {"c": "seed", "split_k": 2}, "only where there is one chain"),
    (F16, {"c": "seed", "c_format": "f16"}, "the c of the first step is f32"),
    (F16, {"c_format": "f64"}, "C in f64 cannot be added in f32"),
    (F16, {"scales": "block"}, "expected 'promote' to divide the 128 elements of a block"),
    (F16, {"scale_order": "a_first"}, "only scales of blocks have an order here"),
    (F16, {"scale_order": "b_first"}, "'scale_order' is 'b_first', expected one of product, a_first"),
    (F16, {"fma": "beta"}, "'fma' is 'beta', expected one of promotion, c"),
    (F16, {"scale_a_block": [1]}, "'scale_a_block' holds 1 item, expected"),
    (
        TF32,
        {"products": [[0, 0]], **OF_TILES},
        r"'products' holds 1 item, expected a list of 2 to 16 different pairs",
    ),
    (TF32, {"products": [[0, 0], [0, 4]], **OF_TILES}, "'products' holds 4, expected an integer from 0 to 3"),
    (TF32, {"products": [[0, 0], [0, 0]], **OF_TILES}, "'products' holds \\(0, 0\\) twice"),
    (TF32, {"products": [[0, 0], [1]], **OF_TILES}, r"'products' holds 1 item, expected a list of 2"),
    (TF32, {"products": THREE, **OF_TILES, "tile_k": 8}, "expected 'promote' to be its 8 elements"),
    (TF32, {"products": THREE, **OF_TILES, "convert": "none"}, "f32 codes that are rounded"),
    (TF32, {"products": THREE, "promote": 64, "tile_k": 64}, "f32 codes that are rounded"),
    (TF32, {"products": THREE, **OF_TILES, "slices": 2}, "goes with neither 'order', 'slices'"),
    (TF32, {"products": THREE, **OF_TILES, "scales": "block"}, "nor scales of blocks"),
    (SPARSE, {"products": THREE, **OF_TILES}, "go with dense float instructions alone"),
    (S8, {"promote": 32}, "sums of integers are not promoted"),
    (S8, {"alpha": 2}, "results in s32 have alpha 1"),
    (S8, {"scales": "tensor"}, "sums of integers have no f32 scales"),
    (SPARSE, {"order": list(range(32))}, "have no other order"),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG)
def test_wrong_options_are_one_line(name: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(golden.OperandError, match=message) as raised:
        golden.plan("hopper", name, **options)
    assert "\n" not in str(raised.value)
    if next(iter(options)) in KEYS and options.get("alpha") is None:
        file = tmp_path / "plan.yaml"
        lines = "".join(f"{key}: {_yaml(value)}\n" for key, value in options.items())
        file.write_text(f"plan: wrong\ninstruction: hopper:{name}\n{lines}")
        with pytest.raises(golden.SpecError, match=r"plan\.yaml:\d: .*"):
            golden.load_plan(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hoper", F16), "unknown architecture 'hoper'"),
        (("hopper", "mma.sync.nothing"), "unknown instruction"),
        (("hopper", "cublas_f16.f16.f3"), "unknown instruction .*; nearest plans: cublas_f16.f16.f32, "),
        (("hopper",), "'instruction' is missing"),
    ],
)
def test_unknown_names(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(golden.MmagoldError, match=message):
        golden.plan(*arguments)


def test_an_instruction_of_unknown_arithmetic_has_its_own_error() -> None:
    with pytest.raises(UnknownArithmeticError, match="its arithmetic is unknown"):
        golden.plan("rdna4", "v_wmma_i32_16x16x16_iu8_w64.clamp")


def test_units_of_ones_own(tmp_path: Path) -> None:
    formats = "{a: f16, b: f16, c: f32, d: f32}"
    unit = f"unit: two\nshape: {{k: 2}}\nformats: {formats}\nprogram: [{{fda: {{fraction_bits: 24}}}}]\n"
    (tmp_path / "two.yaml").write_text(unit)
    (tmp_path / "plan.yaml").write_text("plan: mine\ninstruction: two.yaml\npromote: 4\nout: f16\n")
    plan = golden.load_plan(tmp_path / "plan.yaml")
    assert (plan.name, plan.instruction.name, plan.options.promote) == ("mine", "two", 4)
    same = golden.plan(golden.load_instruction(tmp_path / "two.yaml"), promote=4, out="f16")
    a = golden.from_float("f16", np.random.default_rng(0).standard_normal((3, 9)))
    assert np.array_equal(golden.gemm(a, a.T, plan), golden.gemm(a, a.T, same))
    modes = golden.load_instruction(EXAMPLES / "ieee_multiply.yaml")
    for unit, message in ((modes.plain, "has no c"), (modes, "has modes")):
        with pytest.raises(golden.OperandError, match=message):
            golden.plan(unit)


def test_lists_that_are_too_deep_are_one_line() -> None:
    deep: list[Any] = [0, 1]
    for number in range(2, 5000):
        deep = [deep, number]
    with pytest.raises(golden.OperandError, match="'reduce' holds a list too deep to show"):
        golden.plan("hopper", F16, split_k=4096, reduce=deep)


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_the_text_of_a_plan_is_the_plan(tmp_path: Path) -> None:
    plan = golden.plan(
        "hopper", F16, promote=32, tile_k=32, order=list(range(31, -1, -1)), fma=["c"], alpha=0.1, out="bf16"
    ).but(split_k=4, reduce=[3, [0, [2, 1]]], activation="relu")
    (tmp_path / "p.yaml").write_text(plan_text(plan))
    again = golden.load_plan(tmp_path / "p.yaml")
    assert again.options == plan.options and again.instruction is plan.instruction


@pytest.mark.parametrize("architecture", golden.architectures())
def test_named_plans_say_what_was_seen(architecture: str) -> None:
    for plan in golden.plans(architecture):
        assert golden.plan(architecture, plan.name) is plan
        assert plan.seen and plan.title and plan.evidence.source
        assert plan.evidence.kind in ("captured", "published", "derived")
    with pytest.raises(golden.UnknownNameError):
        golden.plans("hoper")


def test_options_replace_those_of_a_named_plan() -> None:
    plan = golden.plan("hopper", "cublas_fp8_precise.e4m3.e4m3.bf16", out="f32")
    assert (plan.options.promote, plan.options.out, plan.name) == (128, "f32", "")
