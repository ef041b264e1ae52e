"""What can be read and written at a place of a text: the names around it, and the terms of its module, from
which one that is missing can be copied.

Read from the syntax alone; where the design was elaborated, what kind of value a name has comes from there,
so that `[W-1:0]` and `[7:0]` are alike where they are. A text that is missing is rarely new: it stands
elsewhere in the module, or under other names.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from rtl_tb.locate.sources import Place, Sources

CONTROL = re.compile(r"clk|clock|(?<![a-z])[a-z]?rst|reset|\bck\b", re.IGNORECASE)
"""Names of clocks and resets, which are no data; `first` is none."""
_COMPARED = 96
"""Names that are compared with one by difflib, which takes 20 microseconds for each, and 200 for long
ones."""
_NEAR = 8
"""Names on either side of one in a large scope that are compared; generated modules have thousands."""
_SIBLINGS = 3
"""Names of other widths that are tried for one, and pairs of names that are compared."""
_WIDEST = 64
"""Bits of a vector of which each may have been a condition."""
_NUMBER, _WORD = re.compile(r"\d+"), re.compile(r"(?<![\w$'.])[A-Za-z_][\w$]*")
_RANGE = re.compile(r"\[\s*(\d+)\s*:\s*(\d+)\s*\]")
_WIDTH = re.compile(r"\d+ \w+")
"""The kind of value of a number: its bits, and whether it has a sign."""
_PART = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|\d+")
"""A part of a name."""
_MEMBER = re.compile(r"([A-Za-z_][\w$]*)((?:\[\w+\]|\.\w+)+)")
"""A bit or a member, and of what."""
_BIT = re.compile(r"([A-Za-z_][\w$]*)\[(\w+)\]")
_CONDITIONS = ("==", "!=", "<", "<=", ">", ">=", "&&", "||")
_JOINING = ("+", "-", "|", "&", "^")
_SHORT = 60
"""Longest condition or operand that may be a missing term, in characters."""
NUMBER = "number"
"""The kind of value of a parameter or a genvar."""
LOOP = f"{NUMBER} of a loop"
"""The same of a genvar, or of a variable of a loop: it exists there alone."""
_DECLARING = ("DataDeclarationSyntax", "NetDeclarationSyntax", "PortDeclarationSyntax", "FunctionPortSyntax")
_SCOPES = (
    *("ModuleDeclarationSyntax", "FunctionDeclarationSyntax", "GenerateBlockSyntax", "BlockStatementSyntax"),
    *("LoopGenerateSyntax", "ForLoopStatementSyntax"),
)


def name_parts(one: str, two: str) -> tuple[str, str]:
    """The middle parts of two names, without their common beginning and end."""
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    one, two, end = one[start:], two[start:], 0
    while end < min(len(one), len(two)) and one[-1 - end] == two[-1 - end]:
        end += 1
    return one[: len(one) - end], two[: len(two) - end]


class Names:
    """Names in the order of their declaration that may replace each other."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        self.large = len(self.names) > _COMPARED
        self._at: dict[str, int] = {}
        self._shapes: dict[str, list[int]] = {}
        if self.large:
            for at, name in enumerate(self.names):
                self._at[name] = at
                self._shapes.setdefault(_NUMBER.sub("0", name), []).append(at)

    def alike(self, word: str, most: int, least: float = 0.0) -> list[str]:
        """At most `most` names, the most similar ones first, without the word itself.

        Args:
            least: the least similarity, from 0 to 1.
        """
        if self.large:
            ranked = sorted((_unlike(word, name), at) for at, name in self._few(word) if name != word)
            return [self.names[at] for unlike, at in ranked[:most] if 1 - unlike >= least]
        names = [name for name in self.names if name != word]
        return difflib.get_close_matches(word, names, most, least) if names else []

    def _few(self, word: str) -> Iterator[tuple[int, str]]:
        """The names to compare with a word, and their numbers: names declared with it, and names that differ
        only in their numbers."""
        at = self._at.get(word)
        places = set[int]() if at is None else set(_around(len(self.names), at))
        same = self._shapes.get(_NUMBER.sub("0", word), [])
        places.update(same[place] for place in _around(len(same), bisect_left(same, at or 0)))
        return ((place, self.names[place]) for place in places)


def _unlike(one: str, two: str) -> float:
    """The share of two names that is left without their common beginning and end."""
    return sum(map(len, name_parts(one, two))) / max(len(one) + len(two), 1)


def _around(count: int, at: int) -> range:
    return range(max(at - _NEAR, 0), min(at + _NEAR + 1, count))


class Scope:
    """The names that are declared in a module, a function, a generate or a block, and around it.

    Attributes:
        own: the kind of value of each name declared here; names of equal kinds may replace each other.
        module: the module around it; None outside of all.
    """

    def __init__(self, parent: Scope | None, own: dict[str, str], module: Module | None) -> None:
        self.parent, self.own, self.module = parent, own, module
        self.packages: dict[str, dict[str, str]] = {} if parent is None else parent.packages
        self.sources: Sources | None = None if parent is None else parent.sources
        self.declared: Mapping[tuple[Path, int], str] = {} if parent is None else parent.declared
        self._alike: dict[tuple[str, int], list[str]] = {}
        self._below: dict[tuple[str, Any, int, int], Scope] = {}

    @classmethod
    def of_packages(cls, root: Any, sources: Sources, declared: Mapping[tuple[Path, int], str]) -> Scope:
        """The outermost scope of a text, with the packages that are imported in it."""
        found = cls(None, {}, None)
        found.sources, found.declared = sources, declared
        for node in _every(root, "ModuleDeclarationSyntax"):
            if node.kind.name == "PackageDeclaration":
                found.packages[node.header.name.valueText] = found._names_in(node)
        return found

    def within(self, node: Any) -> Scope:
        """The scope below a node: another one if the node declares names of its own."""
        kind = type(node).__name__
        if kind == "PackageImportItemSyntax" and node.item.rawText == "*":
            self.own.update(self.packages.get(node.package.valueText, {}))
        if kind not in _SCOPES:
            return self
        assert self.sources is not None
        span = node.sourceRange
        key = kind, span.start.buffer, span.start.offset, span.end.offset
        if key not in self._below:
            module = Module(node, self.sources, self) if kind == "ModuleDeclarationSyntax" else self.module
            self._below[key] = Scope(self, self._names_in(node), module)
        return self._below[key]

    def key(self, name: str) -> str | None:
        """The kind of value of a name here; None: it is not declared."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return scope.own[name]
            scope = scope.parent
        return None if self.module is None else self.module.members.get(name)

    @cached_property
    def visible(self) -> dict[str, str]:
        """Every name that can be read here, starting with the nearest scope."""
        return {
            **self.own,
            **(
                {}
                if self.parent is None
                else {k: v for k, v in self.parent.visible.items() if k not in self.own}
            ),
        }

    def alike(self, name: str, most: int) -> list[str]:
        """The names that may replace one: of its kind of value, the most similar names first."""
        if (name, most) not in self._alike:
            key = self.key(name)
            same = (
                []
                if key is None
                else [each for each, its in self.visible.items() if its == key and not CONTROL.search(each)]
            )
            self._alike[name, most] = Names(same).alike(name, most)
        return self._alike[name, most]

    def resized(self, name: str) -> list[str]:
        """Some names of numbers with other bits that begin or end with a name, or it with them, the shortest
        difference first: an operand and its magnitude."""
        key = self.key(name) or ""
        if not _WIDTH.fullmatch(key):
            return []
        found = [
            each
            for each, its in self.visible.items()
            if its != key and _WIDTH.fullmatch(its) and "" in name_parts(name, each)
        ]
        return sorted(found, key=lambda each: abs(len(each) - len(name)))[:_SIBLINGS]

    def comparisons(self, text: str) -> list[str]:
        """Comparisons of two names of one kind that differ as two names of a text do: where exponents of a
        and b are compared, those of their fractions."""
        named = [{*_PART.findall(name)} for name in dict.fromkeys(_WORD.findall(text))]
        parts = set[str]().union(*named) - (set.intersection(*named) if named[1:] else set())
        pairs: dict[tuple[str, tuple[str, ...]], list[tuple[str, str]]] = {}
        for part in sorted(parts):
            for name, key, rest in self._with_part.get(part, ()):
                pairs.setdefault((key, rest), []).append((part, name))
        found = (
            f"({one} {sign} {two})"
            for (key, _), names in pairs.items()
            for (first, one), (second, two) in combinations(names, 2)
            for sign in ("^" if key.startswith("1 ") else (">", ">=", "=="))
            if first != second
        )
        return list(islice((each for each in found if each[1:-1] not in text), 4 * _SIBLINGS))

    @cached_property
    def _with_part(self) -> dict[str, list[tuple[str, str, tuple[str, ...]]]]:
        """The names of numbers that have a part, each with its kind of value and its other parts."""
        found: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {}
        for name, key in self.visible.items():
            own = _PART.findall(name) if _WIDTH.fullmatch(key) and not CONTROL.search(name) else []
            for at, part in enumerate(own) if own[1:] else ():
                rest = tuple(sorted([*own[:at], *own[at + 1 :]]))
                found.setdefault(part, []).append((name, key, rest))
        return found

    def is_number(self, name: str) -> bool:
        """Whether a name is a parameter or a genvar."""
        return (self.key(name) or "").startswith(NUMBER)

    def is_bit(self, text: str) -> bool:
        """Whether a text is a name of one bit, or one bit of a vector."""
        found = _BIT.fullmatch(text)
        key = self.key(text if found is None else found[1]) or ""
        return (
            key.startswith("1 ")
            if found is None
            else bool(_WIDTH.fullmatch(key))
            and not key.startswith("1 ")
            and (found[2].isdigit() or self.key(found[2]) is not None)
        )

    def vectors_in(self, text: str) -> list[str]:
        """The names of several bits in a text."""
        keys = {name: self.key(name) or "" for name in _WORD.findall(text)}
        return [name for name, key in keys.items() if _WIDTH.fullmatch(key) and key[:2] != "1 "]

    def bits_near(self, place: Place, most: int) -> list[str]:
        """The bits that can be read at a place: first the ones that the module never reads, since a fault may
        have taken their only use, then the next bits of a vector, then the nearest in the text."""
        if self.module is None:
            return []
        texts = self.module.near(place)
        unread = [name for name, key in self.visible.items() if key.startswith("1 ") and name not in texts]
        readable = (text for text in (*unread, *texts) if self.is_bit(text) and not CONTROL.search(text))
        found = list(islice(readable, most))
        neighbours = [
            f"{part[1]}[{int(part[2]) + by}]"
            for text in found[:4]
            if (part := _BIT.fullmatch(text)) and part[2].isdigit()
            for by in (1, -1)
        ]
        width = {
            name: int((self.key(name) or "0").split()[0])
            for name in {each.split("[")[0] for each in neighbours}
        }
        inside = [
            each for each in neighbours if 0 <= int(each.split("[")[1][:-1]) < width[each.split("[")[0]]
        ]
        return list(dict.fromkeys([*found[: len(unread)], *inside[:2], *found, *inside]))

    def conditions_near(self, place: Place, most: int) -> list[str]:
        """The conditions of the module that are nearest to a place, in parentheses, of names that can be read
        there."""
        near = [] if self.module is None else self.module.conditions.get(place.file, [])
        ranked = sorted(near, key=lambda each: abs(each[0] - place.start))
        texts = dict.fromkeys(text for _, text in ranked[: 4 * most])
        readable = (
            text
            for text in texts
            if not any((self.key(name) or LOOP) == LOOP for name in _WORD.findall(text))
        )
        return [f"({text})" for text in islice(readable, most)]

    def vectors_near(self, place: Place) -> list[str]:
        """The names of several bits nearest to a place."""
        near = [] if self.module is None else self.module.near(place)
        names = dict.fromkeys(text.split("[")[0] for text in near)
        return [name for name in names if _WIDTH.fullmatch(key := self.key(name) or "1") and key[:2] != "1 "]

    def every_bit_near(self, place: Place) -> list[str]:
        """Each bit of the vectors nearest to a place."""
        near = self.vectors_near(place)[: 2 * _NEAR]
        widths = {name: int((self.key(name) or "1").split()[0]) for name in near}
        return [f"{name}[{bit}]" for name, bits in widths.items() if bits <= _WIDEST for bit in range(bits)]

    def mirrored(self, text: str, most: int) -> list[str]:
        """A bit of a vector, or a member, as the same one of what may replace the vector."""
        part = _MEMBER.fullmatch(text.strip("() "))
        return [] if part is None else [f"{other}{part[2]}" for other in self.alike(part[1], most // 4)]

    def words(self, text: str, bits: int, most: int) -> list[str]:
        """The words that may be added to a text: replacements of a name in it, and its bits."""
        names = dict.fromkeys(_WORD.findall(text))
        words = [name for name in names if _WIDTH.fullmatch(self.key(name) or "")]
        found = [other for name in words for other in self.alike(name, most)]
        found += [
            name for name, key in self.visible.items() if key.startswith(f"{bits} ") and name not in names
        ]
        return [name for name in dict.fromkeys(found) if not CONTROL.search(name)][:most]

    def joined_elsewhere(self, text: str) -> list[tuple[str, str]]:
        """What a name of the kind of a name is joined with elsewhere in the module, as operator and operand:
        where NaNs of both operands are quieted, that of one is not."""
        alike = [] if self.module is None or not _WORD.fullmatch(text) else self.alike(text, _SIBLINGS)
        pairs = [] if self.module is None else self.module.joined
        found = dict.fromkeys((sign, term) for name, sign, term in pairs if name in alike)
        return [(sign, term) for sign, term in found if text not in _WORD.findall(term)]

    def undriven(self, variables: bool) -> list[str]:
        """The undriven signals of the module, or only its undriven variables, which a procedure may
        assign."""
        if self.module is None:
            return []
        return [name for name, net in self.module.undriven.items() if not (variables and net)]

    def assigned_in(self, node: Any) -> set[str]:
        """The targets that a statement assigns."""
        return set() if node is None or self.module is None else self.module.assigned_in(node)

    def is_clocked(self, procedure: Any) -> bool:
        """Whether a procedure waits for an edge."""
        return bool(
            re.search(
                r"\b(pos|neg)edge\b",
                (self.sources.text(procedure.statement) or "")[:200] if self.sources else "",
            )
        )

    # Declarations

    def _names_in(self, scope: Any) -> dict[str, str]:
        """The names that are declared in a scope itself."""
        found: dict[str, str] = {}
        before = ""
        for node in _every_here(scope):
            kind = type(node).__name__
            if kind == "ImplicitAnsiPortSyntax":
                header = node.header
                said = getattr(header, "dataType", None)
                if self._said(header) and said is not None:
                    before = self._key_of(said)
                self._declare(found, node.declarator, before)
            elif kind in _DECLARING:
                said = (
                    getattr(node, "type", None)
                    or getattr(node, "dataType", None)
                    or getattr(getattr(node, "header", None), "dataType", None)
                )
                if kind != "FunctionPortSyntax" or said is not None:
                    before = self._key_of(said)
                for each in [node.declarator] if kind == "FunctionPortSyntax" else node.declarators:
                    if hasattr(each, "name"):
                        self._declare(found, each, before)
            elif kind == "EnumTypeSyntax":
                for each in node.members:
                    if hasattr(each, "name"):
                        self._declare(found, each, "value of an enumeration")
            elif kind == "ParameterDeclarationSyntax":
                for each in node.declarators:
                    if hasattr(each, "name"):
                        self._declare(found, each, NUMBER)
            elif kind in ("LoopGenerateSyntax", "ForVariableDeclarationSyntax"):
                if kind == "LoopGenerateSyntax" and node != scope:  # no genvar counts outside
                    continue
                each = node.identifier if kind == "LoopGenerateSyntax" else node.declarator.name
                found[each.valueText] = LOOP
        return found

    def _declare(self, found: dict[str, str], declarator: Any, key: str) -> None:
        assert self.sources is not None
        token, array = declarator.name, "".join(map(self._said, declarator.dimensions))
        place = (self.sources.file(token.location), token.location.offset)
        if key != NUMBER:
            key = self.declared.get(place, f"{key} {array}".strip())
        else:
            key = f"{NUMBER} {self.declared.get(place, '')}".strip()
        if token.valueText and not token.rawText.startswith("\\"):  # an escaped one stands for no other
            found.setdefault(token.valueText, key)

    def _key_of(self, kind: Any) -> str:
        """The kind of value of a declared type: bits and sign, if its text gives them."""
        if kind is None:
            return "1 False"
        text = " ".join(self._said(kind).split())
        signed = "signed" in text.split() or kind.kind.name in (
            "IntType",
            "IntegerType",
            "ByteType",
            "ShortIntType",
            "LongIntType",
        )
        bits = "".join(map(self._said, getattr(kind, "dimensions", ()))).replace(" ", "")
        if type(kind).__name__ not in ("ImplicitTypeSyntax", "IntegerTypeSyntax"):
            return text
        if not bits:
            plain = kind.kind.name in ("ImplicitType", "LogicType", "RegType", "BitType")
            return f"1 {signed}" if plain else kind.kind.name
        found = _RANGE.fullmatch(bits)
        return f"{abs(int(found[1]) - int(found[2])) + 1} {signed}" if found else f"{bits} {signed}"

    def _said(self, node: Any) -> str:
        """The text of a node without leading trivia."""
        text = None if self.sources is None or not hasattr(node, "sourceRange") else self.sources.text(node)
        return (text or "").strip()


class Module:
    """The content of a module: the bits it reads, its assignments, and undriven signals."""

    def __init__(self, node: Any, sources: Sources, outer: Scope) -> None:
        self.node, self.sources, self.outer = node, sources, outer
        self._first_assigned: dict[Any, dict[str, int]] = {}
        self.name = str(node.header.name.valueText)
        self._assigned_in: dict[Any, set[str]] = {}
        self._near: tuple[Place, dict[str, None]] | None = None
        """Of the last place: what is missing there is looked for in turn."""

    def assigned_in(self, node: Any) -> set[str]:
        """See Scope."""
        span = node.sourceRange
        key = span.start.buffer, span.start.offset, span.end.offset
        if key not in self._assigned_in:
            self._assigned_in[key] = {name for name, _ in _assignments(node, self.sources)}
        return self._assigned_in[key]

    def first_assigned(self, procedure: Any) -> dict[str, int]:
        """Where each signal of a procedure first has a value in it: behind the assignment."""
        span = procedure.sourceRange
        key = span.start.buffer, span.start.offset
        if key not in self._first_assigned:
            found = self._first_assigned[key] = dict[str, int]()
            for each in _every(procedure, "BinaryExpressionSyntax"):
                place = self.sources.place(each)
                if place is not None and each.kind.name.endswith("AssignmentExpression"):
                    for name in _WORD.findall(self.sources.text(each.left) or ""):
                        found[name] = min(found.get(name, place.end), place.end)
        return self._first_assigned[key]

    def near(self, place: Place) -> dict[str, None]:
        """Names, and bits of vectors, the nearest to a place first."""
        if self._near is None or self._near[0] != place:
            ranked = sorted(self.bits.get(place.file, ()), key=lambda each: abs(each[0] - place.start))
            self._near = place, dict.fromkeys(text for _, text in ranked)
        return self._near[1]

    @cached_property
    def bits(self) -> dict[Path, list[tuple[int, str]]]:
        """Names, and bits of vectors, with their places."""
        found: dict[Path, list[tuple[int, str]]] = {}
        for node in (
            *_every(self.node, "IdentifierNameSyntax"),
            *_every(self.node, "IdentifierSelectNameSyntax"),
            *_every(self.node, "ScopedNameSyntax"),
        ):
            if (place := self.sources.place(node)) is not None:
                text = "".join((self.sources.text(place) or "").split())
                found.setdefault(place.file, []).append((place.start, text))
        return found

    @cached_property
    def members(self) -> dict[str, str]:
        """The kind of value of each member of an interface that is read."""
        found = dict[str, str]()
        for node in _every(self.node, "ScopedNameSyntax"):
            if (place := self.sources.place(node)) is not None:
                key = self.outer.declared.get((place.file, place.start))
                found |= {} if key is None else {(self.sources.text(place) or "").strip(): key}
        return found

    @cached_property
    def joined(self) -> list[tuple[str, str, str]]:
        """Names with the operator and the operand that each is joined with, short ones in one line."""
        found: dict[tuple[str, str, str], None] = {}
        for node in _every(self.node, "BinaryExpressionSyntax"):
            if (sign := node.operatorToken.rawText) not in _JOINING:
                continue
            left, right = ((self.sources.text(each) or "").strip() for each in (node.left, node.right))
            for name, term in ((left, right), (right, left))[: 1 + (sign != "-")]:
                if _WORD.fullmatch(name) and len(term) <= _SHORT and "\n" not in term:
                    found[name, sign, term if _WORD.fullmatch(term) else f"({term})"] = None
        return list(found)

    @cached_property
    def conditions(self) -> dict[Path, list[tuple[int, str]]]:
        """Comparisons and conjunctions that are written in one line, with their places."""
        found: dict[Path, list[tuple[int, str]]] = {}
        for node in _every(self.node, "BinaryExpressionSyntax"):
            if node.operatorToken.rawText not in _CONDITIONS or node.kind.name.endswith(
                "AssignmentExpression"
            ):
                continue
            place = self.sources.place(node)
            text = (self.sources.text(node) or "").strip()
            if place is not None and len(text) <= _SHORT and "\n" not in text and not CONTROL.search(text):
                found.setdefault(place.file, []).append((place.start, text))
        return found

    @cached_property
    def undriven(self) -> dict[str, bool]:
        """Signals without an assignment that no instance and no declaration may drive, each with whether it
        is a net."""
        driven = {name for name, _ in _assignments(self.node, self.sources)}
        for node in _every(self.node, "HierarchicalInstanceSyntax"):
            driven.update(_WORD.findall(self.sources.text(node) or ""))
        for node in _every(self.node, "BinaryExpressionSyntax"):
            if node.kind.name.endswith("AssignmentExpression"):
                driven.update(_WORD.findall(self.sources.text(node.left) or ""))
        found: dict[str, bool] = {}
        for node in _every_here(self.node):
            kind, text = type(node).__name__, (self.sources.text(node) or "").strip()
            port = kind in ("ImplicitAnsiPortSyntax", "PortDeclarationSyntax")
            declared = (
                [node.declarator] if kind == "ImplicitAnsiPortSyntax" else getattr(node, "declarators", ())
            )
            if port and not text.startswith("output"):  # Verilog-95 may declare an input a second time
                driven.update(one.name.valueText for one in declared if hasattr(one, "name"))
                continue
            net = kind == "NetDeclarationSyntax" or (port and not re.search(r"\b(reg|logic|bit)\b", text))
            for one in declared if port or kind in _DECLARING[:2] else ():
                named = hasattr(one, "name") and not one.name.rawText.startswith("\\")
                if named and one.initializer is None and one.name.valueText not in driven:
                    found[one.name.valueText] = found.get(one.name.valueText, True) and net
        return dict([(name, net) for name, net in found.items() if name not in driven][:_NEAR])


def _every(root: Any, kind: str) -> Iterator[Any]:
    """The nodes of one type of syntax."""
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node).__name__ == kind:
            yield node
        stack += [child for child in node if hasattr(child, "sourceRange")][::-1]


def _every_here(scope: Any) -> Iterator[Any]:
    """The nodes of a scope without the nodes of inner scopes."""
    stack = [child for child in scope if hasattr(child, "sourceRange")][::-1]
    if type(scope).__name__ == "LoopGenerateSyntax":
        yield scope
    while stack:
        node = stack.pop()
        yield node
        if type(node).__name__ not in _SCOPES:
            stack += [child for child in node if hasattr(child, "sourceRange")][::-1]


def _assignments(node: Any, sources: Sources) -> Iterator[tuple[str, str]]:
    """The target and the sign of each assignment in a node."""
    for each in _every(node, "BinaryExpressionSyntax"):
        sign = each.operatorToken.rawText
        if each.kind.name.endswith("AssignmentExpression") and sign in ("=", "<="):
            name = _WORD.match(" ".join(sources.expanded(each.left).split()))
            if name is not None:
                yield name[0], sign
