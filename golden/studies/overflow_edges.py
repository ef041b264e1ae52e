"""The six overflow edges of MMA-Sim: the largest number of a format, and three quarters, a half and a
quarter of its last place, in both signs."""

from __future__ import annotations

from dataclasses import dataclass

from golden.identify.blackbox.plugins import Chip
from golden.identify.probe.probes import Probe
from golden.identify.probe.special_probes import EDGES, overflow_edges
from golden.studies.study import Progress, Study, Table, findings
from golden.studies.units import MMA, Subject, and_on, who_answered

NAME = "overflow-edges"

_LATER = ("ampere", "ada", "hopper", "blackwell", "rtx_blackwell")
UNITS = (
    *(Subject(name, f"{MMA}m16n8k8.row.col.f32.bf16.bf16.f32", "bf16") for name in _LATER),
    *(Subject(name, f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32", "tf32") for name in _LATER),
    *(Subject(name, f"{MMA}m16n8k16.row.col.f16.f16.f16.f16", "f16 to f16") for name in _LATER),
    Subject("cdna2", "v_mfma_f32_32x32x8bf16_1k", "bf16"),
    Subject("cdna3", "v_mfma_f32_32x32x8_bf16", "bf16"),
)


@dataclass(frozen=True)
class Edges:
    """The words that one unit answers, in the order of EDGES."""

    unit: Subject
    words: tuple[int, ...]


def ask(unit: Subject) -> Edges:
    """The six edges of one unit; raises Unreachable where its formats cannot express one."""
    return Edges(unit, tuple(overflow_edges(Probe(unit.answering)).values()))


def run(samples: int = 1, progress: Progress = lambda done, total: None, chip: Chip | None = None) -> Study:
    """Asks every unit."""
    subjects, found = tuple(and_on(chip, UNITS)), []
    for step, unit in enumerate(subjects):
        found.append(ask(unit))
        progress(step + 1, len(subjects))
    kinds: dict[tuple[int, ...], list[str]] = {}
    for one in found:
        kinds.setdefault(one.words, []).append(one.unit.label)
    every = "; ".join(f"{', '.join(map(hex, words))} on {', '.join(names)}" for words, names in kinds.items())
    who = who_answered(subjects)
    return Study(
        NAME,
        samples,
        findings(NAME, units=len(subjects), all=every, who=who[0].upper() + who[1:]),
        [_table(found)],
        data={
            f"{one.unit.on.name if one.unit.on else one.unit.architecture}:{one.unit.name}": [
                hex(w) for w in one.words
            ]
            for one in found
        },
        units=subjects,
        random=False,
    )


def _table(found: list[Edges]) -> Table:
    rows = [(one.unit.chip, one.unit.what, *map(hex, one.words)) for one in found]
    return Table("edges", "Words of the six edges", ("chip", "types", *EDGES), rows)
