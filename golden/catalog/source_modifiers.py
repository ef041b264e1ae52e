"""What the modifiers of an encoding make of an instruction's operands: NEG, NEG_HI, OPSEL, OPSEL_HI and CLAMP
of AMD's VOP3P, and inline constants.

    unit = golden.modified(ins, "neg_lo:[1,0,0] neg_hi:[0,0,1]")    # as assemblers write them
    unit = golden.modified(ins, Modifiers(neg_lo=0b001, neg_hi=0b100))    # as the encoding holds them
    D = unit(A, B, C)

Which operand takes which, and what it does there, the families say (`source_modifiers` in spec/families; the
words are SOURCES in golden/traits.py). Bits of operands change before anything is computed, the sign of a
NaN too. Where a modifier chooses the type of integers, or that they saturate, another instruction of the
catalogue computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from golden.catalog.architectures import get_architecture
from golden.catalog.lookup import instruction
from golden.errors import OperandError, nearest
from golden.model.instruction import Bits, Instruction
from golden.number.formats import Format
from golden.number.rounding import encode_fraction
from golden.program.signature import INPUTS
from golden.registers.layouts import Layout
from golden.traits import SOURCES

OPERANDS = "abc"
ALL = 0b111  # a bit of each operand: a, b and c
_WRITTEN = re.compile(r"(\w+):\[([01](?:,[01]){1,2})\]|(clamp)")


@dataclass(frozen=True)
class Modifiers:
    """The fields of the encoding: bit 0 of each belongs to a, bit 1 to b, bit 2 to c."""

    neg_lo: int = 0
    neg_hi: int = 0
    op_sel: int = 0
    op_sel_hi: int = ALL
    clamp: bool = False

    def __post_init__(self) -> None:
        for name in ("neg_lo", "neg_hi", "op_sel", "op_sel_hi"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value <= ALL:
                raise OperandError(f"argument '{name}' is {value!r}, expected a field of three bits, 0 to 7")
        if not isinstance(self.clamp, (bool, np.bool_)):
            raise OperandError(f"argument 'clamp' is {self.clamp!r}, expected True or False")

    @classmethod
    def parse(cls, text: str) -> Modifiers:
        """Reads them as assemblers write them: "neg_lo:[1,0,0] neg_hi:[0,0,1] op_sel:[0,0,1] clamp".

        Raises:
            OperandError: a word is no modifier, or is given twice.
        """
        found: dict[str, int] = {}
        for word in re.sub(r",\s+", ",", text).split():
            match = _WRITTEN.fullmatch(word)
            name = match and (match[1] or match[3])
            known = [field.name for field in fields(cls)]
            if match is None or name not in known:
                forms = ", ".join(f"{key}:[0,0,0]" for key in known[:-1])
                near = nearest(word.split(":")[0], known)
                raise OperandError(f"'{word}' is no modifier, expected {forms} or clamp{near}")
            if name in found:
                raise OperandError(f"modifier '{name}' is given twice")
            bits = match[2].split(",") if match[2] else []
            missing = [str(getattr(cls, name) >> 2)] if len(bits) == 2 else []
            found[name] = sum(int(bit) << place for place, bit in enumerate([*bits, *missing]))
        clamp = "clamp" in found
        found.pop("clamp", None)
        return cls(**found, clamp=clamp)

    @classmethod
    def decode(cls, low: int, high: int) -> Modifiers:
        """Reads them out of the two words of an encoding VOP3P ("RDNA3 Instruction Set Architecture",
        microcode formats): NEG_HI 10:8, OPSEL 13:11, OPSEL_HI[2] 14, CLAMP 15 of the first, OPSEL_HI[1:0]
        28:27, NEG 31:29 of the second.

        Raises:
            OperandError: they are no such words, or a third one of DPP follows, whose
                effect is not public.
        """
        for name, word in (("low", low), ("high", high)):
            if isinstance(word, bool) or not isinstance(word, (int, np.integer)) or not 0 <= word < 1 << 32:
                raise OperandError(f"argument '{name}' is {word!r}, expected a word of 32 bits")
        # Bits 31:23 of an encoding.
        vop3p = 0b110011000
        if low >> 23 != vop3p:
            raise OperandError(
                f"argument 'low' is {low:#010x}, expected a word of VOP3P, 0xcc000000 to 0xcc7fffff"
            )
        # Values of src0, bits 8:0 of the second word, that stand for DPP8, DPP8 with FI and DPP16.
        dpp = (233, 234, 250)
        if high & 0x1FF in dpp:
            raise OperandError(
                f"argument 'high' is {high:#010x}: its src0 {high & 0x1FF} says DPP, expected none"
            )
        low, high = int(low), int(high)
        return cls(
            neg_lo=high >> 29 & ALL,
            neg_hi=low >> 8 & ALL,
            op_sel=low >> 11 & ALL,
            op_sel_hi=high >> 27 & 0b11 | (low >> 14 & 1) << 2,
            clamp=bool(low >> 15 & 1),
        )

    def of(self, operand: str) -> tuple[int, int, int, int]:
        """neg_lo, neg_hi, op_sel and op_sel_hi of one operand, a bit each."""
        place = OPERANDS.index(operand)
        low, high, select, select_high = (
            field >> place & 1 for field in (self.neg_lo, self.neg_hi, self.op_sel, self.op_sel_hi)
        )
        return low, high, select, select_high


class Modified:
    """An instruction as one encoding of it runs it.

    Attributes:
        instruction: the one that computes; not the given one if modifiers choose types.
        modifiers: the fields.
    """

    def __init__(self, ins: Instruction, modifiers: Modifiers) -> None:
        self.instruction = _chosen(ins, modifiers)
        self.modifiers = modifiers

    def __repr__(self) -> str:
        return f"<Modified {self.instruction.architecture} {self.instruction.name}: {self.modifiers}>"

    @property
    def formats(self) -> Mapping[str, Format]:
        """The formats of the operands and of d."""
        return self.instruction.formats

    @property
    def k(self) -> int:
        """Products of one dot product."""
        return self.instruction.k

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> Bits:
        """As the instruction: a (..., m, k), b (..., k, n), c (..., m, n) to d, raw codes."""
        return self.instruction(**self.read({"a": a, "b": b, "c": c}, matrices=True))

    def dot(self, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> Bits:
        """Dot products: a, b (..., k), c (...) to d (...), raw codes."""
        return self.instruction.dot(**self.read({"a": a, "b": b, "c": c}, matrices=False))

    def read(self, operands: Mapping[str, npt.ArrayLike], matrices: bool) -> dict[str, Bits]:
        """The operands as the unit reads them: of the matrix API, or of dot products.

        Raises:
            ShapeError, DTypeError, OperandError: as the instruction.
        """
        ins = self.instruction
        found = ins.check_operands([operands.get(name) for name in INPUTS], matrices)
        return {name: self._read(name, codes, matrices) for name, codes in found.items()}

    def half(self, layout: Layout) -> Layout:
        """The layout of c or d with the half of registers that op_sel chooses, where there is a choice
        (`ins.fragments`)."""
        chosen = self.modifiers.op_sel >> 2 & 1
        return layout.select(half=chosen) if "half" in dict(layout.selectors) else layout

    def _read(self, name: str, codes: Bits, matrices: bool) -> Bits:
        rule, low, high, select, select_high = (
            self.instruction.traits.sources.get(name, ""),
            *self.modifiers.of(name),
        )
        if rule.startswith("whole"):
            sign = codes.dtype.type(1 << self.formats[name].sign_shift)
            cleared = codes & ~sign if high else codes
            return np.asarray(cleared ^ sign if low else cleared)
        if not rule.startswith("halves"):
            return codes
        axis, places = (-2 if name == "b" and matrices else -1), np.arange(self.k)
        if rule == "halves_selected":
            codes = codes.take(places - places % 2 + np.where(places % 2, select_high, select), axis)
        signs = np.where(places % 2, high, low).astype(codes.dtype) << self.formats[name].sign_shift
        return np.asarray(codes ^ (signs[:, None] if axis == -2 else signs))


def modified(ins: Instruction, modifiers: Modifiers | str) -> Modified:
    """The instruction under modifiers of its encoding, given as fields or as assemblers write them.

    Raises:
        OperandError: the instruction takes no such modifier, or what it does there is not public.
        UnknownArithmeticError: they choose an instruction whose arithmetic is not public.
    """
    given = Modifiers.parse(modifiers) if isinstance(modifiers, str) else modifiers
    for name, value, expected in (("ins", ins, Instruction), ("modifiers", given, Modifiers)):
        if not isinstance(value, expected):
            raise OperandError(f"argument '{name}' is {value!r}, expected {expected.__name__}")
    return Modified(ins, given)


def _chosen(ins: Instruction, modifiers: Modifiers) -> Instruction:
    """The instruction that computes: that of the types that the modifiers choose."""
    rules = ins.traits.sources
    if not rules:
        raise OperandError(f"{ins.architecture} {ins.name} takes no modifiers that are known")
    for operand in OPERANDS:
        _check(ins, operand, rules.get(operand, ""), modifiers)
    if modifiers.clamp and "d" not in rules:
        raise OperandError(f"{ins.name} takes no clamp, or what it does there is not public")
    signed = {name: modifiers.of(name)[0] for name, rule in rules.items() if rule == "signedness"}
    if not any(signed.values()) and not (modifiers.clamp and rules["d"] == "clamped"):
        return ins
    return _of_types(ins, signed, modifiers.clamp)


def _check(ins: Instruction, operand: str, rule: str, modifiers: Modifiers) -> None:
    """Refuses what an operand does not take."""
    takes = SOURCES[rule][0] if rule else ()
    names = ("neg_lo", "neg_hi", "op_sel", "op_sel_hi")
    for name, bit, usual in zip(names, modifiers.of(operand), Modifiers().of(operand), strict=True):
        if bit != usual and name not in takes:
            raise OperandError(
                f"{ins.name}: {name} of {operand} is {bit}, expected {usual}: its encoding does not take it, "
                "or what it does there is not public"
            )


def _of_types(ins: Instruction, signed: Mapping[str, int], clamp: bool) -> Instruction:
    """The variant of the same family with signed a or b, and clamped; signs that the name says stay."""
    family = get_architecture(ins.architecture).names()[ins.name][0].family
    wanted = {
        **ins.variables,
        **{name: ins.variables[name].replace("u", "s") for name, bit in signed.items() if bit},
        "clamp": ".clamp" if clamp else ins.variables["clamp"],
    }
    for variables in family.variants:
        if variables | {"signs": ""} == wanted | {"signs": ""}:
            return instruction(ins.architecture, family.template.format(**variables))
    raise OperandError(f"family {family.name} has no variant of {wanted}")


def inline_constant(ins: Instruction, operand: str, selector: int) -> int:
    """The code of an operand whose source is an inline constant: low bits of an integer; a float narrowed to
    nearest even for f16, cut for bf16.

    Recorded for c of the packed v_wmma (vectors/published/modifiers); the others are not known.

    Raises:
        OperandError: the selector stands for none, or the operand takes none.
    """
    if ins.traits.sources.get(operand) != "whole_in_half":
        raise OperandError(f"{ins.name}: what an inline constant gives operand {operand} is not known")
    fmt, constants = ins.formats[operand], get_architecture(ins.architecture).maker.constants
    if selector in constants.integers:
        return constants.integers[selector] & (1 << fmt.bits) - 1
    word = constants.floats.get(selector)
    if word is None:
        known = sorted([*constants.integers, *constants.floats])
        raise OperandError(f"argument 'selector' is {selector}, expected one of {known[0]} to {known[-1]}")
    if fmt.name == "bf16":
        # Bits of f32 that bf16 does not have.
        below_bf16 = 16
        return word >> below_bf16
    return encode_fraction(fmt, float(np.uint32(word).view(np.float32)))
