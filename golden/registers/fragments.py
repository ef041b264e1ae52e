"""The register fragments of an instruction, and the matrix loads and stores that fill them.

`for_instruction(ins)` answers `ins.fragments`: a `Layout` per operand, None where the operand does not live
in registers (B of wgmma) or its layout is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Protocol

import numpy.typing as npt

from golden.errors import OperandError, SpecError
from golden.notebook import NotebookHtml
from golden.paths import spec_folder
from golden.registers.layouts import Array, Family, Layout, family
from golden.traits import Traits
from golden.yamlfile import read


class Described(Protocol):
    """What this module reads of an instruction."""

    @property
    def name(self) -> str: ...
    @property
    def layout(self) -> str | None: ...
    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def formats(self) -> Mapping[str, Any]: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def blocks(self) -> int: ...
    @property
    def scale_block(self) -> int | None: ...
    @property
    def traits(self) -> Traits: ...


@dataclass(frozen=True, repr=False)
class Fragments(NotebookHtml):
    """Register layouts of an instruction's operands; None for what has no (known) register layout.

    a, b, c, d: the matrices, one raw element per array item; sparse A has k/2 columns. metadata: the nibble
    matrix (m, chunks), `select(selector=...)`. scale_a (m, k/block) and scale_b (k/block, n):
    `select(byte_id=..., thread_id=...)`.
    """

    a: Layout | None
    b: Layout | None
    c: Layout | None
    d: Layout | None
    metadata: Layout | None = None
    scale_a: Layout | None = None
    scale_b: Layout | None = None
    of: Described | None = field(default=None, compare=False)
    """The instruction."""

    def __repr__(self) -> str:
        named = (one for one in fields(self) if one.name != "of" and getattr(self, one.name) is not None)
        words = [
            f"{one.name} {'x'.join(map(str, layout.matrix_shape))} in {layout.registers} registers"
            for one in named
            if (layout := getattr(self, one.name))
        ]
        return f"<Fragments of {self.of.name if self.of else 'an instruction'}: {', '.join(words)}>"

    @classmethod
    def for_instruction(cls, ins: Described) -> Fragments | None:
        """Returns the fragments of `ins`, or None when `ins.layout` is None (operands not in registers).

        Raises:
            SpecError: `ins.layout` names no layout family, or one of other lanes than the instruction's.
        """
        if ins.layout is None:
            return None
        rules = family(ins.layout)
        if ins.traits.lanes not in rules.lanes:
            lanes = " or ".join(map(str, rules.lanes))
            raise SpecError(
                f"{ins.name}: layout '{ins.layout}' is one of {lanes} lanes, the instruction has "
                f"{ins.traits.lanes}"
            )
        a, b, c, d = (_matrix(ins, rules, operand) for operand in "abcd")
        metadata = _operand(ins, rules, "metadata", 4) if ins.sparse else None
        scale_a, scale_b = (_scale(ins, rules, operand) for operand in ("scale_a", "scale_b"))
        return cls(a, b, c, d, metadata, scale_a, scale_b, ins)


for_instruction = Fragments.for_instruction


@cache
def _special_containers() -> dict[tuple[str, str], tuple[int, int]]:
    """Reads the (kind, format) -> (container bits, lowest bit) exceptions from register_containers.yaml."""
    top = read(spec_folder() / "layouts" / "register_containers.yaml")
    found = {}
    for item in top.take("containers", list):
        place = (item.take_int("bits", 1, 64), item.take_int("shift", 0, 63))
        found.update(
            {(kind, name): place for kind in item.take_names("kinds") for name in item.take_names("formats")}
        )
        item.done()
    return found


def container(format_name: str, bits: int, kind: str) -> tuple[int, int, int]:
    """Returns (container bits, element bits, lowest bit of the element in its container) of a format in
    registers.

    A container is as wide as the element, except: kind::f8f6f4 and kind::mxf8f6f4 keep every element in a
    byte, e2m1 in bits 5:2, e3m2 and e2m3 in bits 5:0 (PTX ISA 9.7.14.5); tf32 fills its 32-bit register.
    """
    containers = (1, 4, 8, 16, 32, 64)
    element = next(width for width in containers if bits <= width) if bits > 8 else bits
    if (kind, format_name) in _special_containers():
        width, shift = _special_containers()[(kind, format_name)]
        return width, element, shift
    return next(width for width in containers if element <= width), element, 0


def _container(ins: Described, operand: str) -> tuple[int, int, int]:
    return container(ins.formats[operand].name, ins.formats[operand].bits, ins.traits.kind)


def _parameters(ins: Described) -> dict[str, int]:
    return {
        "m": ins.m,
        "n": ins.n,
        "k": ins.k,
        "blocks": ins.blocks or 1,
        "sparse": int(ins.sparse),
        "a_bits": _container(ins, "a")[0],
        "a_col": int(ins.traits.by_column("a")),
        "b_row": int(not ins.traits.by_column("b")),
    }


def _matrix(ins: Described, rules: Family, operand: str) -> Layout | None:
    """Layout of a, b, c or d."""
    bits, element, shift = _container(ins, operand)
    return _operand(ins, rules, operand, bits, element_bits=element, element_shift=shift)


def _scale(ins: Described, rules: Family, operand: str) -> Layout | None:
    """Layout of the scale factors of A (m, k/block) or B (k/block, n)."""
    if not ins.scale_block:
        return None
    return _operand(ins, rules, operand, 8, scales=ins.k // ins.scale_block)


def _operand(ins: Described, rules: Family, operand: str, container_bits: int, **more: int) -> Layout | None:
    """Layout of an operand; None where the family does not have it, or not in this shape."""
    if not rules.has(operand):
        return None
    parameters = _parameters(ins) | more
    return rules.build(
        operand,
        container_bits=container_bits,
        name=f"{ins.name} {operand}",
        lanes=ins.traits.lanes,
        **parameters,
    )


# What ldmatrix and stmatrix move: bits of an element, and the numbers of matrices (.x1, .x2, .x4).
_MATRICES = {
    "m8n8": (16, (1, 2, 4)),
    "m8n8.trans": (16, (1, 2, 4)),
    "m8n16": (8, (1, 2, 4)),
    "m16n8.trans": (8, (1, 2, 4)),
    "m16n16.trans": (8, (1, 2)),
}


def matrix_layout(count: int, shape: str = "m8n8", trans: bool = False) -> Layout:
    """Returns the layout of ldmatrix and stmatrix .x1, .x2 or .x4: `count` matrices.

    The matrices are in shared memory. `pack` is ldmatrix: (..., [count,] rows, cols) -> (..., 32,
    registers); `unpack` is stmatrix, its exact inverse. A lane has one register for each matrix, two for
    "m16n16". `address_lanes()` gives the lane that supplies each row's address.

    - m8n8: 8 x 8 elements of 16 bits, with or without `trans`.
    - m8n16: 8 x 16 of 6 or 4 bits, one a byte; only ldmatrix, without `trans`.
    - m16n8: 8 x 16 of 8 bits; only stmatrix, with `trans`.
    - m16n16: 16 x 16 of 8 bits, or of 6 or 4, one a byte; only ldmatrix, with `trans`, 1 or 2 matrices.

    Source: PTX ISA 9.7.14.5.15 and 9.7.14.5.16; spec/layouts/matrix_movement.yaml.

    Raises:
        OperandError: a count or shape that the instructions do not have.
    """
    name = f"{shape}.trans" if trans else shape
    bits, counts = _MATRICES.get(name, (0, ()))
    if count not in counts:
        raise OperandError(
            f"no matrix load or store of {count} x {name}; expected 1, 2 or 4 of m8n8, m8n8.trans, m8n16 or "
            "m16n8.trans, or 1 or 2 of m16n16.trans"
        )
    operand = f"{name}.b{bits}"
    layout = family("matrix_movement").build(
        operand, container_bits=bits, count=count, name=f"{operand}.x{count}"
    )
    if layout is None:
        raise SpecError(f"matrix_movement: no rule for {operand}")
    return layout


def movmatrix_trans(registers: npt.ArrayLike) -> Array:
    """movmatrix.trans.m8n8.b16: transposes one 8x8 matrix across a warp, uint32 (..., 32, 1) -> uint32 (...,
    32, 1).

    (PTX ISA 9.7.14.5.17.) Raises ShapeError and DTypeError as `Layout.unpack` does.
    """
    return matrix_layout(1, trans=True).pack(matrix_layout(1).unpack(registers))
