"""The C core as a shared library: where it is, whether it is that of these sources, and the variables that
steer it.

MMAGOLD_CORE names another build of the library, MMAGOLD_THREADS the number of threads (default: all cores),
MMAGOLD_SIMD the instruction set (default: the widest that the machine has). What none of them can mean is an
error wherever the core runs.
"""

from __future__ import annotations

import ctypes
import os
import re
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from golden.errors import CoreError, nearest
from golden.model import core_build

_PACKAGE = Path(__file__).resolve().parents[1]
_REBUILD = "rebuild it with 'pip install -e .' (or 'python setup.py build_ext --inplace') in the checkout"
SIMD = ("portable", "avx2", "avx512")
"""What MMAGOLD_SIMD can ask for."""


def load() -> tuple[ctypes.CDLL, Path]:
    """Returns the library and its path.

    Raises:
        CoreError: it is missing, no build of the core, or one of other sources than this package's.
    """
    path = _path()
    try:
        core = ctypes.CDLL(str(path))
    except OSError as error:
        raise CoreError(f"{path}: the C core cannot be loaded: {error}") from None
    if not hasattr(core, "mg_run"):
        raise CoreError(f"{path}: this is no build of the C core; {_REBUILD}")
    built, wanted = _digest_of(core), core_build.digest(_PACKAGE / "core")
    if built != wanted:
        raise CoreError(
            f"{path}: the C core was built from other sources ({built}) than this package has ({wanted}); "
            f"{_REBUILD}"
        )
    core.mg_simd.restype = ctypes.c_char_p
    return core, path


def _path() -> Path:
    """MMAGOLD_CORE, the build in the package's folder, an installed copy's of the same sources, or a new
    build.

    A checkout that was never built hides an installed copy from every Python that runs in its folder.
    """
    default = _PACKAGE / f"libmmagold_core{core_build.SUFFIX}"
    chosen = os.environ.get("MMAGOLD_CORE")
    if chosen:
        if not Path(chosen).is_file():
            instead = f"; nearest: {default}" if default.exists() else ""
            raise CoreError(f"MMAGOLD_CORE is '{chosen}', expected a build of the C core, a file{instead}")
        return Path(chosen)
    if default.exists():
        return default
    installed = _installed()
    if installed is not None:
        return installed
    try:
        return core_build.build_checkout(_PACKAGE)
    except OSError as error:
        raise CoreError(f"{_PACKAGE}: the C core is not built: {error}; {_REBUILD}") from None


def _installed() -> Path | None:
    """The library of an installed copy, where it was built from the same sources as this checkout has."""
    wanted = core_build.digest(_PACKAGE / "core")
    for distribution in metadata.distributions(name="mmagold"):
        package = Path(str(distribution.locate_file("golden")))
        library = package / f"libmmagold_core{core_build.SUFFIX}"
        if library.is_file() and core_build.digest(package / "core") == wanted:
            return library
    return None


def _digest_of(core: ctypes.CDLL) -> str:
    """The digest that the build carries; builds of old sources carry none."""
    if not hasattr(core, "mg_digest"):
        return "an older version"
    core.mg_digest.restype = ctypes.c_char_p
    return str(core.mg_digest().decode()) or "no digest"


def threads() -> int:
    """MMAGOLD_THREADS, or the number of cores that this process may use."""
    wish = os.environ.get("MMAGOLD_THREADS")
    return _cores() if wish is None else _count(wish)


@lru_cache(maxsize=8)
def _count(wish: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]*", wish, re.ASCII):
        raise CoreError(
            f"MMAGOLD_THREADS is '{wish}', expected a positive integer; nearest: {_nearest_count(wish)}"
        )
    most_threads = 256
    return min(int(wish), most_threads)


def _nearest_count(wish: str) -> int:
    """The number of threads that somebody may have meant: the whole part of a number, at least 1; else
    every core."""
    number = re.fullmatch(r"[+-]?([0-9]{1,9})([.,][0-9]*)?", wish.strip(), re.ASCII)
    if number is None:
        return _cores()
    return 1 if wish.strip().startswith("-") else max(int(number[1]), 1)


@lru_cache(maxsize=1)
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_simd(core: ctypes.CDLL) -> None:
    """Refuses an MMAGOLD_SIMD that names no instruction set, or one that this machine does not have.

    Raises:
        CoreError: as above.
    """
    wish = os.environ.get("MMAGOLD_SIMD")
    if wish is None:
        return
    if wish not in SIMD:
        raise CoreError(
            f"MMAGOLD_SIMD is '{wish}', expected "
            f"{', '.join(SIMD)}{nearest(wish.lower(), SIMD) or f'; nearest: {SIMD[0]}'}"
        )
    used = core.mg_simd().decode()
    if used != wish:
        raise CoreError(f"MMAGOLD_SIMD is '{wish}', which this machine does not have; nearest: {used}")
