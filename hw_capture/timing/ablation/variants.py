"""The kernels of the ladder: their sources, and what their machine code has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from golden.catalog.lookup import instruction
from golden.errors import UnknownNameError
from golden.model.instruction import Instruction
from hw_capture.kernels import kernels

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n{}k16.f32.bf16.bf16"
MOST_SHARED = {"ampere": 163 << 10, "ada": 99 << 10, "hopper": 227 << 10}
"""Bytes of shared memory of a block, dynamic and static together (CUDA C++ Programming Guide, technical
specifications by compute capability; of Ampere compute capability 8.0)."""
SIZES = (2048, 4096, 8192)
"""Rows, columns and K of a product: the paper's, and larger."""


@dataclass(frozen=True)
class Variant:
    """One kernel. Its file is `<file>.cu`.

    name: of the ladder. permuted: whether chunks of 16 bytes change places in shared memory. stages: steps of
    K that shared memory holds. cluster: blocks that share copies. tile: rows, columns and K of a block's
    tile.
    """

    name: str
    file: str
    permuted: bool
    stages: int
    tile: tuple[int, int, int]
    threads: int
    architecture: str
    cluster: int = 1

    @property
    def label(self) -> str:
        """Name and all that is swept."""
        return f"{self.name} {self.options}".strip()

    @property
    def options(self) -> str:
        """What is swept: stages, and of wgmma columns of the tile and blocks of a cluster."""
        if self.copies_wait:
            return ""
        stages = f"{self.stages} stages"
        return stages if not self.warpgroups else f"n{self.tile[1]}, {stages}, cluster {self.cluster}"

    @property
    def copies_wait(self) -> bool:
        """Whether every step of K waits for its own copy."""
        return self.file == "mma_baseline"

    @property
    def warpgroups(self) -> bool:
        """Whether it multiplies with wgmma."""
        return self.file.endswith("_tma")

    @property
    def instruction(self) -> Instruction:
        """The matrix instruction whose chain over K, ascending, is every element of D."""
        return instruction(self.architecture, WGMMA.format(self.tile[1]) if self.warpgroups else MMA)

    @property
    def stage_bytes(self) -> int:
        """Bytes of one step of K of A and B."""
        return (self.tile[0] + self.tile[1]) * 2 * self.tile[2]

    @property
    def dynamic_shared(self) -> int:
        """Bytes of shared memory that a launch has to ask for."""
        if self.copies_wait:
            return 0
        # Bytes of the two barriers of a stage.
        barriers = 16
        return self.stages * (self.stage_bytes + (barriers if self.warpgroups else 0))

    def source(self) -> str:
        """The compilation unit."""
        m, n, k = self.tile
        constants = {
            "TILE_M": m,
            "TILE_N": n,
            "TILE_K": k,
            "THREADS": self.threads,
            "STAGES": self.stages,
            "CLUSTER": self.cluster,
            "PERMUTED": int(self.permuted),
        }
        own = ["wgmma_tma.cu"] if self.warpgroups else ["layout.h", "warp_tiles.cuh", f"{self.file}.cu"]
        form = "shared" if self.warpgroups else "registers"
        return "".join(
            [
                kernels.prelude(),
                f"\nenum {{ {', '.join(f'{key} = {value}' for key, value in constants.items())} }};\n",
                kernels.inline(self.instruction, form, "mma", typed=True),
                *("\n" + _text(name) for name in ("common.cuh", *own)),
            ]
        )

    def step(self) -> dict[str, int]:
        """How often instructions stand in the machine code of one step of K, by the beginning of their SASS
        names: a wait for each matrix instruction of a warpgroup, say, would be one too many."""
        m, n, k = self.tile
        if self.warpgroups:
            return {"HGMMA": k // 16, "WARPGROUP.ARRIVE": 1, "WARPGROUP.DEPBAR": 1, "HMMA": 0}
        chunks = (m + n) * k * 2 // 16 // self.threads
        copies = {"LDG": chunks, "STS": chunks} if self.copies_wait else {"LDGSTS": chunks}
        return {"HMMA.16816.F32.BF16": 4 * 8 * k // 16, "LDSM.16.M88.4": 8 * k // 16, **copies}

    def whole(self) -> dict[str, int]:
        """The same of the whole kernel: nothing was unrolled or hoisted, and nothing lies in local memory."""
        once = {name: times for name, times in self.step().items() if "MMA" in name or "LDSM" in name}
        if self.warpgroups:
            once |= {"UTMALDG.2D": 2, "UTMALDG.2D.MULTICAST": self.cluster - 1}
        return {**once, "LDL": 0, "STL": 0}


_WITH_WARPGROUPS = frozenset({"hopper"})


@cache
def _text(name: str) -> str:
    return (Path(__file__).resolve().parent / name).read_text("utf-8")


def all_variants(architecture: str) -> list[Variant]:
    """Every kernel that an architecture can run, in the order of the ladder."""
    most = MOST_SHARED.get(architecture)
    if most is None:
        raise UnknownNameError(
            f"architecture '{architecture}' has none of these kernels, expected {', '.join(MOST_SHARED)}"
        )
    found = [
        *_warp_kernels(architecture),
        *(_warpgroup_kernels() if architecture in _WITH_WARPGROUPS else ()),
    ]
    return [one for one in found if one.dynamic_shared <= most]


def _warp_kernels(architecture: str) -> Iterator[Variant]:
    tile, threads = (128, 128, 32), 128
    for name, permuted in (("mma_baseline", False), ("mma_permuted", True)):
        yield Variant(name, "mma_baseline", permuted, 1, tile, threads, architecture)
    for name, permuted in (("mma_pipeline", False), ("mma_permuted_pipeline", True)):
        for stages in (2, 3, 4, 5):
            yield Variant(name, "mma_pipeline", permuted, stages, tile, threads, architecture)


def _warpgroup_kernels() -> Iterator[Variant]:
    for columns, most in ((128, 6), (256, 4)):
        for cluster in (1, 2):
            for stages in range(2, most + 1):
                tile = (128, columns, 64)
                yield Variant("wgmma_tma", "wgmma_tma", True, stages, tile, 384, "hopper", cluster)
