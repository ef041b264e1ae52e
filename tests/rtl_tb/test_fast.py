"""The fast engine: libraries side by side in one process, cached builds, interruption, what it refuses."""

from __future__ import annotations

import engine_dut as small
import numpy as np
import pytest

from rtl_tb import simulators
from rtl_tb.engines import fast
from rtl_tb.engines.job import Job
from rtl_tb.errors import RtlError


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job on the small unit, built once."""
    folder = tmp_path_factory.mktemp("fast")
    dut = small.write_small(folder)
    return Job(dut, folder / "build", small.small_vectors(dut, 3 * fast.CHUNK))


def test_two_units_of_the_same_name_in_one_process(job, tmp_path):
    """Each library has its own symbols: the first still answers as before when the second is loaded."""
    other = small.write_small(tmp_path)
    source = (tmp_path / "small.sv").read_text()
    (tmp_path / "small.sv").write_text(source.replace("total = c;", "total = c ^ 1;"))
    few = job.vectors[:500]
    first = fast.run(Job(job.dut, job.build, few)).actual
    second = fast.run(Job(other, tmp_path / "build", few)).actual
    again = fast.run(Job(job.dut, job.build, few)).actual
    assert np.array_equal(first, few.d)
    assert np.array_equal(again, few.d)
    a, b, c = (few.operands[name].astype(np.int64) for name in "abc")
    products = ((a ^ 128) - 128) * ((b ^ 128) - 128)
    assert np.array_equal(second, ((c ^ 1) + products.sum(axis=1)) & 0xFFFFFFFF)


def test_progress_and_interruption(job):
    """Chunk by chunk; what the callback raises (Ctrl-C) ends the run, and the next one starts afresh."""
    seen = []
    outcome = fast.run(job, lambda done, total: seen.append((done, total)))
    assert seen == [(fast.CHUNK * (i + 1), len(job.vectors)) for i in range(3)]
    assert outcome.cycles >= len(job.vectors)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fast.run(job, interrupt)
    assert np.array_equal(fast.run(job).actual, job.vectors.d)


def test_an_interrupted_build_leaves_nothing(job, tmp_path, monkeypatch):
    """Neither a half library nor its folder."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulators, "elaborate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fast.build(job.dut, tmp_path, simulators.verilator())
    assert [path.name for path in (tmp_path / "fast").iterdir()] == ["mmagold_dut.sv"]


def test_what_it_refuses(job, tmp_path):
    """One line each."""
    with pytest.raises(RtlError, match="needs Verilator, not icarus"):
        fast.run(Job(job.dut, job.build, job.vectors[:2], "icarus"))
    with pytest.raises(RtlError, match="writes no waveform"):
        fast.run(Job(job.dut, job.build, job.vectors[:2], waves=tmp_path / "x.vcd"))


def test_an_unreadable_library(job):
    """A damaged cache names the file and the remedy."""
    few = Job(job.dut, job.build.parent / "damaged", job.vectors[:2])
    library = fast.build(job.dut, few.build, simulators.verilator())
    library.write_bytes(b"not a library")
    with pytest.raises(RtlError, match=r"cannot be loaded.*remove it"):
        fast.run(few)


def test_what_the_unit_prints_is_not_on_stdout(tmp_path, capfd):
    """It would break the JSON of --json."""
    dut = small.write_small(tmp_path)
    printing = 'always @(posedge clk) if (v3) $display("hello"); endmodule'
    (tmp_path / "small.sv").write_text(small.RTL.replace("endmodule", printing))
    fast.run(Job(dut, tmp_path / "build", small.small_vectors(dut, 5)))
    print("the end", flush=True)
    out, err = capfd.readouterr()
    assert out == "the end\n"
    assert "hello" in err
