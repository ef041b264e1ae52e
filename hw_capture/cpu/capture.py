"""Records what the CPU in this machine answers: tiles of every stimulus kind, into files with a manifest.

Every instruction is executed twice; the manifest's device is that of `Machine.facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from golden.model.instruction import Instruction
from hw_capture.cpu.machine import Machine
from hw_capture.kernels import tiles
from hw_capture.record.store import Options, Report, Store, opened

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
        FileFormatError: as `opened`; or a file cannot be written. HwError: the files would become too large.
    """
    options, report = options or Options(), Report()
    with opened(folder, chosen[0].architecture, machine.facts(), options, _OPERANDS) as store:
        for index, ins in enumerate(chosen):
            if progress:
                progress(ins.name, index, len(chosen))
            if reason := machine.missing(ins):
                report.failed.append((ins.name, reason))
            else:
                _one(machine, ins, store, report)
        report.nbytes = store.total()
    return report


def _one(machine: Machine, ins: Instruction, store: Store, report: Report) -> None:
    operands, class_set, classes = tiles.draw(ins, store.options.seed, store.options.per_kind)
    first, second = machine.matrices(ins, operands), machine.matrices(ins, operands)
    if unlike := int((first != second).sum()):
        report.failed.append((ins.name, f"{unlike} results differ between two runs"))
        return
    # Recorded in any case: the hardware is the authority.
    if wrong := int((first != ins(**operands)).sum()):
        report.differ.append((ins.name, wrong))
    with store.replacing({ins.name}):
        store.add(ins, {**operands, "d": first}, class_set, classes)
    report.recorded += 1
