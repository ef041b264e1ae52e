"""The exceptions of hw_capture. Each message is one line that says what to do."""

from __future__ import annotations

from golden import errors
from golden.errors import MmagoldError


class HwError(MmagoldError, RuntimeError):
    """Base class: something about the GPU, its tools or the captured outputs."""


class ToolMissing(HwError, errors.ToolMissing):
    """nvcc, a disassembler or PyCUDA is not installed."""


class CompileError(HwError):
    """nvcc or ptxas refused a kernel."""


class RefusedLines(CompileError):
    """ptxas refused lines of a PTX text: `lines` has its complaint by the number of the line, from 1."""

    def __init__(self, lines: dict[int, str]) -> None:
        first = min(lines)
        super().__init__(f"ptxas: line {first}: {lines[first]}")
        self.lines = lines


class NoKernelError(HwError):
    """The generator has no kernel for an instruction."""


class SassError(HwError):
    """The compiled kernel does not hold the instructions that the spec names."""


class DeviceError(HwError):
    """No GPU, another GPU than the requested one, not enough memory, or a kernel that failed."""
