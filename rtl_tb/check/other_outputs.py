"""Outputs that are no results, and bits of result ports that carry no element: where dut.yaml says what they
have (`exclude: {..., answer: {port: error}}`, `unused: zero`), all vectors run once more on a wrapper that
gives these bits in place of the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from golden.vectors.vectorset import VectorSet
from golden.vectors.word import RESULTS
from rtl_tb import engines
from rtl_tb.dut.bit_ranges import result_bit_ranges
from rtl_tb.dut.description import Bit, Dut
from rtl_tb.dut.exclude import Exclusion
from rtl_tb.dut.port_fields import find, places
from rtl_tb.dut.wrapper import module_of, names_of, uncompared
from rtl_tb.engines.job import FAILURE_KINDS, Job, ProtocolFailure, Traffic
from rtl_tb.runs.verdict import Verdict

KIND = "other_output"
Mask = npt.NDArray[np.bool_]


def uncompared_bits(dut: Dut) -> list[str]:
    """The bits of result ports that no key speaks of, by name."""
    results = [at for name, at in dut.ports.items() if name in RESULTS]
    free = {port for at in results if at.unused == "any" for port in at.ports}
    return names_of([bit for bit in uncompared(dut) if bit[0].partition(".")[0] in free or bit[0] in free])


def compare_other_outputs(job: Job, engine: str, verdict: Verdict) -> Verdict | None:
    """The verdict with the failures of these outputs; None where dut.yaml says nothing of any.

    Raises:
        As the engine does.
    """
    wanted = _ports(job.dut, job.vectors) | _unused(job.dut, job.vectors)
    if not wanted:
        return None
    # Where d may be anything, so may be what extends it.
    exclude, vectors = job.dut.exclude, job.vectors
    known = np.ones(len(vectors), np.bool_)
    if exclude is not None:
        known = ~exclude.of(vectors.instruction, vectors.operands, vectors.d)
    said = {case.port.name for case in exclude.cases if case.port} if exclude is not None else set()
    # 1. One run for as many bits as the result has, since the wrapper gives them in its place. `failed`
    # groups the bits by what was wrong and where.
    failed: dict[tuple[str, bytes, bytes, bytes], list[Bit]] = {}
    bits, size = list(wanted), job.dut.layout.result_width
    for at in range(0, len(bits), size):
        some = bits[at : at + size]
        mine = replace(
            job,
            dut=replace(job.dut, watched=tuple(some)),
            traffic=Traffic(seed=job.traffic.seed),
            program=None,
            waves=None,
        )
        outcome = engines.run(engine, mine)
        words = job.dut.layout.pack_results(
            {name: codes.reshape(job.vectors.results[name].shape) for name, codes in outcome.results.items()}
        )
        came = np.unpackbits(words, axis=1, bitorder="little")[:, : len(some)].astype(np.bool_)
        for place, bit in enumerate(some):
            counts = outcome.received & (known | (bit[0] in said))
            wrong = np.flatnonzero((came[:, place] != wanted[bit]) & counts & ~outcome.unknown)
            unknown = np.flatnonzero(outcome.unknown & counts)
            # Bits of one cause, such as a lost sign, are wrong together.
            for what, where in (("", wrong), ("X or Z", unknown)):
                if len(where):
                    key = (what, where.tobytes(), came[:, place].tobytes(), wanted[bit].tobytes())
                    failed.setdefault(key, []).append(bit)
    # 2. One failure for each group.
    failures = []
    for (what, where_all, values, _), together in failed.items():
        numbers, answers = np.frombuffer(where_all, np.int64), np.frombuffer(values, np.bool_)
        failures.append(_failure(job.dut, together, numbers, answers, wanted[together[0]], what))
    outcome = replace(verdict.outcome, failures=[*verdict.outcome.failures, *failures])
    return replace(verdict, outcome=outcome)


def _failure(
    dut: Dut, bits: list[Bit], vectors: npt.NDArray[np.int64], came: Mask, wanted: Mask, what: str
) -> ProtocolFailure:
    first = int(vectors[0])
    names = names_of([bits[0], bits[-1]][: len(bits)])
    are = f"{names[0]} is" if len(bits) == 1 else f"{names[0]} to {names[-1]} are"
    always = "always " if not what and (came == came[0]).all() else ""
    extends = any(at.unused == "sign" and bits[0][0] in at.ports for at in dut.ports.values())
    expected = f"{'the sign of the result, ' if extends else ''}{int(wanted[first])}"
    text = (
        f"{FAILURE_KINDS[KIND]}: {are} {always}{what or int(not wanted[first])}, wrong in "
        f"{len(vectors):,} vectors, first in vector {first}, expected {expected} there"
    )
    return ProtocolFailure(KIND, 0, first, text)


def _ports(dut: Dut, vectors: VectorSet) -> dict[Bit, Mask]:
    """The outputs that say that a vector is excluded, and when they are 1."""
    found: dict[str, Mask] = {}
    low = set()
    for case in dut.exclude.cases if dut.exclude is not None else ():
        if case.port is not None:
            here = Exclusion((case,)).of(vectors.instruction, vectors.operands, vectors.d)
            found[case.port.name] = found.get(case.port.name, np.zeros(len(here), np.bool_)) | here
            low |= {case.port.name} if case.port.active_low else set()
    if not found:
        return {}
    module = module_of(dut)
    ports = {name: find(module, name, dut.where["exclude"]) for name in found}
    return {
        bit: ~found[name] if name in low else found[name]
        for name, port in ports.items()
        for bit in places(port)[0]
    }


def _unused(dut: Dut, vectors: VectorSet) -> dict[Bit, Mask]:
    """The bits of result ports that carry no element, where a key says what they have."""
    results = [at for name, at in dut.ports.items() if name in RESULTS]
    rules = {port: at.unused for at in results if at.unused != "any" for port in at.ports}
    if not rules:
        return {}
    runs = result_bit_ranges(dut, module_of(dut))
    carried = {
        (run.port, run.index, run.lsb + at): run.word + at
        for run in runs
        if run.word is not None
        for at in range(run.width)
    }
    words = np.unpackbits(dut.layout.pack_results(vectors.results), axis=1, bitorder="little").astype(
        np.bool_
    )
    found: dict[Bit, Mask] = {}
    for bit in uncompared(dut):
        port, index, place = bit
        rule = rules.get(port, "any")
        below = [at for name, entry, at in carried if (name, entry) == (port, index) and at < place]
        if rule == "sign" and below:
            found[bit] = words[:, carried[port, index, max(below)]]
        elif rule != "any":
            found[bit] = np.zeros(len(vectors), np.bool_)
    return found
