"""The datapath of one operation, drawn from its steps and the widths of its registers."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from golden.errors import UnknownNameError
from golden.explain.specification import index_text
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.algorithms import get_algorithm
from golden.program.program import Operation
from golden.program.steps import (
    Additions,
    Align,
    Flush,
    Fma,
    HiddenBit,
    Multiply,
    Normalize,
    Part,
    Replace,
    Round,
    Scale,
    SpecialValues,
    Step,
    Sum,
)
from golden.program.widths import Node, operand_nodes, operation_nodes
from golden.publish.pictures import bars, svg
from golden.publish.pictures.sheet import (
    BAR_LEFT,
    BAR_RIGHT,
    GAP,
    LEFT,
    ONE,
    SIDE,
    WIDE,
    Rail,
    Sheet,
    exponent_text,
    width_text,
)
from golden.publish.pictures.stages import draw

_LEGEND = (
    "s2.20: sign, 2 integer and 20 fraction bits; u: no sign; e: exponent; dashed: exponents and "
    "special values"
)


def datapath(ins: Instruction, index: int = 0, name: str = "datapath") -> str:
    """Returns the block diagram of one operation of the program as SVG; name: prefix of its ids.

    Every width is that of `golden.program.widths`; every stage is drawn from one step.

    Raises:
        UnknownNameError: the program has no operation of this index.
    """
    operations = ins.program.operations
    if not 0 <= index < len(operations):
        raise UnknownNameError(f"operation {index} of '{ins.name}', expected 0 to {len(operations) - 1}")
    operation = operations[index]
    steps = operation_nodes(ins, operation)
    written = [node for _, nodes in steps for node in nodes if node.format is None]
    sheet = Sheet(ins, operation, bars.Scale.fitting(written, BAR_LEFT, BAR_RIGHT))
    nodes = operand_nodes(ins, operation)
    _head(sheet, index)
    _inputs(sheet, nodes)
    for step, after in steps:
        draw(sheet, step, after, nodes)
        nodes = nodes | {node.register: node for node in after}
    _result(sheet)
    return svg.document(
        svg.WIDTH,
        sheet.y + 8,
        [*sheet.wires, *sheet.parts],
        name,
        f"Datapath of {ins.name}, operation {index}",
    )


def _head(sheet: Sheet, index: int) -> None:
    operation, count = sheet.operation, len(sheet.ins.program.operations)
    words = f"Operation {index} of {count}: " if count > 1 else ""
    words += title_of(operation)
    if operation.k_index:
        words += f", k = {index_text(operation.k_index)}"
    y = 18.0
    for line in svg.wrap(words, svg.WIDTH - 2 * LEFT, 13 * svg.BOLD):
        sheet.parts.append(svg.text(LEFT, y, line, font_size=13, font_weight="bold"))
        y += 17
    sheet.parts.append(svg.text(LEFT, y - 1, _LEGEND, "muted", font_size=10))
    sheet.y = y + 9


def title_of(operation: Operation) -> str:
    """An operation's algorithm in words and by name; operations of a unit's own steps have neither."""
    try:
        return f"{get_algorithm(operation.algorithm).title} ({operation.algorithm})"
    except UnknownNameError:
        return "steps of the unit"


def _inputs(sheet: Sheet, nodes: dict[str, Node]) -> None:
    """The operands with their bit fields, decoded unless the first step that reads them works
    on a number format."""
    operation, formats = sheet.operation, sheet.ins.formats
    boxes = []
    if operation.k_index:
        boxes.append(("a", nodes["a"], formats["a"], LEFT, 176.0))
    if operation.k_index and "b" in nodes:
        boxes.append(("b", nodes["b"], formats["b"], 188.0, 352.0))
    for i, addend in enumerate(operation.addends):
        left = LEFT + 176 * (i % 2)
        boxes.append((addend, replace(nodes["addends"], count=1), operation.out_format, left, left + 164))
    seed = {"c": "c", "zero": "c = +0"}.get(operation.seed, f"c = {operation.seed}")
    if "c" in nodes:
        boxes.append((seed, nodes["c"], operation.seed_format, 372.0, WIDE))
    height = max(_input(sheet, *box) for box in boxes)
    sheet.parts[:0] = [
        svg.rect(left, sheet.y, right - left, height, "block", rx=4) for *_, left, right in boxes
    ]
    sheet.y += height
    _wires(sheet, nodes)
    sheet.y += GAP


def _input(sheet: Sheet, words: str, node: Node, fmt: Format, left: float, right: float) -> float:
    """The contents of one operand's box; returns the height that they need."""
    top = sheet.y
    count = f"{node.count} {svg.TIMES} " if node.count > 1 else ""
    lines = _decoded(sheet, words, node, fmt)
    sheet.parts.append(
        svg.text(left + 8, top + 16, f"{count}{words}: {fmt.name}", font_size=12, font_weight="bold")
    )
    sheet.parts += bars.fields(left + 8, top + 23, right - left - 16, fmt)
    sheet.parts += [
        svg.text(left + 8, top + 52 + 13 * i, line, "muted", font_size=10) for i, line in enumerate(lines)
    ]
    return 46 + 13 * len(lines) + (4 if lines else 0)


def _decoded(sheet: Sheet, words: str, node: Node, fmt: Format) -> list[str]:
    """What comes out of an operand's decoder."""
    lines = []
    target = sheet.operation.operand_format
    if target is not None and words in "ab":
        lines.append(f"converted to {target.name}, exact")
    if fmt.is_float and not _packed(sheet.operation, words[0] if words[0] in "abc" else "c"):
        plain = replace(node, format=None)
        lines += [f"significand {width_text(plain)}", exponent_text(plain)]
    return lines


def _packed(operation: Operation, name: str) -> bool:
    """Whether the first step that computes with an operand takes it in its number format (an IEEE
    operation does)."""
    found = (_takes_packed(step) for step in operation.steps if _reads(step, name))
    return next((packed for packed in found if packed is not None), False)


def _reads(step: Step, name: str) -> bool:
    return name in step.of or (isinstance(step, Fma) and name == "c" and step.start == "c")


def _takes_packed(step: Step) -> bool | None:
    """Whether a step takes numbers in their format; None where it does not compute with them."""
    match step:
        case Fma() | Additions():
            return True
        case Multiply():
            return step.format is not None
        case Scale() | Align() | Sum() | Normalize() | Round() | Part() | Replace():
            return False
        case Flush() | HiddenBit() | SpecialValues():
            return None
        case _:
            assert_never(step)


def _wires(sheet: Sheet, nodes: dict[str, Node]) -> None:
    """The registers that an operation begins with."""
    operation = sheet.operation
    if operation.k_index:
        for name, x in (("a", 94.0), ("b", 270.0)):
            if name not in nodes:
                continue
            sheet.rails[name] = Rail(nodes[name], (x,), None, sheet.y)
    if operation.addends:
        xs = tuple(94.0 + 176 * i for i in range(min(len(operation.addends), 2)))
        sheet.rails["addends"] = Rail(nodes["addends"], xs, None, sheet.y)
    if "c" not in nodes:
        return
    plain = nodes["c"] if _packed(operation, "c") or nodes["c"].fixed else replace(nodes["c"], format=None)
    sheet.put(plain, aside=True)


def _result(sheet: Sheet) -> None:
    """The result's bit fields, behind the multiplexer that special values take."""
    fmt, x = sheet.operation.out_format, ONE[0]
    y = sheet.y - GAP + 20
    if sheet.special_y is not None:
        corners = [(x - 40, y), (x + 80, y), (x + 66, y + 20), (x - 26, y + 20)]
        sheet.enter(["d"], y)
        sheet.parts.append(svg.path("M" + "L".join(f"{a} {b}" for a, b in corners) + "Z", "block2"))
        sheet.parts.append(svg.text(x + 20, y + 14, "special?", anchor="middle", font_size=10))
        middle = (SIDE[0] + SIDE[1]) / 2
        route = [(middle, sheet.special_y), (middle, y + 10), (x + 73, y + 10)]
        sheet.wires.append(svg.arrow(route, stroke_dasharray="4 3"))
        sheet.rails["d"] = Rail(_result_node(sheet), (x,), None, y + 20)
        y += 40
    sheet.enter(["d"], y)
    sheet.parts.append(svg.rect(LEFT, y, 340, 46, "block", rx=4))
    sheet.parts.append(
        svg.text(LEFT + 8, y + 16, f"{sheet.operation.to}: {fmt.name}", font_size=12, font_weight="bold")
    )
    sheet.parts += bars.fields(LEFT + 8, y + 23, 324, fmt)
    sheet.y = y + 46


def _result_node(sheet: Sheet) -> Node:
    if "d" in sheet.rails:
        return sheet.rails["d"].node
    nodes = operand_nodes(sheet.ins, sheet.operation)
    return nodes["c"] if "c" in nodes else nodes["a"]
