"""The inverse of a fragment's matrix: lanes as rows, registers as columns, and the elements that each
register holds; and the words of all fragment pictures: labels of cells, tooltips, titles and notes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from golden.catalog.architectures import get_architecture
from golden.errors import OperandError, counted
from golden.model.instruction import Instruction
from golden.publish.pictures import svg
from golden.publish.pictures.places import Array, Grid
from golden.registers.layouts import Layout

FONT, _STEP = 10, 15.0  # px: the letters, and from a row of the table to the next


def table(
    layout: Layout, words: Words, x: float, y: float, width: float
) -> tuple[list[str], float, float, list[str]]:
    """Draws the table with its top left corner at x, y; returns markup, right edge, height and the notes
    on what is left out."""
    labels = held(layout)
    widest = max(max(svg.width_of(text, FONT) for text in labels.ravel()) + 8, 44)
    columns = _fitting(layout.registers, int(width / widest))
    most_lanes = 32
    rows = layout.lanes if layout.lanes <= 64 else most_lanes
    notes = []
    if columns < layout.registers:
        notes.append(
            f"Registers {columns} to {layout.registers - 1} are not drawn; {_further(layout, 1, columns)}"
        )
    if rows < layout.lanes:
        notes.append(f"Lanes {rows} to {layout.lanes - 1} are not drawn; {_further(layout, 0, rows)}")
    parts = [
        svg.text(
            x + (i + 0.5) * widest, y + 10, f"{words.register}{i}", "muted", anchor="middle", font_size=FONT
        )
        for i in range(columns)
    ]
    for lane in range(rows):
        parts.append(_row(layout, words, lane, labels[lane, :columns], x, y + 14 + lane * _STEP, widest))
    return parts, x + columns * widest, 18 + rows * _STEP, notes


def _fitting(registers: int, most: int) -> int:
    """How many registers to draw: all, or a power of two (patterns repeat with one)."""
    return registers if registers <= most else 1 << (max(most, 1).bit_length() - 1)


def _row(layout: Layout, words: Words, lane: int, labels: Array, x: float, y: float, width: float) -> str:
    boxes = "".join(
        svg.element("rect", x=x + i * width, y=y, width=width, height=_STEP) for i in range(len(labels))
    )
    texts = svg.element("text", f"{words.lane}{lane}", x=x - 16, y=y + 11)
    texts += "".join(
        svg.element("text", svg.escape(label), x=x + (i + 0.5) * width, y=y + 11)
        for i, label in enumerate(labels)
        if label
    )
    return lane_group(layout.lanes, lane, boxes, texts, f"lane {lane}")


def lane_group(lanes: int, lane: int, boxes: str, texts: str, title: str = "") -> str:
    """All that belongs to one lane: its boxes in its colour, their labels, a tooltip."""
    ink = {
        "class": "mg-text",
        "fill": svg.STYLES["text"]["fill"],
        "pointer-events": "none",
        "text-anchor": "middle",
    }
    head = svg.element("title", title) if title else ""
    drawn = svg.group(boxes, **svg.STYLES[f"c{colour(lanes, lane)}"]) + svg.group(
        texts, **ink, font_size=FONT
    )
    return svg.group(head + drawn, data_lane=lane)


def colour(lanes: int, lane: int) -> int:
    """The colour of a lane: groups of four lanes of a warp, of eight of a wave of 64."""
    return lane // (8 if lanes == 64 else 4) % 8


def held(layout: Layout) -> Array:
    """What each register of each lane holds: texts (lanes, registers), empty where it holds nothing."""
    places = layout.coordinates()
    found = np.empty((layout.lanes, layout.registers), object)
    for index in np.ndindex(found.shape):
        active = places["active"][index]
        block, row, column = (places[key][index][active] for key in ("block", "row", "col"))
        found[index] = _ranges(block, row, column, layout.blocks > 1)
    return found


def _ranges(block: Array, row: Array, column: Array, blocks: bool) -> str:
    """ "3, 0-1": runs of elements along a row or a column; runs are joined by semicolons."""
    runs: list[list[int]] = []
    for b, r, c in zip(block.tolist(), row.tolist(), column.tolist(), strict=True):
        last = runs[-1] if runs else None
        if last and last[0] == b and last[1] == last[2] == r and c == last[4] + 1:
            last[4] = c
        elif last and last[0] == b and last[3] == last[4] == c and r == last[2] + 1:
            last[2] = r
        else:
            runs.append([b, r, r, c, c])
    texts = [f"{_range(r0, r1)}, {_range(c0, c1)}" for _, r0, r1, c0, c1 in runs]
    return (f"{runs[0][0]}: " if blocks and runs else "") + "; ".join(texts)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _further(layout: Layout, axis: int, period: int) -> str:
    """How block, row and column go on along lanes (axis 0) or registers (axis 1),
    where they do so regularly."""
    places = layout.coordinates()
    values = np.moveaxis(np.stack([places[key] for key in ("block", "row", "col", "active")]), axis + 1, 1)
    count = values.shape[1] // period
    if values.shape[1] % period:
        return "the matrix picture has their pattern."
    parts = values.reshape(4, count, period, -1)
    inside = parts[3, 0].astype(bool)
    gain = (parts[:, 1] - parts[:, 0])[:, inside]
    steps = np.arange(count)[None, :, None] * gain[:, None, :1]
    if np.any(parts[3] != parts[3, 0]) or np.any(parts[:, :, inside] != parts[:, :1, inside] + steps):
        return "the matrix picture has their pattern."
    adds = ", ".join(
        f"{part} + {n}" for part, n in zip(("block", "row", "column"), gain[:3, 0].tolist(), strict=True) if n
    )
    return f"{counted(period, ('lane', 'register')[axis])} further: {adds}."


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
        notes.append(f"{rest} go on in the same way: {counted(drawn * size, what)} further, {adds}.")
    return notes
