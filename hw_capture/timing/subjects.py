"""What `mmagold bench-gpu` measures: the list of subjects of an architecture."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from golden.catalog import timing
from golden.catalog.architectures import get_architecture
from golden.catalog.lookup import instruction, instructions
from golden.model.instruction import Instruction
from hw_capture.kernels import kernels
from hw_capture.timing.programs import ILPS, Subject

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
        *subjects(get_architecture(architecture).movement),
        *_wgmma(architecture),
    ]


def wmma_subjects(architecture: str = "hopper") -> list[Subject]:
    """Every wmma, and its loads and stores."""
    found = _wmma(architecture)
    return [*(of_instruction(ins) for ins in found), *wmma_moves(found)]


def sun_subjects(architecture: str = "hopper") -> list[Subject]:
    """What W. Sun et al. print figures of, in our loop and in theirs; bf16, which their figures show, next to
    each f16. Emulated instructions have no chain through C."""
    files = (name for name in timing.names() if name.startswith("sun_"))
    printed = {(one.instruction, one.key.variant) for name in files for one in timing.load(name)}
    printed |= {
        (name.replace(".f32.f16.f16.f32", ".f32.bf16.bf16.f32"), variant) for name, variant in printed
    }
    moved = subjects(get_architecture(architecture).movement)
    return [
        replace(subject, printed=True)
        for subject in (*_mma(architecture), *moved)
        if subject.group != "emulated" and (subject.name, subject.variant) in printed
    ]


def _mma(architecture: str) -> Iterable[Subject]:
    """Every native mma.sync and mma.sp; of emulated ones, only equal types that wrap around."""
    for ins in instructions(architecture):
        if ins.traits.kernel != "mma" or not kernels.supported(ins):
            continue
        same = ins.formats["a"].name == ins.formats["b"].name
        plain = same and ins.traits.plain and "satfinite" not in ins.traits.modifiers
        if not ins.emulated or plain:
            yield of_instruction(ins)


def _wmma(architecture: str) -> list[Instruction]:
    """Every wmma, without variants that differ only in saturation or a directed rounding: their machine code
    is the same except for a modifier."""
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


_TILE = """    __shared__ __align__(128) u32 tile[4096];
    for (u32 j = threadIdx.x; j < 4096; j += blockDim.x)
        tile[j] = 0;
    __syncthreads();
"""
_CHAINS = """    u32 at[ILP][4];
#pragma unroll
    for (int i = 0; i < ILP; i++)
        at[i][0] = mine, at[i][1] = at[i][2] = at[i][3] = 0;
"""
_SINK = """#pragma unroll
    for (int i = 0; i < ILP; i++)
        sink[threadIdx.x] ^= at[i][0] ^ at[i][1] ^ at[i][2] ^ at[i][3];
"""
_OWN_ROWS = (
    "    const u32 mine = shared_address(tile) + 512 * (threadIdx.x / 32 % 32) + 16 * (lane % {rows});\n"
)
_SHARED_ROWS = """    const u32 mine = shared_address(tile) + 16 * (lane % {rows});
    if (threadIdx.x < 32)
        {place} = mine;
"""
_MOVM = 'asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(at[i][0]) : "r"(at[i][0]));'
_LD_32 = 'asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at[i][0]) : "r"(from) : "memory");'
_LD_64 = """u64 pair;
                asm volatile("ld.shared.u64 %0, [%1];" : "=l"(pair) : "r"(from) : "memory");
                at[i][0] = (u32)pair;
                // Outside the chain: else the compiler loads the low half alone.
                at[i][1] ^= (u32)(pair >> 32);"""


def subjects(known: Container[str]) -> Iterator[Subject]:
    """Yields ldmatrix, stmatrix and movmatrix where they are known, and the plain loads."""
    for trans in (False, True):
        if "ldmatrix" in known:
            yield from (ldmatrix(count, trans) for count in (1, 2, 4))
        if "stmatrix" in known:
            yield from (stmatrix(count, trans) for count in (1, 2, 4))
    if "stmatrix" in known and "ldmatrix" in known:
        yield from (round_trip(count) for count in (1, 2, 4))
    if "movmatrix" in known:
        yield _subject("movmatrix.trans", 128, ("MOVM",), "    const u32 mine = data[lane];\n", _MOVM)
    yield from (ld_shared(32, ways) for ways in (1, 2, 4, 8))
    yield from (ld_shared(64, ways) for ways in (2, 4, 8))


def ldmatrix(count: int, trans: bool) -> Subject:
    """ldmatrix: the matrices hold addresses, in the layout that gives each lane its own
    in the first register."""
    place = "((uint16_t *)tile)[lane % 4 * 16 + lane / 4]" if trans else "tile[lane]"
    setup = _TILE + _SHARED_ROWS.format(rows=8 * count, place=place)
    step = f"const u32 from = at[i][0];\n                {_load(count, trans, 'from')}"
    return _subject(f"ldmatrix.x{count}{'.trans' * trans}", 128 * count, ("LDSM",), setup, step)


def stmatrix(count: int, trans: bool) -> Subject:
    """stmatrix, which gives no result: only its rate means something."""
    setup = _TILE + _OWN_ROWS.format(rows=8 * count)
    name = f"stmatrix.x{count}{'.trans' * trans}"
    return _subject(name, 128 * count, ("STSM",), setup, _store(count, trans), completes=False)


def round_trip(count: int) -> Subject:
    """stmatrix and the ldmatrix that gives back what was stored: the way through shared memory."""
    setup = _TILE + _OWN_ROWS.format(rows=8 * count)
    step = f"{_store(count, False)}\n                {_load(count, False, 'mine')}"
    return _subject(f"stmatrix.x{count} + ldmatrix.x{count}", 256 * count, ("STSM", "LDSM"), setup, step)


def ld_shared(bits: int, ways: int) -> Subject:
    """ld.shared of words that hold their own address; `ways` lanes meet
    in a bank (64 bits: 2 without a conflict)."""
    setup = (
        f"{_TILE}    u32 *word = tile + lane * {ways};\n    const u32 mine = shared_address(word);\n    "
        "*word = mine;\n"
    )
    step = f"const u32 from = at[i][0];\n                {_LD_32 if bits == 32 else _LD_64}"
    mnemonic = "LDS" if bits == 32 else "LDS.64"
    return _subject(
        f"ld.shared.u{bits}", 4 * bits, (mnemonic,), setup, step, variant="" if ways == 1 else f"{ways}-way"
    )


def _load(count: int, trans: bool, address: str) -> str:
    outputs = ", ".join(f'"=r"(at[i][{j}])' for j in range(count))
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * trans}.shared.b16 {_group(0, count)}, [%{count}];"
    return f'asm volatile("{text}" : {outputs} : "r"({address}) : "memory");'


def _store(count: int, trans: bool) -> str:
    inputs = ", ".join(f'"r"(at[i][{j}])' for j in range(count))
    text = f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' * trans}.shared.b16 [%0], {_group(1, count)};"
    return f'asm volatile("{text}" : : "r"(mine), {inputs} : "memory");'


def _group(first: int, count: int) -> str:
    return "{" + ",".join(f"%{i}" for i in range(first, first + count)) + "}"


def _subject(
    name: str,
    size: int,
    mnemonics: tuple[str, ...],
    setup: str,
    step: str,
    variant: str = "",
    completes: bool = True,
) -> Subject:
    return Subject(
        name,
        variant,
        "movement",
        size,
        "B/clk/SM",
        "f16",
        mnemonics=mnemonics,
        setup=setup + _CHAINS,
        step=f"                {step}",
        finish=_SINK,
        completes=completes,
    )


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


def wmma_moves(known: Iterable[Instruction]) -> Iterator[Subject]:
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
    """The load of a, b or c, or the store of d. Bytes: of the matrix."""
    held, bits = kernels.registers(ins, operand), ins.formats[operand].bits
    rows, columns = {"a": (ins.m, ins.k), "b": (ins.k, ins.n)}.get(operand, (ins.m, ins.n))
    pitch = (columns if order == "row" else rows) + (128 // bits if padded else 0)
    count, stores = held.ptx_count, operand == "d"
    text = kernels.wmma_move(ins, operand, order, count, space).replace(f"%{count + 1}", str(pitch))
    step = _wmma_store(held, text) if stores else _wmma_load(held, text, "l" if space == "global" else "r")
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


def _wmma_store(held: kernels.Registers, text: str) -> str:
    """One store; another place every round, and other data: else the compiler leaves out stores and
    transposes."""
    count = held.ptx_count
    inputs = ", ".join(f'"{held.constraint}"(held[i][{j}])' for j in range(count))
    changed = ", ".join(f"held[i][{j}] += 1" for j in range(count))
    asm = f'asm volatile("{text}" : : "r"(mine + 1024 * round), {inputs} : "memory");'
    return f"{changed};\n                {asm}"


def _wmma_load(held: kernels.Registers, text: str, address: str) -> str:
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
