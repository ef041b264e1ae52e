"""SASS names of several instructions as patterns: N and the types of A and B stand
as letters where they vary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from golden.model.instruction import Instruction


def patterns(members: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """The members by their machine code as text;
    those that differ in N or types alone share "`HGMMA.64xNx16.F32`"."""
    found: dict[str, list[Instruction]] = {}
    for ins in members:
        found.setdefault(_pattern(ins), []).append(ins)
    return {(pattern if _several(same) else _exact(same[0])): same for pattern, same in found.items()}


def cell(members: Sequence[Instruction]) -> str:
    """All patterns of a group, each with its N where there are several: "`HGMMA.64xNx16.F32` (N = 8 to 256
    by 8)"."""
    shown = []
    for text, same in patterns(members).items():
        sizes = sorted({ins.n for ins in same})
        shown.append(f"{text} (N = {progression(sizes)})" if "xNx" in text and len(sizes) > 1 else text)
    return ", ".join(shown)


def _exact(ins: Instruction) -> str:
    return " ".join(f"`{word}`" for word in ins.sass)


def _several(members: Sequence[Instruction]) -> bool:
    return len({ins.sass for ins in members}) > 1


def _pattern(ins: Instruction) -> str:
    types = rf"\.{ins.formats['a'].name}\.{ins.formats['b'].name}(?![A-Z0-9])"
    shaped = re.sub(rf"(?<=x){ins.n}(?=x)", "N", _exact(ins)) if ins.traits.swept else _exact(ins)
    return re.sub(types, ".A.B", shaped, flags=re.I)


def progression(values: list[int]) -> str:
    """ "8 to 256 by 8", "8, 16, 24, 32 to 256 by 16", or the values."""
    parts: list[str] = []
    while values:
        step = values[1] - values[0] if len(values) > 1 else 0
        length = next((i for i in range(1, len(values)) if values[i] - values[i - 1] != step), len(values))
        if length < 4:
            parts, values = [*parts, str(values[0])], values[1:]
        else:
            parts, values = [*parts, f"{values[0]} to {values[length - 1]} by {step}"], values[length:]
    return ", ".join(parts)
