"""Outputs that are no results, and bits of result ports that carry no element: where dut.yaml says what they
have (`exclude: {..., answer: {port: error}}`, `unused: zero`), all vectors run once more on a wrapper that
gives these bits in place of the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from golden.vectors.vectorset import Bits, VectorSet
from golden.vectors.word import RESULTS
from rtl_tb.dut.bit_ranges import result_bit_ranges
from rtl_tb.dut.description import Bit, Dut
from rtl_tb.dut.exclude import Exclusion
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.dut.port_fields import find, places
from rtl_tb.dut.wrapper import module_of, names_of, uncompared
from rtl_tb.engines.job import FAILURE_KINDS, Job, ProtocolFailure, Traffic
from rtl_tb.runs.verdict import Verdict, verdict_of

KIND = "other_output"
Mask = npt.NDArray[np.bool_]


def uncompared_bits(dut: Dut) -> list[str]:
    """The bits of result ports that no key speaks of, by name."""
    results = [at for name, at in dut.ports.items() if name in RESULTS]
    free = {port for at in results if at.unused == "any" for port in at.ports}
    return names_of([bit for bit in uncompared(dut) if bit[0].partition(".")[0] in free or bit[0] in free])


@dataclass(frozen=True)
class OtherOutputs:
    """Outputs that are wrong.

    Attributes:
        failures: what is wrong, in words.
        runs: one for each word of these outputs, which stand there in place of the results.
    """

    failures: tuple[ProtocolFailure, ...]
    runs: tuple[tuple[Job, Verdict], ...]


def run_other_outputs(job: Job, engine: str) -> OtherOutputs | None:
    """Runs the vectors for these outputs; None where dut.yaml says nothing of any.

    Raises:
        As the engine does.
    """
    ports, unused = _ports(job.dut, job.vectors), _unused(job.dut, job.vectors)
    if not (ports or unused):
        return None
    # Where d may be anything, so may be what extends it.
    exclude, vectors = job.dut.exclude, job.vectors
    known = np.ones(len(vectors), np.bool_)
    if exclude is not None:
        known = ~exclude.of(vectors.instruction, vectors.operands, vectors.d)
    # 1. One run for as many bits as the result has, since the wrapper gives them in its place. `failed`
    # groups the bits by what was wrong and where.
    failed: dict[tuple[str, bytes, bytes, bytes], list[Bit]] = {}
    runs = []
    size = job.dut.layout.result_width
    for wanted, counts in ((ports, np.ones_like(known)), (unused, known)):
        bits = list(wanted)
        for at in range(0, len(bits), size):
            some = bits[at : at + size]
            mine = _watching(job, {bit: wanted[bit] for bit in some}, counts)
            verdict = verdict_of(engine, mine)
            if not verdict.failed.any():
                continue
            runs.append((mine, verdict))
            came, numbers = _bits(mine.dut, verdict.outcome.results, len(some)), np.flatnonzero(counts)
            for place, bit in enumerate(some):
                wrong = (came[:, place] != wanted[bit][counts]) & verdict.wrong
                # Bits of one cause, such as a lost sign, are wrong together.
                for what, where in (("", numbers[wrong]), ("X or Z", numbers[verdict.unknown])):
                    if len(where):
                        key = (what, where.tobytes(), came[:, place].tobytes(), wanted[bit].tobytes())
                        failed.setdefault(key, []).append(bit)
    # 2. One failure for each group.
    failures = []
    for (what, where_all, values, _), together in failed.items():
        numbers, answers = np.frombuffer(where_all, np.int64), np.frombuffer(values, np.bool_)
        expected = (ports | unused)[together[0]]
        failures.append(_failure(job.dut, together, numbers, answers, expected, what))
    return OtherOutputs(tuple(failures), tuple(runs))


def _watching(job: Job, wanted: dict[Bit, Mask], counts: Mask) -> Job:
    """A run of the vectors that count, in which the results are these bits."""
    vectors, dut = job.vectors, replace(job.dut, watched=tuple(wanted), compare=ComparePolicy())
    words = np.zeros((len(vectors), dut.layout.result_width), np.bool_)
    words[:, : len(wanted)] = np.stack(list(wanted.values()), axis=1)
    expected = dut.layout.unpack_results(np.packbits(words, axis=1, bitorder="little"))
    shaped = {name: codes.reshape(vectors.results[name].shape) for name, codes in expected.items()}
    vectors = replace(vectors, d=shaped["d"], flags=shaped.get("flags"))
    calm = Traffic(seed=job.traffic.seed)
    mine = replace(job, dut=dut, vectors=vectors, traffic=calm, program=None, waves=None)
    return mine if counts.all() else mine.at(np.flatnonzero(counts))


def _bits(dut: Dut, results: Mapping[str, Bits], count: int) -> Mask:
    """The first bits of each word of results, (vectors, count)."""
    words = np.unpackbits(dut.layout.pack_results(results), axis=1, bitorder="little")
    return words[:, :count].astype(np.bool_)


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
