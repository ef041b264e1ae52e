"""Vectors of every sort are among those that changes are tried on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import golden
from golden.program.state import places
from golden.vectors import default_set
from rtl_tb.dut.description import load_dut
from rtl_tb.engines.job import Job, Outcome, Traffic
from rtl_tb.engines.traffic import plan, plan_of
from rtl_tb.locate.clusters import Samples, result_classes, sequences, spread
from rtl_tb.locate.policy import DEFAULT
from rtl_tb.qualify.mutants import FOLDER
from rtl_tb.runs.verdict import Verdict


def test_what_is_seldom_is_taken_first() -> None:
    """Of 2,000 vectors two with an infinite result, three of one kind of stimulus."""
    vectors = default_set(golden.instruction("hopper", "HMMA.16816.F32"), 2000, seed=1)
    classes = result_classes(vectors)
    normal = np.flatnonzero(classes == 5)
    infinite = np.flatnonzero(classes == 1)[:2]
    kinds = np.zeros(2000, np.uint8)
    kinds[normal[:3]] = 7
    places = np.union1d(normal, infinite)
    found = spread(replace(vectors, kinds=kinds), places, 8, np.random.default_rng(1))
    assert len(found) == 8 and set(infinite) <= set(found) and set(normal[:3]) <= set(found)


def test_a_vector_of_a_sequence_comes_with_those_before_it() -> None:
    """Also one that is far from the start of its sequence, of which there is one among 500."""
    unit = load_dut(FOLDER / "units" / "systolic_mac" / "dut.yaml").instruction
    vectors = default_set(unit, 8000, seed=1)
    depth = places(vectors.operands["clear"])
    early, late = np.flatnonzero(depth == 0)[:499], np.flatnonzero(depth == 20)[-1:]
    found = sequences(vectors, np.union1d(early, late), 60, 100, np.random.default_rng(1))
    few = vectors[found]  # refuses what has lost the vectors before it
    assert 60 < len(found) <= 100 and set(range(late[0] - 20, late[0] + 1)) <= set(found)
    assert (unit.dot(**few.operands) == few.d).all() and few.stands_alone


def test_a_vector_that_is_far_from_the_start_of_its_sequence_comes_however_far() -> None:
    """All 100 vectors are one sequence of which the last alone is wrong, with room for 50."""
    unit = load_dut(FOLDER / "units" / "systolic_mac" / "dut.yaml").instruction
    vectors = default_set(unit, 100, seed=1)
    vectors.operands["clear"][:] = np.arange(100) == 0
    assert len(sequences(vectors, np.array([99]), 60, 50, np.random.default_rng(1))) == 100


def test_classes_are_those_of_the_right_results() -> None:
    vectors = default_set(golden.instruction("hopper", "HMMA.16816.F32"), 7, seed=1)
    words = [0x7FC00000, 0xFF800000, 0x80000000, 0x00000001, 0xBF800000, 0x3F800000, 0x007FFFFF]
    vectors = replace(vectors, d=np.array(words, vectors.d.dtype))
    assert result_classes(vectors).tolist() == [0, 1, 2, 3, 4, 5, 3]


def test_where_traffic_counts_a_vector_keeps_its_neighbours_and_their_waits(tmp_path: Path) -> None:
    """3 of 2,000 vectors fail; what lay on the input before one is shown again where it is among them."""
    dut = load_dut(FOLDER / "units" / "mode_inputs" / "dut.yaml")
    dut = replace(dut, clock="clk")  # a unit without a clock has no traffic
    vectors = default_set(dut.instruction, 2000, seed=1)
    job = Job(dut, tmp_path, vectors, traffic=Traffic(0.3, 0.2, 40))
    wrong = np.isin(np.arange(2000), [0, 700, 1999])
    outcome = Outcome("fast", "verilator", "", vectors.d, ~wrong, ~wrong)
    none = np.zeros(2000, np.bool_)
    samples = Samples(Verdict(vectors, outcome, wrong, none, none, wrong), job, DEFAULT)
    assert set(samples.picked) == {*range(5), *range(684, 705), *range(1983, 2000)}
    whole, some = plan(job.traffic.on(dut), 2000), plan_of(job.at(samples.picked).at(np.arange(5, 40)))
    here = samples.picked[5:40]
    for name in ("gap", "stall", "reset"):
        assert np.array_equal(getattr(some, name), getattr(whole, name)[here])
    there = np.isin(whole.other[here], here)
    assert there.any() and np.array_equal(here[some.other[there]], whole.other[here][there])
