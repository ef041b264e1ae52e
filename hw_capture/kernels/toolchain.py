"""nvcc, ptxas and the disassembler: finds them, compiles CUDA C++ or PTX to a cubin, disassembles it.
All results are cached.

A tool is looked for on PATH, in $CUDA_HOME/bin and $CUDA_PATH/bin, in /usr/local/cuda/bin, and among the
packages nvidia-cuda-nvcc (with ptxas), nvidia-cuda-nvdisasm and nvidia-cuda-cuobjdump of this Python. The
cache is $MMAGOLD_CACHE, else ~/.cache/mmagold. A file's name is a hash of everything that its content
depends on: the text that is compiled (what it includes stands in it), the options, all that the tool says of
its version, and the variables that nvcc takes options from. It begins with a hash of name and content, so
that one that was cut short, edited or renamed is made again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from golden.errors import FileFormatError
from golden.files.output import write_whole
from golden.paths import cache_folder
from hw_capture.errors import CompileError, HwError, RefusedLines, ToolMissing
from hw_capture.gpu import processes

SYSTEM_FOLDERS = ("/usr/local/cuda",)
OPTIONS = ("-std=c++17", "-O3", "-w")
_PACKAGES = {
    "nvcc": "install the CUDA toolkit",
    "ptxas": "install the CUDA toolkit, or pip install nvidia-cuda-nvcc",
    "nvdisasm": "pip install nvidia-cuda-nvdisasm",
    "cuobjdump": "install the CUDA toolkit",
}
_TIMEOUT = 600.0  # seconds for one call of a compiler
_REFUSED_LINE = re.compile(r"line (\d+); error\s*: (.*)")
_OPTION_VARIABLES = (
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
)
"""What changes nvcc's result apart from its arguments."""


def find(tool: str) -> str | None:
    """Returns the path of a CUDA tool, or None."""
    roots = [os.environ[key] for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    folders = [Path(root, "bin") for root in (*roots, *SYSTEM_FOLDERS)] + package_folders()
    return shutil.which(tool) or next(
        (path for path in (shutil.which(tool, path=str(f)) for f in folders) if path), None
    )


def package_folders() -> list[Path]:
    """Returns the folders of CUDA tools that Python packages brought:
    nvidia/*/bin next to the other packages."""
    return [found for entry in sys.path for found in sorted(Path(entry or ".", "nvidia").glob("*/bin"))]


def require(*tools: str) -> str:
    """Returns the path of the first of `tools` that is installed; raises ToolMissing."""
    for tool in tools:
        path = find(tool)
        if path:
            return path
    raise ToolMissing(
        f"{' or '.join(tools)} not found on PATH, in CUDA_HOME, in /usr/local/cuda or among Python's "
        f"packages: {_PACKAGES[tools[0]]}"
    )


@cache
def _about(tool_path: str) -> str:
    """What a tool says about itself: version, release and build."""
    return run_tool([tool_path, "--version"], HwError)


def version(tool_path: str) -> str:
    """Returns the version of a CUDA tool, e.g. "13.0.88"."""
    found = re.search(r"\bV(\d+(?:\.\d+)+)", _about(tool_path))
    if not found:
        raise HwError(f"{tool_path} --version reports no version")
    return found.group(1)


def target_option(arch: str) -> str:
    """Returns nvcc's option for a real target: "sm_90a" -> "-gencode=arch=compute_90a,code=sm_90a"."""
    found = re.fullmatch(r"sm_(\d{2,3}[af]?)", arch)
    if not found:
        raise HwError(f"target is '{arch}', expected sm_ and a number, such as sm_90a")
    return f"-gencode=arch=compute_{found.group(1)},code={arch}"


def compile(source: str, arch: str, options: Sequence[str] = ()) -> bytes:
    """Compiles CUDA C++ to a cubin of one target, such as "sm_90a".

    Raises:
        CompileError: nvcc's first complaint.
        ToolMissing: no nvcc.
        FileFormatError: the disk is full.
    """
    arguments = [target_option(arch), *OPTIONS, *options]
    nvcc = require("nvcc")
    variables = (f"{name}={os.environ.get(name, '')}" for name in _OPTION_VARIABLES)
    key = cache_key("cubin", _about(nvcc), *variables, *arguments, source)
    return cached(f"{key}.cubin", lambda: _compile(nvcc, arguments, source))


def _compile(nvcc: str, arguments: list[str], source: str) -> bytes:
    with temporary_folder() as folder:
        unit, cubin = Path(folder, "unit.cu"), Path(folder, "unit.cubin")
        unit.write_text(source, "utf-8")
        run_tool([nvcc, "-cubin", *arguments, "-o", str(cubin), str(unit)], CompileError)
        content = cubin.read_bytes() if cubin.exists() else b""
    if not content:
        raise CompileError("nvcc: exit status 0, but it wrote no cubin")
    return content


def assemble(ptx: str, arch: str) -> bytes:
    """Compiles PTX to a cubin of one target, such as "sm_90a", with ptxas alone.

    Raises: RefusedLines: ptxas refused lines of the text; it names all of them. CompileError: it failed
        in another way. ToolMissing: no ptxas. FileFormatError: the disk is full.
    """
    ptxas = require("ptxas")
    key = cache_key("ptx", _about(ptxas), arch, ptx)
    return cached(f"{key}.cubin", lambda: _assemble(ptxas, arch, ptx))


def _assemble(ptxas: str, arch: str, ptx: str) -> bytes:
    with temporary_folder() as folder:
        unit, cubin = Path(folder, "unit.ptx"), Path(folder, "unit.cubin")
        unit.write_text(ptx, "utf-8")
        done = processes.run([ptxas, f"-arch={arch}", "-o", str(cubin), str(unit)], _TIMEOUT, CompileError)
        refused = _REFUSED_LINE.findall(done.errors + done.output) if done.status else []
        if refused:
            raise RefusedLines({int(line): " ".join(reason.split()) for line, reason in reversed(refused)})
        _check_status(Path(ptxas).name, done, CompileError)
        content = cubin.read_bytes() if cubin.exists() else b""
    if not content:
        raise CompileError("ptxas: exit status 0, but it wrote no cubin")
    return content


def disassemble(cubin: bytes) -> str:
    """Returns the SASS of a cubin as nvdisasm or, where that is missing, cuobjdump prints it.

    Raises:
        ToolMissing: neither is installed. HwError: the tool refused the file.
    """
    tool = require("nvdisasm", "cuobjdump")
    key = cache_key("sass", Path(tool).name, _about(tool), hashlib.sha256(cubin).hexdigest())
    return cached(f"{key}.sass", lambda: _disassemble(tool, cubin).encode()).decode(
        "utf-8", "backslashreplace"
    )


def _disassemble(tool: str, cubin: bytes) -> str:
    with temporary_folder() as folder:
        path = Path(folder, "unit.cubin")
        path.write_bytes(cubin)
        text = run_tool([tool, "-c" if Path(tool).name == "nvdisasm" else "-sass", str(path)], HwError)
    if not text.strip():  # no verdict on the kernel: "it holds no matrix instruction" would be one
        raise HwError(f"{Path(tool).name}: exit status 0, but it printed nothing")
    return text


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for the files of a tool; raises FileFormatError where they cannot be written."""
    try:
        with tempfile.TemporaryDirectory(prefix="mmagold-") as folder:
            yield folder
    except OSError as error:
        raise FileFormatError(
            f"{error.filename or tempfile.gettempdir()}: cannot be written: {error.strerror}"
        ) from None


def disassembler() -> str:
    """Returns name and version of the disassembler in use."""
    tool = require("nvdisasm", "cuobjdump")
    return f"{Path(tool).name} {version(tool)}"


def cache_key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def cached(name: str, make: Callable[[], bytes]) -> bytes:
    """What `make` gives, kept in the cache; a cache that cannot be used costs time, nothing else."""
    path = cache_folder() / name
    with suppress(OSError):
        seal, content = _unsealed(path.read_bytes())
        if seal == _seal(name, content):
            return content
    content = make()
    with suppress(OSError, FileFormatError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda stream: stream.write(_seal(name, content) + content))
    return content


def _seal(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _unsealed(stored: bytes) -> tuple[bytes, bytes]:
    size = hashlib.sha256().digest_size
    return stored[:size], stored[size:]


def run_tool(command: list[str], error: type[HwError]) -> str:
    """Output of a tool; its first complaint becomes the message of `error`."""
    done = processes.run(command, _TIMEOUT, error)
    _check_status(Path(command[0]).name, done, error)
    return done.output


def _check_status(name: str, done: processes.Done, error: type[HwError]) -> None:
    if done.status:
        lines = (done.errors + done.output).strip().splitlines()
        chosen = [line for line in lines if re.search(r"error|fatal", line, re.IGNORECASE)] or lines
        if any(os.strerror(errno.ENOSPC) in line for line in lines):
            raise FileFormatError(
                f"{tempfile.gettempdir()}: {name} cannot write there: {os.strerror(errno.ENOSPC)}"
            )
        complaint = re.sub(r"/\S*/", "", chosen[0]) if chosen else f"exit status {done.status}"
        raise error(f"{name}: {complaint}")
