"""The kernel generator: CUDA C++ for an instruction of the spec, with its PTX inline.

    print(kernels.source(golden.instruction("hopper", "HMMA.16816.F32")))

Every kernel has the same parameters: pointers a, b, c, metadata, scale_a, scale_b, d and the number of
executions. The buffers behind them come from `hw_capture.kernels.buffers`: registers (execution, lane,
register) as `ins.fragments` lays them out, or what wgmma reads from shared memory. `inline` is only
the instruction, a device function over register arrays:

    mma(d, a, b, c [, metadata] [, scale_a, scale_b])       mma.sync, mma.sp, wmma: d = a * b + c
    mma(d, a, b [, metadata])                               wgmma: d = a * b + d; b and, with form "shared", a
                                                            are descriptors; wgmma_begin() before,
                                                            wgmma_end() after

Registers are u32, for f64 u64. Sparsity and scale selectors are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.files.templates import template_of
from golden.model.instruction import Instruction
from hw_capture.errors import NoKernelError

if TYPE_CHECKING:
    from golden.registers.fragments import Fragments

_TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
GENERATORS = ("mma", "wmma", "wgmma")
"""The generators, by the names that `kernel` in spec/families calls them."""
CPU_GENERATORS = ("amx", "avx512")
"""The same of CPUs, with tiles and ZMM registers: hw_capture/cpu/unit.c executes them."""
FORMS = ("registers", "shared", "tensor")
"""Where an instruction takes A from: wgmma from registers or shared memory, tcgen05 from shared or tensor
memory, everything else from registers."""
PARAMETERS = ("a", "b", "c", "metadata", "scale_a", "scale_b", "d")
BLOCK = 128  # threads: four warps, which is a warpgroup
_CASTS = {
    "f": ("float", "__uint_as_float", "__float_as_uint"),
    "d": ("double", "__longlong_as_double", "__double_as_longlong"),
    "r": ("u32", "", ""),
}


@dataclass(frozen=True)
class Registers:
    """The registers of an operand in one lane, as C++ and inline PTX see them.

    `count`: registers of the fragment; PTX names `ptx_count` (wmma repeats f16 registers that the multiply
    does not read).
    """

    name: str
    count: int
    word: str
    constraint: str
    ptx_count: int

    @property
    def type(self) -> str:
        """C++ type that the constraint takes."""
        return _CASTS[self.constraint][0]

    @property
    def from_word(self) -> str:
        """Function from a register's bits to `type`, or nothing."""
        return _CASTS[self.constraint][1]

    @property
    def to_word(self) -> str:
        """Function back."""
        return _CASTS[self.constraint][2]

    def declaration(self, constant: bool = True, typed: bool = False) -> str:
        """The parameter of a device function: words, or with `typed` the C++ type."""
        return (
            f"{'const ' if constant else ''}{self.type if typed else self.word} (&{self.name})[{self.count}]"
        )

    def inputs(self) -> list[str]:
        """The operands of an asm statement."""
        return [
            f'"{self.constraint}"({self.from_word}({self.name}[{i % self.count}]))'
            for i in range(self.ptx_count)
        ]


def supported(ins: Instruction) -> bool:
    """Whether there is a generator for the instruction's family, and it knows where the operands lie."""
    return ins.traits.kernel in GENERATORS and (ins.layout is not None or opaque(ins))


def forms(ins: Instruction) -> tuple[str, ...]:
    """The forms of an instruction: the places from which it can take A, but that elements of less than 8 bits
    are not taken from tensor memory: how they lie there is not stated."""
    found = [form for form in FORMS if form in ins.traits.places_of("a")]
    return tuple(form for form in found if form != "tensor" or ins.formats["a"].bits >= 8)


def opaque(ins: Instruction) -> bool:
    """Whether the operands are wmma fragments of unknown layout, filled by wmma.load (before sm_80)."""
    return ins.traits.kernel == "wmma" and ins.layout is None


def lanes(ins: Instruction) -> int:
    """Threads that execute the instruction together; for tcgen05, the threads that move the operands."""
    return BLOCK * int(ins.variables["cta"]) if "tensor" in ins.traits.places_of("d") else ins.traits.lanes


def _warpgroup(ins: Instruction) -> bool:
    """Whether a warpgroup executes it, with descriptors of shared memory: wgmma."""
    return ins.traits.kernel == "wgmma"


def geometry(ins: Instruction, count: int) -> tuple[int, int]:
    """Returns (blocks, threads of a block) for `count` executions."""
    blocks = -(-count * lanes(ins) // BLOCK)
    most_blocks = 1056
    return max(1, min(blocks, most_blocks)), BLOCK


@lru_cache(maxsize=256)
def fragments(ins: Instruction) -> Fragments | None:
    """`ins.fragments`, kept: the layouts are used again and again while a kernel is made and its
    buffers are packed."""
    return ins.fragments


def registers(ins: Instruction, operand: str) -> Registers:
    """The registers of operand a, b, c or d; raises NoKernelError where it does not live in registers."""
    fmt = ins.formats[operand]
    wide = fmt.bits == 64
    constraint = "d" if wide else "f" if fmt.name == "f32" else "r"
    rows, columns = {"a": (ins.m, ins.stored_k), "b": (ins.k, ins.n)}.get(operand, (ins.m, ins.n))
    count = rows * columns * fmt.bits // (32 * (64 if wide else 32))
    repeated = ins.traits.kernel == "wmma" and operand in "ab" and fmt.name == "f16"
    if not opaque(ins):
        layout = getattr(fragments(ins), operand, None)
        if layout is None:
            raise NoKernelError(f"{ins.name}: operand {operand} has no register layout")
        count = layout.registers
    elif repeated:
        count = 8
    return Registers(operand, count, "u64" if wide else "u32", constraint, 8 if repeated else count)


def inline(ins: Instruction, form: str = "registers", name: str = "mma", typed: bool = False) -> str:
    """The device function that executes the instruction once; see the module's text for its parameters.

    Args:
        typed: d of wgmma in its C++ type (float for f32), not as words. Where wgmma runs on while others are
            issued, ptxas takes the copy from words for a read of the accumulators, and waits.

    Raises:
        NoKernelError: no kernel for this instruction, or none of this form.
    """
    check_there(ins, supported(ins), form)
    return _warpgroup_inline(ins, form, name, typed) if _warpgroup(ins) else _warp_inline(ins, name)


def source(ins: Instruction, form: str = "registers", name: str = "run", complete: bool = True) -> str:
    """The kernel `name` that executes the instruction on many tiles;
    with `complete` a whole compilation unit.

    Raises:
        NoKernelError: no kernel for this instruction, or none of this form.
    """
    function = f"mma_{name}"
    code = inline(ins, form, function) + _kernel(ins, form, name, function)
    return prelude() + code if complete else code


def module(chosen: Sequence[tuple[Instruction, str]]) -> str:
    """One compilation unit with the kernels run_0, run_1, ... of several instructions and forms."""
    return prelude() + "".join(
        source(ins, form, f"run_{i}", complete=False) for i, (ins, form) in enumerate(chosen)
    )


def prelude() -> str:
    """What every compilation unit begins with: types, `descriptor`, `wgmma_begin`, `wgmma_end`."""
    return _render("prelude")


def ptx(ins: Instruction, form: str = "registers") -> str:
    """The PTX instruction with its operands, registers numbered as in the asm statement (%0 ...)."""
    check_there(ins, supported(ins), form)
    return _wgmma_text(ins, form)[0] if _warpgroup(ins) else _warp_text(ins)


def shared_bytes(ins: Instruction) -> tuple[int, int]:
    """Bytes of A and B of one wgmma in shared memory."""
    a, b = ins.formats["a"], ins.formats["b"]
    return ins.m * ins.stored_k * a.bits // 8, ins.k * ins.n * b.bits // 8


def needs_toolkit(ins: Instruction) -> tuple[int, int]:
    """The first CUDA toolkit whose ptxas has the instruction, where that is newer than 13.0: else (13, 0)."""
    major, minor = (int(part) for part in (ins.traits.toolkit or "13.0").split("."))
    return major, minor


# Text of the instruction ------------------------------------------------------------------------------------


def check_there(ins: Instruction, there: bool, form: str | None = None) -> None:
    """Refuses an instruction that a generator has no kernel for, or none of this form.

    Args:
        there: whether the generator knows the instruction at all. form: None where it has one kernel each.

    Raises:
        NoKernelError: which of both, and what there is.
    """
    if not there:
        raise NoKernelError(
            f"{ins.architecture}:{ins.name}: the generator has no kernel for family "
            f"{ins.family or 'of a custom unit'}"
        )
    if form is not None and form not in forms(ins):
        raise NoKernelError(f"{ins.name}: form is '{form}', expected {' or '.join(forms(ins))}")


def _group(first: int, count: int) -> str:
    return "{" + ",".join(f"%{i}" for i in range(first, first + count)) + "}"


def _extras(ins: Instruction) -> list[str]:
    return [name for name in ("metadata", "scale_a", "scale_b") if name in ins.operand_shapes(True)]


def _warp_text(ins: Instruction) -> str:
    place, groups = 0, []
    for operand in "dabc":
        count = registers(ins, operand).ptx_count
        groups.append(_group(place, count))
        place += count
    if ins.sparse:
        groups.append(f"%{place}, 0x0")
        place += 1
    if ins.scale_block:
        groups.append(f"{{%{place}}}, {{0, 0}}, {{%{place + 1}}}, {{0, 0}}")
    return f"{ins.name} {', '.join(groups)};"


def _warp_inline(ins: Instruction, name: str) -> str:
    a, b, c, d = (registers(ins, operand) for operand in "abcd")
    extras = _extras(ins)
    return _render(
        "inline",
        instruction=ins.name,
        name=name,
        signature=", ".join(
            [d.declaration(False), *(x.declaration() for x in (a, b, c)), *(f"u32 {x}" for x in extras)]
        ),
        held=d,
        accumulates=False,
        text=_warp_text(ins),
        outputs=", ".join(f'"={d.constraint}"(held[{i}])' for i in range(d.count)),
        inputs=", ".join([*a.inputs(), *b.inputs(), *c.inputs(), *(f'"r"({x})' for x in extras)]),
    )


def _wgmma_text(ins: Instruction, form: str) -> tuple[str, list[str]]:
    """The instruction and its inputs after d. Scale-d is the predicate p; the input scales are 1, nothing
    is transposed."""
    d, a = registers(ins, "d"), registers(ins, "a")
    inputs = ['"l"(a)'] if form == "shared" else a.inputs()
    operands = [_group(0, d.count), f"%{d.count}" if form == "shared" else _group(d.count, a.count)]
    operands.append(f"%{d.count + len(inputs)}")
    inputs.append('"l"(b)')
    if ins.sparse:
        operands += [f"%{d.count + len(inputs)}", "0"]
        inputs.append('"r"(metadata)')
    operands.append("p")
    if ins.formats["a"].is_float:
        operands += ["1", "1"]
        if ins.formats["a"].bits == 16:
            operands += ["0", "0"] if form == "shared" else ["0"]
    return f"{ins.name} {', '.join(operands)};", inputs


def _warpgroup_inline(ins: Instruction, form: str, name: str, typed: bool) -> str:
    d, a = registers(ins, "d"), registers(ins, "a")
    text, inputs = _wgmma_text(ins, form)
    signature = [d.declaration(False, typed), "u64 a" if form == "shared" else a.declaration(), "u64 b"]
    return _render(
        "inline",
        instruction=ins.name,
        name=name,
        signature=", ".join(signature + [f"u32 {x}" for x in _extras(ins)]),
        held=None if typed else d,
        accumulates=True,
        text="{ .reg .pred p; setp.eq.u32 p, 0, 0; " + text + " }",
        outputs=", ".join(f'"+{d.constraint}"({"d" if typed else "held"}[{i}])' for i in range(d.count)),
        inputs=", ".join(inputs),
    )


# Kernels ----------------------------------------------------------------------------------------------------


def _kernel(ins: Instruction, form: str, name: str, function: str) -> str:
    if _warpgroup(ins):
        a_bytes, b_bytes = shared_bytes(ins)
        strides = {"a_stride": 8 * a_bytes // ins.m, "b_stride": 8 * b_bytes // ins.n}
        values = {
            "a": registers(ins, "a"),
            "d": registers(ins, "d"),
            "a_bytes": a_bytes,
            "b_bytes": b_bytes,
            **strides,
        }
        return _render(
            "warpgroup", name=name, inline=function, in_shared=form == "shared", extras=_extras(ins), **values
        )
    operands = {operand: registers(ins, operand) for operand in "abcd"}
    if opaque(ins):
        return _render("wmma_memory", name=name, inline=function, **operands, **_wmma_moves(ins, operands))
    return _render("warp", name=name, inline=function, extras=_extras(ins), **operands)


def _wmma_moves(ins: Instruction, operands: dict[str, Registers]) -> dict[str, Any]:
    """The loads of a, b, c and the store of d: matrices packed without gaps,
    in the order that the name says."""
    shape = _shape(ins)
    sizes = {"a": (ins.m, ins.k), "b": (ins.k, ins.n), "c": (ins.m, ins.n), "d": (ins.m, ins.n)}
    moves: dict[str, dict[str, Any]] = {}
    for key, (rows, columns) in sizes.items():
        order = "col" if ins.traits.by_column(key) else "row"
        fmt, held = ins.formats[key], operands[key]
        bits = rows * columns * fmt.bits
        moves[key] = {
            "operand": key,
            "type": held.type,
            "count": held.count,
            "words": bits // (64 if held.word == "u64" else 32),
            "pitch": columns if order == "row" else rows,
            "to_word": held.to_word,
            "text": wmma_move(ins, key, order, held.count),
        }
        if key == "d":
            inputs = (f'"{held.constraint}"({held.from_word}(of_d[{i}]))' for i in range(held.count))
            moves[key]["inputs"] = ", ".join(inputs)
        else:
            moves[key]["outputs"] = ", ".join(f'"={held.constraint}"(held[{i}])' for i in range(held.count))
    return {"shape": shape, "loads": [moves[key] for key in "abc"], "store": moves["d"]}


def wmma_move(ins: Instruction, operand: str, order: str, count: int, space: str = "global") -> str:
    """The PTX that loads a, b or c of wmma, or stores d, in `count` registers.

    Of a load %0 and so on are the registers, then come address and pitch (elements from one row or column to
    the next); of a store the address comes first.
    """
    kind = f"{operand}.sync.aligned.{order}.{_shape(ins)}.{space}.{ins.formats[operand].name}"
    if operand == "d":
        return f"wmma.store.{kind} [%0], {_group(1, count)}, %{count + 1};"
    return f"wmma.load.{kind} {_group(0, count)}, [%{count}], %{count + 1};"


def _shape(ins: Instruction) -> str:
    return f"m{ins.m}n{ins.n}k{ins.k}"


def render(template: str, **values: Any) -> str:
    """A file of hw_capture/templates, filled in."""
    return template_of(_TEMPLATES / template, trimmed=False).render(**values)


def _render(template: str, **values: Any) -> str:
    return render(f"{template}.cu", **values)
