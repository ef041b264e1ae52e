"""The schemas that editors read: of what the loaders take, and refusing nothing that they take."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml_text
from faulty_units import any_unit
from random_units import accepted

from golden.catalog import json_schema
from golden.catalog.unit_text import unit_text
from golden.instruction import Instruction
from rtl_tb.dut import schema as dut_schema

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "spec" / "examples").glob("*.yaml"))
DUTS = sorted(path for path in (ROOT / "rtl_tb").rglob("*.yaml") if "\ntop:" in path.read_text("utf-8"))


def validator(name: str) -> Any:
    schema = json.loads(json_schema.schema_file(name).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_committed_schemas_are_what_the_classes_say() -> None:
    for name, schema in (("unit", json_schema.unit_schema()), ("dut", dut_schema.dut_schema())):
        assert json_schema.schema_file(name).read_text("utf-8") == json_schema.text(schema), name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid_and_name_their_schema(path: Path) -> None:
    validator("unit").validate(yaml_text.read(path.read_text("utf-8")))
    named(path)


@pytest.mark.parametrize("path", DUTS, ids=lambda path: path.stem)
def test_duts_are_valid_and_name_their_schema(path: Path) -> None:
    validator("dut").validate(yaml_text.read(path.read_text("utf-8")))
    named(path)


def named(path: Path) -> None:
    first = path.read_text("utf-8").partition("\n")[0]
    assert (path.parent / first.partition("$schema=")[2]).is_file(), first


def test_whatever_the_loader_takes_is_valid() -> None:
    """Random units over every key: the schema refuses none of those that load."""
    check = validator("unit")
    for seed in range(40):
        text, ins = accepted(any_unit, seed)
        check.validate(yaml_text.read(text))
        written = unit_text(ins)
        assert isinstance(ins, Instruction) and written is not None
        check.validate(yaml_text.read(written))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rounding: nearest_even", "rounding: nearest"),
        ("fraction_bits: 26", "fraction_bits: 80"),
        ("  - multiply:", "  - multply:"),
        ("cut: sticky_added", "sticky: true"),
        ("of: total", "of: totals"),
        ("shape: {k: 4}", "shape: {m: 4}"),
    ],
)
def test_what_an_editor_marks(old: str, new: str) -> None:
    text = (ROOT / "spec" / "examples" / "sticky_rne.yaml").read_text("utf-8")
    assert old in text
    assert not validator("unit").is_valid(yaml_text.read(text.replace(old, new)))


def test_random_draws_repeat() -> None:
    assert any_unit(random.Random(3)) == any_unit(random.Random(3))
