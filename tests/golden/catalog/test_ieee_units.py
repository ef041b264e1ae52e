"""Units without b or without c: the IEEE adder and multiplier of spec/examples against NumPy and exact
rationals, a converter, and every view of such units."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from ieee import ROUNDINGS, Ieee
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.catalog.unit_text import unit_text
from golden.cli.app import app
from golden.cover.aiming import aim
from golden.cover.coverage import Coverage
from golden.errors import ShapeError, SpecError
from golden.identify.comparing import compare
from golden.identify.diagnosis import diagnose
from golden.identify.minimising import minimise
from golden.publish import document
from golden.vectors import default_set, files
from golden.vectors.word import WordLayout

EXAMPLES = Path(__file__).parents[3] / "spec" / "examples"
F32 = Ieee("f32")
OTHER = {"ieee_add": "c", "ieee_multiply": "b"}
CONVERT = """
unit: narrow
shape: {k: 1}
formats: {a: f32, d: f16}
modes: {rnd: [nearest_even, toward_zero, down, up, nearest_away]}
steps:
  - special_values: {of: a, nan: 0x7E00}
  - round: {of: a, rounding: $rnd, overflow: ieee, zero: signed}
"""


def load(name):
    return golden.load_instruction(EXAMPLES / f"{name}.yaml")


def unit(folder, text):
    path = folder / "unit.yaml"
    path.write_text(text)
    return golden.load_instruction(path)


def directed():
    """Codes of f32 at every edge, and pairs of them in both orders."""
    edges = [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x4B800000]
    edges += [0x4B800001, 0x33800000, 0x33800001, 0x33000000, 0x32FFFFFF, 0x7F7FFFFF, 0x7F7FFFFE]
    edges += [0x73000000, 0x1A000000, 0x25800000, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF]
    codes = np.array([*edges, *(code | 0x80000000 for code in edges)], np.uint32)
    x, y = np.meshgrid(codes, codes)
    return x.reshape(-1), y.reshape(-1)


def near(rng, count):
    """Random pairs whose exponents lie close together, where cancellation and ties happen."""
    x = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    shift = rng.integers(-27, 28, count) << 23
    y = ((x.astype(np.int64) + shift) & 0x7FFFFFFF).astype(np.uint32) ^ rng.integers(
        0, 1 << 8, count, dtype=np.uint64
    ).astype(np.uint32)
    return x, y | (rng.integers(0, 2, count) << 31).astype(np.uint32)


@pytest.mark.parametrize("name", OTHER)
def test_to_nearest_it_is_numpys(name):
    """30,000 random and directed pairs to nearest even; NaNs are one word."""
    ins, rng = load(name), np.random.default_rng(8)
    random = rng.integers(0, 1 << 32, (2, 10_000), dtype=np.uint64).astype(np.uint32)
    pairs = [directed(), near(rng, 20_000), random]
    x, y = (np.concatenate([np.asarray(pair[i]) for pair in pairs]) for i in (0, 1))
    with np.errstate(all="ignore"):
        operate = np.add if name == "ieee_add" else np.multiply
        want = operate(x.view(np.float32), y.view(np.float32))
    got = ins.dot(x[:, None], **({"c": y} if name == "ieee_add" else {"b": y[:, None]}), mode=0)
    expected = np.where(np.isnan(want), np.uint32(0x7FC00000), want.view(np.uint32))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", long_after(1, OTHER))
def test_every_rounding_is_exact(name):
    """All five modes on directed pairs and drawn vectors, in both models, against rationals."""
    ins, operate = load(name), F32.add if name == "ieee_add" else F32.multiply
    assert tuple(sorted(values["rnd"] for _, values in ins.modes.codes())) == tuple(sorted(ROUNDINGS))
    vectors = default_set(ins, 1000, seed=4)
    words = dict(ins.modes.codes())
    for i in range(len(vectors)):
        row = {key: codes[i] for key, codes in vectors.operands.items()}
        x, y = int(row["a"][0]), int(np.ravel(row[OTHER[name]])[0])
        want = operate(x, y, words[int(row["mode"])]["rnd"])
        assert int(vectors.d[i]) == want == ins.reference_dot(**row), (hex(x), hex(y), row["mode"])
    x, y = directed()
    rows = np.random.default_rng(1).choice(len(x), 160, replace=False)
    for code, values in words.items():
        other = {"c": y} if name == "ieee_add" else {"b": y[:, None]}
        got = ins.dot(x[:, None], **other, mode=code)
        for i in rows:
            assert int(got[i]) == operate(int(x[i]), int(y[i]), values["rnd"]), (hex(x[i]), hex(y[i]), values)


def test_signed_zeros_of_the_adder():
    """x - x is -0 downwards only; -0 + -0 is -0 in every rounding; by hand."""
    add = load("ieee_add")
    for mode, rounding in enumerate(("nearest_even", "toward_zero", "down", "up", "nearest_away")):
        down = 0x80000000 if rounding == "down" else 0
        assert int(add.dot([0x3F800000], c=0xBF800000, mode=mode)) == down
        assert int(add.dot([0], c=0x80000000, mode=mode)) == down
        assert int(add.dot([0x80000000], c=0x80000000, mode=mode)) == 0x80000000


def test_a_converter_has_neither(tmp_path):
    """f32 to f16 in five roundings; to nearest even it is NumPy's astype."""
    ins, rng = unit(tmp_path, CONVERT), np.random.default_rng(6)
    assert ins.absent == ("b", "c") and list(ins.own_formats) == ["a", "d"]
    codes = rng.integers(0, 1 << 32, 20_000, dtype=np.uint64).astype(np.uint32)
    around = (np.arange(0x10000, dtype=np.uint16).view(np.float16).astype(np.float32)).view(np.uint32)
    codes = np.concatenate([codes, around, around + 1, around - 1, around + 0x1000])
    with np.errstate(all="ignore"):
        want = codes.view(np.float32).astype(np.float16)
    expected = np.where(np.isnan(want), np.uint16(0x7E00), want.view(np.uint16))
    np.testing.assert_array_equal(ins.dot(codes[:, None], mode=0), expected)
    f16 = Ieee("f16")
    for i in rng.choice(len(codes), 100):
        value, sign = F32.term(int(codes[i]))
        for mode, values in ins.modes.codes():
            got = int(ins.dot(codes[i : i + 1], mode=mode))
            assert got == ins.reference_dot(codes[i : i + 1], mode=mode)
            if value in ("nan", "inf"):
                assert got == (f16.nan if value == "nan" else f16.signed(f16.infinity, sign))
            else:
                assert got == (f16.rounded(value, values["rnd"]) if value else f16.signed(0, sign))


# What the unit does not have --------------------------------------------------------------------------------


def test_an_operand_that_the_unit_does_not_have_is_refused():
    one = [0x3F800000]
    with pytest.raises(ShapeError, match="argument 'b' was given, but ieee_add takes none"):
        load("ieee_add").dot(one, one, 0, mode=0)
    with pytest.raises(ShapeError, match="argument 'c' was given, but ieee_multiply takes none"):
        load("ieee_multiply").dot(one, one, 0, mode=0)
    with pytest.raises(ShapeError, match="argument 'c' is missing"):
        load("ieee_add").dot(one, mode=0)
    with pytest.raises(ShapeError, match="argument 'b' is missing"):
        load("sticky_rne").dot([0] * 4)


@pytest.mark.parametrize(
    ("formats", "steps", "message"),
    [
        ("a: f32, c: f32, d: f32", "[{multiply: {to: products}}]", "reads register 'b', but the unit has no"),
        ("a: f32, b: f32, d: f32", "[{sum: {of: [a, c], to: total}}]", "register 'c', but the operation has"),
        (
            "a: f32, b: f32, d: f32",
            "[{multiply: {to: products, negate: c}}]",
            "reads register 'c', but the operation has no c",
        ),
        ("a: f32, b: f32, d: f32", "[{fma: {to: d, rounding: up}}]", "reads register 'c'"),
        ("a: f32, c: f32, d: f32", "[{fma: {to: d, rounding: up}}]", "reads register 'b'"),
        (
            "a: f32, b: f32, c: f32, d: f32",
            "[{fma: {to: d, rounding: up}}, {fma: {to: d, rounding: toward_zero}}]",
            "step 'fma' follows one that writes d",
        ),
        ("b: f32, c: f32, d: f32", "[]", "key 'a' is missing"),
        ("a: f32, b: f32", "[]", "key 'd' is missing"),
    ],
)
def test_no_step_reads_it(tmp_path, formats, steps, message):
    with pytest.raises(SpecError, match=message):
        unit(tmp_path, f"unit: u\nshape: {{k: 1}}\nformats: {{{formats}}}\nsteps: {steps}\n")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("{fda: {fraction_bits: 24}, seed: c}", "the unit has no operand c"),
        ("{fda: {fraction_bits: 24}}", "register 'c', but the operation has no c"),
        ("{ieee_add: {}, k: all, seed: zero, addends: [c]}", "the unit has no operand c"),
    ],
)
def test_no_operation_starts_from_it(tmp_path, operation, message):
    text = "unit: u\nshape: {k: 4}\nformats: {a: f16, b: f16, d: f32}\nprogram:\n  - "
    with pytest.raises(SpecError, match=message):
        unit(tmp_path, text + operation)
    seeded = unit(tmp_path, text + "{fda: {fraction_bits: 24, exponent_floor: -133}, seed: zero}")
    assert int(seeded.dot([0x3C00] * 4, [0x3C00] * 4)) == 0x40800000


def test_the_matrix_call_of_a_unit_without_b(tmp_path):
    text = "unit: u\nshape: {k: 2, m: 2, n: 3}\nformats: {a: s8, c: s32, d: s32}\nsteps:\n"
    text += "  - sum: {of: [a, c], to: total}\n"
    text += "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    ins, rng = unit(tmp_path, text), np.random.default_rng(1)
    a = rng.integers(0, 256, (5, 2, 2)).astype(np.uint8)
    c = rng.integers(0, 1 << 32, (5, 2, 3), dtype=np.uint64).astype(np.uint32)
    d = ins(a, c=c)
    want = a.view(np.int8).astype(np.int64).sum(axis=-1)[..., None] + c.view(np.int32)
    np.testing.assert_array_equal(d, want.astype(np.uint32))
    np.testing.assert_array_equal(ins.dot(a[:, 0], c=c[:, 0, 1]), d[:, 0, 1])


# Views ------------------------------------------------------------------------------------------------------


def test_the_word_has_no_such_field(tmp_path):
    assert [field.name for field in WordLayout.of(load("ieee_add")).fields] == ["a", "c", "mode", "d"]
    assert [field.name for field in WordLayout.of(load("ieee_multiply")).fields] == ["a", "b", "mode", "d"]
    for name in OTHER:
        ins = load(name)
        for form, level in (("hex", "dot"), ("npz", "tile"), ("csv", "dot")):
            written = default_set(ins, 50, level=level)
            path = tmp_path / f"{name}.{form}"
            files.write(path, written, with_signals=form == "csv")
            again = files.read(path, ins)
            assert list(again.operands) == list(written.operands)
            np.testing.assert_array_equal(again.d, written.d)


def test_a_unit_written_out_is_the_same_unit(tmp_path):
    for name in OTHER:
        plain = load(name).plain
        again = unit(tmp_path, unit_text(plain))
        assert again.absent == plain.absent
        assert again.program.operations[0].arithmetic == plain.program.operations[0].arithmetic


SECTIONS = ("Formats", "Computation", "Datapath", "Special values", "Example", "Against IEEE 754", "Evidence")


def test_documents_have_every_section(tmp_path):
    """What a unit lacks an operand for is left out of a sentence, never a whole section."""
    for name in (*OTHER, "fma_modes"):
        ins = load(name)
        text = document.to_markdown(ins)
        for section in SECTIONS:
            assert f"\n## {section}\n" in text, (name, section)
        assert "| Case | Operands | d | IEEE 754 |" in text
        assert ("Unlike the chain of additions" if "b" in ins.absent else "Unlike the FMA chain") in text
        (command,) = [line for line in text.splitlines() if line.startswith("mmagold explain ")]
        assert "--mode 0x0" in command and not any(f"--{operand} " in command for operand in ins.absent)
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
    for name, formula in (("ieee_add", "d = c + a,"), ("ieee_multiply", "d = a * b,")):
        assert formula in document.to_markdown(load(name))


@pytest.mark.long
def test_coverage_looks_at_the_operands_that_there_are(tmp_path):
    text = (EXAMPLES / "ieee_add.yaml").read_text().replace("cut: sticky_added", "cut: dropped")
    for ins, there, missing in (
        (unit(tmp_path, text), ("class of a, position", "class of c"), ("class of b", "of a and b")),
        (load("ieee_multiply"), ("class of a, class of b", "signs of a and b"), ("class of c",)),
        (unit(tmp_path, CONVERT), ("class of a, position",), ("class of b", "class of c")),
    ):
        coverage = Coverage(ins)
        coverage.sample_set(default_set(ins, 4_000))
        assert not coverage.surprises()
        list(aim(ins, coverage, most=40_000))
        names = {point.name.partition(": ")[2] for point in coverage.points}
        assert names.issuperset(there) and not any(word in name for word in missing for name in names)
        assert coverage.percent > 95 and not coverage.surprises()


def test_the_example_of_a_failure_is_minimised():
    ins = load("ieee_add")
    operands = {"a": np.array([0x3F812345], np.uint32), "c": np.uint32(0x32ABCDE0), "mode": np.uint8(3)}

    def differs(batch):
        return ins.dot(**batch) != ins.dot(**(batch | {"mode": np.zeros_like(batch["mode"])}))

    assert differs({name: codes[None] for name, codes in operands.items()})[0]
    least = minimise(ins, operands, differs)
    assert set(least) == {"a", "c", "mode"} and differs({n: codes[None] for n, codes in least.items()})[0]
    assert int(least["a"][0]) != 0x3F812345


FAULTS = {
    "a missing sticky bit": ("cut: sticky_added", "cut: dropped", "sticky"),
    "a shifter that stops": ("cut: sticky_added", "cut: sticky_added, shift_limit: 24", "shift"),
    "the sign of zero": ("zero: signed", "zero: positive", "zero"),
}


@pytest.mark.parametrize("fault", long_after(1, FAULTS))
def test_a_fault_of_an_adder_is_said_where_it_is(tmp_path, fault):
    old, new, word = FAULTS[fault]
    text = (EXAMPLES / "ieee_add.yaml").read_text()
    assert old in text
    ins, faulty = load("ieee_add"), unit(tmp_path, text.replace(old, new))
    assert compare(ins, faulty, budget=30_000).example is not None
    vectors = default_set(ins, 12_000)
    found = diagnose(ins, vectors.operands, faulty.dot(**vectors.operands))
    assert found.explains and word in found.sentence(), found.sentence()


def test_the_command_takes_what_there_is():
    run = CliRunner()
    add, multiply = (str(EXAMPLES / f"{name}.yaml") for name in OTHER)
    answered = run.invoke(app, ["explain", add, "--a", "1", "--c", "2**-24", "--mode", "0x3", "--json"])
    assert json.loads(answered.output)["d"] == "0x3f800001"
    answered = run.invoke(app, ["explain", multiply, "--a", "3", "--b", "-2", "--mode", "0", "--json"])
    assert json.loads(answered.output)["d"] == "0xc0c00000"
    for words in ([add, "--a", "1", "--b", "1"], [multiply, "--a", "1", "--c", "1"]):
        assert run.invoke(app, ["explain", *words, "--mode", "0"]).exit_code == 2
    assert "f32/f32/f32" in run.invoke(app, ["spec", "check", add]).output
