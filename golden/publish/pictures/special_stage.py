"""Special values: where they leave the datapath, and what IEEE operations answer to NaN."""

from __future__ import annotations

from golden.program.signature import SCALES
from golden.program.steps import Additions, Fma, Multiply, SpecialValues
from golden.program.widths import Node
from golden.publish.pictures import svg
from golden.publish.pictures.sheet import GAP, RIGHT, Sheet, names_of


def special_values(sheet: Sheet, step: SpecialValues, before: dict[str, Node]) -> None:
    """Draws where special values leave the datapath: taps on the wires, the box next to it."""
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


def _special_lines(sheet: Sheet, step: SpecialValues, before: dict[str, Node]) -> list[str]:
    """What leaves the datapath here and as which code; only what these formats can express."""
    d = sheet.operation.out_format
    if not d.is_float and before["products" if "products" in step.of else step.of[0]].fixed:
        return []
    nan = f"0x{step.nan or 0:0{(d.bits + 3) // 4}X}"
    lines, rule, infinite = (
        [f"a NaN in {names_of(step.of).replace(' and ', ' or ')}"],
        step.opposite_infinities,
        _infinite_terms(sheet, step, before),
    )
    product = next(iter(sheet.operation.steps_of(Multiply)), None)
    if (
        "products" in step.of
        and _operand_infinity(sheet)
        and product
        and product.zero_times_infinity == "nan"
    ):
        lines.append(f"infinity {svg.TIMES} 0")
    if infinite > 1 and rule == "nan":
        lines.append("infinities of both signs")
    lines.append(f"→ {nan}")
    if infinite > 1 and rule != "nan":
        lines.append(f"infinities of both signs → the {rule} one")
    if infinite:
        lines.append(
            "infinities of one sign → that infinity" if infinite > 1 else "an infinity → that infinity"
        )
    return lines


def _operand_infinity(sheet: Sheet) -> bool:
    formats = [sheet.operation.operand_format or sheet.ins.formats[name] for name in "ab"]
    return any(fmt.infinity is not None for fmt in formats)


def _infinite_terms(sheet: Sheet, step: SpecialValues, before: dict[str, Node]) -> int:
    """How many of the terms can be infinite."""
    overflow = any(
        s.overflow_exponent is not None or s.format is not None for s in sheet.operation.steps_of(Multiply)
    )
    capable = {
        "products": _operand_infinity(sheet) or overflow,
        "c": sheet.operation.seed_format.infinity is not None,
        "scales": any(fmt.infinity is not None for name, fmt in sheet.ins.formats.items() if name in SCALES),
    }
    return sum(before[name].count for name in step.of if capable.get(name, True))


def ieee_side(sheet: Sheet, step: Multiply | Additions | Fma, y: float) -> None:
    """What IEEE operations do with NaN, next to their stage."""
    fmt = step.format
    if fmt is None or not fmt.is_float:
        return
    lines = []
    order = step.nan_order if isinstance(step, Fma) else ()
    if order:
        how = "quieted" if isinstance(step, Fma) and step.quieted else "as it is"
        lines.append(f"the first NaN of {', '.join(order)} is handed on, {how}")
    if step.nan is not None:
        made = "a NaN made from numbers" if order else "any NaN"
        lines.append(f"{made} → 0x{step.nan:0{(fmt.bits + 3) // 4}X}")
    if lines:
        sheet.side(y, "special values", lines)
