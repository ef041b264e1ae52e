"""Instructions by name: an architecture and a PTX, SASS or AMD name make an `Instruction`."""

from __future__ import annotations

from golden.catalog import architectures, machine_code
from golden.catalog.families import Variables, fill, shape_of
from golden.catalog.resolver import resolver, several
from golden.catalog.type_words import has_types
from golden.catalog.unit_files import load_instruction
from golden.errors import UnknownArithmeticError, UnknownNameError
from golden.model.instruction import Evidence, Instruction
from golden.number.formats import get_format
from golden.program.compiling import compile_program
from golden.program.program import OperandFormats, Program
from golden.program.signature import SCALES

_cache: dict[tuple[str, str], Instruction] = {}
_programs: dict[tuple[object, ...], Program] = {}


def _build(architecture: str, name: str, entry: architectures.Entry, variables: Variables) -> Instruction:
    key = (architecture, name)
    if key not in _cache:
        _cache[key] = _build_uncached(architecture, name, entry, variables)
    return _cache[key]


def _build_uncached(
    architecture: str, name: str, entry: architectures.Entry, variables: Variables
) -> Instruction:
    family = entry.family
    m, n, k = shape_of(variables, entry.section)
    formats = {operand: get_format(fill(text, variables)) for operand, text in family.formats.items()}
    scales = {name: fmt for name, fmt in formats.items() if name in SCALES}
    stored_k, scale_block = k // 2 if family.sparse else k, fill(family.scale_block, variables)
    operands = OperandFormats(
        formats["a"],
        formats["b"],
        formats["c"],
        formats["d"],
        stored_k,
        scales=scales,
        flags=bool(entry.status),
        scale_block=None if scale_block is None else scale_block * stored_k // k,
    )
    return Instruction(
        name,
        m,
        n,
        k,
        formats,
        family.pattern,
        family.ordered(variables),
        scale_block,
        status=entry.status,
        architecture=architecture,
        program=_program(entry, variables, operands),
        evidence=_evidence(architecture, name, entry),
        sass=machine_code.names(entry, variables),
        emulated=entry.emulated,
        layout=entry.layout,
        blocks=int(fill(family.blocks, variables)),
        family=family.name,
        source=family.source,
        variables=variables,
        traits=family.traits(variables),
    )


def _program(entry: architectures.Entry, variables: dict[str, str], operands: OperandFormats) -> Program:
    """The compiled program; the thousands of instructions that differ in M and N alone share one."""
    items = fill(entry.program, variables)
    formats = (operands.a, operands.b, operands.c, operands.d, *operands.scales.items())
    key = entry.section.file, repr(items), operands.k, operands.scale_block, operands.flags, formats
    if key not in _programs:
        _programs[key] = compile_program(items, entry.section, operands)
    return _programs[key]


def _evidence(architecture: str, name: str, entry: architectures.Entry) -> Evidence:
    """Captured where vectors of exactly this instruction are committed, else what the architecture's file
    says."""
    captured = architectures.captures(architecture)
    if name not in captured.vectors:
        return Evidence(**entry.evidence)
    return Evidence(
        "captured",
        f"recorded on an {captured.device}; rule: {entry.evidence['source']}",
        captured.vectors[name],
        captured.device,
    )


def instruction(architecture: str, name: str | None = None) -> Instruction:
    """Returns the instruction with a PTX, SASS or AMD name. `architecture` is the name of an architecture
    (hopper), a card (h100, RTX 5090) or a target (sm_90). A single argument is `architecture:instruction`.

    The qualifiers of a name may have any order. Compilers' names (`__builtin_amdgcn_mfma_f32_32x32x8f16`,
    `_tile_dpbf16ps`) are names, and types of operands (nvfp4) where one instruction has them.

    Raises:
        UnknownNameError: no such architecture or instruction (the message names near ones), or a name that
            stands for several instructions.
        UnknownArithmeticError: the architecture has it, but what it computes is not public.
    """
    for what, text in (("architecture", architecture), ("name", name)):
        if not isinstance(text, str) and not (what == "name" and text is None):
            raise UnknownNameError(f"argument '{what}' is {text!r}, expected a text such as 'hopper'")
    if name is None:
        return resolve(architecture)
    cached = _cache.get((architecture, name))
    if cached is not None:
        return cached
    architecture = resolver().called(architecture)
    found = _find(architecture, name)
    if found is None:
        hint = resolver().hint(architecture, name)
        raise UnknownNameError(f"unknown instruction '{name}' on {architecture}{hint}")
    return found


def _listed(architecture: str, name: str) -> Instruction:
    return _build(architecture, name, *architectures.get_architecture(architecture).names()[name])


def _find(architecture: str, name: str) -> Instruction | None:
    """As `instruction`; None where the architecture has no such name."""
    found = resolver().named(architecture, name)
    # Most PTX spellings of one machine instruction; more names are a choice that the asker has to make.
    spellings = 4
    if not found:
        found = resolver().of_types(architecture, name)
        if len(found) == 1 and not has_types(_listed(architecture, found[0]), name):
            found = []  # a part of its name, as f16 in bf16
    elif len(found) <= spellings and _are_one([_listed(architecture, one) for one in found]):
        found = found[:1]
    if len(found) > 1:
        raise several(architecture, name, found)
    return _listed(architecture, found[0]) if found else None


def _are_one(found: list[Instruction]) -> bool:
    """Whether all are one instruction: the same results of the same operands at the same places."""
    return (
        len(
            {
                (
                    *(operation.arithmetic for operation in ins.program.operations),
                    *ins.formats.items(),
                    *(ins.shape, ins.pattern and ins.pattern.name, ins.ordered_metadata, ins.scale_block),
                    *(ins.layout, ins.blocks, ins.traits.lanes, *ins.traits.order.items()),
                )
                for ins in found
            }
        )
        == 1
    )


def instructions(architecture: str) -> list[Instruction]:
    """Returns every instruction of an architecture (see `instruction` for its names), in the order of its
    spec."""
    architecture = resolver().called(architecture)
    return [_listed(architecture, name) for name in architectures.get_architecture(architecture).names()]


def resolve(name: str, arch: str | None = None) -> Instruction:
    """Finds the instruction that a command's or a document's NAME argument means.

    Accepts `architecture:instruction` (see `instruction`), an instruction with `arch`, an instruction that
    only one architecture has, and the path of a custom unit (.yaml or .yml).

    Raises:
        UnknownNameError: no such thing, or several; the message names candidates.
        SpecError: the custom unit's file is wrong.
    """
    if name.endswith((".yaml", ".yml")):
        return load_instruction(name)
    if arch is not None:
        return instruction(arch, name.removeprefix(f"{arch}:"))
    prefix, colon, rest = name.partition(":")
    if colon and not rest.startswith(":"):
        return instruction(prefix, rest)
    expected = "(expected architecture:instruction or a .yaml file)"
    if resolver().are_types(name):
        raise UnknownNameError(f"'{name}' is no instruction {expected}{resolver().near_anywhere(name)}")
    found, untold, ambiguous = [], None, None
    for candidate in architectures.architectures():
        try:
            if (ins := _find(candidate, name)) is not None:
                found.append(ins)
        except UnknownArithmeticError as error:
            untold = error
        except UnknownNameError as error:
            ambiguous = error
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(
            f"'{name}' exists on {', '.join(ins.architecture for ins in found)}; say which, as "
            f"{found[0].architecture}:{name}"
        )
    if untold or ambiguous:
        raise ambiguous or untold  # type: ignore[misc]
    raise UnknownNameError(f"unknown instruction '{name}' {expected}{resolver().near_anywhere(name)}")
