"""A DUT behind an engine is a unit: probes measure it, comparing finds where it differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import golden
import rtl_tb
from golden.identify.blackbox.repeatability import at_every_place
from golden.identify.comparing import compare
from golden.identify.probe import probes
from golden.identify.probe.probes import Probe
from golden.vectors.vectorset import default_set
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Outcome
from rtl_tb.errors import RtlError
from rtl_tb.runs.unit import DutRun, open_unit

EXAMPLES = Path(rtl_tb.__file__).parent / "examples"


@pytest.mark.long
def test_a_dut_is_measured_and_compared(tmp_path: Path) -> None:
    unit = open_unit(EXAMPLES / "wrong_f" / "dut.yaml", build=tmp_path)
    hopper = golden.instruction("hopper", "HMMA.16816.F32")
    assert probes.kept_bits(Probe(unit)) == 24 and probes.kept_bits(Probe(hopper)) == 25
    found = compare(hopper, unit, budget=4000)
    assert found.numeric > 0 and found.example is not None and found.example.trace_y is None
    assert found.example.products <= 2
    assert int(unit.dot(**found.example.operands_y)) == found.example.y != found.example.x


def test_whole_tiles_are_asked_of_a_dut_that_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every row and column; dot products go to one place of a tile."""
    dut = replace(load_dut(EXAMPLES / "wrong_f" / "dut.yaml"), level="tile")
    ins = dut.instruction

    def run(engine: str, job: Job, progress: object = None) -> Outcome:
        count = len(job.vectors)
        d = job.vectors.d ^ np.eye(ins.m, ins.n, 1, dtype=job.vectors.d.dtype)
        return Outcome(engine, "none", "0", d, np.ones(count, bool), np.zeros(count, bool))

    monkeypatch.setattr("rtl_tb.engines.run", run)
    job = Job(dut, tmp_path, default_set(ins, 0, level="tile"), program=tmp_path)
    unit = DutRun(job, "fast").unit()
    dots = golden.stimuli.generate(ins, "narrow", 3, np.random.default_rng(0))
    assert (unit.dot(**dots) == ins.dot(**dots)).all()
    assert unit.tile is not None
    found = at_every_place(ins, dots, unit.tile)
    assert all(one is not None and "row 0, column 1" in one.said for one in found)


@pytest.mark.parametrize("flag", ["unknown", "received"])
def test_what_is_not_known_is_no_answer(flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dut = load_dut(EXAMPLES / "wrong_f" / "dut.yaml")
    ins = dut.instruction

    def run(engine: str, job: Job, progress: object = None) -> Outcome:
        count = len(job.vectors)
        outcome = Outcome(engine, "none", "0", job.vectors.d, np.ones(count, bool), np.zeros(count, bool))
        getattr(outcome, flag)[1] ^= True
        return outcome

    monkeypatch.setattr("rtl_tb.engines.run", run)
    job = Job(dut, tmp_path, default_set(ins, 0), program=tmp_path)
    unit = DutRun(job, "fast").unit()
    operands = default_set(ins, 3).operands
    with pytest.raises(RtlError, match="1 of 3 results are X or Z or never came"):
        unit.dot(**operands)
    first = {name: codes[:1] for name, codes in operands.items()}
    monkeypatch.setattr("rtl_tb.engines.run", lambda engine, job: Outcome(
        engine, "none", "0", job.vectors.d, np.ones(1, bool), np.zeros(1, bool)))  # fmt: skip
    assert (unit.dot(**first) == ins.dot(**first)).all()
