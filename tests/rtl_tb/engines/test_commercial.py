"""The engine selfcheck on VCS, Questa and Xcelium, for which stand_in.py stands in: it takes the commands of
rtl_tb/simulators/commercial.py, and no others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import engine_dut as small
import numpy as np
import pytest
from typer.testing import CliRunner

from golden.cli.app import app
from rtl_tb import engines
from rtl_tb.engines.job import Job, Traffic
from rtl_tb.errors import ElaborationError, RtlError, SimulatorMissing
from rtl_tb.regress.fingerprints import unit_state
from rtl_tb.simulators import commercial

STAND_IN = Path(__file__).with_name("stand_in.py")
PROGRAMS = {"vcs": ["vcs"], "questa": ["vsim", "vlog", "vlib"], "xcelium": ["xrun"]}
ALL = list(PROGRAMS)


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The stand-ins on PATH; returns what they were called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "stand_in"
    script.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
    script.chmod(0o755)
    for name in (name for names in PROGRAMS.values() for name in names):
        (folder / name).symlink_to(script)
    log = tmp_path / "calls"
    log.touch()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_LOG", str(log))
    return lambda: log.read_text().splitlines()


def job_of(folder, simulator, count=60, fault=0, at=0):
    dut = small.write_small(folder / "unit")
    vectors = small.small_vectors(dut, count, fault, at)
    return Job(dut, folder / "build", vectors, simulator, Traffic(0.2, 0.3, seed=3), timeout_cycles=200)


@pytest.mark.parametrize("simulator", ALL)
def test_the_same_answers_as_on_icarus(tmp_path, calls, simulator):
    job = job_of(tmp_path, simulator, 60, small.WRONG, 20)
    found = engines.run("selfcheck", job)
    wanted = engines.run("selfcheck", job_of(tmp_path, "icarus", 60, small.WRONG, 20))
    np.testing.assert_array_equal(found.actual, wanted.actual)
    assert (found.cycles, found.failures, found.received.all()) == (wanted.cycles, wanted.failures, True)
    assert np.flatnonzero(found.actual != job.vectors.d).tolist() == [20]
    assert found.version.startswith(commercial.COMMERCIAL[simulator].title)
    made = [line.split()[0] for line in calls()]
    assert (
        made
        == {
            "vcs": ["vcs", "vcs", "testbench"],
            "questa": ["vsim", "vlib", "vlog", "vsim"],
            "xcelium": ["xrun", "xrun", "xrun"],
        }[simulator]
    )


@pytest.mark.long
def test_a_check_compiles_once(tmp_path, calls, simulator="questa"):
    small.write_small(tmp_path / "unit")
    words = [
        "rtl",
        "check",
        str(tmp_path / "unit" / "small.yaml"),
        "--engine",
        "selfcheck",
        "--sim",
        simulator,
    ]
    places = [
        "--build",
        str(tmp_path / "build"),
        "--failures",
        str(tmp_path / "failures"),
        "--count",
        "50",
        "--json",
    ]
    run = CliRunner().invoke(app, [*words, *places])
    assert run.exit_code == 0 and json.loads(run.stdout)["simulator"] == simulator
    assert len([line for line in calls() if "files.f" in line]) == 1


@pytest.mark.parametrize("simulator", ALL)
def test_an_error_of_the_unit_is_no_pass(tmp_path, calls, simulator):
    job = job_of(tmp_path, simulator)
    (tmp_path / "unit" / "small.sv").write_text(
        small.RTL.replace("initial {", 'initial #55 $error("lost"); initial {')
    )
    with pytest.raises(RtlError, match=r"reported an error: .*lost"):
        engines.run("selfcheck", job)


def test_a_unit_that_ends_the_simulation_is_no_pass(tmp_path, calls, simulator="xcelium"):
    with pytest.raises(RtlError, match="ended before the testbench did"):
        engines.run("selfcheck", job_of(tmp_path, simulator, 60, small.FINISH, 30))


def test_a_unit_that_is_refused_is_reported(tmp_path, calls, simulator="vcs"):
    job = job_of(tmp_path, simulator)
    (tmp_path / "unit" / "small.sv").write_text(small.RTL.replace("reg v1,", "reg v1, v1,"))
    with pytest.raises((ElaborationError, RtlError), match=r"refused|v1"):
        engines.run("selfcheck", job)


def test_other_engines_and_missing_programs_are_reported(tmp_path, monkeypatch):
    with pytest.raises(RtlError, match="engine 'fast' does not run on vcs; use --engine selfcheck"):
        engines.check_choice("fast", "vcs")
    monkeypatch.setenv("MMAGOLD_XRUN", str(tmp_path / "xrun"))
    with pytest.raises(SimulatorMissing, match="Xcelium was not found: MMAGOLD_XRUN is"):
        commercial.find("xcelium")


def test_results_of_a_simulator_that_lists_no_files_are_not_used_again(tmp_path):
    dut = small.write_small(tmp_path)
    assert unit_state(dut, "icarus").listed and not unit_state(dut, "vcs").listed


@pytest.mark.parametrize(
    ("simulator", "line"),
    [
        ("vcs", 'Error: "a.sv", 5: mmagold_tb.u: at time 10 ns'),
        ("vcs", '"a.sv", 7: mmagold_tb.u.p: started at 5ns failed at 10ns'),
        ("questa", "# ** Error: Assertion error."),
        ("questa", "** Fatal: stopped"),
        ("xcelium", "xmsim: *E,ASRTST (./a.sv,5): (time 5 NS) Assertion has failed"),
    ],
)
def test_lines_that_are_complaints(simulator, line):
    found = commercial.COMMERCIAL[simulator].complaint.search(f"loading\n{line}\nPASS\n")
    assert found is not None and found[0] == line
    assert commercial.COMMERCIAL[simulator].complaint.search("# run -all\nPASS 0 errors\n") is None
