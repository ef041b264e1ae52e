"""The CPU in this machine: which dot-product instructions it has, and a small C program, compiled on the
spot, that executes them.

    cpu = machine.open()
    unit = cpu.unit(golden.instruction("sapphire_rapids", "tdpbf16ps"))   # golden/unit.py: unit.dot(a, b, c)

An instruction is executed only where CPUID announces it, the system saves its registers and, for tiles, the
kernel permits them; else one line says what is missing. `capture` records tiles of every stimulus kind, into
files with a manifest; every instruction is executed twice.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.architectures import get_architecture
from golden.files.inputs import read_text
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands
from golden.unit import FunctionUnit
from hw_capture.errors import CompileError, DeviceError, NoKernelError, ToolMissing
from hw_capture.kernels import kernels, tiles
from hw_capture.record.store import Options, Report, Store, opened

_SOURCE = Path(__file__).resolve().parent / "unit.c"
_EBX, _ECX, _EDX, _SUB1, _SIGNATURE, _XCR0 = range(6)
_AVX512 = ("AVX512F", _EBX, 16)
_TILE = ("AMX-TILE", _EDX, 24)
_NEEDS = {
    "tdpbf16ps": (_TILE, ("AMX-BF16", _EDX, 22)),
    "tdpfp16ps": (_TILE, ("AMX-FP16", _SUB1, 21)),
    **dict.fromkeys(("tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"), (_TILE, ("AMX-INT8", _EDX, 25))),
    "vdpbf16ps": (_AVX512, ("AVX512_BF16", _SUB1, 5)),
    **dict.fromkeys(("vpdpbusd", "vpdpbusds", "vpdpwssd", "vpdpwssds"), (_AVX512, ("AVX512_VNNI", _ECX, 11))),
}
"""CPUID features by instruction: name, word of mg_cpuid, bit (Intel SDM volume 2, CPUID leaf 7)."""
_STATE = {"amx": 0x60000, "avx512": 0xE6}
"""Bits of XCR0: tile configuration and data; SSE, AVX, opmask and ZMM registers."""


def supported(ins: Instruction) -> bool:
    """Whether a CPU has the instruction, this one or another."""
    return ins.traits.kernel in kernels.CPU_GENERATORS and ins.name in _NEEDS


def architecture_runs_here(name: str) -> bool:
    """Whether the instructions of an architecture are those of CPUs.

    Raises:
        UnknownNameError: no such architecture.
    """
    return any(
        entry.family.fixed.kernel in kernels.CPU_GENERATORS for entry in get_architecture(name).entries
    )


class Machine:
    """The compiled program, and what CPUID says."""

    def __init__(self, library: Any, compiler: str) -> None:
        self._library, self._compiler = library, compiler
        words = (ctypes.c_uint32 * 6)()
        library.mg_cpuid(words)
        self._words = list(words)

    def missing(self, ins: Instruction) -> str:
        """Why this CPU cannot execute the instruction; empty where it can.

        Raises:
            NoKernelError: it is no instruction of a CPU.
        """
        if not supported(ins):
            raise NoKernelError(f"{ins.architecture}:{ins.name} is no instruction that a CPU runs here")
        kernel = str(ins.traits.kernel)
        for name, word, bit in _NEEDS[ins.name]:
            if not self._words[word] >> bit & 1:
                return f"this CPU has no {ins.name}: CPUID does not announce {name}"
        if self._words[_XCR0] & _STATE[kernel] != _STATE[kernel]:
            return f"this system does not keep the registers of {ins.name} (XCR0)"
        if kernel == "amx" and self._library.mg_permit_tiles():
            return f"the kernel of this system does not permit the tile registers of {ins.name}"
        return ""

    def facts(self) -> dict[str, str]:
        """The CPU as reports and manifests have it: name, signature, system, compiler."""
        return {
            "name": _model(),
            "cpuid": f"{self._words[_SIGNATURE]:#x}",
            "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
            "compiler": self._compiler,
        }

    def matrices(self, ins: Instruction, operands: Operands) -> Bits:
        """D of matrices as `ins(...)` takes them: A (n, m, k), B (n, k, n), C (n, m, n), n whole executions.

        Raises:
            DeviceError: this CPU cannot execute the instruction.
        """
        if reason := self.missing(ins):
            raise DeviceError(reason)
        layouts = ins.fragments
        assert layouts is not None and layouts.a and layouts.b and layouts.c and layouts.d
        by_execution = {
            name: codes if ins.blocks == 1 else codes.reshape(-1, ins.blocks, *codes.shape[1:])
            for name, codes in operands.items()
        }
        held = zip("abc", (layouts.a, layouts.b, layouts.c), strict=True)
        a, b, state = (np.ascontiguousarray(layout.pack(by_execution[name])) for name, layout in held)
        function = getattr(self._library, f"mg_{ins.name}")
        function(*(_pointer(codes) for codes in (a, b, state)), ctypes.c_uint64(len(state)))
        found: Bits = layouts.d.unpack(state).reshape(operands["c"].shape)
        return found

    def crossed(self, ins: Instruction, a: Bits, b: Bits, state: Bits) -> None:
        """Every row of a tile of A with every column of one of B: `state`, C, becomes D.

        Args:
            a, b: tiles as `crossed_words` gives them.
            state: (tiles, 16, 16) of uint32, C-contiguous.

        Raises:
            DeviceError: this CPU cannot execute the instruction.
        """
        if reason := self.missing(ins):
            raise DeviceError(reason)
        assert len(a) == len(b) == len(state)
        suffix = "" if ins.traits.kernel == "amx" else "_crossed"
        function = getattr(self._library, f"mg_{ins.name}{suffix}")
        function(*(_pointer(words) for words in (a, b, state)), ctypes.c_uint64(len(state)))

    def unit(self, ins: Instruction) -> FunctionUnit:
        """The instruction on this CPU as a unit; dot product i is on the diagonal of a tile.

        Raises:
            DeviceError: this CPU cannot execute the instruction.
        """
        if reason := self.missing(ins):
            raise DeviceError(reason)

        def answer(**dots: Bits) -> Bits:
            tiles, size = on_diagonals(ins, dots), min(ins.m, ins.n)
            index = np.arange(size)
            return self.matrices(ins, tiles)[:, index, index].reshape(-1)[: len(dots["a"])]

        return FunctionUnit.like(ins, answer)


def on_diagonals(ins: Instruction, dots: Operands) -> dict[str, Bits]:
    """Tiles in which row i of A and column i of B are a dot product, with its c at (i, i); other elements of
    C are copies of these. The last tiles are filled up with zeros."""
    size, count = min(ins.m, ins.n), len(dots["a"])
    tiles = -(-count // (size * ins.blocks)) * ins.blocks
    padded = {}
    for name in "abc":
        codes = np.zeros((tiles * size, *dots[name].shape[1:]), dots[name].dtype)
        codes[:count] = dots[name]
        padded[name] = codes.reshape(tiles, size, *codes.shape[1:])
    row, column = np.indices((size, size))
    padded["b"] = np.ascontiguousarray(padded["b"].swapaxes(1, 2))
    padded["c"] = np.ascontiguousarray(padded["c"][:, np.maximum(row, column)])
    return padded


def crossed_words(ins: Instruction, a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """Tiles of A (n, 16, k) and of B (n, k, 16) as `Machine.crossed` takes them: of AMX tiles, of AVX-512 a
    word of A for each of 16 executions and a register of B."""
    layouts = ins.fragments
    assert layouts is not None and layouts.a and layouts.b
    if ins.blocks > 1:  # a block is a row of A, a column of B
        a, b = a[:, :, None, :], b.swapaxes(1, 2)[..., None]
    return np.ascontiguousarray(layouts.a.pack(a)), np.ascontiguousarray(layouts.b.pack(b))


@cache
def open() -> Machine:
    """Compiles the program and asks the CPU.

    Raises:
        DeviceError: not an x86-64 processor with Linux. ToolMissing, CompileError: of the C compiler.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise DeviceError(f"this is {platform.system()} on {platform.machine()}, expected Linux on x86_64")
    compiler = os.environ.get("CC", "cc")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "unit.so"
        _run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)], compiler)
        loaded = ctypes.CDLL(str(library))
    loaded.mg_permit_tiles.restype = ctypes.c_long
    return Machine(loaded, _run([compiler, "--version"], compiler).splitlines()[0])


def _run(command: list[str], compiler: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except FileNotFoundError:
        raise ToolMissing(f"no C compiler '{compiler}' on PATH, expected one (or its name in CC)") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"{compiler}: {error}") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:300]
        raise CompileError(f"{compiler} refuses {_SOURCE.name}: {said or done.returncode}")
    return done.stdout


def _pointer(array: npt.NDArray[Any]) -> Any:
    assert array.flags.c_contiguous and array.dtype == np.uint32
    return array.ctypes.data_as(ctypes.c_void_p)


def _model() -> str:
    """The name in /proc/cpuinfo; a hypervisor may hide more than it says."""
    lines = read_text(Path("/proc/cpuinfo")).splitlines()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "x86-64 CPU"
    )


_OPERANDS = (
    "Class sets 'stimuli' and 'mixed': drawn by hw_capture/kernels/tiles.py from golden/stimuli/ with the "
    "entry's seed; every instruction ran twice, with equal results. Matrices in the shapes of the matrix "
    "API; raw bits."
)


def capture(
    machine: Machine,
    chosen: Sequence[Instruction],
    folder: Path,
    options: Options | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Captures instructions of one architecture into a folder; those that this CPU lacks are `failed`.

    Raises:
        FileFormatError: as `opened`; or a file cannot be written. HwError: the files would become too large.
    """
    options, report = options or Options(), Report()
    with opened(folder, chosen[0].architecture, machine.facts(), options, _OPERANDS) as store:
        for index, ins in enumerate(chosen):
            if progress:
                progress(ins.name, index, len(chosen))
            if reason := machine.missing(ins):
                report.failed.append((ins.name, reason))
            else:
                _one(machine, ins, store, report)
        report.nbytes = store.total()
    return report


def _one(machine: Machine, ins: Instruction, store: Store, report: Report) -> None:
    operands, class_set, classes = tiles.draw(ins, store.options.seed, store.options.per_kind)
    first, second = machine.matrices(ins, operands), machine.matrices(ins, operands)
    if unlike := int((first != second).sum()):
        report.failed.append((ins.name, f"{unlike} results differ between two runs"))
        return
    # Recorded in any case: the hardware is the authority.
    if wrong := int((first != ins(**operands)).sum()):
        report.differ.append((ins.name, wrong))
    with store.replacing({ins.name}):
        store.add(ins, {**operands, "d": first}, class_set, classes)
    report.recorded += 1
