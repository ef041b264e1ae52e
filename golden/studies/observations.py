"""The numbered observations of W. Sun et al. on an A100, decided for every recorded Hopper board: eight on
dense mma, four on sparse ones, three on ldmatrix, two on bank conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from golden.catalog import timing
from golden.catalog.timing import PRINTED, Key, as_printed, conflict
from golden.explain.markdown import link
from golden.studies.study import Progress, Study, Table, findings, published
from golden.studies.units import Subject

NAME = "observations"

_K16, _K8 = (f"mma.sync.aligned.m16n8k{k}.row.col.f32.bf16.bf16.f32" for k in (16, 8))
_SPARSE_K32, _SPARSE_K16 = (f"mma.sp.sync.aligned.m16n8k{k}.row.col.f32.bf16.bf16.f32" for k in (32, 16))
_LDMATRIX = "ldmatrix.x4"
_ILPS = tuple(range(1, 6))
_OTHER_PARTS = tuple(f"_{part}" for part in timing.PARTS if part != "matrix")
"""Ends of the names of files without these instructions, each with thousands of figures."""
_SAME = 0.03
"""Relative difference below which two figures are the same, as in `mmagold timing compare`."""
_ABOUT = 0.06
"""The same where the paper says "around": 25 for 24.7, 18 for 17.7, 1000 for 1024."""
_NEAR_PEAK = 0.95  # share of the peak from which a paper calls it reached
_SHARED_PEAK = 32 * 4
"""Bytes in a cycle that 32 banks of 4 bytes give."""


@dataclass(frozen=True)
class Board:
    """One recording: its name and file; cycles of a round and throughput by instruction, warps and ILP."""

    name: str
    file: str
    rounds: dict[tuple[str, int, int], tuple[float, float]]
    latencies: dict[Key, float]
    variant: str

    def cycles(self, instruction: str, warps: int, ilp: int) -> float:
        """Cycles of one round."""
        return self.rounds[instruction, warps, ilp][0]

    def rate(self, instruction: str, warps: int, ilp: int) -> float:
        """Multiply-adds or bytes in a cycle."""
        return self.rounds[instruction, warps, ilp][1]

    def peak(self, instruction: str, warps: int | None = None) -> float:
        """The greatest of all points, or of the points with that many warps."""
        return max(
            rate
            for (name, w, _), (_, rate) in self.rounds.items()
            if name == instruction and warps in (None, w)
        )

    def first_ilp(self, instruction: str) -> int:
        """The least ILP that gives what one warp reaches at most."""
        enough = (1 - _ABOUT) * self.peak(instruction, 1)
        return next(ilp for ilp in (*_ILPS, 6) if self.rate(instruction, 1, ilp) >= enough)

    def completion(self, instruction: str, ways: int = 1) -> float:
        """Cycles until the result can be used."""
        variant = as_printed(conflict(ways)) if self.variant else conflict(ways)
        return self.latencies[Key(instruction, variant, "completion_latency")]


Verdict = tuple[bool, str]


@dataclass(frozen=True)
class Claim:
    """One sentence of an observation: its number, what it says with the A100's figures, and what decides it:
    whether it holds on a board, and the figures there."""

    number: str
    text: str
    check: Callable[[Board], Verdict]


def _about(value: float, printed: float, unit: str = "") -> Verdict:
    return abs(value / printed - 1) <= _ABOUT, f"{value:.4g}{unit}"


def _same(first: float, second: float) -> bool:
    return abs(first / second - 1) <= _SAME


def _gap(board: Board, instruction: str) -> tuple[float, str]:
    """What 4 warps reach at most by what 8 do."""
    four, eight = (board.peak(instruction, warps) for warps in (4, 8))
    return four / eight, f"{four:.0f} and {eight:.0f}"


def _dense_3(board: Board) -> Verdict:
    ratio, text = _gap(board, _K16)
    return ratio < _NEAR_PEAK, text


def _dense_8(board: Board) -> Verdict:
    ratio, text = _gap(board, _K8)
    return ratio < min(_NEAR_PEAK, _gap(board, _K16)[0]), text


def _unchanged(board: Board) -> Verdict:
    worst = max(board.cycles(_K16, w, i) / board.cycles(_K16, 1, i) for w in (2, 4) for i in _ILPS)
    return worst - 1 <= _SAME, f"at most {worst:.3f} times the cycles of one warp"


def _twelve(board: Board) -> Verdict:
    four, eight, twelve = (board.cycles(_K16, w, 1) for w in (4, 8, 12))
    return max(eight, twelve) - four <= 1.5, f"{four:.4g}, {eight:.4g}, {twelve:.4g}"


def _sixteen(board: Board) -> Verdict:
    twelve, sixteen = (board.cycles(_K16, w, 1) for w in (12, 16))
    return sixteen - twelve > 3, f"{twelve:.4g} and {sixteen:.4g}"


def _six_as_eight(board: Board) -> Verdict:
    pairs = [(board.cycles(_K16, 6, i), board.cycles(_K16, 8, i)) for i in _ILPS]
    text = ", ".join(f"{six:.4g} and {eight:.4g}" for six, eight in pairs)
    return all(_same(*pair) for pair in pairs), text


def _drop(instruction: str, ilps: Iterable[int]) -> Callable[[Board], list[tuple[float, float]]]:
    return lambda board: [(board.rate(instruction, 4, i), board.rate(instruction, 6, i)) for i in ilps]


def _dense_5b(board: Board) -> Verdict:
    pairs = _drop(_K16, (3, 4, 5))(board)
    text = ", ".join(f"{four:.0f} to {six:.0f}" for four, six in pairs)
    return all(six < (1 - _SAME) * four for four, six in pairs), text


def _multiple(board: Board) -> Verdict:
    peak = board.peak(_K16)
    others = max(board.peak(_K16, warps) for warps in (1, 2, 6))
    fours = max(board.peak(_K16, warps) for warps in (4, 8, 12))
    return others < (
        1 - _SAME
    ) * peak <= fours, f"{fours:.0f} with 4, 8 or 12 warps, {others:.0f} with 1, 2 or 6"


def _converges(board: Board) -> Verdict:
    ilp = board.first_ilp(_K16)
    return ilp == 3, f"from ILP {ilp}"


def _vendor(board: Board) -> Verdict:
    peak = board.peak(_K16)
    # Multiply-adds in a cycle of a Hopper multiprocessor in f16 and bf16, by the vendor; 1024 on an A100.
    vendor_peak = 2048
    return peak >= _NEAR_PEAK * vendor_peak, f"{peak:.0f} of {vendor_peak}"


def _sparse_latency(board: Board) -> Verdict:
    sparse, dense = board.completion(_SPARSE_K32), board.completion(_K16)
    return _same(sparse, dense), f"{sparse:.4g} and {dense:.4g}"


def _sparse_settings(board: Board) -> Verdict:
    """Everywhere the same within the deviations: what "almost the same" says."""
    points = [(w, i) for name, w, i in board.rounds if name == _K16 and i in _ILPS and w <= 12]
    same = [p for p in points if _same(board.cycles(_SPARSE_K32, *p), board.cycles(_K16, *p))]
    return len(same) == len(points), f"{len(same)} of {len(points)} points up to 12 warps"


def _twice(board: Board) -> Verdict:
    sparse, dense = board.peak(_SPARSE_K32), board.peak(_K16)
    return abs(sparse / dense / 2 - 1) <= _ABOUT, f"{sparse:.0f} and {dense:.0f}: {sparse / dense:.2f} times"


def _small_sparse(board: Board) -> Verdict:
    sparse, dense = board.completion(_SPARSE_K16), board.completion(_K8)
    return abs(sparse / dense - 1) <= _ABOUT, f"{sparse:.4g} and {dense:.4g}"


def _short_of(board: Board) -> Verdict:
    small, large = board.peak(_SPARSE_K16), board.peak(_SPARSE_K32)
    return small < 0.75 * large, f"{small:.0f} of {large:.0f}"


def _ldmatrix_peak(board: Board) -> Verdict:
    peak = board.peak(_LDMATRIX)
    return peak >= _NEAR_PEAK * _SHARED_PEAK, f"{peak:.1f} of {_SHARED_PEAK}"


def _ldmatrix_one(board: Board) -> Verdict:
    peak, ilp = board.peak(_LDMATRIX, 1), board.first_ilp(_LDMATRIX)
    return abs(peak / 64 - 1) <= _ABOUT and ilp == 4, f"{peak:.1f} from ILP {ilp}"


def _ldmatrix_two(board: Board) -> Verdict:
    one, two = (board.peak(_LDMATRIX, warps) for warps in (1, 2))
    return one < _NEAR_PEAK * _SHARED_PEAK <= two, f"{one:.1f} with one warp, {two:.1f} with two"


def _no_dip(board: Board) -> Verdict:
    pairs = _drop(_LDMATRIX, _ILPS)(board)
    text = ", ".join(f"{four:.1f} to {six:.1f}" for four, six in pairs)
    return all(six >= (1 - _SAME) * four for four, six in pairs), text


def _as_conflicts(board: Board) -> Verdict:
    pairs = [(board.completion(f"ldmatrix.x{n}"), board.completion("ld.shared.u32", n)) for n in (1, 2, 4)]
    return all(_same(*pair) for pair in pairs), ", ".join(f"{a:.4g} and {b:.4g}" for a, b in pairs)


def _a_way(board: Board) -> Verdict:
    least, most = (board.completion("ld.shared.u32", ways) for ways in (1, 8))
    return _about((most - least) / 7, 2, " cycles a way")


_CHECKS: dict[str, Callable[[Board], Verdict]] = {
    one.__name__.removeprefix("_"): one
    for one in (
        *(
            _vendor,
            _converges,
            _unchanged,
            _dense_3,
            _twelve,
            _sixteen,
            _six_as_eight,
            _dense_5b,
            _multiple,
            _dense_8,
        ),
        *(_sparse_latency, _sparse_settings, _twice, _small_sparse, _short_of, _ldmatrix_peak, _ldmatrix_one),
        *(_ldmatrix_two, _no_dip, _as_conflicts, _a_way),
    )
}
"""Sentences that compare figures of a board with each other, by their name in the table."""
_OF = {"k16": _K16, "k8": _K8, "ldmatrix": _LDMATRIX}


def _printed(check: str, of: str, printed: float, warps: int | None = None) -> Callable[[Board], Verdict]:
    """The check of a sentence that prints a completion or a peak of one instruction."""
    if check == "completion":
        return lambda board: _about(board.completion(_OF[of]), printed)
    return lambda board: _about(board.peak(_OF[of], warps), printed)


def _claims() -> Iterator[Claim]:
    """The sentences of spec/studies/observations.yaml."""
    rows: Any = published(NAME)["claims"]
    for row in rows:
        given = {key: value for key, value in row.items() if key not in ("number", "text")}
        check = _printed(**given) if "printed" in given else _CHECKS[given["check"]]
        yield Claim(row["number"], row["text"], check)


CLAIMS = tuple(_claims())


@lru_cache(maxsize=1)
def boards() -> tuple[Board, ...]:
    """Every Hopper recording of these instructions in our loop, and in the loop as the paper prints it."""
    found = []
    for name in timing.names():
        if not name.startswith("hopper_") or name.endswith(_OTHER_PARTS) or not timing.measured(name):
            continue
        board = _board(name, printed=bool(timing.experiment(name)))  # our loop is in the board's own file
        found += [board] if board is not None else []
    return tuple(found)


def _board(name: str, printed: bool) -> Board | None:
    """The figures of a file in one of the two loops; None where it does not hold them all."""
    figures = [one for one in timing.load(name) if one.key.variant.endswith(PRINTED) == printed]
    variant = PRINTED if printed else ""
    rounds: dict[tuple[str, int, int], list[float]] = {}
    for one in figures:
        if (
            one.warps is not None
            and one.ilp is not None
            and one.value is not None
            and one.key.variant == variant
        ):
            rounds.setdefault((one.instruction, one.warps, one.ilp), []).append(one.value)
    needed = {_K16, _K8, _SPARSE_K32, _SPARSE_K16, _LDMATRIX}
    if not needed <= {instruction for instruction, _, _ in rounds}:
        return None
    latencies = {one.key: one.value for one in figures if one.value is not None}
    pairs = {place: (both[0], both[1]) for place, both in rounds.items() if len(both) == 2}
    return Board(f"{name}{f', {PRINTED}' * printed}", name, pairs, latencies, variant)


def run(samples: int = 1, progress: Progress = lambda done, total: None) -> Study:
    """Decides every sentence on every board."""
    found = boards()
    decided = [[claim.check(board) for board in found] for claim in CLAIMS]
    progress(1, 1)
    rows = [
        (claim.number, claim.text, *(f"{'holds' if holds else 'no'}: {text}" for holds, text in verdicts))
        for claim, verdicts in zip(CLAIMS, decided, strict=True)
    ]
    counts = [sum(verdicts[place][0] for verdicts in decided) for place in range(len(found))]
    lines = "\n".join(
        f"- On `{board.name}` {count} of {len(CLAIMS)} hold."
        for board, count in zip(found, counts, strict=True)
    )
    return Study(
        NAME,
        samples,
        findings(
            NAME,
            timing=link("the page on timing", "timing.md"),
            observations=len({claim.number for claim in CLAIMS}),
            claims=len(CLAIMS),
            lines=lines,
        ),
        [
            Table(
                "observations",
                "Every sentence, decided",
                ("observation", "A100", *(b.name for b in found)),
                rows,
            )
        ],
        data={
            board.name: [
                {
                    "observation": claim.number,
                    "says": claim.text,
                    "holds": verdicts[place][0],
                    "figures": verdicts[place][1],
                }
                for claim, verdicts in zip(CLAIMS, decided, strict=True)
            ]
            for place, board in enumerate(found)
        },
        units=tuple(Subject("hopper", name) for name in (_K16, _K8, _SPARSE_K32, _SPARSE_K16)),
        random=False,
        recordings=tuple(dict.fromkeys(board.file for board in found)),
    )
