"""Units with faults: random ones, and one whose answers are known."""

from __future__ import annotations

import random
from typing import Any

import yaml_text
from random_units import random_unit

from golden import yamlfile
from golden.catalog import unit_files
from golden.model.instruction import Instruction
from golden.number.rounding import MODES
from golden.program.keys import (
    Candidates,
    Causes,
    Choice,
    Flag,
    Integer,
    Key,
    Names,
    Roundings,
    Rules,
    Widths,
    declared,
    key_name,
)
from golden.program.steps import variants
from golden.yamlfile import MISSING

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
    unit: Keys = yaml_text.read(random_unit(rng))
    for operation in unit["program"]:
        for step in operation["steps"]:
            ((op, keys),) = step.items()
            spoil(rng, op, keys)
        if rng.random() < 0.3:
            of = rng.choice((["a"], ["a", "b"], ["c"], ["a", "b", "c"]))
            operation["steps"].insert(0, {"hidden_bit": {"of": of, "zeros": rng.choice(("kept", "set"))}})
    return yaml_text.written(unit)


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


# Any key of any step ----------------------------------------------------------------------------------------

INTEGERS: dict[str, tuple[int, ...]] = {
    "overflow_exponent": (-20, 0, 8, 128),
    "power": (-20, -1, 0, 5),
    "sticky_gap": (0, 1, 3, 5),
    "shift_limit": (0, 7, 31, 10000),
    "floor": (-150, -126, -14, 0, 40),
    "exponent": (-30, 0, 12),
    "width": (1, 2, 5, 9, 40, 60),
    "min_exponent": (-133, -14, 0),
    "random_bits": (1, 4, 9, 16),
    "random": (0, 1, 11, 300, 65535),
    "result_fraction_bits": (0, 1, 6),
    "underflow_exponent": (-140, -126, -14, 0, 40),
    "first": (-6, 0, 0, 1, 3, 7),
    "bits": (1, 4, 5, 9, 24),
    "places": (0, 8, 23, 26),
    "value": (-1, 1, 3, -256),
    "by": (-(1 << 27), 0, 1, 5),
}


def value_for(rng: random.Random, name: str, key: Key, of: list[str]) -> Any:
    """A value that YAML may have for a key; the loader refuses what means nothing."""
    match key:
        case Choice(words=words):
            return rng.choice(words)
        case Flag():
            return rng.random() < 0.5
        case Integer():
            return rng.choice(INTEGERS[name])
        case Widths():
            return {rng.choice(of): rng.choice((0, 8, 25, 40) if name != "spared" else (-140, -126, -20, 0))}
        case Roundings():
            return {register: rng.choice(MODES) for register in of}
        case Rules(vocabulary=vocabulary):
            return {of[-1]: rng.choice(vocabulary.words)}
        case Names(allowed=allowed):
            return rng.sample(allowed, rng.randint(1, len(allowed)))
        case Causes(causes=causes):
            some = rng.sample(causes, rng.randint(1, 4))
            words = ("payload", "payload", rng.randrange(128))
            return {cause: rng.choice(words) if cause in ("a", "b", "c", "factor") else 5 for cause in some}
        case Candidates(most=most):
            return [candidate(rng, of) for _ in range(rng.randint(1, most))]
        case _:
            return None


def _integers(rng: random.Random, op: str) -> Keys:
    """A value for each key of a step that has integers alone."""
    (kind,) = variants(op)
    return {name: rng.choice(INTEGERS[name]) for name, key, _ in declared(kind) if isinstance(key, Integer)}


def _except(rng: random.Random, steps: list[Keys]) -> None:
    """An exception for what an exact sum or an alignment writes."""
    for at, step in enumerate(steps):
        ((op, keys),) = step.items()
        of = keys.get("of") if op == "align" else keys.get("to") if op == "sum" else None
        if of not in (None, "d") and rng.random() < 0.5:
            steps.insert(at + 1, {"replace": {"of": of} | _integers(rng, "replace")})
            return


def candidate(rng: random.Random, of: list[str]) -> Keys:
    one: Keys = {
        "of": rng.sample(of, rng.randint(1, len(of))),
        "exponent": rng.choice(("carried", "leading")),
    }
    one |= {"plus": rng.randint(-4, 3)} if rng.random() < 0.5 else {}
    return one | ({"least": rng.choice((-126, -40, 0))} if rng.random() < 0.4 else {})


def any_unit(rng: random.Random) -> str:
    """A random unit whose steps have any of the keys that their classes declare."""
    unit: Keys = yaml_text.read(faulty_unit(rng) if rng.random() < 0.3 else random_unit(rng))
    for operation in unit["program"]:
        if rng.random() < 0.3:
            of = rng.sample("ab", rng.randint(1, 2))
            operation["steps"].insert(0, {"part": {"of": of} | _integers(rng, "part")})
        if rng.random() < 0.3:
            _except(rng, operation["steps"])
        for step in operation["steps"]:
            ((op, keys),) = step.items()
            enrich(rng, op, keys)
    return yaml_text.written(unit)


def enrich(rng: random.Random, op: str, keys: Keys) -> None:
    kinds = variants(op)
    kind = kinds[0] if len(kinds) == 1 or keys.get("order", "exact") == "exact" else kinds[-1]
    of = keys.get("of", ["a", "b"])
    of = [of] if isinstance(of, str) else of
    for name, key, default in declared(kind):
        if (default is not MISSING or isinstance(key, Roundings)) and rng.random() < 0.2:
            value = value_for(rng, name, key, of)
            if value is not None:
                keys[key_name(name, key)] = value
    keys.pop("random", None)
    if "random_bits" in keys:  # one rounding with all its keys
        keys |= {"random": rng.randrange(1 << keys["random_bits"]), "rounding": "toward_zero"}
    if keys.get("maximum") or ("exponent" in keys and op == "align"):
        for other in (
            "floor",
            "zeros",
            "left_out",
            "shift_limit",
            *(("exponent",) if "maximum" in keys else ()),
        ):
            keys.pop(other, None)
