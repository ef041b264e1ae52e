"""The CPU in this machine against the model; where it lacks an instruction, the line that says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from hw_capture.cpu import machine
from hw_capture.errors import DeviceError, NoKernelError, ToolMissing

INSTRUCTIONS = [ins for ins in golden.instructions("granite_rapids") if machine.supported(ins)]


def opened() -> machine.Machine:
    try:
        return machine.open()
    except (DeviceError, ToolMissing) as error:
        pytest.skip(str(error))


def test_every_instruction_of_the_architectures_is_known_here() -> None:
    for name in ("sapphire_rapids", "granite_rapids"):
        assert all(machine.supported(ins) for ins in golden.instructions(name))
    assert not machine.supported(golden.instruction("hopper", "HMMA.16816.F32"))


@pytest.mark.parametrize("ins", INSTRUCTIONS, ids=lambda ins: ins.name)
def test_live(ins: golden.Instruction) -> None:
    """Every stimulus kind through the instruction and the model, crossed in tiles: not one bit may differ."""
    cpu = opened()
    if reason := cpu.missing(ins):
        assert "CPUID does not announce" in reason or "XCR0" in reason or "permit" in reason
        with pytest.raises(DeviceError, match=ins.name):
            cpu.unit(ins)
        pytest.skip(reason)
    rng = np.random.default_rng(len(ins.name))
    for kind in stimuli.KINDS:
        dots = stimuli.generate(ins, kind, 64, rng)
        tiles = machine.on_diagonals(ins, dots)
        found = cpu.matrices(ins, tiles)
        assert np.array_equal(found, ins(**tiles)), kind
        assert np.array_equal(cpu.unit(ins).dot(**dots), ins.dot(**dots)), kind


def test_a_wrong_order_of_the_chains_is_found() -> None:
    """The live results tell the rule from its neighbours: another order of k is another function."""
    cpu, ins = opened(), golden.instruction("sapphire_rapids", "tdpbf16ps")
    if cpu.missing(ins):
        pytest.skip(cpu.missing(ins))
    dots = stimuli.generate(ins, "wide", 256, np.random.default_rng(1))
    other = {n: np.ascontiguousarray(codes[:, ::-1]) if n in "ab" else codes for n, codes in dots.items()}
    assert not np.array_equal(cpu.unit(ins).dot(**other), ins.dot(**dots))


class Library:
    """A CPU with no feature at all, or with all of them and a kernel that refuses tiles."""

    def __init__(self, word: int, refused: int = 0) -> None:
        self.word, self.refused = word, refused

    def mg_cpuid(self, words: Any) -> None:
        for i in range(6):
            words[i] = self.word

    def mg_permit_tiles(self) -> int:
        return self.refused


def test_what_is_missing() -> None:
    tile = golden.instruction("sapphire_rapids", "tdpbssd")
    bare = machine.Machine(Library(0), "cc")
    assert bare.missing(tile) == "this CPU has no tdpbssd: CPUID does not announce AMX-TILE"
    full, refused = machine.Machine(Library(0xFFFFFFFF), "cc"), machine.Machine(Library(0xFFFFFFFF, -1), "cc")
    assert full.missing(tile) == ""
    assert "does not permit the tile registers" in refused.missing(tile)
    assert refused.missing(golden.instruction("sapphire_rapids", "vpdpbusd")) == ""
    with pytest.raises(NoKernelError, match="hopper:mma"):
        full.missing(golden.instruction("hopper", "HMMA.16816.F32"))


def test_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises((ToolMissing, DeviceError), match=r"no-such-compiler|expected Linux"):
        machine.open.__wrapped__()
