"""The operations of a program and how they hand over: slices of k, seeds,
additions of partial results, conversions."""

from __future__ import annotations

from dataclasses import dataclass

from golden.explain.specification import index_text
from golden.model.instruction import Instruction
from golden.program.program import Operation
from golden.publish.pictures import svg
from golden.publish.pictures.datapath import title_of

_LEFT, _RIGHT = 120.0, svg.WIDTH - 12.0
_HEIGHT, _GAP = 62.0, 26.0  # px of a box and between two of them


@dataclass
class _Sheet:
    """Wires from results to the operations that read them. Each result has a lane of its own left
    of the boxes."""

    lanes: dict[str, float]
    starts: dict[str, float]
    parts: list[str]


def program(ins: Instruction, name: str = "program") -> str:
    """Returns the operations of the program, the k that each takes and their wires as SVG; name: prefix of
    its ids."""
    operations = ins.program.operations
    shown = list(enumerate(operations))
    # Operations of a long program that are drawn.
    first_drawn, last_drawn = 4, 2
    hidden = len(shown) - first_drawn - last_drawn
    if hidden > 1:
        shown = [*shown[:first_drawn], *shown[-last_drawn:]]
    sheet = _Sheet({}, {}, [])
    _lanes(sheet, [operation for _, operation in shown])
    y = 16.0
    sheet.parts.append(svg.text(12, y + 8, f"c: {ins.formats['c'].name}", font_weight="bold"))
    sheet.starts["c"] = y + 14
    y += 34
    for place, (index, operation) in enumerate(shown):
        if hidden > 1 and place == first_drawn:
            y = _ellipsis(sheet, y, hidden)
        _box(sheet, ins, index, operation, y)
        y += _HEIGHT + _GAP
    last = operations[-1]
    sheet.parts.append(svg.text(_LEFT + 10, y + 2, f"d: {last.out_format.name}", font_weight="bold"))
    return svg.document(svg.WIDTH, y + 14, sheet.parts, name, f"Program of {ins.name}")


def _lanes(sheet: _Sheet, operations: list[Operation]) -> None:
    """Gives c and every result that is not read by the next operation alone a lane."""
    readers: dict[str, list[int]] = {}
    for i, operation in enumerate(operations):
        for source in (operation.seed, *operation.addends):
            readers.setdefault(source, []).append(i)
    written = {operation.to: i for i, operation in enumerate(operations)}
    free = _LEFT - 22
    for source, users in readers.items():
        if source == "zero" or users == [written.get(source, -2) + 1]:
            continue
        sheet.lanes[source] = free
        free -= 18


def _box(sheet: _Sheet, ins: Instruction, index: int, operation: Operation, y: float) -> None:
    """One operation: its name, the strip of its k, what it starts from and what it gives."""
    sheet.parts.append(
        svg.rect(_LEFT, y, _RIGHT - _LEFT, _HEIGHT, "block" if operation.k_index else "block2", rx=4)
    )
    head = svg.wrap(f"{index}: {title_of(operation)}", _RIGHT - _LEFT - 20, 12 * svg.BOLD)
    words = head[0] if len(head) == 1 else f"{index}: {operation.algorithm}"
    sheet.parts.append(svg.text(_LEFT + 10, y + 17, words, font_size=12, font_weight="bold"))
    start = {"zero": "+0"}.get(operation.seed, operation.seed)
    words = f"starts from {start} ({operation.seed_format.name})"
    if operation.addends:
        words += f", adds {', '.join(operation.addends)}"
    if operation.operand_format:
        words += f"; a and b converted to {operation.operand_format.name}"
    sheet.parts.append(svg.text(_LEFT + 10, y + 33, words, "muted"))
    if operation.k_index:
        _strip(sheet, ins, operation, y + 41)
    _wires_in(sheet, operation, y)
    end = y + _HEIGHT
    sheet.parts.append(
        svg.text(_LEFT + 36, end + 15, f"{operation.to} ({operation.out_format.name})", "muted", font_size=10)
    )
    sheet.parts.append(
        svg.arrow([(_LEFT + 24, end), (_LEFT + 24, end + _GAP - 8 if operation.to == "d" else end + _GAP)])
    )
    sheet.starts[operation.to] = end
    lane = sheet.lanes.get(operation.to)
    if lane is not None:
        sheet.parts.append(svg.line([(_LEFT + 24, end + 8), (lane, end + 8)]))
        sheet.starts[operation.to] = end + 8


def _strip(sheet: _Sheet, ins: Instruction, operation: Operation, y: float) -> None:
    """All products of the dot product as a row of cells; this operation's cells are filled."""
    words = f"k = {index_text(operation.k_index)}"
    width = (_RIGHT - _LEFT - 20 - 150) / ins.stored_k
    used = set(operation.k_index)
    runs: list[list[int]] = []
    for k in sorted(used):
        if runs and runs[-1][1] == k:
            runs[-1][1] = k + 1
        else:
            runs.append([k, k + 1])
    left = _LEFT + 10
    sheet.parts.append(svg.rect(left, y, width * ins.stored_k, 12, "paper"))
    sheet.parts += [
        svg.rect(left + width * first, y, width * (end - first), 12, "accent") for first, end in runs
    ]
    if width >= 4:
        ticks = "".join(f"M{svg.number(left + width * i)} {svg.number(y)}v12" for i in range(1, ins.stored_k))
        sheet.parts.append(svg.path(ticks, stroke_width=0.5))
    shown = svg.wrap(words.replace(",", ", "), 140, 10)
    text = shown[0] if len(shown) == 1 else f"{len(used)} of {ins.stored_k} k"
    sheet.parts.append(svg.text(left + width * ins.stored_k + 8, y + 10, text, "muted", font_size=10))


def _wires_in(sheet: _Sheet, operation: Operation, y: float) -> None:
    for place, source in enumerate((operation.seed, *operation.addends)):
        lane = sheet.lanes.get(source)
        if lane is None or source not in sheet.starts:
            continue
        height = y + 24 + 12 * place
        sheet.parts.append(svg.arrow([(lane, sheet.starts[source]), (lane, height), (_LEFT, height)]))
        sheet.parts.append(svg.text(lane + 3, height - 3, source, "muted", font_size=10))


def _ellipsis(sheet: _Sheet, y: float, hidden: int) -> float:
    words = (
        f"… {hidden} more operations of the same kind, each with the next k, each starting from the one "
        "before …"
    )
    sheet.parts.append(svg.text(_LEFT + 10, y + 12, words, "muted"))
    sheet.parts.append(svg.line([(_LEFT + 24, y + 18), (_LEFT + 24, y + 34)], stroke_dasharray="2 3"))
    return y + 36
