"""A unit is whatever answers dot products: what takes an instruction takes a function, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after

import golden
from golden import stimuli
from golden.errors import DTypeError, OperandError, ShapeError
from golden.identify.comparing import compare
from golden.identify.diagnosis import diagnose
from golden.identify.minimising import minimise
from golden.identify.probe import probes, special_probes
from golden.identify.probe.probes import Probe
from golden.number.formats import Format, get_format
from golden.unit import FunctionUnit, name_of, signature_of

HMMA = golden.instruction("hopper", "HMMA.16816.F32")
AMPERE = golden.instruction("ampere", "HMMA.16816.F32")
FORMATS = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"}


class Bare:
    """Nothing but the protocol: formats, k, dot."""

    def __init__(self, ins: golden.Instruction) -> None:
        self._ins = ins

    @property
    def formats(self) -> Mapping[str, Format]:
        return self._ins.formats

    @property
    def k(self) -> int:
        return self._ins.k

    def dot(self, a: Any, b: Any = None, c: Any = None, **more: Any) -> Any:
        return self._ins.dot(a, b, c)


def as_function(ins: golden.Instruction) -> FunctionUnit:
    return FunctionUnit(lambda a, b, c: ins.dot(a, b, c), FORMATS, ins.k, "mine")


@pytest.mark.parametrize("make", long_after(1, [Bare, as_function], ids=["bare", "function"]))
def test_a_black_box_is_measured_compared_and_explained(make: Any) -> None:
    unit = make(HMMA)
    probe = Probe(unit)
    assert probes.kept_bits(probe) == 25 and probes.kept_bits(Probe(make(AMPERE))) == 24
    assert probes.slices(probe, probes.result_bits(probe)) == [tuple(range(16))]
    assert special_probes.generated_nans(probe) == special_probes.generated_nans(Probe(HMMA))
    assert compare(HMMA, unit, budget=4000).numeric == 0
    found = compare(unit, AMPERE, budget=20_000)
    assert found.example is not None and found.example.trace_x is None and found.example.trace_y is not None
    assert found.as_dict()["example"]["x"]["d"] == found.example.x
    operands = stimuli.generate(unit, "alignment_edge", 4000, np.random.default_rng(1))
    reported = diagnose(AMPERE, operands, unit)
    assert reported.explains and "hopper" in reported.sentence()
    first = np.flatnonzero(unit.dot(**operands) != AMPERE.dot(**operands))[0]
    least = minimise(
        unit, {name: codes[first] for name, codes in operands.items()},
        lambda batch: unit.dot(**batch) != AMPERE.dot(**batch),
    )  # fmt: skip
    assert np.count_nonzero(least["a"]) <= 2 and unit.dot(**least) != AMPERE.dot(**least)


def test_an_instruction_is_its_own_signature() -> None:
    assert signature_of(HMMA) is HMMA and name_of(HMMA) == f"hopper:{HMMA.name}"
    assert name_of(as_function(HMMA)) == "mine" and signature_of(Bare(HMMA)).name == "Bare"
    assert as_function(HMMA).operand_shapes(matrices=False) == HMMA.operand_shapes(matrices=False)


def test_a_function_sees_whole_batches_of_any_shape() -> None:
    seen = []

    def dot(a: Any, b: Any, c: Any) -> Any:
        seen.append((a.shape, b.shape, c.shape))
        return c

    unit = FunctionUnit(dot, FORMATS, 4)
    c = np.arange(6, dtype=np.uint32).reshape(2, 3)
    d = unit.dot(np.zeros((3, 4), np.uint16), np.zeros(4, np.uint16), c)
    assert (d == c).all() and seen == [((6, 4), (6, 4), (6,))]
    assert unit.dot([0] * 4, [0] * 4, 7).shape == ()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (lambda a, b, c: c[:1], OperandError, r"mine gave results of shape \(1,\), expected \(2,\)"),
        (lambda a, b, c: c.astype(np.float32), DTypeError, "d"),
        (lambda a, b, c: [1 << 32, 0], DTypeError, "d"),
        (lambda a, b, c: [-1, 0], DTypeError, "d"),
    ],
)
def test_wrong_answers_are_refused(answer: Any, error: type[Exception], words: str) -> None:
    unit = FunctionUnit(answer, FORMATS, 2, "mine")
    with pytest.raises(error, match=words):
        unit.dot(np.zeros((2, 2), np.uint16), np.zeros((2, 2), np.uint16), np.zeros(2, np.uint32))


def test_wrong_operands_never_reach_the_function() -> None:
    def never(**operands: Any) -> Any:
        raise AssertionError

    unit = FunctionUnit(never, {name: get_format(fmt) for name, fmt in FORMATS.items()}, 2)
    with pytest.raises(ShapeError, match="argument 'a' has shape"):
        unit.dot(np.zeros(3, np.uint16), np.zeros(2, np.uint16), np.zeros((), np.uint32))
    with pytest.raises(ShapeError, match="leading dimensions do not broadcast"):
        unit.dot(np.zeros((2, 2), np.uint16), np.zeros((3, 2), np.uint16), np.zeros((), np.uint32))
    with pytest.raises(ShapeError, match="argument 'metadata' was given"):
        unit.dot([0, 0], [0, 0], 0, metadata=[0])


def test_leading_dimensions_that_do_not_broadcast_are_refused_where_the_unit_keeps_its_accumulator() -> None:
    takes = golden.load_instruction(Path(__file__).parents[2] / "spec" / "examples" / "accumulator.yaml")
    unit = FunctionUnit.like(takes, lambda a, b, clear: takes.dot(a, b, clear=clear))
    a, clear = np.zeros((3, takes.k), np.uint16), np.zeros(2, np.uint8)
    with pytest.raises(ShapeError, match="leading dimensions do not broadcast"):
        unit.dot(a, a, clear=clear)


def test_a_function_with_other_parameter_names_is_given_its_operands_in_order() -> None:
    scaled_formats = {**FORMATS, "scale_a": "ue8m0", "scale_b": "ue8m0"}
    a, b, c = np.full((3, 2), 1, np.uint16), np.full((3, 2), 2, np.uint16), np.full(3, 3, np.uint32)
    scales = {"scale_a": np.full((3, 1), 4, np.uint8), "scale_b": np.full((3, 1), 5, np.uint8)}

    def positional(x: Any, y: Any, z: Any, *more: Any) -> Any:
        scale = more[0][:, 0].astype(np.uint32) if more else 0
        return x[:, 0] + 10 * y[:, 0] + 100 * z + 1000 * scale

    def swapped(b: Any, a: Any, c: Any) -> Any:
        return a[:, 0] + 10 * b[:, 0] + 100 * c

    scaled = FunctionUnit(positional, scaled_formats, 2, scale_block=2)
    assert scaled.dot(a, b, c, **scales).tolist() == [4321] * 3
    assert FunctionUnit(positional, FORMATS, 2).dot(a, b, c).tolist() == [321] * 3
    assert FunctionUnit(swapped, FORMATS, 2).dot(a, b, c).tolist() == [321] * 3
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        FunctionUnit(lambda x: x, FORMATS, 2).dot(a, b, c)
