"""The algorithms of spec/algorithms, and their parameters as an instruction fills them in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from golden import yamlfile
from golden.errors import UnknownNameError, nearest
from golden.number.formats import Format
from golden.number.rounding import MODES, OVERFLOWS
from golden.paths import spec_folder
from golden.yamlfile import Section

_CHECKS = {"int": int, "word": int, "mode": str, "overflow": str, "names": (str, list), "bool": bool}


@dataclass(frozen=True)
class Algorithm:
    """One file of spec/algorithms. `steps` and `parameters` stay YAML until an instruction fills them in."""

    name: str
    title: str
    source: str
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chain_of: str | None = None
    parameters: Section | None = None
    steps: list[Any] = field(default_factory=list)


@cache
def _load_algorithm(path: Path) -> Algorithm:
    document = yamlfile.read(path)
    algorithm = Algorithm(
        document.take("algorithm", str),
        document.take("title", str),
        document.take("source", str),
        tuple(document.take_names("aliases", [])),
        tuple(document.take_names("notes", [])),
        document.take("chain_of", str, None),
        document.take("parameters", Section, None),
        document.take("steps", list, []),
    )
    document.done()
    if bool(algorithm.steps) == bool(algorithm.chain_of):
        raise document.error(f"algorithm '{algorithm.name}' needs either 'steps' or 'chain_of'")
    return algorithm


@lru_cache(maxsize=1)
def algorithms() -> dict[str, Algorithm]:
    """Returns every algorithm of spec/algorithms by its paper name (aliases: see `get_algorithm`)."""
    loaded = [_load_algorithm(path) for path in sorted((spec_folder() / "algorithms").glob("*.yaml"))]
    return {algorithm.name: algorithm for algorithm in loaded}


def get_algorithm(name: str) -> Algorithm:
    """Returns an algorithm by its paper name or its newer alias."""
    path = spec_folder() / "algorithms" / f"{name}.yaml"
    if name.isidentifier() and path.is_file():  # the others need not be read
        return _load_algorithm(path)
    for algorithm in algorithms().values():
        if name.lower() in (algorithm.name, *algorithm.aliases):
            return algorithm
    known = [n for a in algorithms().values() for n in (a.name, *a.aliases)]
    raise UnknownNameError(f"unknown algorithm '{name}'{nearest(name, known)}")


def resolve_parameters(algorithm: Algorithm, given: Section, out: Format) -> dict[str, Any]:
    declared = algorithm.parameters or Section(given.file, given.line)
    values: dict[str, Any] = {}
    for name in declared:
        rule = declared[name]
        value = given.take(name, (int, str, bool, list, Section), rule.get("default"))
        if isinstance(value, Section) and rule.get("by_output"):
            value = value.get(out.name)
        # The exponent says all that the width does, so that the width does not stay a parameter.
        width = values.pop(rule.get("least_exponent_less", ""), None)
        if value is None and width is not None:
            # A register with this many integer bits and a fixed last place holds no exponent below this.
            value = out.min_exponent - width
        if value is None and not rule.get("optional") and rule["type"] != "word":
            raise given.error(f"parameter '{name}' of {algorithm.name} is missing for {out.name} results")
        if value is not None:
            _check_parameter(given, name, rule, value)
        values[name] = value
    given.done(declared)
    return values


def _check_parameter(given: Section, name: str, rule: Section, value: Any) -> None:
    kind = _CHECKS[rule["type"]]
    allowed = {"mode": MODES, "overflow": OVERFLOWS}.get(rule["type"], rule.get("choices"))
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):  # type: ignore[arg-type]
        raise given.error(f"parameter '{name}' is {value!r}, expected {rule['type']}", name)
    if allowed and value not in allowed:
        raise given.error(
            f"parameter '{name}' is '{value}', expected one of {', '.join(allowed)}{nearest(value, allowed)}",
            name,
        )


def substitute(value: Any, parameters: dict[str, Any], section: Section) -> Any:
    """Replaces "$name" by the parameter's value, also inside lists and mappings."""
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in parameters:
            raise section.error(f"'{value}' names no parameter{nearest(value[1:], parameters)}")
        return parameters[value[1:]]
    if isinstance(value, list):
        return [substitute(item, parameters, section) for item in value]
    if isinstance(value, Section):
        copy = Section(value.file, value.line)
        copy.lines = value.lines
        for key in value:
            copy[key] = substitute(value[key], parameters, section)
        return copy
    return value
