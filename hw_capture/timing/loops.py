"""Holds the SASS of a timed loop against what it has to hold: this many instructions in it, none merged,
hoisted or doubled."""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import dataclass

from hw_capture.errors import SassError
from hw_capture.kernels.sass import mnemonic

_FUNCTION = re.compile(r"^\s*(?:Function : (\S+)|\.section\s+\.text\.([^\s,]+))")
_LABEL = re.compile(r"^\s*(\.L_\w+):")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+([^;]*?)\s*;")
_TARGET = re.compile(r"\bBRA\b.*?(?:`\((\.L_\w+)\)|\b0x([0-9a-f]+))\s*$")
_MATRIX = re.compile(r"(?:[HIQODB]MMA|[HQIB]GMMA)\b")
_CALL = re.compile(r"CALL[.]REL[.]NOINC\b\s*(.*)")


@dataclass
class Code:
    """One kernel: its instructions by address, and the addresses of its labels."""

    lines: list[tuple[int, str]]
    labels: dict[str, int]

    def loop(self) -> list[str]:
        """Returns the mnemonics of the longest loop that holds no other."""
        return [mnemonic(text) for _, text in self.loop_lines()]

    def loop_lines(self) -> list[tuple[int, str]]:
        """Returns address and text of the longest loop that holds no other (from an earlier target to the
        branch to it)."""
        spans = []
        for address, line in self.lines:
            branch = _TARGET.search(line)
            if branch is not None:
                target = (
                    self.labels.get(branch.group(1), address) if branch.group(1) else int(branch.group(2), 16)
                )
                if target < address:
                    spans.append((target, address))
        inner = [a for a in spans if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
        bodies = [[line for line in self.lines if first <= line[0] <= last] for first, last in inner]
        return max(bodies, key=len, default=[])

    def calls(self) -> list[str]:
        """Returns where `loop` calls to, once for each call of a turn. A call under a predicate is none of
        them: so ptxas jumps out of some loops (nvcc 13.0 for sm_80, around calls)."""
        called = (_CALL.match(text) for _, text in self.loop_lines())
        return [call.group(1) for call in called if call is not None]

    def names(self) -> list[str]:
        """Returns all mnemonics."""
        return [mnemonic(line) for _, line in self.lines]


def kernels(disassembly: str) -> dict[str, Code]:
    """Returns the kernels of a disassembly, nvdisasm's (labels) or cuobjdump's (addresses)."""
    found: dict[str, Code] = {}
    code = Code([], {})
    waiting: list[str] = []
    for text in disassembly.splitlines():
        head, label, line = _FUNCTION.match(text), _LABEL.match(text), _LINE.match(text)
        if head:
            code, waiting = found.setdefault(head.group(1) or head.group(2), Code([], {})), []
        elif label:
            waiting.append(label.group(1))
        elif line:
            address = int(line.group(1), 16)
            code.labels.update(dict.fromkeys(waiting, address))
            waiting.clear()
            code.lines.append((address, " ".join(line.group(2).split())))
    return found


def counted(names: list[str], mnemonics: tuple[str, ...] = ()) -> Counter[str]:
    """Counts the matrix instructions among names, or the names that are one of `mnemonics` (with any
    other modifiers)."""
    if not mnemonics:
        return Counter(name for name in names if _MATRIX.match(name))
    return Counter(name for name in names if any(_is(name, wanted) for wanted in mnemonics))


def _is(name: str, wanted: str) -> bool:
    """Whether a name has the operation and all modifiers of another: LDS.64 is LDS.U.64 on Turing."""
    (operation, *modifiers), (other, *needed) = name.split("."), wanted.split(".")
    return operation == other and set(needed) <= set(modifiers)


def check(
    label: str, code: Code, once: Counter[str] | None, times: int, mnemonics: tuple[str, ...] = ()
) -> dict[str, int]:
    """Checks that the loop of a kernel holds an instruction `times` times; returns the counts of one.

    Args:
        once: matrix instructions of one execution, or None for what is no matrix instruction:
            one each of `mnemonics`.

    Raises:
        SassError: no loop, or another count; what was found and what was expected.
    """
    loop = code.loop()
    found, whole = counted(loop, mnemonics), counted(code.names(), mnemonics)
    if once is None:
        wanted = dict.fromkeys(mnemonics, times)
        there = {key: sum(n for name, n in found.items() if _is(name, key)) for key in mnemonics}
    else:
        wanted, there = {name: n * times for name, n in once.items()}, dict(found)
    # Emulated by a subroutine: one call each, the matrix instructions are there.
    calls = code.calls()
    if len(calls) == times and len(set(calls)) == 1:
        return dict(counted(code.names(), mnemonics))
    if there != wanted or not wanted or found != whole:
        raise SassError(
            f"{label}: the timed loop holds {_text(there)}, the kernel {_text(dict(whole))}, expected "
            f"{_text(wanted)}: the compiler merged, moved or doubled some"
        )
    return {name: n // times for name, n in found.items()}


def check_once(label: str, code: Code, once: Counter[str] | None) -> None:
    """Checks that a kernel holds the matrix instructions of one execution, or none; raises SassError."""
    found = counted(code.names())
    if found != (once or Counter()):
        raise SassError(f"{label}: the kernel holds {_text(dict(found))}, expected {_text(dict(once or {}))}")


def _text(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} x {name}" for name, n in counts.items()) or "no such instruction"


# Stall counts -----------------------------------------------------------------------------------------------


_SIZE = 16  # bytes of an instruction
_RETURN = "RET.REL"
_ELF_HEADER, _SECTION = struct.Struct("<16x8xQQQ4x2x2x2xHHH"), struct.Struct("<IIQQQQIIQQ")


def stalls_per_round(cubin: bytes, kernel: str, code: Code, rounds: int) -> float:
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
