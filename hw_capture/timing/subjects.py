"""What `mmagold bench-gpu` measures: the list of subjects of an architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from golden.catalog import timing
from golden.catalog.architectures import get_architecture
from golden.catalog.lookup import instruction, instructions
from golden.model.instruction import Instruction
from hw_capture.kernels import kernels
from hw_capture.timing import movement
from hw_capture.timing.programs import Subject

_FULL_SWEEP = tuple(range(8, 257, 8))
_WGMMA_TYPES = (
    ("16", "f32.f16.f16", ""),
    ("16", "f16.f16.f16", ""),
    ("16", "f32.bf16.bf16", ""),
    ("8", "f32.tf32.tf32", ""),
    ("32", "f32.e4m3.e4m3", ""),
    ("32", "f16.e4m3.e4m3", ""),
    ("32", "f32.e5m2.e5m2", ""),
    ("32", "s32.s8.s8", ""),
    ("32", "s32.u8.u8", ""),
    ("256", "s32.b1.b1", ".and.popc"),
)
_SPARSE_WGMMA_TYPES = (
    ("32", "f32.f16.f16"),
    ("32", "f16.f16.f16"),
    ("32", "f32.bf16.bf16"),
    ("16", "f32.tf32.tf32"),
    ("64", "f32.e4m3.e4m3"),
    ("64", "f16.e4m3.e4m3"),
    ("64", "s32.s8.s8"),
)
FORM_NAMES = {"shared": "SS", "registers": "RS"}


def of_instruction(ins: Instruction, form: str = "registers") -> Subject:
    """The subject of one PTX instruction."""
    work = ins.m * ins.n * ins.k * (ins.blocks or 1)
    group = "emulated" if ins.emulated else f"{ins.traits.kernel}{'.sp' * ins.sparse}"
    variant = FORM_NAMES[form] if len(kernels.forms(ins)) > 1 else ""
    return Subject(ins.name, variant, group, work, "FMA/clk/SM", ins.formats["a"].name, ins, form)


def matrix_subjects(architecture: str = "hopper") -> list[Subject]:
    """Every matrix instruction but wmma, and what moves matrices."""
    return [
        *_mma(architecture),
        *movement.subjects(get_architecture(architecture).movement),
        *_wgmma(architecture),
    ]


def wmma_subjects(architecture: str = "hopper") -> list[Subject]:
    """Every wmma, and its loads and stores."""
    found = _wmma(architecture)
    return [*(of_instruction(ins) for ins in found), *movement.wmma_moves(found)]


def sun_subjects(architecture: str = "hopper") -> list[Subject]:
    """What W. Sun et al. print figures of, in our loop and in theirs; bf16, which their figures show, next to
    each f16. Emulated instructions have no chain through C."""
    files = (name for name in timing.names() if name.startswith("sun_"))
    printed = {(one.instruction, one.key.variant) for name in files for one in timing.load(name)}
    printed |= {
        (name.replace(".f32.f16.f16.f32", ".f32.bf16.bf16.f32"), variant) for name, variant in printed
    }
    moved = movement.subjects(get_architecture(architecture).movement)
    return [
        replace(subject, printed=True)
        for subject in (*_mma(architecture), *moved)
        if subject.group != "emulated" and (subject.name, subject.variant) in printed
    ]


def _mma(architecture: str) -> Iterable[Subject]:
    """Every native mma.sync and mma.sp; of the emulated ones those of one operand type that wrap around."""
    for ins in instructions(architecture):
        if ins.traits.kernel != "mma" or not kernels.supported(ins):
            continue
        same = ins.formats["a"].name == ins.formats["b"].name
        plain = same and ins.traits.plain and "satfinite" not in ins.traits.modifiers
        if not ins.emulated or plain:
            yield of_instruction(ins)


def _wmma(architecture: str) -> list[Instruction]:
    """Every wmma but for those that differ in saturation or a directed rounding: they are the same machine
    code but for a modifier."""
    return [
        ins
        for ins in instructions(architecture)
        if ins.traits.kernel == "wmma"
        and kernels.supported(ins)
        and not kernels.opaque(ins)
        and not ins.name.endswith((".satfinite", ".rz", ".rm", ".rp"))
    ]


def _wgmma(architecture: str) -> Iterable[Subject]:
    known = get_architecture(architecture).names()
    dense = [
        (f"wgmma.mma_async.sync.aligned.m64n{{}}k{k}.{types}{end}", types) for k, types, end in _WGMMA_TYPES
    ]
    sparse = [
        (f"wgmma.mma_async.sp.sync.aligned.m64n{{}}k{k}.{types}", "") for k, types in _SPARSE_WGMMA_TYPES
    ]
    for template, types in dense + sparse:
        sweep = (8, 16, 32, 64, 128, 192, 256)
        for n in _FULL_SWEEP if types == "f32.f16.f16" else sweep:
            if template.format(n) in known:
                ins = instruction(architecture, template.format(n))
                yield from (of_instruction(ins, form) for form in ("shared", "registers"))


def select(subjects: Sequence[Subject], pattern: str) -> list[Subject]:
    """Returns the subjects whose label holds the text."""
    return [subject for subject in subjects if pattern in subject.label]
