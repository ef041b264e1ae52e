"""The precompiled header of Verilator's runtime: made once, made again when a header changes or it
is damaged, done without
where it cannot be kept."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import engine_dut as small
import pytest

from rtl_tb.engines import contents, headers
from rtl_tb.simulators import simulators


@pytest.mark.long
def test_made_once_and_again_when_a_header_changed_or_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    dut, simulator = small.write_small(tmp_path), simulators.verilator()
    said = headers.optimisation("-O0", dut, simulator, ())
    header = Path(said.rpartition("-include ")[2].rstrip(")"))
    compiled = header.with_name("verilated.h.gch")
    assert said.startswith("OPT_FAST=-O0 $(if $(filter 00,") and compiled.is_file()
    made = compiled.stat().st_mtime_ns
    assert headers.optimisation("-O0", dut, simulator, ()) == said and compiled.stat().st_mtime_ns == made
    stamps = header.with_name("headers.json")
    stamps.write_text(json.dumps({name: [0, 0] for name in json.loads(stamps.read_text())}))
    contents.write(header.parent)
    assert headers.optimisation("-O0", dut, simulator, ()) == said and compiled.stat().st_mtime_ns > made
    half = compiled.stat().st_size // 2
    os.truncate(compiled, half)  # of which g++ says that there is an error in the design
    assert headers.optimisation("-O0", dut, simulator, ()) == said and compiled.stat().st_size > half
    stamps.write_bytes(bytes(100))
    assert headers.optimisation("-O0", dut, simulator, ()) == said and json.loads(stamps.read_text())


def test_without_a_place_or_beside_cpp_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "file" / "cache"))
    dut, simulator = small.write_small(tmp_path), simulators.verilator()
    assert headers.optimisation("-O2", dut, simulator, ()) == "OPT_FAST=-O2"
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    dut = dataclasses.replace(dut, sources=(*dut.sources, tmp_path / "dpi.cpp"))
    assert headers.optimisation("-O2", dut, simulator, ()) == "OPT_FAST=-O2"
