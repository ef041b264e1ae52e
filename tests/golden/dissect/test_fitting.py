"""Fits of a candidate to questions: what they find, and what they do not try twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.dissect.blackbox import fitting, moves
from golden.dissect.blackbox.box import Bank
from golden.dissect.blackbox.candidates import Candidate
from golden.instruction import Instruction
from golden.program.steps import Step
from golden.unit import signature_of

SMALL = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"


def candidate(ins: Instruction, changed: dict[type[Step], dict[str, object]]) -> Candidate:
    """An instruction's program with other keys in some kinds of steps."""
    whole = Candidate(signature_of(ins).stateless, ins.program.operations, "")
    steps = [
        [replace(step, **changed.get(type(step), {})) for step in o.steps]  # type: ignore[arg-type]
        for o in ins.program.operations
    ]
    found = whole.with_operations(o.with_steps(s) for o, s in zip(ins.program.operations, steps, strict=True))
    assert found is not None
    return found


def bank_of(one: Candidate, each: int) -> Bank:
    bank = Bank(one.takes)
    for index, kind in enumerate(stimuli.KINDS):
        operands = stimuli.generate(one.instruction, kind, each, np.random.default_rng([7, index]))
        bank.add(kind, operands, one.dot(**operands))
    return bank


def test_what_did_not_help_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ins = golden.instruction("ampere", SMALL)
    start = candidate(ins, {})
    bank = bank_of(start, 4)
    bank.answers = bank.answers ^ np.arange(len(bank), dtype=np.uint32) % 7  # no program answers this
    first = fitting.fit(bank, fitting.Fit(start, fitting.wrong_of(bank, start)), time.monotonic() + 60)
    assert first.wrong
    tried: list[Candidate] = []

    def counted(one: Candidate, hints: moves.Hints) -> Iterator[moves.Move]:
        tried.append(one)
        return moves.moves(one, hints)

    monkeypatch.setattr(fitting, "moves", counted)
    assert fitting.fit(bank, first, time.monotonic() + 60).wrong == first.wrong
    assert not tried
    bank.add("more", {name: codes[:4] for name, codes in bank.operands.items()}, bank.answers[:4])
    fitting.fit(bank, replace(first, wrong=fitting.wrong_of(bank, first.candidate)), time.monotonic() + 60)
    assert tried  # other questions may show what helps
