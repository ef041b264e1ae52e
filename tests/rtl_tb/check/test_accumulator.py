"""RTL that keeps its accumulator: the reference unit passes on every engine, faults of its state are seen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from long_run import long_after

import rtl_tb
from golden import paths
from golden.errors import SpecError
from golden.vectors import default_set
from golden.vectors.vectorset import VectorSet
from rtl_tb import engines
from rtl_tb.check.check import check
from rtl_tb.check.options import RESET_EVERY, Options, affordable
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.engines import selfcheck, selfcheck_text
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.errors import RtlError
from rtl_tb.runs.dots import as_dots
from rtl_tb.runs.unit import open_unit
from rtl_tb.runs.verdict import judge

RTL = Path(rtl_tb.__file__).parent / "rtl"
UNIT = paths.spec_folder() / "examples" / "accumulator.yaml"
STEP = (
    "align_shift",
    "fp_decode",
    "fp_product",
    "fp_round",
    "fused_sum",
    "max_exponent",
    "product_array",
    "fda",
)
RUNS = [("fast", "verilator"), ("selfcheck", "icarus"), ("cocotb", "icarus")]
BUSY = Traffic(idle=0.3, backpressure=0.4, resets=9, seed=5)


def described(folder, *changes, **more):
    """The reference unit, with places of its RTL changed: (old, new)."""
    text = (RTL / "fda_accumulator.sv").read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "unit.sv").write_text(text)
    dut = {
        "dut": "accumulator",
        "top": "fda_accumulator",
        "sources": [*(str(RTL / f"{name}.sv") for name in STEP), "unit.sv"],
        "unit": str(UNIT),
        "clock": "clk",
        "reset": {"port": "rst_n", "active": "low"},
        "handshake": {
            "kind": "valid_ready",
            "input": {"valid": "in_valid", "ready": "in_ready"},
            "output": {"valid": "out_valid", "ready": "out_ready"},
        },
        "ports": {name: name for name in ("a", "b", "clear", "d")},
    }
    (folder / "dut.yaml").write_text(yaml.safe_dump(dut | more))
    return folder / "dut.yaml"


def judged(folder, *changes, traffic=BUSY, engine="selfcheck", simulator="icarus", vectors=None):
    dut = load_dut(described(folder, *changes))
    vectors = default_set(dut.instruction, 1500, seed=6) if vectors is None else vectors
    job = Job(dut, folder / "build", vectors, simulator, traffic, timeout_cycles=300)
    return judge(vectors, engines.run(engine, job), dut.compare)


def options(folder, **more):
    given = {"engine": "selfcheck", "simulator": "icarus", "count": 1500} | more
    return Options(failures=folder / "failures", build=folder / "build", **given)


# Engines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "simulator"), long_after(1, RUNS[1:] + RUNS[:1]))
def test_the_reference_unit_passes(tmp_path, engine, simulator):
    """At full throughput, and with idle cycles, backpressure and resets, which start sequences again."""
    for traffic in (Traffic(), BUSY):
        verdict = judged(tmp_path, traffic=traffic, engine=engine, simulator=simulator)
        assert verdict.passed, (verdict.outcome.failures, np.flatnonzero(verdict.failed)[:5])
        assert verdict.outcome.received.all() and verdict.outcome.resets == traffic.resets


LEAVE = "else if (leave) held <= d;"
C = "clear ? '0 : held"
LATE = "logic late;\n    always_ff @(posedge clk) if (take) late <= clear;\n    assign in_ready ="
ASLEEP = (
    "logic [4:0] asleep;\n    always_ff @(posedge clk) asleep <= busy || in_valid ? '0 : asleep + 5'd1;\n"
)
MUTANTS = {
    "clear_ignored": [(C, "held")],
    "clear_is_late": [(C, "late ? '0 : held"), ("assign in_ready =", LATE)],
    "lost_at_idle": [(LEAVE, f"{LEAVE}\n        else if (in_ready && !in_valid) held <= '0;")],
    "lost_asleep": [
        (LEAVE, f"{LEAVE}\n        else if (&asleep) held <= '0;"),
        ("assign in_ready =", f"{ASLEEP}    assign in_ready ="),
    ],
    "clears_without_valid": [(LEAVE, f"{LEAVE}\n        else if (clear && !in_valid && !busy) held <= '0;")],
    "changed_under_backpressure": [(LEAVE, "else if (out_valid && !out_ready) held <= d + 1;")],
    "sticks_after_reset": [("if (!rst_n) held <= '0;\n        else if (leave)", "if (leave)")],
    "hangs_after_reset": [("if (!rst_n) busy <= 1'b0;\n        else if (take)", "if (take)")],
    "takes_before_the_result": [("step_ready && !busy;", "step_ready;"), ("in_valid && !busy", "in_valid")],
}


OF_TRAFFIC = ("lost_at_idle", "clears_without_valid", "sticks_after_reset", "hangs_after_reset")
"""Faults that show only in what an engine drives between vectors, for which each has code of its own."""


@pytest.mark.parametrize(
    ("mutant", "engine", "simulator"),
    long_after(1, [(name, *RUNS[1]) for name in MUTANTS] + [(name, *RUNS[2]) for name in OF_TRAFFIC]),
)
def test_faults_of_the_state_are_found(tmp_path, mutant, engine, simulator):
    assert not judged(tmp_path, *MUTANTS[mutant], engine=engine, simulator=simulator).passed


@pytest.mark.long
@pytest.mark.parametrize(
    "mutant",
    ["clear_ignored", "lost_at_idle", "lost_asleep", "sticks_after_reset"],
)
def test_faults_of_the_state_are_found_by_fast(tmp_path, mutant):
    result = check(
        described(tmp_path, *MUTANTS[mutant]), options(tmp_path, engine="fast", simulator="verilator")
    )
    assert not result.passed
    if mutant != "clear_ignored":
        assert result.traffic == result.handshake, "full throughput does not show it"


@pytest.mark.long
def test_the_usual_traffic_resets_a_state_often(tmp_path):
    """Without a word about traffic; also where the low bits alone survive, which few results show."""
    low_bits = [("if (!rst_n) held <= '0;", "if (!rst_n) held[31:12] <= '0;")]
    for changes in (MUTANTS["sticks_after_reset"], low_bits):
        result = check(described(tmp_path, *changes), options(tmp_path, explain=False))
        assert not result.passed and result.traffic.resets == 1500 // RESET_EVERY
    quiet = check(described(tmp_path, *low_bits), options(tmp_path, explain=False, resets=0))
    assert quiet.passed and quiet.traffic.resets == 0, "what was asked for holds"


@pytest.mark.long
def test_a_state_that_survives_a_reset_shows_without_clear_alone(tmp_path):
    """The vector after a reset is sent without `clear`: with it nothing of the state would be seen."""
    quiet = Traffic(resets=9, seed=5)
    for engine, simulator in RUNS[1:]:
        verdict = judged(
            tmp_path, *MUTANTS["sticks_after_reset"], traffic=quiet, engine=engine, simulator=simulator
        )
        found = {failure.kind for failure in verdict.outcome.failures}
        assert verdict.wrong.any() or "changed_answer" in found, engine
    assert judged(tmp_path, *MUTANTS["sticks_after_reset"], traffic=Traffic()).passed


@pytest.mark.parametrize(("engine", "simulator"), long_after(1, RUNS[1:] + RUNS[:1]))
def test_another_answer_after_a_reset_is_no_pass(tmp_path, engine, simulator):
    """A unit that is wrong until its first reset in mid-flight and right from then on."""
    once = "logic fresh = 1'b1, seen = 1'b0;\n    always_ff @(posedge clk) begin\n"
    once += "        if (take) seen <= 1'b1;\n        if (!rst_n && seen) fresh <= 1'b0;\n    end\n"
    change = ("    logic                  busy,", f"    {once}    logic                  busy,")
    wrong = (
        ".d(d)\n    );",
        ".d(e)\n    );\n    logic [31:0] e;\n    assign d = e ^ 32'(fresh && e == last);",
    )
    last = ("assign in_ready =", "wire [31:0] last = 32'h%08x;\n    assign in_ready =")
    dut = load_dut(described(tmp_path))
    vectors = one_sequence(dut.instruction, 60)
    seen = int(vectors.d[5])
    assert np.count_nonzero(vectors.d == seen) == 1
    changes = [change, wrong, (last[0], last[1] % seen)]
    verdict = judged(
        tmp_path, *changes, traffic=Traffic(resets=1), engine=engine, simulator=simulator, vectors=vectors
    )
    assert verdict.outcome.resets == 1 and not verdict.passed
    told = {failure.kind for failure in verdict.outcome.failures}
    assert verdict.wrong[5] if engine == "selfcheck" else told == {"changed_answer"}


@pytest.mark.parametrize(("engine", "simulator"), long_after(1, RUNS[1:] + RUNS[:1]))
def test_another_nan_after_a_reset_is_another_answer_only_where_nans_are_exact(tmp_path, engine, simulator):
    """A unit whose NaNs have another payload until its first reset in mid-flight."""
    once = "logic fresh = 1'b1, seen = 1'b0;\n    always_ff @(posedge clk) begin\n"
    once += "        if (take) seen <= 1'b1;\n        if (!rst_n && seen) fresh <= 1'b0;\n    end\n"
    changes = [
        ("    logic                  busy,", f"    {once}    logic                  busy,"),
        (
            ".d(d)\n    );",
            ".d(e)\n    );\n    logic [31:0] e;\n    assign d = e ^ 32'(fresh && e == 32'h7fffffff);",
        ),
    ]
    for policy, passes in (("any", True), ("exact", False)):
        dut = load_dut(described(tmp_path, *changes, compare={"nan": policy}))
        vectors = one_sequence(dut.instruction, 60)
        vectors.operands["a"][3] = 0x7E00
        vectors = VectorSet(
            dut.instruction,
            "dot",
            vectors.operands,
            dut.instruction.dot(**vectors.operands),
            vectors.kinds,
            0,
        )
        job = Job(dut, tmp_path / "build", vectors, simulator, Traffic(resets=1), timeout_cycles=300)
        verdict = judge(vectors, engines.run(engine, job), dut.compare)
        assert verdict.outcome.resets == 1 and verdict.passed == passes, verdict.outcome.failures[:3]
        if engine != "selfcheck":
            told = {failure.kind for failure in verdict.outcome.failures}
            assert told == (set() if passes else {"changed_answer"})
            assert len(verdict.outcome.failures) <= 60


def one_sequence(ins, count):
    """A single sequence of sums that grow."""
    rng = np.random.default_rng(2)
    operands = {name: rng.integers(0x3C00, 0x4400, (count, 4)).astype(np.uint16) for name in "ab"}
    operands["clear"] = np.zeros(count, np.uint8)
    d = ins.dot(**operands)
    return VectorSet(ins, "dot", operands, d, np.zeros(count, np.uint8), 0)


def test_a_sequence_longer_than_what_the_testbench_holds(tmp_path, monkeypatch):
    """Resets go back to vectors that are loaded no more."""
    for module in (selfcheck, selfcheck_text):
        monkeypatch.setattr(module, "DEPTH", 16)
    ins = load_dut(described(tmp_path)).instruction
    verdict = judged(tmp_path, vectors=one_sequence(ins, 300), traffic=Traffic(0.2, 0.2, resets=5, seed=3))
    assert verdict.passed and verdict.outcome.resets == 5
    assert not judged(
        tmp_path, *MUTANTS["sticks_after_reset"], vectors=one_sequence(ins, 300), traffic=Traffic(resets=5)
    ).passed


def test_resets_of_long_sequences_are_bounded(tmp_path):
    """A thousand resets of one sequence would be a thousand runs; short sequences bear them."""
    ins = load_dut(described(tmp_path)).instruction
    long, short = one_sequence(ins, 8_000), default_set(ins, 4_000, 3)
    asked = Traffic(0.1, 0.2, resets=1000, seed=3)
    assert affordable(asked, long) == Traffic(0.1, 0.2, resets=4, seed=3), "half of it each, on average"
    assert 450 <= affordable(asked, short).resets <= 1000
    assert affordable(Traffic(resets=0), long).resets == 0
    assert affordable(asked, one_sequence(ins, 50)).resets == 784
    plain = default_set(ins.stateless, 100, 1)
    assert affordable(asked, plain) == asked, "others send again what was in flight"


def test_a_run_starts_where_the_state_is_known(tmp_path):
    dut = load_dut(described(tmp_path))
    vectors = default_set(dut.instruction, 50, seed=1)
    inside = int(np.flatnonzero((vectors.operands["clear"] == 0) & (np.roll(vectors.d, 1) != 0))[0])
    with pytest.raises(RtlError, match="begin where `clear` is 1"):
        Job(dut, tmp_path, vectors[inside:])


# A check ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_fault_of_the_arithmetic_has_a_short_example_and_a_diagnosis(tmp_path):
    file = described(tmp_path, parameters={"F": 23})
    result = check(file, options(tmp_path, count=4000))
    assert not result.passed and result.example is not None and result.example.alone
    assert result.example.sequence is not None and len(result.example.sequence["a"]) <= 2
    assert result.diagnosis is not None and result.diagnosis.explains
    assert "23" in result.diagnosis.sentence()
    told = result.as_dict()
    assert told["example"]["sequence"][0]["clear"] == [1]
    assert result.capsule is not None
    again = check(file, options(tmp_path, vectors=result.capsule / "failing.npz"))
    assert not again.passed, "the capsule's vectors hold what leads to the failure"


@pytest.mark.long
def test_a_fault_of_the_state_has_a_sequence(tmp_path):
    """Whatever it held before: any number that is not zero, then one that should forget it."""
    result = check(described(tmp_path, *MUTANTS["clear_ignored"]), options(tmp_path))
    example = result.example
    assert example is not None and example.alone and example.sequence is not None
    assert len(example.sequence["a"]) == 2 and example.sequence["clear"][1] == 1
    assert np.count_nonzero(example.sequence["a"]) <= 2
    text = (result.capsule / "report.md").read_text()
    assert "2 dot products, of which the last is wrong" in text and "given in order, after a reset" in text
    assert json.loads((result.capsule / "report.json").read_text())["example"]["sequence"]


def test_a_result_after_an_unknown_one_is_not_diagnosed(tmp_path):
    """What the unit held is not known: neither is what it should answer."""
    dut = load_dut(described(tmp_path))
    vectors = default_set(dut.instruction, 100, seed=1)
    clear = vectors.operands["clear"]
    at = int(np.flatnonzero(clear[1:] == 0)[5])
    unknown = np.arange(100) == at
    outcome = Outcome("x", "x", "", vectors.d.copy(), np.ones(100, bool), unknown)
    operands, actual = as_dots(judge(vectors, outcome, dut.compare))
    assert len(actual) == 98 and "clear" not in operands
    np.testing.assert_array_equal(operands["c"], np.delete(vectors.resolved()["c"], [at, at + 1]))


def test_the_dut_is_a_unit_of_its_own(tmp_path):
    unit = open_unit(described(tmp_path), "selfcheck", "icarus", tmp_path / "build")
    ins = load_dut(tmp_path / "dut.yaml").instruction
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0x3C00, 0x4400, (3, 5, 4)).astype(np.uint16) for _ in "ab")
    np.testing.assert_array_equal(unit.dot(a, b, clear=0), ins.dot(a, b, clear=0))


# The description --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"handshake": {"kind": "combinational"}}, "keeps its accumulator.*port for the input's valid"),
        ({"handshake": {"kind": "latency", "latency": 5}}, "port for the input's valid"),
        ({"level": "tile"}, "expected dot"),
        ({"ports": {name: name for name in "abd"}}, "'ports' lacks clear"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, changes, message):
    with pytest.raises(SpecError, match=message):
        load_dut(described(tmp_path, **changes))


NO_RESET = [
    ("    input  logic                        rst_n,\n", "    input  logic                        unused,\n"),
    ("if (!rst_n) held <= '0;\n        else if (leave)", "if (leave)"),
    ("step_ready && !busy;", "step_ready && !busy && rst_n;"),
    (
        "    logic                  busy,",
        "    logic [2:0] on = 0;\n    always_ff @(posedge clk) if (!on[2]) on <= on + 1;\n"
        "    wire rst_n = on[2];\n    logic                  busy,",
    ),
]
"""The handshake starts by itself; what the unit holds at first is anything."""


def without_reset(folder, *changes):
    file = described(folder, *NO_RESET, *changes, constants={"unused": 1})
    raw = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({key: value for key, value in raw.items() if key != "reset"}))
    return file


def test_vectors_for_a_unit_without_a_reset_begin_with_clear(tmp_path):
    file = without_reset(tmp_path)
    assert check(file, options(tmp_path)).passed
    dut = load_dut(file)
    with pytest.raises(RtlError, match=r"has no reset.*`clear` is 1"):
        Job(dut, tmp_path, one_sequence(dut.instruction, 10))
    Job(load_dut(described(tmp_path)), tmp_path, one_sequence(dut.instruction, 10))


def test_a_unit_without_a_reset_can_be_checked(tmp_path):
    """It then holds nothing known until the first `clear`."""
    file = described(tmp_path, reset=None, constants={"rst_n": 1})
    raw = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({key: value for key, value in raw.items() if key != "reset"}))
    dut = load_dut(file)
    assert dut.reset is None and Traffic(resets=3).on(dut).resets == 0


def test_the_draft_finds_the_port(tmp_path):
    sources = [*(RTL / f"{name}.sv" for name in STEP), RTL / "fda_accumulator.sv"]
    text = draft(sources, instruction=str(UNIT), top="fda_accumulator", folder=tmp_path)
    assert yaml.safe_load(text)["ports"]["clear"] == "clear"
