"""The vectors of a check, drawn or read, and their coverage."""

from __future__ import annotations

import hashlib
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from golden.errors import OperandError
from golden.program.signature import Bits
from golden.vectors.complete import completed, members, space_of
from golden.vectors.vectorset import VectorSet, check_held, excerpt, join
from rtl_tb.check.options import Options
from rtl_tb.dut.description import Dut
from rtl_tb.runs.dots import of_tiles

if TYPE_CHECKING:
    from golden.cover.coverage import Coverage

COVERED = 20_000
"""Vectors of a check from which functional coverage is computed: it costs more than the run itself. Bins that
they leave out are aimed at (golden/cover/aiming.py), if the check runs at least this number."""
_LISTED = 1 << 18
"""A space of operands of half this size, pairs of 8-bit codes, is listed to find the bins that none reaches:
it takes a second."""


def draw(dut: Dut, options: Options) -> tuple[VectorSet, Coverage | None]:
    """The vectors of a check, and their coverage (of the first COVERED dot products)."""
    from golden.cover.coverage import Coverage, until_covered
    from golden.vectors import foreign
    from golden.vectors.files import read

    # 1. Options that exclude each other.
    ins = dut.instruction
    if options.first and (options.until_covered or options.vectors is not None):
        raise OperandError(f"first is {options.first}, but the vectors are not those of a seed's stream")
    if options.columns is not None and options.vectors is None:
        raise OperandError(f"columns are '{options.columns}', but there is no file of vectors")
    # 2. Vectors until every reachable bin is hit; their coverage is known, unless excluded ones are replaced.
    if options.until_covered:
        if dut.level != "dot":
            raise OperandError("--until-covered works on dot products; this DUT computes tiles")
        check_held(options.vector_count)
        coverage = Coverage(ins)
        drawn = join(list(until_covered(ins, options.seed, options.vector_count, coverage)))
        if dut.exclude is None:
            return drawn, coverage
        drawn = dut.exclude.replaced(drawn)
        _check_excluded(dut, drawn)
        return drawn, _covered(drawn)
    # 3. Vectors of a file as they are, or those of a seed. Of the latter the last ones give way to pairs of
    # operands that are missing, if all pairs have room; excluded ones are replaced.
    if options.vectors is not None:
        if options.columns is None:
            vectors = read(options.vectors, ins)
        else:
            vectors = foreign.read(options.vectors, ins, options.columns)
        if vectors.level != dut.level:
            raise OperandError(
                f"{options.vectors}: vectors of level {vectors.level}, but {dut.file} is of level {dut.level}"
            )
    else:
        vectors = excerpt(ins, options.seed, dut.level, options.weights, options.first, options.vector_count)
    space = None
    if options.vectors is None and options.weights is None and not options.first and dut.level == "dot":
        space = space_of(ins, len(vectors))
        vectors = completed(vectors, space) if space is not None else vectors
    if options.vectors is None and dut.exclude is not None:
        vectors = dut.exclude.replaced(vectors)
    if not len(vectors):
        raise OperandError(f"{options.vectors}: holds no vectors; a check of nothing proves nothing")
    _check_excluded(dut, vectors)
    # 4. The last vectors of a seed give way to vectors aimed at bins that the others leave out. The number of
    # vectors stays.
    coverage = _covered(vectors)
    if options.vectors is None and options.weights is None:
        aimed = _aimed(dut, vectors, coverage)
        vectors = join([vectors[: len(vectors) - sum(map(len, aimed))], *aimed])
    if options.drawn is not None and digest_of(vectors) != options.drawn:
        raise OperandError(
            f"these are not the vectors that {dut.file} failed on: this version of mmagold draws others; "
            "--vectors takes the failing ones (failing.npz)"
        )
    return vectors, coverage


def _check_excluded(dut: Dut, vectors: VectorSet) -> None:
    """Refuses a check in which no vector has the result of the specification."""
    exclude = dut.exclude
    if exclude is None:
        return
    if exclude.of(vectors.instruction, vectors.operands, vectors.d).all():
        raise OperandError(
            f"{dut.file}: 'exclude' leaves none of the {len(vectors):,} vectors ({exclude.words}); "
            "a check of nothing proves nothing"
        )


def _aimed(dut: Dut, vectors: VectorSet, coverage: Coverage) -> list[VectorSet]:
    """Vectors for the reachable bins that the drawn ones miss; they replace the last ones. Not for tiles, few
    vectors or sequences. Bins that no operands reach, or only excluded ones, then do not count."""
    from golden.cover.aiming import aim

    ins = vectors.instruction
    if vectors.level != "dot" or ins.state:
        return []
    counting = None if dut.exclude is None else dut.exclude.free

    def allowed(given: dict[str, Bits], d: Bits) -> npt.NDArray[np.bool_]:
        return np.ones(len(d), np.bool_) if counting is None else ~counting.of(ins, given, d)

    space = space_of(ins, _LISTED)
    if listed := space is not None and space.whole:
        assert space is not None
        operands, every = members(ins, space), _copy(coverage)
        d = ins.answers(operands)["d"]
        counts = allowed(operands, d)
        every.sample({name: codes[counts] for name, codes in operands.items()}, d[counts])
        coverage.waived = set(every.holes())
    few = len(vectors) < COVERED
    if few and (listed or counting is None):
        return []
    tried = _copy(coverage) if few else coverage
    aimed = list(aim(ins, tried, vectors.seed, allowed=None if counting is None else allowed))
    if counting is not None and not listed:  # what excluded operands alone reach is no case of this unit
        every = _copy(tried)
        for _ in aim(ins, every, vectors.seed):
            pass
        coverage.waived = set(tried.holes()) - set(every.holes())
    return [] if few else aimed


def _copy(coverage: Coverage) -> Coverage:
    """A coverage that counts for itself."""
    other = copy(coverage)
    other.hits = {name: hits.copy() for name, hits in coverage.hits.items()}
    return other


def digest_of(vectors: VectorSet) -> str:
    """A digest of operands and expected results."""
    total = hashlib.sha256()
    for name, codes in sorted((vectors.operands | vectors.results).items()):
        total.update(f"{name} {codes.dtype.str} {codes.shape}".encode())
        total.update(np.ascontiguousarray(codes).tobytes())
    return total.hexdigest()


def _covered(vectors: VectorSet) -> Coverage:
    """The coverage of the first COVERED dot products, or of up to 3 * COVERED if bins are missing; tiles are
    counted whole, at least one."""
    from golden.cover.coverage import Coverage

    coverage = Coverage(vectors.instruction)
    if vectors.level == "tile":
        per_tile = max(vectors.d[:1].size, 1)
        coverage.sample(*of_tiles(vectors[: max(COVERED // per_tile, 1)]))
        return coverage
    for start in range(0, min(3 * COVERED, len(vectors)), COVERED):
        coverage.sample_set(vectors[start : start + COVERED])
        if not coverage.holes():
            break
    return coverage
