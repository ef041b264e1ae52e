"""Records what a GPU answers: tiles of every stimulus kind through every instruction,
into files with a manifest.

The manifest is golden/vectors/captured.py's. A file and its entry are always of one run: the entry of a file
that is recorded again is taken out first, the file is replaced whole, then the entry comes back. So an
interruption, a full disk or a failed kernel leaves valid files,
and the next call goes on where this one stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy.typing as npt

from golden.catalog import architectures
from golden.errors import FileFormatError
from golden.files.lock import only_writer
from golden.model.instruction import Instruction
from golden.vectors import captured
from hw_capture.errors import DeviceError, HwError, ToolMissing
from hw_capture.kernels import amd_toolchain, build, kernels, tiles, toolchain
from hw_capture.kernels.build import Built
from hw_capture.record.runner import FILLS, Runner, differing

Bits = npt.NDArray[Any]
Builder = Callable[[Sequence[list[tuple[Instruction, str]]], str], Generator[list[Built], None, None]]
_OPERANDS = (
    "Class sets 'stimuli' and 'mixed': drawn by hw_capture/kernels/tiles.py from golden/stimuli/ with the "
    "entry's seed; every kernel ran twice, and wgmma with A from registers and from shared memory, with "
    "equal results. Matrices in the shapes of the matrix API, metadata as nibbles; raw bits."
)


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


def target_of(architecture: str, number: str) -> str | None:
    """The compile target of an architecture that a GPU's number means: "sm_90a" for "sm_90"; None of none."""
    targets = architectures.get_architecture(architecture).targets
    return next((one for one in targets if number in (one, one.rstrip("af"))), None)


def target_for(architecture: str, facts: dict[str, Any]) -> str:
    """Returns the compile target of a GPU; raises DeviceError when it is not of the architecture."""
    number = str(facts.get("target") or f"sm_{facts['compute_capability']}".replace(".", ""))
    target = target_of(architecture, number)
    if target is not None:
        return target
    known = architectures.get_architecture(architecture)
    raise DeviceError(
        f"this GPU is an {facts['name']} ({number}), expected {known.title} ({', '.join(known.targets)}); "
        "name its architecture with --arch"
    )


def capture(
    chosen: Sequence[Instruction],
    folder: Path,
    runner: Runner,
    options: Options | None = None,
    progress: build.Progress | None = None,
    builder: Builder | None = None,
) -> Report:
    """Captures instructions of one architecture into a folder; entries that are up to date are kept.

    Args:
        builder: what turns groups of kernels and a target into built ones; default: nvcc.

    Raises:
        DeviceError: wrong GPU, not enough memory, or a kernel failed; everything recorded before stays.
        FileFormatError: the folder's manifest is wrong, another capture writes there,
            or a file cannot be written.
    """
    options = options or Options()
    facts = runner.facts()
    target = target_for(chosen[0].architecture, facts)
    _made(folder)
    # One process writes a folder at a time.
    with only_writer(folder, folder / ".capturing"):
        store = _Store.open(folder, chosen[0].architecture, facts, options)
        # Files of the same spec, GPU and options stay as they are.
        todo = [ins for ins in chosen if not store.up_to_date(ins)]
        report = Report(kept=len(chosen) - len(todo))
        groups = build.groups(todo)
        with closing(
            builder(groups, target) if builder else build.build(groups, target, options.jobs)
        ) as built:
            _record(built, todo, runner, store, report, progress)
        report.nbytes = store.total()
    return report


def _record(
    built: Iterator[list[Built]],
    todo: Sequence[Instruction],
    runner: Runner,
    store: _Store,
    report: Report,
    progress: build.Progress | None,
) -> None:
    """Records what was built; what was to be built and never came is a failure as well."""
    waiting = {ins.name: ins for ins in todo}
    for group in built:
        with store.replacing({one.instruction.name for one in group}):
            for parts in _by_instruction(group):
                ins = parts[0].instruction
                if progress:
                    progress(ins.name, len(todo) - len(waiting), len(todo))
                _capture_one(ins, parts, runner, store, report)
                waiting.pop(ins.name)
    report.failed += [(name, "no kernel was built") for name in waiting]


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: cannot be made: {error.strerror}") from None


def _by_instruction(group: list[Built]) -> Iterator[list[Built]]:
    names = dict.fromkeys(one.instruction.name for one in group)
    for name in names:
        yield [one for one in group if one.instruction.name == name]


def _capture_one(ins: Instruction, parts: list[Built], runner: Runner, store: _Store, report: Report) -> None:
    """Runs every form of one instruction twice, and stores the result when all agree."""
    errors = [one.error for one in parts if one.error]
    if errors:
        (report.strange if all(one.strange for one in parts if one.error) else report.failed).append(
            (ins.name, errors[0])
        )
        return
    # Every form of the kernel has to be there: they are compared with each other.
    if missing := set(kernels.forms(ins)) - {one.form for one in parts}:
        report.failed.append((ins.name, f"no kernel of the form {' or '.join(sorted(missing))} was built"))
        return
    operands, class_set, classes = tiles.draw(ins, store.options.seed, store.options.per_kind)
    expected = ins(**operands)
    # Each form runs with memory filled in each way: a result that nobody wrote differs.
    results = [runner.run(one, operands, fill) for one in parts for fill in FILLS]
    wrong = differing(results[0], expected, ins.name)
    unlike = max(differing(result, results[0], ins.name) for result in results)
    if unlike:
        report.failed.append(
            (
                ins.name,
                f"{unlike} results differ between two runs or two forms of the kernel, or were not written",
            )
        )
        return
    # Recorded in any case: the hardware is the authority.
    if wrong:
        report.differ.append((ins.name, wrong))
    store.add(ins, {**operands, "d": results[0]}, class_set, classes, parts)
    report.recorded += 1


class _Store:
    """A folder of captured vectors and its manifest."""

    def __init__(self, folder: Path, manifest: dict[str, Any], options: Options) -> None:
        self.folder, self.manifest, self.options = folder, manifest, options

    @classmethod
    def open(cls, folder: Path, architecture: str, facts: dict[str, Any], options: Options) -> _Store:
        """Opens or begins a folder; raises FileFormatError when it holds another GPU's vectors."""
        known: dict[str, Any] = {}
        if (folder / "manifest.json").exists():
            known = captured.read_manifest_file(folder / "manifest.json", architecture)
            for key in captured.device_facts(facts):
                if known["device"].get(key) != facts[key]:
                    raise FileFormatError(
                        f"{folder}: recorded with {key} {known['device'].get(key)}, this is {facts[key]}: "
                        "choose another folder"
                    )
        return cls(folder, _begun(known, architecture, facts, options), options)

    def up_to_date(self, ins: Instruction) -> bool:
        """Whether the folder holds the instruction as these options would record it, its file unharmed."""
        entry = self.manifest["instructions"].get(ins.name)
        if (
            entry is None
            or entry.get("seed") != self.options.seed
            or entry["class_set"] not in tiles.CLASS_SETS
        ):
            return False
        if entry.get("per_kind") != self.options.per_kind or entry.get("ptx") != _ptx(
            ins, kernels.forms(ins)
        ):
            return False
        try:
            content = (self.folder / entry["file"]).read_bytes()
        except OSError:
            return False
        return bool(hashlib.sha256(content).hexdigest() == entry["sha256"])

    def replacing(self, names: set[str]) -> _Replacing:
        """Takes the entries of `names` out of the manifest on disk, and writes it again at the end,
        whatever happens."""
        return _Replacing(self, names)

    def add(
        self,
        ins: Instruction,
        arrays: dict[str, Bits],
        class_set: str,
        classes: list[int],
        parts: list[Built],
    ) -> None:
        """Writes one file and enters it; raises HwError where all files together would become too large."""
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
        self.manifest["instructions"][ins.name] = entry | {
            "emulated": ins.emulated,
            "seed": self.options.seed,
            "per_kind": self.options.per_kind,
            "date": _today(),
            "ptx": _ptx(ins, [one.form for one in parts]),
            "sass": {one.form: list(one.sass) for one in parts},
        }

    def total(self) -> int:
        """Bytes of the files of the manifest."""
        return sum(
            (self.folder / entry["file"]).stat().st_size
            for entry in self.manifest["instructions"].values()
            if (self.folder / entry["file"]).exists()
        )

    def write(self) -> None:
        """Writes the manifest, in the order of the spec, without class sets that nothing uses."""
        order = {
            name: i
            for i, name in enumerate(architectures.get_architecture(self.manifest["architecture"]).names())
        }
        entries = self.manifest["instructions"]
        self.manifest["instructions"] = {
            name: entries[name] for name in sorted(entries, key=lambda name: order.get(name, 0))
        }
        used = {entry["class_set"] for entry in entries.values()}
        sets = self.manifest["operand_classes"]
        self.manifest["operand_classes"] = {name: words for name, words in sets.items() if name in used}
        if used <= set(tiles.CLASS_SETS):
            self.manifest["operands"] = _OPERANDS
        captured.write_manifest(self.folder, self.manifest)


def _ptx(ins: Instruction, forms: Iterable[str]) -> dict[str, str]:
    return {form: build.text(ins, form) for form in forms}


class _Replacing:
    """See `_Store.replacing`."""

    def __init__(self, store: _Store, names: set[str]) -> None:
        self._store, self._names = store, names

    def __enter__(self) -> None:
        entries = self._store.manifest["instructions"]
        if self._names & set(entries):
            for name in self._names:
                entries.pop(name, None)
            self._store.write()

    def __exit__(self, *_: object) -> None:
        self._store.write()


def _begun(
    known: dict[str, Any], architecture: str, facts: dict[str, Any], options: Options
) -> dict[str, Any]:
    """A manifest to add to: the known one brought to the present schema, or an empty one.

    `tools` are those of the entries that name none: an entry that other tools built keeps them.
    """
    operands, tools = known.get("operands", _OPERANDS), _tools(architecture)
    entries = {name: dict(entry) for name, entry in known.get("instructions", {}).items()}
    if known.get("tools", tools) != tools:
        entries = {name: {"tools": known["tools"], **entry} for name, entry in entries.items()}
    return {
        "schema": captured.SCHEMA,
        "architecture": architecture,
        "device": facts,
        "date": _today(),
        "tools": tools,
        "seed": options.seed,
        "operands": operands if _OPERANDS in operands else f"{operands} {_OPERANDS}",
        "operand_classes": dict(known.get("operand_classes", {})),
        "instructions": entries,
    }


def _tools(architecture: str) -> dict[str, str]:
    if not build.nvcc_compiles(architecture):
        with suppress(ToolMissing):
            return {"compiler": amd_toolchain.version()}
        return {}
    nvcc = toolchain.find("nvcc")
    found = {"nvcc": toolchain.version(nvcc)} if nvcc else {}
    disassembles = toolchain.find("nvdisasm") or toolchain.find("cuobjdump")
    return found | ({"disassembler": toolchain.disassembler()} if disassembles else {})


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
