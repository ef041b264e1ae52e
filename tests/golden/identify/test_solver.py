"""Two units that no question separated: a solver proves them equal, or finds operands that separate them."""

from __future__ import annotations

import importlib.util

import pytest

from golden import yamlfile
from golden.catalog import unit_files
from golden.identify.blackbox.candidates import Candidate, candidate
from golden.identify.blackbox.discriminate import by_solver
from golden.identify.blackbox.dissecting import dissect
from golden.identify.diagnosis import Diagnosis, Hypothesis
from golden.model.instruction import Instruction
from golden.program.signature import Bits

pytest.importorskip("bitwuzla")
pytest.importorskip("z3")

TEXT = """\
unit: u
shape: {{k: 2}}
formats: {{a: e2m1, b: e2m1, c: f16, d: f16}}
steps:
- multiply: {{to: products}}
- special_values: {{of: [products, c], nan: 0x7fff}}
- align: {{of: [products, c], fraction_bits: 11, rounding: toward_zero{floor}}}
- sum: {{of: [products, c], to: total}}
- round: {{of: total, rounding: nearest_even, overflow: ieee, zero: positive}}
"""


def unit(floor: int | None = None) -> Instruction:
    text = TEXT.format(floor="" if floor is None else f", floor: {floor}")
    return unit_files.build_instruction(yamlfile.parse(text))


def as_candidate(one: Instruction) -> Candidate:
    found = candidate(one, one.program.operations, "at once")
    assert found is not None
    return found


def test_a_solver_proves_rivals_equal_or_separates_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least exponent of a term is -14: a floor of -20 is none, one of 2 shows with small terms."""
    one, rivals = as_candidate(unit()), [unit(-20), unit(2)]
    found, equal = by_solver(one, rivals, 40)
    assert equal == {rivals[0]} and found is not None
    assert (rivals[1].dot(**found) != one.dot(**found)).all()
    assert by_solver(one, rivals, 0) == (None, set())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert by_solver(one, rivals, 40) == (None, set())


@pytest.mark.long
def test_a_dissection_calls_proved_values_the_same_and_not_undecided() -> None:
    box = unit()

    def asked(a: Bits, b: Bits, c: Bits) -> Bits:
        found: Bits = box.dot(a, b, c)
        return found

    formats = {name: fmt.name for name, fmt in box.formats.items()}
    without, found = (
        dissect(asked, formats, box.k, seconds=60, asks=2000, solver=solver) for solver in (0, 15)
    )
    assert not any(one.same for one in without.properties)
    (proved,) = (one for one in found.properties if one.key == "sum of products and c: rounding")
    assert proved.same and not proved.undecided and "sum of" not in " ".join(found.undecided)


def test_explanations_that_vectors_cannot_separate_get_operands_that_do() -> None:
    some = [unit(2), unit(3), unit(2)]
    said = tuple(
        Hypothesis(f"floor-{at}", "a floor", start=one, remaining=0, total=1) for at, one in enumerate(some)
    )
    found = Diagnosis(unit(), said, failing=1, total=1).between(30)
    assert found is not None and len(found["a"]) == 1, "the third is the first"
    assert (some[0].dot(**found) != some[1].dot(**found)).all()
    assert Diagnosis(unit(), said[:1], failing=1, total=1).between(5) is None
    assert Diagnosis(unit(), (), failing=1, total=1).between(5) is None
