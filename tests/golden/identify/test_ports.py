"""Faults of the wiring: each has one name."""

from pathlib import Path

import numpy as np
import pytest

import golden
import rtl_tb
from golden.identify.diagnose.mutations.ports import ports
from golden.identify.diagnosis import diagnose
from golden.vectors.vectorset import default_set

MIXED = ("hopper", "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32")
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
    for wire in ports(ins):
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


def as_bits(codes: np.ndarray, dtype: str) -> np.ndarray:
    return np.ascontiguousarray(codes).astype(dtype)


def halves(codes: np.ndarray) -> np.ndarray:
    """Words as numbers, in half precision, NaNs quiet."""
    words = codes.astype("<u4")
    return np.where(np.isnan(words.view("<f4")), words | 1 << 22, words).astype("<u4").view("<f4")


BARE = {
    "c": ("floats", lambda given: given["c"], "result-is-c", "a wire from c to d: its bits as they are"),
    "c of integers": ("integers", lambda given: given["c"], "products-ignored", "products ignored (d = c)"),
    "c rounded": (
        "mixed",
        lambda given: halves(given["c"]).astype("<f2").view("<u2"),
        "result-is-c-rounded-nan-kept",
        "c alone, rounded to d",
    ),
    "a": ("floats", lambda given: given["a"][:, 5], "result-is-a-5", "a wire from a[5] to d"),
    "b extended": (
        "integers",
        lambda given: given["b"][:, 1].view("i1").astype("i4").view("u4"),
        "result-is-b-1-extended",
        "a wire from b[1] to d, its sign extended",
    ),
    "all of a": (
        "integers",
        lambda given: as_bits(given["a"], "u1").view("<u4")[:, 0],
        "result-is-a",
        "a wire from a to d: its bits as they are",
    ),
    "high": (
        "halves",
        lambda given: given["a"][:, 1].astype("u4") << 16,
        "result-is-a-1-high",
        "a wire from a[1] to the high bits of d",
    ),
    "constant": ("floats", lambda given: 0 * given["c"] + 7, "result-constant", "always 0x7"),
}


# A constant is a result of every operand, so that the search for a condition takes its whole time.
@pytest.mark.parametrize(
    "case", [pytest.param(one, marks=pytest.mark.long) if one == "constant" else one for one in BARE]
)
def test_a_unit_without_arithmetic_is_named_plainly(case: str) -> None:
    name, answer, slug, words = BARE[case]
    ins = golden.instruction(*MIXED) if name == "mixed" else golden.load_instruction(UNITS[name])
    given = default_set(ins, 500, seed=1).operands
    with np.errstate(all="ignore"):
        found = diagnose(ins, given, answer(given).astype(ins.formats["d"].dtype))
    assert found.explains and found.hypotheses[0].slug == slug, found.sentence()
    assert words in found.sentence()
