"""One drawing routine for each primitive step; together they draw the datapath of any list of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from golden.docs.pictures import bars, svg, tree
from golden.docs.pictures.sheet import (
    C_EXPONENT,
    DOTS,
    EXPONENT,
    GAP,
    LEFT,
    ONE,
    RIGHT,
    C,
    Sheet,
    circled,
    exponent_text,
    signed,
    width_text,
)
from golden.program import Step
from golden.widths import Node

MODES_SHORT = {
    "toward_zero": "toward zero (cut)",
    "nearest_even": "to nearest even",
    "nearest_away": "to nearest, ties away",
    "down": "down",
    "up": "up",
}
_OVERFLOW = {
    "infinity": "overflow becomes infinity",
    "largest": "overflow becomes the largest number",
    "ieee": "overflow as in IEEE 754",
    "wrap": "wraps modulo 2^width",
    "saturate": "clamps to the range",
}
_ZERO = {
    "positive": "every zero result is +0",
    "signed": "zeros keep their sign",
    "signed_underflow": "a cancelled sum is +0, a result that underflows keeps its sign",
}
_FLUSH = {"signed": "subnormal results become zero of their sign", "positive": "subnormal results become +0"}
_TREE_LEVEL = 22.0
_LEFT_OUT = {"dropped": "lost", "unshifted": "not shifted"}


def draw(sheet: Sheet, step: Step, written: Sequence[Node], before: dict[str, Node]) -> None:
    """Draws one step. written: the nodes after it; before: the registers before it."""
    _ROUTINES[step.op](sheet, step, {node.register: node for node in written}, before)
    sheet.y += GAP


def _flush(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    zero = "+0" if step.flush == "positive" else "zero of their sign"
    _unary(sheet, step, before, f"flush {_names(step.of)}", [f"subnormal operands become {zero}"])


def _hidden_bit(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    zeros = "zeros too" if step.zeros == "set" else "zeros stay zeros"
    notes = [f"subnormal operands are read with the hidden bit set, 1.f {svg.TIMES} 2^e_min; {zeros}"]
    _unary(sheet, step, before, f"hidden bit of {_names(step.of)}", notes)


def _unary(sheet: Sheet, step: Step, before: dict[str, Node], title: str, notes: list[str]) -> None:
    """A stage that rewrites registers without changing their widths."""
    top, right = sheet.y, sheet.right(step.of)
    rails = {name: sheet.rails[name] for name in step.of if name in sheet.rails}
    sheet.enter(step.of, top)
    sheet.block(title, notes, right)
    for name, rail in rails.items():
        sheet.rails[name] = replace(rail, y=sheet.y)


def _multiply(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    node, top = written[step.to], sheet.y
    a, b = before["a"], before["b"]
    sheet.enter(("a", "b"), top)
    sign = {"and": "&", "xor": "⊕"}.get(step.operation, svg.TIMES)
    notes = _product_notes(step, a, b)
    y = sheet.block(_product_title(step, node, a, b), notes, RIGHT, 34) + 14
    sheet.symbols(node, y, sign)
    if not node.fixed and not node.format:
        sheet.parts += circled(EXPONENT, y, "+")
        sheet.parts.append(svg.text(EXPONENT + 18, y + 4, f"e_a + e_b, {node.count} {svg.TIMES}", font_size=10.5))
    if step.format is not None:
        _ieee_side(sheet, step, top)
    sheet.put(node, _labels(sheet, node))


def _product_title(step: Step, node: Node, a: Node, b: Node) -> str:
    if step.operation != "product":
        return f"{node.count} {step.operation.upper()} gates, one bit each"
    if step.format is not None:
        return f"{node.count} multipliers, rounded to {step.format.name} {MODES_SHORT[step.rounding]}"
    size = (lambda n: n.width) if node.fixed else _magnitude
    return f"{node.count} multipliers: {size(a)} {svg.TIMES} {size(b)} → {size(node)} bits, exact"


def _magnitude(node: Node) -> int:
    return node.integer_bits + node.fraction_bits


def _product_notes(step: Step, a: Node, b: Node) -> list[str]:
    notes = []
    if step.normalize:
        notes.append("normalised: the significand is in [1, 2), subnormal factors included")
    elif not a.fixed and step.format is None and step.operation == "product":
        notes.append("not normalised: the significand is in [0, 4)")
    if step.overflow_exponent is not None:
        notes.append(f"a product of 2^{step.overflow_exponent} or more becomes infinity")
    if step.flush != "none":
        notes.append(_FLUSH[step.flush])
    if step.zero_times_infinity != "nan":
        notes.append(f"zero times infinity is {step.zero_times_infinity}")
    return notes


def _labels(sheet: Sheet, node: Node) -> list[str]:
    """Names of the wires that are drawn: the first two and the last of products (k) or groups (g)."""
    if node.register == "products":
        names = [f"k{k}" for k in sheet.operation.k_index]
    else:
        names = [f"{node.register[0]}{i}" for i in range(node.count)] if node.count > 1 else []
    return names if len(names) <= 3 else [*names[:2], names[-1]]


def _scale(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    top, formats = sheet.y, sheet.ins.formats
    right = sheet.right(step.of)
    sheet.enter(step.of, top)
    notes = [
        f"one code of each for {sheet.ins.scale_block} consecutive k; "
        f"their product: {width_text(before['scales'])}, {exponent_text(before['scales'])}, exact"
    ]
    y = sheet.block(f"block scales: {_names(step.of)} {svg.TIMES} scale_a {svg.TIMES} scale_b", notes, right, 60) + 40
    for x, name in ((LEFT + 8, "scale_a"), (LEFT + 246, "scale_b")):
        fmt = formats[name]
        sheet.parts.append(svg.text(x, y - 24, f"{name}: {fmt.name}", font_size=10.5))
        sheet.parts += bars.fields(x + 92, y - 36, 128, fmt)
    sheet.symbols(next(iter(written.values())), y, svg.TIMES)
    sheet.parts += circled(EXPONENT, y, "+")
    own = "" if all(before[name].fixed for name in step.of) else "e + "
    sheet.parts.append(svg.text(EXPONENT + 18, y + 4, f"{own}e_scales", font_size=10.5))
    for name, node in written.items():
        sheet.put(node, _labels(sheet, node), aside=name == "c")


def _special_values(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    y = sheet.y - GAP / 2 + 12
    lines = _special_lines(sheet, step, before)
    if not lines:
        sheet.y -= GAP
        return
    bottom = sheet.side(y - 14, "special values", lines)
    taps = [x for name in step.of if name in sheet.rails for x in sheet.rails[name].xs]
    start = min(taps, default=RIGHT)
    sheet.parts.append(svg.arrow([(start, y), (578, y)], stroke_dasharray="4 3"))
    sheet.parts += [svg.element("circle", "", None, cx=x, cy=y, r=2.5, **_DOT) for x in taps]
    sheet.special_y = bottom
    sheet.y = y + 10 - GAP + 6


_DOT = {"class": "mg-line mg-head", "fill": svg.STYLES["line"]["stroke"]}


def _special_lines(sheet: Sheet, step: Step, before: dict[str, Node]) -> list[str]:
    """What leaves the datapath here and as which code; only what these formats can express."""
    d = sheet.operation.out_format
    if not d.is_float and before["products" if "products" in step.of else step.of[0]].fixed:
        return []
    nan = f"0x{step.nan or 0:0{(d.bits + 3) // 4}X}"
    lines, rule, infinite = [f"a NaN in {_names(step.of)}"], step.opposite_infinities, _infinite_terms(sheet, step, before)
    product = next((s for s in sheet.operation.steps if s.op == "multiply"), None)
    if "products" in step.of and _operand_infinity(sheet) and product and product.zero_times_infinity == "nan":
        lines.append(f"infinity {svg.TIMES} 0")
    if infinite > 1 and rule == "nan":
        lines.append("infinities of both signs")
    lines.append(f"→ {nan}")
    if infinite > 1 and rule != "nan":
        lines.append(f"infinities of both signs → the {rule} one")
    if infinite:
        lines.append("infinities of one sign → that infinity" if infinite > 1 else "an infinity → that infinity")
    return lines


def _operand_infinity(sheet: Sheet) -> bool:
    formats = [sheet.operation.operand_format or sheet.ins.formats[name] for name in "ab"]
    return any(fmt.infinity is not None for fmt in formats)


def _infinite_terms(sheet: Sheet, step: Step, before: dict[str, Node]) -> int:
    """How many of the terms can be infinite."""
    overflow = any(s.op == "multiply" and (s.overflow_exponent is not None or s.format) for s in sheet.operation.steps)
    capable = {
        "products": _operand_infinity(sheet) or overflow,
        "c": sheet.operation.seed_format.infinity is not None,
        "scales": any(fmt.infinity is not None for name, fmt in sheet.ins.formats.items() if name.startswith("scale")),
    }
    return sum(before[name].count for name in step.of if capable.get(name, True))


def _ieee_side(sheet: Sheet, step: Step, y: float) -> None:
    """What IEEE operations do with NaN, beside their stage."""
    fmt = step.format
    if fmt is None or not fmt.is_float:
        return
    lines = []
    if step.nan_order:
        lines.append(f"the first NaN of {', '.join(step.nan_order)} is handed on, quieted")
    if step.nan is not None:
        made = "a NaN made from numbers" if step.nan_order else "any NaN"
        lines.append(f"{made} → 0x{step.nan:0{(fmt.bits + 3) // 4}X}")
    if lines:
        sheet.side(y, "special values", lines)


def _align(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    top, right = sheet.y, sheet.right(step.of)
    count = sum(node.count for node in written.values())
    floor = f", at least {signed(step.floor)}" if step.floor is not None else ""
    taps = [name for name in step.of if name in sheet.rails]
    xs = {name: sheet.rails[name].xs for name in taps}
    body = 62 + 22 * len(written)
    y = sheet.block(f"align {_names(step.of)} to the largest exponent{_grouped(step)}", _align_notes(step, before), right, body)
    sheet.enter(["e_max"], y + 4)
    _max_box(sheet, step, top, y + 4, f"max exponent of {count}{floor}" if step.group is None else f"max of each group{floor}")
    sheet.enter(taps, y + 34)
    _shifters(sheet, written, xs, y + 34, y + 26)
    for i, node in enumerate(written.values()):
        line = y + 62 + 22 * i
        cuts = _can_cut(step, before, node)
        sheet.parts.append(svg.text(LEFT + 8, line + 12, node.register, font_size=10.5))
        sheet.parts += bars.aligned(sheet.scale, line, node, step.sticky, cuts)
    for name, node in written.items():
        sheet.put(node, _labels(sheet, node), C in xs.get(name, ()))
    _common_exponent(sheet, next(iter(written.values())), step)


def _max_box(sheet: Sheet, step: Step, top: float, y: float, words: str) -> None:
    """The maximum unit, with the exponents' wires into it."""
    left = EXPONENT - 60
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


def _shifters(sheet: Sheet, written: dict[str, Node], xs: dict[str, tuple[float, ...]], y: float, bus: float) -> None:
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
    sheet.parts.append(svg.text(ONE[0] + 118, y + 13, f"shift right by max {svg.MINUS} e", "muted", font_size=10.5))


def _align_notes(step: Step, before: dict[str, Node]) -> list[str]:
    notes = []
    kept = dict(step.fraction_bits)
    same = len(set(kept.values())) == 1
    widths = str(next(iter(kept.values()))) if same else ", ".join(f"{bits} of {name}" for name, bits in kept.items())
    cut = (
        "an OR of the bits below is kept as sticky bit S"
        if step.sticky
        else f"bits below are rounded {MODES_SHORT[step.rounding]}"
    )
    if step.sticky and step.rounding != "toward_zero":
        cut += f", rounded {MODES_SHORT[step.rounding]}"
    notes.append(f"{widths} fraction bits kept; {cut}")
    if step.sticky_gap:
        notes.append(f"the {step.sticky_gap} bits right below the kept ones do not reach S")
    notes += [f"{name} more than {window} below the maximum counts as zero" for name, window in step.window]
    notes += [f"{name} is left out of the maximum; where it lies above, it is {_LEFT_OUT[rule]}" for name, rule in step.left_out]
    if step.shift_limit is not None:
        notes.append(f"no shift is longer than {step.shift_limit}")
    if step.zeros == "maximum":
        notes.append("zeros take part in the maximum with their encoded exponent")
    elif step.zeros == "sticky":
        notes.append("a zero that lies below all kept bits sets S")
    return notes


def _can_cut(step: Step, before: dict[str, Node], after: Node) -> bool:
    """Whether any bit of the register can be shifted out."""
    node = before[after.register]
    kept = dict(step.fraction_bits)[after.register]
    return after.exponents[1] - node.exponents[0] + node.fraction_bits > kept


def _common_exponent(sheet: Sheet, node: Node, step: Step) -> None:
    sheet.rails["e_max"] = replace(sheet.rails[node.register], node=node, xs=(), exponent=EXPONENT, y=sheet.y, dots=False)
    words = f"max {exponent_text(node)}"
    sheet.parts.append(svg.text(EXPONENT + 6, sheet.y + 13, words, "muted", font_size=10))


def _sum(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    if step.order == "exact":
        _exact_sum(sheet, step, written[step.to], before)
    else:
        _rounded_sum(sheet, step, written[step.to], before)


def _exact_sum(sheet: Sheet, step: Step, node: Node, before: dict[str, Node]) -> None:
    """An adder tree: a trapezoid that narrows to the sum, and the register of the sum."""
    right, top = sheet.right(step.of), sheet.y
    terms = sum(before[name].count for name in step.of)
    sheet.enter(step.of, top)
    each = terms // node.count
    count = f"{node.count} adder trees of {each}" if node.count > 1 else f"adder tree, {terms} addends"
    popcount = all(before[name].width == 1 for name in step.of if name != "c") and before[step.of[0]].fixed
    what = f"population count of {terms - 1} bits, plus c" if popcount and "c" in step.of else count
    corners = [(LEFT, top), (right, top), (right - 60, top + 26), (LEFT + 20, top + 26)]
    sheet.parts.append(svg.path("M" + "L".join(f"{svg.number(x)} {svg.number(y)}" for x, y in corners) + "Z", "accent"))
    sheet.parts.append(
        svg.text(
            (LEFT + RIGHT) / 2, top + 17, f"Σ  {what}{_grouped(step)}, exact", anchor="middle", font_size=12, font_weight="bold"
        )
    )
    sheet.y = top + 26
    notes = _sum_notes(step, node)
    y = sheet.block(f"{node.register}: {width_text(node)}", notes, right, 22)
    sheet.parts += bars.register(sheet.scale, y + 2, node)
    sheet.put(node, _labels(sheet, node))


def _sum_notes(step: Step, node: Node) -> list[str]:
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


def _rounded_sum(sheet: Sheet, step: Step, node: Node, before: dict[str, Node]) -> None:
    """Two-input additions that round: their tree, drawn for one group."""
    right, top = sheet.right(step.of), sheet.y
    name = step.format.name if step.format else sheet.operation.out_format.name
    terms = [words for register in step.of for words in _term_names(sheet, register, before[register].count)]
    size = len(terms) // node.count if step.group else len(terms)
    picture = tree.of_sum(terms[:size], step.order)
    groups = f"{node.count} groups of {size}, each " if node.count > 1 else ""
    order = " as a balanced tree" if step.order == "tree" and size > 2 else " one after the other" if size > 2 else ""
    additions = f"{groups}{size - 1} addition{'s' if size != 2 else ''} in {name}{order}"
    notes = [_FLUSH[step.flush]] if step.flush != "none" else []
    if step.overflow == "saturate":
        notes.append("every addition clamps to the range")
    sheet.enter(step.of, top)
    height = tree.height(picture, _TREE_LEVEL) + 6
    y = sheet.block(f"{additions}, each rounded {MODES_SHORT[step.rounding]}", notes, right, height)
    sheet.parts += tree.drawing(picture, LEFT + 12, y, RIGHT - LEFT - 24, _TREE_LEVEL)
    _ieee_side(sheet, step, top)
    sheet.put(node)


def _term_names(sheet: Sheet, register: str, count: int) -> list[str]:
    if register == "products":
        return [f"#{k}" for k in sheet.operation.k_index]
    if register == "addends":
        return list(sheet.operation.addends)
    if register == "c":
        return [sheet.operation.seed]
    return [register] if count == 1 else [f"{register[:-1]} {i}" for i in range(count)]


def _normalize(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    right, top = sheet.right(step.of), sheet.y
    sheet.enter(step.of, top)
    _end_common(sheet, top)
    least = f"; exponent at least {signed(step.min_exponent)}" if step.min_exponent is not None else ""
    bits = ", ".join(str(node.fraction_bits) for node in written.values())
    notes = [f"leading one to the point, {bits} fraction bits kept; bits below are rounded {MODES_SHORT[step.rounding]}{least}"]
    y = sheet.block(f"normalise {_names(step.of)}", notes, right, 22 * len(written))
    for i, node in enumerate(written.values()):
        sheet.parts += bars.aligned(sheet.scale, y + 2 + 22 * i, node, False, True)
    for name, node in written.items():
        sheet.put(node, aside=name == "c")


def _end_common(sheet: Sheet, y: float) -> None:
    """The common exponent's wire ends in the normaliser or the rounder."""
    sheet.enter(["e_max"], y)


def _fma(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    node, top = written[step.to], sheet.y
    right = sheet.right(("c",)) if step.start == "c" else RIGHT
    sheet.enter(("a", "b", "c") if step.start == "c" else ("a", "b"), top)
    name = step.format.name if step.format else sheet.operation.out_format.name
    size = before["a"].count // node.count
    groups = f"{node.count} groups of {size}: " if node.count > 1 else ""
    notes = {"c": ["starts from c"], "zero": ["starts from +0"], "product": ["starts from the first product, rounded"]}[
        step.start
    ]
    notes = notes + ([_FLUSH[step.flush]] if step.flush != "none" else [])
    title = f"{groups}chain of {size} fused multiply-adds in {name}, each rounded {MODES_SHORT[step.rounding]}"
    y = sheet.block(title, notes, right, 58)
    _fma_chain(sheet, step, size, y + 4)
    _ieee_side(sheet, step, top)
    sheet.put(node)


def _fma_chain(sheet: Sheet, step: Step, size: int, y: float) -> None:
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


def _round(sheet: Sheet, step: Step, written: dict[str, Node], before: dict[str, Node]) -> None:
    node, top = written[step.to], sheet.y
    source = before[step.of[0]]
    fmt = node.format
    assert fmt is not None
    right = sheet.right(step.of)
    sheet.enter(step.of, top)
    _end_common(sheet, top)
    if fmt.is_float:
        kept = fmt.fraction_bits if step.result_fraction_bits is None else step.result_fraction_bits
        notes = [f"{_OVERFLOW[step.overflow]}; {_ZERO[step.zero]}", *([_FLUSH[step.flush]] if step.flush != "none" else [])]
        if step.sticky_gap:
            notes.append(f"the {step.sticky_gap} bits right below the round bit are not seen")
        if step.subnormal_carry == "lost":
            notes.append("a subnormal that rounds up to the least normal number becomes zero")
        title = f"normalise, round to {fmt.name} with {kept} fraction bits {MODES_SHORT[step.rounding]}"
        y = sheet.block(title, notes, right, 24)
        sheet.parts += _kept_bar(sheet, step, kept, y + 2)
    else:
        y = sheet.block(f"{fmt.bits}-bit {fmt.name}: {_OVERFLOW[step.overflow]}", [], right, 24)
        over = max(source.width - fmt.bits, 0)
        segments = [bars.Segment(over, "lost"), bars.Segment(fmt.bits, "paper", (f"{fmt.bits} bits kept", str(fmt.bits)))]
        sheet.parts += bars.bar(sheet.scale, y + 2, over + fmt.bits, segments)
    sheet.put(node)


def _kept_bar(sheet: Sheet, step: Step, kept: int, y: float) -> list[str]:
    """1 integer bit, the kept fraction, the round and sticky bits where the mode looks at them, the rest lost."""
    nearest = step.rounding.startswith("nearest")
    segments = [
        bars.Segment(1, "block2", ("±", "s")),
        bars.Segment(1, "accent", ("1",)),
        bars.Segment(kept, "paper", (f"{kept} fraction bits", f"{kept} fraction", str(kept))),
        bars.Segment(1 if nearest else 0, "accent", ("R",)),
        bars.Segment(1 if nearest else 0, "accent", ("S",)),
        bars.Segment(5, "lost"),
    ]
    return bars.bar(sheet.scale, y, 2, segments)


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _grouped(step: Step) -> str:
    if step.group is None:
        return ""
    kind, size = step.group
    return (
        f", every {size}th together"
        if kind == "interleaved" and size > 2
        else (", even and odd k apart" if kind == "interleaved" else f", in groups of {size}")
    )


_ROUTINES: dict[str, Callable[[Sheet, Step, dict[str, Node], dict[str, Node]], None]] = {
    "flush": _flush,
    "hidden_bit": _hidden_bit,
    "multiply": _multiply,
    "scale": _scale,
    "special_values": _special_values,
    "align": _align,
    "sum": _sum,
    "normalize": _normalize,
    "fma": _fma,
    "round": _round,
}
