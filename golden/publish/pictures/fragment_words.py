"""Words of the fragment pictures: labels of cells, tooltips, titles and notes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from golden.catalog.architectures import get_architecture
from golden.errors import OperandError, counted
from golden.model.instruction import Instruction
from golden.publish.pictures import svg
from golden.publish.pictures.places import Grid
from golden.registers.layouts import Layout

_AXES = {
    "a": ("m", "k"),
    "b": ("k", "n"),
    "metadata": ("m", "chunk of k"),
    "scale_a": ("m", "block of k"),
    "scale_b": ("block of k", "n"),
}


@dataclass(frozen=True)
class Words:
    """How lanes, registers and parts of registers are called: T5:r1:h on NVIDIA, L5:v1:h on AMD."""

    lane: str
    lane_name: str
    register: str
    register_name: str
    parts: int

    @classmethod
    def of(cls, ins: Instruction, layout: Layout) -> Words:
        """The words of an instruction's vendor."""
        vendor = get_architecture(ins.architecture).maker
        return cls(*vendor.lane, *vendor.register, layout.elements_per_register)

    def part(self, element: int) -> str:
        """The part of the register that an element takes: nothing, l(ow) or h(igh), or its number."""
        return "" if self.parts == 1 else ("l", "h")[element] if self.parts == 2 else str(element)

    def label(self, cells: Grid, lane: int, register: int, element: int) -> str:
        """A cell's label; the part is left out where the cell is several elements."""
        part = self.part(element) if cells.count == 1 else ""
        return f"{self.lane}{lane}:{self.register}{register}" + (f":{part}" if part else "")

    def legend(self, cells: Grid) -> str:
        """What the letters of the labels mean."""
        part = ", l low half, h high half" if self.parts == 2 else ""
        inside = "; digits: element in the register, from the lowest bits" if cells.count > 1 else ""
        return f"{self.lane}: {self.lane_name}, {self.register}: {self.register_name}{part}{inside}"


def axes(operand: str) -> tuple[str, str]:
    """What the rows and the columns of an operand are."""
    return _AXES.get(operand, ("m", "n"))


def letter(operand: str) -> str:
    """An operand as titles have it: A, B, C, D, metadata, scale_a."""
    return operand.upper() if len(operand) == 1 else operand


def title(ins: Instruction, operand: str, layout: Layout) -> str:
    """The headline of a matrix."""
    rows, columns = axes(operand)
    fmt = ins.formats[operand].name if operand in ins.formats else "4-bit codes"
    blocks = f"{layout.blocks} blocks of " if layout.blocks > 1 else ""
    stored = ", stored elements" if operand == "a" and ins.sparse else ""
    return (
        f"{letter(operand)}: {blocks}{counted(layout.rows, 'row')} ({rows}) {svg.TIMES} "
        f"{counted(layout.cols, 'column')} ({columns}{stored}), {fmt}"
    )


def tooltip(cells: Grid, words: Words, place: tuple[int, int, int]) -> str:
    """Row, column, lane, register and bits of a cell."""
    block, row, column = place
    layout, element = cells.layout, int(cells.element[place])
    where = f"block {block}, " if layout.blocks > 1 else ""
    low, high = element * layout.container_bits, (element + cells.count) * layout.container_bits - 1
    bits = f", bits {high}:{low}" if (low, high) != (0, layout.register_bits - 1) else ""
    return (
        f"{where}row {span(row, cells.down)}, column {span(column, cells.across)}: "
        f"lane {cells.lane[place]}, {words.register_name} {cells.register[place]}{bits}"
    )


def span(i: int, size: int) -> str:
    """The numbers that the i-th of cells of this size covers."""
    return str(i) if size == 1 else f"{i * size}-{(i + 1) * size - 1}"


# Notes ------------------------------------------------------------------------------------------------------


def layout_notes(layout: Layout, words: Words) -> list[str]:
    """What the labels do not say: wide registers, containers, selectors."""
    notes = []
    if layout.register_bits == 64:
        pair = ": an aligned pair of VGPRs, low word first" if words.register == "v" else ""
        notes.append(f"Each register is 64 bits wide{pair}.")
    if layout.element_bits < layout.container_bits and layout.register_bits == 32:
        low, width = layout.element_shift, layout.container_bits
        notes.append(
            f"Each element takes bits {low + layout.element_bits - 1}:{low} of its {width} bits of the "
            "register."
        )
    if layout.selectors:
        notes.append(_selector_note(layout))
    return notes


def _selector_note(layout: Layout) -> str:
    chosen = ", ".join(f"{key} = {value}" for key, value in layout.selectors)
    note = f"Drawn for {chosen}."
    if len(layout.selectors) != 1:
        return f"{note} Other selectors take other lanes of the same four, or other bytes."
    key = layout.selectors[0][0]
    places = [(value, found) for value in range(8) if (found := _selected(layout, key, value)) is not None]
    if len(places) > 1:
        note += (
            " Lanes whose codes count: "
            + "; ".join(f"{key} {value}: {found}" for value, found in places)
            + "."
        )
    return note


def _selected(layout: Layout, key: str, value: int) -> str | None:
    """Which lanes and bits a selector value takes, None where there is no such value."""
    try:
        active = layout.select(**{key: value}).coordinates()["active"]
    except OperandError:
        return None
    lanes, bits = np.flatnonzero(active.any(axis=(1, 2))), np.flatnonzero(active.any(axis=(0, 1)))
    residues = " or ".join(str(i) for i in sorted({int(lane) % 4 for lane in lanes}))
    who = "all" if lanes.size == layout.lanes else f"lane mod 4 = {residues}"
    width = layout.container_bits
    return (
        who
        if bits.size * width == layout.register_bits
        else f"{who}, bits {(bits[-1] + 1) * width - 1}:{bits[0] * width}"
    )


def cut_notes(cells: Grid, shown: tuple[int, int, int]) -> list[str]:
    """How the pattern goes on beyond what is drawn."""
    notes = []
    sizes = (1, cells.down, cells.across)
    for axis, (drawn, what, size) in enumerate(zip(shown, ("block", "row", "column"), sizes, strict=True)):
        total = int(cells.lane.shape[axis])
        if drawn == total:
            continue
        rest, gain = f"{what.capitalize()}s {drawn * size} to {total * size - 1}", cells.repeats(axis, drawn)
        if gain is None:
            notes.append(f"{rest} are not drawn.")
            continue
        adds = ", ".join(
            f"{part} + {n}" for part, n in zip(("lane", "register", "element"), gain, strict=True) if n
        )
        notes.append(f"{rest} go on in the same way: {plural(drawn * size, what)} further, {adds}.")
    return notes


def plural(count: int, what: str) -> str:
    """ "1 row", "2 rows"."""
    return f"{count} {what}{'s' if count > 1 else ''}"
