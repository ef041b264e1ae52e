"""The subjects wmma.load and wmma.store: every operand, order, shape and type that an architecture has.

What they become depends on order and place: ldmatrix, plain loads, or loads with a transpose of 8 x 8
elements (MOVM). A load's first register, which is 0, is added to the address of the next one: what wmma.load
adds its lane's place to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from golden.model.instruction import Instruction
from hw_capture.kernels import kernels
from hw_capture.timing.programs import ILPS, Subject

_ORDERS = ("row", "col")
_STORES = ("STS", "STSM", "MOVM")
_LOADS = {"shared": ("LDS", "LDSM", "MOVM"), "global": ("LDG", "MOVM")}
_ZEROS = """    __shared__ __align__(128) u32 tile[4096];
    for (u32 j = threadIdx.x; j < 4096; j += blockDim.x)
        tile[j] = 0;
    __syncthreads();
    const u32 mine = shared_address(tile);
"""
_TARGET = """    __shared__ __align__(128) u32 tile[4096];
    const u32 mine = shared_address(tile);
"""
_GLOBAL = """    static __device__ u32 zeros[1024];
    const u64 mine = (u64)zeros;
"""
_FINISH = """    u32 sum = 0;
#pragma unroll
    for (int i = 0; i < ILP; i++)
        sum ^= kept[i] ^ {bits};
    sink[threadIdx.x] = sum;"""


def subjects(known: Iterable[Instruction]) -> Iterator[Subject]:
    """Yields loads and stores of the operands of the wmma instructions `known`, each once. Unsigned integers
    are left out: they move as signed ones do."""
    seen = set()
    for ins in known:
        for operand in "abcd":
            if ins.formats[operand].name[0] == "u":
                continue
            own = "col" if ins.traits.by_column(operand) else "row"
            for order in (own,) if operand in "ab" else _ORDERS:
                for space, padded in _places(ins, operand):
                    subject = move(ins, operand, order, space, padded)
                    if subject.label not in seen:
                        seen.add(subject.label)
                        yield subject


def _places(ins: Instruction, operand: str) -> list[tuple[str, bool]]:
    """State space, and whether rows are padded: all of m16n16k16 A and B on f16, of others packed shared
    memory."""
    every = [("shared", False), ("shared", True), ("global", False)]
    whole = operand in "ab" and ins.formats[operand].name == "f16" and (ins.m, ins.n) == (16, 16)
    return every if whole else every[:1]


def move(ins: Instruction, operand: str, order: str, space: str = "shared", padded: bool = False) -> Subject:
    """The load of a, b or c, or the store of d. Bytes are those of the matrix."""
    held, bits = kernels.registers(ins, operand), ins.formats[operand].bits
    rows, columns = {"a": (ins.m, ins.k), "b": (ins.k, ins.n)}.get(operand, (ins.m, ins.n))
    pitch = (columns if order == "row" else rows) + (128 // bits if padded else 0)
    count, stores = held.ptx_count, operand == "d"
    text = kernels.wmma_move(ins, operand, order, count, space).replace(f"%{count + 1}", str(pitch))
    step = _store(held, text) if stores else _load(held, text, "l" if space == "global" else "r")
    setup = _TARGET if stores else _GLOBAL if space == "global" else _ZEROS
    start = _start(count) if stores else ""
    return Subject(
        text.split()[0],
        "padded" if padded else "",
        "wmma.moves",
        rows * columns * bits // 8,
        "B/clk/SM",
        "f16",
        mnemonics=_STORES if stores else _LOADS[space],
        setup=f"{setup}    {held.type} held[ILP][{count}] = {{{start}}};\n    u32 kept[ILP] = {{}};\n",
        step=f"                {step}",
        finish=_FINISH.format(bits=f"(u32){held.to_word}(held[i][0])"),
        completes=not stores,
        counted=True,
        ilps=(1,) if stores else ILPS,
    )


def _store(held: kernels.Registers, text: str) -> str:
    """One store; another place every round, and other data: else the compiler leaves out stores and
    transposes."""
    count = held.ptx_count
    inputs = ", ".join(f'"{held.constraint}"(held[i][{j}])' for j in range(count))
    changed = ", ".join(f"held[i][{j}] += 1" for j in range(count))
    asm = f'asm volatile("{text}" : : "r"(mine + 1024 * round), {inputs} : "memory");'
    return f"{changed};\n                {asm}"


def _load(held: kernels.Registers, text: str, address: str) -> str:
    """One load; what the chain does not need is used outside it: else the compiler leaves out loads that
    nobody reads."""
    count = held.ptx_count
    outputs = ", ".join(f'"={held.constraint}"(held[i][{j}])' for j in range(count))
    others = "".join(f" ^ (u32){held.to_word}(held[i][{j}])" for j in range(1, count))
    step = f"const auto from = mine + (u32){held.to_word}(held[i][0]);\n                "
    step += f'asm volatile("{text}" : {outputs} : "{address}"(from) : "memory");'
    return step + (f"\n                kept[i] ^= 0{others};" if others else "")


def _start(count: int) -> str:
    """Registers of a store begin with values that the compiler does not know."""
    return "{" + ", ".join(f"data[lane + {32 * j}]" for j in range(count)) + "}"
