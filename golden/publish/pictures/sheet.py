"""The sheet on which a datapath is drawn: stages from top to bottom, and the wires between them;
and the words that stages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from golden.errors import counted
from golden.model.instruction import Instruction
from golden.number.rounding import ROUNDINGS
from golden.program.program import Operation
from golden.program.steps import Align, Sum
from golden.program.widths import Node
from golden.publish.pictures import svg
from golden.publish.pictures.bars import Scale

LEFT, RIGHT, WIDE = 12.0, 496.0, 556.0
"""Stages reach from LEFT to RIGHT, to WIDE where they take part of c."""
SIDE = (WIDE + 22, svg.WIDTH - LEFT)
"""The column of special values."""
BAR_LEFT, BAR_RIGHT = 96.0, RIGHT - 8
GAP = 32.0
"""Height between stages, where wires carry their widths."""
MANY, DOTS, FEW, ONE = (44.0, 100.0, 190.0), 145.0, (44.0, 100.0, 156.0), (100.0,)
C, C_EXPONENT, EXPONENT = 540.0, 514.0, 350.0  # px: x of the wires of c, its exponent, the greatest exponent


@dataclass(frozen=True)
class Rail:
    """The wires of one register: x of each, x of
    its exponent's wire (None: it has none, or shares another's)."""

    node: Node
    xs: tuple[float, ...]
    exponent: float | None
    y: float
    dots: bool = False


@dataclass
class Sheet:
    """What has been drawn so far, and the live registers. `y`: where the next stage begins."""

    ins: Instruction
    operation: Operation
    scale: Scale
    y: float = 0.0
    rails: dict[str, Rail] = field(default_factory=dict)
    wires: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    special_y: float | None = None

    def right(self, names: Sequence[str]) -> float:
        """The right edge of a stage on these registers."""
        return WIDE if any(C in self.rails[name].xs for name in names if name in self.rails) else RIGHT

    def put(self, node: Node, labels: Sequence[str] = (), aside: bool = False) -> None:
        """Starts the wires of a register below the stage that wrote it, with its width next to them.

        labels: of the wires. aside: the register takes c's place on the right.
        """
        xs, dots = ((C,), False) if aside else places(node.count)
        floating = not (node.fixed or node.aligned or node.format)
        exponent = (C_EXPONENT if aside else EXPONENT) if floating else None
        self.rails[node.register] = Rail(node, xs, exponent, self.y, dots)
        self._mark(self.rails[node.register], labels)

    def _mark(self, rail: Rail, labels: Sequence[str]) -> None:
        """Width and exponent range next to the wires, and the index of each of several."""
        node, y = rail.node, self.y + 13
        if C in rail.xs:
            lines = [f"c: {width_text(node)}", *([exponent_text(node)] if rail.exponent is not None else [])]
            edge = (C_EXPONENT if rail.exponent is not None else C) - 6
            for words, height in zip(reversed(lines), (y + 12, y), strict=False):
                self.parts.append(svg.text(edge, height, words, "muted", anchor="end", font_size=10))
            return
        count = f"{node.count} {svg.TIMES} " if node.count > 1 else ""
        self.parts.append(svg.text(rail.xs[-1] + 6, y, f"{count}{width_text(node)}", "muted", font_size=10))
        for x, words in zip(rail.xs, labels, strict=False):
            self.parts.append(svg.text(x - 3, y + 10, words, "muted", anchor="end", font_size=10))
        if rail.dots:
            self.parts.append(svg.text(DOTS, y + 10, "…", "muted", anchor="middle"))
        if rail.exponent is not None:
            self.parts.append(svg.text(rail.exponent + 6, y, exponent_text(node), "muted", font_size=10))

    def enter(self, names: Sequence[str], y: float, exponents: float | None = None) -> list[Rail]:
        """Ends the wires of registers at a stage whose top is y; exponent wires end at `exponents` (None:
        at y)."""
        taken = []
        for name in dict.fromkeys(names):
            rail = self.rails.pop(name, None)
            if rail is None:
                continue
            taken.append(rail)
            self.wires += [svg.arrow([(x, rail.y), (x, y)]) for x in rail.xs]
            if rail.exponent is not None:
                end = y if exponents is None else exponents
                self.wires.append(
                    svg.arrow([(rail.exponent, rail.y), (rail.exponent, end)], stroke_dasharray="2 2")
                )
        return taken

    def block(
        self, title: str, notes: Sequence[str], right: float, body: float = 0.0, style: str = "block"
    ) -> float:
        """A stage's frame from self.y: title, `body` pixels for a drawing, notes. Moves y below it;
        returns the body's top."""
        width, top = right - LEFT, self.y
        heads = svg.wrap(title, width - 16, 12 * svg.BOLD)
        lines = [line for note in notes for line in svg.wrap(note, width - 16, 10.5)]
        head = 6 + 15 * len(heads)
        line_height = 14.0  # pixels of a line of notes
        height = head + body + line_height * len(lines) + 6
        self.parts.append(svg.rect(LEFT, top, width, height, style, rx=4))
        for i, words in enumerate(heads):
            self.parts.append(svg.text(LEFT + 8, top + 16 + 15 * i, words, font_size=12, font_weight="bold"))
        for i, words in enumerate(lines):
            self.parts.append(
                svg.text(LEFT + 8, top + head + body + 11 + line_height * i, words, "muted", font_size=10.5)
            )
        self.y = top + height
        return top + head

    def side(self, y: float, title: str, lines: Sequence[str]) -> float:
        """A box in the column of special values; returns its bottom."""
        left, right = SIDE
        wrapped = [part for words in lines for part in svg.wrap(words, right - left - 12, 10)]
        height = 22 + 13 * len(wrapped) + 4
        self.parts.append(svg.rect(left, y, right - left, height, "block2", rx=4))
        self.parts.append(svg.text(left + 6, y + 15, title, font_size=11, font_weight="bold"))
        self.parts += [
            svg.text(left + 6, y + 30 + 13 * i, words, font_size=10) for i, words in enumerate(wrapped)
        ]
        return y + height

    def symbols(self, node: Node, y: float, sign: str, style: str = "block") -> None:
        """Draws one circled sign for each of a register's wires,
        and dots for those left out; y: the middle."""
        xs, dots = places(node.count)
        for x in xs:
            self.parts += circled(x, y, sign, style)
        if dots:
            self.parts.append(svg.text(DOTS, y + 4, "…", anchor="middle", font_size=14))


def places(count: int) -> tuple[tuple[float, ...], bool]:
    """x of the wires that stand for `count` of them, and whether dots stand for the rest."""
    return (ONE if count == 1 else FEW[:count] if count <= 3 else MANY), count > 3


def circled(x: float, y: float, sign: str, style: str = "block") -> list[str]:
    """An operator: a sign in a circle."""
    return [
        svg.element("circle", "", style, cx=x, cy=y, r=11),
        svg.text(x, y + 5, sign, anchor="middle", font_size=14),
    ]


def width_text(node: Node) -> str:
    """ "23 bits (s2.20)": width, sign, integer bits, fraction bits; a number format by its name."""
    if node.format is not None:
        return f"{counted(node.width, 'bit')}, {node.format.name}"
    sign = "s" if node.signed else "u"
    return f"{counted(node.width, 'bit')} ({sign}{node.integer_bits}.{node.fraction_bits})"


def exponent_text(node: Node) -> str:
    """The range of a register's exponents."""
    return f"e {signed(node.exponents[0])} … {signed(node.exponents[1])}"


def signed(value: int) -> str:
    """An integer with a true minus sign."""
    return str(value).replace("-", svg.MINUS)


MODES_SHORT = {name: rounding.note for name, rounding in ROUNDINGS.items()}
OVERFLOW = {
    "infinity": "overflow becomes infinity",
    "largest": "overflow becomes the largest number",
    "ieee": "overflow as in IEEE 754",
    "nan": "overflow becomes NaN",
    "wrap": "wraps modulo 2^width",
    "saturate": "clamps to the range",
}
ZERO = {
    "positive": "every zero result is +0",
    "signed": "zeros keep their sign",
    "signed_underflow": "a cancelled sum is +0, a result that underflows keeps its sign",
}
FLUSH = {"signed": "subnormal results become zero of their sign", "positive": "subnormal results become +0"}


def labels(sheet: Sheet, node: Node) -> list[str]:
    """Names of the wires that are drawn: the first two and the last of products (k) or groups (g)."""
    if node.register == "products":
        names = [f"k{k}" for k in sheet.operation.k_index]
    else:
        names = [f"{node.register[0]}{i}" for i in range(node.count)] if node.count > 1 else []
    return names if len(names) <= 3 else [*names[:2], names[-1]]


def names_of(names: Sequence[str]) -> str:
    """Register names in a sentence."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def grouped(step: Align | Sum) -> str:
    """How a grouped step takes its terms; nothing where it takes all."""
    if step.group is None:
        return ""
    kind, size = step.group
    return (
        f", every {size}th together"
        if kind == "interleaved" and size > 2
        else (", even and odd k apart" if kind == "interleaved" else f", in groups of {size}")
    )
