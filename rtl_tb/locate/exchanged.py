"""Two texts of one type, each in the other's place: inputs of an instance, values of neighbouring statements;
and the value of one signal written as that of another one.

    u_pair (.b0(x[1]), .a1(x[2]))            // .b0(x[2]), .a1(x[1])?
    assign ey = y[14:10];                    // y[14:10] + !my[10], as ex = x[14:10] + !mx[10]?
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import combinations, islice, pairwise
from typing import Any

from rtl_tb.locate.forms import bare
from rtl_tb.locate.scopes import Names, Scopes, name_parts

_PAIRS = 24
"""Exchanges that are tried among the inputs of one instance."""
_INPUTS = 200
"""Inputs of one instance that are looked at."""
_BITS = ("1'b1", "1", "1'b0", "0")
"""How slang says a number that a bit is given: one, and zero."""
_SIMILAR = 0.5
_NEAR = 3
_WORD = re.compile(r"(?<![\w.'$])[A-Za-z_]\w*")


def exchanged_inputs(instance: Any, text: Callable[[Any], str | None]) -> Iterator[tuple[Any, Any]]:
    """Pairs of inputs of an instance whose values have one type, neighbours first."""
    given = []
    for each in instance.portConnections:
        value = each.expression
        direction = getattr(each.port, "direction", None)
        if value is None or direction is None or direction.name != "In" or value.constant is not None:
            continue
        if text(bare(value)) is not None and bare(value).kind.name != "Assignment":
            given.append(bare(value))
    numbered = sorted(combinations(range(min(len(given), _INPUTS)), 2), key=lambda pair: pair[1] - pair[0])
    same = [(given[one], given[two]) for one, two in numbered if _alike(given[one], given[two])]
    yield from [pair for pair in same if text(pair[0]) != text(pair[1])][:_PAIRS]


def exchanged_values(block: Any, text: Callable[[Any], str | None]) -> Iterator[tuple[Any, Any]]:
    """Pairs of values of one type that neighbouring statements assign."""
    inner = list(getattr(block.body, "list", []))
    for one, two in pairwise(inner):
        values = [_value(each) for each in (one, two)]
        if None in values or not _alike(*values):
            continue
        said = [text(each) for each in values]
        if None not in said and said[0] != said[1]:
            yield values[0], values[1]


def exchanged_arms(statement: Any, text: Callable[[Any], str | None]) -> Iterator[tuple[Any, Any]]:
    """Pairs of values of one type that items of a case give to one signal."""
    rest = [] if statement.defaultCase is None else [statement.defaultCase]
    given = [_alone(each) for each in (*(item.stmt for item in statement.items), *rest)]
    for one, two in islice(combinations((each for each in given if each is not None), 2), _PAIRS):
        values = [bare(each.right) for each in (one, two)]
        said = [text(each) for each in values]
        if text(one.left) == text(two.left) and None not in said and said[0] != said[1] and _alike(*values):
            yield values[0], values[1]


def exchanged_priorities(first: Any, second: Any, text: Callable[[Any], str | None]) -> list[tuple[Any, Any]]:
    """What two conditions are, and what they give to one signal, in the other order: `second` comes behind
    `first`, or is its else."""
    both = (first, second)
    if any(each.kind.name != "Conditional" or len(each.conditions) != 1 for each in both):
        return []
    given = [_alone(each.ifTrue) for each in both]
    conditions = [bare(each.conditions[0].expr) for each in both]
    if None in given or text(given[0].left) != text(given[1].left) or not _alike(*conditions):
        return []
    values = [bare(each.right) for each in given]
    pairs = [(conditions[0], conditions[1]), (values[0], values[1])]
    known = all(text(each) is not None for pair in pairs for each in pair)
    return pairs if known and _alike(*values) and len({text(each) for each in values}) == 2 else []


def set_alone(statement: Any, text: Callable[[Any], str | None]) -> tuple[Any, Any, str] | None:
    """Of a condition under which a bit is given a number, and nothing else: the condition, the number, and
    the text that the bit is whenever it is what the condition says."""
    given = None if statement.ifFalse is not None else _alone(statement.ifTrue)
    if given is None or len(statement.conditions) != 1 or given.left.type.bitWidth != 1:
        return None
    condition, value = bare(statement.conditions[0].expr), bare(given.right)
    said = text(condition)
    number = str(value.value) if value.kind.name == "IntegerLiteral" else ""
    if number not in _BITS or said is None or condition.type.bitWidth != 1:
        return None
    return condition, value, f"({said})" if number in _BITS[:2] else f"!({said})"


def as_another(
    assigned: list[tuple[Any, Any]], text: Callable[[Any], str | None], scopes: Scopes
) -> Iterator[tuple[Any, str]]:
    """Values, each as a signal with a similar name and of the same type has it.

    Args:
        assigned: the signals of one scope, each with the value that it is given.
        scopes: what stands in scopes.
    """
    by_name = {symbol.name: (symbol, value) for symbol, value in assigned}
    by_type: dict[str, list[str]] = {}
    for name, (symbol, _) in by_name.items():
        by_type.setdefault(str(symbol.type), []).append(name)
    same = {kind: Names(names) for kind, names in by_type.items()}
    for name, (symbol, value) in by_name.items():
        names = scopes.names(symbol.parentScope)
        for near in same[str(symbol.type)].alike(name, _NEAR, _SIMILAR):
            said, own = text(by_name[near][1]), text(value)
            one, two = name_parts(near, name)
            if said is None or own is None or not one or not two:
                continue
            other = _WORD.sub(partial(_renamed, one=one, two=two, names=names), said)
            if "".join(other.split()) != "".join(own.split()):
                yield value, f"({other})"


def _renamed(word: re.Match[str], one: str, two: str, names: Collection[str]) -> str:
    name = word[0]
    for part in re.finditer(re.escape(one), name):
        other = name[: part.start()] + two + name[part.end() :]
        if other in names:
            return other
    return name


def _value(statement: Any) -> Any:
    given = _given(statement)
    return None if given is None else bare(given.right)


def _given(statement: Any) -> Any:
    """The assignment that a statement is, None where it is none."""
    if statement.kind.name != "ExpressionStatement" or statement.expr.kind.name != "Assignment":
        return None
    return None if statement.expr.isCompound else statement.expr


def _alone(statement: Any) -> Any:
    """The same of a block of one statement, too."""
    while statement.kind.name == "Block":
        statement = statement.body
    return _given(statement)


def _alike(one: Any, two: Any) -> bool:
    """Whether two values are of one type; slices of one width are, wherever they begin."""
    if not (one.type.isIntegral and two.type.isIntegral):
        return False
    kinds = [(each.type.isEnum, each.type.isStruct, each.type.isPackedUnion) for each in (one, two)]
    if any(any(kind) for kind in kinds):
        return str(one.type) == str(two.type)
    return (one.type.bitWidth, one.type.isSigned) == (two.type.bitWidth, two.type.isSigned)
