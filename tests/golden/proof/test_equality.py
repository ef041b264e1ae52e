"""Two units against each other: the verdict is what all operands say, and no planted fault is proved."""

from __future__ import annotations

import importlib.util
import itertools
import json
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden import yamlfile
from golden.catalog import unit_files
from golden.cli.app import app
from golden.errors import OperandError
from golden.model.instruction import Instruction
from golden.program.signature import Bits
from golden.proof import equality, exhaustion
from golden.proof.equality import counterexample, problem_of, prove
from golden.proof.problem import planted
from golden.proof.sweep import OPEN, PROVED, REFUTED, Sweep
from golden.proof.verdict import verdict_of

pytest.importorskip("bitwuzla")
pytest.importorskip("z3")

TINY = """\
unit: {name}
shape: {{k: 2}}
formats: {{a: x, b: x, c: y, d: y}}
define_formats:
  x: {{kind: float, storage: 8, exponent_bits: 2, fraction_bits: 1, bias: 1, specials: none}}
  y: {{kind: float, storage: 8, exponent_bits: 2, fraction_bits: 1, bias: 1, specials: ieee}}
steps:
- multiply: {{to: products}}
- special_values: {{of: [products, c], nan: 0x7}}
- align: {{of: {of}, fraction_bits: {places}, rounding: {cut}{more}}}
- sum: {{of: {of}, to: total}}
- round: {{of: total, rounding: {rounding}, overflow: {overflow}, zero: positive}}
"""
BASE: dict[str, object] = {
    "name": "tiny", "of": "[products, c]", "places": 2, "cut": "toward_zero", "more": "",
    "rounding": "nearest_even", "overflow": "ieee",
}  # fmt: skip
VARIANTS: dict[str, dict[str, object]] = {
    "terms in another order": {"of": "[c, products]"},
    "one bit more": {"places": 3},
    "cut downwards": {"cut": "down"},
    "a floor beneath every exponent": {"more": ", floor: -9"},
    "a floor among the exponents": {"more": ", floor: 1"},
    "rounded to zero": {"rounding": "toward_zero"},
    "ties away": {"rounding": "nearest_away"},
    "largest, not infinite": {"overflow": "largest"},
    "all bits": {"places": 8},
    "all bits, cut downwards": {"places": 8, "cut": "down"},
    "all bits and one": {"places": 9},
}


def tiny(**keys: object) -> Instruction:
    return unit_files.build_instruction(yamlfile.parse(TINY.format(**BASE | keys)))


def every_answer(unit: Instruction) -> Bits:
    """Results for all 2^20 operands."""
    codes = np.array(list(itertools.product(range(16), repeat=4)), np.uint8)
    pairs = np.repeat(codes, 16, axis=0)
    return unit.dot(pairs[:, :2], pairs[:, 2:], np.tile(np.arange(16, dtype=np.uint8), len(codes)))


OF_ALL_BITS = ("terms in another order", "cut downwards", "a floor beneath every exponent")
"""The pairs that are tried with all bits, too, where less is cut; the others take the solver longer."""


@pytest.mark.parametrize(
    ("name", "places"),
    [(name, 2) for name in VARIANTS]
    + [pytest.param(name, 8, marks=[pytest.mark.long] * (name not in OF_ALL_BITS)) for name in VARIANTS],
)
def test_the_verdict_is_what_all_operands_say(name: str, places: int) -> None:
    x, y = tiny(places=places), tiny(**dict[str, object](places=places) | VARIANTS[name])
    found = prove(x, y, 30)
    assert found.outcome.verdict == (PROVED if (every_answer(x) == every_answer(y)).all() else REFUTED)
    if found.operands is not None:
        assert x.dot(**found.operands) != y.dot(**found.operands)


def test_no_planted_fault_is_proved() -> None:
    """Of a unit against itself, and against one that is equal and of another circuit."""
    for y in (tiny(), tiny(more=", floor: -9", of="[c, products]")):
        problem = problem_of(tiny(), y)
        for seed in range(3, 9):
            fault = planted(problem, seed)
            assert fault is not None
            assert verdict_of(Sweep(fault[0], time.monotonic() + 30))[0] == REFUTED, fault[1]


INTEGERS = """\
unit: {name}
shape: {{k: 4}}
formats: {{a: s8, b: s8, c: s32, d: s32}}
program:
"""
STEPS = """\
- k: {{from: {first}, to: {last}}}
  steps:
  - multiply: {{to: products}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: toward_zero, overflow: {overflow}, zero: positive}}
"""


def of_operations(*ends: tuple[int, int], overflow: str) -> Instruction:
    text = INTEGERS.format(name="integers")
    text += "".join(STEPS.format(first=first, last=last, overflow=overflow) for first, last in ends)
    return unit_files.build_instruction(yamlfile.parse(text))


@pytest.mark.parametrize(("overflow", "verdict"), [("wrap", PROVED), ("saturate", REFUTED)])
def test_a_unit_against_the_chain_that_it_replaces(overflow: str, verdict: str) -> None:
    one = of_operations((0, 3), overflow=overflow)
    chain = of_operations((0, 1), (2, 3), overflow=overflow)
    assert len(chain.program.operations) == 2
    assert prove(one, chain, 60).outcome.verdict == verdict
    other = counterexample(chain, one, 30)
    assert (other is None) == (verdict == PROVED)
    if other is not None:
        assert one.reference_dot(**other) != chain.reference_dot(**other)


def hmma(k: int) -> Instruction:
    return golden.instruction("hopper", f"mma.sync.aligned.m16n8k{k}.row.col.f32.f16.f16.f32")


@pytest.mark.long
def test_a_unit_of_half_the_k_is_proved_to_be_the_other_with_zeros() -> None:
    found = prove(hmma(16), hmma(8), 120)
    assert found.outcome.verdict == PROVED and "K = 8" in found.claim[1]


def test_units_that_cannot_be_compared_are_one_line() -> None:
    other = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    with pytest.raises(OperandError, match="cannot compare: operand c is f32 in"):
        prove(hmma(16), other)


def test_a_circuit_that_is_not_its_model_is_no_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equality, "result_of", lambda _word, _values: 5)
    with pytest.raises(golden.errors.MmagoldError, match="a fault of mmagold"):
        prove(tiny(), tiny(cut="down"), 30)


def test_without_a_solver_there_is_no_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counterexample(tiny(), tiny(cut="down"), 10) is not None
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert counterexample(tiny(), tiny(cut="down"), 10) is None


# The command ------------------------------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["compare", *words])
    return found.exit_code, found.output


def written(folder: Path, **keys: object) -> str:
    file = folder / f"{keys['name']}.yaml"
    file.write_text(TINY.format(**BASE | keys))
    return str(file)


@pytest.mark.long
def test_the_command_proves_refutes_or_says_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, same, other = (
        written(tmp_path, name=name, **keys)
        for name, keys in (("one", {}), ("same", {"more": ", floor: -9"}), ("other", {"cut": "down"}))
    )
    quick = ("--prove", "--budget", "1000")
    status, text = run(one, same, *quick)
    assert status == 0 and "PROVED: equal for all operands" in text and "planted" in text
    status, text = run(one, other, *quick)
    assert status == 1 and "REFUTED: not equal" in text and "error" in text
    status, text = run(one, other, *quick, "--json")
    found = json.loads(text)
    assert status == 1 and found["proof"]["verdict"] == REFUTED
    assert found["example"]["x"]["d"] != found["example"]["y"]["d"]
    assert run(one, other, "--seconds", "3")[0] == run(one, other, "--jobs", "2")[0] == 2
    status, text = run(one, same, *quick, "--jobs", "2")
    assert status == 0 and "PROVED" in text
    monkeypatch.setattr(Sweep, "run", lambda _self: OPEN)
    status, text = run(one, same, *quick)
    assert status == 0 and "by exhaustion" in text
    monkeypatch.setattr(exhaustion, "MOST", 0)
    status, text = run(one, same, *quick, "--json")
    assert status == 2 and json.loads(text)["proof"]["open"]


FLAGS = """\
unit: {name}
shape: {{k: 1}}
formats: {{a: x, b: x, c: y, d: y}}
flags: [{flags}]
define_formats:
  x: {{kind: float, storage: 8, exponent_bits: 3, fraction_bits: 2, bias: 3, specials: ieee}}
  y: {{kind: float, storage: 8, exponent_bits: 3, fraction_bits: 2, bias: 3, specials: ieee}}
steps:
  - multiply: {{to: products}}
  - special_values: {{of: [products, c], nan: 0x1e}}
  - sum: {{of: [products, c], to: total}}
  - round: {{of: total, rounding: nearest_even, overflow: ieee, zero: signed, tiny: {tiny}}}
"""


@pytest.mark.parametrize(
    ("flags", "tiny", "verdict"),
    [
        ("inexact, underflow, overflow, invalid", "unbounded", REFUTED),
        ("invalid, overflow, inexact", "unbounded", PROVED),
        ("invalid, underflow", "subnormal_result", PROVED),
    ],
)
def test_status_flags_that_both_have_are_compared_by_name(flags: str, tiny: str, verdict: str) -> None:
    """When a number counts as tiny shows in the flag `underflow` alone."""
    x, y = (
        unit_files.build_instruction(yamlfile.parse(FLAGS.format(name="u", flags=names, tiny=when)))
        for names, when in (("inexact, underflow, overflow, invalid", "subnormal_result"), (flags, tiny))
    )
    found = prove(x, y, 30)
    assert found.outcome.verdict == verdict
    assert any("left out" in text for text in found.claim) == (len(y.status) < len(x.status))
    codes = np.array(list(itertools.product(range(64), range(64), range(64))), np.uint8)
    operands = {"a": codes[:, :1], "b": codes[:, 1:2], "c": codes[:, 2]}
    one, other = x.answers(operands), y.answers(operands)
    differ = one["d"] != other["d"]
    for name in set(x.status) & set(y.status):
        sides = [got["flags"] >> unit.status.index(name) & 1 for got, unit in ((one, x), (other, y))]
        differ |= sides[0] != sides[1]
    assert differ.any() == (verdict == REFUTED)


def test_rules_of_an_accumulator_are_no_arithmetic() -> None:
    """The proof is of the arithmetic: units that clear their accumulators in other ways are not compared."""

    def keeping(clear: str) -> Instruction:
        text = TINY.format(**BASE).replace("c: y, ", "") + f"accumulator: state\nclear: {clear}\n"
        return unit_files.build_instruction(yamlfile.parse(text))

    alone, same = keeping("alone"), keeping("alone")
    assert any("c stands for the accumulator" in line for line in prove(alone, same, 30).claim)
    for other in (keeping("with_products"), alone.stateless):
        with pytest.raises(OperandError, match="different rules for an accumulator"):
            prove(alone, other, 30)
