"""Cycles that a loop's own code asks for: the stall count of each of its instructions, read from the cubin.

From Volta on an instruction has 128 bits, and bits 105 to 108 are the cycles before the next one of the warp
may follow (Z. Jia et al., arXiv 1804.06826, section 2). What waits for a scoreboard, and jumps, cost more
than that. ptxas sets these counts when it schedules a kernel, so that two kernels with the same instructions
may take different times.
"""

from __future__ import annotations

import struct

from hw_capture.errors import SassError
from hw_capture.timing.loops import Code

_SIZE = 16
_RETURN = "RET.REL"
_ELF_HEADER, _SECTION = struct.Struct("<16x8xQQQ4x2x2x2xHHH"), struct.Struct("<IIQQQQIIQQ")


def per_round(cubin: bytes, kernel: str, code: Code, rounds: int) -> float:
    """Returns the stall counts of one round of a kernel's loop; what a loop calls counts as often as it does.

    Args:
        code: the kernel's instructions. rounds: rounds in one turn of its loop.

    Raises:
        SassError: the cubin does not hold the kernel, or no loop.
    """
    text = _section(cubin, f".text.{kernel}")
    counts = {address: _count(text, address) for address, _ in code.lines if address + _SIZE <= len(text)}
    turn = code.loop_lines()
    if not turn or len(counts) != len(code.lines):
        raise SassError(f"{kernel}: no loop whose code is in the cubin")
    inside = sum(counts[address] for address, _ in turn)
    return (inside + len(code.calls()) * sum(counts[address] for address, _ in _subroutine(code))) / rounds


def _subroutine(code: Code) -> list[tuple[int, str]]:
    """The instructions from the end of the kernel to the first return."""
    lines = code.lines
    ends = [i for i, (_, line) in enumerate(lines) if "EXIT" in line.split()]
    last = next((i for i, (_, line) in enumerate(lines) if _RETURN in line), len(lines) - 1)
    first = max((i for i in ends if i < last), default=last)
    return lines[first + 1 : last + 1]


def _count(text: bytes, address: int) -> int:
    word = int.from_bytes(text[address : address + _SIZE], "little")
    # The stall count is in bits 105 to 108 of an instruction.
    place = 105
    return word >> place & 0xF


def _section(cubin: bytes, name: str) -> bytes:
    """A section of an ELF file; empty where there is none."""
    try:
        _, _, table, size, count, names = _ELF_HEADER.unpack_from(cubin)
        sections = [_SECTION.unpack_from(cubin, table + size * i) for i in range(count)]
        start = sections[names][4]
        for found in sections:
            end = cubin.index(b"\0", start + found[0])
            if cubin[start + found[0] : end] == name.encode():
                return cubin[found[4] : found[4] + found[5]]
    except (struct.error, ValueError, IndexError):
        pass
    return b""
