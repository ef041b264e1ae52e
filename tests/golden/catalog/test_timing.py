"""Spot numbers of spec/timing against the printed tables, and what a wrong file says."""

import re
from pathlib import Path

import pytest
from long_run import long_after

import golden
from golden.catalog import timing as tables
from golden.catalog.timing import Key
from golden.errors import SpecError, UnknownNameError
from hw_capture.timing.compare import pairs, reason, without

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
BOARDS = ("hopper_h100", "hopper_h200")
PUBLISHED = (
    *("abdelkhalik_a100", "gpu_benches_h100", "gpu_benches_h200", "h100_logs", "luo_h800"),
    *("sun_a100", "sun_rtx2080ti", "sun_rtx3070ti"),
)


def _values(name: str) -> dict[Key, float | None]:
    return {figure.key: figure.value for figure in tables.load(name)}


@pytest.mark.parametrize(
    ("name", "instruction", "variant", "quantity", "warps", "ilp", "value"),
    [
        ("sun_a100", F16, "", "completion_latency", None, None, 24.7),
        ("sun_a100", F16, "", "throughput", 8, 2, 1004.2),
        (
            "sun_a100",
            "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
            "",
            "throughput",
            8,
            2,
            14643.4,
        ),
        ("sun_a100", "mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "", "throughput", 4, 3, 2403.9),
        ("sun_a100", "ldmatrix.x4", "", "latency", 8, 1, 32.6),
        ("sun_a100", "ld.shared.u64", "8-way", "completion_latency", None, None, 37.0),
        ("sun_a100", "mma_permuted", "2048", "kernel_cycles", None, None, 303227),
        ("sun_rtx3070ti", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "", "latency", 8, 1, 64.6),
        ("sun_rtx2080ti", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "", "throughput", 8, 2, 1012.6),
        ("abdelkhalik_a100", "mul24.hi.u32", "", "cycles_per_instruction", None, None, 9),
        ("abdelkhalik_a100", "fns.b32", "", "cycles_per_instruction", None, None, 79),
        (
            "abdelkhalik_a100",
            "wmma.mma.sync.aligned.row.row.m16n16k16.s32.u8.u8.s32",
            "",
            "issue_interval",
            None,
            None,
            8,
        ),
        ("h100_logs", F16, "", "throughput", 8, 4, 1365),
        (
            "luo_h800",
            "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
            "RS",
            "issue_interval",
            None,
            None,
            13,
        ),
    ],
)
def test_spot_numbers(name, instruction, variant, quantity, warps, ilp, value) -> None:
    assert _values(name)[Key(instruction, variant, quantity, warps, ilp)] == value


def test_table_sizes_as_printed() -> None:
    found = tables.load("sun_a100")
    rows = {
        number: len({f.instruction for f in found if f.table == number})
        for number in ("III", "VI", "VIII", "IX", "X")
    }
    assert rows == {"III": 13, "VI": 8, "VIII": 5, "IX": 3, "X": 2}
    assert len([f for f in tables.load("abdelkhalik_a100") if f.table == "V"]) == 110
    ranges = [f for f in tables.load("abdelkhalik_a100") if f.instruction == "sqrt.rn.f32"]
    assert [(f.low, f.high, f.value) for f in ranges] == [(190, 235, None)]


@pytest.mark.parametrize("name", PUBLISHED)
def test_latency_and_throughput_of_a_point_agree(name: str) -> None:
    """Throughput is warps x ILP x work / latency: a slip in typing either number would show."""
    found = tables.load(name)
    latency = {(f.table, f.key): f.value for f in found if f.quantity == "latency"}
    printed_wrong = {("VI", 4, 3, "m16n8k16"), ("VII", 4, 2, "m16n8k64")}
    for figure in found:
        same = latency.get(
            (figure.table, Key(figure.instruction, figure.key.variant, "latency", figure.warps, figure.ilp))
        )
        size = re.search(r"m(\d+)n(\d+)k(\d+)", figure.instruction)
        if figure.quantity != "throughput" or same is None or size is None:
            continue
        work = int(size[1]) * int(size[2]) * int(size[3])
        expected = figure.warps * figure.ilp * work / same
        close = abs(figure.value / expected - 1) < 0.04
        assert close or (figure.table, figure.warps, figure.ilp, size[0]) in printed_wrong, figure


@pytest.mark.parametrize("name", PUBLISHED)
def test_instructions_exist_in_the_model(name: str) -> None:
    for figure in tables.load(name):
        if "mma." in figure.instruction and not figure.instruction.endswith(".cu"):
            golden.instruction(figure.architecture, figure.instruction)


def test_errors_name_line_and_key(tmp_path: Path) -> None:
    head = "source: s\ndevice: d\narchitecture: ampere\ntables:\n  - table: I\n    title: t\n    rows:\n"
    for row, message in (
        ("- {instruction: x}", r"bad.yaml:8: the row holds none of value"),
        ("- {instruction: x, value: 3}", "names no 'quantity'"),
        ("- {instruction: x, points: [[8, 4, 3]]}", "expected .warps, ILP, latency, throughput."),
        ("- {instruction: x, complete: 3}", "none of value"),
        ("- {instruction: x, ways: {2: fast}}", "expected"),
        ("- {instruction: x, sizes: [[0, 3]]}", "key 'sizes' holds .0, 3., expected .bytes, cycles."),
    ):
        path = tmp_path / "bad.yaml"
        path.write_text(f"{head}      {row}\n")
        with pytest.raises(SpecError, match=message):
            tables.load(path)
    with pytest.raises(UnknownNameError, match="sun_a100"):
        tables.load("sun_a10")


@pytest.mark.parametrize(
    ("instruction", "variant", "quantity", "warps", "ilp", "published"),
    [
        (F16, "", "completion_latency", None, None, 24.1),
        (F16, "", "throughput", 8, 4, 1365),
        ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "", "completion_latency", None, None, 16.0),
        ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "", "throughput", 8, 4, 1024),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "", "throughput", 8, 4, 683),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "", "throughput", 8, 4, 2724),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "SS", "issue_interval", None, None, 128),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "RS", "issue_interval", None, None, 128),
        ("ldmatrix.x4", "", "completion_latency", None, None, 29.3),
    ],
)
def test_both_boards_stand_within_3_percent(instruction, variant, quantity, warps, ilp, published) -> None:
    for board in BOARDS:
        ours = _values(board)[Key(instruction, variant, quantity, warps, ilp)]
        assert ours == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize("board", BOARDS)
def test_a_board_against_everything_published_on_hopper(board: str) -> None:
    """All but the one that docs/timing.md explains."""
    ours = tables.load(board)
    found = pairs(ours, [*tables.load("h100_logs"), *tables.load("luo_h800")])
    outside = {(p.theirs.instruction, p.theirs.quantity) for p in found if not p.within(0.03)}
    assert len(found) == 61
    assert outside == {("ld.shared.u32", "completion_latency")}


@pytest.mark.parametrize("board", long_after(1, BOARDS))
def test_every_difference_from_a_published_figure_has_its_reason(board: str) -> None:
    ours = [figure for part in tables.PARTS for figure in tables.load(tables.of_board(board, part))]
    for name in ("abdelkhalik_a100", "h100_logs", "luo_h800", "gpu_benches_h100", "gpu_benches_h200"):
        known = tables.differences(name)
        found = pairs(ours, tables.load(name))
        assert [p.theirs.key for p in found if not p.within(0.03) and not p.reason(known)] == []
        alone = without(ours, tables.load(name))
        assert [
            figure.key for figure, said in alone if not (said or reason(known, figure.key, ours[0]))
        ] == []
        assert len(alone) == (35 if name == "abdelkhalik_a100" else 0)


def test_measurements_as_printed_are_compared() -> None:
    """On an H200: the paper's loop at 4 warps, ILP 3 has its 27.4 cycles; one store has its 19; a reading of
    the clock, 2 cycles, is in what stands between two."""
    ours = [
        *tables.load("hopper_h200"),
        *tables.load("hopper_h200_sun"),
        *tables.load("hopper_h200_abdelkhalik"),
    ]
    sun = {p.theirs.key: p for p in pairs(ours, tables.load("sun_a100"))}
    point = sun[Key(F16, "", "latency", 4, 3)]
    assert (point.ours.value, point.printed.value, point.theirs.value) == (24.81, 27.47, 27.4)
    stored = {p.theirs.instruction: p.printed for p in pairs(ours, tables.load("abdelkhalik_a100"))}
    assert stored["st.shared.u64"].value == 19
    values = _values("hopper_h200_abdelkhalik")
    assert values[Key("nothing", "between two clocks", "latency")] == 2
    assert values[Key("ld.shared.u64", "1 lane", "completion_latency")] == pytest.approx(23.0, rel=0.02)
    chain = Key("ld.global.cg.u64", "the chain, behind stores of 4194304 B", "completion_latency")
    cached = _values("hopper_h200_memory")[Key("ld.global.cg.u64", "", "completion_latency")]
    assert values[chain] == pytest.approx(cached, rel=0.02)


def test_the_loop_without_its_end_is_ours_of_the_board() -> None:
    """The plain loop of the file that has both is that of the board's own recording to 1 %, up to 4 warps."""
    both, board = _values("hopper_h200_sun"), _values("hopper_h200")
    same = [key for key in both if key in board and (key.warps or 0) <= 4]
    assert len(same) > 1000 and all(both[key] == pytest.approx(board[key], rel=0.01) for key in same)
    assert {20, 24} <= {key.warps for key in both if key not in board}


def test_a_range_is_met_within_it_and_by_its_nearer_end() -> None:
    """Table V has `[135-170]` for dp4a, `[2-18]` for sqrt.approx.f32 and `[190-235]` for sqrt.rn.f32."""
    found = pairs(tables.load("hopper_h100_scalar"), tables.load("abdelkhalik_a100"))
    ratios = {p.theirs.instruction: (p.ours.value, p.ratio) for p in found if p.theirs.value is None}
    assert ratios["sqrt.approx.f32"] == (17.67, 1)
    assert ratios["sqrt.rn.f32"] == (56.33, pytest.approx(56.33 / 190))
    assert ratios["testp.normal.f32"] == (10, pytest.approx(10 / 6))


@pytest.mark.parametrize("board", BOARDS)
def test_scalar_instructions(board: str) -> None:
    """Four cycles for most, eight for f64, and what the compiler changed is words."""
    found = {f.key: f for f in tables.load(f"{board}_scalar")}
    for name, cycles in (
        ("fma.rn.f32", 4),
        ("mad.lo.u32", 4),
        ("and.b32", 4),
        ("fma.rn.f64", 8),
        ("add.u32", 5),
    ):
        assert found[Key(name, "", "completion_latency")].value == pytest.approx(cycles, rel=0.01)
    assert found[Key("tanh.approx.f32", "", "issue_interval")].value == pytest.approx(8, rel=0.01)
    assert found[Key("fns.b32", "", "completion_latency")].text.startswith("changed by the compiler: ")


def test_a_difference_speaks_of_its_instructions(tmp_path: Path) -> None:
    path = tmp_path / "theirs.yaml"
    path.write_text(
        "source: s\ndevice: d\narchitecture: ampere\ndifferences:\n"
        "  - {architecture: hopper, instructions: ['add.*'], quantities: [latency],\n"
        "     variants: [L2], devices: ['NVIDIA H2*'], reason: because}\n"
        "tables:\n  - {table: I, title: t, quantity: latency, rows: [{instruction: add.u32, value: 2}]}\n"
    )
    (one,) = tables.differences(path)
    assert one.explains(Key("add.u32", "L2", "latency"), "hopper", "NVIDIA H200") and tables.load(path)
    for key, architecture, device in (
        (Key("sub.u32", "L2", "latency"), "hopper", "NVIDIA H200"),
        (Key("add.u32", "L1", "latency"), "hopper", "NVIDIA H200"),
        (Key("add.u32", "L2", "throughput"), "hopper", "NVIDIA H200"),
        (Key("add.u32", "L2", "latency"), "ada", "NVIDIA H200"),
        (Key("add.u32", "L2", "latency"), "hopper", "NVIDIA H100"),
    ):
        assert not one.explains(key, architecture, device)
    path.write_text(path.read_text().replace("reason: because", "because: 1"))
    with pytest.raises(SpecError, match=r"theirs.yaml:5: .*reason"):
        tables.differences(path)
