"""The cache of compiled units must never give a verdict on another text than the one that lies there now.

Every test first checks a unit, then changes what it depends on in a way that a cache may miss,
and checks again.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import engine_dut as small
import numpy as np
import pytest
from long_run import long_after

from rtl_tb import engines
from rtl_tb.dut.bit_ranges import NAME
from rtl_tb.dut.description import load_dut
from rtl_tb.engines import builds, contents
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.runs.verdict import judge
from rtl_tb.simulators import simulators

EVERY_ENGINE = [
    ("fast", "verilator"),
    ("selfcheck", "icarus"),
    ("selfcheck", "verilator"),
    ("cocotb", "icarus"),
    ("cocotb", "verilator"),
]
RIGHT, WRONG = "total = c;", "total = c ^ 1;"


def job_of(dut, engine, simulator, count=40):
    """A job in the folder of the unit."""
    return Job(dut, dut.file.parent / "build", small.small_vectors(dut, count), simulator)


def passes(dut, engine, simulator) -> bool:
    job = job_of(dut, engine, simulator)
    return judge(job.vectors, engines.run(engine, job), dut.compare).passed


@pytest.mark.parametrize(("engine", "simulator"), long_after(1, EVERY_ENGINE))
def test_headers_wherever_the_simulator_finds_them(tmp_path, engine, simulator):
    """A header named by a macro; one that another header names;
    one that appears in an earlier include folder."""
    small.write_small(tmp_path)
    (tmp_path / "small.sv").write_text(
        '`define HDR "sum.defs"\n`include `HDR\n' + small.RTL.replace(RIGHT, "total = c ^ `OFF;")
    )
    for name in ("early", "late"):
        (tmp_path / name).mkdir()
    (tmp_path / "late" / "sum.defs").write_text('`include "deep.svh"\n')
    (tmp_path / "late" / "deep.svh").write_text("`define OFF 0\n")
    dut = dataclasses.replace(
        load_dut(tmp_path / "small.yaml"), include=(tmp_path / "early", tmp_path / "late")
    )
    assert passes(dut, engine, simulator)
    (tmp_path / "late" / "deep.svh").write_text("`define OFF 1\n")
    assert not passes(dut, engine, simulator)
    if (engine, simulator) not in EVERY_ENGINE[:2]:
        return  # which folder a header comes from is the answer of the same front end as in the others
    (tmp_path / "early" / "deep.svh").write_text("`define OFF 0\n")
    assert passes(dut, engine, simulator)
    (tmp_path / "early" / "deep.svh").unlink()
    assert not passes(dut, engine, simulator)


@pytest.mark.long
def test_modules_that_verilator_finds_by_itself(tmp_path):
    """Verilator looks for the file of a missing module in the include folders."""
    small.write_small(tmp_path)
    (tmp_path / "lib").mkdir()
    instance = "wire [31:0] e; offset u_offset (.e(e));"
    (tmp_path / "small.sv").write_text(
        small.RTL.replace("reg v1,", f"{instance} reg v1,").replace(RIGHT, "total = c ^ e;")
    )
    offset = "module offset (output [31:0] e); assign e = {}; endmodule\n"
    dut = dataclasses.replace(load_dut(tmp_path / "small.yaml"), include=(tmp_path / "lib",))
    for value, right in ((0, True), (1, False), (0, True)):
        (tmp_path / "lib" / "offset.sv").write_text(offset.format(value))
        assert passes(dut, "fast", "verilator") == right


PASSED, FAILED = 0, 3


@pytest.mark.long
def test_a_header_of_cpp_in_the_text(tmp_path):
    """Verilator copies C++ out of a source, and lists nothing that it includes: compiled each time."""
    dut = small.write_small(tmp_path)
    header = tmp_path / "flip.h"
    included = f'`systemc_header\n#include "{header}"\n`verilog\n'
    flips = 'reg [31:0] flip; always @(posedge clk) flip <= $c("flips()");\n'
    text = small.RTL.replace(
        "assign d = fault == 3 ? d3 + churn : d3;", f"{flips}{included}assign d = d3 ^ flip;"
    )
    (tmp_path / "small.sv").write_text(text)
    for value in (0, 1):
        header.write_text(f"static inline int flips() {{ return {value}; }}\n")
        assert passes(dut, "fast", "verilator") == (value == 0)


def test_a_source_that_changes_and_changes_back(tmp_path):
    """The content is the same before and after; the time stamps are not."""
    file = tmp_path / "x.sv"
    file.write_text("one")
    inputs = builds.Inputs.read([file])
    assert inputs.changed() is None
    before = file.stat()
    file.write_text("two")
    file.write_text("one")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert inputs.changed() == file


def test_a_source_that_never_rests(tmp_path, monkeypatch):
    """One line that names the file; nothing is cached."""
    dut = small.write_small(tmp_path)
    elaborate, number = simulators.elaborate, itertools.count()

    def save_meanwhile(*arguments: object, **options: object) -> str:
        (tmp_path / "small.sv").write_text(small.RTL + f"// {next(number)}\n")
        said: str = elaborate(*arguments, **options)  # type: ignore[arg-type]
        return said

    monkeypatch.setattr(simulators, "elaborate", save_meanwhile)
    with pytest.raises(RtlError, match=r"small\.sv changed each of the 3 times"):
        passes(dut, "selfcheck", "icarus")
    assert not list((tmp_path / "build" / "selfcheck_icarus").iterdir())


def test_a_build_is_found_again(tmp_path):
    """The same content: the same build, untouched; another tool of the same version: another build."""
    dut = small.write_small(tmp_path)
    job, simulator = job_of(dut, "selfcheck", "icarus"), simulators.icarus()
    first = engines.build("selfcheck", job)
    stamps = {path: path.stat().st_mtime_ns for path in first.parent.rglob("*")}
    engines.run("selfcheck", job)
    assert engines.build("selfcheck", job) == first
    assert stamps == {path: path.stat().st_mtime_ns for path in first.parent.rglob("*")}
    assert [path.name for path in first.parent.parent.iterdir()] == [first.parent.name]
    other = dataclasses.replace(simulator, version_text="Icarus Verilog 11.0 (patched)")
    from rtl_tb.engines import selfcheck

    assert selfcheck.build(job, other) != first


@pytest.mark.long
def test_a_wrapper_in_the_build_folder_is_no_source(tmp_path):
    """A pattern that reaches into build/ finds the wrappers of earlier checks,
    with other parameters in them."""
    small.write_small(tmp_path)
    rtl = small.RTL.replace("module small_dot (", "module small_dot #(parameter BIAS = 0) (").replace(
        RIGHT, "total = c + BIAS;"
    )
    (tmp_path / "small.sv").write_text(rtl)
    text = small.DUT.replace("[small.sv]", "['**/*.sv']")
    for bias, right in ((0, True), (1, False)):
        (tmp_path / "small.yaml").write_text(text + f"parameters: {{BIAS: {bias}}}\n")
        assert passes(load_dut(tmp_path / "small.yaml"), "fast", "verilator") == right


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = [lambda content: content[: len(content) // 2], lambda content: bytes(len(content)), flip]
"""Cut, zeros, another bit."""


def program_in(engine, job):
    """The file that a build runs."""
    found = engines.build(engine, job)
    return found / ("sim.vvp" if job.simulator == "icarus" else NAME) if found.is_dir() else found


@pytest.mark.parametrize(("engine", "simulator"), long_after(1, [EVERY_ENGINE[1], *EVERY_ENGINE[::2]]))
def test_a_damaged_build_is_found_out_before_it_runs(tmp_path, engine, simulator):
    """The verdict is that of a new build, which the next check finds. The worst damage is the program of
    another unit, which runs to its end and answers."""
    dut = small.write_small(tmp_path)
    job = job_of(dut, engine, simulator)
    program = program_in(engine, job)
    right = program.read_bytes()
    before = sorted(path.name for path in program.parent.iterdir())
    for damage in DAMAGES:
        program.write_bytes(damage(right))
        assert passes(dut, engine, simulator)
    made = program.stat().st_mtime_ns
    assert passes(dut, engine, simulator) and program.stat().st_mtime_ns == made
    assert sorted(path.name for path in program.parent.iterdir()) == before
    (tmp_path / "small.sv").write_text(small.RTL.replace(RIGHT, WRONG))
    program_in(engine, job).write_bytes(right)
    assert not passes(dut, engine, simulator)


def test_damage_next_to_the_program(tmp_path):
    """The digests themselves, and the wrapper, whose first line says that a text was translated: without it,
    a translation would pass for the source."""
    dut = small.write_small(tmp_path)
    folder = engines.build("selfcheck", job_of(dut, "selfcheck", "icarus")).parent
    for name in (contents.FILE, f"{NAME}.sv"):
        for damage in [*DAMAGES, lambda _: b"{}"]:
            (folder / name).write_bytes(damage((folder / name).read_bytes()))
            assert not contents.intact(folder)
            assert passes(dut, "selfcheck", "icarus") and contents.intact(folder)


@pytest.mark.long
def test_many_find_one_damaged_build_at_once(tmp_path):
    """Each builds it anew; one of these builds is left and nothing else, and no check meets a gap."""
    dut = small.write_small(tmp_path)
    program = engines.build("selfcheck", job_of(dut, "selfcheck", "icarus"))
    passed: list[bool] = []
    for _ in range(4):
        program.write_bytes(flip(program.read_bytes()))
        threads = [
            threading.Thread(target=lambda: passed.append(passes(dut, "selfcheck", "icarus")))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert contents.intact(program.parent)
        left = [path for path in program.parent.parent.iterdir() if not path.name.startswith("run_")]
        assert left == [program.parent]
    assert passed == [True] * 24


def test_many_threads_build_one_design(tmp_path):
    """Each compiles for itself; one build is left, and all have it."""
    dut = small.write_small(tmp_path)
    found: list[Path] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(engines.build("selfcheck", job_of(dut, "selfcheck", "icarus")))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(found)) == 1
    assert len(list(found[0].parent.parent.iterdir())) == 1


def test_runs_side_by_side_keep_their_logs_apart(tmp_path):
    """Two runs of one build at once: the complaint of one is not lost in the log of the other."""
    noisy = 'always @(posedge clk) if (v3 && d3[7:0] == 8\'h55) $error("my assertion fired"); endmodule'
    dut = small.write_small(tmp_path)
    (tmp_path / "small.sv").write_text(small.RTL.replace("endmodule", noisy))
    job = job_of(dut, "selfcheck", "icarus", 4000)
    job = dataclasses.replace(job, program=engines.build("selfcheck", job))
    quiet = dataclasses.replace(job, vectors=job.vectors[np.flatnonzero((job.vectors.d & 0xFF) != 0x55)[:50]])
    reported: list[str] = []

    def run(one: Job) -> None:
        try:
            engines.run("selfcheck", one)
        except RtlError as error:
            reported.append(str(error))

    assert (job.vectors.d & 0xFF == 0x55).any()
    threads = [threading.Thread(target=run, args=(one,)) for one in (job, quiet, quiet, quiet)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reported) == 1 and "my assertion fired" in reported[0]


def refuse(*_arguments: object, **_options: object) -> str:
    raise ElaborationError("refused")


def test_what_ended_processes_left_goes_with_the_next_build(tmp_path, monkeypatch):
    """The log of a failed build and a build that serves one check stay as long as their process."""
    dut = small.write_small(tmp_path)
    job = job_of(dut, "selfcheck", "icarus")
    place = tmp_path / "build" / "selfcheck_icarus"
    with monkeypatch.context() as patch, pytest.raises(ElaborationError):
        patch.setattr(simulators, "elaborate", refuse)
        engines.build("selfcheck", job)
    (failed,) = place.iterdir()
    monkeypatch.setattr(builds, "HDL", ())
    once = engines.build("selfcheck", job).parent
    assert once.name.startswith("once_") and failed.is_dir()
    code = (
        "import sys; from pathlib import Path; from rtl_tb.engines import builds\n"
        "builds._own_folder(Path(sys.argv[1])); print('made')"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)
    assert len(list(place.glob("tmp_*"))) == 2
    monkeypatch.undo()
    kept = engines.build("selfcheck", job).parent
    assert {path.name for path in place.iterdir()} == {once.name, failed.name, kept.name}
    for descriptor in builds._owned.values():
        os.close(descriptor)  # as the end of this process does
    builds._owned.clear()
    engines.build("selfcheck", job)
    assert list(place.iterdir()) == [kept]
