"""Compiled units that tests share: the same text is compiled once in a test run, wherever a test put it.

A build is named by the places of its files, too. Here a place below a test's own folder counts by what
follows the folder, so that the same unit in the folders of two tests is one build. A unit that prints where
it lies (`$fatal`, `__FILE__`) keeps its place.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtl_tb.engines import builds, contents, headers
from rtl_tb.simulators.simulators import Simulator

_NAMES_ITS_PLACE = re.compile(rb"\$(?:fatal|error|warning|info|stop|finish)\b|`__FILE__|\bassert\b")


def with_runtime(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as without OBJCACHE, which users set where something else keeps Verilator's runtime."""

    def called(objects: Path, simulator: Simulator, *more: Sequence[str]) -> Any:
        return function(objects, replace(simulator, env={**simulator.env, "OBJCACHE": ""}), *more)

    return called


class SharedBuilds:
    """Stands in for functions of rtl_tb/engines/builds.py, contents.py and headers.py.

    Args:
        pool: the folder of the builds of this run, which all its processes share.
        root: the folder in which each test has its own.
    """

    def __init__(self, pool: Path, root: Path) -> None:
        self.pool, self.root = pool, root
        self.objects = pool / "objects"
        """Compiled harnesses: see object_cache.sh."""
        self.objects.mkdir(parents=True, exist_ok=True)
        self.digest, self.publish, self.intact = builds._digest, builds._publish, contents.intact
        self.names: dict[str, str] = {}
        """The name in the pool of each build, by its own name."""
        self.here = re.compile(rf"{re.escape(os.fspath(root))}/[^/'\"\s]+/")

    def patches(self) -> list[tuple[Any, str, Callable[..., Any]]]:
        """What is put in the place of what."""
        return [
            (builds, "_digest", self.named),
            (builds, "_publish", self.published),
            (contents, "intact", self.found),
            (headers, "kept_objects", with_runtime(headers.kept_objects)),
            (headers, "keep_objects", with_runtime(headers.keep_objects)),
        ]

    def named(self, recipe: builds.Recipe, inputs: builds.Inputs) -> str:
        """The build's name, as always; what it is called in the pool is noted."""
        own = self.digest(recipe, inputs)
        texts = [path.read_bytes() for path in inputs.files if path.is_relative_to(self.root)]
        texts += [text.encode() for text in recipe.generated.values()]
        if not any(_NAMES_ITS_PLACE.search(text) or os.fsencode(self.root) in text for text in texts):
            self.names[own] = self.digest(*self.moved(recipe, inputs))
        return own

    def moved(self, recipe: builds.Recipe, inputs: builds.Inputs) -> tuple[builds.Recipe, builds.Inputs]:
        """A recipe and its files as if every test had the same folder."""
        dut = recipe.dut
        folders = {
            name: tuple(map(self.place, getattr(dut, name))) for name in ("sources", "include", "libraries")
        }
        files = {self.place(path): found for path, found in inputs.files.items()}
        return replace(recipe, dut=replace(dut, **folders)), builds.Inputs(files)

    def place(self, path: Path) -> Path:
        """A path without the folder of a test."""
        return Path(self.here.sub("/", os.fspath(path)))

    def found(self, folder: Path) -> bool:
        """Whether a build is there; one that the pool has is copied there first."""
        kept = self.pool / self.names.get(folder.name, "none")
        if not folder.exists() and kept.is_dir():
            self.copied(kept, folder)
        return self.intact(folder)

    def published(self, recipe: builds.Recipe, scratch: Path, finished: Path) -> Path:
        """Publishes a build, and keeps a copy of it in the pool."""
        place = self.publish(recipe, scratch, finished)
        if (name := self.names.get(place.name)) is not None:
            self.copied(place, self.pool / name)
        return place

    def copied(self, source: Path, target: Path) -> None:
        """Copies a folder in one step; where another process was faster, its copy stays."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="tmp_copy_", dir=target.parent) as name:
            shutil.copytree(source, Path(name) / "build")
            try:
                (Path(name) / "build").rename(target)
            except OSError:
                if not target.is_dir():
                    raise
