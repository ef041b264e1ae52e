"""The units that a paper describes, the overflow edges and the observations: against the papers' own
sentences, computed here in exact rationals, and against printed figures."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import golden
from golden import studies
from golden.catalog import timing
from golden.catalog.architectures import get_architecture
from golden.identify.blackbox.plugins import Chip
from golden.identify.probe.probes import Probe
from golden.identify.probe.special_probes import EDGES, overflow_edges
from golden.model.instruction import Instruction
from golden.number.formats import to_float
from golden.paths import docs_folder
from golden.publish import study_page
from golden.studies import as_published, observations
from golden.studies import overflow_edges as edges
from golden.unit import FunctionUnit


def _exponent(value: Fraction, least: int) -> int:
    """The exponent as the paper writes a number: that of the raw representation, `least` for zeros."""
    if not value:
        return least
    power = value.numerator.bit_length() - value.denominator.bit_length()
    power -= abs(value) < Fraction(2) ** power
    return max(power, least)


def _cut(value: Fraction, place: int, down: bool = False) -> Fraction:
    """A value on a grid of 2^place, towards zero or down."""
    scaled = value / Fraction(2) ** place
    whole = scaled.numerator // scaled.denominator
    return Fraction(whole + (not down and whole < 0 and whole != scaled)) * Fraction(2) ** place


def _nearest(value: Fraction) -> Fraction:
    """f32, to nearest even."""
    place = max(_exponent(value, -126), -126) - 23
    low = _cut(value, place, down=True)
    twice, odd = 2 * (value - low) / Fraction(2) ** place, int(low / Fraction(2) ** place) % 2
    return low + (Fraction(2) ** place if twice > 1 or (twice == 1 and odd) else 0)


def fda(a: list[Fraction], b: list[Fraction], c: Fraction, bits: int) -> Fraction:
    """Section IV-C, steps 2 to 5, f16 to f32: zeros take part with their least exponents."""
    terms = [(x * y, _exponent(x, -14) + _exponent(y, -14)) for x, y in zip(a, b, strict=True)]
    terms.append((c, _exponent(c, -126)))
    place = max(exponent for _, exponent in terms) - bits
    total = sum((_cut(value, place) for value, _ in terms), Fraction(0))
    return _cut(total, max(_exponent(total, -126), -126) - 23)


def fdrda(a: list[Fraction], b: list[Fraction], c: Fraction) -> Fraction:
    """Section IV-F, steps 4 to 8: the dot product meets c at 31 bits, rounded down."""
    terms = [(x * y, _exponent(x, -14) + _exponent(y, -14)) for x, y in zip(a, b, strict=True)]
    e_dot = max(exponent for _, exponent in terms)
    dot = sum((_cut(value, e_dot - 24) for value, _ in terms), Fraction(0))
    top = max(e_dot, _exponent(c, -126))
    return _nearest(_cut(dot, top - 31, down=True) + _cut(c, top - 24, down=True))


RULES = {
    "hopper_hmma_16816_f32": lambda a, b, c: fda(a, b, c, 25),
    "turing_hmma_884_f32": lambda a, b, c: fda(a, b, c, 24),
    "cdna3_32x32x8_f16": fdrda,
}


@pytest.mark.parametrize("case", as_published.CASES, ids=lambda case: case.file)
def test_a_published_unit_is_the_papers_sentences(case: as_published.Case) -> None:
    """On random operands, and on the dot product that distinguishes the two."""
    rule, unit = RULES[case.file], case.published
    many = as_published.drawn(unit, 300)
    one = case.operands()
    both = {name: np.concatenate([np.atleast_1d(codes), many[name]]) for name, codes in one.items()}
    values = {name: to_float(unit.formats[name], codes) for name, codes in both.items()}
    found = to_float(unit.formats["d"], unit.dot(**both))
    for k, result in enumerate(found):
        a, b = ([Fraction(float(x)) for x in values[name][k]] for name in "ab")
        assert Fraction(float(result)) == rule(a, b, Fraction(float(values["c"][k]))), (case.file, k)


@pytest.mark.parametrize(
    ("file", "ours", "published"),
    [
        ("hopper_hmma_16816_f32", 0x32800000, 0),
        ("turing_hmma_884_f32", 0, 0x33800000),
        ("cdna3_32x32x8_f16", 0x3F7FFFFF, 0x3F7FFFFE),
    ],
)
def test_one_dot_product_distinguishes_each_from_ours(file: str, ours: int, published: int) -> None:
    case = next(case for case in as_published.CASES if case.file == file)
    found = as_published.ask(case, 10)
    assert (found.ours, found.published) == (ours, published)


def test_a_chip_is_named_by_whom_it_agrees_with() -> None:
    """A chip that is the paper's unit is not reported as ours."""
    case = as_published.CASES[0]

    def paper(ins: Instruction) -> FunctionUnit:
        return FunctionUnit.like(ins, case.published.dot)

    found = as_published.ask(case, 400, Chip("CHIP", "hopper", paper))
    assert found.differ and found.answered == found.published == 0
    assert (found.as_ours, found.as_published) == (0, found.differ)
    study = studies.run("as-published", 400, chip=Chip("CHIP", "hopper", paper))
    assert f"it answers 0 as ours, {found.differ:,} as the paper's" in study.findings


def test_the_six_edges_by_the_papers_steps() -> None:
    """(2 - u) 2^E and 0.75, 0.5 and 0.25 of u 2^E: f32 cuts, f16 rounds to nearest even, CDNA3 rounds f32."""
    wanted = {
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32": [0x7F7FFFFF] * 3,
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16": [0x7C00, 0x7C00, 0x7BFF],
    }
    for name, words in wanted.items():
        found = overflow_edges(Probe(golden.instruction("hopper", name)))
        sign = 0x8000 if "f16.f16.f16" in name else 0x80000000
        assert list(found) == list(EDGES) and list(found.values()) == [*words, *(w | sign for w in words)]
    cdna3 = overflow_edges(Probe(golden.instruction("cdna3", "v_mfma_f32_32x32x8_bf16")))
    assert list(cdna3.values())[:3] == [0x7F800000, 0x7F800000, 0x7F7FFFFF]


def test_a_unit_that_saturates_has_other_edges() -> None:
    hopper = next(unit for unit in edges.UNITS if (unit.architecture, unit.what) == ("hopper", "f16 to f16"))

    def saturating(ins: Instruction) -> FunctionUnit:
        return FunctionUnit.like(ins, lambda **operands: np.minimum(ins.dot(**operands), 0x7BFF))

    found = edges.ask(replace(hopper, on=Chip("CHIP", "hopper", saturating)))
    assert found.words[:3] == (0x7BFF,) * 3 and edges.ask(hopper).words[0] == 0x7C00


# The observations -------------------------------------------------------------------------------------------


def _a100() -> observations.Board:
    """An A100 as the paper's sentences and tables have it: one begins a k16 every 8 cycles of a sub-core."""
    rounds = {}
    kinds = {
        "_K16": (2048, 8, 24.7),
        "_K8": (1024, 4, 17.7),
        "_SPARSE_K32": (4096, 8, 24.7),
        "_SPARSE_K16": (2048, 6, 17.9),
    }
    for name, (work, interval, latency) in kinds.items():
        for warps in observations_warps:
            for ilp in range(1, 7):
                inside = -(-warps // 4) * ilp * interval
                sync = 1.12 if warps <= 4 else 1.02
                sync = 1.25 if name == "_K8" and warps <= 4 else sync
                cycles = max(latency + 0.5 * (warps > 4), inside * sync)
                rounds[getattr(observations, name), warps, ilp] = (cycles, warps * ilp * work / cycles)
    figure15 = {key: (key, cycles) for key, cycles in _figure15().items()}
    for (warps, ilp), (_, cycles) in figure15.items():
        rounds["ldmatrix.x4", warps, ilp] = (cycles, warps * ilp * 512 / cycles)
    rounds |= {("ldmatrix.x4", warps, 6): rounds["ldmatrix.x4", warps, 5] for warps in (1, 2, 4, 6, 8, 12)}
    latencies = {one.key: one.value for one in timing.load("sun_a100") if one.value is not None}
    for name in kinds:
        key = timing.Key(getattr(observations, name), "", "completion_latency")
        latencies[key] = kinds[name][2]
    return observations.Board("A100", "sun_a100", rounds, latencies, "")


observations_warps = (1, 2, 4, 6, 8, 12, 16)


def _figure15() -> dict[tuple[int, int], float]:
    found = {}
    for one in timing.load("sun_a100_figures"):
        if one.table == "Figure 15" and one.quantity == "latency" and one.value is not None:
            found[one.warps, one.ilp] = one.value
    return found


def test_every_observation_holds_where_it_was_made() -> None:
    """But the vendor's peak, which is Hopper's here; an A100 of the printed sentences meets every other."""
    board = _a100()
    failed = {(c.number, c.text) for c in observations.CLAIMS if not c.check(board)[0]}
    assert {number for number, _ in failed} <= {"dense 1"}, failed


def test_hopper_decides_them_as_its_recordings_say() -> None:
    """By single figures of the files that stand in docs/timing.md: 1355, 331, 16.3, 2016."""
    found = {board.name: board for board in observations.boards()}
    for name in ("hopper_h100", "hopper_h200"):
        verdicts = {(c.number, c.text): c.check(found[name]) for c in observations.CLAIMS}
        no = {number for (number, _), (holds, _) in verdicts.items() if not holds}
        assert no == {f"dense {n}" for n in (1, 2, 3, 4, 5, 7, 8)} | {"sparse 1", "sparse 2"}
        texts = " ".join(text for _, text in verdicts.values())
        assert all(
            figure in texts for figure in ("1355 of 2048", "330.6", "16.3", "2016 and 1355", "from ILP 4")
        )


def test_the_loop_as_printed_has_the_papers_gaps_on_hopper() -> None:
    """Dense 3 and 8 hold in it, and not in ours: 1193 and 1345, 890 and 1004 against 1321 and 1353."""
    found = {board.name: board for board in observations.boards()}
    assert set(found) == {"hopper_h100", "hopper_h200", "hopper_h200_sun, as printed"}
    printed = found["hopper_h200_sun, as printed"]
    gaps = {c.number: c.check(printed) for c in observations.CLAIMS if "reach less than 8" in c.text}
    assert gaps == {"dense 3": (True, "1193 and 1345"), "dense 8": (True, "890 and 1004")}
    ours = {c.number: c.check(found["hopper_h200"]) for c in observations.CLAIMS if "reach less" in c.text}
    assert ours["dense 3"] == (False, "1322 and 1354") and not ours["dense 8"][0]


@pytest.mark.parametrize("instruction", ["_K16", "_LDMATRIX"])
def test_other_figures_decide_otherwise(instruction: str) -> None:
    """One changed point turns the sentence that reads it."""
    board = _a100()
    name = getattr(observations, instruction)
    changed = dict(board.rounds)
    for ilp in range(1, 7):
        cycles, rate = changed[name, 6, ilp]
        changed[name, 6, ilp] = (
            (cycles * 2, rate / 2) if instruction == "_LDMATRIX" else (cycles / 2, rate * 2)
        )
    other = replace(board, rounds=changed)
    number = "ldmatrix 3" if instruction == "_LDMATRIX" else "dense 5"
    assert not all(c.check(other)[0] for c in observations.CLAIMS if c.number == number)


def test_the_page_of_the_observations_links_to_the_method() -> None:
    text = study_page.write_study("observations")
    assert "](site:timing.md)" in text and (docs_folder() / "timing.md").is_file()
    assert "All numbers come from recordings of `spec/timing`: hopper_h100, hopper_h200" in text


def test_table_1_stands_in_the_specs() -> None:
    """W. Sun et al., Table I: cores of a multiprocessor, their shape; wmma alone, then mma, then mma.sp."""
    printed = {
        "volta": ("8 tensor cores", "4x4x4", {"wmma"}),
        "turing": ("8 tensor cores", "4x4x4", {"wmma", "mma"}),
        "ampere": ("4 tensor cores", "8x4x8", {"wmma", "mma", "mma.sp"}),
        "hopper": ("4 tensor cores", "undocumented", {"wmma", "mma", "mma.sp"}),
    }
    for name, (count, shape, programmed) in printed.items():
        chip = get_architecture(name)
        assert count in chip.matrix_units and shape in chip.matrix_units
        assert ("ldmatrix" in chip.movement) == (name != "volta")
        names = {ins.name.split(".")[0] + ".sp" * ins.sparse for ins in golden.instructions(name)}
        assert programmed <= names and ("mma.sp" in names) == ("mma.sp" in programmed)
    assert get_architecture("cdna3").matrix_units == ""
