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
        assert np.array_equal(crossed(cpu, ins, dots), ins.engine.tiles(tile_of(dots), 16, 16)), kind


def tile_of(dots: Any) -> dict[str, Any]:
    """Dot products as tiles of 16 rows and columns that meet crosswise."""
    a, b = (dots[name].reshape(-1, 16, dots[name].shape[-1]) for name in "ab")
    c = np.repeat(dots["c"].reshape(-1, 1, 16), 16, axis=1)
    return {"a": a, "b": np.ascontiguousarray(b.swapaxes(1, 2)), "c": c}


def crossed(cpu: machine.Machine, ins: golden.Instruction, dots: Any) -> Any:
    tiles = tile_of(dots)
    state = tiles["c"].astype(np.uint32)
    cpu.crossed(ins, *machine.crossed_words(ins, tiles["a"], tiles["b"]), state)
    return state


@pytest.mark.parametrize("ins", INSTRUCTIONS, ids=lambda ins: ins.name)
def test_words_of_tiles_that_meet_crosswise(ins: golden.Instruction) -> None:
    """Of AMX the words of its tiles (Intel SDM, TDPBF16PS), of AVX-512 one for each row of A and column of B.
    C and D of AMX are rows of words."""
    tiles = tile_of(stimuli.generate(ins, "random_bits", 32, np.random.default_rng(1)))
    a, b = machine.crossed_words(ins, tiles["a"], tiles["b"])
    per_word, bits = 32 // ins.formats["a"].bits, ins.formats["a"].bits
    words = ins.k // per_word
    assert a.shape == (2, 16, words) and b.shape[0] == 2 and b.size == 2 * 16 * words
    for tile, row, word in ((0, 3, 0), (1, 15, words - 1)):
        ks = range(per_word * word, per_word * (word + 1))
        joined = (int(tiles["a"][tile, row, k]) << bits * (k % per_word) for k in ks)
        assert int(a[tile, row, word]) == sum(joined)
        joined = (int(tiles["b"][tile, k, row]) << bits * (k % per_word) for k in ks)
        assert int(b.reshape(2, words, 16)[tile, word, row]) == sum(joined)
    layouts = ins.fragments
    if ins.blocks == 1:
        assert layouts and layouts.c and np.array_equal(layouts.c.pack(tiles["c"]), tiles["c"])


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
