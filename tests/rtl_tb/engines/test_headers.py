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

from rtl_tb.engines import contents, headers, selfcheck
from rtl_tb.simulators import simulators


@pytest.mark.long
def test_made_once_and_again_when_a_header_changed_or_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    dut, simulator = small.write_small(tmp_path), simulators.verilator()
    said = headers.optimisation("-O2", dut, simulator, ())
    header = Path(said[0].rpartition("-include ")[2].rstrip(")"))
    compiled = header.with_name("verilated.h.gch")
    assert said[0].startswith("OPT_FAST=-O2 $(if $(filter 00,") and compiled.is_file()
    made = compiled.stat().st_mtime_ns
    assert headers.optimisation("-Og", dut, simulator, ()) != said and compiled.stat().st_mtime_ns == made
    stamps = header.with_name("headers.json")
    stamps.write_text(json.dumps({name: [0, 0] for name in json.loads(stamps.read_text())}))
    contents.write(header.parent)
    assert headers.optimisation("-O2", dut, simulator, ()) == said and compiled.stat().st_mtime_ns > made
    half = compiled.stat().st_size // 2
    os.truncate(compiled, half)  # of which g++ says that there is an error in the design
    assert headers.optimisation("-O2", dut, simulator, ()) == said and compiled.stat().st_size > half
    stamps.write_bytes(bytes(100))
    assert headers.optimisation("-O2", dut, simulator, ()) == said and json.loads(stamps.read_text())


def test_without_a_place_or_with_cpp_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "file" / "cache"))
    dut, simulator = small.write_small(tmp_path), simulators.verilator()
    plain = ("OPT_FAST=-O2", f"OPT_GLOBAL={headers.LEVEL_OF_RUNTIME}")
    assert headers.optimisation("-O2", dut, simulator, ()) == plain
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    dut = dataclasses.replace(dut, sources=(*dut.sources, tmp_path / "dpi.cpp"))
    assert headers.optimisation("-O2", dut, simulator, ()) == plain


def test_objects_of_the_runtime_are_kept_until_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is taken with other options, from a changed source or a damaged object, or with ccache."""
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    simulator = simulators.verilator()
    simulator = dataclasses.replace(simulator, env={**simulator.env, "OBJCACHE": ""})
    built, source, taken = tmp_path / "built", tmp_path / "verilated.cpp", 0
    built.mkdir()
    source.write_text("int x;")
    for name in ("verilated", "verilated_threads", "verilated_timing"):
        (built / f"{name}.o").write_bytes(b"object of " + name.encode())
        (built / f"{name}.d").write_text(f"{name}.o: {source}\n")

    def kept(*options: str, env: dict[str, str] | None = None) -> bool:
        nonlocal taken
        taken += 1
        (place := tmp_path / f"taken{taken}").mkdir()
        user = dataclasses.replace(simulator, env={**simulator.env, **(env or {})})
        said = headers.kept_objects(place, user, options)
        assert bool(said) == bool(list(place.iterdir()))
        return said == "-o verilated.o -o verilated_threads.o"

    assert not kept("-a")
    headers.keep_objects(built, simulator, ("-a",))
    assert kept("-a") and not kept("-b") and not kept("-a", env={"OBJCACHE": "ccache"})
    source.write_text("int xy;")
    assert not kept("-a")
    headers.keep_objects(built, simulator, ("-a",))
    assert kept("-a")
    source.rename(tmp_path / "moved.cpp")  # as with the checkout in which the objects were made
    for name in ("verilated", "verilated_threads", "verilated_timing"):
        (built / f"{name}.d").write_text(f"{name}.o: {tmp_path / 'moved.cpp'}\n")
    assert not kept("-a")
    headers.keep_objects(built, simulator, ("-a",))
    assert kept("-a")
    assert headers.kept_objects(tmp_path, simulator, ("-a",), selfcheck.RUNTIME) == "", "not all are there"
    headers.keep_objects(built, simulator, ("-c",), selfcheck.RUNTIME)
    assert headers.kept_objects(tmp_path, simulator, ("-c",), selfcheck.RUNTIME).endswith("timing.o")
    assert (tmp_path / "verilated_timing.o").read_bytes() == b"object of verilated_timing"
    for thing in (tmp_path / "cache").glob("*/verilated.o"):
        thing.write_bytes(b"half")
    assert not kept("-a")
