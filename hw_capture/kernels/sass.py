"""SASS: reads a disassembly and holds it against what the spec says an instruction becomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from golden.model.instruction import Instruction
from hw_capture.errors import SassError

_FUNCTION = re.compile(r"^\s*(?:Function : (\S+)|\.section\s+\.text\.([^\s,]+))")
_LABEL = re.compile(r"^(\.L\w+|\$\S+):\s*$")
_LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+([^;]*?)\s*;")
_MATRIX = re.compile(r"(?:[HIQODB]MMA|[HQIB]GMMA|UTC[A-Z]*MMA|MOVM\.U4TO8)\b")


def functions(disassembly: str) -> dict[str, list[str]]:
    """Returns the instructions of every kernel
    of a disassembly (nvdisasm's or cuobjdump's), without addresses."""
    return {
        name: [line for line in listing if not is_label(line)]
        for name, listing in listings(disassembly).items()
    }


def listings(disassembly: str) -> dict[str, list[str]]:
    """Returns the same with the labels, each a line of its own that ends in a colon; nvdisasm alone prints
    them. ".L_x_3:" is a place that is jumped to, "$name:" begins a subroutine."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in disassembly.splitlines():
        head = _FUNCTION.match(line)
        if head:
            current = found.setdefault(head.group(1) or head.group(2), [])
            continue
        code = _LINE.match(line) or _LABEL.match(line)
        if code:
            current.append(" ".join(code.group(1).split()) + (":" if code.re is _LABEL else ""))
    return found


def is_label(line: str) -> bool:
    """Whether a line of `listings` is no instruction."""
    return line.endswith(":")


def mnemonic(line: str) -> str:
    """Returns the mnemonic of an instruction: "@P0 HMMA.16816.F32 R4, ..." -> "HMMA.16816.F32"."""
    words = line.lstrip("{ ").split()
    return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]


def matrix_instructions(disassembly: str) -> list[str]:
    """Returns the mnemonics of the matrix instructions of a disassembly, in order, each as often as it
    stands there."""
    lines = [line for body in functions(disassembly).values() for line in body]
    return [name for name in map(mnemonic, lines) if _MATRIX.match(name)]


def check(ins: Instruction, disassembly: str) -> list[str]:
    """Holds the only kernel of a disassembly against `ins.sass`; see `check_body`."""
    bodies = functions(disassembly)
    if len(bodies) != 1:
        raise SassError(f"{ins.name}: the disassembly holds {len(bodies)} kernels, expected 1")
    return check_body(ins, next(iter(bodies.values())))


def check_body(ins: Instruction, body: Iterable[str]) -> list[str]:
    """Returns the lines that stand for the instruction: its matrix instructions and, emulated, the others the
    spec names.

    Every mnemonic that the spec names has to be there, and no matrix instruction that it does not name. A
    native instruction has to be there in full, an emulated one by the first parts of its name ("IMMA" stands
    for IMMA.16816.S8.S8).

    Raises:
        SassError: naming what is there and what the spec says.
    """
    lines = list(body)
    names = [mnemonic(line) for line in lines]
    matrix = [name for name in names if _MATRIX.match(name)]
    missing = [wanted for wanted in ins.sass if not any(_is(name, wanted, ins) for name in names)]
    strange = [name for name in matrix if not any(_is(name, wanted, ins) for wanted in ins.sass)]
    if missing or strange or not names:
        there = counted(matrix) or "no matrix instruction"
        raise SassError(
            f"{ins.architecture}:{ins.name}: compiled to {there}, the spec says "
            f"{' + '.join(ins.sass) or 'nothing'}"
        )
    return [
        line
        for line, name in zip(lines, names, strict=True)
        if any(_is(name, wanted, ins) for wanted in ins.sass)
    ]


def _is(name: str, wanted: str, ins: Instruction) -> bool:
    """Whether a mnemonic is the one the spec names (HMMA.884 goes in steps, and what sm_100a calls UTCOMMA.4X
    is UTCOMMA.BLOCK16 on sm_103a); a prefix does where it is emulated."""
    plain = re.sub(r"\.STEP\d$", "", name).replace(".BLOCK16", ".4X")
    return plain == wanted or (ins.emulated and name.startswith(f"{wanted}."))


def counted(names: Iterable[str]) -> str:
    """Returns mnemonics with their counts: "2 x HMMA.16816.F32, 1 x FADD"."""
    return ", ".join(f"{count} x {name}" for name, count in Counter(names).items())
