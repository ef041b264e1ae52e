"""The folder into which a GPU or a CPU is captured: files of vectors, and their manifest
(golden/vectors/captured.py).

A file and its entry are always of one run: the entry of a file that is recorded again is taken out first, the
file is replaced whole, then the entry comes back. So an interruption, a full disk or a failed kernel leaves
valid files, and the next call goes on where this one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy.typing as npt

from golden.catalog.architectures import get_architecture
from golden.errors import FileFormatError
from golden.files.lock import only_writer
from golden.files.output import make_folder
from golden.model.instruction import Instruction
from golden.vectors import captured
from hw_capture.errors import HwError
from hw_capture.kernels import tiles

Bits = npt.NDArray[Any]


@dataclass(frozen=True)
class Options:
    """What to capture. `per_kind`: tiles of each stimulus kind. `most_bytes`: limit on all files together."""

    seed: int = 1
    per_kind: int = 1
    jobs: int = 2
    most_bytes: int = 40 << 20


@dataclass
class Report:
    """What a capture did.

    failed: (name, reason) of instructions that gave no result. strange: of instructions whose kernel is not
    what the
        spec says.
    differ: (name, results unlike the model's) of what was recorded in this call; what was `kept` is not
        compared again.
    """

    recorded: int = 0
    kept: int = 0
    nbytes: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    strange: list[tuple[str, str]] = field(default_factory=list)
    differ: list[tuple[str, int]] = field(default_factory=list)


class Store:
    """A folder of captured vectors and its manifest.

    Attributes:
        operands: what the manifest says about the operands of CLASS_SETS (hw_capture/kernels/tiles.py).
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], options: Options, operands: str) -> None:
        self.folder, self.manifest, self.options, self.operands = folder, manifest, options, operands

    @contextmanager
    def replacing(self, names: set[str]) -> Iterator[None]:
        """Takes the entries of `names` out of the manifest on disk, and writes it again at the end,
        whatever happens."""
        entries = self.manifest["instructions"]
        if names & set(entries):
            for name in names:
                entries.pop(name, None)
            self.write()
        try:
            yield
        finally:
            self.write()

    def add(
        self,
        ins: Instruction,
        arrays: dict[str, Bits],
        class_set: str,
        classes: list[int],
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes one file and enters it; raises HwError where all files together would become too large.

        Args:
            more: what else the entry says.
        """
        entry = captured.save(self.folder, ins.name, arrays, class_set, classes)
        size = (self.folder / entry["file"]).stat().st_size
        if self.total() + size > self.options.most_bytes:
            (self.folder / entry["file"]).unlink()
            raise HwError(
                f"{ins.name}: with its {size >> 10} KiB the folder would exceed "
                f"{self.options.most_bytes >> 20} MiB: "
                "capture fewer N or raise --max-mib"
            )
        self.manifest["operand_classes"][class_set] = tiles.CLASS_SETS[class_set]
        entry |= {"seed": self.options.seed, "date": _today(), **(more or {})}
        self.manifest["instructions"][ins.name] = entry

    def total(self) -> int:
        """Bytes of the files of the manifest."""
        files = (self.folder / entry["file"] for entry in self.manifest["instructions"].values())
        return sum(file.stat().st_size for file in files if file.exists())

    def write(self) -> None:
        """Writes the manifest, in the order of the spec, without class sets that nothing uses."""
        order = {name: i for i, name in enumerate(get_architecture(self.manifest["architecture"]).names())}
        entries, sets = (self.manifest[key] for key in ("instructions", "operand_classes"))
        names = sorted(entries, key=lambda name: order.get(name, 0))
        used = {entry["class_set"] for entry in entries.values()}
        self.manifest["instructions"] = {name: entries[name] for name in names}
        self.manifest["operand_classes"] = {name: words for name, words in sets.items() if name in used}
        if used <= set(tiles.CLASS_SETS):
            self.manifest["operands"] = self.operands
        captured.write_manifest(self.folder, self.manifest)


@contextmanager
def opened(
    folder: Path,
    architecture: str,
    facts: dict[str, Any],
    options: Options,
    operands: str,
    tools_of: Callable[[str], dict[str, str]] | None = None,
) -> Iterator[Store]:
    """Opens or begins a folder, into which no other process captures meanwhile.

    Args:
        tools_of: what compiles for an architecture; None: the facts name the compiler.

    Raises:
        FileFormatError: the folder holds another device's vectors or a wrong manifest, another capture writes
            there, or it cannot be made.
    """
    make_folder(folder)
    with only_writer(folder, folder / ".capturing"):
        known: dict[str, Any] = {}
        if (folder / "manifest.json").exists():
            known = captured.read_manifest_file(folder / "manifest.json", architecture)
            recorded = known["device"]
            if any(recorded.get(key) != facts[key] for key in captured.device_facts(facts)):
                raise FileFormatError(
                    f"{folder}: recorded on {captured.device_text(recorded)}, this is "
                    f"{captured.device_text(facts)}: choose another folder"
                )
        entries = {name: dict(entry) for name, entry in known.get("instructions", {}).items()}
        tools = {"tools": tools_of(architecture)} if tools_of is not None else {}
        # `tools` holds for the entries that name none: an entry that other tools built keeps them.
        if tools and known.get("tools", tools["tools"]) != tools["tools"]:
            entries = {name: {"tools": known["tools"], **entry} for name, entry in entries.items()}
        said = known.get("operands", operands)
        manifest = {
            "schema": captured.SCHEMA,
            "architecture": architecture,
            "device": facts,
            "date": _today(),
            **tools,
            "seed": options.seed,
            "operands": said if operands in said else f"{said} {operands}",
            "operand_classes": dict(known.get("operand_classes", {})),
            "instructions": entries,
        }
        yield Store(folder, manifest, options, operands)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
