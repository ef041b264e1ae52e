"""Reading YAML specs so that every complaint can name file, line, key and what was expected.

`read(path)` returns nested `Section` and list objects. A `Section` is consumed key by key with `take...`; `done()`
refuses what nobody asked for, so a misspelt key is an error instead of a silent default.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from golden.errors import SpecError, nearest

T = TypeVar("T")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MISSING: Any = object()
"""Stands for the default of a key that a mapping must have."""
MAX_NESTING = 64


class Section(dict[str, Any]):
    """A YAML mapping that remembers its file and the line of every key."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file, self.line = file, line
        self.lines: dict[str, int] = {}
        self._taken: set[str] = set()

    def error(self, message: str, key: str | None = None) -> SpecError:
        """Returns a SpecError that points at `key` (or at the start of this mapping)."""
        line = self.lines.get(key, self.line) if key else self.line
        return SpecError(f"{self.file}:{line}: {message}")

    def take(self, key: str, kind: type[T] | tuple[type, ...], default: Any = MISSING) -> Any:
        """Returns the value of `key`, which must be of type `kind`; without a default the key is required."""
        self._taken.add(key)
        if key not in self or (self[key] is None and default is not MISSING):
            if default is MISSING:
                raise self.error(f"key '{key}' is missing{nearest(key, self)}")
            return default
        value = self[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = " or ".join(_KIND_NAMES.get(k, k.__name__) for k in kinds)
            raise self.error(f"key '{key}' is {_describe(value)}, expected {expected}", key)
        return value

    def take_choice(self, key: str, choices: Iterable[str], default: Any = MISSING) -> Any:
        """Returns the value of `key`, which must be one of `choices`."""
        value = self.take(key, str, default)
        known = list(choices)
        if value is not default and value not in known:
            raise self.error(f"key '{key}' is '{value}', expected one of {', '.join(known)}{nearest(value, known)}", key)
        return value

    def take_int(self, key: str, low: int, high: int, default: Any = MISSING) -> Any:
        """Returns the integer value of `key`, which must lie in low..high."""
        value = self.take(key, int, default)
        if value is not default and not low <= value <= high:
            raise self.error(f"key '{key}' is {value}, expected an integer from {low} to {high}", key)
        return value

    def take_names(self, key: str, default: Any = MISSING) -> Any:
        """Returns a list of strings; a single string counts as a list of one."""
        value = self.take(key, (str, list), default)
        if value is default:
            return value
        names = [value] if isinstance(value, str) else value
        if not all(isinstance(name, str) for name in names):
            raise self.error(f"key '{key}' is {_describe(value)}, expected a list of names", key)
        return names

    def done(self, known: Iterable[str] = ()) -> None:
        """Raises SpecError for the first key that was never taken."""
        expected = sorted(self._taken | set(known))
        for key in self:
            if key not in self._taken:
                raise self.error(f"unknown key '{key}', expected one of {', '.join(expected)}{nearest(key, expected)}", key)


_KIND_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    Section: "a mapping",
    dict: "a mapping",
    float: "a number",
}


def _describe(value: Any) -> str:
    if isinstance(value, Section):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"{value!r}"


def read(path: str | Path) -> Section:
    """Reads a YAML file whose top level is a mapping.

    Raises:
        SpecError: the file cannot be read, is not UTF-8 YAML, repeats a key, or does not hold a mapping.
    """
    name = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise SpecError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{name}: not UTF-8 text at byte {error.start}") from None
    return parse(text, name)


def parse(text: str, name: str = "<text>") -> Section:
    """Parses YAML text whose top level is a mapping; `name` stands in messages for the file."""
    try:
        node = yaml.compose(text, Loader=_LOADER)
        value = _build(node, name, 0, set()) if node is not None else None
    except yaml.YAMLError as error:
        mark, position = getattr(error, "problem_mark", None), getattr(error, "position", 0)
        line = mark.line + 1 if mark else text.count("\n", 0, position) + 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise SpecError(f"{name}:{line}: not valid YAML: {' '.join(problem.split())}") from None
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply") from None
    if not isinstance(value, Section):
        raise SpecError(f"{name}:1: the file holds {_describe(value)}, expected a mapping of keys")
    return value


def _build(node: yaml.Node, name: str, depth: int, open_nodes: set[int]) -> Any:
    line = node.start_mark.line + 1
    if depth > MAX_NESTING or id(node) in open_nodes:
        raise SpecError(f"{name}:{line}: nested too deeply")
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, name, line)
    open_nodes.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        built: Any = [_build(item, name, depth + 1, open_nodes) for item in node.value]
    else:
        built = _build_mapping(node, name, line, depth, open_nodes)
    open_nodes.discard(id(node))
    return built


def _build_mapping(node: Any, name: str, line: int, depth: int, open_nodes: set[int]) -> Section:
    section = Section(name, line)
    for key_node, value_node in node.value:
        key_line = key_node.start_mark.line + 1
        key = _build(key_node, name, depth + 1, open_nodes)
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise SpecError(f"{name}:{key_line}: key {_describe(key)} is not a name")
        if str(key) in section:
            raise SpecError(f"{name}:{key_line}: key '{key}' appears twice")
        section[str(key)] = _build(value_node, name, depth + 1, open_nodes)
        section.lines[str(key)] = key_line
    return section


def _scalar(node: yaml.ScalarNode, name: str, line: int) -> Any:
    try:
        return yaml.SafeLoader("").construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise SpecError(f"{name}:{line}: value {node.value!r} cannot be read: {getattr(error, 'problem', error)}") from None
