"""Faults of the wiring: each has one name."""

from pathlib import Path

import numpy as np
import pytest

import golden
import rtl_tb
from golden.dissect.diagnosis import diagnose
from golden.dissect.wiring import wires
from golden.vectors.vectorset import default_set

UNITS = {
    "integers": Path(rtl_tb.__file__).parent / "examples" / "own_unit" / "mac4.yaml",
    "halves": Path(__file__).parents[3] / "spec" / "examples" / "rdna3_dot2.yaml",
    "floats": Path(__file__).parents[3] / "spec" / "examples" / "ieee_tree.yaml",
}


@pytest.mark.parametrize("name", ["integers", "floats"])
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


@pytest.mark.parametrize(("name", "kind"), [("integers", "<u4"), ("halves", "<u4")])
def test_ports_of_equal_width_change_places(name: str, kind: str) -> None:
    """Four bytes, or two halves, against one word: element 0 lies in the low bits."""
    ins = golden.load_instruction(UNITS[name])
    given = default_set(ins, 1000, seed=1).operands
    codes = ins.formats["a"].dtype.newbyteorder("<")
    read = {
        "a": given["c"].astype(kind)[:, None].view(codes).astype(given["a"].dtype),
        "c": np.ascontiguousarray(given["a"]).astype(codes).view(kind)[:, 0].astype(given["c"].dtype),
    }
    found = diagnose(ins, given, ins.dot(**(given | read)))
    assert found.explains and found.hypotheses[0].slug == "a-and-c-swapped"
    assert "a read where c belongs, and the other way round" in found.sentence()
