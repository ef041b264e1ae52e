"""The dissection of a unit, a function or a recording; of a unit with modes, mode by mode."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from golden import stimuli
from golden.errors import OperandError
from golden.files import output
from golden.identify.blackbox.box import Box, BudgetEnded, dense_view, mode_view
from golden.identify.blackbox.candidates import Candidate, meant
from golden.identify.blackbox.dissection import Dissection
from golden.identify.blackbox.garbage import seldom_collected
from golden.identify.blackbox.policy import POLICY
from golden.identify.blackbox.recordings import Recording, dissect_recording
from golden.identify.blackbox.report import IN_TURNS, Found, of_modes
from golden.identify.blackbox.unread_bits import not_read
from golden.instruction import Instruction
from golden.number.formats import Format
from golden.unit import Function, FunctionUnit, Unit, name_of, signature_of

Progress = Callable[[str, int, int], None]
_RESUME = "argument 'resume' (option --continue)"


@seldom_collected()
def dissect(
    box: Unit | Function | Recording,
    formats: Mapping[str, str | Format] | None = None,
    k: int | None = None,
    *,
    seconds: float = 60,
    asks: int = 400_000,
    seed: int = 0,
    progress: Progress | None = None,
    resume: str | Path | None = None,
    near: Instruction | None = None,
    **more: Any,
) -> Found:
    """Finds the specification of a black box.

    Args:
        box: a unit or a recording (`formats` and `k` are their own), or a function f(a, b, c[, scale_a,
            scale_b, metadata]) -> d on arrays of raw codes, a and b (n, k), c and d (n,).
        formats: of a function: names or formats by operand, {"a": "f16", "b": "f16", "c": "f32", "d": "f32"};
            with scales scale_a and scale_b, too.
        k: of a function: products of one dot product.
        seconds: no question is asked after this time.
        asks: dot products that the box may be asked, at least 500; few of them decide little.
        seed: of the random operands; equal seeds ask a box the same questions, as long as its answers are
            the same and no time ends.
        progress: called with (what is done, done, all).
        resume: a file that keeps questions, answers and the candidate: where it exists the dissection in it
            goes on, with `seconds` and `asks` anew; in the end it is written.
        near: what the box is meant to be: the first start, believed no more than any other.
        more: of a function: scale_block and pattern, as Signature has them.

    Raises:
        OperandError: the box cannot be asked this way, does not answer, or answers otherwise than `resume`
            has it; `near` takes other operands. FileFormatError: `resume` is of another box or version, or
            cannot be written.
    """
    if isinstance(box, Recording):
        if near is not None:
            raise OperandError(f"{box.name} is a recording: argument 'near' (option --near) is for units")
        if formats is not None or k is not None or more or resume is not None:
            if resume is not None:
                raise OperandError(
                    f"{box.name} is a recording, which is not continued: {_RESUME} is for units"
                )
            raise OperandError(
                f"{box.name} is a recording, which has formats and k of its own: leave them out"
            )
        if not seconds > 0:
            raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
        return dissect_recording(box, seconds, seed, progress)
    unit = _as_unit(box, formats, k, more)
    if asks < POLICY.least_asks:
        raise OperandError(f"argument 'asks' is {asks}, expected {POLICY.least_asks} or more")
    if not seconds > 0:
        raise OperandError(f"argument 'seconds' is {seconds}, expected more than 0")
    if signature_of(unit).modes is not None:
        if resume is not None:
            raise OperandError(f"{name_of(unit)} has modes: {_RESUME} is for a unit of one mode")
        return _mode_by_mode(unit, seconds, asks, seed, progress, near)
    if near is not None and near.mode_units:
        raise OperandError(f"argument 'near' has modes, {name_of(unit)} has none: name a unit without")
    start = None if near is None else _meant(unit, near)
    if resume is not None:
        output.check(resume)
    begun = time.monotonic()
    unread = not_read(unit, asks, seconds, lambda *numbers: np.random.default_rng([seed, *numbers]))
    seconds -= time.monotonic() - begun
    search = Dissection(unread.unit, seconds, asks - unread.asked, seed, progress, near=start)
    if resume is not None and Path(resume).exists():
        search.remember(resume)
    try:
        found = search.run()
    finally:  # also of one that was interrupted
        if resume is not None:
            search.keep(resume)
    undecided = (*found.undecided, *unread.open)
    return replace(found, not_read=unread.said, undecided=undecided, asked=found.asked + unread.asked)


def _as_unit(
    box: Any, formats: Mapping[str, str | Format] | None, k: int | None, more: dict[str, Any]
) -> Unit:
    if hasattr(box, "dot") and hasattr(box, "formats"):
        if formats is not None or k is not None or more:
            raise OperandError("arguments 'formats' and 'k' are for a function; a unit has its own")
        unit: Unit = box
    elif not callable(box):
        raise OperandError(f"argument 'box' is {type(box).__name__}, expected a unit or a function")
    elif formats is None or k is None:
        raise OperandError("arguments 'formats' and 'k' are missing, expected both with a function")
    else:
        missing = [name for name in "abcd" if name not in formats]
        if missing:
            raise OperandError(f"argument 'formats' lacks {', '.join(missing)}, expected a, b, c and d")
        unit = FunctionUnit(box, formats, k, getattr(box, "__name__", "function"), **more)
    takes = signature_of(unit)
    if takes.state and takes.pattern is not None:
        raise OperandError(f"{takes.name} keeps its accumulator and is sparse, expected one or the other")
    if takes.absent:
        raise OperandError(
            f"{takes.name} has no {' and no '.join(takes.absent)}, expected a unit with a, b and c"
        )
    return unit


def _meant(unit: Unit, near: Instruction) -> Candidate:
    return meant(signature_of(dense_view(unit)), near)


def _mode_by_mode(
    unit: Unit, seconds: float, asks: int, seed: int, progress: Progress | None, near: Instruction | None
) -> Found:
    """What a unit is in each mode: each search begins with what was found of the mode before, and what the
    mode is meant to be. In the end the modes are asked in turns, which no search of one mode does."""
    modes, started = signature_of(unit).modes, time.monotonic()
    assert modes is not None
    codes = [code for code, _ in modes.codes()]
    if asks < POLICY.least_asks * len(codes):
        raise OperandError(
            f"argument 'asks' is {asks}, expected {POLICY.least_asks} or more for each of {len(codes)} modes"
        )
    views = {code: mode_view(unit, code) for code in codes}
    own = (
        {} if near is None else {code: _meant(views[code], near.mode_units.get(code, near)) for code in codes}
    )
    found: dict[int, Found] = {}
    before: Candidate | None = None
    share = min(asks // POLICY.in_turns_share, 2 * len(stimuli.KINDS) * POLICY.last_round)
    for turn, code in enumerate(codes):
        left = (started + seconds - time.monotonic()) / (len(codes) - turn + 1 / POLICY.in_turns_share)
        each = (asks - share) // len(codes)
        search = Dissection(views[code], left, each, seed, progress, before, own.get(code))
        found[code] = search.run()
        before = before if search.state.fit is None else search.state.fit.candidate
    whole = of_modes(name_of(unit), modes, found)
    return whole if whole.instruction is None else _in_turns(unit, whole, share, started + seconds, seed)


def _in_turns(unit: Unit, found: Found, asks: int, deadline: float, seed: int) -> Found:
    """The unit asked in another mode from one dot product to the next, beside what was found of each."""
    assert found.instruction is not None
    box, own = Box(unit, asks, deadline), found.instruction
    count = asks // len(stimuli.KINDS)
    try:
        parts = [
            stimuli.generate(box.own, kind, count, np.random.default_rng([seed, place]))
            for place, kind in enumerate(stimuli.KINDS)
        ]
        operands = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        answers = box.answer(operands)
    except BudgetEnded:
        said = "the time ended before the modes were asked in turns: no mode was asked beside another"
        return replace(found, undecided=(*found.undecided, said))
    wrong = int((own.stateless.dot(**box.own.resolve(operands, answers)) != answers).sum())
    return replace(
        found,
        differing={**found.differing, IN_TURNS: (wrong, len(answers))},
        asked=found.asked + len(answers),
        fresh=found.fresh + len(answers),
    )
