"""Which instructions the comparison sets side by side: for each operand type the plainest one of every architecture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from golden import catalog
from golden.docs.families import groups
from golden.instruction import Instruction


@dataclass(frozen=True)
class Block:
    """One operand type: the formats of a and b (any of these), of d, and of scales."""

    slug: str
    title: str
    operands: tuple[str, ...]
    result: str
    scale: str | None = None


BLOCKS = (
    Block("f16-f32", "f16 to f32", ("f16",), "f32"),
    Block("f16-f16", "f16 to f16", ("f16",), "f16"),
    Block("bf16", "bf16 to f32", ("bf16",), "f32"),
    Block("tf32", "tf32 to f32", ("tf32",), "f32"),
    Block("fp8", "FP8 to f32", ("e4m3", "e4m3fnuz"), "f32"),
    Block("mxfp8", "MXFP8 to f32", ("e4m3",), "f32", "ue8m0"),
    Block("mxfp4", "FP4, ue8m0 scales", ("e2m1",), "f32", "ue8m0"),
    Block("nvfp4", "FP4, ue4m3 scales", ("e2m1",), "f32", "ue4m3"),
    Block("f32", "f32 to f32", ("f32",), "f32"),
    Block("f64", "f64 to f64", ("f64",), "f64"),
    Block("s8", "s8 to s32", ("s8",), "s32"),
)


@lru_cache(maxsize=256)
def unit(block: Block, architecture: str) -> Instruction | None:
    """The native dense instruction of a block on an architecture that does most products (of small scale blocks), or None.

    Of those of one length the first in the order of the spec: `mma.sync` before `wgmma`, plain before `.satfinite`. `wmma` is
    left out: it is made of the others.
    """
    found = [ins for group in groups(architecture) for ins in group.variants if _fits(block, ins)]
    return min(found, key=lambda ins: (ins.scale_block or 0, -ins.k), default=None)


def _fits(block: Block, ins: Instruction) -> bool:
    names = {operand: fmt.name for operand, fmt in ins.formats.items()}
    types = names["a"] == names["b"] and names["a"] in block.operands and names["c"] == names["d"] == block.result
    return types and names.get("scale_a") == block.scale and not (ins.sparse or ins.emulated or ins.family.startswith("wmma"))


@lru_cache(maxsize=16)
def units(block: Block) -> dict[str, Instruction]:
    """The instructions of a block by architecture, in the order of the specs."""
    found = {name: unit(block, name) for name in catalog.architectures()}
    return {name: ins for name, ins in found.items() if ins is not None}
