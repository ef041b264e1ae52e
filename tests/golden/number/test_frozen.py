"""Frozen dataclasses that remember their hash, and their quick `replace`."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass

import pytest

import golden
from golden.number import frozen


@frozen.hashed_once
@dataclass(frozen=True)
class Point:
    x: int
    y: str = "y"


def test_a_hash_is_that_of_the_fields_and_stays_at_home() -> None:
    one, other = Point(1), Point(1)
    assert hash(one) == hash(other) and one == other and hash(one) != hash(Point(2))
    assert "_hash" in vars(one)
    assert "_hash" not in vars(pickle.loads(pickle.dumps(one)))  # strings hash otherwise in another process


def test_what_is_replaced_is_as_if_made_anew() -> None:
    one = Point(1)
    hash(one)
    new = frozen.replace(one, x=2)
    assert new == dataclasses.replace(one, x=2) and hash(new) == hash(Point(2)) and one.x == 1
    with pytest.raises(TypeError, match="Point has no field z"):
        frozen.replace(one, z=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        new.x = 3  # type: ignore[misc]


def test_what_is_made_of_more_than_its_fields_is_refused() -> None:
    @dataclass(frozen=True)
    class Checked:
        x: int

        def __post_init__(self) -> None:
            assert self.x

    with pytest.raises(TypeError, match="makes more"):
        frozen.replace(Checked(1), x=2)


def test_a_derived_value_is_not_handed_on() -> None:
    one = golden.get_format("f16")
    assert one.bits == 16
    assert frozen.replace(one, exponent_bits=8).bits == 19
