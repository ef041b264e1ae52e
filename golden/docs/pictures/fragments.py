"""Register fragments: the matrix with the lane of every element, and the lanes with the elements of every register.

All cells of a lane stand in one <g data-lane="...">, so that hovering highlights them without a script; fragments.js joins
the pictures of a page and makes taps and arrow keys work, fragments.css holds the colours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from golden.docs.pictures import svg
from golden.docs.pictures.places import Array, Grid, elements, grid
from golden.errors import UnknownNameError, nearest
from golden.instruction import Instruction
from golden.layouts import Layout

OPERANDS = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b")
WIDTH = 760
_FONT = 10
_TALLEST = 840.0
_MOST_TITLES = 520
"""Cells that can have a tooltip each; larger pictures have one for each lane, to stay small."""
_MARGIN, _HEAD, _ROW_HEAD = 8.0, 40.0, 34.0
_AXES = {
    "a": ("m", "k"),
    "b": ("k", "n"),
    "metadata": ("m", "chunk of k"),
    "scale_a": ("m", "block of k"),
    "scale_b": ("block of k", "n"),
}


def operands(ins: Instruction) -> tuple[str, ...]:
    """The operands whose register layout is known; `matrix` and `lanes` draw exactly these."""
    layouts = ins.fragments
    return tuple(name for name in OPERANDS if getattr(layouts, name, None) is not None)


def matrix(ins: Instruction, operand: str, name: str = "matrix", register_view: bool = False) -> str:
    """Returns the matrix of an operand, every element labelled lane:register(:part), as SVG; name: prefix of its ids.

    Elements of 8 bits and less that fill a register side by side share a cell. Large matrices are cut to whole periods of
    their pattern; the picture says how it goes on. register_view: the inverse, see `lanes`.

    Raises:
        UnknownNameError: the operand has no register layout.
    """
    if register_view:
        return lanes(ins, operand, name)
    cells = grid(_layout(ins, operand))
    words = _Words.of(ins, cells.layout)
    size = _Size.fitting(cells, words)
    shown = _shown(cells, size)
    head = [_title(ins, operand, cells), words.legend(cells)]
    body, height = _panels(cells, size, shown, words)
    notes = [*_cut_notes(cells, shown), *_layout_notes(cells.layout, words)]
    return _figure(head, body, height, notes, name, f"Matrix {operand} of {ins.name}: lane and register of each element")


def lanes(ins: Instruction, operand: str, name: str = "lanes") -> str:
    """Returns lanes as rows and registers as columns with the elements that each holds, as SVG; name: prefix of its ids.

    Raises:
        UnknownNameError: the operand has no register layout.
    """
    layout = _layout(ins, operand)
    words = _Words.of(ins, layout)
    labels = _held(layout)
    body, height, notes = _lane_table(layout, labels, words)
    rows, columns = _axes(operand)
    head = [
        f"{operand.upper() if len(operand) == 1 else operand}: what each register of a lane holds",
        f"{'block: ' if layout.blocks > 1 else ''}row ({rows}), column ({columns}); several elements from the lowest bits up",
    ]
    notes = [*notes, *_layout_notes(layout, words)]
    return _figure(head, body, height, notes, name, f"Registers of {operand} of {ins.name}: elements in each lane")


def _layout(ins: Instruction, operand: str) -> Layout:
    known = operands(ins)
    if operand not in known:
        told = ", ".join(known) or "none: its operands do not live in registers"
        raise UnknownNameError(
            f"operand '{operand}' of {ins.name} has no register layout, expected one of {told}{nearest(operand, known)}"
        )
    layout: Layout = getattr(ins.fragments, operand)
    return layout


def _axes(operand: str) -> tuple[str, str]:
    return _AXES.get(operand, ("m", "n"))


def _title(ins: Instruction, operand: str, cells: Grid) -> str:
    layout, (rows, columns) = cells.layout, _axes(operand)
    fmt = ins.formats[operand].name if operand in ins.formats else "4-bit codes"
    blocks = f"{layout.blocks} blocks of " if layout.blocks > 1 else ""
    stored = ", stored elements" if operand == "a" and ins.sparse else ""
    label = operand.upper() if len(operand) == 1 else operand
    return f"{label}: {blocks}{layout.rows} rows ({rows}) {svg.TIMES} {layout.cols} columns ({columns}{stored}), {fmt}"


def _figure(head: list[str], body: list[str], height: float, notes: list[str], name: str, title: str) -> str:
    parts = [
        svg.text(_MARGIN, 15, head[0], font_size=12, font_weight="bold"),
        svg.text(_MARGIN, 30, head[1], "muted", font_size=10.5),
    ]
    parts.append(
        svg.text(WIDTH - _MARGIN, 30, " ", **{"class": "mg-text mg-readout", "text-anchor": "end", "font-weight": "bold"})
    )
    parts += body
    y = _HEAD + height + 16
    for note in notes:
        for line in svg.wrap(note, WIDTH - 2 * _MARGIN, 10.5):
            parts.append(svg.text(_MARGIN, y, line, "muted", font_size=10.5))
            y += 14
    content = svg.group("\n".join(parts), class_="mg-fragment")
    return svg.document(WIDTH, y - 6, [content], name, title)


# Words -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Words:
    """How lanes, registers and parts of registers are called: T5:r1:h on NVIDIA, L5:v1:h on AMD."""

    lane: str
    register: str
    parts: int

    @classmethod
    def of(cls, ins: Instruction, layout: Layout) -> _Words:
        amd = ins.layout == "mfma"
        return cls("L" if amd else "T", "v" if amd else "r", layout.elements_per_register)

    def part(self, element: int) -> str:
        """The part of the register that an element takes: nothing, l(ow) or h(igh), or its number."""
        return "" if self.parts == 1 else ("l", "h")[element] if self.parts == 2 else str(element)

    def whole(self, lane: int, register: int) -> str:
        return f"{self.lane}{lane}:{self.register}{register}"

    def label(self, cells: Grid, lane: int, register: int, element: int) -> str:
        part = self.part(element) if cells.down == cells.across == 1 else ""
        return self.whole(lane, register) + (f":{part}" if part else "")

    def legend(self, cells: Grid) -> str:
        lane = "lane" if self.lane == "L" else "thread (lane)"
        kind = "VGPR" if self.register == "v" else "register"
        part = ", l low half, h high half" if self.parts == 2 else ""
        inside = "; digits: element in the register, from the lowest bits" if cells.down * cells.across > 1 else ""
        return f"{self.lane}: {lane}, {self.register}: {kind}{part}{inside}"


def _layout_notes(layout: Layout, words: _Words) -> list[str]:
    notes = []
    if layout.register_bits == 64:
        notes.append(
            "Each register is 64 bits wide" + (": an aligned pair of VGPRs, low word first." if words.register == "v" else ".")
        )
    if layout.element_bits < layout.container_bits and layout.register_bits == 32:
        low = layout.element_shift
        notes.append(
            f"Each element takes bits {low + layout.element_bits - 1}:{low} of its {layout.container_bits} bits of the register."
        )
    if layout.selectors:
        notes.append(_selector_note(layout, words))
    return notes


def _selector_note(layout: Layout, words: _Words) -> str:
    chosen = ", ".join(f"{key} = {value}" for key, value in layout.selectors)
    note = f"Drawn for {chosen}."
    if len(layout.selectors) != 1:
        return f"{note} Other selectors take other lanes of the same four, or other bytes."
    key = layout.selectors[0][0]
    places = [(value, found) for value in range(8) if (found := _selected(layout, key, value)) is not None]
    if len(places) > 1:
        note += " Lanes whose codes count: " + "; ".join(f"{key} {value}: {found}" for value, found in places) + "."
    return note


def _selected(layout: Layout, key: str, value: int) -> str | None:
    """Which lanes and bits a selector value takes, None where there is no such value."""
    from golden.errors import OperandError

    try:
        active = layout.select(**{key: value}).coordinates()["active"]
    except OperandError:
        return None
    lanes_in, bits = np.flatnonzero(active.any(axis=(1, 2))), np.flatnonzero(active.any(axis=(0, 1)))
    who = (
        "all"
        if lanes_in.size == layout.lanes
        else "lane mod 4 = " + " or ".join(str(i) for i in sorted({int(i) % 4 for i in lanes_in}))
    )
    width = layout.container_bits
    return who if bits.size * width == layout.register_bits else f"{who}, bits {(bits[-1] + 1) * width - 1}:{bits[0] * width}"


# The matrix --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Size:
    """A cell's size in pixels, and whether lane and register stand on two lines."""

    width: float
    height: float
    stacked: bool = False

    @classmethod
    def fitting(cls, cells: Grid, words: _Words) -> _Size:
        layout = cells.layout
        longest = words.label(cells, layout.lanes - 1, layout.registers - 1, words.parts - 1)
        label = svg.width_of(longest, _FONT) + 5
        if cells.across > 1:
            return cls(max(label, 11.0 * cells.across if cells.across <= 8 else 0), 30)
        if cells.down > 1:
            return cls(label + 14, 11.0 * cells.down if cells.down <= 8 else 32)
        room = WIDTH - 2 * _MARGIN - _ROW_HEAD
        columns = int(cells.lane.shape[2])
        lane, _, rest = longest.partition(":")
        narrow = max(svg.width_of(lane, _FONT), svg.width_of(rest, _FONT)) + 2
        if columns * label > room and columns * narrow <= room:
            return cls(narrow, 25, True)
        return cls(label, 16)


def _shown(cells: Grid, size: _Size) -> tuple[int, int, int]:
    """How many blocks, rows and columns of cells are drawn."""
    room = WIDTH - 2 * _MARGIN - _ROW_HEAD
    columns = cells.period(2, max(int(room / size.width), 1))
    rows = cells.period(1, max(int(_TALLEST / size.height), 1))
    beside = max(int((WIDTH - 2 * _MARGIN) / (columns * size.width + _ROW_HEAD)), 1)
    most = beside * max(int(_TALLEST / (rows * size.height + 30)), 1)
    return cells.period(0, most), rows, columns


def _panels(cells: Grid, size: _Size, shown: tuple[int, int, int], words: _Words) -> tuple[list[str], float]:
    """All blocks that are drawn, side by side as far as they fit; returns markup and height."""
    blocks, rows, columns = shown
    width = columns * size.width + _ROW_HEAD
    beside = max(int((WIDTH - 2 * _MARGIN) / width), 1)
    step = rows * size.height + (32 if blocks > 1 else 14)
    parts: list[str] = []
    found: dict[int, list[tuple[float, float, int, int, int]]] = {}
    for block in range(blocks):
        x = _MARGIN + _ROW_HEAD + (block % beside) * width
        y = _HEAD + (block // beside) * step + (30 if blocks > 1 else 14)
        if blocks > 1:
            parts.append(svg.text(x, y - 16, f"block {block}", font_size=10.5, font_weight="bold"))
        parts += _rulers(cells, size, rows, columns, x, y)
        for row in range(rows):
            for column in range(columns):
                place = (x + column * size.width, y + row * size.height, block, row, column)
                found.setdefault(int(cells.lane[block, row, column]), []).append(place)
    titles = blocks * rows * columns <= _MOST_TITLES
    parts += [_lane_cells(cells, size, words, lane, found[lane], titles) for lane in sorted(found)]
    parts += _digits(cells, size, found)
    return parts, -(-blocks // beside) * step + 4


def _rulers(cells: Grid, size: _Size, rows: int, columns: int, x: float, y: float) -> list[str]:
    """Row and column numbers along the edges."""
    heads = [
        svg.text(x + (i + 0.5) * size.width, y - 4, _span(i, cells.across), "muted", anchor="middle", font_size=_FONT)
        for i in range(columns)
    ]
    return heads + [
        svg.text(x - 4, y + (i + 0.5) * size.height + 4, _span(i, cells.down), "muted", anchor="end", font_size=_FONT)
        for i in range(rows)
    ]


def _span(i: int, size: int) -> str:
    return str(i) if size == 1 else f"{i * size}-{(i + 1) * size - 1}"


def _lane_cells(
    cells: Grid, size: _Size, words: _Words, lane: int, places: list[tuple[float, float, int, int, int]], titles: bool
) -> str:
    """One lane: its cells in its colour, their labels, a tooltip."""
    boxes, labels = "", ""
    for x, y, block, row, column in places:
        register, element = int(cells.register[block, row, column]), int(cells.element[block, row, column])
        title = (
            svg.element("title", svg.escape(_tooltip(cells, words, lane, register, element, block, row, column)))
            if titles
            else ""
        )
        boxes += svg.element("rect", title, x=x, y=y, width=size.width, height=size.height)
        labels += _label(cells, size, words.label(cells, lane, register, element), x, y)
    style = {key: value for key, value in svg.STYLES[f"c{colour(cells.layout.lanes, lane)}"].items()}
    head = "" if titles else svg.element("title", f"lane {lane}")
    ink = {
        "class": "mg-text",
        "fill": svg.STYLES["text"]["fill"],
        "pointer-events": "none",
        "text-anchor": "middle",
        "font-size": _FONT,
    }
    return svg.group(head + svg.group(boxes, **style) + svg.group(labels, **ink), data_lane=lane)


def colour(count: int, lane: int) -> int:
    """The colour of a lane: eight groups of four of a warp, or of eight of a wave of 64."""
    return lane // (8 if count == 64 else 4) % 8


def _label(cells: Grid, size: _Size, words: str, x: float, y: float) -> str:
    if size.stacked:
        lane, _, rest = words.partition(":")
        middle = x + size.width / 2
        return svg.element("text", lane, x=middle, y=y + 11) + svg.element("text", rest, x=middle, y=y + 21)
    if cells.across > 1:
        return svg.element("text", words, x=x + size.width / 2, y=y + 12)
    shift = 7 if cells.down > 1 else 0
    return svg.element("text", words, x=x + size.width / 2 + shift, y=y + size.height / 2 + 4)


def _tooltip(cells: Grid, words: _Words, lane: int, register: int, element: int, block: int, row: int, column: int) -> str:
    layout = cells.layout
    size = cells.down * cells.across
    row_words, column_words = _span(row, cells.down), _span(column, cells.across)
    where = f"block {block}, " if layout.blocks > 1 else ""
    low, high = element * layout.container_bits, (element + size) * layout.container_bits - 1
    bits = f", bits {high}:{low}" if (low, high) != (0, layout.register_bits - 1) else ""
    return f"{where}row {row_words}, column {column_words}: lane {lane}, {'VGPR' if words.register == 'v' else 'register'} {register}{bits}"


def _digits(cells: Grid, size: _Size, found: dict[int, list[tuple[float, float, int, int, int]]]) -> list[str]:
    """The number of each element of a cell in its register: one <text> with a position for each digit."""
    count = cells.down * cells.across
    if count == 1:
        return []
    texts = ""
    for places in found.values():
        for x, y, block, row, column in places:
            first = int(cells.element[block, row, column])
            texts += _cell_digits(cells, size, x, y, first, count)
    ink = {
        "class": "mg-muted",
        "fill": svg.STYLES["muted"]["fill"],
        "pointer-events": "none",
        "font-size": 9,
        "text-anchor": "middle",
    }
    return [svg.group(texts, **ink)]


def _cell_digits(cells: Grid, size: _Size, x: float, y: float, first: int, count: int) -> str:
    if count > 8:
        words = f"bits {first}-{first + count - 1}"
        return svg.element("text", words, x=x + size.width / 2 + (7 if cells.down > 1 else 0), y=y + 25)
    digits = range(first, first + count)
    if cells.across > 1:
        step = size.width / count
        return "".join(svg.element("text", str(digit), x=x + (i + 0.5) * step, y=y + 25) for i, digit in enumerate(digits))
    step = size.height / count
    return "".join(svg.element("text", str(digit), x=x + 8, y=y + (i + 0.5) * step + 3.5) for i, digit in enumerate(digits))


def _cut_notes(cells: Grid, shown: tuple[int, int, int]) -> list[str]:
    """How the pattern goes on beyond what is drawn."""
    notes = []
    for axis, (drawn, what, size) in enumerate(
        zip(shown, ("block", "row", "column"), (1, cells.down, cells.across), strict=True)
    ):
        total = int(cells.lane.shape[axis])
        if drawn == total:
            continue
        gain = cells.repeats(axis, drawn)
        rest = f"{what.capitalize()}s {drawn * size} to {total * size - 1}"
        if gain is None:
            notes.append(f"{rest} are not drawn.")
            continue
        adds = [f"{part} + {value}" for part, value in zip(("lane", "register", "element"), gain, strict=True) if value]
        notes.append(
            f"{rest} go on in the same way: {drawn * size} {what}{'s' if drawn * size > 1 else ''} further, {', '.join(adds)}."
        )
    return notes


# The lanes ---------------------------------------------------------------------------------------------------------------


def _held(layout: Layout) -> Array:
    """What each register of each lane holds: texts (lanes, registers), empty where it holds nothing."""
    places = layout.coordinates()
    held = np.empty((layout.lanes, layout.registers), object)
    for index in np.ndindex(held.shape):
        active = places["active"][index]
        block, row, column = (places[key][index][active] for key in ("block", "row", "col"))
        held[index] = _ranges(block, row, column, layout.blocks > 1)
    return held


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
    prefix = f"{runs[0][0]}: " if blocks and runs else ""
    return prefix + "; ".join(texts)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _lane_table(layout: Layout, labels: Array, words: _Words) -> tuple[list[str], float, list[str]]:
    """The table, its height and the notes on what is left out."""
    width = max(max(svg.width_of(text, _FONT) for text in labels.ravel()) + 8, 44)
    columns = min(layout.registers, max(int((WIDTH - 2 * _MARGIN - _ROW_HEAD) / width), 1))
    rows, step = min(layout.lanes, 64 if layout.lanes == 64 and columns <= 8 else 32), 15.0
    notes = []
    if columns < layout.registers:
        columns = max((n for n in (1, 2, 4, 8, 16, 32) if n <= columns), default=columns)
        notes.append(f"Registers {columns} to {layout.registers - 1} are not drawn; {_gain(layout, 1, columns)}")
    if rows < layout.lanes:
        notes.append(f"Lanes {rows} to {layout.lanes - 1} are not drawn; {_gain(layout, 0, rows)}")
    x, y = _MARGIN + _ROW_HEAD, _HEAD + 14
    parts = [
        svg.text(x + (i + 0.5) * width, y - 4, f"{words.register}{i}", "muted", anchor="middle", font_size=_FONT)
        for i in range(columns)
    ]
    for lane in range(rows):
        top = y + lane * step
        boxes = "".join(svg.element("rect", x=x + i * width, y=top, width=width, height=step) for i in range(columns))
        texts = svg.element("text", f"{words.lane}{lane}", x=x - 17, y=top + 11)
        texts += "".join(
            svg.element("text", svg.escape(labels[lane, i]), x=x + (i + 0.5) * width, y=top + 11)
            for i in range(columns)
            if labels[lane, i]
        )
        ink = {
            "class": "mg-text",
            "fill": svg.STYLES["text"]["fill"],
            "pointer-events": "none",
            "text-anchor": "middle",
            "font-size": _FONT,
        }
        style = svg.STYLES[f"c{colour(layout.lanes, lane)}"]
        head = svg.element("title", f"lane {lane}")
        parts.append(svg.group(head + svg.group(boxes, **style) + svg.group(texts, **ink), data_lane=lane))
    return parts, 14 + rows * step + 4, notes


def _gain(layout: Layout, axis: int, period: int) -> str:
    """How rows and columns go on along lanes (axis 0) or registers (axis 1)."""
    places = layout.coordinates()
    values = np.moveaxis(np.stack([places[key] for key in ("block", "row", "col")]), axis + 1, 1)
    active = np.moveaxis(places["active"], axis, 0)
    what = ("lanes", "registers")[axis]
    size = values.shape[1]
    if size % period == 0:
        parts = values.reshape(3, size // period, period, -1)
        same = np.all(active.reshape(size // period, -1) == active.reshape(size // period, -1)[0])
        shift = parts[:, 1] - parts[:, 0]
        on = active.reshape(size // period, period, -1)[0]
        gain = shift[:, on][:, 0] if on.any() else np.zeros(3, int)
        steps = np.arange(size // period)[None, :, None, None] * gain[:, None, None, None]
        regular = same and np.all((parts == parts[:, :1] + steps)[:, :, on])
        if regular:
            adds = [f"{part} + {int(value)}" for part, value in zip(("block", "row", "column"), gain, strict=True) if value]
            return f"{period} {what} further: {', '.join(adds) or 'the same'}."
    return "they follow the formulas of the layout."


__all__ = ["OPERANDS", "colour", "elements", "lanes", "matrix", "operands"]
