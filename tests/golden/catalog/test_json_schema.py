"""The schemas that editors read: of what the loaders take, and refusing nothing that they take."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml_text
from faulty_units import any_unit
from long_run import long_after
from random_units import accepted

from golden.catalog import json_schema
from golden.catalog.unit_text import unit_text
from golden.errors import MmagoldError
from golden.kernels.options import KEYS
from golden.kernels.plan_files import load_plan as load_accumulation
from golden.model.instruction import Instruction
from golden.publish import schema
from rtl_tb.regress import schema as rtl_schema
from rtl_tb.regress.plan import load_plan

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "spec" / "examples").glob("*.yaml"))
REGRESSION = ROOT / "rtl_tb" / "examples" / "regression" / "regress.yaml"
DUTS = sorted(path for path in (ROOT / "rtl_tb").rglob("*.yaml") if "\ntop:" in path.read_text("utf-8"))


def validator(name: str) -> Any:
    schema = json.loads(json_schema.schema_file(name).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("module", [schema, rtl_schema], ids=["golden", "rtl_tb"])
def test_the_committed_schemas_and_pages_are_what_the_readers_declare(module: Any) -> None:
    for path, should in module.written():
        assert path.read_text("utf-8") == should, path.name


@pytest.mark.parametrize("path", long_after(3, EXAMPLES), ids=lambda path: path.stem)
def test_examples_are_valid_and_name_their_schema(path: Path) -> None:
    validator("unit").validate(yaml_text.read(path.read_text("utf-8")))
    named(path)


@pytest.mark.parametrize("path", long_after(4, DUTS), ids=lambda path: path.stem)
def test_duts_are_valid_and_name_their_schema(path: Path) -> None:
    validator("dut").validate(yaml_text.read(path.read_text("utf-8")))
    named(path)


def test_the_example_of_a_regression_is_valid_and_names_its_schema() -> None:
    validator("regress").validate(yaml_text.read(REGRESSION.read_text("utf-8")))
    assert len(load_plan(REGRESSION).units) == 2
    named(REGRESSION)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("units:", "unit:"),
        ("engines: [fast]", "engines: []"),
        ("- fast\n", "- fist\n"),
        ("- fast\n", "- selfcheck/verilater\n"),
        ("sim: icarus", "sim: ikarus"),
        ("sim: icarus", "idle: -1"),
        ("count: 2000", "count: 0"),
        ("count: 2000", "counts: 20"),
        ("ties: {", "-ties: {"),
        ("tie: 2", "tye: 2"),
        ("tie: 2", "tie: -2"),
        ("seeds: 2", "seeds: []"),
        ("seeds: 2", "seeds: 0"),
        ("regress: example", "regress: .example"),
    ],
)
def test_what_an_editor_marks_in_a_regression_the_loader_refuses(old: str, new: str, tmp_path: Path) -> None:
    text = absolute(REGRESSION)
    assert old in text
    wrong = text.replace(old, new)
    assert not validator("regress").is_valid(yaml_text.read(wrong))
    (tmp_path / "regress.yaml").write_text(wrong)
    with pytest.raises(MmagoldError, match=r"^(?!.*is no file)"):
        load_plan(tmp_path / "regress.yaml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("engines: [fast]", "engines: fast/verilator"),
        ("usual: all", "usual: {random_bits: 0.5}"),
        ("seeds: 2", "seeds: [0, 4294967295]"),
        (
            "sim: icarus",
            "sim: icarus, idle: 0.5, backpressure: 0, resets: 0, timeout_cycles: 1, wall_timeout: 3",
        ),
        ("seeds: 2", ""),
    ],
)
def test_what_the_loader_takes_no_editor_marks(old: str, new: str, tmp_path: Path) -> None:
    text = absolute(REGRESSION).replace(old, new)
    (tmp_path / "regress.yaml").write_text(text)
    load_plan(tmp_path / "regress.yaml")
    validator("regress").validate(yaml_text.read(text))


PLAN = """plan: mine
instruction: hopper:wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
"""
VALUES = (
    0,
    1,
    2,
    128,
    -1,
    1.5,
    "f32",
    "bf16",
    "tree",
    "zeros",
    "c",
    "word",
    [],
    [1, 128],
    ["c"],
    ["x"],
    True,
)
OF_KEY = re.compile("unknown key|expected (one of|a finite|an integer|a list|2 integers)|is not text|is a")


@pytest.mark.parametrize("key", ["title", "word", *KEYS])
def test_an_editor_marks_of_a_plan_what_the_loader_refuses_and_nothing_else(key: str, tmp_path: Path) -> None:
    editor = validator("plan")
    for value in VALUES:
        text = f"{PLAN}{key}: {json.dumps(value)}\n"
        (tmp_path / "plan.yaml").write_text(text)
        marked = not editor.is_valid(yaml_text.read(text))
        try:
            load_accumulation(tmp_path / "plan.yaml")
        except MmagoldError as error:
            assert marked or not OF_KEY.search(str(error)), error  # not what other keys forbid
        else:
            assert not marked, value


@pytest.mark.parametrize(
    "more",
    [
        "part: 256\nreduce: tree\nreduce_format: bf16\nout: f16\ntitle: t\nsource: s",
        "promote: 128\nscales: block\nscale_a_block: [1, 128]\nfma: promotion",
        "a: f32\nb: f32\nconvert: toward_zero\nalpha: 2\nbeta: 0.5\nc_format: f32\nbias: rows\nfma: [c]",
        "tile_k: 32\nslices: 2\nedge: refused\nsplit_k: 3",
        "c: seed",
    ],
)
def test_plans_that_the_loader_takes_no_editor_marks(more: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(f"{PLAN}{more}\n")
    load_accumulation(tmp_path / "plan.yaml")
    validator("plan").validate(yaml_text.read(f"{PLAN}{more}\n"))


def absolute(path: Path) -> str:
    """The text of an example for another folder."""
    return re.sub(r"(?<=[ :])(\.\./)+", lambda found: f"{path.parent}/{found[0]}", path.read_text("utf-8"))


def named(path: Path) -> None:
    first = path.read_text("utf-8").partition("\n")[0]
    assert (path.parent / first.partition("$schema=")[2]).is_file(), first


@pytest.mark.long
def test_whatever_the_loader_takes_is_valid() -> None:
    """Random units over every key: the schema refuses none that loads."""
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
