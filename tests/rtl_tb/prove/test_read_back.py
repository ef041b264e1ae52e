"""Exported SystemVerilog, read as any unit is, is proved to be the circuit that it was printed from: every
kind of step, in formats of four bits. tests/golden/circuit compares the circuit with the model for all
operands of these units; campaigns/export_sv.py proves wider ones.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from step_kinds import UNITS, text

import golden
from golden.circuit import systemverilog
from golden.proof.checker import check
from golden.proof.sweep import PROVED, REFUTED, Sweep
from golden.proof.verdict import verdict_of
from rtl_tb.dut.description import load_dut
from rtl_tb.prove.problem import problem_of

pytest.importorskip("bitwuzla")
pytest.importorskip("z3")
pytest.importorskip("pyosys")


def exported(name: str, folder: Path) -> Path:
    """The text; the dut.yaml lies in the same folder."""
    file = folder / "of.yaml"
    file.write_text(text(name))
    systemverilog.write(golden.load_instruction(file), folder / "sv", "tiny", (), file)
    return folder / "sv" / "tiny.sv"


def sweep_of(file: Path) -> Sweep:
    return Sweep(problem_of(load_dut(file.with_name("dut.yaml")))[0], math.inf)


@pytest.mark.parametrize("name", UNITS)
def test_the_text_is_proved_to_be_the_circuit(name: str, tmp_path: Path) -> None:
    sweep = sweep_of(exported(name, tmp_path))
    assert verdict_of(sweep)[0] == PROVED
    check(sweep.certificate, 60)


def test_a_text_with_another_rounding_is_refuted(tmp_path: Path) -> None:
    file = exported("a fused sum", tmp_path)
    changed = re.sub(r"(assign rounded = .*)\+", r"\1-", file.read_text())
    assert changed != file.read_text()
    file.write_text(changed)
    assert verdict_of(sweep_of(file))[0] == REFUTED
