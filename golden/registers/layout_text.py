"""A register layout as a C function: the formulas of spec/layouts with the shape's numbers put in.

    text = place_function(ins.fragments.a, "place_a")

writes `int32_t place_a(int32_t L, int32_t r, int32_t e)`, which gives the element of the matrix, block by
block and row by row, that slot e of register r of lane L holds, and -1 where it holds none. The selectors of
a layout (`Layout.selectors`) are further parameters. It is C99 and C++.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from golden.errors import SpecError
from golden.registers.layouts import Layout

_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
"""As golden.registers.layouts.evaluate has them; `//` and `%` of C are the same where nothing is negative."""
_RESULTS = ("block", "row", "col", "active")


def place_function(layout: Layout, name: str, storage: str = "static inline") -> str:
    """The function `name`; see the text of the module. Raises SpecError for a formula that C cannot say."""
    parameters = "".join(f", int32_t {selector}" for selector, _ in layout.selectors)
    known = dict(layout.parameters) | {"W": layout.elements_per_register}
    formulas = {"i": "W * r + e", **dict(layout.formulas)}
    used = set(_used(formulas, _RESULTS))
    lines = [f"{storage} int32_t {name}(int32_t L, int32_t r, int32_t e{parameters}) {{"]
    lines += [
        f"    const int32_t {key} = {_c(text, known)};" for key, text in formulas.items() if key in used
    ]
    unused = [key for key in ("L", "r", "e", *dict(layout.selectors)) if key not in used]
    lines += [f"    {' '.join(f'(void){key};' for key in unused)}"] if unused else []
    rows = "block * {} + row" if layout.blocks > 1 else "row"
    lines += ["    (void)block;"] if layout.blocks == 1 else []
    place = f"({rows.format(layout.rows)}) * {layout.cols} + col"
    return "\n".join([*lines, f"    return active ? {place} : -1;", "}"])


def expression(formula: str, names: Mapping[str, object]) -> str:
    """A layout's formula as an expression of C, names replaced by what `names` has for them. No number in it
    is negative, so that `//` is C's division. Raises SpecError for a formula that C cannot say."""
    return _term(ast.parse(formula, mode="eval").body, names)


def _used(formulas: Mapping[str, str], wanted: tuple[str, ...]) -> Iterator[str]:
    """The names that the formulas of `wanted` need, these too."""
    for name in wanted:
        yield name
        if name in formulas:
            yield from _used(formulas, tuple(_names(formulas[name])))


def _names(formula: str) -> list[str]:
    return [node.id for node in ast.walk(ast.parse(formula, mode="eval")) if isinstance(node, ast.Name)]


def _c(formula: str, known: Mapping[str, int]) -> str:
    text = expression(formula, known)
    return text[1:-1] if text.startswith("(") and _closes_last(text) else text


def _closes_last(text: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def _term(node: ast.expr, known: Mapping[str, object]) -> str:
    match node:
        case ast.Constant(value=int(value)):
            return str(value)
        case ast.Name(id=name):
            return str(known[name]) if name in known else name
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return f"({_term(left, known)} {_SIGNS[type(op)]} {_term(right, known)})"
        case ast.Compare(left=first, ops=ops, comparators=rest) if all(type(op) in _SIGNS for op in ops):
            terms = [_term(term, known) for term in (first, *rest)]
            pairs = zip(terms, ops, terms[1:], strict=False)
            return "(" + " && ".join(f"({x} {_SIGNS[type(op)]} {y})" for x, op, y in pairs) + ")"
        case ast.BoolOp(op=op, values=values):
            sign = " && " if isinstance(op, ast.And) else " || "
            return "(" + sign.join(f"({_term(value, known)} != 0)" for value in values) + ")"
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({_term(test, known)} ? {_term(body, known)} : {_term(other, known)})"
    raise SpecError(f"formula part '{ast.unparse(node)}' cannot be said in C")
