"""Functional coverage: what it sees is the reference's arithmetic, and every reachable bin of the
reference units is hit."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_units import faulty_unit, known_unit
from random_units import accepted, draw_dots, kernel_unit, random_unit

import golden
import golden.cover.observed
from golden import stimuli
from golden.cover.coverage import Coverage, load, merged, save, until_covered
from golden.cover.observed import Aligned, Answered, Rounded, decode, observe
from golden.cover.page import page
from golden.errors import CoverageError, FileFormatError, OperandError
from golden.instruction import Instruction
from golden.number.formats import Kind
from golden.program.program import Program
from golden.vectors.vectorset import default_set

HMMA = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
HALF = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
UNITS = (
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ("hopper", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    ("ampere", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2"),
    ("hopper", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
    (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
    (
        "rtx_blackwell",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    ),
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
            assert isinstance(last, Answered)
            got, finite = last.d, wanted.kind == Kind.FINITE
            assert (got.kind == wanted.kind).all(), (ins, kind)
            assert ((got.sign == wanted.sign) | (wanted.kind == Kind.NAN)).all(), (ins, kind)
            for name in ("significand", "exponent"):
                assert (getattr(got, name)[finite] == getattr(wanted, name)[finite]).all(), (ins, kind)


@pytest.mark.parametrize(
    "ins", [HMMA, golden.instruction("cdna3", "v_mfma_f32_16x16x32_fp8_bf8")], ids=["hmma", "gfdrda"]
)
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
    assert (
        "fda: sum products and c: leading bit against the largest exponent",
        "nothing left",
    ) in coverage.holes()


def test_unreachable_bins_follow_from_the_formats() -> None:
    bins = {point.name: point.bins for point in Coverage(HMMA).points}
    assert not bins["class of d"]["-0"]  # the algorithm makes every zero +0
    assert not bins["fda: round total: result and remainder"][
        "overflow"
    ]  # products end at 2**36, f32's last place at 2**104
    growth = bins["fda: sum products and c: leading bit against the largest exponent"]
    assert growth["up by 6"] and not growth["up by 7"]  # 16 products below 4 and c below 2: less than 66
    assert not any(
        bins["fda: round total: increment"][label] for label in ("up", "tie up to even")
    )  # toward zero
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
        self.outside += [
            value or ""
            for name, value in attrs
            if name in ("src", "href") and not (value or "").startswith("#")
        ]


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


def unit(tmp_path: Path, *operations: str) -> Instruction:
    """A unit on f16 operands with f32 results: the operations, of equal shares of k,
    as text of their steps."""
    count = len(operations)
    lines = [
        f"  - {{k: {{modulo: {count}, residues: [{i}]}}, out: f32, to: "
        f"{'d' if i == count - 1 else f'r{i}'}, steps: [{steps}]}}"
        for i, steps in enumerate(operations)
    ]
    path = tmp_path / "unit.yaml"
    head = "unit: mine\nshape: {k: 4}\nformats: {a: f16, b: f16, c: f32, d: f32}\nprogram:\n"
    path.write_text(head + "\n".join(lines) + "\n")
    return golden.load_instruction(path)


@pytest.mark.parametrize(
    ("steps", "a", "b", "c"),
    [
        (
            "flush: {of: [a, b], sign: positive}}, {fma: {to: d, rounding: nearest_even}",
            0x0000,
            0xBC00,
            0x80000000,
        ),
        (
            "flush: {of: c, sign: positive}}, {fma: {to: d, rounding: nearest_even, start: product}",
            0x8000,
            0x3C00,
            0,
        ),
        (
            "flush: {of: c, sign: positive}}, {multiply: {to: products}}, "
            "{sum: {of: [products, c], to: d, order: sequential, rounding: down}",
            0x8000,
            0x3C00,
            0,
        ),
        (
            "multiply: {to: products}}, {flush: {of: products, sign: positive}}, {multiply: {to: products}}, "
            "{sum: {of: [products, c], to: d, order: sequential, rounding: nearest_even}",
            0x8000,
            0x3C00,
            0x80000000,
        ),
    ],
    ids=["fma of flushed factors", "fma from a product", "mode down", "written again"],
)
def test_a_positive_flush_leaves_the_negative_zeros_that_a_unit_can_give(
    tmp_path: Path, steps: str, a: int, b: int, c: int
) -> None:
    ins = unit(tmp_path, f"{{{steps}}}")
    operands = {
        "a": np.full((1, 4), a, np.uint16),
        "b": np.full((1, 4), b, np.uint16),
        "c": np.array([c], np.uint32),
    }
    coverage = Coverage(ins)
    coverage.sample(operands, ins.dot(**operands))
    assert int(ins.dot(**operands)[0]) == 0x80000000
    assert ("class of d", "-0") not in coverage.surprises()


def test_cleared_addends_give_no_negative_zero(tmp_path: Path) -> None:
    steps = "{multiply: {to: products}}, {flush: {of: c, sign: positive}}, "
    ins = unit(
        tmp_path, steps + "{sum: {of: [products, c], to: d, order: sequential, rounding: nearest_even}}"
    )
    assert not next(point for point in Coverage(ins).points if point.name == "class of d").bins["-0"]


def test_operations_that_keep_different_numbers_of_bits_have_points_each(tmp_path: Path) -> None:
    steps = (
        "{{multiply: {{to: products}}}}, {{align: {{of: [products, c], fraction_bits: {bits}, rounding: "
        "toward_zero}}}}, "
        "{{sum: {{of: [products, c], to: total}}}}, "
        "{{round: {{of: total, rounding: toward_zero, overflow: infinity, zero: positive}}}}"
    )
    coverage = Coverage(unit(tmp_path, steps.format(bits=24), steps.format(bits=4)))
    coverage.sample_set(default_set(coverage.instruction, 1500, seed=9))
    names = [point.name for point in coverage.points if "distance of c" in point.name]
    assert [name.split(", ")[-1] for name in names] == ["F = 24", "F = 4"]
    assert all(coverage.hits[name].any() for name in names)
    assert coverage.surprises() == []


@pytest.mark.parametrize(
    ("fmt", "flush", "a", "kind", "sign", "value"),
    [
        ("e4m3", "none", 0x7BFF, Kind.FINITE, 0, 448.0),
        ("f16", "positive", 0x8001, Kind.ZERO, 0, 0.0),
        ("f16", "signed", 0x8001, Kind.ZERO, 1, 0.0),
        ("e4m3fnuz", "none", 0x8001, Kind.ZERO, 0, 0.0),
    ],
)
def test_a_register_rounded_on_the_way_is_the_references(
    tmp_path: Path, fmt: str, flush: str, a: int, kind: Kind, sign: int, value: float
) -> None:
    steps = (
        f"{{multiply: {{to: products}}}}, {{round: {{of: products, to: partial, format: {fmt}, rounding: "
        "nearest_even, "
        f"overflow: largest, zero: signed, flush: {flush}}}}}, {{sum: {{of: partial, to: total}}}}, "
        "{round: {of: total, rounding: nearest_even, overflow: infinity, zero: signed}}"
    )
    ins = unit(tmp_path, steps)
    operands = {
        "a": np.full((1, 4), a, np.uint16),
        "b": np.full((1, 4), 0x3C00, np.uint16),
        "c": np.zeros(1, np.uint32),
    }
    event = next(event for event in observe(ins, operands) if isinstance(event, Rounded))
    number = event.result
    seen = (
        number.kind[0, 0],
        number.sign[0, 0],
        float(number.significand[0, 0]) * 2.0 ** float(number.lsb[0, 0]),
    )
    assert seen == (kind, sign, value)
    trace = ins.trace(**{name: codes[0] for name, codes in operands.items()})
    wanted = next(event for event in trace.events if event.step.op == "round").written["partial"][0]
    assert (wanted.kind, wanted.sign, float(wanted.value)) == (kind, sign, value)


# What is not observed ---------------------------------------------------------------------------------------


def counted(ins: Instruction, operands: dict[str, Any]) -> Coverage | None:
    """Coverage of these vectors, which has held what it observed against the core; None where it has no
    figure for the unit."""
    try:
        coverage = Coverage(ins)
    except CoverageError:
        return None
    coverage.sample(operands, ins.dot(**operands))
    return coverage


@pytest.mark.parametrize("make", [random_unit, kernel_unit, faulty_unit])
def test_whatever_is_counted_is_the_cores_arithmetic(make: Any) -> None:
    """Random units of every step, key and format: each is refused, or its observed results are those of
    the core."""
    found = 0
    for seed in range(3000, 3100):
        _, ins = accepted(make, seed)
        found += counted(ins, draw_dots(ins, 40, np.random.default_rng(seed))) is not None
    assert found >= {random_unit: 90, kernel_unit: 60, faulty_unit: 0}[make]


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({"align": ", shift_limit: 40"}, "'shift_limit' of step 'align'"),
        ({"align": ", zeros: maximum"}, "'zeros' of step 'align'"),
        ({"align": ", left_out: {c: dropped}"}, "'left_out' of step 'align'"),
        ({"align": ", cut: sticky_added, sticky_gap: 1"}, "'sticky_gap' of step 'align'"),
        ({"sum": ", width: 9"}, "'width' of step 'sum'"),
        ({"sum": ", cancelled: zero"}, "'cancelled' of step 'sum'"),
        ({"multiply": ", zero_times_infinity: zero"}, "'zero_times_infinity' of step 'multiply'"),
        ({"special": ", opposite_infinities: first"}, "'opposite_infinities' of step 'special_values'"),
        ({"round": ", subnormal_carry: lost"}, "'subnormal_carry' of step 'round'"),
        ({"round": ", sticky_gap: 1"}, "'sticky_gap' of step 'round'"),
        ({"before": "  - hidden_bit: {of: a}\n"}, "step 'hidden_bit'"),
    ],
)
def test_a_unit_that_is_not_observed_has_no_figure(keys: dict[str, str], missing: str) -> None:
    ins = known_unit(**keys)
    line = f"^known: functional coverage has no figure for this unit: {missing} is not observed$"
    with pytest.raises(CoverageError, match=line):
        Coverage(ins)
    with pytest.raises(CoverageError, match=line):
        next(until_covered(ins))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rounding", "odd"),
        ("order", "carry_save"),
        ("overflow", "nan"),
        ("zero", "negative"),
        ("group", ("odd", 2)),
    ],
)
def test_a_value_that_is_new_to_a_step_has_no_figure(field: str, value: Any) -> None:
    """What is not known to be observed is refused, whatever it may come to mean."""
    ins = known_unit()
    op = "sum" if field in ("order", "group") else "round"
    steps = (
        replace(step, **{field: value}) if step.op == op else step for step in ins.program.operations[0].steps
    )
    changed = replace(ins, program=Program((replace(ins.program.operations[0], steps=tuple(steps)),)))
    with pytest.raises(CoverageError, match=f"'{field}' of step '{op}' is not observed"):
        Coverage(changed)


def test_a_wrong_observation_is_an_error_and_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard at run time: rounding that observes another mode than the unit's."""
    monkeypatch.setattr(
        golden.cover.observed, "_goes_up", lambda sign, kept, remainder, mode: np.ones(sign.shape, bool)
    )
    coverage = Coverage(HALF)
    operands = stimuli.generate(HALF, "narrow", 50, np.random.default_rng(1))
    with pytest.raises(
        CoverageError, match=r"no figure for this unit: what is observed is not its result 0x\w+ for a 0x"
    ):
        coverage.sample(operands, HALF.dot(**operands))
