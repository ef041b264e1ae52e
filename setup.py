"""Builds the C core into one plain shared library next to the package and copies specs
and pages into the wheel.

The rest is in pyproject.toml. The library has no Python API (golden/model/engine.py loads it with ctypes), so
one wheel per platform serves every Python 3. CC chooses the compiler, CFLAGS is appended to the flags of
golden/model/core_build.py, which says how the core is compiled.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CORE = Path("golden", "core")
CORE_BUILD = runpy.run_path(str(ROOT / "golden" / "model" / "core_build.py"))
"""The package itself may not be importable yet."""
ADDED = {"spec": Path("golden", "spec"), "docs": Path("golden", "publish", "pages")}
"""Folders that go into the wheel, and where."""


def sources(pattern: str) -> list[str]:
    """Files of the C core, relative to this file and sorted, so that builds repeat."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / CORE).glob(pattern))


class BuildCore(build_ext):
    """Compiles the core only with the flags above, not with the flags that Python itself was built with."""

    def get_ext_filename(self, fullname: str) -> str:
        """golden/libmmagold_core.so: no Python version or ABI in the name."""
        return os.path.join(*fullname.split(".")) + CORE_BUILD["SUFFIX"]

    def copy_extensions_to_source(self) -> None:
        """Moves the library next to the package. A process that loads it meanwhile gets the whole old one or
        the whole new one."""
        for ext in self.extensions:
            name = self.get_ext_filename(ext.name)
            target = ROOT / name
            partial = target.with_name(f"{target.name}.{os.getpid()}")
            try:
                shutil.copy(Path(self.build_lib, name), partial)
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)

    def build_extension(self, ext: Extension) -> None:
        """Compiles and links the core."""
        command = CORE_BUILD["compiler"]()
        if command is None:
            sys.exit(
                "mmagold: no C compiler found; install gcc or clang (Debian, Ubuntu: apt-get install gcc)"
            )
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        try:
            CORE_BUILD["build"](command, ROOT / CORE, library, self._run)
        except subprocess.CalledProcessError as error:
            sys.exit(f"mmagold: the C core did not compile (exit status {error.returncode}, see above)")

    @staticmethod
    def _run(command: list[str]) -> None:
        print(shlex.join(command), flush=True)
        subprocess.run(command, cwd=ROOT, check=True)


class BuildPython(build_py):
    """Adds spec/ and the pages of docs/ to the package;
    an editable install reads those of the checkout instead."""

    def run(self) -> None:
        """Copies the Python files, then the specs and pages."""
        super().run()
        if not self.editable_mode:
            for folder, place in ADDED.items():
                target = Path(self.build_lib, place)
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns(".*", "__pycache__"))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The Python files, the specs and the pages."""
        files = [
            str(Path(self.build_lib, place, path.relative_to(ROOT / folder)))
            for folder, place in ADDED.items()
            for path in sorted((ROOT / folder).rglob("*"))
            if path.is_file() and not self.editable_mode
        ]
        return [*super().get_outputs(include_bytecode), *files]


class PlatformWheel(bdist_wheel):
    """py3-none-<platform>: compiled, but for no particular Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Keeps the platform only."""
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension("golden.libmmagold_core", sources("*.c"), depends=sources("*.h"))],
    cmdclass={"build_ext": BuildCore, "build_py": BuildPython, "bdist_wheel": PlatformWheel},
)
