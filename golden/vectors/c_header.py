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
from typing import Final

from golden import __version__
from golden.errors import OperandError
from golden.files import escape
from golden.files.templates import template_of
from golden.model import device_text
from golden.model.instruction import Instruction
from golden.model.program_text import core_source
from golden.program.flags import codes_by_mask
from golden.program.signature import SCALES
from golden.registers.layout_text import place_function
from golden.registers.layouts import Layout

_TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "c"
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
        instructions: the instructions that it holds. Of a unit with modes it holds each mode, of one that
        keeps its
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
    return template_of(_TEMPLATES / "header.h").render(
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
    """The functions of one instruction: the facts that golden/templates/c/unit.h.j2 shows."""

    def __init__(self, name: str, ins: Instruction, arithmetic: str, places: dict[str, str]) -> None:
        self.name, self.ins, self.arithmetic, self.places = name, ins, arithmetic, places
        shapes = ins.operand_shapes(matrices=True)
        self.inputs = [x for x in ("a", "b", "c", "metadata", *SCALES) if x in shapes]
        self.shapes = shapes | {"d": (ins.m, ins.n)}
        self.types = {
            x: "uint8_t" if x == "metadata" else f"uint{ins.formats[x].storage}_t" for x in self.shapes
        }

    def text(self) -> str:
        """All of them."""
        ins, inputs, layouts = self.ins, self.inputs, self._layouts()
        pointers = {x: f"const {self.types[x]} *{x}" for x in inputs}
        selectors = {x: [f"{x}_{name}" for name, _ in layout.selectors] for x, layout in layouts.items()}
        registers = {x: f"uint{layout.register_bits}_t" for x, layout in layouts.items()}
        return template_of(_TEMPLATES / "unit.h.j2").render(
            name=self.name,
            own=self.arithmetic,
            ins=ins,
            inputs=inputs,
            types=self.types,
            lines=list(map(escape.block_comment, self._title())),
            takes=", ".join(pointers.values()),
            takes_c=", ".join(
                (pointers | {"c": f"{self.types['c']} c"} if "c" in inputs else pointers).values()
            ),
            flags=", uint8_t *flags" if ins.status else "",
            masks=codes_by_mask(ins.status) if ins.status else [],
            place_of_b=f"mg_selected({_SPARSITY[ins.pattern.name]}, (const char *)metadata, 1, i)"
            if ins.pattern
            else "i",
            scales=self.shapes["scale_a"][-1] if ins.scale_block is not None else 0,
            begins=list(self._begins()),
            layouts=layouts,
            places=[self._place(operand, layout) for operand, layout in layouts.items()],
            sources=self._sources() if layouts else {},
            sizes={x: math.prod(self._whole(x)) for x in layouts},
            selectors=selectors,
            lanes_take=", ".join(
                [
                    f"{registers['d']} *d",
                    *(f"const {registers[x]} *{x}" for x in inputs),
                    *(f"int32_t {name}" for names in selectors.values() for name in names),
                ]
                if layouts
                else ()
            ),
        )

    def _title(self) -> Iterator[str]:
        ins, named = self.ins, [x for x in (*self.inputs, "d") if x != "metadata"]
        yield f"{ins.architecture} {ins.name}: {', '.join(f'{x} {ins.formats[x].name}' for x in named)}"
        sizes = [f"{name} [{']['.join(map(str, self._whole(name)))}]" for name in (*self.inputs, "d")]
        yield "Matrices: " + ", ".join(sizes)
        if ins.sparse:
            yield "metadata: nibbles, the place of the first kept element in a chunk and 4 times the second's"
        if ins.status:
            yield f"flags: {', '.join(f'bit {bit} {word}' for bit, word in enumerate(ins.status))}"
        yield f"Evidence: {ins.evidence.kind}; {ins.evidence.source}"

    def _whole(self, operand: str) -> tuple[int, ...]:
        """The shape of an operand of the matrix API, with its blocks."""
        return (self.ins.blocks, *self.shapes[operand]) if self.ins.blocks > 1 else self.shapes[operand]

    def _begins(self) -> Iterator[str]:
        """Where the row of A, the column of B or the element of C of one element of D begins."""
        for x in self.inputs:
            if x == "c":
                yield "c[at]"
            elif x in ("b", "scale_b"):
                yield f"{x} + block * {math.prod(self.shapes[x])} + j"
            else:
                yield f"{x} + row * {self.shapes[x][-1]}"

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

    def _sources(self) -> dict[str, str]:
        """By operand what modifiers make of a register (golden/catalog/source_modifiers.py)."""
        rules = ((x, self.ins.traits.sources.get(x, "")) for x in self.inputs)
        return {x: rule for x, rule in rules if rule.startswith(("halves", "whole"))}
