"""Register fragments: the matrix with the lane of every element,
and the lanes with the elements of every register.

All cells of a lane stand in one <g data-lane="...">, so that hovering highlights them without a script;
fragments.js joins the pictures of a page and makes taps and arrow keys work, fragments.css holds the colours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from golden.errors import UnknownNameError, nearest
from golden.model.instruction import Instruction
from golden.publish.pictures import fragment_lanes, svg
from golden.publish.pictures.fragment_lanes import (
    FONT,
    Words,
    axes,
    cut_notes,
    layout_notes,
    letter,
    span,
    title,
    tooltip,
)
from golden.publish.pictures.places import Grid, grid
from golden.registers.layouts import Layout

OPERANDS = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b")
_MARGIN, _HEAD, _ROW_HEAD = 8.0, 40.0, 30.0  # px: around all, words above, row numbers
_ROOM = svg.WIDTH - 2 * _MARGIN - _ROW_HEAD
_Place = tuple[float, float, tuple[int, int, int]]
"""x, y and (block, row, column) of a cell that is drawn."""


def operands(ins: Instruction) -> tuple[str, ...]:
    """The operands whose register layout is known; `matrix` and `lanes` draw exactly these."""
    return tuple(_layouts(ins))


def _layouts(ins: Instruction) -> dict[str, Layout]:
    known = ins.fragments
    return {name: layout for name in OPERANDS if (layout := getattr(known, name, None)) is not None}


def matrix(ins: Instruction, operand: str, name: str = "matrix", register_view: bool = False) -> str:
    """Returns the matrix of an operand, every element labelled lane:register(:part), as SVG; name: prefix of
    its ids.

    Elements of 8 bits and less that fill a register side by side share a cell. Large matrices are cut to
    whole periods of their pattern; the picture says how it goes on. register_view: the inverse, see `lanes`.

    Raises:
        UnknownNameError: the operand has no register layout.
    """
    if register_view:
        return lanes(ins, operand, name)
    layout = _layout(ins, operand)
    legend, drawn = _matrix(replace(layout, name=""), Words.of(ins, layout))
    head = (title(ins, operand, layout), legend)
    return _figure(head, drawn, name, f"Matrix {operand} of {ins.name}: lane and register of each element")


def lanes(ins: Instruction, operand: str, name: str = "lanes") -> str:
    """Returns lanes as rows and registers as columns with the elements that each holds, as SVG; name: prefix
    of its ids.

    Raises:
        UnknownNameError: the operand has no register layout.
    """
    layout = _layout(ins, operand)
    rows, columns = axes(operand)
    block = "block: " if layout.blocks > 1 else ""
    head = (
        f"{letter(operand)}: what each register of a lane holds",
        f"{block}row ({rows}), column ({columns}); several elements from the lowest bits up",
    )
    return _figure(
        head,
        _lanes(replace(layout, name=""), Words.of(ins, layout)),
        name,
        f"Registers of {operand} of {ins.name}: elements in each lane",
    )


def _layout(ins: Instruction, operand: str) -> Layout:
    known = _layouts(ins)
    if operand not in known:
        expected = (
            f"expected one of {', '.join(known)}{nearest(operand, known)}"
            if known
            else "expected an operand in registers"
        )
        raise UnknownNameError(f"operand '{operand}' of {ins.name} has no register layout, {expected}")
    return known[operand]


@dataclass(frozen=True)
class _Drawn:
    """The part of a figure that instructions of one layout share."""

    body: str
    right: float
    height: float
    notes: tuple[str, ...]


@lru_cache(maxsize=256)
def _matrix(layout: Layout, words: Words) -> tuple[str, _Drawn]:
    """The legend and the drawing of a matrix; many instructions share one."""
    cells = grid(layout)
    size = _Size.fitting(cells, words)
    shown = _shown(cells, size)
    body, right, height = _panels(cells, size, shown, words)
    notes = (*cut_notes(cells, shown), *layout_notes(layout, words))
    return words.legend(cells), _Drawn("\n".join(body), right, height, notes)


@lru_cache(maxsize=256)
def _lanes(layout: Layout, words: Words) -> _Drawn:
    body, right, height, notes = fragment_lanes.table(layout, words, _MARGIN + _ROW_HEAD, _HEAD, _ROOM)
    return _Drawn("\n".join(body), right, height, (*notes, *layout_notes(layout, words)))


def _figure(head: tuple[str, str], drawn: _Drawn, name: str, words: str) -> str:
    # Room for the words "lane 127".
    readout_width = 64.0
    heads = svg.width_of(head[0], 12 * svg.BOLD) + readout_width, svg.width_of(head[1], 10.5)
    width = min(max(drawn.right, *(_MARGIN + words for words in heads)) + _MARGIN, svg.WIDTH)
    readout = {
        "class": "mg-text mg-readout",
        "fill": svg.STYLES["text"]["fill"],
        "text-anchor": "end",
        "font-weight": "bold",
    }
    parts = [
        svg.text(_MARGIN, 15, head[0], font_size=12, font_weight="bold"),
        svg.text(_MARGIN, 30, head[1], "muted", font_size=10.5),
        svg.element("text", " ", x=width - _MARGIN, y=15, **readout),
        drawn.body,
    ]
    y = _HEAD + drawn.height + 16
    for line in [line for note in drawn.notes for line in svg.wrap(note, width - 2 * _MARGIN, 10.5)]:
        parts.append(svg.text(_MARGIN, y, line, "muted", font_size=10.5))
        y += 14
    return svg.document(width, y - 6, [svg.group("\n".join(parts), class_="mg-fragment")], name, words)


@dataclass(frozen=True)
class _Size:
    """A cell's size in pixels, and whether lane and register stand on two lines."""

    width: float
    height: float
    stacked: bool = False
    head: float = _ROW_HEAD
    """Room for the row numbers."""

    @classmethod
    def fitting(cls, cells: Grid, words: Words) -> _Size:
        """The size at which the longest label fits; on two lines where that brings all columns
        on the picture."""
        layout, columns = cells.layout, int(cells.lane.shape[2])
        longest = words.label(cells, layout.lanes - 1, layout.registers - 1, words.parts - 1)
        label = svg.sans_width_of(longest, FONT) + 2
        if cells.across > 1:
            head = svg.width_of(span(columns - 1, cells.across), FONT) + 6
            return cls(max(label + 4, head, 11.0 * cells.across if cells.across <= 8 else 0), 30)
        if cells.down > 1:
            head = svg.width_of(span(int(cells.lane.shape[1]) - 1, cells.down), FONT) + 6
            return cls(label + 16, 11.0 * cells.down if cells.down <= 8 else 32, head=head)
        lane, _, rest = longest.partition(":")
        narrow = max(svg.sans_width_of(lane, FONT), svg.sans_width_of(rest, FONT)) + 2
        if columns * label > _ROOM and columns * narrow <= _ROOM:
            return cls(min(label, _ROOM / columns), 25, True)
        return cls(min(label + 6, max(label, _ROOM / columns)), 16)


def _shown(cells: Grid, size: _Size) -> tuple[int, int, int]:
    """How many blocks, rows and columns of cells are drawn."""
    columns = cells.period(2, max(int(_ROOM / size.width), 1))
    tallest = 840.0
    rows = cells.period(1, max(int(tallest / size.height), 1))
    most = _across(columns, size) * max(int(tallest / (rows * size.height + 30)), 1)
    return cells.period(0, most), rows, columns


def _across(columns: int, size: _Size) -> int:
    """How many blocks fit side by side."""
    return max(int((svg.WIDTH - 2 * _MARGIN) / (columns * size.width + size.head)), 1)


def _panels(
    cells: Grid, size: _Size, shown: tuple[int, int, int], words: Words
) -> tuple[list[str], float, float]:
    """All blocks that are drawn; returns markup, right edge and height."""
    blocks, rows, columns = shown
    across, head = _across(columns, size), 30 if blocks > 1 else 14
    step = rows * size.height + head + 2
    parts: list[str] = []
    found: dict[int, list[_Place]] = {}
    for block in range(blocks):
        x = _MARGIN + size.head + (block % across) * (columns * size.width + size.head)
        y = _HEAD + (block // across) * step + head
        if blocks > 1:
            parts.append(svg.text(x, y - 16, f"block {block}", font_size=10.5, font_weight="bold"))
        parts += _rulers(cells, size, rows, columns, x, y)
        for row in range(rows):
            for column in range(columns):
                place: _Place = (x + column * size.width, y + row * size.height, (block, row, column))
                found.setdefault(int(cells.lane[block, row, column]), []).append(place)
    # Cells that can have a tooltip each; larger pictures have one for each lane, to stay small.
    most_titles = 520
    titles = blocks * rows * columns <= most_titles
    parts += [_lane(cells, size, words, lane, found[lane], titles) for lane in sorted(found)]
    parts += _digits(cells, size, [place for places in found.values() for place in places])
    right = _MARGIN + min(blocks, across) * (columns * size.width + size.head)
    return parts, right, -(-blocks // across) * step + 4


def _rulers(cells: Grid, size: _Size, rows: int, columns: int, x: float, y: float) -> list[str]:
    """Row and column numbers along the edges."""
    above = [(x + (i + 0.5) * size.width, y - 4, span(i, cells.across), "middle") for i in range(columns)]
    left = [(x - 4, y + (i + 0.5) * size.height + 4, span(i, cells.down), "end") for i in range(rows)]
    return [
        svg.text(a, b, words, "muted", anchor=anchor, font_size=FONT) for a, b, words, anchor in above + left
    ]


def _lane(cells: Grid, size: _Size, words: Words, lane: int, places: list[_Place], titles: bool) -> str:
    """One lane: its cells in its colour and their labels."""
    boxes, labels = "", ""
    for x, y, place in places:
        title = svg.element("title", svg.escape(tooltip(cells, words, place))) if titles else ""
        boxes += svg.element("rect", title, x=x, y=y, width=size.width, height=size.height)
        labels += _label(
            cells, size, words.label(cells, lane, int(cells.register[place]), int(cells.element[place])), x, y
        )
    return fragment_lanes.lane_group(
        cells.layout.lanes, lane, boxes, labels, "" if titles else f"lane {lane}"
    )


def _label(cells: Grid, size: _Size, words: str, x: float, y: float) -> str:
    middle = x + size.width / 2
    if size.stacked:
        lane, _, rest = words.partition(":")
        return _tight(lane, middle, y + 11, size.width) + _tight(rest, middle, y + 21, size.width)
    if cells.across > 1:
        return _tight(words, middle, y + 12, size.width)
    if cells.down > 1:
        return _tight(words, middle + 7, y + size.height / 2 + (0 if cells.count > 8 else 4), size.width - 14)
    return _tight(words, middle, y + size.height / 2 + 4, size.width)


def _tight(words: str, x: float, y: float, room: float) -> str:
    """A label; where the monospaced font of a PDF would not fit,
    it is squeezed to the width in DejaVu Sans."""
    squeezed = svg.sans_width_of(words, FONT) if svg.width_of(words, FONT) > room - 1 else None
    return svg.element("text", words, x=x, y=y, textLength=squeezed)


def _digits(cells: Grid, size: _Size, places: list[_Place]) -> list[str]:
    """The number of each element of a cell in its register."""
    if cells.count == 1:
        return []
    ink: dict[str, Any] = {
        **svg.STYLES["muted"],
        "pointer-events": "none",
        "font-size": FONT,
        "text-anchor": "middle",
    }
    return [
        svg.group(
            (_cell_digits(cells, size, x, y, int(cells.element[place])) for x, y, place in places), **ink
        )
    ]


def _cell_digits(cells: Grid, size: _Size, x: float, y: float, first: int) -> str:
    count = cells.count
    if count > 8:
        words = f"{first}-{first + count - 1}"
        return svg.element("text", words, x=x + size.width / 2 + (7 if cells.down > 1 else 0), y=y + 26)
    if cells.across > 1:
        spots = [(x + (i + 0.5) * size.width / count, y + 26) for i in range(count)]
    else:
        spots = [(x + 8, y + (i + 0.5) * size.height / count + 3.5) for i in range(count)]
    return "".join(svg.element("text", str(first + i), x=a, y=b) for i, (a, b) in enumerate(spots))
