"""Functional coverage: what it sees is the reference's arithmetic, and every reachable bin of the reference units is hit."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
from golden import stimuli
from golden.coverage import Coverage, load, merged, save, until_covered
from golden.coverage_page import page
from golden.errors import FileFormatError, OperandError
from golden.formats import Kind
from golden.instruction import Instruction
from golden.observe import Aligned, Rounded, decode, observe
from golden.vectors.vectorset import default_set

HMMA = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
HALF = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
UNITS = (
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    ("ampere", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"),
    ("hopper", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
    ("rtx_blackwell", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
    ("rtx_blackwell", "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"),
    ("hopper", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"),
    ("hopper", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
    ("cdna2", "v_mfma_f32_16x16x16f16"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
    ("cdna3", "v_mfma_f32_16x16x32_fp8_bf8"),
)


def distinct_instructions() -> list[Instruction]:
    """Instructions of small k with programs and formats that differ; every tenth one, for time."""
    found = {}
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            if ins.k <= 64:
                formats = sorted((name, fmt.name) for name, fmt in ins.formats.items())
                found[repr((ins.program, formats, ins.sparse))] = ins
    return list(found.values())[::10]


def test_observed_results_are_the_cores_on_every_kind_of_operands() -> None:
    for ins in distinct_instructions():
        for kind in stimuli.KINDS:
            operands = stimuli.generate(ins, kind, 24, np.random.default_rng(5))
            wanted = decode(ins.formats["d"], ins.dot(**operands)[:, None])
            *_, last = observe(ins, operands)
            assert isinstance(last, Rounded)
            got, finite = last.result, wanted.kind == Kind.FINITE
            assert (got.kind == wanted.kind).all(), (ins, kind)
            assert ((got.sign == wanted.sign) | (wanted.kind == Kind.NAN)).all(), (ins, kind)
            for name in ("significand", "exponent"):
                assert (getattr(got, name)[finite] == getattr(wanted, name)[finite]).all(), (ins, kind)


@pytest.mark.parametrize("ins", [HMMA, golden.instruction("cdna3", "v_mfma_f32_16x16x32_fp8_bf8")], ids=["hmma", "gfdrda"])
def test_alignment_sees_the_maxima_and_cuts_of_the_reference(ins: Instruction) -> None:
    operands = stimuli.generate(ins, "alignment_edge", 40, np.random.default_rng(3))
    seen = [event for event in observe(ins, operands) if isinstance(event, Aligned)]
    compared = 0
    for row in range(40):
        trace = ins.trace(**{name: codes[row] for name, codes in operands.items()})
        events = [event for event in trace.events if event.step.op == "align"]
        groups = iter(seen)
        for event in events:
            cuts = [cut for name in event.step.of for cut in (event.cuts or {})[name]]
            for maximum in event.max_exponents:
                group = next(groups)
                live = group.terms.finite[row]
                assert maximum is None or (group.maximum[row][live] == maximum).all()
                for place, column in enumerate(group.columns):
                    cut = cuts[column]
                    assert group.lost[row, place] == (cut is not None and cut.lost != 0)
                    compared += cut is not None
    assert compared > 100


def hits(ins: Instruction, a: list[float], b: list[float], c: float) -> dict[str, set[str]]:
    """The bins that one dot product hits, by coverpoint."""
    formats = ins.formats
    operands = {
        "a": golden.from_float(formats["a"], np.array([a + [0.0] * (ins.k - len(a))])),
        "b": golden.from_float(formats["b"], np.array([b + [0.0] * (ins.k - len(b))])),
        "c": golden.from_float(formats["c"], np.array([c])),
    }
    coverage = Coverage(ins)
    coverage.sample(operands, ins.dot(**operands))
    assert not coverage.surprises()
    return {
        point.name: {label for label, n in zip(point.labels, coverage.hits[point.name], strict=True) if n}
        for point in coverage.points
    }


@pytest.mark.parametrize(("exponent", "label"), [(-24, "F-1"), (-25, "F"), (-26, "F+1"), (-27, "F+2")])
def test_distance_around_the_last_kept_bit(exponent: int, label: str) -> None:
    found = hits(HMMA, [2.0**-13], [2.0 ** (exponent + 13)], 1.0)
    assert found["fda: align products and c: distance of products"] == {label}
    assert found["fda: align products and c: distance of c"] == {"0"}
    assert found["fda: align products and c: largest exponent"] == {"one of c"}
    cut = {"everything, +"} if exponent < -25 else {"nothing, +"}
    assert found["fda: align products and c: cut from products"] == cut


def test_a_tie_to_even_and_its_carry() -> None:
    point = "fda: round total: increment"
    assert "tie kept at even" in hits(HALF, [2.0**-6], [2.0**-5], 1.0)[point]
    assert "tie up to even" in hits(HALF, [2.0**-6], [2.0**-5], 1.0 + 2.0**-10)[point]
    assert "up with a carry into the exponent" in hits(HALF, [2.0**-6], [2.0**-5], 2.0 - 2.0**-10)[point]
    least = hits(HALF, [2.0**-13], [2.0**-12], 2.0**-14 - 2.0**-24)
    assert "subnormal up to the least normal" in least[point]
    assert "least normal" in least["class of d"]


def test_classes_signs_counts_and_cancellation() -> None:
    found = hits(HMMA, [1.0, 1.0], [3.0, -3.0], 0.0)
    assert found["fda: sum products and c: signs of the addends"] == {"both"}
    assert found["fda: sum products and c: leading bit against the largest exponent"] == {"nothing left"}
    assert found["non-zero products"] == {"two"}
    assert found["class of d"] == {"+0"}
    assert found["signs of a and b"] == {"++", "+-"}
    assert hits(HMMA, [], [], -0.0)["signs where all addends are zero"] == {"mixed"}
    assert hits(HMMA, [np.inf], [0.0], 1.0)["the only cause"] == {"zero times infinity"}
    assert hits(HMMA, [np.inf], [1.0], -np.inf)["the only cause"] == {"infinite product against infinite c"}


def test_no_vector_hits_a_bin_that_is_said_to_be_unreachable() -> None:
    for ins in distinct_instructions():
        coverage = Coverage(ins)
        coverage.sample_set(default_set(ins, 1500, seed=9))
        assert coverage.surprises() == [], ins


@pytest.mark.parametrize(("architecture", "name"), UNITS)
def test_default_set_covers_every_reachable_bin(architecture: str, name: str) -> None:
    coverage = Coverage(golden.instruction(architecture, name))
    coverage.sample_set(default_set(coverage.instruction))
    assert coverage.holes() == []
    assert coverage.percent == 100.0


def test_random_bits_alone_leave_holes_and_say_which() -> None:
    coverage = Coverage(HMMA)
    coverage.sample_set(default_set(HMMA, 20_000, weights={"random_bits": 1.0}))
    assert coverage.percent < 90
    assert ("fda: sum products and c: leading bit against the largest exponent", "nothing left") in coverage.holes()


def test_unreachable_bins_follow_from_the_formats() -> None:
    bins = {point.name: point.bins for point in Coverage(HMMA).points}
    assert not bins["class of d"]["-0"]  # the algorithm makes every zero +0
    assert not bins["fda: round total: result and remainder"]["overflow"]  # products end at 2**36, f32's last place at 2**104
    growth = bins["fda: sum products and c: leading bit against the largest exponent"]
    assert growth["up by 6"] and not growth["up by 7"]  # 16 products below 4 and c below 2: less than 66
    assert not any(bins["fda: round total: increment"][label] for label in ("up", "tie up to even"))  # toward zero
    narrow = Coverage(golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"))
    classes = next(point.bins for point in narrow.points if point.name == "class of a, position")
    assert not classes["infinity, first"] and classes["quiet NaN, first"]  # E4M3 has NaN and no infinity


def test_until_covered_stops_when_nothing_is_missing() -> None:
    coverage = Coverage(HMMA)
    drawn = sum(len(vectors) for vectors in until_covered(HMMA, seed=2, coverage=coverage))
    assert coverage.holes() == [] and drawn == coverage.vectors < 200_000
    assert list(until_covered(HMMA, coverage=coverage)) == []
    assert sum(len(vectors) for vectors in until_covered(HMMA, most=700)) == 700


def test_merge_adds_and_the_saved_form_comes_back(tmp_path: Path) -> None:
    parts = []
    for seed in (1, 2):
        coverage = Coverage(HMMA)
        coverage.sample_set(default_set(HMMA, 500, seed=seed))
        parts.append(coverage)
    save(parts, tmp_path / "runs.json")
    both = merged(load(tmp_path / "runs.json"))
    assert len(both) == 1 and both[0].vectors == 1000
    for point in both[0].points:
        reachable = np.array(list(point.bins.values()))
        total = parts[0].hits[point.name] + parts[1].hits[point.name]
        assert (both[0].hits[point.name] == total)[reachable].all()
    assert both[0].counts[0] >= max(part.counts[0] for part in parts)


def test_wrong_merges_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperandError, match="does not merge"):
        Coverage(HMMA).merge(Coverage(HALF))
    with pytest.raises(OperandError, match="level 'dot'"):
        Coverage(HMMA).sample_set(default_set(HMMA, 2, level="tile"))
    path = tmp_path / "x.json"
    for text, complaint in (("{", "JSON"), ("{}", "list"), ("[1]", "no saved coverage")):
        path.write_text(text)
        with pytest.raises(FileFormatError, match=complaint):
            load(path)
    saved: dict[str, Any] = Coverage(HMMA).as_dict()
    del saved["coverpoints"]["class of d"]
    path.write_text(json.dumps([saved]))
    with pytest.raises(FileFormatError, match="class of d"):
        load(path)


class _Tags(HTMLParser):
    """Collects tags and outside addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [value or "" for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")]


def test_the_page_lists_holes_and_needs_no_other_host() -> None:
    coverage = Coverage(HMMA)
    coverage.sample_set(default_set(HMMA, 50))
    text = page([coverage])
    tags = _Tags()
    tags.feed(text)
    assert not tags.outside and "script" not in tags.tags and "http" not in text
    for point, label in coverage.holes()[:5]:
        assert label in text and point in text
    assert tags.tags.count("details") == len(coverage.points)
