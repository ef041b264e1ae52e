"""The search for differences: it finds what differs, nothing where nothing does, and its examples are true
and short."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from long_run import long_after

import golden
from golden import yamlfile
from golden.catalog.unit_files import build_instruction
from golden.errors import OperandError
from golden.identify import comparing as module
from golden.identify.comparing import CLASSES, compare
from golden.model.instruction import Instruction
from golden.unit import FunctionUnit

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
HOPPER = golden.instruction("hopper", "HMMA.16816.F32")
AMPERE = golden.instruction("ampere", "HMMA.16816.F32")


def truncated_sum(product: Fraction, c: Fraction, fraction_bits: int) -> Fraction:
    """One product of powers of two and c, aligned to the larger with `fraction_bits` kept, added exactly."""

    def exponent(x: Fraction) -> int:
        return int(np.frexp(float(abs(x)))[1]) - 1

    unit = Fraction(2) ** (max(exponent(product), exponent(c)) - fraction_bits)
    total = sum(((abs(x) // unit) * unit * (-1 if x < 0 else 1) for x in (product, c)), Fraction(0))
    last = Fraction(2) ** (exponent(total) - 23)  # cut to the 24 bits of a float32
    return (abs(total) // last) * last * (-1 if total < 0 else 1)


def test_hopper_against_ampere() -> None:
    """The shortest example is one product and c, and a small model in rationals gives both answers (F = 25
    and 24)."""
    result = compare(HOPPER, AMPERE, seed=1, budget=20_000)
    example = result.example
    assert example is not None and example.difference == "value" and example.products == 1
    a, b = (golden.to_float("f16", example.operands_x[name])[0] for name in "ab")
    c = float(np.asarray(example.operands_x["c"]).view(np.float32))
    assert abs(a) == abs(b) == 1 and np.frexp(abs(c))[0] == 0.5, "powers of two only"
    exact = [truncated_sum(Fraction(a * b), Fraction(c), bits) for bits in (25, 24)]
    codes = [int(np.float32(float(value)).view(np.uint32)) for value in exact]
    assert [example.x, example.y] == codes


def test_counts_add_up_and_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    result = compare(
        HOPPER, AMPERE, seed=2, budget=14_000, progress=lambda done, total: seen.append((done, total))
    )
    assert result.trials == 14_000 and [count.trials for count in result.counts] == [1000] * 14
    assert (
        result.numeric == sum(sum(c.differences[name] for name in CLASSES[:3]) for c in result.counts) > 1000
    )
    assert seen[-1] == (14_000, 14_000) and seen == sorted(seen)


def test_counts_against_an_own_loop() -> None:
    from golden import stimuli

    result = compare(HOPPER, AMPERE, seed=9, budget=14 * 300)
    for index, count in enumerate(result.counts):
        operands = stimuli.generate(HOPPER, count.kind, 300, np.random.default_rng([9, index]))
        x, y = HOPPER.dot(**operands).view(np.float32), AMPERE.dot(**operands).view(np.float32)
        assert count.differences["value"] == int(((x != y) & np.isfinite(x) & np.isfinite(y)).sum())


def test_no_difference_where_the_rule_is_the_same() -> None:
    other = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    result = compare(HOPPER, other, budget=20_000)
    assert result.numeric == result.nan_payloads == 0 and result.example is None
    assert result.as_dict()["example"] is None


def test_nan_payloads_are_kept_apart() -> None:
    dmma = golden.instruction("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
    result = compare(dmma, golden.instruction("cdna3", "v_mfma_f64_16x16x4_f64"), budget=20_000)
    assert result.numeric == 0 < result.nan_payloads
    example = result.example
    assert example is not None and example.difference == "nan_payload" and example.x != example.y
    assert np.isnan(np.array([example.x, example.y], np.uint64).view(np.float64)).all()


@pytest.mark.parametrize(
    ("name", "old", "new", "difference"),
    long_after(
        3,
        [
            ("sticky_rne", "fraction_bits: 26", "fraction_bits: 25", "value"),
            ("sticky_rne", "cut: sticky_added", "cut: dropped", "value"),
            ("sticky_rne", "nearest_even", "nearest_away", "value"),
            ("sticky_rne", "zero: positive", "zero: signed", "zero_sign"),
            ("sticky_rne", "to: products}", "to: products, normalize: true}", "value"),
            ("sticky_rne", "0x7FC00000", "0x7FFFFFFF", "nan_payload"),
            ("exact_pair", "overflow: ieee", "overflow: largest", "special"),
            ("ieee_tree", "order: tree", "order: sequential", "value"),
            ("late_c", "fraction_bits: 24", "fraction_bits: 25", "value"),
            ("bf16_flush", "overflow: largest", "overflow: infinity", "special"),
            ("block_scaled", "c: 40", "c: 39", "value"),
        ],
    ),
)
def test_finds_every_small_change_of_a_unit(
    tmp_path: Path, name: str, old: str, new: str, difference: str
) -> None:
    text = (EXAMPLES / f"{name}.yaml").read_text()
    assert old in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(old, new))
    unit, changed = golden.load_instruction(EXAMPLES / f"{name}.yaml"), golden.load_instruction(path)
    result = compare(unit, changed, budget=100_000)
    assert result.example is not None and result.example.difference == difference


def test_example_is_true_and_minimal() -> None:
    """Both models confirm the answers; taking away any one product or c makes the two agree."""
    unit = golden.load_instruction(EXAMPLES / "sticky_rne.yaml")
    other = golden.instruction("ampere", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
    example = compare(unit, other, budget=30_000).example
    assert example is not None
    assert unit.reference_dot(**example.operands_x) == example.x == example.trace_x.code
    assert other.reference_dot(**example.operands_y) == example.y == example.trace_y.code
    for k in np.flatnonzero(example.operands_x["a"]):
        x, y = (
            {key: codes.copy() for key, codes in operands.items()}
            for operands in (example.operands_x, example.operands_y)
        )
        x["a"][k], x["b"][k], y["a"][k], y["b"][k] = 0, 0, 0, 0
        assert int(unit.dot(**x)) == int(other.dot(**y))


def test_different_k_is_padded() -> None:
    short = golden.instruction("ampere", "HMMA.1688.F32")
    assert compare(short, AMPERE, budget=10_000).numeric == 0, "the second step of Ampere adds zeros"
    operands: module.Operands = {
        "a": np.ones((2, 8), np.uint16),
        "b": np.ones((2, 8), np.uint16),
        "c": np.zeros(2, np.uint32),
    }
    padded = module.pad(operands, AMPERE)
    assert padded["a"].shape == padded["b"].shape == (2, 16) and not padded["a"][:, 8:].any()


def test_sparse_and_scaled() -> None:
    sparse = [
        golden.instruction(arch, "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
        for arch in ("hopper", "ampere")
    ]
    example = compare(sparse[0], sparse[1], budget=10_000).example
    assert example is not None and example.products == 1
    name = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    )
    scaled = golden.instruction("rtx_blackwell", name)
    assert compare(scaled, scaled, budget=1000).example is None


def test_what_cannot_be_compared() -> None:
    with pytest.raises(golden.OperandError, match=r"operand a is f16 in .* but bf16 in"):
        compare(HOPPER, golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"))
    with pytest.raises(golden.OperandError, match="sparsity"):
        compare(HOPPER, golden.instruction("hopper", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"))
    for budget in (0, 10**20):
        with pytest.raises(golden.OperandError, match=f"budget is {budget}, expected 1 to 1000000000000"):
            compare(HOPPER, AMPERE, budget=budget)


def test_classify() -> None:
    f16, f32 = golden.get_format("f16"), golden.get_format("f32")
    x = np.array([0x3C00, 0x3C00, 0x7C00, 0x0000, 0x7E00, 0x7E00, 0x7C00], np.uint16)
    y = np.array([0x3C00, 0x3C01, 0x3C00, 0x8000, 0x7E01, 0x7E00, 0x7E00], np.uint16)
    assert module.classify(x, y, f16, f16).tolist() == [-1, 0, 1, 2, 3, -1, 1]
    wide = np.array([0x3F800000, 0x3F800001, 0x80000000, 0x7FC00001], np.uint32)
    assert module.classify(np.array([0x3C00, 0x3C00, 0, 0x7E00], np.uint16), wide, f16, f32).tolist() == [
        -1,
        0,
        2,
        -1,
    ]


FLAGGED = """
unit: flagged
shape: {k: 1}
formats: {a: f16, b: f16, c: f16, d: f16}
flags: [inexact, underflow, overflow, invalid]
steps:
  - fma: {to: d, rounding: nearest_even, nan: 0x7E00, tiny: unbounded}
"""


def flagged(*changes: tuple[str, str]) -> golden.Instruction:
    text = FLAGGED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return build_instruction(yamlfile.parse(text))


def test_status_flags_that_both_return_are_compared() -> None:
    """Two rules of tininess answer alike and raise underflow differently."""
    found = compare(flagged(), flagged(("tiny: unbounded", "tiny: before_rounding")), budget=20_000)
    assert found.numeric == found.nan_payloads == 0 < found.flags_alone and found.left_out == ""
    example = found.example
    assert example is not None and example.difference == "flags" and example.x == example.y
    assert example.flags is not None and example.flags[0] ^ example.flags[1] == 0b0010
    reported = found.as_dict()
    assert reported["flags"] == found.flags_alone and reported["example"]["flags"] == list(example.flags)
    same = compare(flagged(), flagged(), budget=4000)
    assert same.example is None and same.flags == flagged().status


def test_flags_are_compared_by_name_and_what_is_left_out_is_said() -> None:
    all_four = "flags: [inexact, underflow, overflow, invalid]\n"
    turned = flagged((all_four, "flags: [invalid, inexact]\n"))
    found = compare(flagged(), turned, budget=4000)
    assert found.flags_alone == 0 and set(found.flags) == {"inexact", "invalid"}
    assert "flags underflow, overflow" in found.left_out
    silent = compare(flagged(), flagged((all_four, ""), (", tiny: unbounded", "")), budget=4000)
    assert silent.flags == () and "flags inexact, underflow, overflow, invalid" in silent.left_out
    assert (
        compare(
            flagged((all_four, ""), (", tiny: unbounded", "")),
            flagged((all_four, ""), (", tiny: unbounded", "")),
            budget=4000,
        ).left_out
        == ""
    )


def test_a_flag_is_reported_where_a_nan_has_other_bits() -> None:
    """A flag says more than the bits of a NaN."""
    signals = flagged(("0x7E00", "0x7E01"))
    found = compare(flagged(), signals, budget=4000)
    assert found.flags_alone == 0 < found.nan_payloads

    def wrong(**operands: np.ndarray) -> dict[str, np.ndarray]:
        results = signals.answers(operands)
        return results | {"flags": results["flags"] & 7}

    found = compare(flagged(), FunctionUnit.like(signals, wrong), budget=4000)
    assert found.flags_alone > 0 and found.example is not None and found.example.difference == "flags"


def test_a_function_that_returns_flags_of_another_size_is_refused() -> None:
    ins = flagged()
    unit = FunctionUnit.like(ins, lambda **one: {"d": ins.dot(**one), "flags": np.zeros(1, np.uint8)})
    with pytest.raises(OperandError, match="1 words of flags for 5 results"):
        unit.answers({name: np.zeros((5, 1), np.uint16) for name in "ab"} | {"c": np.zeros(5, np.uint16)})
    unit = FunctionUnit.like(ins, lambda **one: {"d": ins.dot(**one), "flags": np.full(5, 16, np.uint8)})
    with pytest.raises(OperandError, match="flags"):
        unit.answers({name: np.zeros((5, 1), np.uint16) for name in "ab"} | {"c": np.zeros(5, np.uint16)})


OWN = """unit: {name}
shape: {{k: {k}}}
define_formats:
  f7: {{kind: float, storage: 8, exponent_bits: 4, fraction_bits: 2, bias: {bias}, specials: none,
       zero: {zero}, signed: {zero}}}
formats: {{a: f7, b: f7, c: f32, d: f32}}
steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: nearest_even, overflow: infinity, zero: positive}}
"""


def own(name: str, k: int = 4, bias: int = 7, zero: str = "true") -> Instruction:
    return build_instruction(yamlfile.parse(OWN.format(name=name, k=k, bias=bias, zero=zero)))


def test_different_formats_of_one_name_are_distinguished() -> None:
    with pytest.raises(OperandError, match=r"operand a is f7 \(bias 7\) in x but f7 \(bias 9\) in y"):
        compare(own("x"), own("y", bias=9), budget=100)


def test_nothing_is_appended_to_operands_without_a_zero() -> None:
    """Code 0 is a number there, so that more elements are more terms."""
    assert not compare(own("x"), own("y", k=8), budget=4000).numeric
    with pytest.raises(OperandError, match="cannot append to K of x: a is f7 and b f7, which have no zero"):
        compare(own("x", zero="false"), own("y", k=8, zero="false"), budget=100)
    assert not compare(own("x", zero="false"), own("y", zero="false"), budget=4000).numeric
    plan, codes = golden.plan(own("x", zero="false")), np.zeros((3, 8), np.uint8)
    golden.gemm(codes, codes.T.copy(), plan)
    with pytest.raises(OperandError, match="cannot append to K of x"):
        golden.gemm(codes[:, :6], codes.T[:6].copy(), plan)
