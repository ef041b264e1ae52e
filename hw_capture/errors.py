"""The exceptions of hw_capture. Each message is one line that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from golden.errors import MmagoldError, UnknownNameError


class HwError(MmagoldError, RuntimeError):
    """Base class: something about the GPU, its tools or the captured outputs."""


class ToolMissing(HwError):
    """nvcc, a disassembler or PyCUDA is not installed."""


class CompileError(HwError):
    """nvcc or ptxas refused a kernel."""


class NoKernelError(HwError):
    """The generator has no kernel for an instruction."""


class SassError(HwError):
    """The compiled kernel does not hold the instructions that the spec names."""


class DeviceError(HwError):
    """No GPU, another GPU than asked for, not enough memory, or a kernel that failed."""


def no_match(what: str, text: str, names: Iterable[str]) -> UnknownNameError:
    """The error for a filter that chooses none of `names`: names those that hold most of it."""

    def held(name: str) -> float:
        blocks = difflib.SequenceMatcher(None, text, name, autojunk=False).get_matching_blocks()
        return sum(block.size for block in blocks if block.size > 1) / max(len(text), 1)

    found = sorted(
        ((held(name), name) for name in dict.fromkeys(names)),
        key=lambda pair: (-pair[0], len(pair[1]), pair[1]),
    )
    near = [name for share, name in found[:3] if share >= 0.6]
    hint = (
        f"; nearest: {', '.join(near)}"
        if near
        else f"; there are such as {found[0][1]}"
        if found
        else "; there are none"
    )
    return UnknownNameError(f"no {what} matches '{text}'{hint}")
