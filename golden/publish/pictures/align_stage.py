"""Alignment: the maximum unit, the shifters and what they cut off."""

from __future__ import annotations

from dataclasses import replace

from golden.program.steps import Align
from golden.program.widths import Node
from golden.publish.pictures import bars, svg
from golden.publish.pictures.sheet import (
    C_EXPONENT,
    DOTS,
    EXPONENT,
    LEFT,
    MODES_SHORT,
    ONE,
    RIGHT,
    C,
    Sheet,
    exponent_text,
    grouped,
    labels,
    names_of,
    signed,
)

_STICKY = {
    "sticky_added": "an OR of the bits below is kept as sticky bit S",
    "sticky_or": "the bits below of all terms are ORed into one sticky bit S",
}
_LEFT_OUT = {"dropped": "lost", "unshifted": "not shifted"}


def align(sheet: Sheet, step: Align, written: dict[str, Node], before: dict[str, Node]) -> None:
    """Draws one alignment: maximum exponent, shifters, the kept and lost bits of each register."""
    right = sheet.right(step.of)
    count = sum(node.count for node in written.values())
    floor = f", floor {signed(step.floor)}" if step.floor is not None else ""
    taps = [name for name in step.of if name in sheet.rails]
    xs = {name: sheet.rails[name].xs for name in taps}
    body = 62 + 22 * len(written)
    y = sheet.block(
        f"align {names_of(step.of)} to the largest exponent{grouped(step)}",
        _align_notes(step),
        right,
        body,
    )
    sheet.enter(["e_max"], y + 4)
    _max_box(
        sheet,
        step,
        y + 4,
        f"max of {count} exponents{floor}" if step.group is None else f"max of each group{floor}",
    )
    sheet.enter(taps, y + 34)
    _shifters(sheet, written, xs, y + 34, y + 26)
    for i, node in enumerate(written.values()):
        line = y + 62 + 22 * i
        cuts = _can_cut(step, before, node)
        sheet.parts.append(svg.text(LEFT + 8, line + 12, node.register, font_size=10.5))
        sheet.parts += bars.aligned(sheet.scale, line, node, step.cut != "dropped", cuts)
    for name, node in written.items():
        sheet.put(node, labels(sheet, node), C in xs.get(name, ()))
    _common_exponent(sheet, next(iter(written.values())))


def _max_box(sheet: Sheet, step: Align, y: float, words: str) -> None:
    """The maximum unit, with the exponents' wires into it."""
    left = EXPONENT - 76
    sheet.parts.append(svg.rect(left, y, RIGHT - 8 - left, 20, "accent", rx=3))
    sheet.parts.append(svg.text((left + RIGHT - 8) / 2, y + 14, words, anchor="middle", font_size=10.5))
    for name in step.of:
        rail = sheet.rails.get(name)
        if rail is None or rail.exponent is None:
            continue
        if rail.exponent == C_EXPONENT:
            points = [(C_EXPONENT, rail.y), (C_EXPONENT, y + 10), (RIGHT - 8, y + 10)]
        else:
            points = [(rail.exponent, rail.y), (rail.exponent, y)]
        sheet.parts.append(svg.arrow(points, stroke_dasharray="2 2"))
        sheet.rails[name] = replace(rail, exponent=None)


def _shifters(
    sheet: Sheet, written: dict[str, Node], xs: dict[str, tuple[float, ...]], y: float, bus: float
) -> None:
    """One shifter on each wire, and the shift amounts coming from the maximum unit."""
    every = sorted({x for places_ in xs.values() for x in places_})
    source = EXPONENT - 30
    reach = [*every, source]
    sheet.parts.append(svg.line([(min(reach), bus), (max(reach), bus)], stroke_dasharray="2 2"))
    for x in every:
        sheet.parts.append(svg.rect(x - 13, y, 26, 18, "block2", rx=2))
        sheet.parts.append(svg.text(x, y + 13, "≫", anchor="middle", font_size=12))
        sheet.parts.append(svg.line([(x + 7, bus), (x + 7, y)], stroke_dasharray="2 2"))
    if any(node.count > 3 for node in written.values()):
        sheet.parts.append(svg.text(DOTS, y + 13, "…", anchor="middle", font_size=14))
    sheet.parts.append(
        svg.text(ONE[0] + 118, y + 13, f"shift right by max {svg.MINUS} e", "muted", font_size=10.5)
    )


def _cut_note(step: Align) -> str:
    """What happens to the bits below the last one kept."""
    mode = (
        MODES_SHORT[step.rounding]
        if isinstance(step.rounding, str)
        else ", ".join(f"{MODES_SHORT[mode]} ({name})" for name, mode in step.rounding)
    )
    if step.cut == "dropped":
        return f"bits below are rounded {mode}"
    return _STICKY[step.cut] + (f", rounded {mode}" if step.rounding != "toward_zero" else "")


def _align_notes(step: Align) -> list[str]:
    notes = []
    kept = dict(step.fraction_bits)
    same = len(set(kept.values())) == 1
    widths = (
        str(next(iter(kept.values())))
        if same
        else ", ".join(f"{bits} of {name}" for name, bits in kept.items())
    )
    notes.append(f"{widths} fraction bits kept; {_cut_note(step)}")
    if step.sticky_gap:
        notes.append(f"the {step.sticky_gap} bits right below the kept ones do not reach S")
    notes += [f"{name} more than {window} below the maximum counts as zero" for name, window in step.window]
    notes += [
        f"{name} is left out of the maximum; where it lies above, it is {_LEFT_OUT[rule]}"
        for name, rule in step.left_out
    ]
    if step.underflow_exponent is not None:
        notes.append(f"a maximum of {signed(step.underflow_exponent)} or less makes all terms zero")
    if step.shift_limit is not None:
        notes.append(f"no shift is longer than {step.shift_limit}")
    if step.zeros == "maximum":
        notes.append("zeros take part in the maximum with their encoded exponent")
    elif step.zeros == "sticky":
        notes.append("a zero that lies below all kept bits sets S")
    return notes


def _can_cut(step: Align, before: dict[str, Node], after: Node) -> bool:
    """Whether any bit of the register can be shifted out."""
    node = before[after.register]
    kept = dict(step.fraction_bits)[after.register]
    return after.exponents[1] - node.exponents[0] + node.fraction_bits > kept


def _common_exponent(sheet: Sheet, node: Node) -> None:
    sheet.rails["e_max"] = replace(
        sheet.rails[node.register], node=node, xs=(), exponent=EXPONENT, y=sheet.y, dots=False
    )
    words = f"max {exponent_text(node)}"
    sheet.parts.append(svg.text(EXPONENT + 6, sheet.y + 13, words, "muted", font_size=10))
