"""The C core compiles without a warning, and runs every algorithm clean under the address and
undefined-behaviour sanitizers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from long_run import long_after

import golden
from golden.model import engine
from golden.model.core_build import digest
from golden.model.core_library import SIMD
from golden.model.instruction import Instruction

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(str(path) for path in (ROOT / "golden" / "core").glob("*.c"))
FLAGS = ["-std=gnu11", "-fPIC", "-shared", "-pthread", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
FLAGS += [f'-DMG_DIGEST="{digest(ROOT / "golden" / "core")}"']
SANITIZERS = [
    "-O0",
    "-g1",  # lines of the source, which a report names, and no variables
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
]
Sanitized = tuple[Callable[[str], Path], str]
WORKLOAD = Path(__file__).with_name("sanitizer_workload.py")


def require(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")


def build(compiler: str, flags: list[str], library: Path, sources: list[str] = SOURCES) -> None:
    command = [compiler, *FLAGS, *flags, *sources, "-lm", "-o", str(library)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def build_sanitized(compiler: str, simd: str, library: Path) -> None:
    """With the kernels of one instruction set, a third of the compiler's time; the others, which no run
    reaches, are read alone."""
    others = {*SIMD} - {simd}
    unused = [path for path in SOURCES if any(f"_{name}" in Path(path).stem for name in others)]
    used = [path for path in SOURCES if path not in unused]
    build(compiler, ["-fsyntax-only"], library, unused)
    (absent := library.with_suffix(".c")).write_text(
        "".join(f"extern const int mg_kernels_{x}; const int mg_kernels_{x};\n" for x in sorted(others)),
        "utf-8",
    )
    flags = [*SANITIZERS, *(["-shared-libasan"] if compiler == "clang" else [])]
    build(compiler, flags, library, [*used, str(absent)])


def runtime(compiler: str) -> str:
    """The address sanitizer's runtime, which must be in the process before Python starts."""
    names = (
        ["libasan.so"]
        if compiler == "gcc"
        else [f"libclang_rt.asan-{os.uname().machine}.so", "libclang_rt.asan.so"]
    )
    for name in names:
        path = subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if os.path.isabs(path) and os.path.exists(path):
            return os.path.realpath(path)
    pytest.skip(f"{compiler} has no shared address sanitizer runtime ({names[0]})")


@pytest.mark.long
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compiles_without_warnings(compiler: str, tmp_path: Path) -> None:
    """With optimisation, which warns of more."""
    require(compiler)
    build(compiler, ["-O3", "-Wl,--no-undefined"], tmp_path / "core.so")


@pytest.fixture(scope="module", params=["gcc", "clang"])
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    """A sanitizer build of the core by its instruction set, and the runtime to preload."""
    compiler: str = request.param
    require(compiler)
    preload = runtime(compiler)
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def library(simd: str) -> Path:
        path = folder / f"sanitized_{compiler}_{simd}.so"
        with FileLock(path.with_suffix(".lock")):  # one build for all processes of the tests
            if not path.exists():
                build_sanitized(compiler, simd, path)
        return path

    return library, preload


def run(
    library: Callable[[str], Path], preload: str, *command: str, simd: str = "", given: str = "", **extra: str
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "MMAGOLD_CORE": str(library(simd or engine.simd())),
        **({"MMAGOLD_SIMD": simd} if simd else {}),
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(ROOT),
        "PYTHONMALLOC": "malloc",
        **extra,
    }
    code = [sys.executable, *command]
    if sys.platform == "linux":  # Clang gives each array of every function that is inlined a place of its own
        code = ["prlimit", f"--stack={64 << 20}", *code]
    return subprocess.run(
        code, input=given, capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )


def chosen(every: bool) -> Iterator[Instruction]:
    """One instruction of each kind, the smallest where there are many. Chosen here: to read the whole
    catalogue under the sanitizer takes a third of the run."""
    seen: dict[tuple[Any, ...], Instruction] = {}
    for architecture in golden.architectures():
        if architecture == "blackwell" and not every:
            continue  # 6,456 instructions, whose steps and widths the others have
        for ins in golden.instructions(architecture):
            operations = ins.program.operations
            key: tuple[Any, ...] = tuple((one.algorithm, *map(type, one.steps)) for one in operations)
            key += (architecture, ins.family) if every else (ins.formats["a"].bits, ins.sparse)
            if key not in seen or ins.m * ins.n * ins.k < seen[key].m * seen[key].n * seen[key].k:
                seen[key] = ins
    yield from seen.values()


@pytest.mark.parametrize(
    ("simd", "which"), long_after(1, [("", "one"), ("", "every"), ("avx2", "every"), ("portable", "every")])
)
def test_every_algorithm_is_clean(sanitized: Sanitized, simd: str, which: str) -> None:
    """No bad access, no undefined behaviour, with each instruction set, in one thread and in two."""
    names = json.dumps([(ins.architecture, ins.name) for ins in chosen(which == "every")])
    done = run(*sanitized, str(WORKLOAD), simd=simd, given=names, MMAGOLD_THREADS="2")
    if "which this machine does not have" in done.stderr:
        pytest.skip(f"this machine has no {simd}")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    report = json.loads(done.stdout)
    assert report["instructions"] > (200 if which == "every" else 70) and report["elements"] > 100_000
    assert report["simd"] == (simd or engine.simd())


def test_the_sanitizer_would_notice(sanitized: Sanitized, tmp_path: Path) -> None:
    """A deliberate overrun in the same process set-up is caught: the tests above cannot pass by accident."""
    bad = tmp_path / "bad.c"
    bad.write_text("int overrun(const int *x, int i) { return x[i]; }\n", "utf-8")
    compiler = "gcc" if "clang" not in sanitized[1] else "clang"
    flags = ["-fPIC", "-shared", *SANITIZERS, *(["-shared-libasan"] if compiler == "clang" else [])]
    subprocess.run([compiler, *flags, str(bad), "-o", str(tmp_path / "bad.so")], check=True)
    code = (
        "import ctypes, numpy\n"
        f"library = ctypes.CDLL({str(tmp_path / 'bad.so')!r})\n"
        "library.overrun(numpy.zeros(400, 'i4').ctypes.data_as(ctypes.c_void_p), 400)\n"
    )
    done = run(*sanitized, "-c", code)
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr, done.stderr[-2000:]
