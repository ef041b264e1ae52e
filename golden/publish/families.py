"""Which instructions share a page: the variants of one family that compute by the same rule.

A group is what one page describes. Its instructions belong to one family of `spec/families` and run
operations with the same algorithms, parameters and output formats; they differ in shape, operand types or
layout only. Slugs are made of the family's name, the result's format and the modifiers (rounding, saturation,
bit operation), so a page keeps its address while variants come and go, and an NVIDIA instruction has the same
slug on every architecture. (Some families of AMD have all operand types;
which of them share a rule differs by chip.) Where a family's pages differ by scales,
each kind of scale has its own; the family's first keeps the plain address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from golden.catalog import architectures
from golden.catalog.families import SCALES, families
from golden.catalog.lookup import instructions
from golden.model.instruction import Instruction
from golden.number.formats import Format

MANY = 3
"""Most values of one kind that a title lists; more are summed up."""


@dataclass(frozen=True)
class Group:
    """The instructions of one page. `representative`: the one that pictures and examples are made of."""

    architecture: str
    slug: str
    title: str
    variants: tuple[Instruction, ...]
    representative: Instruction

    @property
    def path(self) -> str:
        """Where the page lies in the site."""
        return f"instructions/{self.architecture}/{self.slug}.md"


@cache  # of every architecture: pages compare each with all others
def groups(architecture: str) -> tuple[Group, ...]:
    """Returns the groups of an architecture, in the order of its spec.

    Raises:
        UnknownNameError: no such architecture.
    """
    found: dict[tuple[object, ...], list[Instruction]] = {}
    for ins in instructions(architecture):
        found.setdefault(_key(ins), []).append(ins)
    return tuple(_group(architecture, tuple(variants)) for variants in found.values())


def siblings(group: Group) -> tuple[Group, ...]:
    """The groups of the same family on the same architecture, itself among them; none of a unit of one's
    own."""
    if group.architecture not in architectures.architectures():
        return ()
    family = group.representative.family
    return tuple(one for one in groups(group.architecture) if one.representative.family == family)


def group_of(ins: Instruction) -> Group:
    """Returns the group of a catalogued instruction; a unit from a designer's own file is a group
    of its own."""
    found = (
        _index(ins.architecture).get(ins.name) if ins.architecture in architectures.architectures() else None
    )
    return found or own_group(ins)


def own_group(ins: Instruction) -> Group:
    """A group of one: a unit that no architecture of the catalogue has."""
    return Group(ins.architecture, ins.name, ins.variables.get("title", ins.name), (ins,), ins)


@cache
def _index(architecture: str) -> dict[str, Group]:
    return {ins.name: group for group in groups(architecture) for ins in group.variants}


def _key(ins: Instruction) -> tuple[object, ...]:
    return (
        ins.family,
        ins.traits.modifiers,
        _scaling(ins),
        frozenset((op.algorithm, str(op.parameters), op.out_format.name) for op in ins.program.operations),
    )


def _scaling(ins: Instruction) -> tuple[str, int] | None:
    """What separates pages by their scales: the scale's format, and for how many elements one stands."""
    if families()[ins.family].pages_by != SCALES or ins.scale_block is None:
        return None
    return ins.formats["scale_a"].name, ins.scale_block


def _group(architecture: str, variants: tuple[Instruction, ...]) -> Group:
    return Group(architecture, _slug(variants), _title(variants), variants, _representative(variants))


def _representative(variants: tuple[Instruction, ...]) -> Instruction:
    """The variant of fewest blocks, then longest K, then smallest tile; of equals the first in the order
    of the spec."""
    return min(variants, key=lambda ins: (ins.blocks, -ins.k, ins.m * ins.n))


# Slugs and titles -------------------------------------------------------------------------------------------


def _different(variants: Iterable[Instruction], of: Callable[[Instruction], str]) -> list[str]:
    return list(dict.fromkeys(of(ins) for ins in variants))


def _formats(variants: Iterable[Instruction], operand: str) -> list[str]:
    return _different(variants, lambda ins: ins.formats[operand].name)


def _modifiers(variants: tuple[Instruction, ...]) -> list[str]:
    """What the variants' names add to the family: "rz", "satfinite", "xor"."""
    return sorted({word for ins in variants for word in ins.traits.modifiers})


def _slug(variants: tuple[Instruction, ...]) -> str:
    family, operands = variants[0].family, []
    pages_by = families()[family].pages_by
    if pages_by == SCALES:
        operands = _scale_words(variants)
    elif pages_by is not None:
        operands = ["from", *_formats(variants, pages_by)]
    return "-".join([family, *_formats(variants, "d"), *operands, *_modifiers(variants)])


def _scale_words(variants: tuple[Instruction, ...]) -> list[str]:
    """What a page's scales add to its address: nothing for the scales that the family lists first."""
    ins = variants[0]
    first = next(one for one in instructions(ins.architecture) if one.family == ins.family)
    scaling = _scaling(ins)
    return [] if scaling is None or scaling == _scaling(first) else list(map(str, scaling))


def _title(variants: tuple[Instruction, ...]) -> str:
    mnemonic = _mnemonic(variants)
    extra = "".join(f", {word}" for word in _modifiers(variants) if f".{word}." not in mnemonic)
    if scaling := _scaling(variants[0]):
        extra += ", {} scales for {}".format(*scaling)
    return f"{mnemonic}: {_operands(variants)}{extra}"


def _mnemonic(variants: tuple[Instruction, ...]) -> str:
    """ "mma.sync kind::f8f6f4 m16n8k32", "wgmma.mma_async.sp m64nNk32", "v_mfma_f32": the title that the
    family gives."""
    keys = variants[0].variables
    values = {key: "/".join(dict.fromkeys(ins.variables[key] for ins in variants)) for key in keys}
    return families()[variants[0].family].title.format(**values, shapes=_shapes(variants))


def _shapes(variants: tuple[Instruction, ...]) -> str:
    """ "m16n8k8, m16n8k16"; of a sweep "m64nNk16": a dimension of many values is its capital letter."""
    shapes = list(dict.fromkeys(ins.shape for ins in variants))
    if len(shapes) <= MANY + 1:
        return ", ".join("m{}n{}k{}".format(*shape) for shape in shapes)
    parts = []
    for letter, values in zip("mnk", zip(*shapes, strict=True), strict=True):
        different = dict.fromkeys(values)
        parts.append(f"{letter}{values[0] if len(different) == 1 else letter.upper()}")
    return "".join(parts)


def _operands(variants: tuple[Instruction, ...]) -> str:
    c, d = (_short(variants, operand) for operand in "cd")
    return f"{_factors(variants)} + {c}" if c == d else f"{_factors(variants)} + {c} to {d}"


def _factors(variants: tuple[Instruction, ...]) -> str:
    """ "f16 x f16 or bf16 x bf16" where both factors have one type,
    "e4m3/e5m2 x e4m3/e5m2" where types are mixed."""
    own = _formats(variants, "a")
    if own_type(variants) and 1 < len(own) <= MANY:
        return f"{', '.join(f'{name} x {name}' for name in own[:-1])} or {own[-1]} x {own[-1]}"
    return f"{_short(variants, 'a')} x {_short(variants, 'b')}"


def own_type(variants: Iterable[Instruction]) -> bool:
    """Whether A and B have the same type in every variant."""
    return all(ins.formats["a"] == ins.formats["b"] for ins in variants)


def _short(variants: tuple[Instruction, ...], operand: str) -> str:
    formats: list[Format] = list(
        {ins.formats[operand].name: ins.formats[operand] for ins in variants}.values()
    )
    if len(formats) <= MANY:
        return "/".join(fmt.name for fmt in formats)
    return "/".join(str(bits) for bits in sorted({fmt.bits for fmt in formats}, reverse=True)) + "-bit floats"
