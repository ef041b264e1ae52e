"""Questions lower down, of a unit whose products overflow far below the ends of formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import golden
from golden import stimuli
from golden.identify.blackbox import structure
from golden.identify.blackbox.asking import ORDINARY
from golden.identify.blackbox.box import Bank
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.dissecting import _Search
from golden.identify.blackbox.early_overflow import lowered, overflows_early
from golden.program.signature import Operands
from golden.unit import FunctionUnit, signature_of

VOLTA = golden.instruction("volta", "HMMA.884.F32.F16")


def overflowing(asks: int) -> _Search:
    """The first questions of a dissection whose products are infinite from 2^-20 on."""
    box = structure.overflowing(Candidate(signature_of(VOLTA), VOLTA.program.operations, ""), -20)
    assert box is not None
    search = _Search(FunctionUnit.like(VOLTA, box.dot), 1e6, asks, 0, None)
    search._first_questions()
    return search


def test_where_products_overflow_early_ordinary_questions_are_asked_below(tmp_path: Path) -> None:
    search = overflowing(20_000)
    assert search.end == -20
    part = search.bank.of_kinds(frozenset(ORDINARY))
    answers = np.abs(golden.to_float("f32", part.answers))
    told = np.count_nonzero(np.isfinite(answers) & (answers > 0))
    assert told > 1000, "that many tell orders; 96 were asked of each kind first, few of them so low"
    search.keep(tmp_path / "kept.npz")
    again = _Search(search.box.unit, 1e6, 20_000, 0, None)
    again.remember(tmp_path / "kept.npz")
    assert again.end == -20, "what goes on asks lower down, too"


def test_questions_lower_down_leave_some_for_what_follows() -> None:
    assert len(overflowing(5000).bank) < 4900


def test_where_most_products_are_numbers_nothing_more_is_asked() -> None:
    bank = Bank(signature_of(VOLTA))
    for kind in ("narrow", "near_overflow"):
        operands = stimuli.generate(VOLTA, kind, 40, np.random.default_rng(1))
        bank.add(kind, operands, VOLTA.dot(**operands))
    assert not overflows_early(bank)


def numbers(operands: Operands) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(golden.to_float("f16", operands[name]), np.float64) for name in "abc")


def test_what_is_lowered_lies_below_the_end_and_as_far_apart_as_it_did() -> None:
    takes = signature_of(VOLTA)
    before = stimuli.generate(takes, "narrow", 500, np.random.default_rng(3))
    after = lowered(takes, before, 0, np.random.default_rng(4))
    (a, b, c), (x, y, z) = numbers(before), numbers(after)
    assert (np.abs(x * y).max(axis=1) < 1).all() and (np.abs(x * y).max(axis=1) >= 2.0**-5).all()
    there = np.abs(x * y) > 2.0**-12
    ratio = np.log2(np.abs(np.where(there, a * b / np.where(there, x * y, 1), 1)))
    assert all(len(set(row[some])) == 1 for row, some in zip(ratio, there, strict=True)), (
        "by one power of two"
    )
    most = ratio.max(axis=1)
    moved = np.log2(np.abs(c / np.where(z == 0, 1, z)))
    assert 0.3 < (moved[c != 0] == most[c != 0]).mean() < 0.9, "c as far, or less"
