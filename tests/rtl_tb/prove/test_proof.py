"""Proofs: units of several structures are proved, faults are refuted by operands that the simulator gets
wrong, and what is neither is open."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from proved_units import REGISTERED, SECOND, SUM, unit
from reference_units import load
from typer.testing import CliRunner

from golden.cli.app import app
from golden.identify.diagnose.mutations import changed
from golden.proof import checker, verdict
from golden.proof.problem import planted
from golden.proof.sweep import OPEN, PROVED, REFUTED, Sweep
from rtl_tb.check.options import Options
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.errors import RtlError
from rtl_tb.prove import netlist, proof
from rtl_tb.prove.netlist import Unreadable
from rtl_tb.prove.problem import problem_of
from rtl_tb.prove.proof import prove

pytest.importorskip("bitwuzla")
pytest.importorskip("pyosys")

OTHER = Path(__file__).parent / "other_fda.yaml"
"""A fused dot-add of another structure than the reference unit's."""
TREE = (
    SUM[: SUM.index("    logic signed")]
    + """
    // Carry-save adders.
    logic [35:0] term [0:4], s, k, next;
    always_comb begin
        for (int i = 0; i < 4; i++) begin
            term[i] = 36'($signed(a[8*i+:8]) * $signed(b[8*i+:8]));
        end
        term[4] = {{4{c[31]}}, c};
        s = term[0]; k = term[1];
        for (int i = 2; i < 5; i++) begin
            next = s ^ k ^ term[i];
            k = ((s & k) | (s & term[i]) | (k & term[i])) << 1;
            s = next;
        end
    end
    wire [35:0] sum = s + k;
"""
    + SUM[SUM.index("    wire high") :]
)


def options(folder: Path) -> Options:
    return Options(failures=folder / "failures", build=folder / "build", budget=5.0)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(SUM, id="as the specification"),
        pytest.param(TREE, id="carry-save", marks=pytest.mark.long),
    ],
)
def test_units_of_two_structures_are_proved(body: str, tmp_path: Path) -> None:
    found = prove(unit(body + REGISTERED, tmp_path), 60)
    assert found.verdict == PROVED and not found.open
    assert sum(found.outcome.lemmas.values()) > 0 and len(found.outcome.faults) == verdict.FAULTS


def test_carry_save_adders_are_found_to_be_the_sum(tmp_path: Path) -> None:
    problem, _ = problem_of(unit(TREE + REGISTERED, tmp_path))
    assert verdict.verdict_of(Sweep(problem, time.monotonic() + 300))[0] == PROVED


@pytest.mark.long
@pytest.mark.parametrize("dut", [load("fda_volta_f16"), load_dut(OTHER)], ids=["reference", "other"])
def test_a_fused_dot_add_is_proved(dut: Dut) -> None:
    found = prove(dut, 120)
    assert found.verdict == PROVED, found.open
    assert "values alone" not in found.outcome.lemmas


RARE = {
    "one value of the accumulator": ("sum[31:0];", "c == 32'h1234abcd ? ~sum[31:0] : sum[31:0];"),
    "48 bits of operands": (": sum[31:0];", ": {a[23:0], b[31:8]} == 48'h13579bdf2468 ? 0 : sum[31:0];"),
    "one sum": (": sum[31:0];", ": sum == 36'h0_0badcafe ? 7 : sum[31:0];"),
    "near the largest sum": ("high ?", "high && sum != 36'h0_8000fc04 ?"),
}


QUICK = ("48 bits of operands", "one sum")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in RARE]
)
def test_a_rare_fault_is_refuted_by_operands_that_the_simulator_gets_wrong(name: str, tmp_path: Path) -> None:
    found = prove(unit(SUM.replace(*RARE[name]) + REGISTERED, tmp_path), 60, options(tmp_path))
    assert found.verdict == REFUTED and found.operands is not None
    assert found.check is not None and not found.check.passed
    assert found.check.verdict.failed[0], "the counterexample is the first vector"


def test_a_fault_in_a_fused_dot_add_is_refuted(tmp_path: Path) -> None:
    problem, _ = problem_of(load("fda_volta_f16"))
    for seed in range(3):
        fault = planted(problem, seed)
        assert fault is not None
        assert verdict.verdict_of(Sweep(fault[0], time.monotonic() + 60))[0] == REFUTED, fault[1]


def test_what_is_not_settled_in_time_is_open_and_says_what_is_left() -> None:
    found = prove(load("fma_f64_dmma"), 2)
    assert found.verdict == OPEN and found.operands is None
    assert len(found.open) > 1 and "the time ended" in found.open[-1]


def test_a_proof_that_is_not_accepted_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_kwargs: Any) -> None:
        raise checker.NotAProof("lemma 3 does not hold")

    monkeypatch.setattr(checker, "check", refuse)
    found = prove(unit(SUM + REGISTERED, tmp_path), 60)
    assert found.verdict == OPEN and "lemma 3" in found.open[0]


def test_a_search_that_would_prove_a_planted_fault_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict, "planted", lambda problem, _seed: (problem, "nothing at all"))
    found = prove(unit(SUM + REGISTERED, tmp_path), 60)
    assert found.verdict == OPEN and "planted" in found.open[0]


def test_a_proof_is_tried_on_changes_of_the_specification(tmp_path: Path) -> None:
    found = prove(unit(SUM + REGISTERED, tmp_path), 60, options(tmp_path))
    assert found.verdict == PROVED and len(found.outcome.changes) == verdict.FAULTS


def test_a_search_that_proves_a_changed_specification_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dut = unit(SUM + REGISTERED, tmp_path)
    problem, _ = problem_of(dut)
    same = [verdict.Fault("nothing at all", problem, {})]
    monkeypatch.setattr(proof, "changed_specifications", lambda *_: same)
    found = prove(dut, 60)
    assert found.verdict == OPEN and "specification" in found.open[0]


def test_a_changed_specification_is_confirmed_by_both_models(tmp_path: Path) -> None:
    """Operands for which the model of a change is as the unit is no example of it."""
    dut = unit(SUM + REGISTERED, tmp_path)
    fault = next(iter(proof.changed_specifications(dut, problem_of(dut)[0])))
    assert fault.shown is not None
    fault.confirm(fault.shown)
    wrong = replace(fault.problem, spec=fault.problem.unit)
    with pytest.raises(RtlError, match="a fault of mmagold"):
        proof._confirm(dut, _other(dut), wrong, fault.shown)


def _other(dut: Dut) -> Dut:
    """The unit with the first change of its specification."""
    return replace(dut, instruction=next(changed(dut.instruction, proof._SEED))[1])


def test_one_transaction_is_no_proof_of_the_others(tmp_path: Path) -> None:
    """The second transaction is wrong for one value of c, which no vector has."""
    found = prove(unit(SECOND, tmp_path), 60, options(tmp_path))
    assert found.verdict == OPEN and "one transaction after a reset is proved" in found.open[0]
    steady = prove(unit(SUM + REGISTERED, tmp_path), 60, options(tmp_path))
    assert steady.verdict == PROVED and any("also in traffic" in text for text in steady.claim)


def test_excluded_classes_of_an_operand_whose_format_the_mode_chooses_are_refused(tmp_path: Path) -> None:
    (tmp_path / "unit.yaml").write_text(
        "unit: mac\nshape: {k: 2}\nmodes: {sign: [s8, u8]}\nformats: {a: $sign, b: s8, c: s32, d: s32}\n"
        "steps:\n  - multiply: {to: products}\n  - sum: {of: [products, c], to: total}\n"
        "  - round: {of: total, rounding: toward_zero, overflow: wrap, zero: positive}\n"
    )
    (tmp_path / "unit.sv").write_text(
        "module unit (input [15:0] a, b, input [31:0] c, input mode, output [31:0] d);\n"
        "assign d = c; endmodule\n"
    )
    (tmp_path / "dut.yaml").write_text(
        "dut: unit\ntop: unit\nsources: [unit.sv]\nunit: unit.yaml\nhandshake: {kind: combinational}\n"
        "ports: {a: a, b: b, c: c, d: d, mode: mode}\nexclude: {a: negative}\n"
    )
    with pytest.raises(Unreadable, match="s8 or u8 as the mode says"):
        problem_of(load_dut(tmp_path / "dut.yaml"))


def test_a_text_that_the_simulator_reads_in_another_way_is_not_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The netlist is right, and what the simulator runs is not, for a reason that nothing else sees."""
    monkeypatch.setattr(netlist, "other_readings", lambda _dut: [])
    chosen = "`ifdef VERILATOR\n    wire [31:0] mine = 0;\n`else\n    wire [31:0] mine = right;\n`endif\n"
    found = prove(
        unit(SUM + chosen + REGISTERED.replace("<= right", "<= mine"), tmp_path), 60, options(tmp_path)
    )
    assert found.verdict == OPEN and "fail in the simulator" in found.open[0]


def test_what_the_simulator_gets_right_is_no_counterexample(tmp_path: Path) -> None:
    """Random bits for x, which may be anything, are hardly ever ones in all of 16 places."""
    ones = " & ".join(f"(1'bx & c[{bit}])" for bit in range(16))
    dut = unit(SUM.replace(": sum[31:0];", f": sum[31:0] | 32'({ones});") + REGISTERED, tmp_path)
    zeros = replace(options(tmp_path), four_states=False, synthesis="off")
    found = prove(dut, 60, zeros)
    assert found.verdict == OPEN and "x" in found.open[0] and found.operands is not None


@pytest.mark.long
def test_what_the_simulator_gets_wrong_with_ones_for_x_is_one(tmp_path: Path) -> None:
    dut = unit(SUM.replace(": sum[31:0];", ": sum[31:0] | 32'(1'bx & c[0]);") + REGISTERED, tmp_path)
    assert prove(dut, 60, options(tmp_path)).verdict == REFUTED


def test_what_the_comparison_allows_is_no_difference(tmp_path: Path) -> None:
    text = (load("fda_volta_f16").file).read_text()
    assert "NAN_WORD" not in text
    folder = load("fda_volta_f16").file.parent
    text = text.replace("../", f"{folder.parent}/").replace(
        "FLOOR: -131}", "FLOOR: -131, NAN_WORD: 0x7fc12345}"
    )
    (tmp_path / "strict.yaml").write_text(text)
    (tmp_path / "any.yaml").write_text(text + "compare: {nan: any}\n")
    problem, _ = problem_of(load_dut(tmp_path / "strict.yaml"))
    assert verdict.verdict_of(Sweep(problem, time.monotonic() + 60))[0] == REFUTED
    relaxed = prove(load_dut(tmp_path / "any.yaml"), 60, options(tmp_path))
    assert relaxed.verdict == PROVED and any("nan: any" in text for text in relaxed.claim)


# The command ------------------------------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["rtl", "prove", *words])
    return found.exit_code, found.output


def test_the_command_says_what_is_proved_and_assumed(tmp_path: Path) -> None:
    dut = unit(SUM + REGISTERED, tmp_path)
    status, text = run(str(dut.file))
    assert status == 0
    for words in ("PROVED", "one transaction after reset", "1 cycle after the operands", "z3", "planted"):
        assert words in text, text


@pytest.mark.long
@pytest.mark.parametrize("form", [(), pytest.param(("--json",), marks=pytest.mark.long)])
def test_the_command_shows_a_counterexample_explained(form: tuple[str, ...], tmp_path: Path) -> None:
    dut = unit(SUM.replace("high ?", "high && c != 32'h7fffffff ?") + REGISTERED, tmp_path)
    places = ("--failures", str(tmp_path / "failures"), "--build", str(tmp_path / "build"))
    status, text = run(str(dut.file), *places, *form)
    assert status == 1
    if form:
        assert json.loads(text)["verdict"] == REFUTED
    else:
        assert "FAIL" in text and "REFUTED" in text


def test_a_missing_tool_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    dut = unit(SUM + REGISTERED, tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "bitwuzla" else find(name))
    status, text = run(str(dut.file))
    assert status != 0 and "pip install bitwuzla" in text + str(
        CliRunner().invoke(app, ["rtl", "prove", str(dut.file)]).exception
    )
