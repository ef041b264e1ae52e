"""The CUDA kernels that time one instruction, a `Subject`.

`Subject.programs()` are its kernels: a chain of dependent instructions (the result becomes the next C,
address or matrix) for every degree of instruction-level parallelism (ILP).

Method: as W. Sun et al. (arXiv 2206.02874), section 4, with three differences. One block runs on one
multiprocessor; every warp reads `clock64` before and after a loop. Their loop ends each round with a
`__syncwarp()`, ours has none. Ours runs once before, untimed: code that is not in the instruction cache
costs hundreds of cycles. (wgmma has no such first loop, because around a pair of loops the compiler waits for
every group. It runs more rounds instead.) Each of their ILP independent chains has its own A and B; ours
share them, so that 32 warps find registers. A subject with `printed` is measured in both loops.

Emulated instructions add C at the end, so their chain runs through A and B: every register of A is a register
of the previous result, and every register of B is such a register XOR a number that the compiler does not
know. Without that the compiler merges them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from golden.files.templates import template_of
from golden.model.instruction import Instruction
from golden.number.formats import from_float
from hw_capture.kernels import kernels

if TYPE_CHECKING:
    from jinja2 import Template

ILPS = tuple(range(1, 7))
WARPS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32)  # of a multiprocessor, for each of which a program is timed
UNROLL = 16
"""Rounds in one turn of a loop."""
PRINTED_UNROLL = 4
"""The same of the loop as Sun et al. print it. They print neither a pragma nor the number of rounds, by which
nvcc 13.0 takes 4 to 140. On sm_80 it matters little (three m16n8k16: ptxas 13.0 asks for 25.25 cycles a round
with 4 and for 26.2 with 16); on sm_90 the end of each turn costs 8 to 12 cycles (27.0 and 24.75)."""
ROUNDS = {32: 1024, 128: 8192}
"""Rounds of one run, by the threads of one execution."""
DATA_WORDS = 4096
"""Words of the buffer that operands are loaded from."""


@dataclass(frozen=True)
class Program:
    """One kernel: `chain` says what the time of one round means.

    chain: "c" (through C, or an address), "a" (through A), "group" (one wgmma, committed and waited for),
    "steady" (wgmma after wgmma on one accumulator), "published" (through C, as public benchmarks have it),
    "printed" (through C, in the loop that Sun et al. print), "alone" (one, and a use of its result, between
    two readings of the clock) or "empty" (that use without it). once: whether one run is one round of one
    warp.
    unroll: rounds in one turn of the loop.
    """

    name: str
    chain: str
    ilp: int
    source: str
    once: bool = False
    unroll: int = UNROLL


@dataclass(frozen=True)
class Subject:
    """One instruction to measure.

    name: PTX, or a short name such as "ldmatrix.x4". variant: see `tables.Key`. group: the table it belongs
    to. work: multiply-adds or bytes of one instruction of a warp or warpgroup, in `unit`. operands: format of
    the random operands.
    mnemonics: beginnings of the SASS names that count as the instruction, for what is no matrix instruction.
    counted: whether a kernel `single` says how many of them it becomes; else it is one each.
    printed: whether it is measured for comparison with Sun et al.: in our loop and in theirs, nothing else.
    """

    name: str
    variant: str
    group: str
    work: int
    unit: str
    operands: str
    ins: Instruction | None = None
    form: str = "registers"
    mnemonics: tuple[str, ...] = ()
    setup: str = ""
    step: str = ""
    finish: str = ""
    completes: bool = True
    counted: bool = False
    ilps: tuple[int, ...] = ILPS
    printed: bool = False

    @property
    def label(self) -> str:
        """Name and variant."""
        return f"{self.name} {self.variant}".strip()

    @property
    def lanes(self) -> int:
        """Threads of one execution."""
        return 32 if self.ins is None else self.ins.traits.lanes

    @property
    def main(self) -> str:
        """The chain whose points are the table's. Through A where it cannot go through C: an emulated
        instruction adds C at the end, and a result of another format than C's is no C."""
        if self.lanes == 128:
            return "steady"
        unlike = self.ins is not None and self.ins.formats["c"] != self.ins.formats["d"]
        return "a" if self.group == "emulated" or unlike else "c"

    def warps(self) -> tuple[int, ...]:
        """The numbers of warps to measure with."""
        return (4, 8, 12, 16) if self.lanes == 128 else WARPS

    def programs(self) -> list[Program]:
        """The kernels of this subject."""
        if self.printed:
            return [self._either(printed, ilp) for printed in (False, True) for ilp in self.ilps]
        if self.ins is None:
            return [self._plain(ilp) for ilp in self.ilps]
        if self.lanes == 128:
            return [_warpgroup(self, self.ins, chain) for chain in ("group", "steady")]
        if self.group == "emulated":
            both = [_warp(self, self.ins, "a", ilp) for ilp in (1, 2)]
            if self.ins.formats["a"].bits != 4:
                return both
            # A subroutine, of which nothing can be merged or hoisted.
            through_c = [_warp(self, self.ins, "c", 1)]
            return [*both, *through_c, *([] if self.ins.sparse else [_published(self.ins)])]
        chains = [_warp(self, self.ins, self.main, ilp) for ilp in ILPS]
        if self.group == "wmma":
            return [*chains, *(_alone(self.ins, chain) for chain in ("alone", "empty"))]
        return chains if self.main == "a" else [*chains, _warp(self, self.ins, "a", 1)]

    def source(self) -> str:
        """One compilation unit: the kernels, and for a PTX instruction also one kernel `single` that
        executes it once."""
        parts = [kernels.prelude(), template("prelude").render()]
        if self.ins is not None:
            parts.append(kernels.inline(self.ins, self.form, "mma"))
            parts.append(kernels.source(self.ins, self.form, "single", complete=False))
        elif self.counted:
            parts.append(self._loop("single", 1, unroll=1))
        return "".join(parts + [program.source for program in self.programs()])

    def _either(self, printed: bool, ilp: int) -> Program:
        """A chain through C in our loop, or in the one that Sun et al. print."""
        if self.ins is None:
            return self._plain(ilp, printed)
        return _warp(self, self.ins, "printed" if printed else "c", ilp)

    def _plain(self, ilp: int, printed: bool = False) -> Program:
        chain = "printed" if printed else "c"
        return Program(
            f"{chain}_{ilp}",
            chain,
            ilp,
            self._loop(f"{chain}_{ilp}", ilp, printed=printed),
            unroll=_unroll(chain),
        )

    def _loop(self, name: str, ilp: int, unroll: int = UNROLL, printed: bool = False) -> str:
        parts = {"setup": self.setup, "step": self.step, "finish": self.finish}
        if printed:
            return _as_printed(name, self.label, ilp, parts).replace("ILP", str(ilp))
        return _render(name, self.label, ilp, parts, unroll=unroll).replace("ILP", str(ilp))


def template(name: str, kind: str = "cu") -> Template:
    """A text of the folder templates."""
    return template_of(Path(__file__).resolve().parent / "templates" / f"{name}.{kind}", trimmed=False)


def _render(
    name: str, title: str, ilp: int, parts: dict[str, str], *, warm: bool = True, unroll: int = UNROLL
) -> str:
    empty = dict.fromkeys(("setup", "begin", "step", "each", "after", "end", "finish"), "")
    return template("loop").render(
        name=name, title=title, ilp=ilp, warm=warm, unroll=unroll, **(empty | parts)
    )


def _unroll(chain: str) -> int:
    return PRINTED_UNROLL if chain == "printed" else UNROLL


def _as_printed(name: str, title: str, ilp: int, parts: dict[str, str]) -> str:
    """The loop of Figure 4 of Sun et al.: no pass before, and a `__syncwarp()` at the end of each round."""
    each = {"each": "                __syncwarp();"}
    return _render(name, title, ilp, parts | each, warm=False, unroll=PRINTED_UNROLL)


# Instructions of a warp and of a warpgroup ------------------------------------------------------------------


def _load(
    operand: kernels.Registers, name: str, offset: int, zero: bool = False, chains: int = 0, apart: int = 0
) -> str:
    """Declares and fills the registers of an operand, from the data or with zeros; with `chains` that many
    copies, each `apart` words from the one before: the compiler keeps equal ones in the same registers."""
    size = f"[{chains}][{operand.count}]" if chains else f"[{operand.count}]"
    items = DATA_WORDS * 4 // (8 if operand.word == "u64" else 4)
    first = f"{offset} + {apart} * i" if apart else f"{offset}"
    word = f"(({operand.word} *)data)[({first} + lane * {operand.count} + j) % {items}]"
    outer = f"    for (int i = 0; i < {chains}; i++)\n" if chains else ""
    place = f"{name}[i][j]" if chains else f"{name}[j]"
    return (
        f"    {operand.word} {name}{size};\n#pragma unroll\n{outer}#pragma unroll\n"
        f"        for (int j = 0; j < {operand.count}; j++)\n            {place} = {'0' if zero else word};\n"
    )


def _store(operand: kernels.Registers, name: str, ilp: int) -> str:
    return (
        f"#pragma unroll\n    for (int i = 0; i < {ilp}; i++)\n#pragma unroll\n"
        f"        for (int j = 0; j < {operand.count}; j++)\n            sink[threadIdx.x] ^= "
        f"(u32){name}[i][j];"
    )


def _warp(subject: Subject, ins: Instruction, chain: str, ilp: int) -> Program:
    """A chain through C (d = a b + d), the same as Sun et al. print it (each chain has its own A and B), or
    one through A (d = a b + c, a = d)."""
    a, b, c, d = (kernels.registers(ins, operand) for operand in "abcd")
    setup, more = _constants(ins)
    if chain == "c":
        setup += _load(a, "a", 0) + _load(b, "b", 1031) + _load(d, "d", 0, zero=True, chains=ilp)
        step = f"                mma(d[i], a, b, d[i]{more});"
    elif chain == "printed":
        setup += _load(a, "a", 0, chains=ilp, apart=7) + _load(b, "b", 1031, chains=ilp, apart=7)
        setup += _load(d, "d", 0, zero=True, chains=ilp)
        step = f"                mma(d[i], a[i], b[i], d[i]{more});"
    else:
        setup += _load(a, "a", 0, chains=ilp) + _load(b, "b", 1031, chains=ilp) + _load(b, "mask", 2053)
        setup += _load(c, "c", 0, zero=True) + f"    {d.word} d[{ilp}][{d.count}];\n"
        step = f"                mma(d[i], a[i], b[i], c{more});\n" + _feedback(subject, a, b, d)
    name = f"{chain}_{ilp}"
    parts = {"setup": setup, "step": step, "finish": _store(d, "d", ilp)}
    rendered = (_as_printed if chain == "printed" else _render)(name, ins.name, ilp, parts)
    return Program(name, chain, ilp, rendered, unroll=_unroll(chain))


def _constants(ins: Instruction) -> tuple[str, str]:
    """Metadata and scales of 1: their declarations, and the arguments that follow a, b, c."""
    text, names = "", []
    if ins.sparse:
        text = "    const u32 metadata = 0x44444444; // the first of two, or the first two of four\n"
        names.append("metadata")
    for name in ("scale_a", "scale_b") if ins.scale_block else ():
        one = int(from_float(ins.formats[name], np.ones(1))[0])
        text += f"    const u32 {name} = {one * 0x01010101:#x};\n"
        names.append(name)
    return text, "".join(f", {name}" for name in names)


def _published(ins: Instruction) -> Program:
    """A chain through C in the way of the public benchmarks."""
    a, b, c, d = (kernels.registers(ins, operand) for operand in "abcd")
    setup = _load(a, "a", 0) + _load(b, "b", 1031) + _load(c, "c", 0, zero=True) + _load(d, "d", 64, chains=1)
    numbers = {"unroll": UNROLL, "rounds": ROUNDS[32], "count": d.count}
    text = template("published").render(
        name="published", title=ins.name, setup=setup, finish=_store(d, "d", 1), **numbers
    )
    return Program("published", "published", 1, text)


def _alone(ins: Instruction, chain: str) -> Program:
    """One instruction between two readings of the clock, as H. Abdelkhalik et al. first tried it, or
    nothing."""
    a, b, d = (kernels.registers(ins, operand) for operand in "abd")
    c = kernels.registers(ins, "c")
    setup = _load(a, "a", 0) + _load(b, "b", 1031) + _load(c, "c", 0, zero=True) + _load(d, "d", 64, chains=1)
    step = "        mma(d[0], a, b, c);" if chain == "alone" else ""
    parts = {"word": d.word, "setup": setup, "step": step, "finish": _store(d, "d", 1)}
    text = template("alone").render(name=chain, title=ins.name, last=d.count - 1, **parts)
    return Program(chain, chain, 1, text, once=True)


def _feedback(subject: Subject, a: kernels.Registers, b: kernels.Registers, d: kernels.Registers) -> str:
    """The result's registers as the next operands: the first of A, or of an emulated instruction all of A
    and B."""
    if subject.group != "emulated":
        return "                a[i][0] = d[i][0];"
    if subject.ins is not None and (subject.ins.traits.kernel == "wmma" or subject.operands == "f64"):
        return _feedback_of_all(a, b, d)
    lines = [f"                a[i][{j}] = d[i][{j % d.count}];" for j in range(a.count)]
    lines += [f"                b[i][{j}] = d[i][{j % d.count}] ^ mask[{j}];" for j in range(b.count)]
    return "\n".join(lines)


def _feedback_of_all(a: kernels.Registers, b: kernels.Registers, d: kernels.Registers) -> str:
    """The same with every register of the result in use, or one of each of its parts, and none of A the same
    as another: wmma and f64 are several instructions, of which the compiler leaves out one that nobody reads,
    or that another one equals."""
    of_a = [f"d[i][{j}]" for j in range(min(a.count, d.count))]
    of_a += [f"d[i][{j % d.count}] ^ mask[{j % b.count}]" for j in range(d.count, a.count)]
    of_b = [f"d[i][{(a.count + j) % d.count}] ^ mask[{j}]" for j in range(b.count)]
    pairs = [
        *(("a", j, text) for j, text in enumerate(of_a)),
        *(("b", j, text) for j, text in enumerate(of_b)),
    ]
    return "\n".join(f"                {name}[i][{j}] = {text};" for name, j, text in pairs)


def _warpgroup(subject: Subject, ins: Instruction, chain: str) -> Program:
    """wgmma on one accumulator: each committed and waited for (group), or one after the other (steady)."""
    a_bytes, b_bytes = kernels.shared_bytes(ins)
    d = kernels.registers(ins, "d")
    setup, a = _shared("b", b_bytes, 8 * b_bytes // ins.n, 0), "at_a"
    if subject.form == "shared":
        setup += _shared("a", a_bytes, 8 * a_bytes // ins.m, 1031)
    else:
        setup, a = setup + _load(kernels.registers(ins, "a"), "a", 1031), "a"
    setup += "    const u32 metadata = 0x44444444;\n" if ins.sparse else ""
    setup += _load(d, "d", 0, zero=True, chains=1)
    setup += '    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");\n'
    call = f"                mma(d[0], {a}, at_b{', metadata' if ins.sparse else ''});"
    parts: dict[str, str] = {"setup": setup, "step": call, "finish": _store(d, "d", 1)}
    if chain == "group":
        parts["step"] = f"                wgmma_begin();\n{call}\n                wgmma_end();"
    else:
        wait = '    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'
        commit = '        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");'
        parts |= {"begin": "    wgmma_begin();", "after": commit, "end": wait}
    return Program(chain, chain, 1, _render(chain, subject.label, 1, parts, warm=False))


def _shared(name: str, size: int, stride: int, offset: int) -> str:
    return (
        f"    __shared__ __align__(1024) u32 tile_{name}[{size} / 4];\n"
        f"    for (u32 j = threadIdx.x; j < {size} / 4; j += blockDim.x)\n"
        f"        tile_{name}[j] = data[({offset} + j) % {DATA_WORDS}];\n"
        f"    const u64 at_{name} = descriptor(tile_{name}, {stride});\n"
    )
