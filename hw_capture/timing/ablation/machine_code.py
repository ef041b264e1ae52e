"""Holds the machine code of the ladder's kernels against what it has to be: this many matrix instructions,
loads and copies in a step of K, and nothing in local memory."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial

from hw_capture.errors import HwError, SassError
from hw_capture.kernels import toolchain
from hw_capture.timing import loops
from hw_capture.timing.ablation.variants import Variant
from hw_capture.timing.building import in_parallel


@dataclass(frozen=True)
class Built:
    """A compiled kernel, and what its step of K holds."""

    variant: Variant
    cubin: bytes
    loop: dict[str, int]


def check(variant: Variant, disassembly: str) -> dict[str, int]:
    """Returns what one step of K holds (SASS name to count).

    Raises:
        SassError: an instruction stands there more or less often than it has to.
    """
    code = loops.kernels(disassembly).get("run")
    if code is None:
        raise SassError(f"{variant.label}: the disassembly holds no kernel 'run'")
    for where, names, wanted in (
        ("the step of K", code.loop(), variant.step()),
        ("the kernel", code.names(), variant.whole()),
    ):
        for name, times in wanted.items():
            found = sum(loops.counted(names, (name,)).values())
            if found != times:
                raise SassError(f"{variant.label}: {where} holds {found} x {name}, expected {times}")
    return {name: times for name, times in variant.step().items() if times}


def build(variants: Sequence[Variant], target: str) -> Generator[Built | tuple[Variant, str], None, None]:
    """Compiles kernels, several at a time, and checks them; yields (variant, reason) for what fails."""
    toolchain.require("nvdisasm", "cuobjdump")
    toolchain.require("nvcc")
    yield from in_parallel(partial(_build, target=target), variants)


def _build(variant: Variant, target: str) -> Built | tuple[Variant, str]:
    try:
        cubin = toolchain.compile(variant.source(), target)
        return Built(variant, cubin, check(variant, toolchain.disassemble(cubin)))
    except HwError as error:
        return variant, str(error)
