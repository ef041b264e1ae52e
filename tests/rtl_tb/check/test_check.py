"""Whole checks: units that are right, wrong, silent or unknown, and what `mmagold rtl check` says, writes
and returns."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import engine_dut as small
import numpy as np
import pytest
import yaml
from changed_unit import changed
from typer.testing import CliRunner

from golden.cli.app import app
from golden.errors import FileFormatError
from golden.stimuli import INTEGER_KINDS, KINDS
from golden.vectors import default_set
from rtl_tb.check.check import check
from rtl_tb.check.options import DEFAULT_TRAFFIC, LEAST_RESETS, RESET_EVERY, Options
from rtl_tb.check.report import example_title, headline
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.job import Outcome, Traffic
from rtl_tb.errors import ElaborationError
from rtl_tb.runs import dots
from rtl_tb.runs.verdict import judge

DUTS = Path(__file__).parents[3] / "rtl_tb" / "rtl" / "duts"
ICARUS = {"engine": "selfcheck", "simulator": "icarus"}

UNIT = """
unit: tiny
title: 2 x 2 x 2 of s8
shape: {m: 2, n: 2, k: 2}
formats: {a: s8, b: s8, c: s32, d: s32}
program: [{integer_dot_add: {}}]
"""

# d = a * b + c of 2 x 2 matrices, row by row, LATENCY register stages. FAULT puts one statement into the
# element loop.
TILE = """
module tile #(parameter LATENCY = 3) (
    input clk, input [31:0] a, input [31:0] b, input [127:0] c, output [127:0] d
);
  reg [127:0] total;
  reg [127:0] stages [0:LATENCY-1];
  integer i, j, s;
  always @* begin
    for (i = 0; i < 2; i = i + 1)
      for (j = 0; j < 2; j = j + 1) begin
        total[(2*i+j)*32 +: 32] = $signed(a[(2*i)*8 +: 8]) * $signed(b[j*8 +: 8])
            + $signed(a[(2*i+1)*8 +: 8]) * $signed(b[(2+j)*8 +: 8]) + $signed(c[(2*i+j)*32 +: 32]);
        FAULT
      end
  end
  always @(posedge clk) begin
    stages[0] <= total;
    for (s = 1; s < LATENCY; s = s + 1) stages[s] <= stages[s-1];
  end
  assign d = stages[LATENCY-1];
endmodule
"""

DUT = {
    "top": "tile",
    "sources": ["tile.sv"],
    "unit": "unit.yaml",
    "level": "tile",
    "clock": "clk",
    "handshake": {"kind": "latency", "latency": "measure"},
    "ports": {"a": "a", "b": "b", "c": "c", "d": "d"},
}


def tile(folder, fault=";", **changes):
    """A tile unit with a fault; returns its dut.yaml."""
    (folder / "unit.yaml").write_text(UNIT)
    (folder / "tile.sv").write_text(TILE.replace("FAULT", fault))
    (folder / "dut.yaml").write_text(yaml.safe_dump(DUT | changes))
    return folder / "dut.yaml"


def icarus(tmp_path, **changes):
    return Options(
        engine="selfcheck",
        simulator="icarus",
        count=400,
        failures=tmp_path / "failures",
        build=tmp_path / "build",
        **changes,
    )


def test_a_right_unit_passes_and_its_latency_is_measured(tmp_path):
    result = check(tile(tmp_path), icarus(tmp_path))
    assert result.passed
    assert result.as_dict()["wrong"] == 0
    assert result.as_dict()["latency"] == 3
    assert not (tmp_path / "failures").exists()


def test_a_wrong_element_of_a_tile_is_minimised_and_placed(tmp_path):
    fault = "if (i == 1 && j == 0 && total[64 +: 8] == 8'h80) total[64] = ~total[64];"
    result = check(tile(tmp_path, fault, parameters={"LATENCY": 7}), icarus(tmp_path, seed=3, explain=True))
    verdict = result.verdict
    expected = (verdict.vectors.d[:, 1, 0] & 0xFF) == 0x80
    np.testing.assert_array_equal(verdict.wrong, expected)
    example = result.example
    assert example is not None and example.alone
    assert example.expected & 0xFF == 0x80 and example.actual == example.expected ^ 1
    assert int(np.count_nonzero(example.operands["a"])) <= 2, "one or two products, or c, make 0x80"
    assert example.place == (1, 0)
    told = result.as_dict()
    assert headline(told).endswith(f"{int(expected.sum())} of 400 tiles fail ({int(expected.sum())} wrong)")
    where = f"of the 2 x 2 elements of d, d[1][0] is wrong: {int(expected.sum())} of 1,600 elements in all"
    assert told["hints"][0].startswith(where)
    assert told["diagnosis"]["total"] == 400, "of that element alone"
    assert example_title(told["example"]) == "The smallest operands that fail in row 1 and column 0 of d"
    assert (told["coverage"]["vectors"], told["coverage"]["noun"]) == (1600, "dot products")


def test_a_budget_of_zero_gives_the_verdict_and_an_example_alone(tmp_path):
    fault = "if (total[64 +: 8] == 8'h80) total[64] = ~total[64];"
    stages = []
    options = icarus(tmp_path, budget=0, repair=None)
    result = check(tile(tmp_path, fault), options, lambda what, _done, _all: stages.append(what))
    assert not result.passed and result.example is not None
    assert (result.diagnosis, result.repairs, result.hints) == (None, (), ())
    assert not {each for each in stages if "hypotheses" in each or "reason" in each or "polarities" in each}


def test_x_is_a_failure_of_its_own_kind(tmp_path):
    fault = "if (i == 0 && j == 1 && a[7:0] == 8'h00) total[32] = 1'bx;"
    result = check(tile(tmp_path, fault, handshake={"kind": "latency", "latency": 3}), icarus(tmp_path))
    zero = result.verdict.vectors.operands["a"][:, 0, 0] == 0
    assert zero.any()
    np.testing.assert_array_equal(result.verdict.unknown, zero)
    assert not result.verdict.wrong.any()
    assert result.as_dict()["example"]["actual"] == "0xxxxxxxxx"


MUTE = """
module tile (input clk, input [31:0] a, input [31:0] b, input [127:0] c, output [127:0] d,
             input in_valid, output in_ready, output out_valid, input out_ready);
  assign in_ready = 1'b0;
  assign out_valid = 1'b0;
  assign d = 128'd0;
endmodule
"""
READY = {
    "kind": "valid_ready",
    "input": {"valid": "in_valid", "ready": "in_ready"},
    "output": {"valid": "out_valid", "ready": "out_ready"},
}


@pytest.mark.parametrize("engine", ["selfcheck", "cocotb"])
def test_a_unit_that_never_answers_times_out_with_the_state_of_the_handshake(tmp_path, engine):
    file = tile(tmp_path, handshake=READY)
    (tmp_path / "tile.sv").write_text(MUTE)
    options = Options(
        engine, "icarus", 20, timeout_cycles=50, explain=False, failures=None, build=tmp_path / "build"
    )
    result = check(file, options)
    assert not result.passed and result.verdict.missing.all()
    (failure,) = result.as_dict()["protocol"]
    assert failure["kind"] == "timeout" and re.search("in_ready[ =]0.*out_valid[ =]0", failure["text"])


# The reference unit with another F --------------------------------------------------------------------------


def reference(folder, **parameters):
    """The dut.yaml of the Turing FDA unit (K = 4 keeps builds short) with other parameters."""
    document = yaml.safe_load((DUTS / "fda_turing_f16.yaml").read_text())
    document["sources"] = [str((DUTS / source).resolve()) for source in document["sources"]]
    document["parameters"] |= parameters
    (folder / "dut.yaml").write_text(yaml.safe_dump(document))
    return folder / "dut.yaml", document["parameters"]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """A failed check of the FDA unit with one fraction bit less than it should keep, through the command."""
    folder = tmp_path_factory.mktemp("narrow")
    file, parameters = reference(folder)
    file, _ = reference(folder, F=parameters["F"] - 1)
    words = [
        "rtl",
        "check",
        str(file),
        "--count",
        "20000",
        "--repair",  # no line has the parameter of dut.yaml
        "0",
        "--build",
        str(folder / "build"),
        "--failures",
        str(folder / "failures"),
    ]
    reports = [
        word
        for suffix in ("md", "html", "json", "xml")
        for word in ("--report", str(folder / f"report.{suffix}"))
    ]
    run = CliRunner().invoke(app, [*words, *reports, "--coverage", str(folder / "cover.json")])
    return run, folder, parameters["F"]


def test_a_wrong_f_is_found_named_and_placed(narrow):
    run, folder, f = narrow
    assert run.exit_code == 1, run.output
    report = json.loads((folder / "report.json").read_text())
    assert report["wrong"] > 100 and not report["passed"]
    best = report["diagnosis"]["hypotheses"][0]
    assert (best["remaining"], best["total"]) == (0, 20000)
    assert f"F = {f - 1} instead of {f}" in report["diagnosis"]["sentence"]
    assert report["difference"]["op"] == "align"
    assert report["diagnosis"]["sentence"] in run.output and report["difference"]["sentence"] in run.output


def test_the_other_reports_tell_the_same(narrow):
    _, folder, _ = narrow
    report = json.loads((folder / "report.json").read_text())
    for text in ((folder / "report.md").read_text(), (folder / "report.html").read_text()):
        assert report["diagnosis"]["sentence"] in text and report["example"]["actual"] in text
    suites = ElementTree.parse(folder / "report.xml").getroot()
    cases = {case.get("name"): case.find("failure") is not None for case in suites.iter("testcase")}
    assert cases == {row["kind"]: row["wrong"] > 0 for row in report["kinds"]} | {"handshake": False}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine", "slow"], "engine is 'slow', expected one of fast, selfcheck, cocotb"),
        (["--sim", "icarus"], "engine 'fast' needs Verilator"),
        (["--kinds", "tied=1"], "unknown stimulus kind 'tied'"),
        (["--report", "x.doc"], "does not end in one of .json, .md, .html, .xml"),
        (["--vectors", "absent.npz"], "absent.npz"),
    ],
)
def test_bad_options_give_one_line_and_status_2(tmp_path, words, message):
    file, _ = reference(tmp_path)
    run = CliRunner().invoke(app, ["rtl", "check", str(file), *words], env={"COLUMNS": "300"})
    assert run.exit_code == 2 and message in run.output and "Traceback" not in run.output


def test_vectors_of_another_instruction_are_refused(tmp_path):
    from golden import instruction
    from golden.vectors.files import write

    write(tmp_path / "other.npz", default_set(instruction("hopper", "HMMA.16816.F32"), 8))
    file, _ = reference(tmp_path)
    with pytest.raises(FileFormatError, match=r"other\.npz: vectors of hopper:mma"):
        check(file, Options(vectors=tmp_path / "other.npz", build=tmp_path / "build"))


@pytest.mark.parametrize("measured", [False, True])
def test_a_refusal_names_the_simulator_that_reads_the_unit(tmp_path, measured):
    """A number with more digits than its width is an error of Verilator's alone."""
    small.write_small(tmp_path)
    (tmp_path / "small.sv").write_text(small.RTL.replace("total = c;", "total = c + 32'h100000000;"))
    file = tmp_path / "small.yaml"
    if measured:
        given = yaml.safe_load(file.read_text())
        given["handshake"] = {"kind": "latency", "latency": "measure"}
        given["constants"] = {**given.get("constants", {}), "in_valid": 1, "out_ready": 1}
        file.write_text(yaml.safe_dump(given))
    with pytest.raises(ElaborationError, match=r"Too many .*; Icarus Verilog reads it: --engine selfcheck"):
        check(file, Options(build=tmp_path / "build", count=8))


# Parts ------------------------------------------------------------------------------------------------------


def outcome(vectors, **changes):
    count = len(vectors)
    known = {"actual": vectors.d.copy(), "received": np.ones(count, bool), "unknown": np.zeros(count, bool)}
    return Outcome("fast", "verilator", "", **(known | changes))


def test_wrong_unknown_and_missing_exclude_each_other():
    from golden import instruction

    vectors = default_set(instruction("hopper", "HMMA.16816.F32"), 100)
    received, unknown, actual = np.ones(100, bool), np.zeros(100, bool), vectors.d.copy()
    received[:10], unknown[5:20] = False, True
    actual[:30] ^= np.uint32(1 << 22)
    verdict = judge(
        vectors, outcome(vectors, actual=actual, received=received, unknown=unknown), ComparePolicy()
    )
    assert [int(flags.sum()) for flags in (verdict.missing, verdict.unknown, verdict.wrong)] == [10, 10, 10]
    assert verdict.failed.sum() == 30 and sum(row.failed for row in verdict.by_kind()) == 30
    assert judge(vectors, outcome(vectors), ComparePolicy()).passed


@pytest.mark.parametrize(
    ("arch", "name"),
    [
        ("ampere", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("hopper", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
        (
            "rtx_blackwell",
            "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
        ),
    ],
)
def test_the_dot_products_of_a_tile_are_its_elements(arch, name):
    from golden import instruction

    ins = instruction(arch, name)
    vectors = default_set(ins, 5, level="tile")
    verdict = judge(vectors, outcome(vectors, actual=vectors.d.reshape(5, -1)), ComparePolicy())
    operands, actual = dots.as_dots(verdict)
    np.testing.assert_array_equal(ins.dot(**operands), actual)
    placed = dots.place(vectors.instruction, {key: codes[:7] for key, codes in operands.items()}, 3, 5)
    np.testing.assert_array_equal(ins(**placed)[:, 3, 5], actual[:7])


def test_the_engines_have_traffic_of_their_own():
    assert DEFAULT_TRAFFIC["fast"] == Traffic()
    usual = DEFAULT_TRAFFIC["cocotb"]
    assert usual.backpressure > 0
    assert Options(seed=5).traffic(usual, 20_000) == replace(usual, seed=5, resets=20_000 // RESET_EVERY)
    assert Options().traffic(usual, 10).resets == LEAST_RESETS
    given = Options(backpressure=0.0, resets=0).traffic(usual, 500)
    assert given == replace(usual, backpressure=0.0, resets=0)


REMEMBERS = "if (&total[3:0]) remembered = 1'b1; if (remembered && i == 1 && j == 1) total[97] = ~total[97];"


@pytest.mark.long
def test_a_unit_that_remembers_is_not_said_to_fail_alone(tmp_path):
    """Once a result ends in four ones the flag stays set: no single vector fails, and none is claimed to."""
    file = tile(tmp_path, REMEMBERS, handshake={"kind": "latency", "latency": 3})
    text = (tmp_path / "tile.sv").read_text()
    (tmp_path / "tile.sv").write_text(
        text.replace("integer i, j, s;", "integer i, j, s; reg remembered = 1'b0;")
    )
    result = check(file, icarus(tmp_path))
    assert not result.passed and result.example is not None
    if not result.example.alone:
        assert "other vectors around it" in CliRunner().invoke(app, repeat(result, tmp_path)).output
    else:
        assert result.example.actual != result.example.expected


def repeat(result, folder):
    return [
        *result.command.split()[1:],
        "--build",
        str(folder / "build"),
        "--failures",
        str(folder / "failures"),
    ]


def test_fast_also_tries_the_handshake(tmp_path):
    """After full throughput come idle cycles, backpressure and resets, unless the traffic was given."""
    file, _ = reference(tmp_path)
    result = check(file, Options(count=600, build=tmp_path / "build"))
    assert result.passed and result.as_dict()["handshake"]["backpressure"] == 0.2
    quiet = check(file, Options(count=600, build=tmp_path / "build", idle=0, backpressure=0, resets=0))
    assert quiet.passed and quiet.handshake is None
    few = check(file, Options(count=30, build=tmp_path / "build", idle=0.5))
    short = few.as_dict()["handshake"]
    assert (short["idle"], short["backpressure"], short["vectors"], short["failed"]) == (0.5, 0.2, 30, False)


FORGETS_TO_RESET = (
    "reg [1:0] resets = 0; reg was = 0; always @(posedge clk) begin was <= rst_n; if (was && "
    "!rst_n) resets <= "
)
FORGETS_TO_RESET += "resets == 2 ? 2 : resets + 1; end endmodule"


@pytest.mark.long
def test_the_command_finds_what_is_wrong_after_the_second_reset(tmp_path):
    """Through the command line, with and without a part of the traffic given;
    the repeat command finds it again."""
    small.write_small(tmp_path)
    rtl = small.RTL.replace("endmodule", FORGETS_TO_RESET).replace(
        "assign d = fault == 3", "assign d = resets == 2 ? ~d3 : fault == 3"
    )
    (tmp_path / "small.sv").write_text(rtl)
    words = ["rtl", "check", str(tmp_path / "small.yaml"), "--build", str(tmp_path / "build")]
    words += ["--failures", str(tmp_path / "failures"), "--json"]
    for more in ([], ["--idle", "0.1"]):
        run = CliRunner().invoke(app, [*words, "--count", "3000", *more])
        report = json.loads(run.stdout)
        assert run.exit_code == 1 and not report["passed"], run.output
        assert report["traffic"]["resets"] == 3 and report["handshake"]["vectors"] == 2000
    again = CliRunner().invoke(app, [*report["repeat"].split()[1:], *words[3:]])
    assert again.exit_code == 1 and json.loads(again.stdout)["wrong"] == report["wrong"]
    assert CliRunner().invoke(app, [*words, "--count", "3000", "--resets", "0"]).exit_code == 0


@pytest.mark.long
def test_what_the_report_claims_is_what_was_done(tmp_path):
    """Resets that a short run had no time for are not claimed;
    the failing vectors are run again as they were."""
    small.write_small(tmp_path)
    words = [
        "rtl",
        "check",
        str(tmp_path / "small.yaml"),
        "--build",
        str(tmp_path / "build"),
        "--engine",
        "selfcheck",
    ]
    words += ["--sim", "icarus", "--failures", str(tmp_path / "failures"), "--json"]
    run = CliRunner().invoke(app, [*words, "--count", "2", "--resets", "50"])
    assert run.exit_code == 0 and json.loads(run.stdout)["traffic"]["resets"] <= 4
    unknown = small.RTL.replace("if (marked && c[3:0] == 6)", "if (c[3:0] == 6)")
    (tmp_path / "small.sv").write_text(unknown)
    run = CliRunner().invoke(app, [*words, "--count", "300", "--backpressure", "0.5"])
    report = json.loads(run.stdout)
    assert run.exit_code == 1 and report["unknown"]
    again = json.loads((Path(report["capsule"]) / "capsule.json").read_text())["repeat_failing"].split()
    assert (
        again[again.index("--engine") + 1] == "selfcheck"
        and again[again.index("--backpressure") + 1] == "0.5"
    )
    assert (
        CliRunner().invoke(app, [*again[1:], *words[3:5], "--failures", str(tmp_path / "again")]).exit_code
        == 1
    )


def test_no_vectors_are_no_check(tmp_path):
    from golden.vectors.files import write

    file, _ = reference(tmp_path)
    ins = check(file, Options(count=10, build=tmp_path / "build")).dut.instruction
    write(tmp_path / "none.npz", default_set(ins, 0))
    run = CliRunner().invoke(app, ["rtl", "check", str(file), "--vectors", str(tmp_path / "none.npz")])
    assert run.exit_code == 2 and "holds no vectors" in run.output


def test_reports_say_what_the_handshake_had_to_bear(tmp_path):
    """No reset port: resets that were asked for are not reported as done."""
    result = check(
        tile(tmp_path, handshake={"kind": "latency", "latency": 3}),
        icarus(tmp_path, idle=0.1, backpressure=0.5, resets=4),
    )
    assert result.passed
    assert result.as_dict()["traffic"] == {"idle": 0.1, "backpressure": 0.0, "resets": 0, "seed": 1}


def test_units_of_integers_have_kinds_of_integers(tmp_path):
    """Each kind of floats has gone into one that an integer unit has."""
    result = changed(tmp_path, ("36'(acc);", "36'(acc) + 36'd1;"), **ICARUS)
    rows = {row["kind"]: row for row in result.as_dict()["kinds"]}
    assert not {kind for kinds in INTEGER_KINDS.values() for kind in kinds} & set(rows)
    assert set(INTEGER_KINDS) <= set(rows)
    raw = {row.kind: row for row in result.verdict.by_kind()}
    assert set(raw) == set(KINDS)
    for name in ("tried", "wrong"):
        members = sum(getattr(raw[kind], name) for kind in INTEGER_KINDS["ends_of_range"])
        assert rows["ends_of_range"][name] == members > 0
        assert sum(row[name] for row in rows.values()) == sum(getattr(row, name) for row in raw.values())


def test_kinds_of_integers_can_be_asked_for(tmp_path):
    result = changed(tmp_path, weights={"single_bits": 1, "zeros": 1}, **ICARUS)
    assert [row["kind"] for row in result.as_dict()["kinds"]] == ["single_bits", "zeros"]
    assert len(result.verdict.by_kind()) == len(INTEGER_KINDS["single_bits"]) + 1
