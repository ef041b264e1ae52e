"""Faults of the wiring: each has one name."""

from pathlib import Path

import pytest

import golden
import rtl_tb
from golden.dissect.diagnosis import diagnose
from golden.dissect.wiring import wires
from golden.vectors.vectorset import default_set

UNITS = {
    "integers": Path(rtl_tb.__file__).parent / "examples" / "own_unit" / "mac4.yaml",
    "floats": Path(__file__).parents[3] / "spec" / "examples" / "ieee_tree.yaml",
}


@pytest.mark.parametrize("name", UNITS)
def test_no_fault_has_two_names(name: str) -> None:
    """No two do the same, but for the sign of a product, which either factor gives it."""
    ins = golden.load_instruction(UNITS[name])
    given = default_set(ins, 2000, seed=1).operands
    right, seen = ins.dot(**given), dict[bytes, str]()
    for wire in wires(ins):
        codes = ins.dot(**(wire.operands(given) if wire.operands else given))
        codes = wire.result(codes) if wire.result else codes
        if (codes != right).any():
            other = seen.setdefault(codes.tobytes(), wire.slug)
            assert wire.slug in (other, "b-negated"), other


def test_a_lost_element_of_integers_is_said_once() -> None:
    ins = golden.load_instruction(UNITS["integers"])
    given = default_set(ins, 1000, seed=1).operands
    lost = given["a"].copy()
    lost[:, 3] = 0
    found = diagnose(ins, given, ins.dot(**(given | {"a": lost})))
    assert found.sentence().count("left out") == 1
