"""The C core as WebAssembly, for the browser: the general interpreter, which shows every register."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from golden.errors import DocsError, missing
from golden.model.core_build import digest
from golden.model.program_text import CORE
from golden.paths import cache_folder

SOURCES = ("mg_general.c", "mg_observe.c", "mg_gather.c", "mg_run.c")
_RUNTIME = Path(__file__).with_name("runtime.c")
"""Memory for the core. A C library would have to be compiled first, in 40 seconds of processor time."""
EXPORTS = (
    "malloc",
    "free",
    "mg_decode_codes",
    "mg_digest",
    "mg_number_fields",
    "mg_observe",
    "mg_observe_layout",
    "mg_run",
    "mg_struct_sizes",
)
COMPILER = "ziglang"
"""The Python package that compiles it."""
_FLAGS = (
    *("-target", "wasm32-freestanding", "-Wl,--no-entry", "-std=gnu11", "-Oz", "-ffp-contract=off"),
    *("-DMG_GENERAL_ONLY", "-Wl,--strip-all", *(f"-Wl,--export={name}" for name in EXPORTS)),
)
_HEADERS = ("wasm-wasi-musl", "generic-musl")
"""Folders of the compiler with the headers of a C library, of which only declarations are read."""


def available() -> bool:
    """Whether the compiler is installed."""
    return importlib.util.find_spec(COMPILER) is not None


def compile_core() -> bytes:
    """The module, which imports nothing.

    Raises:
        DocsToolMissing: the compiler is not installed.
        DocsError: the core did not compile; the message has the compiler's first error.
    """
    if not available():
        raise missing(COMPILER)
    with tempfile.TemporaryDirectory(prefix="mmagold-wasm-") as folder:
        out = Path(folder, "core.wasm")
        command = [sys.executable, "-m", COMPILER, "cc", *_FLAGS, f'-DMG_DIGEST="{digest(CORE)}"']
        done = subprocess.run(
            [*command, *_included(), *SOURCES, str(_RUNTIME), "-o", str(out)],
            cwd=CORE,
            env=os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(_compiler_cache(Path(folder)))},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = next(
                (line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:]
            )
            raise DocsError(f"the C core did not compile to WebAssembly: {reason}")
        return out.read_bytes()


def _included() -> list[str]:
    """The options that name the folders of headers."""
    spec = importlib.util.find_spec(COMPILER)
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "lib" / "libc" / "include"
    return [option for name in _HEADERS for option in ("-isystem", str(folder / name))]


def _compiler_cache(temporary: Path) -> Path:
    """Where zig keeps what it compiled; where it cannot write there, it runs on without end."""
    kept = Path(os.environ.get("ZIG_GLOBAL_CACHE_DIR") or cache_folder() / "zig")
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError:
        return temporary / "zig"
    return kept.absolute() if os.access(kept, os.W_OK) else temporary / "zig"
