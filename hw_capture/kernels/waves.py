"""The kernel generator for AMD: C with clang's builtin of an instruction; compiling needs no ROCm.

    print(waves.source(golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16")))

Kernels have the parameters of the kernels for NVIDIA (hw_capture/kernels/kernels.py), and the same buffers:
registers (execution, lane, register) as `ins.fragments` lays them out. A 64-bit element is the two words of a
pair of registers. Modifiers of an instruction are 0, except signs and clamp where its name has them. A dot
product of one lane, whose result is f32, is assembly: from its builtin the compiler may make
v_dual_dot2acc_f32_f16, another instruction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from golden.model.instruction import Instruction
from golden.registers.layouts import Layout
from hw_capture.errors import NoKernelError, SassError
from hw_capture.kernels import kernels

GENERATORS = ("mfma", "wmma_wave", "lane_dot")
"""The generators, by the names that `kernel` in spec/families calls them."""
_LINE = re.compile(r"^\s*(v_(?:mfma|smfmac|wmma|swmmac|dot|dual_dot)\S+)\s+(.*?)\s*(?://.*|;.*)?$")
_FUNCTION = re.compile(r"^(?:[0-9a-f]+ <)?(\w+)>?:")


@dataclass(frozen=True)
class Operand:
    """The registers of an operand in one lane: `words` of 32 bits, and the C type that the builtin takes."""

    type: str
    count: int
    words: int

    @property
    def attribute(self) -> str:
        """What makes the type a vector."""
        return f" __attribute__((ext_vector_type({self.count})))" if self.count > 1 else ""


def supported(ins: Instruction) -> bool:
    """Whether there is a generator for the instruction's family, and it knows where the operands lie."""
    return ins.traits.kernel in GENERATORS and ins.layout is not None


def options(ins: Instruction) -> tuple[str, ...]:
    """Options that the compiler needs: RDNA's waves have 32 lanes or 64."""
    if ins.traits.kernel != "wmma_wave":
        return ()
    return ("-mwavefrontsize64",) if ins.traits.lanes == 64 else ("-mno-wavefrontsize64",)


def source(ins: Instruction, name: str = "run", complete: bool = True) -> str:
    """The kernel `name`; with `complete` a whole compilation unit.

    Raises:
        NoKernelError: there is no generator for the instruction.
    """
    kernels.check_there(ins, supported(ins))
    operands = {x: _operand(ins, x) for x in "abcd"}
    if ins.sparse:
        _layout(ins, "metadata")
    code = kernels.render(
        "wave.c",
        instruction=ins.name,
        name=name,
        function=f"matrix_{name}",
        call=_call(ins),
        lanes=ins.traits.lanes,
        block=kernels.BLOCK,
        sparse=bool(ins.sparse),
        **operands,
    )
    return prelude() + code if complete else code


def text(ins: Instruction) -> str:
    """The instruction as the kernel calls it: clang's builtin with its modifiers."""
    return _call(ins)


def module(chosen: Sequence[tuple[Instruction, str]]) -> str:
    """One compilation unit with the kernels run_0, run_1, ... of several instructions."""
    return prelude() + "".join(source(ins, f"run_{i}", complete=False) for i, (ins, _) in enumerate(chosen))


def prelude() -> str:
    """What every compilation unit begins with."""
    return kernels.render("wave_prelude.c")


# The builtin ------------------------------------------------------------------------------------------------


def _layout(ins: Instruction, operand: str) -> Layout:
    layout = getattr(kernels.fragments(ins), operand)
    if layout is None:
        raise NoKernelError(f"{ins.name}: operand {operand} has no register layout")
    return layout  # type: ignore[no-any-return]


def _operand(ins: Instruction, operand: str) -> Operand:
    layout, fmt = _layout(ins, operand), ins.formats[operand]
    words = layout.registers * layout.register_bits // 32
    if ins.traits.kernel == "lane_dot":
        return _of_lane(ins, operand)
    match fmt.name:
        case "f32" | "tf32":
            return Operand("float", words, words)
        case "f64":
            return Operand("double", words // 2, words)
        case "f16":
            return Operand("_Float16", 2 * words, words)
        case "bf16":
            return Operand("short", 2 * words, words)
    if words == 2 and ins.traits.kernel == "mfma" and not ins.sparse:
        return Operand("long", 1, words)
    return Operand("int", words, words)


def _of_lane(ins: Instruction, operand: str) -> Operand:
    """An operand of a dot product of one lane: one register."""
    narrow = {"f16": "_Float16", "bf16": "__bf16"}.get(ins.formats["d"].name)
    if narrow is None:
        return Operand("float" if operand in "cd" else "u32", 1, 1)
    return Operand(narrow, 1 if operand in "cd" else 2, 1)


def _call(ins: Instruction) -> str:
    """The builtin with its arguments; assembly where the compiler would choose a machine instruction."""
    if ins.traits.kernel == "lane_dot":
        if ins.formats["d"].bits == 16:
            return f"__builtin_amdgcn_f{ins.name[2:]}(of_a, of_b, of_c)"
        registers = '"=v"(held) : "v"(of_a), "v"(of_b), "v"(of_c)'
        return f'({{ type_c held; __asm__("{ins.name} %0, %1, %2, %3" : {registers}); held; }})'
    if ins.sparse:
        return f"__builtin_amdgcn_{ins.name[2:]}(of_a, of_b, of_c, metadata, 0, 0)"
    if ins.traits.kernel == "mfma":
        return f"__builtin_amdgcn_{_builtin(ins)}(of_a, of_b, of_c, 0, 0, 0)"
    name = f"__builtin_amdgcn_{mnemonic(ins)[2:]}_w{ins.traits.lanes}"
    later = _layout(ins, "a").copies == 1  # RDNA3 wants each row of A twice
    name += "_gfx12" if later else ""
    if ins.formats["a"].is_float:
        half = "" if later or ins.formats["d"].bits > 16 else ", 0"
        return f"{name}(of_a, of_b, of_c{half})"
    a, b = (str(int(ins.formats[x].signed)) for x in "ab")
    return f"{name}({a}, of_a, {b}, of_b, of_c, {int('clamp' in ins.traits.modifiers)})"


def _builtin(ins: Instruction) -> str:
    """clang's name of an MFMA: the newer spelling of an older one (with the count of blocks) goes back
    to the older one, where the type of four BF16 has the suffix 1k."""
    name = ins.name[2:]
    newer = re.fullmatch(r"(\w+?_\d+x\d+x\d+)(?:_\d+b)?_(f16|bf16|f32|f64|i8)", name)
    if newer is None or (newer[2] == "i8" and ins.blocks == 1):  # a longer K, which the older ones have not
        return name
    return f"{newer[1]}{newer[2]}{'_1k' if newer[2] == 'bf16' else ''}"


# What was compiled ------------------------------------------------------------------------------------------


def mnemonic(ins: Instruction) -> str:
    """The machine's name: without the wave's size and the modifiers, which the machine keeps elsewhere."""
    return re.sub(r"_w(32|64)(\..*)?$", "", ins.name)


def functions(listing: str) -> dict[str, list[str]]:
    """The matrix instructions of every kernel, from a disassembly or the compiler's assembly."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in listing.splitlines():
        head = _FUNCTION.match(line)
        if head:
            current = found.setdefault(head.group(1), [])
        elif code := _LINE.match(line):
            current.append(f"{code.group(1)} {' '.join(code.group(2).split())}")
    return found


def check_body(ins: Instruction, body: Sequence[str]) -> list[str]:
    """Returns the lines of the instruction: it has to be there, alone, with the modifiers that its name says
    and no other.

    Raises:
        SassError: naming what is there and what the spec says.
    """
    wanted = f"{mnemonic(ins)}{_modifiers(ins)}"
    found = [_without_operands(line) for line in body]
    if not found or set(found) != {wanted}:
        there = ", ".join(dict.fromkeys(found)) or "no matrix instruction"
        raise SassError(f"{ins.architecture}:{ins.name}: compiled to {there}, the spec says {wanted}")
    return list(body)


def _modifiers(ins: Instruction) -> str:
    if ins.traits.kernel != "wmma_wave" or ins.formats["a"].is_float:
        return ""
    signs = [int(ins.formats[x].signed) for x in "ab"]
    return (f" neg_lo:[{signs[0]},{signs[1]},0]" if any(signs) else "") + (
        " clamp" if "clamp" in ins.traits.modifiers else ""
    )


def _without_operands(line: str) -> str:
    """Mnemonic and modifiers, without operands."""
    name, operands = line.split(" ", 1)
    rest = [
        word
        for word in operands.split()
        if not re.match(r"^[vas]?\[?\d[\d:]*\]?(\.[lh])?,?$|^[vas]\[[\d:]+\],?$|^-?\d", word)
    ]
    return " ".join([name.removesuffix("_e64"), *rest])
