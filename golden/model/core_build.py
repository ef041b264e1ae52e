"""How the C core is built, and which sources a build was made of.

setup.py runs this file by its path, before anything is installed; the package runs it for a checkout that was
never built. It imports nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-pthread",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-falign-loops=32",
)
"""-ffp-contract=off: a fused multiply-add rounds once where the arithmetic rounds twice. -falign-loops:
unrelated code that moves the loops of a tile costs up to 5 % without it."""
HERE = "MMAGOLD_BUILD_FOR_HERE"
"""Environment variable: where it is set, as in the Makefile, the kernels that this processor cannot run are
compiled with -O1, in half the time. They are right, and slower on a processor that runs them."""
SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"


def digest(folder: Path) -> str:
    """Returns the digest of every C file of a folder, names included, in sixteen digits."""
    total = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")], key=lambda path: path.name):
        text = path.read_bytes()
        total.update(f"{path.name} {len(text)}\n".encode())
        total.update(text)
    return total.hexdigest()[:16]


def compiler() -> list[str] | None:
    """The C compiler: CC, or the first of gcc, clang and cc; None where there is none."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    return next(([name] for name in ("gcc", "clang", "cc") if shutil.which(name)), None)


def _lacks_avx512(command: Sequence[str]) -> bool:
    """Whether this processor has no AVX-512, by what the compiler knows of it."""
    asked = [*command, "-march=native", "-dM", "-E", "-x", "c", os.devnull]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.returncode == 0 and "__AVX512F__" not in done.stdout


def build(command: Sequence[str], folder: Path, target: Path, run: Callable[[list[str]], object]) -> None:
    """Compiles every C file of a folder, one on each core at a time, and links them.

    The library gets its name when it is whole: a process that loads it meanwhile has the old one or the new.

    Args:
        command: the compiler. folder: the sources. target: the library. run: runs one command line and raises
            where it fails. CFLAGS is appended to FLAGS.

    Raises:
        OSError: the target's folder cannot be written. Whatever `run` raises.
    """
    flags = (*FLAGS, f'-DMG_DIGEST="{digest(folder)}"')
    added = shlex.split(os.environ.get("CFLAGS", ""))
    quick = HERE in os.environ and _lacks_avx512(command)
    partial = target.with_name(f"{target.name}.{os.getpid()}")

    def compile_one(source: Path, compiled: str) -> None:
        level = ["-O1"] if quick and "avx512" in source.stem else []
        run([*command, *flags, *level, *added, "-c", str(source), "-o", compiled])

    try:
        with TemporaryDirectory() as place, ThreadPoolExecutor(os.cpu_count()) as cores:
            sources = sorted(folder.glob("*.c"))
            objects = [str(Path(place, f"{source.stem}.o")) for source in sources]
            list(cores.map(compile_one, sources, objects))
            run([*command, *flags, *added, "-shared", *objects, "-lm", "-o", str(partial)])
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def build_checkout(package: Path) -> Path:
    """Builds the core of a checkout that has none, in its package's folder, and says so on stderr.

    Raises:
        OSError: there is no compiler, it failed, or the folder cannot be written.
    """
    command, target = compiler(), package / f"libmmagold_core{SUFFIX}"
    if command is None:
        raise OSError("no C compiler was found: install gcc or clang")
    print(f"mmagold: builds the C core of {package.parent} once (half a minute)", file=sys.stderr, flush=True)

    def run(line: list[str]) -> None:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            first = next((text for text in done.stderr.splitlines() if "error" in text), "no message")
            raise OSError(f"{line[0]} failed with exit status {done.returncode}: {first.strip()}")

    build(command, package / "core", target, run)
    return target
