"""Reasons of a failed check: an example of each fault by itself, and findings about the handshake and from
the lint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from golden.errors import counted, listed
from golden.identify.diagnose.flags import FlagFault, flag_faults
from golden.identify.diagnose.mutations.accumulator import context_of_each
from golden.identify.diagnosis import Diagnosis, Fault
from golden.identify.minimising import minimise, of_one_kind
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands
from golden.vectors.tiles import element
from rtl_tb.dut.description import Dut
from rtl_tb.dut.text import read
from rtl_tb.engines.builds import warnings_of
from rtl_tb.engines.job import FAILURE_KINDS, Job
from rtl_tb.errors import RtlError
from rtl_tb.locate.budget import Budget
from rtl_tb.runs.example import Example, example_of, example_of_sequence, run_of
from rtl_tb.runs.sequences import behind_its_c
from rtl_tb.runs.tiles import sentence, wrong_elements
from rtl_tb.runs.unit import DutRun
from rtl_tb.runs.verdict import Verdict, judge, silent

WIDTHS = ("WIDTH", "CMPCONST", "UNSIGNED")
"""Warnings of Verilator about bits that are lost or missing."""
_SWAPPED = re.compile(r"(a|b|c|scale-a|scale-b)-and-(a|b|c|scale-a|scale-b)-swapped")
_UNITS = re.compile(r"^\s*(package|endpackage|module|endmodule|interface|endinterface)\b", re.MULTILINE)


@dataclass(frozen=True)
class FaultExample:
    """A fault with the smallest operands found that show it and no other fault; None: none were found."""

    fault: Fault
    example: Example | None


def flag_reasons(
    verdict: Verdict, diagnosis: Diagnosis | None = None, budget: Budget | None = None
) -> list[FlagFault]:
    """Explanations of wrong status flags, for the vectors whose d is right; nothing if none differ. The
    explanation of all wrong d of the whole unit is also tried on the flags."""
    vectors, outcome = verdict.vectors, verdict.outcome
    flags = outcome.flags
    if flags is None or vectors.level != "dot" or vectors.instruction.state or not verdict.wrong_flags:
        return []
    known = np.flatnonzero(~(verdict.missing | verdict.unknown))
    operands = {name: codes[known] for name, codes in vectors.operands.items()}
    codes = flags.reshape(len(vectors))[known]
    of_all = diagnosis is not None and diagnosis.explains and diagnosis.instruction == vectors.instruction
    best = diagnosis.hypotheses[0] if diagnosis is not None and of_all else None
    answered = outcome.actual.reshape(len(vectors))[known] if best is None and verdict.wrong_d.any() else None
    judged = ~verdict.wrong_d[known]
    return flag_faults(vectors.instruction, operands, codes, judged, best, answered, budget)


def examples_of_faults(
    verdict: Verdict, engine: str, job: Job, diagnosis: Diagnosis, budget: Budget | None = None
) -> list[FaultExample]:
    """Each fault of the diagnosis, if there are several, with an example of its own, as far as the budget
    goes."""
    ins, every = job.vectors.instruction, diagnosis.every_fault
    if len(every) < 2:
        return []
    if diagnosis.instruction.modes is not None:  # a fault of the mode itself shows between modes
        return [FaultExample(fault, None) for _, fault in every]
    budget = budget or Budget(float("inf"))
    of = _of_state if ins.state else _of_tile if job.dut.level == "tile" else _of_dot

    def example(unit: Instruction, fault: Fault) -> Example | None:
        return None if budget.over() else of(verdict, engine, job, unit, fault, budget)

    return [FaultExample(fault, example(unit, fault)) for unit, fault in every]


def _of_dot(
    verdict: Verdict, engine: str, job: Job, unit: Instruction, fault: Fault, budget: Budget
) -> Example | None:
    """The example for a unit of dot products; for one with modes `unit` is the unit in the diagnosed mode."""
    ins, operands = job.vectors.instruction, dict(job.vectors.operands)
    numbers, mode = np.arange(len(job.vectors)), {}
    if ins.modes is not None:
        (rest, numbers), *_ = [(rest, at) for one, rest, at in ins.by_mode(operands) if one.name == unit.name]
        mode = {"mode": operands["mode"][numbers[0]]}
        operands = dict(rest)
    found = np.flatnonzero(verdict.wrong_d[numbers] & fault.alone(unit, operands))
    if not len(found):
        return None
    first = {name: codes[found[0]] for name, codes in operands.items()}
    return _smallest(run_of(engine, job, None), unit, fault, first, mode, int(numbers[found[0]]), budget)


def _of_tile(
    verdict: Verdict, engine: str, job: Job, unit: Instruction, fault: Fault, budget: Budget
) -> Example | None:
    """The example for a unit of tiles: one dot product of one, the rest zero."""
    # Wrong elements of tiles among which the example of a fault is searched.
    most = 20_000
    wrong = np.argwhere(wrong_elements(verdict, job.dut.compare))[:most]
    if not len(wrong):
        return None
    operands = element(job.vectors.operands, *wrong.T)
    mode = {"mode": operands.pop("mode")} if "mode" in operands else {}
    alone = fault.alone(unit, operands)
    if mode:  # of the mode that was diagnosed
        ins = job.vectors.instruction
        alone = alone & np.array(
            [ins.in_mode_of({"mode": code} | _at(operands, 0))[0].name == unit.name for code in mode["mode"]]
        )
    found = np.flatnonzero(alone)
    if not len(found):
        return None
    tile, row, column = wrong[found[0]].tolist()
    run = run_of(engine, job, (row, column))
    return _smallest(run, unit, fault, _at(operands, found[0]), _at(mode, found[0]), tile, budget)


def _of_state(
    verdict: Verdict, engine: str, job: Job, unit: Instruction, fault: Fault, budget: Budget
) -> Example | None:
    """The example for a unit that keeps its accumulator: a dot product after one that makes its c."""
    ins, operands = job.vectors.instruction, verdict.vectors.resolved()

    def counts(batch: Operands) -> Bits:
        return fault.alone(unit, batch | context_of_each(ins, batch))

    found = np.flatnonzero(verdict.wrong_d & counts(operands))
    if ins.modes is not None or not len(found):
        return None
    run = run_of(engine, job, None)
    # Vectors of a run that only decides which of them fails by itself.
    few = 200
    candidates = {name: codes[found[:few]] for name, codes in operands.items()}
    sequence = behind_its_c(run, ins, candidates, counts, budget=budget)
    if sequence is None:
        return None
    return example_of_sequence(run, verdict, sequence, int(found[0]), job.dut.compare)


def _at(operands: Mapping[str, Bits], number: int) -> Operands:
    return {name: codes[number] for name, codes in operands.items()}


def _smallest(
    run: DutRun,
    unit: Instruction,
    fault: Fault,
    first: Operands,
    mode: Operands,
    vector: int,
    budget: Budget,
) -> Example | None:
    """The smallest operands like `first` that fail alone, in a mode, and show no other fault; None if `first`
    does not."""

    def fails(batch: Operands) -> Bits:
        modes = {name: np.full(len(batch["a"]), code, code.dtype) for name, code in mode.items()}
        return np.asarray(run.failed(batch | modes) & fault.alone(unit, batch))

    if not fails({name: np.asarray(codes)[None] for name, codes in first.items()})[0]:
        return None
    least = minimise(unit, first, of_one_kind(unit, first, fails), budget=budget)
    return example_of(run, least | mode, vector, run.job.dut.compare)


def hints(verdict: Verdict, job: Job, diagnosis: Diagnosis | None, budget: Budget | None = None) -> list[str]:
    """Possible errors in the description of the unit, such as its latency, and explanations of its status
    flags."""
    dut, found = job.dut, [fault.sentence() for fault in flag_reasons(verdict, diagnosis, budget)]
    if (where := sentence(verdict, dut.compare)) is not None:
        found.insert(0, where)
    found += looser_comparison(verdict, dut)
    if diagnosis is not None and diagnosis.hypotheses and diagnosis.hypotheses[0].remaining == 0:
        late = diagnosis.hypotheses[0].delay
        if late and dut.handshake.kind == "latency" and dut.handshake.latency is not None:
            found.append(f"the latency is {dut.handshake.latency + late}, not {dut.handshake.latency}")
        elif late and (valid := dut.handshake.out_valid) is not None:
            found.append(_not_with_its_data(valid, late))
    if silent(verdict):
        found.append(never_answered(verdict))
    return found


def looser_comparison(verdict: Verdict, dut: Dut) -> list[str]:
    """A comparison under which no result is wrong: they are NaNs with other words, or zeros of the other
    sign, which the project may leave open."""
    what = {"nan": "a NaN with another word", "zero": "a zero of the other sign"}
    for keys in (["nan"], ["zero"], ["nan", "zero"]):
        nan, zero = (("any" if key in keys else getattr(dut.compare, key)) for key in what)
        policy = replace(dut.compare, nan=nan, zero=zero)
        if verdict.wrong.any() and not judge(verdict.vectors, verdict.outcome, policy).wrong.any():
            kinds, words = " or ".join(what[key] for key in keys), ", ".join(f"{key}: any" for key in keys)
            return [f"each wrong result is {kinds}; if the unit may give it, write compare: {{{words}}}"]
    return []


def _not_with_its_data(valid: str, late: int) -> str:
    """The hint for a unit whose results belong to the vector `late` before the one that `valid` answers."""
    place, where = ("ahead of", "before") if late > 0 else ("behind", "after")
    key = f"valid: {{port: {valid}, ahead: {late}}} under output"
    latency = "leave the valid out and write kind: latency, latency: measure"
    return (
        f"'{valid}' comes {counted(abs(late), 'transfer')} {place} its data: each result is that of the "
        f"vector {abs(late)} {where} it; look at the registers of both, and if the unit is meant so, "
        f"{f'write {key}, or ' if late > 0 else ''}{latency}"
    )


def lint(verdict: Verdict, dut: Dut, budget: Budget) -> list[str]:
    """What the lint says of widths in the modules of the unit, where nothing else explains wrong results.

    Most such warnings are meant. A package has constants alone, which the unit may not even use.
    """
    if not verdict.wrong.any() or dut.vhdl is not None:
        return []
    warned: list[str] = []
    with suppress(RtlError), budget.builds():
        warned = [text for text in warnings_of(dut, WIDTHS) if not _in_package(text)]
    if not warned:
        return []
    # Warnings that a hint names.
    shown = 3
    said = listed([text[text.rfind("/", 0, text.find(": ")) + 1 :] for text in warned], shown, "; ")
    return [f"Verilator's lint warns of widths, which may be meant: {said}"]


def _in_package(warning: str) -> bool:
    """Whether the place of a warning, FILE:LINE:COLUMN, lies in a package."""
    file, line, _ = warning.split(":", 2)
    try:
        before = read(Path(file)).split("\n")[: int(line)]
    except (OSError, ValueError):
        return False
    words = _UNITS.findall("\n".join(before))
    return bool(words) and words[-1] == "package"


def never_answered(verdict: Verdict) -> str:
    """The hint for a unit that answers next to nothing, whatever the polarity of its signals
    (rtl_tb/runs/polarity.py)."""
    return (
        f"{int(verdict.missing.sum()):,} of {len(verdict.vectors):,} vectors were never answered, nor are "
        "they with its reset, valid, ready or enable turned over; look at the clock, and at what holds the "
        "handshake up"
    )


_WHERE = {
    "extra_result": "look at what takes out_valid back once a result was taken; if it stays on purpose, "
    "leave it out in dut.yaml and write kind: latency, latency: measure",
    "unstable_output": "look at what may change the result while it waits",
    "valid_dropped": "look at what takes out_valid back while a result waits",
    "stale_after_reset": "look at what a reset does not clear",
    "changed_answer": "look at what a reset does not clear",
    "valid_follows_ready": "look at how out_valid depends on out_ready",
}
"""Where in the RTL to look for the cause of each kind of ProtocolFailure."""


def handshake_hint(verdict: Verdict) -> str:
    """The hint for a unit whose results are all right and whose handshake is not."""
    first = verdict.outcome.failures[0]
    where = f"; {_WHERE[first.kind]}" if first.kind in _WHERE else ""
    return (
        f"every one of {len(verdict.vectors):,} results is right, and the handshake is not: "
        f"{FAILURE_KINDS[first.kind]}, first in cycle {first.cycle} of {verdict.outcome.cycles}{where}"
    )


def too_few(verdict: Verdict) -> bool:
    """Whether there are too few results for a conclusion: the initial content of a register looks like a
    result."""
    # Results of a unit that stopped answering that are enough for a diagnosis.
    enough = 64
    return silent(verdict) and int(verdict.outcome.received.sum()) < enough


def swapped_ports(dut: Dut, diagnosis: Diagnosis | None) -> list[str]:
    """A hint if the unit has two operands exchanged: results cannot distinguish a fault inside the RTL from
    one of its description. Ports with the names of the operands give no hint."""
    best = diagnosis.hypotheses[0] if diagnosis is not None and diagnosis.explains else None
    found = None if best is None else next(filter(None, map(_SWAPPED.fullmatch, best.slug.split("+"))), None)
    if found is None:
        return []
    names = [name.replace("-", "_") for name in found.groups()]
    lies = {name: ", ".join(dut.ports[name].ports) for name in names if name in dut.ports}
    if all(name.lower() == port.lower() for name, port in lies.items()):
        return []
    said = " and ".join(f"{name} is {port}" for name, port in lies.items())
    return [f"ports of dut.yaml: {said}; if the RTL is right, exchange the two there"]
