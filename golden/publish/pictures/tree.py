"""Summation trees in the style of Figure 1 of the MMA-Sim paper (arXiv 2511.10909): in which order the terms
are added.

A leaf is c or a product #k = a[k] * b[k] (of bits: AND or XOR). A node with two children is one rounded
addition (or one fused multiply-add); a node with more is a fused sum: its terms are added before anything is
rounded to a number format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from golden.model.instruction import Instruction
from golden.program.program import NO_SEED, Operation
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
    Sum,
)
from golden.publish.pictures import svg

_LEVEL = 34.0  # px from a sum down to its terms


@dataclass(frozen=True)
class Tree:
    """A leaf (words, no children) or a sum. fused: exact or truncated together, with no rounding to a format
    in between.

    hidden: a leaf that stands for this many terms (or additions)
        that are not drawn. note: words next to the node.
    """

    words: str = ""
    children: tuple[Tree, ...] = ()
    fused: bool = False
    hidden: int = 0
    note: str = ""

    @property
    def terms(self) -> int:
        """Leaves below, with the ones that are not drawn."""
        return sum(child.terms for child in self.children) if self.children else max(self.hidden, 1)


def summation_tree(ins: Instruction, name: str = "tree") -> str:
    """Returns the order in which c and the products are added as SVG; name: prefix of its ids."""
    tree = of_instruction(ins)
    short = abbreviated(tree)
    parts = drawing(short, 16, 34, svg.WIDTH - 32)
    kinds = "wide nodes are fused sums, two-way nodes rounded additions"
    bits, count = ins.program.bit_operation, sum(len(one.k_index) for one in ins.program.operations)
    in_parts = " of parts" if ins.program.steps_of(Part) else ""
    products = (
        f"products #k = a[k] {svg.TIMES} b[k]{in_parts}"
        if bits is None
        else f"bits #k = a[k] {bits.upper()} b[k]"
    )
    if "b" in ins.absent:
        products = "elements #k = a[k]"
    seed = "" if "c" in ins.absent else "c and "
    head = svg.text(16, 18, f"{tree.terms} terms: {seed}{count} {products}; {kinds}", "muted")
    return svg.document(svg.WIDTH, height(short) + 44, [head, *parts], name, f"Summation tree of {ins.name}")


def of_instruction(ins: Instruction) -> Tree:
    """The whole tree of one dot product, nothing abbreviated."""
    results = {"c": Tree("c"), "zero": Tree("0"), NO_SEED: Tree("0")}
    for operation in ins.program.operations:
        results[operation.to] = _of_operation(operation, results)
    return results[ins.program.operations[-1].to]


def _of_operation(operation: Operation, results: dict[str, Tree]) -> Tree:
    products = tuple(Tree(f"#{k}") for k in operation.k_index)
    seed = results[operation.seed]
    registers: dict[str, tuple[Tree, ...]] = {
        "c": () if operation.seed in ("zero", NO_SEED) and operation.k_index else (seed,),
        "a": products,
        "addends": tuple(results[name] for name in operation.addends),
    }
    for step in operation.steps:
        match step:
            case Multiply():
                registers[step.to] = products
            case Sum():
                registers[step.to] = tuple(of_sum(terms, "exact") for terms in _grouped(step, registers))
            case Additions():
                registers[step.to] = tuple(of_sum(terms, step.order) for terms in _grouped(step, registers))
            case Fma():
                start = registers["c"] if step.start == "c" else ()
                registers[step.to] = tuple(
                    of_sum((*start, *terms), "sequential") for terms in _grouped(step, registers, ("a",))
                )
            case Round():
                registers[step.to] = registers[step.of[0]]
            case (
                Flush() | HiddenBit() | Part() | Replace() | Scale() | SpecialValues() | Align() | Normalize()
            ):
                pass  # what is added stays what it is
            case _:
                assert_never(step)
    return registers["d"][0]


def _grouped(
    step: Sum | Additions | Fma, registers: dict[str, tuple[Tree, ...]], of: tuple[str, ...] | None = None
) -> list[tuple[Tree, ...]]:
    terms = tuple(tree for name in of or step.of for tree in registers[name])
    if step.group is None:
        return [terms]
    kind, size = step.group
    if kind == "interleaved":
        return [terms[i::size] for i in range(min(size, len(terms)))]
    return [terms[i : i + size] for i in range(0, len(terms), size)]


def of_sum(terms: Sequence[Tree] | Sequence[str], order: str) -> Tree:
    """The tree of one sum: "exact" (one fused node), "tree" (halves) or "sequential"."""
    nodes = tuple(Tree(term) if isinstance(term, str) else term for term in terms)
    if len(nodes) == 1:
        return nodes[0]
    if order == "exact":  # the order within a fused sum does not matter: c, or what it went into, first
        return Tree("", tuple(sorted(nodes, key=lambda node: not _has_c(node))), fused=True)
    if order == "tree":
        half = len(nodes) // 2
        return Tree("", (of_sum(nodes[:half], order), of_sum(nodes[half:], order)))
    total = nodes[0]
    for node in nodes[1:]:
        total = Tree("", (total, node))
    return total


def _has_c(tree: Tree) -> bool:
    return tree.words == "c" or any(_has_c(child) for child in tree.children[:2])


# Abbreviation -----------------------------------------------------------------------------------------------


def abbreviated(tree: Tree) -> Tree:
    """The tree with long rows of leaves, long chains and large subtrees of one kind cut short; hidden
    terms are counted."""
    # Children of a fused node that are drawn; more are abbreviated. The first that makes the tree fit is
    # taken.
    limits = (9, 7, 5, 4)
    for widest in limits:
        short = _short_chain(_short_rows(tree, widest))
        leaves: list[_Placed] = []
        _place(short, leaves)
        if sum(_slots(leaves)) <= svg.WIDTH - 32:
            break
    return short


def _short_rows(tree: Tree, widest: int) -> Tree:
    if not tree.children:
        return tree
    children = tuple(_short_rows(child, widest) for child in tree.children)
    if len(children) > widest:
        last = 2 if widest > 5 else 1
        first = widest - 1 - last
        hidden = sum(child.terms for child in tree.children[first:-last])
        children = (*children[:first], Tree("…", hidden=hidden), *children[-last:])
    elif (
        len(children) == 2
        and tree.terms > 32
        and all(child.terms > 4 for child in tree.children)
        and not tree.fused
    ):
        children = (children[0], Tree(f"… {tree.children[1].terms} more", hidden=tree.children[1].terms))
    return Tree(
        tree.words, children, tree.fused, tree.hidden, f"{len(tree.children)} terms" if tree.fused else ""
    )


def _short_chain(tree: Tree) -> Tree:
    spine = [tree]
    while spine[-1].children and spine[-1].children[0].children:
        spine.append(spine[-1].children[0])
    # Additions of a chain that are drawn; more are abbreviated.
    deepest = 8
    if len(spine) <= deepest:
        return tree
    bottom, top = spine[-3:], spine[:2]  # the first three additions and the last two
    left_out = spine[2:-3]
    terms = sum(child.terms for node in left_out for child in node.children[1:])
    current = bottom[0]
    current = Tree(
        f"… {len(left_out)} more", (current, Tree("…", hidden=terms)), note=f"{len(left_out)} more additions"
    )
    for node in reversed(top):
        current = Tree(node.words, (current, *node.children[1:]), node.fused, node.hidden, node.note)
    return current


# Drawing ----------------------------------------------------------------------------------------------------


@dataclass
class _Placed:
    tree: Tree
    x: float
    level: int
    children: list[_Placed]


def height(tree: Tree, level: float = _LEVEL) -> float:
    """The height of `drawing`."""
    return _place(tree, []).level * level + 36


def drawing(tree: Tree, x: float, y: float, width: float, level: float = _LEVEL) -> list[str]:
    """Draws a tree with its leaves in one row at the top and the sum at the bottom; level: pixels from
    node to node."""
    leaves: list[_Placed] = []
    root = _place(tree, leaves)
    gaps = _slots(leaves)
    most_stretch = 1.7  # of the gaps of a small tree
    stretch = min(most_stretch, width / sum(gaps))
    left = x + (width - stretch * sum(gaps)) / 2
    for leaf, gap in zip(leaves, gaps, strict=True):
        leaf.x = left + gap * stretch / 2
        left += gap * stretch
    _centre(root)
    lines: list[str] = []
    marks: list[str] = []
    _draw(root, y, level, lines, marks)
    bottom = y + 12 + root.level * level + (9 if tree.fused else 5)
    marks.append(svg.arrow([(root.x, bottom), (root.x, bottom + 16)]))
    return [*lines, *marks]


def _slots(leaves: Sequence[_Placed]) -> list[float]:
    """The least width of each leaf's place."""
    least_slot = 26.0  # px of a leaf
    return [max(least_slot, svg.width_of(leaf.tree.words) + 10) for leaf in leaves]


def _place(tree: Tree, leaves: list[_Placed]) -> _Placed:
    placed = _Placed(tree, 0, 0, [_place(child, leaves) for child in tree.children])
    if not placed.children:
        leaves.append(placed)
    else:
        placed.level = 1 + max(child.level for child in placed.children)
    return placed


def _centre(placed: _Placed) -> None:
    for child in placed.children:
        _centre(child)
    if placed.children:
        placed.x = (placed.children[0].x + placed.children[-1].x) / 2


def _edge(child: _Placed, start: float, parent: _Placed, end: float, level: float) -> str:
    """The line from a term to its sum: straight down below all others, so that it crosses none."""
    start += 0 if child.children else 4
    turn = start if child.level == parent.level - 1 else end - level / 2
    points = dict.fromkeys([(child.x, start), (child.x, turn), (parent.x, end)])
    return svg.line(list(points), stroke_dasharray="2 3" if child.tree.hidden else None)


def _draw(placed: _Placed, y: float, level: float, lines: list[str], marks: list[str]) -> None:
    here = y + 12 + placed.level * level
    for child in placed.children:
        lines.append(_edge(child, y + 12 + child.level * level, placed, here, level))
        _draw(child, y, level, lines, marks)
    if not placed.children:
        marks.append(svg.text(placed.x, here - 2, placed.tree.words, anchor="middle"))
        if placed.tree.hidden:
            marks.append(
                svg.text(
                    placed.x, here - 13, f"+{placed.tree.hidden}", "muted", anchor="middle", font_size=10
                )
            )
    elif placed.tree.fused:
        size = max(30.0, svg.width_of(placed.tree.note, 10) + 12)
        marks.append(svg.rect(placed.x - size / 2, here - 8, size, 17, "accent", rx=8))
        marks.append(svg.text(placed.x, here + 4, placed.tree.note or "Σ", anchor="middle", font_size=10))
    elif placed.tree.note:
        marks.append(
            svg.text(placed.x - 10, here + 10, placed.tree.note, "muted", anchor="end", font_size=10)
        )
        marks.append(svg.element("circle", "", "block2", cx=placed.x, cy=here, r=5, stroke_dasharray="2 2"))
    else:
        marks.append(svg.element("circle", "", "block", cx=placed.x, cy=here, r=5))
