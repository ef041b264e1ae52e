"""Units whose operand `mode` chooses a rounding, a format or a sign: the worked example against exact
rationals, and every view of such a unit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ieee import Ieee
from typer.testing import CliRunner

import golden
from golden import stimuli
from golden.catalog.unit_text import unit_text
from golden.cli.app import app
from golden.cover.coverage import Coverage
from golden.errors import CoreError, OperandError, ShapeError, SpecError
from golden.explain.specification import to_markdown
from golden.identify.comparing import compare
from golden.identify.diagnosis import diagnose
from golden.identify.minimising import minimise
from golden.model.engine import Engine
from golden.vectors import default_set, dpi, files
from golden.vectors.manifest import spec_hash
from golden.vectors.word import WordLayout

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
FMA = EXAMPLES / "fma_modes.yaml"
MAC = """
unit: mac
shape: {k: 2, m: 2, n: 3}
modes: {sign: [s8, u8], op: [none, null, c]}
formats: {a: $sign, b: s8, c: s32, d: s32}
steps:
  - multiply: {to: products, negate: $op}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""


@pytest.fixture(scope="module")
def fma():
    return golden.load_instruction(FMA)


@pytest.fixture
def mac(tmp_path):
    return unit(tmp_path, MAC)


def unit(folder, text):
    path = folder / "unit.yaml"
    path.write_text(text)
    return golden.load_instruction(path)


def expected_mac(a, b, c, mode):
    signed = a.astype(np.int64) if mode & 1 else a.view(np.int8).astype(np.int64)
    minus = -1 if mode >> 1 == 2 else 1
    total = (signed * b.view(np.int8)).sum(axis=-1) + minus * c.view(np.int32).astype(np.int64)
    return total.astype(np.uint32)


# Against independent truth ----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_example_is_ieee_in_all_its_modes(fma):
    f16, words = Ieee("f16"), dict(fma.modes.codes())
    vectors = default_set(fma, 4000, seed=3)
    assert set(vectors.operands["mode"].tolist()) == set(words) and len(words) == 20
    for i in range(len(vectors)):
        row = {name: codes[i] for name, codes in vectors.operands.items()}
        a, b, c = int(row["a"][0]), int(row["b"][0]), int(row["c"])
        mode = words[int(row["mode"])]
        minus = mode["op"] in ("product", "both"), mode["op"] in ("c", "both")
        want = f16.fma(a, b, c, mode["rnd"], *minus)
        shown = (hex(a), hex(b), hex(c), mode, hex(want), hex(int(vectors.d[i])))
        assert int(vectors.d[i]) == want == fma.reference_dot(**row), shown


def test_each_code_is_the_rounding_that_the_file_says(fma):
    """1 * 1 + 2**-12, by hand: only up goes up; -(1 * 1) - 2**-12: only down."""
    one, tiny = [0x3C00], 0x0C00
    assert [int(fma.dot(one, one, tiny, mode=m)) for m in range(5)] == [0x3C00] * 3 + [0x3C01, 0x3C00]
    both = [int(fma.dot(one, one, tiny, mode=24 + m)) for m in range(5)]
    assert both == [0xBC00, 0xBC00, 0xBC01, 0xBC00, 0xBC00]
    assert int(fma.dot(one, one, 0x3C00, mode=8)) == 0, "c - a * b is +0 to nearest"
    assert int(fma.dot(one, one, 0x3C00, mode=8 + 2)) == 0x8000, "and -0 downwards"


def test_a_mode_chooses_the_format_of_an_operand(mac):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 256, (300, 2)).astype(np.uint8) for _ in "ab")
    c = rng.integers(0, 1 << 32, 300, dtype=np.uint64).astype(np.uint32)
    mode = rng.choice(np.array([0, 1, 4, 5], np.uint8), 300)
    d = mac.dot(a, b, c, mode=mode)
    for i in range(300):
        assert int(d[i]) == int(expected_mac(a[i], b[i], c[i], int(mode[i])))
        assert int(d[i]) == mac.reference_dot(a[i], b[i], c[i], mode=mode[i])


# The operand ------------------------------------------------------------------------------------------------


def test_mode_broadcasts_like_any_operand(mac):
    rng = np.random.default_rng(3)
    a = rng.integers(0, 256, (4, 1, 2)).astype(np.uint8)
    b = rng.integers(0, 256, (3, 2)).astype(np.uint8)
    c = np.uint32(7)
    mode = np.array([0, 1, 4], np.uint8)
    d = mac.dot(a, b, c, mode=mode)
    assert d.shape == (4, 3)
    for i in range(4):
        for j in range(3):
            assert d[i, j] == mac.dot(a[i, 0], b[j], c, mode=mode[j])
    assert mac.dot(a, b, c, mode=4).shape == (4, 3)
    assert mac.dot(a[0, 0], b[0], c, mode=np.array([[4], [4]], np.uint8)).shape == (2, 1)
    assert mac.dot(a[:0], b, c, mode=mode).shape == (0, 3)


def test_a_product_of_matrices_has_one_mode(mac):
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 256, (5, 2, 2)).astype(np.uint8), rng.integers(0, 256, (5, 2, 3)).astype(np.uint8)
    c = rng.integers(0, 1 << 32, (5, 2, 3), dtype=np.uint64).astype(np.uint32)
    mode = np.array([0, 1, 4, 5, 0], np.uint8)
    d = mac(a, b, c, mode=mode)
    for i in range(5):
        np.testing.assert_array_equal(d[i], mac(a[i], b[i], c[i], mode=mode[i]))
        for row in range(2):
            for column in range(3):
                want = mac.dot(a[i, row], b[i, :, column], c[i, row, column], mode=mode[i])
                assert d[i, row, column] == want


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        (None, ShapeError, "argument 'mode' is missing"),
        (5, OperandError, "'mode' is 0x5: the unit does not use code 5 of field rnd, expected one of 0 near"),
        ([0, 7], OperandError, r"'mode'\[1\] is 0x7: the unit does not use code 7 of field rnd"),
        (32, OperandError, "expected a 5-bit mode code below 0x20"),
        (np.zeros(3, np.uint8), ShapeError, "do not broadcast"),
    ],
)
def test_bad_modes_are_refused(fma, mode, error, message):
    with pytest.raises(error, match=message):
        fma.dot(np.zeros((2, 1), np.uint16), np.zeros((2, 1), np.uint16), np.zeros(2, np.uint16), mode=mode)


def test_a_null_is_a_code_that_is_not_used(mac):
    with pytest.raises(OperandError, match="code 1 of field op, expected one of 0 none, 2 c"):
        mac.dot([0, 0], [0, 0], 0, mode=2)


def test_a_unit_without_modes_takes_none():
    tree = golden.load_instruction(EXAMPLES / "sticky_rne.yaml")
    with pytest.raises(ShapeError, match="argument 'mode' was given, but sticky_rne takes none"):
        tree.dot([0] * 4, [0] * 4, 0, mode=0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("op: [none, null, c]", "op: [none, nothing]", r"'nothing'.*\(in the mode sign s8, op nothing\)"),
        ("op: [none, null, c]", "op: []", "field 'op' has no value"),
        ("op: [none, null, c]", "op: [none], x: [1]", "field 'x' is used nowhere"),
        ("op: [none, null, c]", "op: none", "key 'op' is 'none', expected a list"),
        ("$op", "$opp", r"field 'op' is used nowhere, expected \$op in a step; nearest: opp"),
        ("[s8, u8]", "[s8, s4]", "operand a has 8 bits as s8, but 4 as s4 in mode 0x1"),
        ("d: s32", "d: $out", "in the mode|names no"),
        ("modes:", "modes: {}\nmoods:", "key 'modes' names no field"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, old, new, message):
    assert old in MAC
    with pytest.raises(SpecError, match=message):
        unit(tmp_path, MAC.replace(old, new))


def test_the_format_of_d_does_not_depend_on_the_mode(tmp_path):
    text = MAC.replace("[s8, u8]", "[s32, u32]").replace("a: $sign", "a: s8").replace("d: s32", "d: $sign")
    text = text.replace(
        "modes:", "define_formats: {u32: {kind: integer, storage: 32, bits: 32, signed: false}}\nmodes:"
    )
    with pytest.raises(SpecError, match="the format of d cannot depend on the mode"):
        unit(tmp_path, text)


# Views ------------------------------------------------------------------------------------------------------


def test_the_trace_is_of_the_mode_and_its_exact_value_has_the_signs(fma):
    trace = fma.trace([0x3C00], [0x4200], 0x2C00, mode=24 + 2)
    assert trace.as_dict()["instruction"] == "fma_modes (rnd down, op both)"
    assert trace.exact == -3 - 0.0625 and trace.error_ulp == 0


def test_every_code_is_drawn_and_packed(fma, mac, tmp_path):
    for kind in stimuli.KINDS:
        drawn = stimuli.generate(fma, kind, 40, np.random.default_rng(1))
        assert sorted(set(drawn["mode"].tolist())) == list(fma.mode_units)
    layout = WordLayout.of(fma)
    assert [(f.name, f.width, f.lsb) for f in layout.fields] == [
        ("a", 16, 37),
        ("b", 16, 21),
        ("c", 16, 5),
        ("mode", 5, 0),
        ("d", 16, 0),
    ]
    for ins, level in ((fma, "dot"), (mac, "tile")):
        written = default_set(ins, 60, level=level)
        for form in ("hex", "npz", "csv", "jsonl"):
            path = tmp_path / f"{level}.{form}"
            files.write(path, written)
            again = files.read(path, ins)
            np.testing.assert_array_equal(again.operands["mode"], written.operands["mode"])
            np.testing.assert_array_equal(again.d, written.d)


def test_a_vector_file_is_of_all_modes(fma, tmp_path):
    """Another rounding in the last mode alone makes it another unit."""
    other = unit(
        tmp_path, FMA.read_text().replace("op: [none, product, c, both]", "op: [none, product, both, c]")
    )
    assert spec_hash(other) != spec_hash(fma)


CHAINS = """
unit: chains
shape: {k: 8}
formats: {a: f16, b: f16, c: f32, d: f32}
modes: {p: [null, 4, 8, 2]}
program:
  - cofda: {products: $p, fraction_bits: 24}
"""


def test_modes_may_differ_in_the_number_of_operations(tmp_path):
    chains = unit(tmp_path, CHAINS)
    rows = {
        line.split(" | ")[0]: line for line in to_markdown(chains).splitlines() if line.startswith("| 0x")
    }
    assert "as described here" in rows["| 0x1"]
    assert "1 operation instead of 2; operation 0: k = 0..7 (8 products), from c, to d" in rows["| 0x2"]
    assert "operation 3: k = 6..7 (2 products)" in rows["| 0x3"]
    assert unit_text(chains) is None  # `$field` stands for values alone


FORMATS = """
unit: mixed
shape: {k: 2, m: 2, n: 3}
define_formats:
  mine: {kind: float, storage: 8, exponent_bits: 4, fraction_bits: 3, bias: 11, specials: none}
modes: {type: [mine, e5m2], kept: [10, 12, 24], up: [false, true]}
formats: {a: $type, b: e4m3, c: f32, d: f32}
steps:
  - multiply: {to: products, normalize: $up}
  - align: {of: [products, c], fraction_bits: $kept, rounding: toward_zero}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: nearest_even, overflow: ieee, zero: positive}
"""


@pytest.mark.parametrize("text", [MAC, FORMATS, FMA.read_text("utf-8")], ids=["mac", "formats", "fma"])
def test_a_unit_with_modes_is_written_out_and_read_back(tmp_path, text):
    ins = unit(tmp_path, text)
    written = unit_text(ins, "again")
    again = unit(tmp_path, written)
    assert again.modes == ins.modes and again.name == "again" and "$" in written
    for code, one in ins.mode_units.items():
        other = again.mode_units[code]
        assert (other.formats, other.shape) == (one.formats, one.shape)
        assert [o.arithmetic for o in other.program.operations] == [
            o.arithmetic for o in one.program.operations
        ]
    vectors = default_set(ins, 500)
    assert np.array_equal(again.dot(**vectors.operands), vectors.d)


def test_minimised_operands_keep_their_mode(fma):
    f16 = np.uint16
    operands = {"a": [0x3D55], "b": [0x4123], "c": f16(0x3C00), "mode": np.uint8(3)}
    given = {name: np.asarray(codes, f16 if name != "mode" else np.uint8) for name, codes in operands.items()}

    def differs(batch):
        return fma.dot(**batch) != fma.dot(**(batch | {"mode": np.zeros_like(batch["mode"])}))

    assert differs({name: codes[None] for name, codes in given.items()})[0]
    least = minimise(fma, given, differs)
    assert least["mode"] == 3 and differs({name: codes[None] for name, codes in least.items()})[0]


def test_compare_finds_the_mode_that_differs(fma, tmp_path):
    text = FMA.read_text()
    other = unit(
        tmp_path, text.replace("toward_zero, down, up, nearest_away]", "down, toward_zero, up, nearest_away]")
    )
    with pytest.raises(OperandError, match="have different modes"):
        compare(fma, other, budget=100)
    changed = unit(tmp_path, text.replace("zero: signed", "zero: positive"))
    found = compare(fma, changed, budget=20_000)
    assert found.example is not None and found.example.difference == "zero_sign"
    assert compare(fma, fma, budget=2000).numeric == 0


def test_a_diagnosis_is_of_the_mode_that_fails(fma):
    vectors = default_set(fma, 6000)
    mode = vectors.operands["mode"]
    wrong = fma.dot(**(vectors.operands | {"mode": np.where(mode == 1, 0, mode).astype(np.uint8)}))
    found = diagnose(fma, vectors.operands, wrong)
    assert found.instruction is fma.mode_units[1]
    assert "Results differ in 1 of 20 modes (rnd toward_zero, op none)" in found.sentence()
    assert found.explains and "with one fault: RNE instead of RZ" in found.sentence(), found.sentence()


def test_coverage_counts_every_mode(mac):
    coverage = Coverage(mac)
    vectors = default_set(mac, 3000)
    coverage.sample_set(vectors)
    assert coverage.hits["mode"].sum() == 3000 and (coverage.hits["mode"] > 0).all()
    only = Coverage(mac)
    chosen = vectors.operands["mode"] == 0
    only.sample({name: codes[chosen] for name, codes in vectors.operands.items()}, vectors.d[chosen])
    holes = {point for point, _ in only.holes()}
    assert "mode" in holes and any(point.startswith("sign u8, op none: ") for point in holes)


def test_what_models_one_program_refuses_the_unit(fma, tmp_path):
    """A DPI model has them all, or is of one."""
    with pytest.raises(CoreError, match="a program for each"):
        Engine(fma.program, fma)
    assert dpi.write(fma, tmp_path / "all") and dpi.write(fma.mode_units[24], tmp_path / "one", prefix="one")


def test_the_command_takes_a_mode(tmp_path):
    run = CliRunner()
    words = ["explain", str(FMA), "--a", "1", "--b", "1", "--c", "0x0c00", "--mode", "0x3", "--json"]
    reported = json.loads(run.invoke(app, words).output)
    assert reported["d"] == "0x3c01"
    for name, codes in (("a", "3c00"), ("b", "3c00"), ("c", "0c00"), ("mode", "03")):
        (tmp_path / f"{name}.hex").write_text(codes + "\n")
    files_ = [
        word for name in ("a", "b", "c", "mode") for word in (f"--{name}", str(tmp_path / f"{name}.hex"))
    ]
    assert "3c01" in run.invoke(app, ["run", str(FMA), "--dot", *files_]).output
    assert "rnd, bits 2..0" in run.invoke(app, ["show", str(FMA)]).output
