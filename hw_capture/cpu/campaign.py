"""Campaigns on the CPU: structured operands through its instruction and through the C core beside it.

`Bench` is what hw_capture.campaign.run takes. Operands depend on nothing but seed, kind and tile number.
Structured dot products are drawn by the thousand; then they meet in turns, each a with its own b and c and
with those of others, and crosswise in a tile of AMX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from golden import stimuli
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.program.signature import Bits
from hw_capture.campaign.run import ALL_KINDS
from hw_capture.campaign.source import COUNTS, RECORDS
from hw_capture.cpu.machine import Machine, on_diagonals
from hw_capture.errors import DeviceError

_CHUNK = 4096
"""Dot products that are drawn at a time, of one kind."""
_TURNS = 32
"""How often the operands that were drawn meet; in the first turn as they were drawn."""


class Bench:
    """An instruction on this CPU beside the model; see hw_capture.campaign.run.Bench."""

    def __init__(self, machine: Machine, ins: Instruction) -> None:
        """Raises DeviceError where this CPU cannot execute the instruction."""
        if reason := machine.missing(ins):
            raise DeviceError(reason)
        self.ins, self.sass, self.faults = ins, (ins.name,), dict[str, Any]()
        self._machine, self._counts = machine, dict.fromkeys(COUNTS, 0)
        self._records: list[dict[str, Any]] = []
        self._tiles = _CHUNK // min(ins.m, ins.n)
        self._kept: tuple[tuple[int, int, int], str, dict[str, Bits]] = ((-1, -1, -1), "", {})

    def launch(self, seed: int, first: int, tiles: int, kind: int) -> None:
        """Executes and compares tiles first, ... first + tiles - 1."""
        while tiles:
            turn, at = divmod(first, self._tiles)
            count = min(tiles, self._tiles - at)
            kind_name, dots = self._drawn(seed, turn // _TURNS, kind)
            self._compare(first, kind_name, on_diagonals(self.ins, _turned(dots, turn % _TURNS)), at, count)
            first, tiles = first + count, tiles - count

    def counts(self) -> dict[str, int]:
        """Everything counted since the bench was made, by COUNTS."""
        return dict(self._counts)

    def records(self, count: int) -> list[dict[str, Any]]:
        """The first `count` mismatches, at most RECORDS."""
        return self._records[: min(count, RECORDS)]

    def _drawn(self, seed: int, chunk: int, kind: int) -> tuple[str, dict[str, Bits]]:
        """The kind of a chunk and its dot products; the last ones are kept."""
        if self._kept[0] != (seed, chunk, kind):
            name = stimuli.KINDS[chunk % len(stimuli.KINDS) if kind == ALL_KINDS else kind]
            dots = stimuli.generate(self.ins, name, _CHUNK, np.random.default_rng([seed, chunk]))
            self._kept = (seed, chunk, kind), name, dots
        return self._kept[1:]

    def _compare(self, first: int, kind: str, tiles: dict[str, Bits], at: int, count: int) -> None:
        got = self._machine.matrices(self.ins, tiles)[at : at + count]
        wanted = self.ins(**tiles)[at : at + count]
        self._counts["dots"] += got.size
        for name, found in zip(COUNTS[2:], _classes(got, self.ins.formats["d"]), strict=True):
            self._counts[name] += int(found)
        wrong = np.argwhere(got != wanted)
        self._counts["mismatches"] += len(wrong)
        for tile, row, column in wrong[: RECORDS - len(self._records)].tolist():
            place, codes = at + tile, {}
            codes["a"], codes["b"] = tiles["a"][place, row], tiles["b"][place, :, column]
            self._records.append(
                {"tile": first + tile, "kind": kind, "row": row, "column": column}
                | {name: [f"{int(code):#x}" for code in found] for name, found in codes.items()}
                | {"c": f"{int(tiles['c'][place, row, column]):#x}"}
                | {
                    "d": f"{int(got[tile, row, column]):#x}",
                    "expected": f"{int(wanted[tile, row, column]):#x}",
                }
            )


def _turned(dots: dict[str, Bits], turn: int) -> dict[str, Bits]:
    """Each a with the b and the c of others."""
    return {
        name: np.roll(codes, turn * {"a": 0, "b": 61, "c": 7}[name], axis=0) for name, codes in dots.items()
    }


def _classes(codes: Bits, fmt: Format) -> tuple[int, int, int, int, int]:
    """NaNs, infinities, zeros, subnormal numbers and others among results."""
    if not fmt.is_float:
        zeros = int((codes == 0).sum())
        return 0, 0, zeros, 0, codes.size - zeros
    fraction = codes & ((1 << fmt.fraction_bits) - 1)
    exponent = codes >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
    top, none = exponent == (1 << fmt.exponent_bits) - 1, fraction == 0
    found = [
        int(mask.sum()) for mask in (top & ~none, top & none, (exponent == 0) & none, (exponent == 0) & ~none)
    ]
    return found[0], found[1], found[2], found[3], codes.size - sum(found)
