"""JSON Schema of a regress.yaml, for editors.

`python -m rtl_tb.regress.schema` writes spec/schemas/regress.schema.json; a test holds the committed file to
this module. What the schema refuses, the loader (rtl_tb/regress/plan.py) refuses, too.
"""

from __future__ import annotations

from golden.catalog.json_schema import DRAFT, Schema, integer, object_of, schema_file, text
from golden.stimuli import INTEGER_KINDS, KINDS
from golden.vectors.vectorset import MOST, MOST_AT_ONCE
from rtl_tb import engines
from rtl_tb.check.synthesis import POLICIES
from rtl_tb.engines.job import SIMULATORS
from rtl_tb.regress.plan import MOST_SEEDS, NAME, REAL_SETTINGS, WHOLE_SETTINGS

_NAME: Schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
_SHARE: Schema = {"type": "number", "minimum": 0}


def regress_schema() -> Schema:
    """The schema of a regress.yaml."""
    choices = {"engines": _engines(), "kinds": _kinds(), "seeds": _seeds()}
    unit = object_of(
        {"dut": {"type": "string", "description": "dut.yaml file, or a pattern"}, **choices}, ["dut"]
    )
    properties = {
        "regress": {**_NAME, "description": "name in reports; by default the file's"},
        "units": {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, unit]},
            "minItems": 1,
            "description": "dut.yaml files and patterns, relative to this file",
        },
        **choices,
    }
    return {"$schema": DRAFT, "title": "A regression of mmagold", **object_of(properties, ["units"])}


def _engines() -> Schema:
    names = [name for engine in engines.ENGINES for name in (engine, *(f"{engine}/{s}" for s in SIMULATORS))]
    settings = {name: {"type": "integer", "minimum": low} for name, low in WHOLE_SETTINGS.items()}
    settings |= {name: {"type": "number", "minimum": 0} for name in REAL_SETTINGS}
    mapping = object_of(
        {
            "engine": {"enum": list(engines.ENGINES)},
            "sim": {"enum": list(SIMULATORS), "default": "verilator"},
            "count": {**integer(1, MOST), "description": "vectors for each seed and mix"},
            "shard": {**integer(1, MOST_AT_ONCE), "description": "vectors of a shard"},
            **settings,
            "synthesis": {"enum": list(POLICIES), "default": "try"},
        },
        ["engine"],
    )
    one: Schema = {"anyOf": [{"enum": names}, mapping]}
    return {"anyOf": [{"enum": names}, {"type": "array", "items": one, "minItems": 1}]}


def _kinds() -> Schema:
    shares = object_of(dict.fromkeys((*KINDS, *INTEGER_KINDS), _SHARE), [])
    mix: Schema = {"anyOf": [{"const": "all"}, shares]}
    mixes = {"type": "object", "propertyNames": _NAME, "additionalProperties": mix}
    return {"anyOf": [{"const": "all"}, mixes], "description": "shares of kinds, by the name of the mix"}


def _seeds() -> Schema:
    listed = {"type": "array", "items": integer(0, 2**32 - 1), "minItems": 1}
    return {"anyOf": [integer(1, MOST_SEEDS), listed], "description": "how many seeds, or which"}


if __name__ == "__main__":
    from golden.files.output import write_text

    write_text(schema_file("regress"), text(regress_schema()))
