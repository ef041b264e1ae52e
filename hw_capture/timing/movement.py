"""The subjects that move data: ldmatrix, stmatrix, movmatrix and ld.shared under bank conflicts.

Loads chase pointers: what a lane loads is the address that it loads from next, so that every load waits for
the one before.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from hw_capture.timing.programs import Subject

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
    """Yields those of the known instructions (ldmatrix, stmatrix, movmatrix), and the plain loads."""
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
