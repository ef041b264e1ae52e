"""An instruction, or all of an architecture, as one C header for an emulator or an instruction-set simulator.

    text = c_header.text([golden.instruction("cdna3", "v_mfma_f32_32x32x8_f16")], "mfma")

The header needs a C99 or C++11 compiler and nothing else; its first comment says what it holds. The
arithmetic is the core's own (golden/core/mg_general.c, mg_device.h, golden/model/device_text.py), the
register layouts are the formulas of spec/layouts (golden/registers/layout_text.py).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Final

from golden import __version__
from golden.errors import OperandError
from golden.files import escape
from golden.model import device_text
from golden.model.instruction import Instruction
from golden.model.program_text import core_source
from golden.program.flags import codes_by_mask
from golden.program.signature import SCALES
from golden.registers.layout_text import place_function
from golden.registers.layouts import Layout

_TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "c" / "header.h"
_LIBRARY_ALONE = re.compile(r"^#ifndef MG_ALONE\n.*?^#endif /\* MG_ALONE \*/\n", re.MULTILINE | re.DOTALL)
_MOST_TERMS: Final = 256
"""Products of one quick dot product (MG_DEVICE_K); longer ones go to the interpreter."""
_SPARSITY = {"2:4": "MG_SPARSE_2_4", "1:2": "MG_SPARSE_1_2", "4:8 pairs": "MG_SPARSE_4_8_PAIRS"}


def identifier(text: str) -> str:
    """A name of C for a name of the spec."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def text(instructions: Sequence[Instruction], prefix: str, title: str) -> str:
    """The header of some instructions.

    Args:
        instructions: those that it holds. Of a unit with modes it holds each mode, of one that keeps its
            accumulator what one step computes: each result is the c of the next.
        prefix: how names begin; the whole name of the functions where there is one instruction.
        title: what the header is of, for its first line.

    Raises:
        OperandError: the prefix is no identifier of C, or two instructions would have one name.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", prefix):
        raise OperandError(f"argument 'prefix' is '{prefix}', expected an identifier (letters, digits, _)")
    if prefix in escape.C:
        raise OperandError(f"argument 'prefix' is '{prefix}', a keyword of C or C++, expected another name")
    named = _named(instructions, prefix)
    core = _LIBRARY_ALONE.sub("", core_source(device_text.WHOLE))
    digest = hashlib.sha256(f"{__version__}{core}".encode()).hexdigest()[:8]
    return Template(_TEMPLATE.read_text()).substitute(
        title=escape.block_comment(title),
        version=__version__,
        guard=f"MMAGOLD_{prefix.upper()}_H",
        digest=digest,
        most=_MOST_TERMS,
        core=core,
        constant=device_text.CONSTANT,
        units="\n".join(_units(named, prefix)),
    )


def _named(instructions: Sequence[Instruction], prefix: str) -> dict[str, Instruction]:
    """The units by the name of their functions."""
    found: dict[str, Instruction] = {}
    for ins in instructions:
        name = prefix if len(instructions) == 1 else f"{prefix}_{identifier(ins.name)}"
        units = {f"{name}_mode_{code}": unit for code, unit in ins.mode_units.items()} or {name: ins}
        for one, unit in units.items():
            if one in found:
                raise OperandError(f"{found[one].name} and {unit.name} would both be named {one} in C")
            found[one] = unit.stateless
    return found


def _units(named: dict[str, Instruction], prefix: str) -> Iterator[str]:
    """The functions of every unit; what several share stands once."""
    arithmetic: dict[str, str] = {}
    places: dict[str, str] = {}
    for name, ins in named.items():
        body = device_text.functions(ins.program, ins, _MOST_TERMS, "_OF")
        if body not in arithmetic:
            arithmetic[body] = f"{prefix}_arithmetic_{len(arithmetic)}"
            yield _renamed(body, arithmetic[body])
        yield _Unit(name, ins, arithmetic[body], places).text()


def _renamed(body: str, name: str) -> str:
    """The functions of device_text under names of their own."""
    own = re.sub(r"\bunit_(?=\w)", f"{name}_", body)
    return re.sub(r"\b(mg_\w+?)_OF(?=\b|_)", rf"{name}_\1", own) + "\n"


class _Unit:
    """The functions of one instruction."""

    def __init__(self, name: str, ins: Instruction, arithmetic: str, places: dict[str, str]) -> None:
        self.name, self.ins, self.arithmetic, self.places = name, ins, arithmetic, places
        shapes = ins.operand_shapes(matrices=True)
        self.inputs = [x for x in ("a", "b", "c", "metadata", *SCALES) if x in shapes]
        self.shapes = shapes | {"d": (ins.m, ins.n), "flags": (ins.m, ins.n)}

    def text(self) -> str:
        """All of them."""
        parts = [self._title(), self._element(), self._dot()]
        layouts = self._layouts()
        if layouts or self.ins.m * self.ins.n * self.ins.blocks > 1:
            parts.append(self._matrices())
        if layouts:
            parts += [self._place(operand, layout) for operand, layout in layouts.items()]
            parts += [self._source(operand, layouts[operand]) for operand in self.inputs]
            parts.append(self._lanes(layouts))
        return "\n".join([*(part for part in parts if part), ""])

    def _type(self, operand: str) -> str:
        if operand in ("metadata", "flags"):
            return "uint8_t"
        return f"uint{self.ins.formats[operand].storage}_t"

    def _title(self) -> str:
        ins = self.ins
        shown = ", ".join(
            f"{name} {ins.formats[name].name}" for name in (*self.inputs, "d") if name != "metadata"
        )
        lines = [f"{ins.architecture} {ins.name}: {shown}"]
        sizes = [f"{name} [{']['.join(map(str, self._whole(name)))}]" for name in (*self.inputs, "d")]
        lines.append("Matrices: " + ", ".join(sizes))
        if ins.sparse:
            lines.append(
                "metadata: nibbles, the place of the first kept element in a chunk and 4 times the second's"
            )
        if ins.status:
            lines.append(f"flags: {', '.join(f'bit {bit} {word}' for bit, word in enumerate(ins.status))}")
        lines.append(f"Evidence: {ins.evidence.kind}; {ins.evidence.source}")
        return "/* " + "\n * ".join(map(escape.block_comment, lines)) + " */"

    def _whole(self, operand: str) -> tuple[int, ...]:
        """The shape of an operand of the matrix API, with its blocks."""
        return (self.ins.blocks, *self.shapes[operand]) if self.ins.blocks > 1 else self.shapes[operand]

    def _parameters(self, of_dot: bool) -> str:
        """Pointers to what is read, and c, which dot products take as it is."""
        return ", ".join(
            f"{self._type(x)} c" if x == "c" and of_dot else f"const {self._type(x)} *{x}"
            for x in self.inputs
        )

    @property
    def _flags(self) -> str:
        return ", uint8_t *flags" if self.ins.status else ""

    def _element(self) -> str:
        """A dot product whose b and scale_b lie in a column `step` elements apart."""
        ins, own = self.ins, self.arithmetic
        at = (
            f"mg_selected({_SPARSITY[ins.pattern.name]}, (const char *)metadata, 1, i)"
            if ins.pattern
            else "i"
        )
        b = f"b[{at} * step]" if "b" in self.inputs else "0"
        more, lines = "", []
        if ins.scale_block is not None:
            count = self.shapes["scale_a"][-1]
            lines = [
                f"    uint64_t scales_a[{count}], scales_b[{count}];",
                f"    for (int32_t i = 0; i < {count}; i++) {{",
                "        scales_a[i] = scale_a[i];",
                "        scales_b[i] = scale_b[i * step];",
                "    }",
            ]
            more = ", scales_a, scales_b"
        masks = codes_by_mask(ins.status) if ins.status else []
        c = "c" if "c" in self.inputs else "0"
        result = f"({self._type('d')}){own}_dot(x, y, {c}{more}{', &raised' if masks else ''})"
        body = [f"    return {result};"]
        if masks:
            body = [
                f"    static const uint8_t flags_of[] = {{{', '.join(map(str, masks))}}};",
                "    uint32_t raised = 0;",
                f"    const {self._type('d')} d = {result};",
                "    *flags = flags_of[raised];",
                "    return d;",
            ]
        return "\n".join(
            [
                f"static inline {self._type('d')} {self.name}_element({self._parameters(True)}, int32_t step"
                f"{self._flags}) {{",
                f"    {own}_element x[{ins.stored_k}], y[{ins.stored_k}];",
                *([] if "b" in self.inputs or ins.scale_block else ["    (void)step;"]),
                f"    for (int32_t i = 0; i < {ins.stored_k}; i++) {{",
                f"        x[i] = {own}_decode_a(a[i]);",
                f"        y[i] = {own}_decode_b({b});",
                "    }",
                *lines,
                *body,
                "}",
            ]
        )

    def _dot(self) -> str:
        given = ", ".join([*self.inputs, "1", *(["flags"] if self.ins.status else [])])
        return (
            f"static inline {self._type('d')} {self.name}_dot({self._parameters(True)}{self._flags}) {{\n"
            f"    return {self.name}_element({given});\n}}"
        )

    def _matrices(self) -> str:
        """Row i of block o meets column j."""
        ins = self.ins
        places = {
            "a": "row * {}",
            "b": "block * {} + j",
            "c": "at",
            "metadata": "row * {}",
            "scale_a": "row * {}",
        }
        places["scale_b"] = "block * {} + j"
        given = []
        # Where the row of A, the column of B or the element of C begins.
        for x in self.inputs:
            size = self.shapes[x][-1] if "row" in places[x] else math.prod(self.shapes[x])
            place = places[x].format(size)
            given.append(f"{x}[{place}]" if x == "c" else f"{x} + {place}")
        given += [str(ins.n), *(["flags + at"] if ins.status else [])]
        block = f"row / {ins.m}" if ins.blocks > 1 else "0"
        uses_block = any("block" in text for text in given)
        return "\n".join(
            [
                f"static inline void {self.name}({self._type('d')} *d, {self._parameters(False)}"
                f"{self._flags}) {{",
                f"    for (int32_t row = 0; row < {ins.blocks * ins.m}; row++)",
                f"        for (int32_t j = 0; j < {ins.n}; j++) {{",
                *([f"            const int32_t block = {block};"] if uses_block else []),
                f"            const int32_t at = row * {ins.n} + j;",
                f"            d[at] = {self.name}_element({', '.join(given)});",
                "        }",
                "}",
            ]
        )

    def _layouts(self) -> dict[str, Layout]:
        """The layouts of all operands; nothing where one is not known, or is not one of registers."""
        fragments = self.ins.fragments
        if fragments is None or self.ins.status:
            return {}
        found = {x: getattr(fragments, x) for x in (*self.inputs, "d")}
        return {} if None in found.values() else found

    def _place(self, operand: str, layout: Layout) -> str:
        """The function that says where an operand lies, shared by all that lie alike."""
        text = place_function(layout, "PLACE")
        name = self.places.setdefault(text, f"{self.name}_place_{operand}")
        if name == f"{self.name}_place_{operand}":
            return text.replace("PLACE", name, 1)
        return f"#define {self.name}_place_{operand} {name}"

    def _source(self, operand: str, layout: Layout) -> str:
        """What modifiers of the encoding make of a register (golden/catalog/source_modifiers.py); nothing
        where there are none."""
        rule = self.ins.traits.sources.get(operand, "")
        if not rule.startswith(("halves", "whole")):
            return ""
        signs = 0x80008000 if layout.container_bits == 16 else 0x80000000
        chosen = rule == "halves_selected"
        more = ", uint32_t op_sel, uint32_t op_sel_hi" if chosen else ""
        lines = [
            f"static inline uint32_t {self.name}_source_{operand}(uint32_t word, uint32_t neg_lo, "
            f"uint32_t neg_hi{more}) {{"
        ]
        if rule.startswith("whole"):
            lines += [
                f"    if (neg_hi & 1) word &= {signs ^ 0xFFFFFFFF:#x}u;",
                f"    return neg_lo & 1 ? word ^ {signs:#x}u : word;",
            ]
        else:
            select = [
                "    word = (word >> 16 * (op_sel & 1) & 0xffffu) | (word >> 16 * (op_sel_hi & 1)) << 16;"
            ]
            lines += select if chosen else []
            lines.append("    return word ^ (neg_lo & 1) << 15 ^ (neg_hi & 1) << 31;")
        return "\n".join([*lines, "}"])

    def _lanes(self, layouts: dict[str, Layout]) -> str:
        """All matrices out of registers, the instruction, d into registers."""
        registers = {x: f"uint{layout.register_bits}_t" for x, layout in layouts.items()}
        # The parameters: registers of every operand, and what selects among layouts.
        takes = [f"{registers['d']} *d", *(f"const {registers[x]} *{x}" for x in self.inputs)]
        chosen = {x: [f"{x}_{selector}" for selector, _ in layout.selectors] for x, layout in layouts.items()}
        takes += [f"int32_t {name}" for names in chosen.values() for name in names]
        lines = [f"static inline void {self.name}_lanes({', '.join(takes)}) {{"]
        sizes = {x: math.prod(self._whole(x)) for x in layouts}
        lines += [f"    {self._type(x)} of_{x}[{sizes[x]}] = {{0}};" for x in layouts]
        # Operands are gathered from the registers, the product is made, and D is scattered last.
        for x, layout in layouts.items():
            if x == "d":
                lines.append(f"    {self.name}({', '.join(f'of_{name}' for name in ('d', *self.inputs))});")
            place = ", ".join([f"{self.name}_place_{x}(L, r, e", *chosen[x]]) + ")"
            slot = f"{x}[L * {layout.registers} + r]"
            shift = f"(e * {layout.container_bits} + {layout.element_shift})"
            mask = f"({registers[x]}){(1 << layout.element_bits) - 1:#x}u{'ll' * (layout.register_bits > 32)}"
            write = f"{slot} = ({slot} & ~({mask} << {shift})) | ({registers[x]})of_d[at] << {shift};"
            read = f"of_{x}[at] = ({self._type(x)})({slot} >> {shift} & {mask});"
            lines += [
                f"    for (int32_t L = {layout.lanes - 1}; L >= 0; L--)",
                f"        for (int32_t r = 0; r < {layout.registers}; r++)",
                f"            for (int32_t e = 0; e < {layout.elements_per_register}; e++) {{",
                f"                const int32_t at = {place};",
                "                if (at < 0) continue;",
                f"                {write if x == 'd' else read}",
                "            }",
            ]
        return "\n".join([*lines, "}"])
