"""clang for AMD's GPUs: finds it, compiles C to a code object, lists the code object's instructions.

A clang with the amdgcn target is looked for in $ROCM_PATH/llvm/bin and /opt/rocm/llvm/bin, on PATH (`clang`,
`clang-23` and older), and in the package `ziglang` of this Python, whose clang has that target. What is
listed is the disassembly of the code object where an `llvm-objdump` in those places knows the target; else
the compiler's assembly, of which the code object is assembled. Results are cached as those of nvcc are
(hw_capture/kernels/toolchain.py).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from hw_capture.errors import CompileError, HwError, ToolMissing
from hw_capture.kernels import toolchain

OPTIONS = (
    "--target=amdgcn-amd-amdhsa",
    "-mcode-object-version=5",
    "-nogpulib",
    "-ffreestanding",
    "-O3",
    "-w",
)
_VERSIONS = range(23, 16, -1)
"""Of LLVM that a distribution names tools by; older ones do not know gfx1201."""


@dataclass(frozen=True)
class Tools:
    """The commands: how each begins."""

    clang: tuple[str, ...]
    linker: tuple[str, ...]
    objdumps: tuple[str, ...]


def _folders() -> list[Path]:
    roots = [Path(os.environ[key], "llvm") for key in ("ROCM_PATH", "HIP_PATH") if os.environ.get(key)]
    roots += [Path("/opt/rocm/llvm"), Path("/opt/rocm/lib/llvm")]
    return [root / "bin" for root in roots]


def _found(name: str) -> list[str]:
    """Everywhere that a tool of LLVM is, ROCm's first, then the newest."""
    ours = [found for folder in _folders() if (found := shutil.which(name, path=str(folder)))]
    names = [*(f"{name}-{version}" for version in _VERSIONS), name]
    return list(dict.fromkeys([*ours, *(found for one in names if (found := shutil.which(one)))]))


def _zig() -> str | None:
    """The zig of the package `ziglang`."""
    package = importlib.util.find_spec("ziglang")
    folder = None if package is None or package.origin is None else Path(package.origin).parent
    return None if folder is None else shutil.which("zig", path=str(folder))


def _has_target(clang: tuple[str, ...]) -> bool:
    try:
        return "amdgcn" in toolchain.run_tool([*clang, "--print-targets"], HwError)
    except HwError:
        return False


@cache
def tools() -> Tools:
    """The tools of this machine.

    Raises:
        ToolMissing: no clang with the target, or no linker in its folder.
    """
    linkers, objdumps, zig = _found("ld.lld"), tuple(_found("llvm-objdump")), _zig()
    for clang in _found("clang"):
        if linkers and _has_target((clang,)):
            return Tools((clang,), (linkers[0],), objdumps)
    if zig:
        return Tools((zig, "clang"), (zig, "ld.lld"), objdumps)
    raise ToolMissing(
        "no clang with the target amdgcn and with ld.lld in its folder, in ROCM_PATH, /opt/rocm or on PATH: "
        "install ROCm, or pip install ziglang"
    )


def version() -> str:
    """What the manifest says about the compiler: "clang 19.1.7"."""
    text = _output_of(*tools().clang)
    found = re.search(r"clang version (\S+)", text)
    return f"clang {found.group(1)}" if found else text.splitlines()[0]


def compile(source: str, target: str, options: Sequence[str] = ()) -> bytes:
    """Compiles C to a code object of one target, such as "gfx942".

    Raises:
        CompileError: clang's or the linker's first complaint. ToolMissing: no compiler.
    """
    return _assembled(source, target, tuple(options))[0]


def listing(source: str, target: str, options: Sequence[str] = ()) -> str:
    """The instructions of that code object; see the module's text. Raises as `compile`, and HwError."""
    code, assembly = _assembled(source, target, tuple(options))
    for objdump in tools().objdumps:
        key = toolchain.cache_key("gcn", _output_of(objdump), target, hashlib.sha256(code).hexdigest())
        try:
            return toolchain.cached(f"{key}.gcn", partial(_disassembled, objdump, code, target)).decode()
        except HwError:  # one that is older than the target
            continue
    return assembly


@cache
def _output_of(*command: str) -> str:
    """All that a tool says about itself."""
    return toolchain.run_tool([*command, "--version"], HwError)


def _assembled(source: str, target: str, options: tuple[str, ...]) -> tuple[bytes, str]:
    """The code object and the assembly that it is made of."""
    if not re.fullmatch(r"gfx[0-9a-f]{3,5}", target):
        raise HwError(f"target is '{target}', expected gfx and a number, such as gfx942")
    chosen = tools()
    arguments = [*OPTIONS, f"-mcpu={target}", *options]
    key = toolchain.cache_key("amdgcn", _output_of(*chosen.clang), *chosen.clang, *arguments, source)
    assembly = toolchain.cached(f"{key}.gcn.s", lambda: _assembly(chosen, arguments, source))
    code = toolchain.cached(f"{key}.co", lambda: _linked(chosen, arguments, assembly))
    return code, assembly.decode()


def _assembly(chosen: Tools, arguments: list[str], source: str) -> bytes:
    with toolchain.temporary_folder() as folder:
        unit, out = Path(folder, "unit.c"), Path(folder, "unit.s")
        unit.write_text(source, "utf-8")
        toolchain.run_tool([*chosen.clang, *arguments, "-S", "-o", str(out), str(unit)], CompileError)
        return out.read_bytes() if out.exists() else b""


def _linked(chosen: Tools, arguments: list[str], assembly: bytes) -> bytes:
    with toolchain.temporary_folder() as folder:
        unit, object_file, out = (Path(folder, f"unit.{end}") for end in ("s", "o", "co"))
        unit.write_bytes(assembly)
        toolchain.run_tool([*chosen.clang, *arguments, "-c", "-o", str(object_file), str(unit)], CompileError)
        toolchain.run_tool([*chosen.linker, "-shared", "-o", str(out), str(object_file)], CompileError)
        content = out.read_bytes() if out.exists() else b""
    if content[:4] != b"\x7fELF":
        raise CompileError(f"{Path(chosen.linker[0]).name}: exit status 0, but it wrote no code object")
    return content


def _disassembled(objdump: str, code: bytes, target: str) -> bytes:
    with toolchain.temporary_folder() as folder:
        path = Path(folder, "unit.co")
        path.write_bytes(code)
        text = toolchain.run_tool([objdump, "-d", f"--mcpu={target}", str(path)], HwError)
    if not text.strip():  # no verdict on the kernel: "it holds no matrix instruction" would be one
        raise HwError("llvm-objdump: exit status 0, but it printed nothing")
    return text.encode()
