"""One drawing routine for each primitive step; together they draw the datapath of any list of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from golden.number.rounding import ROUNDINGS
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
    factor_of,
    overflow_of,
)
from golden.program.widths import Node
from golden.publish.pictures import bars, svg, tree
from golden.publish.pictures.align_stage import align
from golden.publish.pictures.sheet import (
    EXPONENT,
    FLUSH,
    GAP,
    LEFT,
    MODES_SHORT,
    OVERFLOW,
    RIGHT,
    ZERO,
    Sheet,
    circled,
    exponent_text,
    grouped,
    labels,
    names_of,
    signed,
    width_text,
)
from golden.publish.pictures.special_stage import ieee_side, special_values


def draw(sheet: Sheet, step: Step, written: Sequence[Node], before: dict[str, Node]) -> None:
    """Draws one step. written: the nodes after it; before: the registers before it."""
    _draw(sheet, step, {node.register: node for node in written}, before)
    sheet.y += GAP


def _draw(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    match step:
        case Flush():
            _flush(sheet, step, before)
        case HiddenBit():
            _hidden_bit(sheet, step, before)
        case Part():
            _part(sheet, step, written, before)
        case Replace():
            _replaced(sheet, step, written, before)
        case Multiply():
            _multiply(sheet, step, written, before)
        case Scale():
            _scale(sheet, step, written, before)
        case SpecialValues():
            special_values(sheet, step, before)
        case Align():
            align(sheet, step, written, before)
        case Sum():
            _exact_sum(sheet, step, written[step.to], before)
        case Additions():
            _rounded_sum(sheet, step, written[step.to], before)
        case Normalize():
            _normalize(sheet, step, written)
        case Fma():
            _fma(sheet, step, written, before)
        case Round():
            _round(sheet, step, written, before)
        case _:
            assert_never(step)


def _flush(sheet: Sheet, step: Flush, before: dict[str, Node]) -> None:
    note = (
        "subnormals and zeros become +0"
        if step.sign == "positive"
        else "subnormals become zero of their sign"
    )
    _unary(sheet, step, f"flush {names_of(step.of)}", [note])


def _hidden_bit(sheet: Sheet, step: HiddenBit, before: dict[str, Node]) -> None:
    zeros = "zeros too" if step.zeros == "set" else "zeros stay zeros"
    notes = [f"subnormal operands are read with the hidden bit set, 1.f {svg.TIMES} 2^e_min; {zeros}"]
    _unary(sheet, step, f"hidden bit of {names_of(step.of)}", notes)


def _part(sheet: Sheet, step: Part, written: dict[str, Node], before: dict[str, Node]) -> None:
    last = step.first + step.bits - 1
    notes = [f"places {step.first} to {last} of the significand; the hidden bit is place 0"]
    _unary(sheet, step, f"part of {names_of(step.of)}", notes, written)


def _replaced(sheet: Sheet, step: Replace, written: dict[str, Node], before: dict[str, Node]) -> None:
    notes = [f"{signed(step.value)} becomes {signed(step.by)}, in units of 2^(e {svg.MINUS} {step.places})"]
    _unary(sheet, step, f"exception of {names_of(step.of)}", notes, written)


def _unary(
    sheet: Sheet,
    step: Flush | HiddenBit | Part | Replace,
    title: str,
    notes: list[str],
    written: dict[str, Node] | None = None,
) -> None:
    """A stage that rewrites registers. written: their nodes, if their widths change."""
    top, right = sheet.y, sheet.right(step.of)
    rails = {name: sheet.rails[name] for name in step.of if name in sheet.rails}
    sheet.enter(step.of, top)
    sheet.block(title, notes, right)
    for name, rail in rails.items():
        sheet.rails[name] = replace(rail, y=sheet.y, node=(written or {}).get(name, rail.node))


def _multiply(sheet: Sheet, step: Multiply, written: dict[str, Node], before: dict[str, Node]) -> None:
    node, top = written[step.to], sheet.y
    a, b = before["a"], before["b"]
    sheet.enter(("a", "b"), top)
    sign = {"and": "&", "xor": "⊕"}.get(step.operation, svg.TIMES)
    notes = _product_notes(step, a)
    y = sheet.block(_product_title(step, node, a, b), notes, RIGHT, 34) + 14
    sheet.symbols(node, y, sign)
    if not node.fixed and not node.format:
        sheet.parts += circled(EXPONENT, y, "+")
        sheet.parts.append(
            svg.text(EXPONENT + 18, y + 4, f"e_a + e_b, {node.count} {svg.TIMES}", font_size=10.5)
        )
    if step.format is not None:
        ieee_side(sheet, step, top)
    sheet.put(node, labels(sheet, node))


def _product_title(step: Multiply, node: Node, a: Node, b: Node) -> str:
    if step.operation != "product":
        return f"{node.count} {step.operation.upper()} gates, one bit each"
    if step.format is not None:
        return f"{node.count} multipliers, rounded to {step.format.name} {MODES_SHORT[step.rounding]}"
    size = (lambda n: n.width) if node.fixed else _magnitude
    return f"{node.count} multipliers: {size(a)} {svg.TIMES} {size(b)} → {size(node)} bits, exact"


def _magnitude(node: Node) -> int:
    return node.integer_bits + node.fraction_bits


def _product_notes(step: Multiply, a: Node) -> list[str]:
    notes = []
    if step.normalize:
        notes.append("normalised: the significand is in [1, 2), subnormal factors included")
    elif not a.fixed and step.format is None and step.operation == "product":
        notes.append("not normalised: the significand is in [0, 4)")
    if step.overflow_exponent is not None:
        notes.append(f"a product of 2^{step.overflow_exponent} or more becomes infinity")
    if step.flush != "none":
        notes.append(FLUSH[step.flush])
    if step.zero_times_infinity != "nan":
        notes.append(f"zero times infinity is {step.zero_times_infinity}")
    return notes


def _scale(sheet: Sheet, step: Scale, written: dict[str, Node], before: dict[str, Node]) -> None:
    top, formats = sheet.y, sheet.ins.formats
    right = sheet.right(step.of)
    sheet.enter(step.of, top)
    if step.power is not None:
        sheet.block(f"{names_of(step.of)} {svg.TIMES} 2^{step.power}", ["exact: the point moves"], right, 40)
        for name, node in written.items():
            sheet.put(node, labels(sheet, node), aside=name == "c")
        return
    factors = ("scale_a", "scale_b") if step.by == "both" else (factor_of(step),)
    notes = [f"one code of each for {sheet.ins.scale_block} consecutive k"]
    if step.by == "both":
        notes[0] += (
            f"; their product: {width_text(before['scales'])}, {exponent_text(before['scales'])}, exact"
        )
    title = f" {svg.TIMES} ".join((names_of(step.of), *factors))
    y = sheet.block(f"block scales: {title}", notes, right, 60) + 40
    for x, name in zip((LEFT + 8, LEFT + 246), factors, strict=False):
        fmt = formats[name]
        sheet.parts.append(svg.text(x, y - 24, f"{name}: {fmt.name}", font_size=10.5))
        sheet.parts += bars.fields(x + 92, y - 36, 128, fmt)
    sheet.symbols(next(iter(written.values())), y, svg.TIMES)
    sheet.parts += circled(EXPONENT, y, "+")
    own = "" if all(before[name].fixed for name in step.of) else "e + "
    sheet.parts.append(svg.text(EXPONENT + 18, y + 4, f"{own}e_scales", font_size=10.5))
    for name, node in written.items():
        sheet.put(node, labels(sheet, node), aside=name == "c")


def _exact_sum(sheet: Sheet, step: Sum, node: Node, before: dict[str, Node]) -> None:
    """An adder tree: a trapezoid that narrows to the sum, and the register of the sum."""
    right, top = sheet.right(step.of), sheet.y
    terms = sum(before[name].count for name in step.of)
    sheet.enter(step.of, top)
    each = terms // node.count
    count = f"{node.count} adder trees of {each}" if node.count > 1 else f"adder tree, {terms} addends"
    popcount = all(before[name].width == 1 for name in step.of if name != "c") and before[step.of[0]].fixed
    what = f"population count of {terms - 1} bits, plus c" if popcount and "c" in step.of else count
    corners = [(LEFT, top), (right, top), (right - 60, top + 26), (LEFT + 20, top + 26)]
    sheet.parts.append(
        svg.path("M" + "L".join(f"{svg.number(x)} {svg.number(y)}" for x, y in corners) + "Z", "accent")
    )
    sheet.parts.append(
        svg.text(
            (LEFT + RIGHT) / 2,
            top + 17,
            f"Σ  {what}{grouped(step)}, exact",
            anchor="middle",
            font_size=12,
            font_weight="bold",
        )
    )
    sheet.y = top + 26
    notes = _sum_notes(step, node)
    y = sheet.block(f"{node.register}: {width_text(node)}", notes, right, 22)
    sheet.parts += bars.register(sheet.scale, y + 2, node)
    sheet.put(node, labels(sheet, node))


def _sum_notes(step: Sum, node: Node) -> list[str]:
    notes = []
    if node.fixed and node.format is None and node.fraction_bits > 0:
        notes.append("one fixed-point register that holds every sum: nothing is cut")
    if step.exponent is not None:
        notes.append(f"carried with exponent {step.exponent}: the alignment does not see its size")
    if step.width is not None:
        notes.append(f"{step.width} integer bits, two's complement: a carry beyond is lost")
    if step.cancelled == "zero":
        notes.append("a sum that cancels to zero leaves the maximum")
    return notes


def _rounded_sum(sheet: Sheet, step: Additions, node: Node, before: dict[str, Node]) -> None:
    """Two-input additions that round: their tree, drawn for one group."""
    right, top = sheet.right(step.of), sheet.y
    name = step.format.name
    terms = [words for register in step.of for words in _term_names(sheet, register, before[register].count)]
    size = len(terms) // node.count if step.group else len(terms)
    picture = tree.of_sum(terms[:size], step.order)
    groups = f"{node.count} groups of {size}, each " if node.count > 1 else ""
    order = (
        " as a balanced tree"
        if step.order == "tree" and size > 2
        else " one after the other"
        if size > 2
        else ""
    )
    additions = f"{groups}{size - 1} addition{'s' if size != 2 else ''} in {name}{order}"
    notes = [FLUSH[step.flush]] if step.flush != "none" else []
    if step.overflow == "saturate":
        notes.append("every addition clamps to the range")
    sheet.enter(step.of, top)
    # Pixels from node to node of a tree inside a stage.
    tree_level = 22.0
    height = tree.height(picture, tree_level) + 6
    y = sheet.block(f"{additions}, each rounded {MODES_SHORT[step.rounding]}", notes, right, height)
    sheet.parts += tree.drawing(picture, LEFT + 12, y, RIGHT - LEFT - 24, tree_level)
    ieee_side(sheet, step, top)
    sheet.put(node)


def _term_names(sheet: Sheet, register: str, count: int) -> list[str]:
    if register == "products":
        return [f"#{k}" for k in sheet.operation.k_index]
    if register == "addends":
        return list(sheet.operation.addends)
    if register == "c":
        return [sheet.operation.seed]
    return [register] if count == 1 else [f"{register[:-1]} {i}" for i in range(count)]


def _normalize(sheet: Sheet, step: Normalize, written: dict[str, Node]) -> None:
    right, top = sheet.right(step.of), sheet.y
    sheet.enter(step.of, top)
    _end_common(sheet, top)
    least = f"; exponent at least {signed(step.min_exponent)}" if step.min_exponent is not None else ""
    bits = ", ".join(str(node.fraction_bits) for node in written.values())
    notes = [
        f"leading one to the point, {bits} fraction bits kept; bits below are rounded "
        f"{MODES_SHORT[step.rounding]}{least}"
    ]
    y = sheet.block(f"normalise {names_of(step.of)}", notes, right, 22 * len(written))
    for i, node in enumerate(written.values()):
        sheet.parts += bars.aligned(sheet.scale, y + 2 + 22 * i, node, False, True)
    for name, node in written.items():
        sheet.put(node, aside=name == "c")


def _end_common(sheet: Sheet, y: float) -> None:
    """The common exponent's wire ends in the normaliser or the rounder."""
    sheet.enter(["e_max"], y)


def _fma(sheet: Sheet, step: Fma, written: dict[str, Node], before: dict[str, Node]) -> None:
    node, top = written[step.to], sheet.y
    right = sheet.right(("c",)) if step.start == "c" else RIGHT
    sheet.enter(("a", "b", "c") if step.start == "c" else ("a", "b"), top)
    name = step.format.name
    size = before["a"].count // node.count
    groups = f"{node.count} groups of {size}: " if node.count > 1 else ""
    notes = {
        "c": ["starts from c"],
        "zero": ["starts from +0"],
        "product": ["starts from the first product, rounded"],
    }[step.start]
    notes = notes + ([FLUSH[step.flush]] if step.flush != "none" else [])
    title = (
        f"{groups}chain of {size} fused multiply-adds in {name}, each rounded {MODES_SHORT[step.rounding]}"
    )
    y = sheet.block(title, notes, right, 58)
    _fma_chain(sheet, step, size, y + 4)
    ieee_side(sheet, step, top)
    sheet.put(node)


def _fma_chain(sheet: Sheet, step: Fma, size: int, y: float) -> None:
    """start → [fma] → [fma] … [fma] →, with a and b of each k from above."""
    ks = [f"{k}" for k in sheet.operation.k_index[:size]]
    shown: list[str | None] = list(ks) if size <= 4 else [*ks[:3], None, ks[-1]]
    start = {"c": sheet.operation.seed, "zero": "+0", "product": None}[step.start]
    x = LEFT + 12
    if start is not None:
        sheet.parts.append(svg.text(x, y + 36, start, font_size=11))
        x += max(svg.width_of(start), 18) + 4
    for place, k in enumerate(shown):
        if place or start is not None:
            sheet.parts.append(svg.arrow([(x, y + 32), (x + 20, y + 32)]))
        x += 20
        if k is None:
            sheet.parts.append(svg.text(x + 16, y + 36, "…", anchor="middle", font_size=14))
            x += 32
            continue
        word = "mul" if step.start == "product" and place == 0 else "fma"
        sheet.parts.append(svg.rect(x, y + 20, 54, 24, "accent", rx=3))
        sheet.parts.append(svg.text(x + 27, y + 36, word, anchor="middle"))
        sheet.parts.append(svg.text(x + 27, y + 9, f"a{k}, b{k}", "muted", anchor="middle", font_size=10))
        sheet.parts.append(svg.arrow([(x + 27, y + 11), (x + 27, y + 20)]))
        x += 54
    sheet.parts.append(svg.arrow([(x, y + 32), (x + 20, y + 32)]))


def _round(sheet: Sheet, step: Round, written: dict[str, Node], before: dict[str, Node]) -> None:
    node, top = written[step.to], sheet.y
    source = before[step.of[0]]
    fmt = node.format
    assert fmt is not None
    right = sheet.right(step.of)
    sheet.enter(step.of, top)
    _end_common(sheet, top)
    if fmt.is_float:
        kept = fmt.fraction_bits if step.result_fraction_bits is None else step.result_fraction_bits
        notes = [
            f"{OVERFLOW[overflow_of(step)]}; {ZERO[step.zero]}",
            *([FLUSH[step.flush]] if step.flush != "none" else []),
        ]
        if step.sticky_gap:
            notes.append(f"the {step.sticky_gap} bits right below the round bit are not seen")
        if step.random_bits is not None:
            notes.append(f"{step.random}/{1 << step.random_bits} of the last place added before the cut")
        if step.subnormal_carry == "lost":
            notes.append("a subnormal that rounds up to the least normal number becomes zero")
        title = f"normalise, round to {fmt.name} with {kept} fraction bits {MODES_SHORT[step.rounding]}"
        y = sheet.block(title, notes, right, 24)
        sheet.parts += _kept_bar(sheet, step, kept, y + 2)
    else:
        y = sheet.block(f"{fmt.bits}-bit {fmt.name}: {OVERFLOW[overflow_of(step)]}", [], right, 24)
        over = max(source.width - fmt.bits, 0)
        segments = [
            bars.Segment(over, "lost"),
            bars.Segment(fmt.bits, "paper", (f"{fmt.bits} bits kept", str(fmt.bits))),
        ]
        sheet.parts += bars.bar(sheet.scale, y + 2, over + fmt.bits, segments)
    sheet.put(node)


def _kept_bar(sheet: Sheet, step: Round, kept: int, y: float) -> list[str]:
    """1 integer bit, the kept fraction, the round and sticky bits where the mode looks at them,
    the rest lost."""
    nearest = ROUNDINGS[step.rounding].nearest
    segments = [
        bars.Segment(1, "block2", ("±", "s")),
        bars.Segment(1, "accent", ("1",)),
        bars.Segment(kept, "paper", (f"{kept} fraction bits", f"{kept} fraction", str(kept))),
        bars.Segment(1 if nearest else 0, "accent", ("R",)),
        bars.Segment(1 if nearest else 0, "accent", ("S",)),
        bars.Segment(5, "lost"),
    ]
    return bars.bar(sheet.scale, y, 2, segments)
