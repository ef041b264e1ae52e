"""Records what a GPU answers: tiles of every stimulus kind through every instruction,
into files with a manifest.

store.py has the folder and its manifest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from golden.catalog import architectures
from golden.model.instruction import Instruction
from hw_capture.errors import DeviceError, ToolMissing
from hw_capture.kernels import amd_toolchain, build, kernels, tiles, toolchain
from hw_capture.kernels.build import Built
from hw_capture.record.runner import INITIAL_BYTES, Runner, differing
from hw_capture.record.store import Options as Options
from hw_capture.record.store import Report as Report
from hw_capture.record.store import Store, opened

Builder = Callable[[Sequence[list[tuple[Instruction, str]]], str], Generator[list[Built], None, None]]
_OPERANDS = (
    "Class sets 'stimuli' and 'mixed': drawn by hw_capture/kernels/tiles.py from golden/stimuli/ with the "
    "entry's seed; every kernel ran twice, and wgmma with A from registers and from shared memory, with "
    "equal results. Matrices in the shapes of the matrix API, metadata as nibbles; raw bits."
)


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
    with opened(folder, chosen[0].architecture, facts, options, _OPERANDS, _tools) as store:
        # Files of the same spec, GPU and options stay as they are.
        todo = [ins for ins in chosen if not _up_to_date(ins, store)]
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
    store: Store,
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


def _by_instruction(group: list[Built]) -> Iterator[list[Built]]:
    names = dict.fromkeys(one.instruction.name for one in group)
    for name in names:
        yield [one for one in group if one.instruction.name == name]


def _capture_one(ins: Instruction, parts: list[Built], runner: Runner, store: Store, report: Report) -> None:
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
    results = [runner.run(one, operands, fill) for one in parts for fill in INITIAL_BYTES]
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
    forms = [one.form for one in parts]
    more = {"emulated": ins.emulated, "per_kind": store.options.per_kind, "ptx": _ptx(ins, forms)}
    more["sass"] = {one.form: list(one.sass) for one in parts}
    store.add(ins, {**operands, "d": results[0]}, class_set, classes, more)
    report.recorded += 1


def _up_to_date(ins: Instruction, store: Store) -> bool:
    """Whether the folder holds the instruction as the store's options would record it, its file unharmed."""
    entry, requested = store.manifest["instructions"].get(ins.name), store.options
    if (
        entry is None
        or (entry.get("seed"), entry.get("per_kind")) != (requested.seed, requested.per_kind)
        or entry["class_set"] not in tiles.CLASS_SETS
        or entry.get("ptx") != _ptx(ins, kernels.forms(ins))
    ):
        return False
    try:
        content = (store.folder / entry["file"]).read_bytes()
    except OSError:
        return False
    return bool(hashlib.sha256(content).hexdigest() == entry["sha256"])


def _ptx(ins: Instruction, forms: Iterable[str]) -> dict[str, str]:
    return {form: build.text(ins, form) for form in forms}


def _tools(architecture: str) -> dict[str, str]:
    if not build.nvcc_compiles(architecture):
        with suppress(ToolMissing):
            return {"compiler": amd_toolchain.version()}
        return {}
    nvcc = toolchain.find("nvcc")
    found = {"nvcc": toolchain.version(nvcc)} if nvcc else {}
    disassembles = toolchain.find("nvdisasm") or toolchain.find("cuobjdump")
    return found | ({"disassembler": toolchain.disassembler()} if disassembles else {})
