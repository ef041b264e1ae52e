"""Frozen dataclasses for searches among programs, which make and look up a million of them: a hash that is
remembered, and a quick `replace`.

A dataclass goes through all of its fields for each hash, and `dataclasses.replace` through its constructor.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
_HASH = "_hash"


def hashed_once(kind: type[T]) -> type[T]:
    """The same frozen dataclass, whose objects keep their hash. It does not travel with an object to another
    process, where strings have other hashes."""
    of_fields = kind.__hash__

    def __hash__(self: Any) -> int:
        kept: dict[str, Any] = self.__dict__
        found: int | None = kept.get(_HASH)
        if found is None:
            found = kept[_HASH] = of_fields(self)
        return found

    def __getstate__(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _HASH}

    for method in (__hash__, __getstate__):
        setattr(kind, method.__name__, method)
    return kind


def replace(one: T, **changes: Any) -> T:
    """What `dataclasses.replace` returns, of a dataclass without slots and without `__post_init__`.

    Raises:
        TypeError: there is no such field.
    """
    kind: Any = type(one)
    names, own = _names(kind), one.__dict__
    new: T = object.__new__(kind)
    kept = new.__dict__
    for name in names:
        kept[name] = own[name]
    kept.update(changes)
    if len(kept) != len(names):
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(kept.keys() - set(names)))}")
    return new


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass; what else its objects hold is derived from them."""
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} makes more of its fields than they are")
    return tuple(one.name for one in fields(kind))
