"""Records what the CPU in this machine answers: tiles of every stimulus kind, into files with a manifest.

The manifest is golden/vectors/captured.py's, its device that of `Machine.facts`. Every instruction is
executed twice. The entry of a file is taken out before the file is replaced and comes back after it, so that
an interruption leaves a manifest and files that belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from golden.catalog.architectures import get_architecture
from golden.errors import FileFormatError
from golden.files.lock import only_writer
from golden.model.instruction import Instruction
from golden.vectors import captured
from hw_capture.cpu.machine import Machine
from hw_capture.kernels import tiles
from hw_capture.record.capture import Options, Report

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
        FileFormatError: the folder holds another device's vectors, another capture writes there, or a file
            cannot be written.
    """
    options, report = options or Options(), Report()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: cannot be made: {error.strerror}") from None
    with only_writer(folder, folder / ".capturing"):
        manifest = _begun(folder, chosen[0].architecture, machine, options)
        for index, ins in enumerate(chosen):
            if progress:
                progress(ins.name, index, len(chosen))
            if reason := machine.missing(ins):
                report.failed.append((ins.name, reason))
                continue
            _one(machine, ins, folder, manifest, options, report)
    report.nbytes = sum(
        (folder / entry["file"]).stat().st_size for entry in manifest["instructions"].values()
    )
    return report


def _begun(folder: Path, architecture: str, machine: Machine, options: Options) -> dict[str, Any]:
    """The manifest to add to: the one that is there, of the same CPU, or an empty one."""
    facts, path = machine.facts(), folder / "manifest.json"
    entries = {}
    if path.exists():
        known = captured.read_manifest_file(path, architecture)
        if known["device"] != facts:
            raise FileFormatError(
                f"{folder}: recorded on {captured.device_text(known['device'])}, this is "
                f"{captured.device_text(facts)}: choose another folder"
            )
        entries = dict(known["instructions"])
    return {
        "schema": captured.SCHEMA,
        "architecture": architecture,
        "device": facts,
        "date": _today(),
        "seed": options.seed,
        "operands": _OPERANDS,
        "operand_classes": {},
        "instructions": entries,
    }


def _one(
    machine: Machine,
    ins: Instruction,
    folder: Path,
    manifest: dict[str, Any],
    options: Options,
    report: Report,
) -> None:
    operands, class_set, classes = tiles.draw(ins, options.seed, options.per_kind)
    first, second = machine.matrices(ins, operands), machine.matrices(ins, operands)
    if unlike := int((first != second).sum()):
        report.failed.append((ins.name, f"{unlike} results differ between two runs"))
        return
    if wrong := int((first != ins(**operands)).sum()):
        report.differ.append((ins.name, wrong))
    if manifest["instructions"].pop(ins.name, None):
        _write(folder, manifest)
    entry = captured.save(folder, ins.name, {**operands, "d": first}, class_set, classes)
    manifest["instructions"][ins.name] = entry | {"seed": options.seed, "date": _today()}
    _write(folder, manifest)
    report.recorded += 1


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    """The manifest in the order of the spec, with the class sets that something uses."""
    entries = manifest["instructions"]
    order = [name for name in get_architecture(manifest["architecture"]).names() if name in entries]
    used = {entry["class_set"] for entry in entries.values()}
    classes = {name: words for name, words in tiles.CLASS_SETS.items() if name in used}
    ordered = {name: entries[name] for name in order}
    captured.write_manifest(folder, manifest | {"operand_classes": classes, "instructions": ordered})


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
