"""JSON Schema of a plan's YAML file, for editors: from what golden.kernels.options declares.

`python -m golden.kernels.plan_schema` writes spec/schemas/plan.schema.json; a test holds the committed file
to this module. The loader says more: which keys go with which others, and with the instruction.
"""

from __future__ import annotations

from dataclasses import fields

from golden.catalog.json_schema import DRAFT, Schema, schema_file, text
from golden.kernels.options import Options


def plan_schema() -> Schema:
    """The schema of a file of golden.kernels.plan_files.load_plan."""
    plain = Options()
    properties: Schema = {
        "plan": {"type": "string", "minLength": 1, "description": "its name"},
        "instruction": {
            "type": "string",
            "description": "architecture:instruction, or the .yaml of a unit, from the folder of this file",
        },
        "title": {"type": "string"},
        "source": {"type": "string", "description": "what the plan was derived from"},
    }
    for one in fields(Options):
        default = getattr(plain, one.name)
        properties[one.name] = {**one.metadata["check"].schema(), "description": one.metadata["meaning"]}
        if default not in (None, ()):
            properties[one.name]["default"] = list(default) if isinstance(default, tuple) else default
    return {
        "$schema": DRAFT,
        "title": "An accumulation plan of mmagold",
        "type": "object",
        "properties": properties,
        "required": ["plan", "instruction"],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    from golden.files.output import write_text

    write_text(schema_file("plan"), text(plan_schema()))
