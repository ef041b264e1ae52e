"""Units that keep their accumulator and take c into it: sound ones pass on every engine, and what is wrong
with `load` and `clear` is named."""

from pathlib import Path

import numpy as np
import pytest
from loading_unit import FAULTS, KEYS, PORTS, SOUND, UNIT, described, unit
from long_run import long_after

from golden.catalog.unit_files import build_instruction, load_instruction
from golden.catalog.unit_text import unit_text
from golden.cover.coverage import Coverage
from golden.errors import SpecError
from golden.vectors.vectorset import default_set
from golden.yamlfile import read
from rtl_tb.check.accumulate import long_accumulation
from rtl_tb.check.check import check
from rtl_tb.check.options import Options
from rtl_tb.check.record import NEVER_TOGETHER
from rtl_tb.dut.description import load_dut
from rtl_tb.dut.init import draft
from rtl_tb.dut.wrapper import wrapper_of

ICARUS = ("selfcheck", "icarus")


def checked(file: Path, engine: str = "fast", simulator: str = "verilator", **options: object):
    given = {"count": 1500, "failures": None, "build": file.parent / "build", "synthesis": "off"} | options
    return check(file, Options(engine, simulator, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", KEYS)
def test_the_results_are_those_of_a_plain_loop(tmp_path, form):
    ins = unit(tmp_path, form)
    vectors = default_set(ins, 9000, seed=2)
    a, b = (vectors.operands[name].view(np.int8).astype(int) for name in "ab")
    c, products = vectors.operands["c"].view(np.int32), (a * b).sum(axis=1)
    clear, load = (vectors.operands[name].astype(bool) for name in ("clear", "load"))
    held, found = 0, []
    for i, product in enumerate(products.tolist()):
        start = 0 if clear[i] else int(c[i]) if load[i] else held
        alone = form == "alone" and (clear[i] or load[i])
        held = max(-(2**31), min(2**31 - 1, start + (0 if alone else product)))
        found.append(held)
    assert vectors.d.view(np.int32).tolist() == found
    assert 0.05 < load.mean() < 0.3 and not (clear & load).any()
    assert (load[:-1] & ~load[1:] & ~clear[1:]).any(), "what was loaded is added to"
    resolved = ins.stateless.dot(**vectors.resolved())
    assert (resolved == vectors.d).all()


@pytest.mark.parametrize("form", KEYS)
def test_a_load_ends_sums_of_all_lengths(tmp_path, form):
    """So does a clear: neither may depend on how many products the sum has."""
    operands = default_set(unit(tmp_path, form), 100_000).operands
    clear, load = (operands[name].astype(bool) for name in ("clear", "load"))
    ends = np.flatnonzero(clear | load)
    lengths = np.diff(ends)
    for control in (clear, load):
        assert set(np.floor(np.log2(lengths[control[ends[1:]]])).astype(int)) >= set(range(10))


@pytest.mark.parametrize("form", KEYS)
def test_coverage_counts_loads(tmp_path, form):
    ins = unit(tmp_path, form)
    coverage = Coverage(ins)
    coverage.sample_set(default_set(ins, 9000))
    assert not [hole for hole in coverage.holes() if "load" in hole[0]]
    assert coverage.hits["load of two dot products in a row"].min() > 0


@pytest.mark.parametrize("form", KEYS)
def test_a_unit_is_what_its_text_says(tmp_path, form):
    ins = unit(tmp_path, form)
    (tmp_path / "again.yaml").write_text(unit_text(ins, "again"))
    again = build_instruction(read(tmp_path / "again.yaml"))
    assert (
        (again.state, again.load, again.alone)
        == (ins.state, ins.load, ins.alone)
        == ((True, True, () if form == "with" else ("clear", "load")))
    )


def test_load_needs_an_accumulator(tmp_path):
    (tmp_path / "unit.yaml").write_text(
        UNIT.format(keys="load: alone")
        .replace("accumulator: state\n", "")
        .replace("d: s32", "c: s32, d: s32")
    )
    with pytest.raises(SpecError, match="'load' needs key 'accumulator'"):
        load_instruction(tmp_path / "unit.yaml")


SOUND_RUNS = [
    ("with", "both", *ICARUS),
    ("alone", "load alone", *ICARUS),
    *(
        (form, ports, engine, simulator)
        for form in KEYS
        for ports in PORTS
        for engine, simulator in (("fast", "verilator"), ICARUS, ("cocotb", "icarus"))
    ),
]


@pytest.mark.parametrize(("form", "ports", "engine", "simulator"), long_after(1, SOUND_RUNS))
def test_a_sound_unit_passes(tmp_path, form, ports, engine, simulator):
    file = described(tmp_path, form, SOUND[form], PORTS[ports])
    result = checked(file, engine, simulator, resets=3, idle=0.2)
    assert result.passed, result.as_dict()
    assert (NEVER_TOGETHER in result.notes) == (ports != "load alone")


@pytest.mark.parametrize(
    ("form", "slug", "body"),
    [
        *long_after(1, [("with", *fault) for fault in FAULTS["with"]]),
        *long_after(1, [("alone", *fault) for fault in FAULTS["alone"]]),
    ],
)
def test_a_fault_is_named(tmp_path, form, slug, body):
    result = checked(described(tmp_path, form, body), *ICARUS, resets=0)
    assert not result.passed
    best = result.diagnosis.hypotheses[0]
    assert slug in {part.slug.removesuffix("-saturated") for part in best.outside}, best.text
    assert best.remaining <= 0.05 * result.diagnosis.failing
    assert result.example is not None and result.example.alone
    assert len(result.example.sequence["a"]) <= 3


@pytest.mark.parametrize("engine", [ICARUS, ("fast", "verilator")], ids=["icarus", "fast"])
@pytest.mark.parametrize("form", KEYS)
def test_a_reset_that_leaves_what_was_held_is_found(tmp_path, form, engine):
    """Also where what clears has no products: after a reset it is not sent, or it would clear."""
    file = described(tmp_path, form, SOUND[form])
    source = tmp_path / "mac.sv"
    source.write_text(source.read_text().replace("            acc <= 0;\n", ""))
    assert not checked(file, *engine, explain=False, resets=8).passed


@pytest.mark.parametrize("form", KEYS)
def test_climbs_end_at_the_ends(tmp_path, form):
    """At the ends exactly and one beyond, also where the first dot product clears and does not count."""
    described(tmp_path, form, SOUND[form])
    ins = load_instruction(tmp_path / "unit.yaml")
    operands = long_accumulation(ins)
    products = (operands["a"].view(np.int8).astype(int) * operands["b"].view(np.int8)).sum(axis=1)
    clear, d = operands["clear"] != 0, ins.answers(operands)
    d = (d["d"] if isinstance(d, dict) else d).view(np.int32).astype(int)
    held = np.where(clear, 0, np.concatenate([[0], d[:-1]]))
    totals = held + np.where(clear & ("clear" in ins.alone), 0, products)
    assert {2**31 - 1, 2**31, -(2**31), -(2**31) - 1} <= set(totals.tolist())


@pytest.mark.parametrize("form", KEYS)
def test_init_knows_the_ports(tmp_path, form):
    file = described(tmp_path, form, SOUND[form])
    file.write_text(draft([tmp_path / "mac.sv"], None, str(tmp_path / "unit.yaml"), tmp_path))
    dut = load_dut(file)
    assert {name: at.ports for name, at in dut.ports.items() if name in ("clear", "load", "c")} == {
        "clear": ("clear",),
        "load": ("load",),
        "c": ("c_in",),
    }
    assert "given_data" not in wrapper_of(dut)


def test_a_unit_that_clears_with_products_and_loads_without_needs_both_ports(tmp_path):
    file = described(tmp_path, "alone", SOUND["alone"], PORTS["load alone"])
    (tmp_path / "unit.yaml").write_text(UNIT.format(keys="load: alone"))
    with pytest.raises(SpecError, match="'ports' lacks clear"):
        load_dut(file)


def test_active_is_for_clear_and_load(tmp_path):
    file = described(tmp_path, "with", SOUND["with"])
    file.write_text(file.read_text().replace("c: c_in", "c: {port: c_in, active: low}"))
    with pytest.raises(SpecError, match="'active' is for clear and load, not for c"):
        load_dut(file)
