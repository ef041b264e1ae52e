"""Which instructions the comparison sets side by side:
for each operand type the plainest one of every architecture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from golden.catalog import architectures
from golden.catalog.lookup import instructions
from golden.model.instruction import Instruction


@dataclass(frozen=True)
class Block:
    """One operand type: the formats of a and b (any of these), of d, and of scales.

    modifier: what else makes it another function: saturation, the operation on bits (see `modifier`).
    """

    slug: str
    title: str
    operands: tuple[str, ...]
    result: str
    scale: str | None = None
    modifier: str = ""


BLOCKS = (
    Block("f16-f32", "f16 to f32", ("f16",), "f32"),
    Block("f16-f16", "f16 to f16", ("f16",), "f16"),
    Block("bf16", "bf16 to f32", ("bf16",), "f32"),
    Block("bf16-bf16", "bf16 to bf16", ("bf16",), "bf16"),
    Block("tf32", "tf32 to f32", ("tf32",), "f32"),
    Block("fp8", "FP8 to f32", ("e4m3", "e4m3fnuz"), "f32"),
    Block("mxfp8", "MXFP8 to f32", ("e4m3",), "f32", "ue8m0"),
    Block("mxfp4", "FP4, ue8m0 scales", ("e2m1",), "f32", "ue8m0"),
    Block("nvfp4", "FP4, ue4m3 scales", ("e2m1",), "f32", "ue4m3"),
    Block("f32", "f32 to f32", ("f32",), "f32"),
    Block("f64", "f64 to f64", ("f64",), "f64"),
    Block("s8", "s8 to s32", ("s8",), "s32"),
    Block("s8-satfinite", "s8 to s32, satfinite", ("s8",), "s32", modifier="satfinite"),
    Block("s4", "s4 to s32", ("s4",), "s32"),
    Block("s4-satfinite", "s4 to s32, satfinite", ("s4",), "s32", modifier="satfinite"),
    Block("b1-xor", "b1 to s32, xor", ("b1",), "s32", modifier="xor"),
    Block("b1-and", "b1 to s32, and", ("b1",), "s32", modifier="and"),
)


def modifier(ins: Instruction) -> str:
    """What an instruction's name adds to its types and changes results: "satfinite", "xor", "rz"; to
    nearest is unmarked."""
    return " ".join(ins.traits.modifiers)


@lru_cache(maxsize=256)
def unit(block: Block, architecture: str) -> Instruction | None:
    """The native dense instruction of a block on an architecture that does most products (of small scale
    blocks), or None.

    Among names of one length, the first in the order of the spec: `mma.sync` before `wgmma`. `wmma` is left
    out: it is made of the others.
    """
    return min(plain(block, architecture), key=lambda ins: (ins.scale_block or 0, -ins.k), default=None)


def plain(block: Block, architecture: str) -> list[Instruction]:
    """The native dense instructions of a block on an architecture that are no other form of others (`wmma`),
    in the order of the spec."""
    return [ins for ins in members(block, architecture) if not kind_of(ins)]


@lru_cache(maxsize=512)
def members(block: Block, architecture: str) -> tuple[Instruction, ...]:
    """Every instruction of a block on an architecture, in the order of the spec."""
    return tuple(ins for ins in instructions(architecture) if _fits(block, ins))


def kind_of(ins: Instruction) -> str:
    """ "emulated", "sparse", "wmma", or "" for a plain instruction."""
    if ins.emulated:
        return "emulated"
    return "sparse" if ins.sparse else ins.traits.other_form


def _fits(block: Block, ins: Instruction) -> bool:
    names = {operand: fmt.name for operand, fmt in ins.formats.items()}
    types = (
        names["a"] == names["b"] and names["a"] in block.operands and names["c"] == names["d"] == block.result
    )
    return types and names.get("scale_a") == block.scale and modifier(ins) == block.modifier


@lru_cache(maxsize=16)
def units(block: Block) -> dict[str, Instruction]:
    """The instructions of a block by architecture, in the order of the specs."""
    found = {name: unit(block, name) for name in architectures.architectures()}
    return {name: ins for name, ins in found.items() if ins is not None}


def short_title(architecture: str) -> str:
    """The architecture's title without its vendor."""
    return architectures.get_architecture(architecture).short_title
