"""Campaigns without a GPU: operands and results of tiles by a C compiler, the loop on a counting bench,
reports, the kernels."""

import ctypes
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.errors import FileFormatError, OperandError
from golden.stimuli import KINDS
from golden.vectors import captured
from hw_capture.campaign import report, source
from hw_capture.campaign.run import ALL_KINDS, Interrupted, Outcome, Plan, kind_name, run
from hw_capture.campaign.source import DRAWN
from hw_capture.cli.machines import check_plan
from hw_capture.errors import DeviceError, NoKernelError
from hw_capture.kernels import kernels, sass, toolchain
from hw_capture.record import placement_faults

HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FAMILIES = [
    HMMA,
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
    "wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e4m3",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
    "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16",
    "mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16",
]
SCALED = [
    f"mma.{kind}block_scale.{rest}"
    for kind, rest in (
        ("sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.", "scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
        ("sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.", "scale_vec::1X.f32.e2m1.e3m2.f32.ue8m0"),
        (
            "sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.",
            "scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
        ),
    )
]
"""Of rtx_blackwell, by the interpreter."""
CC = shutil.which("gcc") or shutil.which("cc")
NVCC = toolchain.find("nvcc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")


def blocks_of(ins, name, whole):
    """The blocks of an operand of a tile: A's below one another, B's next to one another, of C and D the
    blocks on the diagonal."""
    rows = [slice(None) if name == "b" else slice(i * ins.m, (i + 1) * ins.m) for i in range(ins.blocks)]
    columns = [slice(None) if name == "a" else slice(i * ins.n, (i + 1) * ins.n) for i in range(ins.blocks)]
    return np.stack([whole[place] for place in zip(rows, columns, strict=True)])


class Tiles:
    """The C library of one campaign: what the GPU makes of a tile."""

    def __init__(self, name, folder, faults=None):
        self.ins = golden.instruction("rtx_blackwell" if name in SCALED else "hopper", name)
        unit, library = folder / "tiles.c", folder / "tiles.so"
        unit.write_text(source.host_source(self.ins, faults))
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-frounding-math", "-shared", "-fPIC"]
        subprocess.run([CC, *flags, "-o", library, unit, "-lm"], check=True)
        self.make = ctypes.CDLL(str(library)).campaign_tile

    def __call__(self, tile, kind=ALL_KINDS, seed=3):
        """Operands as the matrix API takes them, the C result, and the kind."""
        ins = self.ins
        shapes = ins.operand_shapes(matrices=True)
        m, n = source.tile_shape(ins)
        wide = {"a": (m, ins.stored_k), "b": (ins.k, n), "c": (m, n), "d": (m, n)}
        wide = {name: np.zeros(shape, np.uint64) for name, shape in wide.items()}
        metadata = np.zeros(shapes.get("metadata", (1,)), np.uint8)
        rows, blocks = shapes.get("scale_a", (0, 0))
        scales = np.zeros((rows, blocks), np.uint64), np.zeros((ins.n, blocks), np.uint64)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (*wide.values(), metadata, *scales))
        kind = self.make(ctypes.c_uint64(seed), ctypes.c_uint64(tile), kind, *pointers)
        if ins.blocks > 1:
            wide = {name: blocks_of(ins, name, array) for name, array in wide.items()}
        operands = {name: wide[name].astype(ins.formats[name].dtype) for name in "abc"}
        assert all(np.array_equal(operands[name], wide[name]) for name in "abc"), (
            "codes wider than their format"
        )
        if ins.sparse:
            operands["metadata"] = metadata
        if ins.scale_block:
            operands |= {"scale_a": scales[0].astype(np.uint8), "scale_b": scales[1].T.astype(np.uint8)}
        return operands, wide["d"].astype(ins.formats["d"].dtype), kind


def check(tiles, count, kind=ALL_KINDS):
    """Mismatches of the C results against the core, by kind."""
    found = Counter()
    for tile in range(count):
        operands, d, of = tiles(tile, kind)
        found[kind_name(of)] += int((d != tiles.ins(**operands)).sum())
    return found


@needs_cc
@pytest.mark.parametrize("name", long_after(1, SCALED) + long_after(3, FAMILIES))
def test_every_kind_makes_legal_operands_with_the_core_s_results(name, tmp_path):
    found = check(Tiles(name, tmp_path), 2 * len(DRAWN))
    assert set(found) == set(DRAWN)
    assert not any(found.values())


@needs_cc
@pytest.mark.parametrize(
    "name, fault",
    [
        (HMMA, {"fraction_bits": 24}),
        (HMMA, {"fraction_bits": 26}),
        (HMMA, {"rounding": "nearest_even"}),
        (FAMILIES[5], {"fraction_bits": 12}),
        (FAMILIES[6], {"saturate": 0}),
        (FAMILIES[8], {"rounding": "toward_zero"}),
    ],
)
def test_operands_of_a_campaign_meet_planted_faults(name, fault, tmp_path):
    assert sum(check(Tiles(name, tmp_path, fault), 12 * len(DRAWN)).values()) > 0


@needs_cc
@pytest.mark.parametrize(
    "name, floor", [(FAMILIES[1], -20), (FAMILIES[1], -22), (FAMILIES[2], -132), (FAMILIES[2], -134)]
)
def test_a_floor_that_is_one_off_shows_at_the_floor_s_edge(name, floor, tmp_path):
    assert sum(check(Tiles(name, tmp_path, {"floor": floor}), 400, DRAWN.index("floor_edge")).values()) > 0


@needs_cc
def test_operands_depend_on_seed_and_tile_alone(tmp_path):
    tiles = Tiles(HMMA, tmp_path)
    first, again, other, seed = tiles(40), tiles(40), tiles(40 + len(DRAWN)), tiles(40, seed=4)
    assert all(np.array_equal(first[0][name], again[0][name]) for name in "abc")
    assert not any(
        np.array_equal(first[0][name], different[0][name]) for different in (other, seed) for name in "abc"
    )


@needs_cc
def test_kinds_do_what_their_names_say(tmp_path):
    tiles = Tiles("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", tmp_path)

    def results(kind, tiles_of_a_kind=40):
        codes = np.concatenate([tiles(tile, DRAWN.index(kind))[1].ravel() for tile in range(tiles_of_a_kind)])
        return codes & 0x7FFF

    assert (results("special_each") >= 0x7C00).mean() > 0.5
    assert (results("near_overflow") == 0x7C00).mean() > 0.05
    assert ((results("subnormal_result") > 0) & (results("subnormal_result") < 0x400)).mean() > 0.3
    assert (results("zeros") == 0).mean() > 0.4
    assert (results("narrow") < 0x7C00).all() and len(np.unique(results("narrow"))) > 2000
    operands, _, _ = tiles(1, DRAWN.index("one_hot"))
    assert ((operands["a"] & 0x7FFF != 0).sum(axis=1) <= 1).all()


@needs_cc
def test_results_of_both_signs(tmp_path):
    """A unit that holds its sum in two's complement has another end below zero."""
    tiles = Tiles(HMMA, tmp_path)
    for kind in DRAWN:
        codes = np.concatenate([tiles(tile, DRAWN.index(kind))[1].ravel() for tile in range(40)])
        finite = codes[(codes & 0x7FFFFFFF != 0) & (codes & 0x7F800000 != 0x7F800000)]
        assert len(finite) == 0 or 0.25 < (finite >> 31).mean() < 0.75, kind


@needs_cc
def test_a_campaign_refutes_the_layouts_that_few_recorded_tiles_leave(tmp_path):
    """Of an instruction with few recorded tiles; its campaign on the GPU had these tiles (seed 1) without
    a mismatch."""
    name = "wgmma.mma_async.sp.sync.aligned.m64n32k64.f32.e4m3.e4m3"
    tiles, found = Tiles(name, tmp_path), placement_faults.Report()
    placement_faults.plant_in(tiles.ins, captured.load_one("hopper", name), found)
    # A campaign takes A from shared memory.
    left = {(item.operand, item.fault) for item in found.unseen if item.operand != "a"}
    assert left
    made = [tiles(tile, seed=1)[:2] for tile in range(32)]
    operands = {key: np.stack([given[key] for given, _ in made]) for key in made[0][0]}
    found = placement_faults.Report()
    vector = captured.Captured(name, operands, np.stack([d for _, d in made]), ("campaign",) * len(made))
    placement_faults.plant_in(tiles.ins, vector, found)
    assert not left & {(item.operand, item.fault) for item in found.unseen}


@needs_cc
def test_exhaustive_tiles_take_every_pair_once(tmp_path):
    tiles = Tiles("wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e4m3", tmp_path)
    count = source.exhaustive_tiles(tiles.ins)
    seen = np.zeros((256, 256), int)
    for tile in range(count):
        operands, d, kind = tiles(tile, source.EXHAUSTIVE)
        assert kind == source.EXHAUSTIVE
        a, b = operands["a"][:, 0], operands["b"][0]
        seen[a[:, None], b[None, :]] += 1
        assert not operands["a"][:, 1:].any() and not operands["c"].any()
        assert np.array_equal(d, tiles.ins(**operands))
    assert (seen == 1).all()
    moved, last_c = tiles(count, source.EXHAUSTIVE)[0], tiles(4 * 32 * count, source.EXHAUSTIVE)[0]
    assert moved["b"][1].any() and not moved["b"][0].any()
    assert last_c["c"].any()


def test_exhaustive_needs_formats_that_fit():
    assert source.exhaustive_tiles(golden.instruction("hopper", HMMA)) == (1 << 32) // 128
    assert source.exhaustive_tiles(golden.instruction("hopper", FAMILIES[8])) is None
    assert source.exhaustive_tiles(golden.instruction("hopper", FAMILIES[9])) is None


@pytest.mark.parametrize("name", [HMMA, FAMILIES[5], FAMILIES[6], FAMILIES[9], FAMILIES[11]])
def test_layout_formulas_in_c_are_the_layouts(name):
    fragments = golden.instruction("hopper", name).fragments
    for layout in (fragments.a, fragments.b, fragments.d, fragments.metadata):
        if layout is None:
            continue
        places = layout.coordinates()
        for key in ("row", "col"):
            text = source.formula(layout, key)
            python = text.replace("/", "//").replace("&&", " and ").replace("||", " or ")
            for (lane, r, e), value in np.ndenumerate(places[key]):
                if places["active"][lane, r, e]:
                    assert eval(python, {"L": lane, "r": r, "e": e}) == value, (key, text)


@pytest.mark.parametrize("name", FAMILIES[-3:])
def test_blocks_are_below_and_next_to_one_another(name):
    """m8n8k4: every lane's element of D is a row and a column of its own block; c is another lane's where c
    is f16 and d f32."""
    ins = golden.instruction("hopper", name)
    unit = source.device_source(ins).source
    places = ins.fragments.d.coordinates()
    row, column = (
        re.search(rf"CAMPAIGN_D_{key}\(L, r, e\) (.*)", unit)[1].replace("/", "//").replace("&&", " and ")
        for key in ("ROW", "COLUMN")
    )
    seen = set()
    for (lane, r, e), block in np.ndenumerate(places["block"]):
        at = {"L": lane, "r": r, "e": e}
        found = eval(row, at), eval(column, at)
        assert found == (8 * block + places["row"][lane, r, e], 8 * block + places["col"][lane, r, e])
        seen.add(found)
    assert len(seen) == source.dots_of_tile(ins) == 4 * 64
    assert f"C_ELSEWHERE {int(name.endswith('f32.f16.f16.f16'))}\n" in unit
    assert source.exhaustive_tiles(ins) is None


def test_words_in_shared_memory_lie_as_the_descriptor_says():
    unit = source.device_source(
        golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n24k32.f32.e4m3.e4m3")
    ).source
    for name, rows in (("A", 64), ("B", 24)):
        place = re.search(rf"CAMPAIGN_{name}_PLACE\(i\) (.*)", unit)[1].replace("/", "//")
        for row in range(rows):
            # Core matrices of 8 rows x 16 bytes: 128 bytes apart along k, 256 along rows.
            for byte in range(0, 32, 4):
                expected = byte // 16 * 128 + row // 8 * 256 + row % 8 * 16 + byte % 16
                assert 4 * eval(place, {"i": row * 8 + byte // 4}) == expected


def test_instructions_without_a_campaign_are_refused():
    with pytest.raises(NoKernelError, match="no campaign"):
        source.device_source(next(ins for ins in golden.instructions("blackwell") if "tcgen05" in ins.name))


WIDE_OR_MIXED = [
    "wgmma.mma_async.sp.sync.aligned.m64n256k64.f32.e4m3.e4m3",
    "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
]


@pytest.mark.long
@needs_nvcc
@pytest.mark.parametrize("name", SCALED[:1])
def test_kernels_of_scaled_instructions_compile_to_the_instruction(name):
    ins = golden.instruction("rtx_blackwell", name)
    unit = source.device_source(ins)
    assert unit.shared_bytes <= 99 << 10
    cubin = toolchain.compile(unit.source, "sm_120a")
    if toolchain.find("nvdisasm") or toolchain.find("cuobjdump"):
        assert set(sass.matrix_instructions(toolchain.disassemble(cubin))) == set(ins.sass)


@needs_nvcc
@pytest.mark.parametrize(
    "name",
    long_after(
        1,
        [HMMA, "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", FAMILIES[9], *WIDE_OR_MIXED],
    ),
)
def test_kernels_compile_to_the_instruction(name):
    ins = golden.instruction("hopper", name)
    cubin = toolchain.compile(source.device_source(ins).source, "sm_90a")
    if toolchain.find("nvdisasm") or toolchain.find("cuobjdump"):
        assert set(sass.matrix_instructions(toolchain.disassemble(cubin))) == {
            name for name in ins.sass if "MMA" in name
        }


# The loop ---------------------------------------------------------------------------------------------------


class CountingBench:
    """Counts what it is asked to launch; `lost` launches are not counted,
    the one with `interrupt` ends in Ctrl-C.

    `counted`: that launch has run to its end all the same.
    """

    launch_seconds = 0.2

    def __init__(self, mismatches=0, lost=0, interrupt=None, counted=False):
        self.ins, self.sass, self.faults = golden.instruction("hopper", HMMA), ("HMMA.16816.F32",), {}
        self.mismatches, self.lost, self.interrupt, self.counted = mismatches, lost, interrupt, counted
        self.launches = []

    def launch(self, seed, first, tiles, kind):
        interrupted = len(self.launches) == self.interrupt
        if not interrupted or self.counted:
            self.launches.append((seed, first, tiles, kind))
        if interrupted:
            raise KeyboardInterrupt

    def counts(self):
        tiles = sum(tiles for _, _, tiles, _ in self.launches[self.lost :])
        return dict.fromkeys(source.COUNTS, 0) | {
            "dots": 128 * tiles,
            "other": 128 * tiles,
            "mismatches": self.mismatches * tiles,
        }

    def records(self, count):
        return [{"tile": i} for i in range(min(count, source.RECORDS))]


def test_a_campaign_checks_what_was_asked_for_in_one_piece():
    bench, said = CountingBench(), []
    outcome = run(
        bench,
        Plan(dots=1e8, seconds=60, seed=5, kind=2, first=70),
        lambda done, total: said.append((done, total)),
    )
    ends = [first + tiles for _, first, tiles, _ in bench.launches]
    assert [first for _, first, _, _ in bench.launches] == [70, *ends[:-1]]
    assert {(seed, kind) for seed, _, _, kind in bench.launches} == {(5, 2)}
    assert outcome.dots == 100_000_000 and outcome.next_tile == 70 + 781_250 == ends[-1]
    assert (
        said[-1] == (outcome.dots, outcome.dots)
        and outcome.kind == DRAWN[2]
        and outcome.results["other"] == outcome.dots
    )


def test_a_campaign_ends_with_its_time_or_ctrl_c():
    assert run(CountingBench(), Plan(dots=1e30, seconds=1e-9)).dots == 128 << 14
    for counted, dots in ((False, 128 << 14), (True, 128 * 65 << 14)):
        with pytest.raises(Interrupted) as stop:
            run(CountingBench(interrupt=1, counted=counted), Plan(dots=1e30, seconds=60))
        assert stop.value.outcome.dots == dots


def test_a_campaign_keeps_a_hundred_mismatches():
    outcome = run(CountingBench(mismatches=1), Plan(dots=1e6, seconds=60))
    assert outcome.mismatches == outcome.dots // 128 and len(outcome.records) == 100


def test_launches_that_count_too_little_are_an_error():
    with pytest.raises(DeviceError, match="counted 0 dot products, expected 1000064"):
        run(CountingBench(lost=1), Plan(dots=1e6, seconds=60))


# Reports ----------------------------------------------------------------------------------------------------


def outcome(first, last, **values):
    dots = 128 * (last - first)
    results = {"nan": dots // 2, "infinity": 0, "zero": 0, "subnormal": 0, "other": dots - dots // 2}
    given = {"records": [], "faults": {}, "kind": "all", "mismatches": 0} | values
    kind, mismatches = given.pop("kind"), given.pop("mismatches")
    return Outcome(
        HMMA, "hopper", ("HMMA.16816.F32",), 1, kind, first, last, dots, mismatches, 2.0, results, **given
    )


def test_reports_add_up_what_continues_and_come_back_from_the_file(tmp_path):
    pages = report.Report({"name": "NVIDIA H200", "driver": "580.159"}, "13.0.88", [outcome(0, 100)])
    pages.add(outcome(100, 300, mismatches=2, records=[{"tile": 7}, {"tile": 8}]))
    pages.add(outcome(0, 50, kind="tie"))
    pages.add(outcome(0, 50, faults={"floor": -126}, mismatches=9, records=[{"tile": 1}]))
    pages.write(tmp_path / "report.json")
    again = report.load(tmp_path / "report.json")
    assert again.data() == pages.data()
    assert [(old.dots, old.mismatches, old.seconds) for old in again.outcomes] == [
        (38400, 2, 4.0),
        (6400, 0, 2.0),
        (6400, 9, 2.0),
    ]
    assert again.outcomes[0].results["nan"] == 19200
    assert again.next_tile("hopper", HMMA, 1, "all", {}) == 300
    assert again.next_tile("hopper", HMMA, 2, "all", {}) == 0
    assert again.next_tile("hopper", HMMA, 1, "all", {"floor": -126}) == 50
    page = again.markdown()
    assert "NVIDIA H200, driver 580.159" in page and "5.120e+04 dot products, 11 mismatches" in page
    assert "fault floor = -126" in page and "50.00%" in page


def test_of_two_reports_each_series_comes_from_the_one_that_went_further(tmp_path):
    facts = {"name": "NVIDIA H200", "driver": "580.159"}
    mine = report.Report(facts, "13.0.88", [outcome(0, 300), outcome(0, 50, kind="tie")])
    theirs = report.Report(
        facts, "13.0.88", [outcome(0, 300), outcome(0, 80, kind="tie"), outcome(0, 9, kind="random")]
    )
    mine.write(tmp_path / "mine.json")
    theirs.write(tmp_path / "theirs.json")
    arguments = ["campaign", "--out", str(tmp_path / "mine.json"), "--merge", str(tmp_path / "theirs.json")]
    result = CliRunner().invoke(app, [*arguments, "--markdown", str(tmp_path / "mine.md")])
    assert result.exit_code == 0 and (tmp_path / "mine.md").exists()
    merged = [(old.kind, old.dots) for old in report.load(tmp_path / "mine.json").outcomes]
    assert merged == [("all", 38400), ("tie", 10240), ("random", 1152)]


def test_reports_of_other_devices_are_not_merged():
    mine, theirs = (
        report.Report({"name": name, "driver": "580"}, "13.0") for name in ("NVIDIA H200", "NVIDIA H100")
    )
    with pytest.raises(
        FileFormatError, match=r"report of NVIDIA H100, driver 580, nvcc 13\.0, expected NVIDIA H200"
    ):
        mine.merge(theirs)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", json.dumps({"format": 9, "device": {}, "compiler": "", "campaigns": []})]
)
def test_a_file_that_is_no_report_is_refused(text, tmp_path):
    file = tmp_path / "report.json"
    file.write_text(text)
    with pytest.raises(FileFormatError, match=r"report\.json"):
        report.load(file)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"dots": "many"}, "key 'dots' is 'many', expected a count"),
        ({"mismatches": -1}, "key 'mismatches' is -1"),
        ({"dots": True}, "key 'dots' is True"),
        ({"results": {"other": 5}}, "expected counts of nan, infinity, zero, subnormal, other"),
        ({"results": {}}, "expected counts of nan"),
        ({"results": dict.fromkeys(source.COUNTS[2:], 5)}, "expected counts that add up to 12800"),
        ({"first_tile": 101}, "counts contradict each other"),
        (
            {"next_tile": 10**9},
            "counts contradict each other: 12800 dot products, tiles from 0 to 1000000000 of 128",
        ),
        ({"mismatches": 12801}, "counts contradict each other"),
        (
            {"mismatches": 3},
            "counts contradict each other: 3 mismatches in 12800 dot products, 0 of them in 'records'",
        ),
        (
            {"records": [{"tile": 1}]},
            "counts contradict each other: 0 mismatches in 12800 dot products, 1 of them",
        ),
        ({"instruction": HMMA + "x"}, "unknown instruction"),
        ({"seconds": 1e999}, "Infinity is no number"),
        ({"seconds": -1.0}, "key 'seconds' is -1.0, expected a number"),
        ({"sass": [1]}, "key 'sass' or 'records'"),
        ({"strange": 1}, "keys differ from a campaign's: strange"),
    ],
)
def test_a_report_that_contradicts_itself_is_not_merged(change, said, tmp_path):
    good, bad, out = (tmp_path / name for name in ("good.json", "bad.json", "out.json"))
    pages = report.Report({}, "13.0", [outcome(0, 100)])
    pages.write(good)
    bad.write_text(json.dumps({**pages.data(), "campaigns": [{**pages.data()["campaigns"][0], **change}]}))
    result = CliRunner().invoke(
        app, ["campaign", "--out", str(out), "--merge", str(good), "--merge", str(bad)]
    )
    assert result.exit_code == 2 and not out.exists()
    assert said in result.output and len(result.output.splitlines()) == 1 and "bad.json: " in result.output


def test_the_committed_reports_are_sound():
    for path in (Path(__file__).parents[3] / "docs" / "campaigns").glob("*.json"):
        assert report.load(path).outcomes


# The command ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["HMMA.16816.F33"], "HMMA.16816.F32"),
        (["nothing*"], "no instruction of hopper with a campaign matches 'nothing*'; there are such as "),
        (["wgmma*m64n65k*"], "matches 'wgmma*m64n65k*'; nearest: wgmma"),
        ([HMMA, "--dots", "nan"], "--dots"),
        ([HMMA, "--dots", "0"], "--dots"),
        ([HMMA, "--seed", "-1"], "--seed"),
        ([HMMA, "--jobs", "0"], "--jobs"),
        ([HMMA, "--out", "no/such/folder.json"], "no/such/folder.json: cannot be written"),
        (["--merge", "x.json"], "argument '--out' is missing: --merge writes the merged report there"),
        ([HMMA, "--kind", "ties"], "unknown stimulus kind 'ties'"),
        ([HMMA, "--fault", "floor"], "expected KEY=VALUE"),
        ([], "argument 'NAME' is missing"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, said, monkeypatch, capsys):
    from golden.cli.app import main

    monkeypatch.setattr("sys.argv", ["mmagold", "campaign", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_the_command_is_there():
    result = CliRunner().invoke(app, ["campaign", "--help"])
    assert result.exit_code == 0 and "exhaustive" in result.output


def test_what_has_a_campaign():
    families = {}
    for ins in golden.instructions("hopper"):
        families.setdefault(ins.family, []).append(ins)
    assert all(kernels.supported(members[0]) for members in families.values())
    for family in families:
        assert all(source.supported(ins) for ins in families[family][::5])
        for ins in (families[family][0], max(families[family], key=lambda ins: ins.m * ins.n * ins.k)):
            assert source.device_source(ins).shared_bytes <= 227 << 10


@pytest.mark.parametrize("family", ["wmma_f16_mixed", "mma_f16", "wgmma_f16"])
def test_an_element_of_c_and_of_d_has_one_number_in_a_lane(family):
    for ins in (ins for ins in golden.instructions("hopper") if ins.family == family):
        c, d = ins.fragments.c.coordinates(), ins.fragments.d.coordinates()
        for key in ("row", "col"):
            assert np.array_equal(c[key].reshape(c[key].shape[0], -1), d[key].reshape(d[key].shape[0], -1))


def test_a_gpu_is_not_asked_for_kinds_that_it_does_not_draw():
    for kind in KINDS:
        if kind in DRAWN:
            check_plan(False, {}, KINDS.index(kind))
        else:
            check_plan(True, {}, KINDS.index(kind))
            with pytest.raises(OperandError, match=f"does not draw the kind '{kind}'"):
                check_plan(False, {}, KINDS.index(kind))
    assert set(KINDS) > set(DRAWN)
