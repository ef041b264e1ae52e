"""What golden/program.py asks a step's mapping for: every key with its choices and default, found by asking it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from golden.formats import get_format
from golden.program import STEPS, _StepReader
from golden.yamlfile import Section

_MISSING: Any = object()
# Keys that decide which others are asked for: every combination of these is read once.
_PRESETS: dict[str, list[dict[str, Any]]] = {
    "multiply": [{}, {"format": "f32", "rounding": "down"}],
    "align": [{"cut": "sticky"}],
    "sum": [{"of": "products", "order": order} for order in ("exact", "tree")],
    "round": [{"to": "d"}],
    "hidden_bit": [{"of": "a"}],
}


@dataclass
class Key:
    """choices: the words that are allowed, or None. default: None where the key is needed, else its spelling."""

    choices: tuple[str, ...] | None = None
    needed: bool = False
    default: str | None = None


class _Asked(Section):
    """A mapping that answers every question with something sensible and remembers what was asked."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__("asked", 1)
        self.update({"of": "products", "to": "total", "fraction_bits": 1} | given)
        self.keys_asked: dict[str, Key] = {}

    def take(self, key: str, kind: Any, default: Any = _MISSING) -> Any:
        self._note(key, None, default)
        return self.get(key, "f32" if default is _MISSING else default)

    def take_choice(self, key: str, choices: Any, default: Any = _MISSING) -> Any:
        known = tuple(choices)
        self._note(key, known, default)
        return self.get(key, known[0] if default is _MISSING else default)

    def take_int(self, key: str, low: int, high: int, default: Any = _MISSING) -> Any:
        self._note(key, None, default)
        return self.get(key, low if default is _MISSING else default)

    def take_names(self, key: str, default: Any = _MISSING) -> Any:
        self._note(key, None, default)
        value = self.get(key, "a" if default is _MISSING else default)
        return [value] if isinstance(value, str) else value

    def done(self, known: Any = ()) -> None:
        return None

    def _note(self, key: str, choices: tuple[str, ...] | None, default: Any) -> None:
        spelt = None if default is _MISSING else "none" if default in (None, []) else str(default).lower()
        before = self.keys_asked.get(key, Key())
        self.keys_asked[key] = Key(choices or before.choices, default is _MISSING or before.needed, spelt or before.default)


def step_keys() -> dict[str, dict[str, Key]]:
    """Every step with its keys."""
    table: dict[str, dict[str, Key]] = {}
    for op in STEPS:
        keys = table.setdefault(op, {})
        for preset in _PRESETS.get(op, [{}]):
            asked = _Asked(preset)
            _StepReader(op, asked, get_format("f32"), {}).read()
            for name, key in asked.keys_asked.items():
                before = keys.get(name)
                needed = key.needed and (before is None or before.needed)
                keys[name] = Key(key.choices, needed, key.default or (before.default if before else None))
    return table


if __name__ == "__main__":
    for op, keys in step_keys().items():
        print(op, {name: (key.choices, key.needed, key.default) for name, key in keys.items()})
