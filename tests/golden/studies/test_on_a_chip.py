"""Studies that ask a chip in addition to the models: a difference of another chip is seen and reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

import golden
from golden import studies
from golden.catalog.compared_units import BLOCKS
from golden.cli import app
from golden.errors import OperandError
from golden.identify.blackbox import plugins
from golden.identify.blackbox.plugins import Chip
from golden.model.instruction import Instruction
from golden.studies import accumulation_precision, properties, repeatability, summation_order
from golden.studies.units import Subject
from golden.unit import FunctionUnit, Unit

NAME = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HOPPER = Subject("hopper", NAME, "f16")


def as_ampere(ins: Instruction) -> Unit | None:
    """A Hopper that sums as an Ampere does: eight products at a time, 24 bits."""
    if ins.name != NAME:
        return None
    other = golden.instruction("ampere", ins.name)
    return FunctionUnit.like(ins, other.dot, tile=other)


CHIP = Chip("OTHER 1", "hopper", as_ampere)


def test_the_trees_of_a_chip_and_of_its_model_are_shown_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summation_order, "CASES", (summation_order.Case(HOPPER),))
    monkeypatch.setattr(summation_order, "_findings", lambda trees, changed: "")
    found = studies.run("summation-order", 50, chip=CHIP)
    model, chip = found.data["trees"]["Hopper f16"], found.data["trees"]["OTHER 1 f16"]
    assert model == "c+0+1+..+15" and chip == "(c+0+1+2+3+4+5+6+7)+8+9+10+11+12+13+14+15"
    assert found.data["changed"]["Hopper f16"] == 0 < found.data["changed"]["OTHER 1 f16"]
    assert found.command == "mmagold study summation-order --gpu"
    assert [unit["asked"] for unit in found.as_dict()["units"]] == ["model", "OTHER 1"]


def test_the_bits_that_a_chip_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    cdna2 = Subject("cdna2", "v_mfma_f32_32x32x8f16", "f16")
    monkeypatch.setattr(accumulation_precision, "UNITS", (HOPPER, cdna2))
    found = studies.run("accumulation-precision", chip=CHIP)
    assert [found.data[name]["product_bits"] for name in ("hopper f16", "OTHER 1 f16")] == [25, 24]
    assert "the models and OTHER 1 (1 instruction)\n  answered" in found.findings


def test_a_chip_that_answers_otherwise_at_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(ins: Instruction) -> Unit:
        def tile(**operands: golden.unit.Bits) -> golden.unit.Bits:
            d = ins(**operands).copy()
            d[:, 3, 2] ^= 1
            return d

        return FunctionUnit.like(ins, ins.dot, tile=tile)

    monkeypatch.setattr(repeatability, "units", lambda: [HOPPER])
    found = studies.run("repeatability", 3, chip=Chip("OTHER 1", "hopper", moved))
    assert found.data[f"hopper:{NAME}"]["moved"] == 0 and found.data[f"OTHER 1:{NAME}"]["moved"] == 3


def test_what_a_chip_has_otherwise_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    block = next(one for one in BLOCKS if one.slug == "f16-f32")
    monkeypatch.setattr(properties, "BLOCKS", (block,))
    hopper = golden.instruction("hopper", NAME)
    monkeypatch.setattr(properties, "units", lambda block: {"hopper": hopper})
    same = studies.run("properties", chip=replace(CHIP, unit=lambda ins: FunctionUnit.like(ins, ins.dot)))
    assert "Other than what the spec states is none." in same.findings
    assert "OTHER 1 gave 14 of 14 properties the value that the model of it has." in same.findings
    other = studies.run("properties", chip=CHIP)
    assert "spec states are 3: fraction bits kept (F), f16 to f32, OTHER 1: 24, not 25;" in other.findings
    assert "OTHER 1 gave 11 of 14 properties" in other.findings
    assert ("Fraction bits kept (F)", "25", "24") in other.tables[0].rows
    assert other.tables[0].head == ("property", "Hopper", "OTHER 1")


def test_what_cannot_be_asked_of_a_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperandError, match=r"cdna3-rounding computes with models alone.*repeatability"):
        studies.run("cdna3-rounding", 10, chip=CHIP)
    monkeypatch.setattr(plugins, "CHIPS", [])
    done = CliRunner().invoke(app.app, ["study", "properties", "--gpu"])
    assert done.exit_code == 2 and "nothing is installed that asks a GPU" in done.stderr
    assert CliRunner().invoke(app.app, ["study", "propertes", "--gpu"]).exit_code == 2
