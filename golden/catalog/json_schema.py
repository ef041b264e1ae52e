"""JSON Schema of a unit's YAML file, for editors: from what the step classes declare.

`python -m golden.catalog.json_schema` writes spec/schemas/unit.schema.json; a test holds the committed file
to this module. The loader says more than a schema can (golden/program/checks.py); what the schema refuses,
the loader refuses, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from golden.number.formats import SPECIALS, formats
from golden.paths import spec_folder
from golden.program import keys
from golden.program.algorithms import algorithms
from golden.program.keys import (
    Candidates,
    Causes,
    Choice,
    Flag,
    FormatName,
    Grouping,
    Integer,
    Key,
    Names,
    Registers,
    Rules,
    Target,
    Widths,
    Word,
    declared,
    key_name,
)
from golden.program.state import PRODUCTS
from golden.program.steps import MAX_K, STEPS, variants
from golden.yamlfile import MISSING

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_MODE: Schema = {"type": "string", "pattern": r"^\$\w+$"}
"""A word of `modes` can stand for any other."""


def schema_file(name: str) -> Path:
    """Where the schema of a kind of file ("unit", "dut", "regress") lies."""
    return spec_folder() / "schemas" / f"{name}.schema.json"


def editor_line(name: str) -> str:
    """The comment by which editors find the schema of a file."""
    return f"# yaml-language-server: $schema={schema_file(name)}\n"


def unit_schema() -> Schema:
    """The schema of a unit."""
    steps = {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 1}
    status = {"enum": list(keys.STATUS.words)}
    properties: Schema = {
        "unit": {"type": "string", "description": "name in messages and files"},
        "title": {"type": "string"},
        "source": {"type": "string", "description": "where the description comes from"},
        "notes": {"type": ["string", "array"]},
        "shape": object_of({name: integer(1, 4096) for name in "kmn"}, ["k"]),
        "modes": {"type": "object", "description": "fields of the operand `mode`: the words by code"},
        "define_formats": {"type": "object", "additionalProperties": {"$ref": "#/$defs/format"}},
        "formats": {"type": "object", "additionalProperties": {"$ref": "#/$defs/format_name"}},
        "scale_block": integer(1, MAX_K),
        "accumulator": {"enum": ["operand", "state"], "description": "`state`: c is the result before"},
        "clear": {"enum": [*PRODUCTS], "description": "whether the products that come with `clear` count"},
        "load": {"enum": ["none", *PRODUCTS], "description": "an operand that takes c into the accumulator"},
        "flags": {
            "description": "status flags beside d, the lowest bit first",
            "anyOf": [status, {"type": "array", "items": status, "minItems": 1, "uniqueItems": True}],
        },
        "steps": steps,
        "program": {"type": "array", "items": {"$ref": "#/$defs/operation"}, "minItems": 1},
    }
    return {
        "$schema": DRAFT,
        "title": "A unit of mmagold",
        **object_of(properties, ["unit", "shape", "formats"]),
        "oneOf": [{"required": ["steps"]}, {"required": ["program"]}],
        "$defs": {
            "format_name": {"type": "string", "examples": sorted(formats())},
            "format": _format(),
            "operation": _operation(steps),
            "step": {
                **object_of({op: {"anyOf": [_step(kind) for kind in variants(op)]} for op in STEPS}, []),
                "minProperties": 1,
                "maxProperties": 1,
            },
        },
    }


def object_of(properties: Schema, required: list[str]) -> Schema:
    """A mapping of these keys and no others."""
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": required} if required else {})


def integer(low: int, high: int) -> Schema:
    """An integer from `low` to `high`."""
    return {"type": "integer", "minimum": low, "maximum": high}


def _format() -> Schema:
    properties = {
        "kind": {"enum": ["float", "integer"]},
        "storage": {"enum": [8, 16, 32, 64]},
        "signed": {"type": "boolean"},
        "exponent_bits": integer(1, 11),
        "fraction_bits": integer(0, 52),
        "bias": integer(-64, 1087),
        "specials": {"enum": list(SPECIALS)},
        "zero": {"type": "boolean"},
        "subnormals": {"type": "boolean"},
        "ignored_low": integer(0, 32),
        "ignored_high": integer(0, 8),
        "bits": integer(1, 64),
    }
    return object_of(properties, ["kind", "storage"])


def _operation(steps: Schema) -> Schema:
    properties: Schema = {
        "k": {"anyOf": [{"enum": ["all", "none"]}, {"type": "object"}]},
        "seed": {"type": "string"},
        "addends": {"type": ["string", "array"]},
        "operands": {"$ref": "#/$defs/format_name"},
        "out": {"$ref": "#/$defs/format_name"},
        "to": {"type": "string"},
        "steps": steps,
    }
    for algorithm in algorithms().values():
        for name in (algorithm.name, *algorithm.aliases):
            properties[name] = {"type": ["object", "null"]}
    return object_of(properties, [])


def _step(kind: Any) -> Schema:
    """One kind of step: its keys with their meanings."""
    properties, required = {}, []
    for name, key, default in declared(kind):
        shown = key_name(name, key)
        properties[shown] = {**_value(key), "description": key.meaning}
        if default is not MISSING and isinstance(default, str | int) and default != "":
            properties[shown]["default"] = default
        if default is MISSING and not key.when and not isinstance(key, FormatName):
            required.append(shown)
    order = properties.get("order")
    if order is None and len(variants(kind.op)) > 1:
        properties["order"] = {"const": "exact"}
    return object_of(properties, required)


def _value(key: Key) -> Schema:
    """What a key may hold."""
    match key:
        case Registers(most=most, allowed=allowed):
            words = {"enum": list(allowed)}
            many = {"type": "array", "items": words, "minItems": 1, "maxItems": most, "uniqueItems": True}
            return {"anyOf": [words, many]}
        case Target(allowed=allowed):
            return {"enum": list(allowed)}
        case Choice(words=words, old=old):
            return {"anyOf": [{"enum": [*words, *(word for word, _ in old)]}, _MODE]}
        case Integer(low=low, high=high):
            return {"anyOf": [integer(low, high), _MODE]}
        case Flag():
            return {"anyOf": [{"type": "boolean"}, _MODE]}
        case Widths(low=low, high=high, for_all=for_all):
            one = integer(low, high)
            table: Schema = {"type": "object", "additionalProperties": one}
            return {"anyOf": [one, table, _MODE]} if for_all else table
        case Rules(vocabulary=vocabulary):
            return {"type": "object", "additionalProperties": {"enum": list(vocabulary.words)}}
        case Grouping(high=high):
            kinds = object_of({word: integer(1, high) for word in keys.GROUP.words}, [])
            return {**kinds, "minProperties": 1, "maxProperties": 1}
        case FormatName():
            return {"$ref": "#/$defs/format_name"}
        case Word():
            return {"anyOf": [{"type": "integer", "minimum": 0}, _MODE]}
        case Names(allowed=allowed):
            return {"type": "array", "items": {"enum": list(allowed)}, "uniqueItems": True}
        case Causes(causes=causes):
            word = {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "payload"}]}
            return object_of(dict.fromkeys(causes, word), [])
        case Candidates(most=most):
            one = object_of(
                {
                    "of": {"type": ["string", "array"]},
                    "exponent": {"enum": list(keys.PLACE.words)},
                    "plus": {"type": "integer"},
                    "least": {"type": "integer"},
                },
                ["of", "exponent"],
            )
            return {"type": "array", "items": one, "maxItems": most}
        case _:
            raise AssertionError(f"no schema for {type(key).__name__}")


def text(schema: Schema) -> str:
    """The schema as a file."""
    return json.dumps(schema, indent=1) + "\n"


if __name__ == "__main__":
    from golden.files.output import write_text

    write_text(schema_file("unit"), text(unit_schema()))
