"""Status flags of RTL: every engine brings them back, a wrong flag with a right d is found and named, and
an X in a flag is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from long_run import long_after

import golden
from golden.errors import FileFormatError, OperandError, SpecError
from golden.identify.comparing import compare
from golden.vectors import default_set, files
from golden.vectors.vectorset import VectorSet
from golden.vectors.word import WordLayout
from rtl_tb.check.check import check
from rtl_tb.check.drawing import draw
from rtl_tb.check.options import Options
from rtl_tb.check.report import WRITERS, headline
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import Outcome
from rtl_tb.errors import RtlError
from rtl_tb.runs.unit import open_unit
from rtl_tb.runs.verdict import judge
from rtl_tb.tb.scoreboard import Scoreboard

SOURCES = Path(__file__).parents[1] / "flags"
UNIT = golden.load_instruction(SOURCES / "mul_flags.yaml")
ENGINES = [("selfcheck", "icarus"), ("fast", "verilator"), ("cocotb", "icarus")]
SEPARATE = {"ports": {"a": "a", "b": "b", "mode": "rnd", "d": "d", "flags": ["nx", "uf", "of", "nv"]}}
TILE = """
unit: tile
shape: {m: 2, n: 1, k: 1}
formats: {a: f16, b: f16, d: f16}
flags: [inexact, underflow, overflow, invalid]
modes: {rnd: [nearest_even, toward_zero, down, up, nearest_away]}
steps:
  - multiply: {to: products}
  - special_values: {of: products, nan: 0x7E00}
  - round: {of: products, rounding: $rnd, overflow: ieee, zero: signed, tiny: unbounded}
"""
TILE_TOP = """
module pair (input [31:0] a, input [15:0] b, input [2:0] rnd, output [31:0] d, output [7:0] flags);
  mul_flags first (.a(a[15:0]), .b(b), .rnd(rnd), .d(d[15:0]), .flags(flags[3:0]));
  mul_flags second (.a(a[31:16]), .b(b), .rnd(rnd), .d(d[31:16]), .flags(flags[7:4]));
endmodule
"""


def planted(folder: Path, fault: int = 0, **changes):
    """The multiplier with a fault; returns its dut.yaml."""
    described = (
        yaml.safe_load((SOURCES / "dut.yaml").read_text()) | {"parameters": {"FAULT": fault}} | changes
    )
    (folder / "mul_flags.sv").write_text((SOURCES / "mul_flags.sv").read_text())
    (folder / "mul_flags.yaml").write_text((SOURCES / "mul_flags.yaml").read_text())
    (folder / "dut.yaml").write_text(yaml.safe_dump(described))
    return folder / "dut.yaml"


def checked(file: Path, engine: str = "fast", simulator: str = "verilator", **options):
    known = {"count": 3000, "failures": None, "build": file.parent / "build"}
    return check(file, Options(engine=engine, simulator=simulator, **(known | options)))


# Engines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "simulator"), long_after(1, ENGINES))
def test_a_right_unit_passes_and_a_wrong_flag_is_found(tmp_path, engine, simulator):
    """The planted mistake is in underflow alone: d is right in every vector.

    The smallest example is searched for with runs of the engine, each a start of cocotb: the others do."""
    count, explain = (1500, False) if engine == "cocotb" else (3000, True)
    assert checked(planted(tmp_path), engine, simulator, count=count).passed
    found = checked(planted(tmp_path, 1), engine, simulator, count=count, explain=explain)
    wrong = found.verdict.wrong
    assert wrong.any() and not found.verdict.wrong_d.any() and not found.passed
    assert found.verdict.wrong_flags == {"inexact": 0, "underflow": wrong.sum(), "overflow": 0, "invalid": 0}
    assert found.diagnosis is None
    if explain:
        example = found.example
        assert example is not None and example.alone and example.actual == example.expected
        assert example.came["flags"] ^ example.results["flags"] == 0b0010


@pytest.mark.parametrize(("fault", "flag"), long_after(1, [(2, "inexact"), (3, "invalid"), (7, "underflow")]))
def test_the_report_names_the_flag(tmp_path, fault, flag):
    found = checked(planted(tmp_path, fault), count=12_000)
    assert {name for name, count in found.verdict.wrong_flags.items() if count} == {flag}
    data = found.as_dict()
    assert data["flags"][flag] == data["wrong"] and headline(data).startswith("FAIL")
    for kind in ("md", "html"):
        assert f"{flag} wrong in" in WRITERS[kind](data), kind
    assert f"{flag} wrong in" in WRITERS["xml"](data) and json.loads(WRITERS["json"](data))["flags"]
    assert (
        ", flags 0x" in data["example"]["expected_value"] and ", flags 0x" in data["example"]["actual_value"]
    )


def test_an_unknown_flag_is_unknown_not_wrong(tmp_path):
    """d is known; X in a flag may be what the synthesised unit answers, or not."""
    found = checked(planted(tmp_path, 4), "selfcheck", "icarus", count=600)
    assert found.verdict.unknown.any() and not found.verdict.wrong.any() and not found.passed
    assert found.example.came is None


@pytest.mark.long
def test_a_policy_about_nans_is_of_d_alone(tmp_path):
    """Another NaN word passes under `nan: any`; a wrong flag with a NaN does not, in Python and in
    SystemVerilog."""
    policy = {"compare": {"nan": "any", "zero": "any"}}
    for engine, simulator in ENGINES[:2]:
        assert not checked(planted(tmp_path, 5), engine, simulator, explain=False).passed
        assert checked(planted(tmp_path, 5, **policy), engine, simulator).passed, engine
        found = checked(planted(tmp_path, 3, **policy), engine, simulator, explain=False)
        assert found.verdict.wrong_flags["invalid"] == found.verdict.wrong.sum() > 0, engine


@pytest.mark.long
def test_a_wrong_d_is_diagnosed_as_ever(tmp_path):
    found = checked(planted(tmp_path, 6))
    assert found.verdict.wrong_d.any() and found.diagnosis is not None
    assert sum(found.verdict.wrong_flags.values()) == 0


def test_a_dut_is_a_unit_that_tells_its_flags(tmp_path):
    """The fault is in underflow alone: a comparison of d would find nothing."""
    unit = open_unit(planted(tmp_path, 1), build=tmp_path / "build")
    found = compare(UNIT, unit, budget=7_000)
    assert found.numeric == found.nan_payloads == 0 < found.flags_alone and found.flags == UNIT.status
    assert found.example is not None and found.example.flags[0] ^ found.example.flags[1] == 0b0010
    operands = default_set(UNIT, 50, 1).operands
    assert np.array_equal(unit.dot(**operands), UNIT.dot(**operands))


# Ports ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_each_flag_may_have_a_port_of_its_own(tmp_path):
    assert checked(planted(tmp_path, **SEPARATE)).passed
    turned = {"ports": SEPARATE["ports"] | {"flags": ["nv", "of", "uf", "nx"]}}
    assert not checked(planted(tmp_path, **turned), explain=False).passed
    other = {"ports": SEPARATE["ports"] | {"flags": {"port": "flags", "order": "descending"}}}
    assert not checked(planted(tmp_path, **other), explain=False).passed


@pytest.mark.long
def test_a_tile_has_flags_for_every_element(tmp_path):
    (tmp_path / "tile.yaml").write_text(TILE)
    changes = {"top": "pair", "unit": "tile.yaml", "level": "tile", "parameters": {}}
    file = planted(tmp_path, **changes)
    (tmp_path / "mul_flags.sv").write_text((SOURCES / "mul_flags.sv").read_text() + TILE_TOP)
    assert checked(file, count=400).passed
    text = (tmp_path / "mul_flags.sv").read_text()
    (tmp_path / "mul_flags.sv").write_text(text.replace("mul_flags second", "mul_flags #(.FAULT(1)) second"))
    found = checked(file, count=4000)
    assert found.verdict.wrong_flags["underflow"] == found.verdict.wrong.sum() > 0
    vector = int(np.argmax(found.verdict.wrong))
    assert found.verdict.wrong_element(vector, ComparePolicy()) == 1
    assert (
        found.example is not None and found.example.came["flags"] ^ found.example.results["flags"] == 0b0010
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (None, "'ports' lacks flags"),
        (["nx", "uf"], "flags lists 2 ports, expected 4"),
        ("d", r"flags\[0\] and d\[0\] share bit 0 of port 'd'|d\[0\] and flags\[0\] share bit 0 of port 'd'"),
        ("a", "named both as"),
    ],
)
def test_refusals_of_a_description(tmp_path, flags, message):
    ports = {name: port for name, port in SEPARATE["ports"].items() if name != "flags"}
    with pytest.raises(SpecError, match=message):
        load_dut(planted(tmp_path, ports=ports | ({} if flags is None else {"flags": flags})))


def test_a_port_that_is_too_narrow(tmp_path):
    with pytest.raises(SpecError, match="port 'nv' has 1 bit"):
        checked(planted(tmp_path, ports=SEPARATE["ports"] | {"flags": "nv"}))


def test_a_draft_knows_the_port(tmp_path):
    planted(tmp_path)
    text = draft([tmp_path / "mul_flags.sv"], instruction=str(tmp_path / "mul_flags.yaml"), folder=tmp_path)
    assert "  flags: flags\n" in text and "# Outputs left open: nv, of, uf, nx" in text, text


# Vectors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [name for name in files.NAMES if name != "testfloat"])  # one mode a file
def test_files_hold_the_flags(tmp_path, form):
    vectors = default_set(UNIT, 300, 5)
    assert [field.name for field in WordLayout.of(UNIT).fields] == ["a", "b", "mode", "flags", "d"]
    assert len(np.unique(vectors.flags)) > 4
    path = tmp_path / "vectors"
    made = files.write(path, vectors, form)
    again = files.read(path, UNIT)
    assert np.array_equal(again.flags, vectors.flags) and np.array_equal(again.d, vectors.d)
    assert made.result_width == 20 and {"name": "flags", "lsb": 16}.items() <= made.fields[-2].items()


def test_an_edited_flag_is_found(tmp_path):
    """Even where somebody brings all checksums up to date: the unit does not give it."""
    vectors = default_set(UNIT, 50, 5)
    spoilt = VectorSet.of(
        UNIT, "dot", vectors.operands, {"d": vectors.d, "flags": vectors.flags ^ 1}, vectors.kinds, 5
    )
    files.write(tmp_path / "v.csv", spoilt)
    with pytest.raises(FileFormatError, match=r"v\.csv:2: edited: flags is 0x\w, but the operands give 0x\w"):
        files.check(tmp_path / "v.csv", UNIT)


def test_vectors_that_others_made(tmp_path):
    """Columns without a manifest; where they say another result than the unit, the check has no verdict."""
    vectors = default_set(UNIT, 40, 5)
    order = [("inexact", "underflow", "overflow", "", "invalid").index(name) for name in UNIT.status]
    flags = [sum((code >> i & 1) << bit for i, bit in enumerate(order)) for code in vectors.flags.tolist()]
    rows = zip(
        *(vectors.operands[name].reshape(-1) for name in ("a", "b", "mode")), vectors.d, flags, strict=True
    )
    (tmp_path / "v.txt").write_text("".join(f"{a:X} {b:X} {m:X} {d:X} {f:02X}\n" for a, b, m, d, f in rows))
    dut = load_dut(planted(tmp_path))
    drawn, _ = draw(dut, Options(vectors=tmp_path / "v.txt", columns="a,b,mode,d,flags"))
    assert np.array_equal(drawn.d, vectors.d) and np.array_equal(drawn.flags, vectors.flags)
    with pytest.raises(FileFormatError, match=r"v\.txt:\d+: d is 0x\w+, but mul_flags gives"):
        draw(dut, Options(vectors=tmp_path / "v.txt", columns="a,b,mode,-,d"))
    with pytest.raises(OperandError, match="there is no file of vectors"):
        draw(dut, Options(columns="a,b,mode,d"))


@pytest.mark.long
def test_a_check_of_vectors_from_a_file(tmp_path):
    files.write(tmp_path / "v.npz", default_set(UNIT, 3000, 9))
    assert checked(planted(tmp_path), vectors=tmp_path / "v.npz").passed
    assert not checked(planted(tmp_path, 2), vectors=tmp_path / "v.npz", explain=False).passed


@pytest.mark.long
def test_tininess_before_rounding_is_found_where_it_shows(tmp_path):
    """Products that round up to the least normal number: with more bits, half of them would stay below it."""
    rng = np.random.default_rng(2)
    a = rng.integers(0x0400, 0x7800, 40_000).astype(np.uint16)
    b = np.clip(0x0400 - a.astype(np.int64) + 0x3C00 + rng.integers(-2, 3, len(a)), 0, 0x7BFF).astype(
        np.uint16
    )
    operands = {"a": a[:, None], "b": b[:, None], "mode": rng.integers(0, 5, len(a)).astype(np.uint8)}
    edge = np.flatnonzero((UNIT.dot(**operands) == 0x0400) & (UNIT.flags(**operands) & 1 == 1))[:400]
    operands = {name: codes[edge] for name, codes in operands.items()}
    vectors = VectorSet.of(UNIT, "dot", operands, UNIT.answers(operands), np.zeros(len(edge), np.uint8), 0)
    files.write(tmp_path / "edge.npz", vectors)
    assert {1, 3} == set(vectors.flags.tolist())
    assert checked(planted(tmp_path), vectors=tmp_path / "edge.npz").passed
    exact = np.prod([operands[name].reshape(-1).view(np.float16).astype(float) for name in "ab"], axis=0)
    differ = (exact < 2.0**-14) & (vectors.flags == 1)
    found = checked(planted(tmp_path, 7), vectors=tmp_path / "edge.npz", explain=False)
    assert differ.sum() > 10 and np.array_equal(found.verdict.wrong, differ)
    assert found.verdict.wrong_flags["underflow"] == differ.sum()


@pytest.mark.long
def test_a_failure_capsule_repeats(tmp_path):
    found = checked(planted(tmp_path, 2), failures=tmp_path / "failures")
    lines = (found.capsule / "actual.txt").read_text().splitlines()
    element, expected, actual = lines[1].split()[1:]
    assert element == "0" and expected.split("/")[0] == actual.split("/")[0] and expected != actual
    again = files.read(found.capsule / "failing.npz", UNIT)
    assert (again.flags & 0b0101 == 0b0101).all()


# A false PASS -----------------------------------------------------------------------------------------------


def test_what_compares_less_than_the_unit_gives_is_refused():
    vectors = default_set(UNIT, 20)
    with pytest.raises(OperandError, match="status flags are missing"):
        VectorSet(UNIT, "dot", vectors.operands, vectors.d, vectors.kinds, 1)
    silent = Outcome("own", "none", "", vectors.d, np.ones(20, bool), np.zeros(20, bool))
    with pytest.raises(RtlError, match="own brought back d, expected d, flags"):
        judge(vectors, silent, ComparePolicy())
    silent.flags = vectors.flags.copy()
    assert judge(vectors, silent, ComparePolicy()).passed
    silent.flags[7] ^= 8
    assert judge(vectors, silent, ComparePolicy()).wrong.tolist() == [i == 7 for i in range(20)]


def test_two_answers_to_one_vector_are_held_against_each_other_by_the_policy():
    """NaNs of other payloads under `nan: any`, never another flag, nor X."""
    one, other, number = (f"{(flags << 16) | d:020b}" for flags, d in ((8, 0x7E00), (8, 0xFE01), (8, 0x3C00)))
    flagged = f"{0x7E00:020b}"
    loose, exact = Scoreboard(UNIT, compare=ComparePolicy(nan="any")), Scoreboard(UNIT)
    assert loose.same(one, other) and loose.same(one, one) and not exact.same(one, other)
    assert not loose.same(one, number) and not loose.same(number, one) and not loose.same(one, flagged)
    assert not loose.same(one, one[:-1] + "X")
    canonical = Scoreboard(UNIT, compare=ComparePolicy(nan="canonical"))
    assert not canonical.same(other, one) and not canonical.same(one, other)


def test_the_scoreboard_compares_flags():
    vectors, layout = default_set(UNIT, 30), WordLayout.of(UNIT)
    words = [int.from_bytes(word, "little") for word in layout.pack_results(vectors.results)]
    for spoilt, clean in ((None, True), (3, False)):
        board = Scoreboard(UNIT, compare=ComparePolicy(nan="any"))
        board.expect(vectors.operands)
        board.receive([f"{word ^ (1 << 16 if i == spoilt else 0):020b}" for i, word in enumerate(words)])
        assert board.clean == clean
    assert board.wrong == 1 and "with flags 0x" in board.summary()


RISCV = "[inexact, underflow, overflow, divide_by_zero, invalid]"
FFLAGS = """
module fpu (input [15:0] a, b, input [2:0] rnd, output [15:0] d, output [4:0] fflags);
  wire [3:0] flags;
  mul_flags mul (.a(a), .b(b), .rnd(rnd), .d(d), .flags(flags));
  assign fflags = {flags[3], DZ, flags[2:0]};
endmodule
"""


@pytest.mark.parametrize("engine", ["selfcheck", "fast"])
def test_riscvs_word_of_flags_has_a_bit_that_is_always_0(tmp_path, engine):
    file = planted(
        tmp_path,
        top="fpu",
        sources=["mul_flags.sv", "fpu.sv"],
        parameters={},
        ports={"a": "a", "b": "b", "mode": "rnd", "d": "d", "flags": "fflags"},
    )
    unit = tmp_path / "mul_flags.yaml"
    sources = [tmp_path / "mul_flags.sv", tmp_path / "fpu.sv"]
    sources[1].write_text(FFLAGS.replace("DZ", "1'b0"))
    assert f"RISC-V's five are flags: {RISCV}" in draft(sources, "fpu", str(unit), tmp_path)
    unit.write_text(unit.read_text().replace("[inexact, underflow, overflow, invalid]", RISCV))
    assert "  flags: fflags\n" in draft(sources, "fpu", str(unit), tmp_path)
    simulator = "verilator" if engine == "fast" else "icarus"
    assert checked(file, engine, simulator, count=1000).passed
    sources[1].write_text(FFLAGS.replace("DZ", "flags[3]"))
    found = checked(file, engine, simulator, count=1000, explain=False)
    assert {name for name, count in found.verdict.wrong_flags.items() if count} == {"divide_by_zero"}
