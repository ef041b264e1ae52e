"""Recordings as black boxes: dot products with their results, to which no query can be added.

captured:hopper:NAME       the vectors of an instruction that were recorded on a GPU (vectors/)
recording:FILE             a vector file with its manifest, or an .npz archive of one's own
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.catalog.lookup import instruction
from golden.catalog.relatives import Relative, relatives
from golden.catalog.unit_text import unit_text
from golden.errors import FileFormatError, OperandError
from golden.files.npyfile import read_arrays
from golden.identify.blackbox import fitting
from golden.identify.blackbox.box import Bank, dense_view, selected, with_box_operands
from golden.identify.blackbox.candidates import Candidate
from golden.identify.blackbox.evidence import Evidence, forced, simplest, weigh
from golden.identify.blackbox.moves import Hints, Move
from golden.identify.blackbox.naming import nearest, with_names
from golden.identify.blackbox.neighbourhood import nan_words, single_changes
from golden.identify.blackbox.policy import RECORDINGS
from golden.identify.blackbox.repeatability import RECORDED, Changed
from golden.identify.blackbox.report import Example, Found, Rival, shortened
from golden.identify.blackbox.sources import signature_from_options
from golden.identify.blackbox.templates import skeletons
from golden.identify.blackbox.unexplained import broken, unexplained
from golden.identify.comparing import compare
from golden.identify.sample import picked
from golden.model.instruction import Instruction
from golden.program.signature import Bits, Operands, Signature
from golden.unit import FunctionUnit, signature_of
from golden.vectors import captured, files
from golden.vectors.manifest import path_for
from golden.vectors.tiles import element, grid


@dataclass(frozen=True)
class Recording:
    """Recorded dot products of a unit: operands (n, ...) by name as `dot` takes them, and results (n,)."""

    name: str
    takes: Signature
    operands: Operands
    answers: Bits

    def __post_init__(self) -> None:
        if not len(self):
            raise OperandError(f"{self.name} holds no dot product, expected some")

    def __len__(self) -> int:
        return len(self.answers)


def open_recording(
    text: str,
    formats: Mapping[str, str] | None = None,
    k: int | None = None,
    scale_block: int | None = None,
    pattern: str | None = None,
) -> Recording | None:
    """The recording that a text names; None where it names something else.

    Args:
        formats, k, scale_block, pattern: of an archive without a manifest; see `open_box`.

    Raises:
        UnknownNameError, OperandError, FileFormatError: with what was expected.
    """
    kind, _, rest = text.partition(":")
    if kind not in ("captured", "recording") or not rest:
        return None
    if kind == "captured" or path_for(rest).is_file():
        if formats is not None or k is not None:
            raise OperandError(f"{text} has formats and K of its own, expected neither as options")
        return _captured(text, rest) if kind == "captured" else _vector_file(text, Path(rest))
    return _archive(text, Path(rest), signature_from_options(text, formats, k, scale_block, pattern))


def _captured(text: str, name: str) -> Recording:
    architecture, colon, rest = name.partition(":")
    if not colon:
        raise OperandError(f"{text} names no recording, expected captured:ARCHITECTURE:INSTRUCTION")
    ins = instruction(architecture, rest)
    found = captured.load_one(architecture, ins.name)
    return _of_tiles(text, ins, found.operands, found.d)


def _vector_file(text: str, path: Path) -> Recording:
    vectors = files.read(path)
    ins = vectors.instruction
    if ins.modes is not None or ins.state:
        raise OperandError(f"{text}: vectors of a unit with modes or a state, expected those of one without")
    if vectors.level == "tile":
        return _of_tiles(text, ins, vectors.operands, vectors.d)
    return Recording(text, _bare(text, ins), dict(vectors.operands), vectors.d)


def _bare(text: str, ins: Signature) -> Signature:
    """An instruction reduced to its operands."""
    return Signature(text, 1, 1, ins.k, dict(ins.formats), ins.pattern, ins.ordered_metadata, ins.scale_block)


def _of_tiles(text: str, takes: Signature, operands: Mapping[str, Bits], d: Bits) -> Recording:
    """Each element of each tile's result."""
    places = grid(np.arange(len(d)), *d.shape[1:])
    return Recording(text, _bare(text, takes), element(operands, *places), d[places])


def _archive(text: str, path: Path, takes: Signature) -> Recording:
    """An archive with arrays of raw codes by the operands' names and d: dot products, a and b (n, k), c and d
    (n,); or tiles, a (n, rows, k), b (n, k, columns), c and d (n, rows, columns)."""
    if path.suffix != ".npz":
        raise OperandError(f"{text} has no manifest next to it, expected one, or an .npz archive")
    arrays = read_arrays(path, (*takes.operand_shapes(matrices=False), "d"))
    missing = [name for name in (*takes.operand_shapes(matrices=False), "d") if name not in arrays]
    if missing:
        raise FileFormatError(f"{path} lacks {', '.join(missing)}, expected an array of codes for each")
    d = arrays.pop("d")
    if d.ndim not in (1, 3):
        raise FileFormatError(f"{path}[d] has shape {d.shape}, expected one dimension, or three of tiles")
    if d.ndim == 3:
        tiles = Signature(
            text, d.shape[1], d.shape[2], takes.k, takes.formats, takes.pattern, scale_block=takes.scale_block
        )
        _check(path, arrays, tiles.operand_shapes(matrices=True), len(d))
        arrays, d = element(arrays, *(places := grid(np.arange(len(d)), *d.shape[1:]))), d[places]
    _check(path, arrays, takes.operand_shapes(matrices=False), len(d))
    takes.formats["d"].check(d, f"{path}[d]")
    return Recording(text, takes, takes.check_named(arrays), d.astype(takes.formats["d"].dtype))


def _check(path: Path, arrays: Mapping[str, Bits], shapes: Mapping[str, tuple[int, ...]], count: int) -> None:
    for name, shape in shapes.items():
        if arrays[name].shape != (count, *shape):
            raise FileFormatError(
                f"{path}[{name}] has shape {arrays[name].shape}, expected {(count, *shape)}"
            )


Progress = Callable[[str, int, int], None]
USED, HELD = "used by the search", "held back from it"


def dissect_recording(
    recording: Recording, seconds: float, seed: int, progress: Progress | None = None
) -> Found:
    """Finds a specification that explains a recording, and what the recording does not decide.

    Args:
        seconds: the search ends after this time; the report takes some more.
        seed: of the choice of the held-back part.
    """
    return _Passive(recording, seconds, seed, progress).run()


class _Passive:
    def __init__(self, recording: Recording, seconds: float, seed: int, progress: Progress | None) -> None:
        self.recording, self.seed, self.progress = recording, seed, progress
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.takes = signature_of(dense_view(FunctionUnit.like(recording.takes, _unasked)))
        operands = selected(recording.takes, recording.operands)
        self.whole = Bank(self.takes)
        self.whole.add(USED, operands, recording.answers)
        self.same = _operand_groups(operands)
        self.changed = _with_two_results(recording)
        self.used = np.zeros(len(recording), np.bool_)
        different = int(self.same.max()) + 1
        order = np.random.default_rng(seed).permutation(different)
        self._use(order[: min(math.ceil(RECORDINGS.used_share * different), RECORDINGS.used)])

    # The search ---------------------------------------------------------------------------------------------

    def run(self) -> Found:
        """All of it."""
        # 1. Programs of the catalog are the starts: a recording allows no query that would separate
        # skeletons.
        known = self._known()
        fit = self._fitted(known)
        # 2. The held-back part refutes the fit, or checks it; only refuting dot products join the search, so
        # the rest stays independent.
        for _ in range(RECORDINGS.rounds):
            if fit is None or time.monotonic() > self.deadline:
                break
            wrong = np.flatnonzero(self.whole.wrong(fit.candidate.program) & ~self.used)
            if not len(wrong):
                break
            self._use(self.same[wrong[: RECORDINGS.counterexamples]])
            fit = self._fitted([fit.candidate, *known[:1]])
        return self._found(fit, known)

    def _use(self, different: npt.NDArray[np.int64]) -> None:
        """Gives these dot products to the search, each with its multiplicity."""
        self.used |= np.isin(self.same, different)

    def _report_progress(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what, 0, 1)

    @property
    def bank(self) -> Bank:
        """The dot products that the search has."""
        return self.whole.part(np.flatnonzero(self.used))

    def _relatives(self) -> list[Relative]:
        return relatives(self._empty(), same=True)

    def _empty(self) -> Instruction:
        """An instruction with these operands, whose relatives are tried."""
        one = next(iter(skeletons(self.takes, None)))
        return with_box_operands(one.instruction, self.recording.takes)

    def _known(self) -> list[Candidate]:
        """The programs of the catalog with these operands, the nearest first."""
        self._report_progress("trying the instructions of the catalog")
        found = []
        for one in self._relatives():
            name = f"{one.instruction.architecture}:{one.instruction.name}"
            chain = "" if one.links == 1 else f", {one.links} of it in a chain"
            made = Candidate(self.takes, one.stretched.program.operations, f"{name}{chain}")
            found.append((fitting.wrong_of(self.bank, made), made))
        return [made for _, made in sorted(found, key=lambda item: item[0])]

    def _fitted(self, starts: list[Candidate]) -> fitting.Fit | None:
        """The candidate that explains the search's part, or the nearest one."""
        bank = self.bank
        tried = [fitting.Fit(one, fitting.wrong_of(bank, one)) for one in starts[: RECORDINGS.starts]]
        best = self._best(bank, tried)
        # No catalogued program, even with changed keys: all orders of known datapaths.
        if best is None or best.wrong:
            self._report_progress("fitting orders of the sum")
            ranked = fitting.rank(bank, bank, skeletons(self.takes, None), self.deadline)
            more = [best] if best is not None else []
            best = self._best(bank, [*more, *ranked[: RECORDINGS.orders]])
        return best

    def _best(self, bank: Bank, starts: list[fitting.Fit]) -> fitting.Fit | None:
        best: fitting.Fit | None = None
        for start in sorted(starts, key=lambda one: one.wrong):
            if best is not None and (best.wrong == 0 or time.monotonic() > self.deadline):
                break
            self._report_progress(f"fitting: {start.candidate.order}")
            done = fitting.fit(bank, start, self.deadline) if start.wrong else start
            if best is None or done.wrong < best.wrong:
                best = done
        return best

    # The outcome --------------------------------------------------------------------------------------------

    def _found(self, fit: fitting.Fit | None, known: list[Candidate]) -> Found:
        name = self.recording.name
        if fit is None:
            return Found(name, None, None, {}, ("no order of the sum could be tried",), recorded=True)
        candidate = fit.candidate
        wrong = self.whole.wrong(candidate.program)
        # Counts by part: only the held-back part was not used to find the candidate.
        parts = {USED: self.used, HELD: ~self.used}
        differing = {kind: (int(wrong[mask].sum()), int(mask.sum())) for kind, mask in parts.items()}
        unit = with_box_operands(candidate.instruction, self.recording.takes)
        explained = not wrong.any()
        words = nan_words(self.takes.formats["d"], self.recording.answers.tolist()) if self._floats else ()
        # Evidence from the whole recording; nothing can be asked in addition.
        neighbours = list(single_changes(candidate, Hints(words, wide=False, faults=False)))
        limit = time.monotonic() + RECORDINGS.weighing
        evidence = weigh(candidate, self.whole, neighbours, limit) if explained else Evidence()
        alternatives = {one.key: one.undecided for one in evidence.properties if one.undecided}
        # The candidate's name, or the nearest instruction of the catalogue.
        named = any(one.key == candidate.key for one in known)
        near = nearest(unit, alternatives) if explained and not named else None
        title = f"dissected: {name}"
        text = unit_text(candidate.instruction, "dissected", title, editor=False)
        if text is not None and explained:
            text = with_names(candidate.instruction, text, title, [candidate.order] if named else (), near)
        rivals = tuple(self._rivals(candidate, known, evidence, neighbours)) if explained else ()
        return Found(
            name,
            unit,
            text,
            differing,
            tuple(self._undecided(candidate, differing, evidence)),
            rules=(candidate.order, *fit.changes),
            laws=() if explained else broken(self.whole),
            forced=tuple(forced(fit.changes, self.whole)),
            example=None if explained else self._example(candidate, wrong),
            alternatives=alternatives,
            fresh=differing[HELD][1],
            properties=evidence.properties,
            near=near,
            recorded=True,
            changed=self.changed,
            rivals=rivals,
            seconds=time.monotonic() - self.started,
        )

    @property
    def _floats(self) -> bool:
        return self.takes.formats["d"].is_float

    def _undecided(
        self, candidate: Candidate, differing: dict[str, tuple[int, int]], evidence: Evidence
    ) -> Iterator[str]:
        different = int(self.same.max()) + 1
        if different < len(self.recording):
            recorded = f"{len(self.recording):,} recorded dot products"
            yield f"of {recorded} {different:,} are different, the others repeat them"
        if self.changed is not None:
            yield self.changed.text(self.recording.takes.formats)
        wrong = sum(count for count, _ in differing.values())
        if wrong:
            of = f"all {len(self.recording):,} recorded results"
            yield f"no candidate explains {of}; {wrong:,} of them differ"
            if time.monotonic() > self.deadline:
                yield "the time that was given ended before the search did"
            yield from unexplained(candidate, self.whole)
            return
        yield (
            "that the unit is deterministic, and that a result depends on nothing but its operands, cannot "
            "be seen in a recording"
        )
        for one in evidence.properties:
            if one.value and one.undecided:
                values = ", ".join(shortened(one.undecided))
                yield f"{one.key}: {values} would have given all recorded results"
        if evidence.tried < evidence.neighbours:
            left = evidence.neighbours - evidence.tried
            yield f"of {evidence.neighbours:,} changes of one key, {left:,} were not tried, as the time ended"

    def _rivals(
        self, candidate: Candidate, known: list[Candidate], evidence: Evidence, neighbours: list[Move]
    ) -> Iterator[Rival]:
        """Programs of the catalog, then changes of one key, that answer the whole recording alike."""
        end = time.monotonic() + RECORDINGS.rivals
        for one in known:
            if one.key != candidate.key and not self.whole.wrong(one.program).any():
                yield self._compared(candidate, one, one.order, RECORDINGS.compared)
        some = {one.key: one.undecided[: RECORDINGS.of_one_key] for one in evidence.properties}
        left = [move for move in neighbours if move.value in some.get(move.key, ())]
        for move in left[: RECORDINGS.values]:
            new = move.apply(candidate)
            if new is None or time.monotonic() > end:
                continue
            rival = self._compared(
                candidate, new, f"the candidate with {move.text}", RECORDINGS.compared // 10
            )
            if rival.operands is not None:
                yield rival

    def _compared(self, candidate: Candidate, other: Candidate, name: str, budget: int) -> Rival:
        self._report_progress(f"comparing with {name}")
        found = compare(candidate.instruction, other.instruction, self.seed, budget)
        if found.example is None:
            return Rival(name, found.trials)
        return Rival(name, found.trials, found.example.operands_x, found.example.x, found.example.y)

    def _example(self, candidate: Candidate, wrong: Any) -> Example:
        """The simplest recorded dot product that the candidate gets wrong."""
        place = simplest(self.whole, np.flatnonzero(wrong))
        operands = picked(self.whole.operands, place)
        return Example(operands, int(self.whole.answers[place]), int(candidate.dot(**operands)))


def _with_two_results(recording: Recording) -> Changed | None:
    """A dot product that was recorded with two results, and how many there are."""
    same = _operand_groups(recording.operands)
    first = np.full(int(same.max()) + 1, -1)
    first[same[::-1]] = np.arange(len(same))[::-1]
    other = np.flatnonzero(recording.answers != recording.answers[first[same]])
    if not len(other):
        return None
    operands = picked(recording.operands, other[0])
    answers = int(recording.answers[first[same[other[0]]]]), int(recording.answers[other[0]])
    differ, repeated = len(np.unique(same[other])), int((np.bincount(same) > 1).sum())
    said = f"of {repeated:,} that were recorded more than once {differ:,}"
    return Changed(RECORDED, said, operands, *answers)


def _operand_groups(operands: Operands) -> npt.NDArray[np.int64]:
    """A number for each dot product, equal if all operands are equal: repetitions are not split between the
    search's part and the held-back part."""
    count = len(operands["a"])
    rows = [np.ascontiguousarray(codes).reshape(count, -1).view(np.uint8) for codes in operands.values()]
    return np.unique(np.concatenate(rows, 1), axis=0, return_inverse=True)[1].reshape(-1)


def _unasked(**operands: Any) -> Any:
    raise AssertionError("a recording answers nothing")
