"""The fast engine: interruption, damaged programs, units that crash or print, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import engine_dut as small
import numpy as np
import pytest
from long_run import long_after

from rtl_tb.engines import fast
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError
from rtl_tb.simulators import simulators


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job on the small unit, built once."""
    folder = tmp_path_factory.mktemp("fast")
    dut = small.write_small(folder)
    return Job(dut, folder / "build", small.small_vectors(dut, 200_000))


def test_progress_and_interruption(job):
    """What the callback raises (Ctrl-C) ends the run, and the next one starts afresh."""
    seen = []
    outcome = fast.run(job, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(job.vectors), len(job.vectors))
    assert seen == sorted(seen)
    assert outcome.cycles >= len(job.vectors)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fast.run(job, interrupt)
    assert np.array_equal(fast.run(job).actual, job.vectors.d)


def test_an_interrupted_build_leaves_nothing(job, tmp_path, monkeypatch):
    """Neither a half program nor its folder."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulators, "elaborate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fast.build(replace(job, build=tmp_path), simulators.verilator())
    assert not list((tmp_path / "fast").iterdir())


def test_what_it_refuses(job, tmp_path):
    """One line each."""
    with pytest.raises(RtlError, match="needs Verilator, not icarus"):
        fast.run(Job(job.dut, job.build, job.vectors[:2], "icarus"))
    with pytest.raises(RtlError, match="writes no waveform"):
        fast.run(Job(job.dut, job.build, job.vectors[:2], waves=tmp_path / "x.vcd"))


def test_a_damaged_program(job):
    """One line that names the file, where it is damaged after a check has found it; the next check builds."""
    few = replace(job, build=job.build.parent / "damaged", vectors=job.vectors[:2])
    program = fast.build(few, simulators.verilator())
    program.write_bytes(b"not a program")
    with pytest.raises(RtlError, match=r"fast/\w+/dut cannot be run"):
        fast.run(replace(few, program=program))
    assert np.array_equal(fast.run(few).actual, few.vectors.d)


@pytest.mark.parametrize(
    ("does", "said"),
    long_after(
        1,
        [
            ('$c("std::raise(SIGSEGV);")', r"without an answer \(signal SIGSEGV\)"),
            ('$c("_exit(0);")', r"without an answer; does the unit call exit"),
        ],
    ),
    ids=["crash", "exit"],
)
def test_a_unit_that_ends_the_process(tmp_path, does, said):
    """It takes neither this process with it nor gets a verdict."""
    dut = small.write_small(tmp_path)
    headers = "`systemc_header\n#include <csignal>\n#include <unistd.h>\n`verilog\n"
    rtl = small.RTL.replace("    reg v1", f"{headers}    reg v1")
    (tmp_path / "small.sv").write_text(
        rtl.replace("endmodule", f"always @(posedge clk) if (v3) {does}; endmodule")
    )
    with pytest.raises(RtlError, match=said):
        fast.run(Job(dut, tmp_path / "build", small.small_vectors(dut, 5)))


def test_what_the_unit_prints_is_in_the_outcome_alone(tmp_path, capfd):
    """On stdout it would break the JSON of --json, on stderr it would stand before the verdict."""
    dut = small.write_small(tmp_path)
    printing = 'always @(posedge clk) if (v3) $display("hello"); endmodule'
    (tmp_path / "small.sv").write_text(small.RTL.replace("endmodule", printing))
    outcome = fast.run(Job(dut, tmp_path / "build", small.small_vectors(dut, 5)))
    print("the end", flush=True)
    assert capfd.readouterr() == ("the end\n", "")
    assert outcome.printed == "hello\n" * 5


def test_a_unit_that_prints_for_ever_fills_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(fast, "PRINTED", 1000)
    dut = small.write_small(tmp_path)
    printing = 'always @(posedge clk) if (v3) for (int i = 0; i < 1000; i++) $display("hello"); endmodule'
    (tmp_path / "small.sv").write_text(small.RTL.replace("endmodule", printing))
    assert len(fast.run(Job(dut, tmp_path / "build", small.small_vectors(dut, 5))).printed) == 1000
