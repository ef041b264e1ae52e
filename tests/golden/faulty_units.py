"""Units with faults: random ones, and one whose answers are known."""

from __future__ import annotations

import random
from typing import Any

import yaml
from random_units import random_unit

from golden import yamlfile
from golden.catalog import unit_files
from golden.instruction import Instruction

Keys = dict[str, Any]


def spoil(rng: random.Random, op: str, keys: Keys) -> None:
    """Adds faulty behaviours to one step of a unit."""
    chance = rng.random() < 0.5
    if op == "align":
        keys["zeros"] = rng.choice(("ignored", "maximum", "maximum", "sticky"))
        if chance:
            keys |= {"cut": rng.choice(("sticky_added", "sticky_or")), "sticky_gap": rng.randint(0, 4)}
        if rng.random() < 0.4:
            keys["shift_limit"] = rng.choice((rng.randint(0, 40), rng.randint(0, 40), 10000))
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
        keys |= {"sticky_gap": rng.randint(1, 5)} if rng.random() < 0.4 else {}


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


UNIT = """\
unit: known
shape: {{k: 2}}
formats: {{a: f16, b: f16, c: f32, d: f32}}
steps:
{before}  - multiply: {{to: products{multiply}}}
  - special_values: {{of: [products, c], nan: 0x7FC00000{special}}}
  - align: {{of: [products, c], fraction_bits: 24, rounding: toward_zero{align}}}
  - sum: {{of: [products, c], to: total{sum}}}
  - round: {{of: total, rounding: toward_zero, overflow: infinity, zero: positive{round}}}
"""
ONE, TWO, TINY, INFINITY, MINUS_INFINITY = 0x3C00, 0x4000, 0x0001, 0x7C00, 0xFC00


def known_unit(**keys: str) -> Instruction:
    parts = {"before": "", "multiply": "", "special": "", "align": "", "sum": "", "round": ""} | keys
    return unit_files.build_instruction(yamlfile.parse(UNIT.format(**parts)))
