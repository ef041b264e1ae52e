"""JSON Schema of a dut.yaml, for editors.

`python -m rtl_tb.dut.schema` writes spec/schemas/dut.schema.json; tests hold the committed file to this
module, and this module to the keys that the loader takes. What the schema refuses, the loader refuses, too.
"""

from __future__ import annotations

from golden.catalog.json_schema import DRAFT, Schema, object_of, schema_file, text
from golden.vectors.word import LEVELS
from rtl_tb.dut.description import HANDSHAKES, IDENTIFIER, PORT
from rtl_tb.dut.policy import NAN_POLICIES, ZERO_POLICIES
from rtl_tb.dut.portmap import ARRAYS, GIVEN, ORDERS
from rtl_tb.dut.vhdl import STANDARDS

_IDENTIFIER: Schema = {"type": "string", "pattern": f"^{IDENTIFIER.pattern}$"}
_PORT: Schema = {"type": "string", "pattern": f"^{PORT.pattern}$"}
_NAMES: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def dut_schema() -> Schema:
    """The schema of a dut.yaml."""
    return {
        "$schema": DRAFT,
        "title": "A unit under test of mmagold",
        **object_of(
            {
                "top": {**_IDENTIFIER, "description": "the top module"},
                "dut": {"type": "string", "description": "name in reports; by default the top module's"},
                "instruction": {"type": "string", "description": "such as hopper:HMMA.16816.F32"},
                "unit": {"type": "string", "description": "file of a unit of your own"},
                "sources": {**_NAMES, "description": "files and patterns, relative to this file"},
                "filelist": {
                    **_NAMES,
                    "description": "file lists of a simulator (-f), relative to this file",
                },
                "include": _NAMES,
                "defines": {"type": "object"},
                "parameters": {"type": "object"},
                "types": {"type": "object", "additionalProperties": {"type": "string"}},
                "vhdl": object_of(
                    {
                        "standard": {"enum": [*map(int, STANDARDS), *STANDARDS]},
                        "libraries": {
                            "type": "object",
                            "additionalProperties": _NAMES,
                            "description": "the files of libraries other than work",
                        },
                    },
                    [],
                ),
                "constants": {
                    "type": "object",
                    "additionalProperties": {"anyOf": [_COUNT, {"type": "string"}]},
                },
                "level": {"enum": list(LEVELS)},
                "clock": _PORT,
                "reset": object_of(
                    {
                        "port": _PORT,
                        "active": {"enum": ["low", "high"]},
                        "synchronous": {"type": "boolean"},
                        "cycles": _COUNT,
                    },
                    ["port", "active"],
                ),
                "handshake": {
                    "type": "object",
                    "properties": {"kind": {"enum": list(HANDSHAKES)}},
                    "required": ["kind"],
                },
                "ports": {
                    "type": "object",
                    "properties": {"mode": {"anyOf": [_port(), _MODE_FIELDS]}},
                    "additionalProperties": _port(),
                },
                "exclude": {
                    "type": "object",
                    "additionalProperties": _NAMES,
                    "description": "classes of operands that do not count, and what the unit answers then",
                },
                "compare": object_of(
                    {"nan": {"enum": list(NAN_POLICIES)}, "zero": {"enum": list(ZERO_POLICIES)}}, []
                ),
            },
            ["top", "handshake", "ports"],
        ),
    }


def _port() -> Schema:
    word = object_of(
        {"elements": _COUNT, "stride": _COUNT, "bits": _COUNT, "order": {"enum": list(ORDERS)}}, []
    )
    mapping = object_of(
        {
            "port": _NAMES,
            "array": {"enum": list(ARRAYS)},
            "order": {"enum": list(ORDERS)},
            "major": {"enum": ["row", "column"]},
            "lsb": _COUNT,
            "stride": _COUNT,
            "first": {},
            "word": word,
            "partial": {"type": "boolean"},
            "active": {"enum": ["low", "high"]},
            "given": {"enum": list(GIVEN)},
        },
        ["port"],
    )
    return {"anyOf": [*_NAMES["anyOf"], mapping]}


_MODE_FIELDS: Schema = {
    "type": "object",
    "additionalProperties": _port(),
    "description": "the port of each field of the mode",
}


if __name__ == "__main__":
    from golden.files.output import write_text

    write_text(schema_file("dut"), text(dut_schema()))
