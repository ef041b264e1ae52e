"""The inverse of a fragment's matrix: lanes as rows, registers as columns, and the elements that each
register holds."""

from __future__ import annotations

import numpy as np

from golden.publish.pictures import svg
from golden.publish.pictures.fragment_words import Words, plural
from golden.publish.pictures.places import Array
from golden.registers.layouts import Layout

_FONT, _STEP = 10, 15.0


def table(
    layout: Layout, words: Words, x: float, y: float, width: float
) -> tuple[list[str], float, float, list[str]]:
    """Draws the table with its top left corner at x, y; returns markup, right edge, height and the notes
    on what is left out."""
    labels = held(layout)
    widest = max(max(svg.width_of(text, _FONT) for text in labels.ravel()) + 8, 44)
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
            x + (i + 0.5) * widest, y + 10, f"{words.register}{i}", "muted", anchor="middle", font_size=_FONT
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
        texts, **ink, font_size=_FONT
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
    return f"{plural(period, ('lane', 'register')[axis])} further: {adds}."
