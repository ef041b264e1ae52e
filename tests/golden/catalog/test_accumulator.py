"""Units that keep their accumulator: against a plain loop over the reference, and in every view."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden import stimuli
from golden.cli.app import app
from golden.cover.coverage import Coverage
from golden.errors import CoreError, FileFormatError, OperandError, ShapeError, SpecError
from golden.identify.comparing import compare
from golden.identify.diagnosis import diagnose
from golden.identify.probe.probes import Probe
from golden.model.engine import Engine
from golden.program.state import places
from golden.stimuli.sequences import operands_for_results
from golden.vectors import default_set, dpi, files
from golden.vectors.manifest import spec_hash
from golden.vectors.vectorset import excerpt, join, stream
from golden.vectors.word import WordLayout

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
UNIT = EXAMPLES / "accumulator.yaml"
MAC = """
unit: mac
shape: {k: 2}
modes: {sign: [s8, u8], op: [none, null, c]}
formats: {a: $sign, b: s8, d: s32}
accumulator: state
steps:
  - multiply: {to: products, negate: $op}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""


@pytest.fixture(scope="module")
def ins():
    return golden.load_instruction(UNIT)


@pytest.fixture(scope="module")
def mac(tmp_path_factory):
    return unit(tmp_path_factory.mktemp("mac"), MAC)


def unit(folder, text):
    path = folder / "unit.yaml"
    path.write_text(text)
    return golden.load_instruction(path)


def looped(ins, operands, held=0):
    """One dot product after the other, by the reference, as one reads the definition."""
    results = []
    for i, clear in enumerate(operands["clear"].tolist()):
        row = {name: codes[i] for name, codes in operands.items() if name != "clear"}
        held = ins.stateless.reference_dot(**row, c=0 if clear else held)
        results.append(held)
    return np.array(results, ins.formats["d"].dtype)


# Against independent truth ----------------------------------------------------------------------------------


def test_it_is_a_loop_over_the_reference(ins):
    vectors = default_set(ins, 3000, seed=4)
    np.testing.assert_array_equal(vectors.d, looped(ins, vectors.operands))
    lengths = np.diff(np.flatnonzero(np.append(vectors.operands["clear"], 1)))
    assert lengths.min() == 1 and lengths.max() >= 16


def test_long_sequences_pass_each_power_of_two_up_to_1024() -> None:
    """A counter of additions of up to ten bits overflows, at the default number of vectors."""
    operands = default_set(golden.load_instruction(UNIT), 200_000, seed=1).operands
    met = np.bincount(np.diff(np.flatnonzero(np.append(operands["clear"], 1))), minlength=1281)
    assert met[[40, 80, 160, 320, 640, 1280]].min() >= 3, met.nonzero()


def test_the_example_is_exact_arithmetic_in_a_loop(ins):
    """Rationals that share nothing with the package, one dot product after the other."""
    vectors, held = default_set(ins, 2500, seed=8), 0
    for i in range(len(vectors)):
        held = 0 if vectors.operands["clear"][i] else held
        a, b = ([exact.decode("f16", int(code)) for code in vectors.operands[name][i]] for name in "ab")
        held = exact.fda(a, b, exact.decode("f32", held), "f32", 24, -131)
        assert int(vectors.d[i]) == held, (i, a, b)


def test_by_hand(ins):
    """1 + 2 + 4, cleared, 8; and what holds a NaN holds it until it is cleared."""
    one = np.array([[0x3C00, 0, 0, 0]], np.uint16)
    b = np.array([[0x3C00], [0x4000], [0x4400], [0x4800]], np.uint16) * np.ones((1, 4), np.uint16)
    sums = ins.dot(one, b, clear=[0, 0, 0, 1]).view(np.float32)
    assert sums.tolist() == [1, 3, 7, 8]
    nan = ins.dot(np.array([[0x7E00] * 4, *[[0] * 4] * 3], np.uint16), b, clear=[0, 0, 1, 0]).view(np.float32)
    assert np.isnan(nan).tolist() == [True, True, False, False]


def test_modes_and_integers(mac):
    vectors = default_set(mac, 2000, seed=2)
    assert set(vectors.operands["mode"].tolist()) == {0, 1, 4, 5}
    held, wanted = 0, []
    for i in range(2000):
        a, b, mode, clear = (vectors.operands[name][i] for name in ("a", "b", "mode", "clear"))
        x = a.astype(int) if int(mode) & 1 else a.view(np.int8).astype(int)
        held = 0 if clear else held
        held = int((x * b.view(np.int8).astype(int)).sum()) + (-held if int(mode) >> 1 == 2 else held)
        held = (held + (1 << 31)) % (1 << 32) - (1 << 31)
        wanted.append(held % (1 << 32))
    np.testing.assert_array_equal(vectors.d, np.array(wanted, np.uint32))


def test_status_flags_are_those_of_each_dot_product(tmp_path):
    text = MAC.replace("accumulator: state", "accumulator: state\nflags: [inexact, overflow]")
    mac = unit(tmp_path, text.replace("wrap", "saturate"))
    vectors = default_set(mac, 2000, seed=2)
    given = mac.resolve(vectors.operands, vectors.d)
    np.testing.assert_array_equal(mac.stateless.flags(**given), vectors.flags)
    np.testing.assert_array_equal(mac.flags(**vectors.operands), vectors.flags)
    a, b = np.full((3, 2), 0x80, np.uint8), np.full((3, 2), 0x80, np.uint8)
    zero = np.zeros(3, np.uint8)
    top = mac.answers({"a": a, "b": b, "mode": zero, "clear": zero}, held=0x7FFFFFFF)
    assert top["flags"].tolist() == [3, 3, 3] and top["d"].tolist() == [0x7FFFFFFF] * 3
    path = tmp_path / "v.csv"
    files.write(path, vectors)
    np.testing.assert_array_equal(files.read(path, mac).flags, vectors.flags)


def test_time_is_the_last_leading_axis(ins):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 0x4400, (3, 7, 4)).astype(np.uint16)
    b = rng.integers(0, 0x4400, (7, 4)).astype(np.uint16)
    clear = rng.integers(0, 2, (3, 1)).astype(np.uint8) * np.array([1, 0, 0, 1, 0, 0, 0], np.uint8)
    d = ins.dot(a, b, clear=clear)
    assert d.shape == (3, 7)
    for i in range(3):
        np.testing.assert_array_equal(d[i], looped(ins, {"a": a[i], "b": b, "clear": clear[i]}))
    assert ins.dot(a[0, 0], b[0], clear=0) == ins.dot(a[0, 0], b[0], clear=1) == d[0, 0]
    assert ins.dot(a[:, :0], b[:0], clear=0).shape == (3, 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 120), st.floats(0, 0.6))
def test_splitting_at_clears_changes_nothing(seed, count, often):
    ins = golden.load_instruction(UNIT)
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 1 << 16, (count, 4)).astype(np.uint16) & 0xBFFF for _ in "ab")
    clear = (rng.random(count) < often).astype(np.uint8)
    d = ins.dot(a, b, clear=clear)
    cuts = [0, *np.flatnonzero(clear[1:]) + 1, count]
    parts = [ins.dot(a[i:j], b[i:j], clear=clear[i:j]) for i, j in pairwise(cuts)]
    np.testing.assert_array_equal(d, np.concatenate(parts))
    np.testing.assert_array_equal(ins.stateless.dot(**ins.resolve({"a": a, "b": b, "clear": clear}, d)), d)


# What is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b: s8, d", "b: s8, c: s8, d", "c is s8 and d is s32, expected one format"),
        ("accumulator: state", "accumulator: stat", "expected one of operand, state; nearest: state"),
        ("accumulator: state", "accumulator: operand", "'c'|c "),
        ("accumulator: state", "accumulator: null", "the operation has no c"),
        ("of: [products, c]", "of: products", r"unit.yaml:6: .*d does not depend on c.*expected a step"),
        ("d: s32}", "d: ue8m0}", "cleared to zero, but ue8m0|in the mode"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, old, new, message):
    assert old in MAC
    with pytest.raises(SpecError, match=message):
        unit(tmp_path, MAC.replace(old, new))


SUM = "{sum: {of: products, to: total}}, "
ROUND = "{round: {of: total, rounding: toward_zero, overflow: infinity, zero: positive}}"
PATHS = {
    "dead sum": ("{sum: {of: [products, c], to: partial}}, " + SUM + ROUND, False),
    "product alone": ("{fma: {to: d, rounding: nearest_even, start: product}}", False),
    "fma": ("{fma: {to: d, rounding: nearest_even}}", True),
    "NaN alone": ("{special_values: {of: [products, c], nan: 0x7E00}}, " + SUM + ROUND, True),
    "exponent alone": (
        "{align: {of: [products, c], fraction_bits: 8, rounding: toward_zero}}, " + SUM + ROUND,
        True,
    ),
    "flushed and left": ("{flush: {of: c, sign: positive}}, " + SUM + ROUND, False),
    "turned and left": ("{multiply: {to: products, negate: c}}, " + SUM + ROUND, False),
}


@pytest.mark.parametrize("name", PATHS)
def test_what_the_unit_holds_is_of_use(tmp_path, name):
    """Or the unit needs no accumulator: the file says what it does not mean."""
    steps, reads = PATHS[name]
    first = "" if "fma" in steps else "{multiply: {to: products}}, "
    text = "unit: u\nshape: {k: 1}\nformats: {a: f16, b: f16, d: f16}\naccumulator: state\n"
    text += f"steps: [{first}{steps}]\n"
    if reads:
        assert unit(tmp_path, text).state
    else:
        with pytest.raises(SpecError, match=r"unit.yaml:4: .*does not depend on c"):
            unit(tmp_path, text)


def test_c_may_be_of_use_in_one_mode_or_by_way_of_an_operation(tmp_path):
    text = "unit: u\nshape: {k: 2}\nformats: {a: f16, b: f16, d: f16}\naccumulator: state\n"
    fma = "{fma: {to: d, rounding: nearest_even, start: %s}}"
    moded = "modes: {start: [c, zero]}\n" + text + f"steps: [{fma % '$start'}]\n"
    assert unit(tmp_path, moded).state
    two = "program:\n  - {k: {modulo: 2, residues: [0]}, to: x, steps: [%s]}\n"
    two += "  - {k: {modulo: 2, residues: [1]}, to: d, steps: [%s]}\n"
    for first, second, reads in (("c", "c", True), ("zero", "c", False), ("c", "zero", False)):
        chain = text + two % (fma % first, fma % second)
        if reads:
            assert unit(tmp_path, chain).state
        else:
            with pytest.raises(SpecError, match="does not depend on c"):
                unit(tmp_path, chain)


def test_operands_are_those_of_the_unit(ins, mac):
    zeros = np.zeros((2, 4), np.uint16)
    for operands, error, message in (
        ({}, ShapeError, "argument 'clear' is missing"),
        ({"c": 0, "clear": 0}, ShapeError, "argument 'c' was given, but accumulator takes none"),
        ({"clear": 2}, OperandError, "clear"),
        ({"clear": [0, 0, 0]}, ShapeError, "do not broadcast"),
    ):
        with pytest.raises(error, match=message):
            ins.dot(zeros, zeros, **operands)
    with pytest.raises(ShapeError, match="argument 'clear' was given, but accumulator takes none"):
        ins.stateless.dot(zeros, zeros, 0, clear=0)
    with pytest.raises(ShapeError, match=r"keeps its accumulator.*dot\(a, b, clear"):
        ins(zeros[None, :1], zeros[None, :1].swapaxes(1, 2))


def test_what_models_one_dot_product_refuses_it(ins, tmp_path):
    with pytest.raises(OperandError, match="a DPI model keeps nothing"):
        dpi.write(ins, tmp_path)
    with pytest.raises(CoreError, match="in order of time"):
        Engine(ins.program, ins)
    with pytest.raises(OperandError, match="expected dot: accumulator keeps its accumulator"):
        default_set(ins, 10, level="tile")
    with pytest.raises(OperandError, match="expected dot"):
        WordLayout.of(ins, "tile")
    with pytest.raises(OperandError, match="cannot probe"):
        Probe(ins)
    assert dpi.write(ins.stateless, tmp_path / "one", prefix="one")


# Vectors ----------------------------------------------------------------------------------------------------


def test_clear_is_the_lowest_bit_of_the_word(ins, mac):
    assert [(f.name, f.width, f.lsb) for f in WordLayout.of(ins).fields] == [
        ("a", 64, 65),
        ("b", 64, 1),
        ("clear", 1, 0),
        ("d", 32, 0),
    ]
    assert WordLayout.of(mac).operand_fields[-1].name == "clear"


def test_a_set_is_the_beginning_of_every_longer_one_and_blocks_stand_alone(ins):
    whole = default_set(ins, 20_000, seed=9)
    for count in (100, 8193):
        part = default_set(ins, count, seed=9)
        for name, codes in part.operands.items():
            np.testing.assert_array_equal(codes, whole.operands[name][:count])
        np.testing.assert_array_equal(part.d, whole.d[:count])
    assert whole.operands["clear"][[0, 8192, 16384]].all()
    pieces = list(stream(ins, 20_000, 9, chunk=777))
    np.testing.assert_array_equal(join(pieces).d, whole.d)
    np.testing.assert_array_equal(excerpt(ins, 9, "dot", None, 8000, 900).d, whole.d[8000:8900])


def test_slices_keep_what_the_unit_held(ins):
    vectors = default_set(ins, 500, seed=3)
    clear = vectors.operands["clear"]
    moved = np.roll(vectors.d, 1) != np.roll(vectors.d, 2)
    inside = int(np.flatnonzero((places(clear) == 2) & moved)[3])
    part = vectors[inside:]
    assert part.held == int(vectors.d[inside - 1])
    np.testing.assert_array_equal(looped(ins, part.operands, part.held), part.d)
    np.testing.assert_array_equal(part.resolved()["c"], vectors.resolved()["c"][inside:])
    assert vectors[:inside].stands_alone and vectors.stands_alone
    with pytest.raises(OperandError, match=f"vector {inside} starts from the result of vector {inside - 1}"):
        vectors[np.array([0, inside])]
    picked = vectors.with_history(np.array([inside, 100]))
    assert {inside - 2, inside - 1, inside, 100} <= set(picked.tolist())
    alone = vectors[picked]
    assert alone.stands_alone
    np.testing.assert_array_equal(ins.dot(**alone.operands), alone.d)
    with pytest.raises(OperandError, match="starts from another result"):
        join([vectors[: inside - 1], part])


def test_files_hold_clear_and_are_checked_across_their_parts(ins, mac, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK", 100)
    for one in (ins, mac):
        vectors = default_set(one, 1000, seed=7)
        assert not vectors.operands["clear"][100::100].all(), "some part starts inside a sequence"
        for form in ("hex", "npz", "csv", "jsonl", "sv"):
            path = tmp_path / f"{one.name}.{form}"
            files.write(path, vectors)
            again = files.read(path, one)
            np.testing.assert_array_equal(again.operands["clear"], vectors.operands["clear"])
            np.testing.assert_array_equal(again.d, vectors.d)
    assert spec_hash(ins) != spec_hash(ins.stateless)
    path = tmp_path / "signals.csv"
    files.write_stream(path, ins, 200, seed=3, with_signals=True)
    assert files.check(path, ins).fields[2]["name"] == "clear"


def test_an_edited_line_is_found(ins, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK", 100)
    path = tmp_path / "v.csv"
    vectors = default_set(ins, 400, seed=7)
    files.write(path, vectors)
    lines = path.read_text().splitlines()
    index = int(np.flatnonzero((places(vectors.operands["clear"]) == 2) & (np.arange(400) > 120))[0])
    where = index + 1  # line 0 names the columns
    cells = lines[where].split(",")
    cells[3] = f"{int(cells[3], 16) ^ 1:08x}"
    path.write_text("\n".join([*lines[:where], ",".join(cells), *lines[where + 1 :]]) + "\n")
    with pytest.raises(FileFormatError, match=f"v.csv:{where + 1}: edited"):
        files.check(path, ins)


def test_a_dot_product_makes_the_c_that_is_wanted(ins):
    """Whatever the products of f16 reach is made exactly, NaNs, infinities and zeros too."""
    rng = np.random.default_rng(1)
    values = np.ldexp(rng.integers(-(1 << 24), 1 << 24, 500) / 2.0**23, rng.integers(-10, 20, 500))
    wanted = np.concatenate([values, [0.0, np.inf, -np.inf]]).astype(np.float32).view(np.uint32)
    made = operands_for_results(ins, {}, wanted, np.arange(len(wanted)), rng)
    np.testing.assert_array_equal(ins.stateless.dot(**made, c=np.uint32(0)), wanted)
    nan = operands_for_results(ins, {}, np.array([0x7FFFFFFF], np.uint32), np.arange(1), rng)
    assert ins.dot(**nan, clear=[1]).tolist() == [0x7FFFFFFF]


@pytest.mark.parametrize("kind", long_after(16, stimuli.KINDS))
def test_every_kind_comes_in_sequences(ins, mac, kind):
    for one in (ins, mac):
        drawn = stimuli.generate(one, kind, 60, np.random.default_rng(1))
        assert drawn["clear"][0] == 1 and set(drawn) == set(one.operand_shapes(False))
        np.testing.assert_array_equal(one.dot(**drawn), looped(one, drawn))


# Views ------------------------------------------------------------------------------------------------------


def test_one_wrong_result_does_not_make_the_next_ones_wrong(ins):
    vectors = default_set(ins, 4000, seed=5)
    held, actual = 0, vectors.d.copy()
    at = int(np.flatnonzero((places(vectors.operands["clear"]) == 1) & (vectors.d != 0))[30])
    for i in range(at, 4000):  # the unit goes on with what it wrongly answered
        if i > at and vectors.operands["clear"][i]:
            break
        row = {name: vectors.operands[name][i] for name in "ab"}
        held = int(vectors.d[i]) ^ 1 if i == at else int(ins.stateless.dot(**row, c=np.uint32(held)))
        actual[i] = held
    resolved = ins.resolve(vectors.operands, actual)
    assert np.flatnonzero(ins.stateless.dot(**resolved) != actual).tolist() == [at]


def test_a_diagnosis_finds_the_arithmetic(ins, tmp_path):
    other = unit(tmp_path, UNIT.read_text().replace("fraction_bits: 24", "fraction_bits: 25"))
    vectors = default_set(ins, 6000, seed=5)
    found = diagnose(ins, vectors.operands, other.dot(**vectors.operands))
    assert found.explains and "25" in found.sentence(), found.sentence()
    assert compare(ins, other, budget=20_000).numeric > 0
    assert compare(ins, ins.stateless, budget=2000).numeric == 0


def test_coverage_is_of_the_dot_products(ins):
    vectors = default_set(ins, 5000, seed=5)
    coverage, plain = Coverage(ins), Coverage(ins.stateless)
    coverage.sample_set(vectors)
    plain.sample(vectors.resolved(), vectors.d)
    lone = "class of c alone: exponent"  # of what is held nobody chooses it
    assert plain.hits.keys() - coverage.hits.keys() == {lone}
    assert all((coverage.hits[name] == hits).all() for name, hits in plain.hits.items() if name != lone)
    assert coverage.percent > 85


def test_the_command(tmp_path):
    run = CliRunner()
    for name, codes in (("a", "3c00 0 0 0 " * 3), ("b", "3c00 0 0 0 " * 3), ("clear", "1 0 0")):
        (tmp_path / f"{name}.hex").write_text(codes + "\n")
    given_ = [word for n in ("a", "b", "clear") for word in (f"--{n}", str(tmp_path / f"{n}.hex"))]
    assert "3f800000\n40000000\n40400000" in run.invoke(app, ["run", str(UNIT), "--dot", *given_]).output
    reported = run.invoke(app, ["explain", str(UNIT), "--a", "1", "--b", "1", "--c", "2", "--json"]).output
    assert '"d": "0x40400000"' in reported
    assert "accumulator" in run.invoke(app, ["show", str(UNIT)]).output
    assert "clear" in run.invoke(app, ["export", str(UNIT)]).output
    out = tmp_path / "v.hex"
    assert run.invoke(app, ["vectors", str(UNIT), "--count", "50", "--out", str(out)]).exit_code == 0


NARROW = """
unit: adder_of_bytes
shape: {k: 1}
formats: {a: s8, b: s8, d: s32}
accumulator: state
steps:
  - multiply: {to: products}
  - sum: {of: [products, c], to: total}
  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}
"""


def test_integer_accumulators_grow_far_beyond_a_product(tmp_path):
    """A register of 24 bits, too narrow by eight, does not pass for one of 32."""
    ins = unit(tmp_path, NARROW)
    vectors = default_set(ins, 20_000, 1)
    held, wrong = 0, 0
    rows = zip(
        *(vectors.operands[name].tolist() for name in ("a", "b", "clear")), vectors.d.tolist(), strict=True
    )
    for a, b, clear, d in rows:
        product = int(np.int8(np.uint8(a[0]))) * int(np.int8(np.uint8(b[0])))
        held = ((0 if clear else held) + product + (1 << 23)) % (1 << 24) - (1 << 23)
        wrong += held & 0xFFFFFFFF != d
    assert wrong > 100
    assert vectors.operands["clear"][0] == 1
