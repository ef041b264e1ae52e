"""What tells a candidate from its rivals, and what one counterexample leads to."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import golden
from golden import stimuli
from golden.dissect.blackbox import fitting, telling
from golden.dissect.blackbox.box import Bank
from golden.dissect.blackbox.candidates import Candidate
from golden.instruction import Instruction
from golden.program.signature import Operands
from golden.program.steps import Align, Step
from golden.unit import signature_of

CONVERTED = "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16"
"""Its e4m3 is converted to f16 first, in which subnormal numbers have other exponents: of a million operands
of every kind, four show it."""
SHOWS: Operands = {
    "a": np.array([[0, 0, 1, 244, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 116]], np.uint8),
    "b": np.array([[80, 32, 40, 4, 120, 40, 112, 120, 1, 8, 16, 112, 56, 8, 16, 4]], np.uint8),
    "c": np.array([0x8000], np.uint16),
}


def candidate(ins: Instruction) -> Candidate:
    return Candidate(signature_of(ins).stateless, ins.program.operations, "")


def bank_of(ins: Instruction, each: int) -> Bank:
    bank = Bank(signature_of(ins).stateless)
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(ins, kind, each, np.random.default_rng([7, index]))
        bank.add(kind, operands, ins.dot(**operands))
    return bank


def test_one_counterexample_that_many_changes_explain_leads_to_the_one_that_holds_elsewhere() -> None:
    ins = golden.instruction("hopper", CONVERTED)
    start = candidate(ins).with_operations(replace(o, operand_format=None) for o in ins.program.operations)
    assert start is not None
    bank = bank_of(ins, 100)
    assert not bank.wrong(start.program).any()
    bank.add("shrunk", SHOWS, ins.dot(**SHOWS))
    found = fitting.fit(bank, fitting.Fit(start, 1), time.monotonic() + 60)
    assert found.wrong == 0


def test_questions_tell_what_the_bank_left_open() -> None:
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    own = candidate(ins)

    def wider(step: Step) -> Step:
        more = [(name, bits + 1) for name, bits in step.fraction_bits] if isinstance(step, Align) else ()
        return replace(step, fraction_bits=tuple(more)) if isinstance(step, Align) else step

    rival = own.with_operations(o.with_steps([wider(s) for s in o.steps]) for o in ins.program.operations)
    assert rival is not None
    rivals = [("align of products and c: fraction_bits", rival), ("align of products and c: spared", own)]
    asked = telling.questions(own, rivals, 20, lambda *n: np.random.default_rng(n), time.monotonic() + 60)
    assert asked is not None and 1 <= len(asked["a"]) <= 8
    assert (rival.dot(**asked) != ins.dot(**asked)).all()
    only = rivals[1:]
    none = telling.questions(own, only, 20, lambda *n: np.random.default_rng(n), time.monotonic() + 60)
    assert none is None


def test_a_neighbour_is_a_rival_where_no_question_told_it() -> None:
    """Ordinary operands show nothing of overflow and subnormal results; those of every kind do."""
    ins = golden.instruction("ampere", "HMMA.16816.F32")
    own, narrow = candidate(ins), Bank(signature_of(ins).stateless)
    operands = stimuli.generate(ins, "narrow", 200, np.random.default_rng(1))
    narrow.add("narrow", operands, ins.dot(**operands))
    far = time.monotonic() + 60
    open_with = {
        len(bank): {key for key, _ in telling.alike(own, bank, telling.neighbours(own, ()), far)}
        for bank in (narrow, bank_of(ins, 100))
    }
    few, many = open_with.values()
    assert "round of total: overflow" in few and "round of total: flush" in few
    assert "round of total: flush" not in many


def test_every_least_exponent_has_operands_aimed_at_it() -> None:
    """-21 is what the chip has: operands aimed at the candidate, without any, or at floors far below show
    nothing of it."""
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16")
    bare = [
        replace(s, floor=None) if isinstance(s, Align) else s for o in ins.program.operations for s in o.steps
    ]
    start = candidate(ins).with_operations(o.with_steps(bare) for o in ins.program.operations)
    assert start is not None
    floors = [m for m in telling.neighbours(start, ()) if m.key == "align of products and c: floor"]
    rivals = [(move.key, new) for move in floors if (new := move.apply(start)) is not None]
    asked = telling.questions(start, rivals, 1, lambda *n: np.random.default_rng(n), time.monotonic() + 60)
    assert asked is not None
    assert (start.dot(**asked) != ins.dot(**asked)).any()
