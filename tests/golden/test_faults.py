"""The schema's faulty behaviours: the two models agree on random units with them, and known answers hold.

docs/diagnosis.md describes the keys. The units are those of test_custom_fuzz.py with keys added at random.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from test_custom_fuzz import accepted, differences, random_unit

Keys = dict[str, Any]


def spoil(rng: random.Random, op: str, keys: Keys) -> None:
    """Adds faulty behaviours to one step of a unit."""
    chance = rng.random() < 0.5
    if op == "align":
        keys["zeros"] = rng.choice(("ignored", "maximum", "maximum", "sticky"))
        if chance:
            keys |= {"cut": "sticky", "sticky_gap": rng.randint(0, 4)}
        if rng.random() < 0.4:
            keys["shift_limit"] = rng.randint(0, 40)
        if rng.random() < 0.4 and len(keys["of"]) > 1:
            keys["left_out"] = {keys["of"][-1]: rng.choice(("dropped", "unshifted"))}
    elif op == "sum" and keys.get("order", "exact") == "exact":
        keys |= {"cancelled": rng.choice(("keeps_exponent", "zero"))} | (
            {"width": rng.choice((1, 2, 4, 9, 60))} if chance else {}
        )
    elif op == "special_values":
        keys["opposite_infinities"] = rng.choice(("nan", "first", "last", "positive", "negative"))
    elif op in ("multiply", "fma") and keys.get("operation", "product") == "product":
        keys["zero_times_infinity"] = rng.choice(("nan", "infinity", "zero"))
    elif op == "round":
        keys["zero"] = rng.choice(("positive", "signed", "signed_underflow"))
        keys |= {"subnormal_carry": "lost"} if chance else {}


def faulty_unit(rng: random.Random) -> str:
    """A random unit with faults, as YAML text (the loader may refuse it)."""
    unit: Keys = yaml.safe_load(random_unit(rng))
    for operation in unit["program"]:
        for step in operation["steps"]:
            ((op, keys),) = step.items()
            spoil(rng, op, keys)
        if rng.random() < 0.3:
            of = rng.choice((["a"], ["a", "b"], ["c"], ["a", "b", "c"]))
            operation["steps"].insert(0, {"hidden_bit": {"of": of, "zeros": rng.choice(("kept", "set"))}})
    return str(yaml.safe_dump(unit, sort_keys=False))


@pytest.mark.parametrize("block", range(8))
def test_models_agree_on_faulty_units(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        text, ins = accepted(faulty_unit, seed)
        found = differences(ins, 6, seed)
        assert not found, "\n".join([f"seed {seed}", *found, text])
