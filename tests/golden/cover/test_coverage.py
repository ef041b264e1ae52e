"""Functional coverage: what it sees is the reference's arithmetic, and every reachable bin of the
reference units is hit."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_units import any_unit, faulty_unit, known_unit
from kernel_units import kernel_unit
from long_run import long_after
from random_operands import draw_dots
from random_units import accepted, random_unit

import golden
from golden import stimuli, yamlfile
from golden.catalog.unit_files import build_instruction
from golden.cover.aiming import aim
from golden.cover.coverage import Coverage, load, merged, save, until_covered
from golden.cover.page import page
from golden.errors import FileFormatError, OperandError
from golden.model.instruction import Instruction
from golden.number.formats import get_format
from golden.program.steps import Align
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
    """Instructions of small k with programs and formats that differ; every 40th one, for time."""
    found = {}
    for architecture in golden.architectures():
        for ins in golden.instructions(architecture):
            if ins.k <= 64:
                formats = sorted((name, fmt.name) for name, fmt in ins.formats.items())
                found[repr((ins.program, formats, ins.sparse))] = ins
    return list(found.values())[::40]


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


def test_two_causes_zero_factors_and_the_exponent_of_a_lone_c() -> None:
    inf, nan = np.inf, np.nan
    for a, b, c, label in (
        ([inf], [0.0], inf, "zero times infinity, +infinite c"),
        ([inf], [0.0], nan, "zero times infinity, NaN c"),
        ([inf], [-1.0], inf, "-infinite product, +infinite c"),
        ([inf, inf], [1.0, -1.0], 0.0, "+infinite product, -infinite product"),
        ([nan, -inf], [1.0, 0.0], 1.0, "zero times infinity, NaN factor"),
    ):
        assert hits(HMMA, a, b, c)["two causes"] == {label}
    assert not hits(HMMA, [inf, nan], [0.0, 1.0], inf)["two causes"]  # three
    assert not hits(HMMA, [inf], [nan], 1.0)["two causes"]  # a NaN alone
    zero = "zero factor of a product"
    assert hits(HMMA, [1.0, 0.0], [1.0, 2.0], 0.0)[zero] == {"a, beside the largest b"}
    assert hits(HMMA, [1.0, -4.0], [1.0, 0.0], 0.0)[zero] == {"b, beside the largest a"}
    assert not hits(HMMA, [2.0, 0.0], [2.0, 2.0], 0.0)[zero] and not hits(HMMA, [2.0], [0.0], 0.0)[zero]
    alone = "class of c alone: exponent"
    assert hits(HMMA, [], [], 2.0**-95)[alone] == {"field 0x20"}
    assert hits(HMMA, [2.0], [0.0], -(2.0**96))[alone] == {"field 0xdf"}
    assert not hits(HMMA, [1.0], [1.0], 2.0**96)[alone] and not hits(HMMA, [], [], 2.0**-90)[alone]


@pytest.mark.parametrize(
    ("result", "classes", "range_"),
    [("u64", {"positive"}, {"in range"}), ("s64", {"positive", "negative"}, {"in range", "above"})],
)
def test_numbers_of_64_bits_fall_into_their_bins(
    tmp_path: Path, result: str, classes: set[str], range_: set[str]
) -> None:
    """4 and (2^32 - 1)^2, which is above 2^63."""
    (tmp_path / "unit.yaml").write_text(
        f"""unit: product
shape: {{k: 1}}
define_formats:
  u32: {{kind: integer, storage: 32, bits: 32, signed: false}}
  s64: {{kind: integer, storage: 64, bits: 64}}
  u64: {{kind: integer, storage: 64, bits: 64, signed: false}}
formats: {{a: u32, b: u32, d: {result}}}
steps:
  - multiply: {{to: products}}
  - round: {{of: products, rounding: toward_zero, overflow: wrap, zero: positive}}
""",
        encoding="utf-8",
    )
    ins = golden.load_instruction(tmp_path / "unit.yaml").plain
    coverage = Coverage(ins)
    codes = np.array([[2], [0xFFFF_FFFF]], np.uint32)
    coverage.sample({"a": codes, "b": codes}, ins.dot(a=codes, b=codes))
    hit = {
        point.name: {
            label for label, count in zip(point.bins, coverage.hits[point.name], strict=True) if count
        }
        for point in coverage.points
    }
    assert hit["class of d"] == classes
    assert hit["steps: round products: range"] == range_


def test_no_vector_hits_a_bin_that_is_said_to_be_unreachable() -> None:
    for ins in distinct_instructions()[::3]:
        coverage = Coverage(ins)
        coverage.sample_set(default_set(ins, 120, seed=9))
        assert coverage.surprises() == [], ins


@pytest.mark.parametrize(("architecture", "name"), long_after(2, UNITS))
def test_every_reachable_bin_is_drawn_or_aimed_at(architecture: str, name: str) -> None:
    coverage = Coverage(golden.instruction(architecture, name))
    coverage.sample_set(default_set(coverage.instruction))
    assert len(coverage.holes()) < 10
    list(aim(coverage.instruction, coverage))
    assert coverage.holes() == []
    assert coverage.percent == 100.0


def test_aimed_vectors_hit_what_their_coverage_says() -> None:
    """A search that begins with random bits alone, which miss a third of the bins."""
    coverage = Coverage(HMMA)
    coverage.sample_set(default_set(HMMA, 5000, weights={"random_bits": 1.0}))
    left = set(coverage.holes())
    seen = Coverage(HMMA)
    for found in aim(HMMA, coverage, seed=3, most=20_000):
        assert (found.d == HMMA.dot(**found.operands)).all()
        seen.sample_set(found)
    hit = left - set(coverage.holes())
    assert len(hit) > 0.9 * len(left) > 50
    assert not hit & set(seen.holes())


def test_vectors_that_are_not_allowed_are_not_aimed_at() -> None:
    coverage = Coverage(HMMA)
    coverage.sample_set(default_set(HMMA, 5000, weights={"narrow": 1.0}))
    left = set(coverage.holes())

    def normal(operands: dict[str, Any], _d: Any) -> Any:
        return ((operands["a"] & 0x7C00) > 0).all(axis=1)

    found = list(aim(HMMA, coverage, seed=3, most=20_000, allowed=normal))
    assert found and all(normal(part.operands, part.d).all() for part in found)
    hit = left - set(coverage.holes())
    assert hit and not any(
        label.startswith("subnormal") for name, label in hit if name.startswith("class of a")
    )


def test_a_lone_product_of_narrow_factors_never_has_all_digits_of_d(tmp_path: Path) -> None:
    """Two factors of FP8 have 8 digits together, the largest FP16 has 11; none of 65,536 products is that."""
    (tmp_path / "u.yaml").write_text(
        "unit: u\nshape: {k: 1}\nformats: {a: e5m2, b: e4m3, d: f16}\nsteps:\n"
        "  - multiply: {to: products}\n  - special_values: {of: products}\n"
        "  - round: {of: products, rounding: nearest_even, overflow: infinity, zero: signed}\n"
    )
    ins = golden.load_instruction(tmp_path / "u.yaml")
    a, b = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    operands = {"a": a.reshape(-1, 1), "b": b.reshape(-1, 1)}
    d = ins.dot(**operands)
    assert not (d & 0x7FFF == 0x7BFF).any()
    coverage = Coverage(ins)
    coverage.sample(operands, d)
    assert ("class of d", "largest") not in coverage.holes()
    assert not coverage.surprises()


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


# Units of any kind ------------------------------------------------------------------------------------------


def drawn(ins: Instruction, seed: int) -> dict[str, Any]:
    """Random operands, and some of every kind of stimuli that the unit's formats can have."""
    rng = np.random.default_rng(seed)
    parts = [draw_dots(ins, 60, rng) for _ in range(4)]
    for kind in stimuli.KINDS:
        try:
            parts.append(stimuli.generate(ins, kind, 12, rng))
        except OperandError:  # a value that an unsigned or narrow format does not have
            continue
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize(
    ("make", "most"),
    long_after(1, [(faulty_unit, 2), (random_unit, 1), (kernel_unit, 1), (any_unit, 3)]),
)
def test_every_unit_has_a_figure_and_its_bins_are_those_that_it_reaches(make: Any, most: int) -> None:
    """Random units of every step, key and format. What is hit counts, also where the ranges are too narrow;
    of the units where they are, no more may come."""
    narrow = []
    for seed in range(3000, 3008):
        _, ins = accepted(make, seed)
        coverage, operands = Coverage(ins), drawn(ins, seed)
        coverage.sample(operands, ins.dot(**operands))
        hit = sum(int((hits > 0).sum()) for hits in coverage.hits.values())
        assert coverage.counts[0] == hit <= coverage.counts[1], seed
        if coverage.surprises():
            narrow.append((seed, coverage.surprises()))
    assert len(narrow) <= most, narrow


KEYS = [
    {"align": ", shift_limit: 12"},
    {"align": ", zeros: maximum"},
    {"align": ", left_out: {c: dropped}"},
    {"align": ", cut: sticky_added, sticky_gap: 1"},
    {"align": ", cut: sticky_or"},
    {"sum": ", width: 9"},
    {"sum": ", cancelled: zero"},
    {"multiply": ", zero_times_infinity: zero"},
    {"special": ", opposite_infinities: first"},
    {"round": ", subnormal_carry: lost"},
    {"round": ", sticky_gap: 1"},
    {"before": "  - hidden_bit: {of: a}\n"},
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: " ".join(keys.values()).strip(", -\n"))
def test_a_unit_with_a_faulty_key_is_covered(keys: dict[str, str]) -> None:
    ins = known_unit(**keys)
    coverage = Coverage(ins)
    coverage.sample_set(default_set(ins, 2500))
    assert coverage.surprises() == []
    list(aim(ins, coverage, most=20_000))
    assert coverage.surprises() == []
    assert coverage.percent > 90


def test_a_term_left_out_of_the_maximum_can_lie_above_it() -> None:
    ins = known_unit(align=", left_out: {c: dropped}")
    point = "steps: align products and c: distance of c"
    assert hits(ins, [1.0], [1.0], 4.0)[point] == {"above the maximum"}
    assert hits(ins, [1.0], [1.0], 4.0)["steps: align products and c: cut from c"] == {"everything, +"}
    assert hits(ins, [4.0], [1.0], 1.0)[point] == {"2..21"}


def test_a_shifter_that_stops_short_is_seen() -> None:
    """2**-20 below 2**10 is shifted by 12 places instead of 30: nothing is cut."""
    point = "steps: align products and c: cut from c"
    assert hits(known_unit(), [32.0], [32.0], 2.0**-20)[point] == {"everything, +"}
    assert hits(known_unit(align=", shift_limit: 12"), [32.0], [32.0], 2.0**-20)[point] == {"nothing, +"}


@pytest.mark.parametrize("sign", [1, -1], ids=["+", "-"])
def test_a_term_is_gone_with_its_sticky_bit_only_where_a_gap_hides_it(sign: int) -> None:
    """A power of two one place below all kept bits: its sticky bit stays, unless the place lies in the gap.
    The kinds seldom draw it, but it can be drawn."""
    point, label = "steps: align products and c: cut from c", "everything, " + "+-"[sign < 0]
    for more, reachable in (
        ("sticky_added, sticky_gap: 1", True),
        ("sticky_added", False),
        ("sticky_or", True),
    ):
        ins = known_unit(align=f", cut: {more}")
        fraction = dict(ins.program.steps_of(Align)[0].fraction_bits)["c"]
        (bins,) = [found.bins for found in Coverage(ins).points if found.name == point]
        assert bins[label] == reachable, more
        found = hits(ins, [1.0], [1.0], sign * 2.0 ** -(fraction + 1))[point]
        assert (found == {label}) == reachable, (more, found)


def test_products_that_leave_a_sticky_bit_alone_do_not_carry_c_over_the_top() -> None:
    """Four products of f16 below the largest f32 are one sticky bit, or four halves of a unit of 2**101: less
    than half of c's last place. Rounded up they are four units, just that half."""
    text = (Path(__file__).parents[3] / "spec" / "examples" / "sticky_or.yaml").read_text("utf-8")
    for cut, rounding, reachable in (
        ("sticky_or", "toward_zero", False),
        ("sticky_added", "toward_zero", False),
        ("sticky_or", "up", True),
    ):
        changed = text.replace("cut: sticky_or", f"cut: {cut}").replace(
            "rounding: toward_zero", f"rounding: {rounding}"
        )
        ins = build_instruction(yamlfile.parse(changed))
        points = {point.name: point.bins for point in Coverage(ins).points}
        assert points["steps: round total: result and remainder"]["overflow"] == reachable, (cut, rounding)
        largest = np.full(4, get_format("f16").largest, np.uint16)
        d = int(ins.dot(a=largest, b=largest, c=np.uint32(get_format("f32").largest)))
        assert (d == 0x7F800000) == reachable, (cut, rounding, hex(d))


@pytest.mark.parametrize(
    "steps",
    [
        "[{sum: {of: [a, c], to: total}}, "
        "{round: {of: total, rounding: nearest_even, overflow: ieee, zero: signed}}]",
        "[{sum: {of: [a, c], to: d, order: sequential, rounding: nearest_even}}]",
    ],
)
def test_of_two_numbers_as_long_as_the_result_only_near_bits_meet_half(steps: str) -> None:
    """All pairs of codes reach exactly the bins that are reachable."""
    text = f"unit: add\nshape: {{k: 1}}\nformats: {{a: e5m2, c: e5m2, d: e5m2}}\nsteps: {steps}\n"
    ins = build_instruction(yamlfile.parse(text)).plain
    a, c = (each.ravel().astype(np.uint8) for each in np.meshgrid(np.arange(256), np.arange(256)))
    coverage = Coverage(ins)
    coverage.sample({"a": a[:, None], "c": c}, ins.dot(a=a[:, None], c=c))
    assert not coverage.surprises()
    assert not [bin for name, bin in coverage.holes() if name.endswith("one bit cut")]


def test_a_hidden_bit_makes_a_subnormal_factor_normal() -> None:
    point = "steps: multiply a and b: significand"
    assert hits(known_unit(), [2.0**-24], [1.0], 0.0)[point] == {"below 1"}
    assert hits(known_unit(before="  - hidden_bit: {of: a}\n"), [2.0**-24], [1.0], 0.0)[point] == {"1 to 2"}


def test_an_operation_that_ended_falls_into_no_bin_of_the_steps_behind() -> None:
    found = hits(HMMA, [np.inf, 1.0], [1.0, 1.0], 1.0)
    assert found["fda: align products and c: largest exponent"] == set()
    assert found["fda: multiply a and b: significand"] == {"1 to 2"}
    assert found["class of d"] == {"infinity"}


def test_a_bin_that_is_hit_counts_though_no_rule_reaches_it(tmp_path: Path) -> None:
    coverage = Coverage(HMMA)
    operands = stimuli.generate(HMMA, "random_bits", 4, np.random.default_rng(1))
    before = coverage.counts
    minus_zero = np.full(4, 1 << 31, np.uint32)  # no result of this instruction
    coverage.sample(operands, minus_zero)
    point = next(point for point in coverage.points if point.name == "class of d")
    assert not point.bins["-0"] and coverage.surprises() == [("class of d", "-0")]
    assert coverage.counts[1] == before[1] + 1
    assert coverage.as_dict()["coverpoints"]["class of d"]["-0"] == 4
    save([coverage], tmp_path / "runs.json")
    (again,) = load(tmp_path / "runs.json")
    assert again.counts == coverage.counts and again.as_dict() == coverage.as_dict()
    assert "<div class=bins>" in page([again]) and "-0 <b>4</b>" in page([again])


def test_what_two_terms_at_a_time_leave() -> None:
    """Two f16 numbers that nearly cancel leave a bit of either: 11 places down at most. Terms that were cut
    toward zero to 1.f carry one place, not two."""
    units = Path(__file__).parents[3] / "rtl_tb" / "mutants" / "units"
    reachable = {
        name: set(Coverage(golden.load_instruction(units / name / "unit.yaml")).holes())
        for name in ("two_path_tree", "per_pair_grid")
    }
    point = "leading bit against the largest exponent"
    assert ("steps: sum products: " + point, "down by 9..16") in reachable["two_path_tree"]
    assert ("steps: sum products: " + point, "down by 17 or more") not in reachable["two_path_tree"]
    assert ("steps: sum groups: " + point, "up by 1") in reachable["per_pair_grid"]
    assert ("steps: sum groups: " + point, "up by 2") not in reachable["per_pair_grid"]


def test_saved_coverage_is_read_within_limits(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match="nested deeper than"):
        load(tmp_path / "deep.json")
