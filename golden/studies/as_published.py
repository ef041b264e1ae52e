"""Units as the first version of MMA-Sim describes them, next to ours: operands that separate them, and what
a chip answers to these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.unit_files import load_instruction
from golden.identify.blackbox.plugins import Chip
from golden.model.instruction import Instruction
from golden.paths import spec_folder
from golden.studies.study import Progress, Study, Table, findings, percent
from golden.studies.units import Subject, and_on, encode, who_answered
from golden.unit import Unit

NAME = "as-published"


_NOT_ASKED = "No chip was measured here: `--gpu` measures the one in this machine."


@dataclass(frozen=True)
class Case:
    """One description: the file of spec/published, our instruction, what differs, and a dot product that
    separates the two."""

    file: str
    ours: Subject
    what: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float = 0.0

    @property
    def path(self) -> str:
        """The file in the repository."""
        return f"spec/published/{self.file}.yaml"

    @cached_property
    def published(self) -> Instruction:
        """The unit as it is described."""
        return load_instruction(spec_folder() / "published" / f"{self.file}.yaml")

    def operands(self) -> dict[str, npt.NDArray[Any]]:
        """The dot product, as codes (1, k)."""
        k = self.published.k
        values = {name: list(x) + [0.0] * (k - len(x)) for name, x in (("a", self.a), ("b", self.b))}
        coded = {name: encode(self.published, name, [row]) for name, row in values.items()}
        return coded | {"c": encode(self.published, "c", [self.c])}

    def said(self) -> str:
        """The dot product in words."""
        pairs = " + ".join(f"{_short(x)} * {_short(y)}" for x, y in zip(self.a, self.b, strict=True))
        return f"{pairs} + {_short(self.c)}"


def _short(value: float) -> str:
    """A number by its power of two where it is small: 1.5*2^-12."""
    mantissa, exponent = np.frexp(value)
    if value == 0 or abs(value) >= 1:
        return f"{value:g}"
    power = f"2^{exponent - 1}"
    return (
        power
        if 2 * mantissa == 1
        else f"{'-' if value < 0 else ''}{abs(2 * mantissa):g}*{power}".replace("1*", "")
    )


CASES = (
    Case(
        "hopper_hmma_16816_f32",
        Subject("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f16"),
        "a zero takes part in the maximum exponent",
        (2.0**-12, 0.0),
        (2.0**-14, 65504.0),
    ),
    Case(
        "turing_hmma_884_f32",
        Subject("turing", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "f16"),
        "F = 24 instead of 23",
        (1.0, -1.0, 2.0**-12),
        (1.0, 1.0, 2.0**-12),
    ),
    Case(
        "cdna3_32x32x8_f16",
        Subject("cdna3", "v_mfma_f32_32x32x8_f16", "f16"),
        "the dot product meets c at 31 bits, not at 32 and then 31; zeros take part",
        (2.0**-4, 2.0**-4, 1.5 * 2.0**-12, 2.0**-16),
        (2.0**-4, -(2.0**-4), -(2.0**-12), 2.0**-16),
        1.0,
    ),
)


@dataclass(frozen=True)
class Answers:
    """What one case's units answer: the words of the dot product that separates them, how many random ones
    differ, and with whom a chip agrees in these (None without a chip)."""

    case: Case
    ours: int
    published: int
    differ: int
    chip: str = ""
    answered: int | None = None
    as_ours: int = 0
    as_published: int = 0


def drawn(ins: Instruction, samples: int) -> dict[str, npt.NDArray[Any]]:
    """Random finite f16 words of a and b, a quarter of a zero, and c in f32. In every second dot product the
    products are small and what stands next to a zero is large, so that a zero would raise their maximum."""
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0, 1 << 16, (samples, ins.k)).astype(np.uint16) for _ in "ab")
    # Some elements of a are zero: so what zeros do counts, too.
    share = 0.25
    zero = rng.random(a.shape) < share
    small = np.broadcast_to(np.arange(samples)[:, None] % 2 == 1, a.shape)
    for words in (a, b):
        words[(words & 0x7C00) == 0x7C00] &= 0xBFFF  # infinities and NaNs of f16 become numbers
        words[small] &= 0x9FFF  # below 2^-7
    b[small & zero] = b[small & zero] & 0x83FF | 0x7800  # sign and fraction, with the exponent of 2^15
    a[zero] = 0
    scale = np.where(small[:, 0], 2.0**-40, 2.0 ** rng.integers(-24, 16, samples))
    return {"a": a, "b": b, "c": encode(ins, "c", rng.standard_normal(samples) * scale)}


def ask(case: Case, samples: int, chip: Chip | None = None) -> Answers:
    """Asks ours, the published unit and the chip."""
    one, many = case.operands(), drawn(case.published, samples)

    def word(unit: Unit) -> int:
        return int(np.ravel(unit.dot(**one))[0])

    ours, theirs = case.ours.ins.dot(**many), case.published.dot(**many)
    apart = ours != theirs
    found = Answers(case, word(case.ours.ins), word(case.published), int(apart.sum()))
    for unit in and_on(chip, [case.ours]):
        if unit.on is None:
            continue
        words = np.ravel(unit.answering.dot(**many))[apart]
        agree = (int((words == which[apart]).sum()) for which in (ours, theirs))
        return Answers(
            case, found.ours, found.published, found.differ, unit.on.name, word(unit.answering), *agree
        )
    return found


def run(
    samples: int = 20_000, progress: Progress = lambda done, total: None, chip: Chip | None = None
) -> Study:
    """Asks every case."""
    found = []
    for step, case in enumerate(CASES):
        found.append(ask(case, samples, chip))
        progress(step + 1, len(CASES))
    subjects = tuple(and_on(chip, (case.ours for case in CASES)))
    return Study(
        NAME,
        samples,
        _findings(found, samples, subjects),
        [_table(found)],
        data={
            one.case.file: {
                "operands": one.case.said(),
                "ours": f"{one.ours:#010x}",
                "published": f"{one.published:#010x}",
                "random": samples,
                "differ": one.differ,
                "chip": one.chip,
                "answered": None if one.answered is None else f"{one.answered:#010x}",
                "as_ours": one.as_ours,
                "as_published": one.as_published,
            }
            for one in found
        },
        units=subjects,
    )


def _findings(found: list[Answers], samples: int, subjects: tuple[Subject, ...]) -> str:
    apart = "; ".join(
        f"{one.case.ours.chip}, {one.case.said()}: {one.ours:#010x} by ours, {one.published:#010x} by theirs"
        for one in found
    )
    shares = ", ".join(
        f"{one.differ:,} on {one.case.ours.chip} ({percent(one.differ / samples)})" for one in found
    )
    decided = "\n- ".join(_decided(one) for one in found if one.answered is not None) or _NOT_ASKED
    who = who_answered(subjects)
    return findings(
        NAME, apart=apart, samples=samples, shares=shares, decided=decided, who=who[0].upper() + who[1:]
    )


def _decided(one: Answers) -> str:
    return (
        f"{one.chip} answers {one.answered:#010x} to that of {one.case.ours.chip}. Of the {one.differ:,} "
        f"random ones that differ, it answers {one.as_ours:,} as ours, {one.as_published:,} as the paper's."
    )


def _table(found: list[Answers]) -> Table:
    rows = [
        (
            one.case.ours.chip,
            one.case.what,
            one.case.said(),
            f"{one.ours:#010x}",
            f"{one.published:#010x}",
            "" if one.answered is None else f"{one.answered:#010x} ({one.chip})",
            f"`mmagold compare {one.case.ours.architecture}:{one.case.ours.name} {one.case.path}`",
        )
        for one in found
    ]
    head = ("chip", "the paper says", "dot product", "ours", "the paper's", "a chip", "command")
    return Table("apart", "What separates the paper's unit from ours", head, rows)
