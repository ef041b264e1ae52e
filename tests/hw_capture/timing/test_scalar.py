"""Chains of scalar instructions: which are right, which the compiler folds, and what is written of them; a
GPU is stood in for by known numbers."""

import csv
import io

import numpy as np
import pytest
from long_run import long_after

from golden.catalog import timing as tables
from golden.catalog.timing import Key
from hw_capture.errors import DeviceError, SassError
from hw_capture.kernels import toolchain
from hw_capture.timing import clocks, loops
from hw_capture.timing.records import Conditions
from hw_capture.timing.scalar import bench, chains, checking, instructions, programs, report
from hw_capture.timing.scalar.bench import Point, Result, Timed

needs_nvcc = pytest.mark.skipif(
    toolchain.find("nvcc") is None or (toolchain.find("nvdisasm") or toolchain.find("cuobjdump")) is None,
    reason="nvcc and a disassembler (nvdisasm or cuobjdump) are not installed",
)


def _code(*lines: str) -> loops.Code:
    inner = ("CS2R R2, SR_CLOCKLO", *lines, "CS2R R4, SR_CLOCKLO")
    return loops.Code(list(enumerate((*inner, "EXIT"))), {})


OVERHEAD = ("UIADD3 UR4, UR4, -0x1, URZ", "ISETP.NE.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x20")
ADD = "IADD3 R5, R6, R5, RZ"


def _round(short: tuple[str, ...], long: tuple[str, ...]) -> checking.Round:
    return checking.per_round(_code(*short, *OVERHEAD), _code(*long, *OVERHEAD), (4, 8))


def test_a_round_is_what_the_longer_kernel_holds_more() -> None:
    found = _round((ADD,) * 4, (ADD,) * 8)
    assert found.kinds == {"IADD3": 1} and found.sass == {"IADD3": 1.0}
    assert checking.check(found, {"IADD3": 1}, {}, False, False).extra == {}


@pytest.mark.parametrize(
    ("short", "long", "said"),
    [
        ((ADD,) * 2, (ADD,) * 4, "a round holds 0.5 IADD3"),  # two adds in one
        ((ADD,), (ADD,), "a round holds nothing"),  # the chain is one instruction
        ((ADD,) * 8, (ADD,) * 16, "a round holds 2 IADD3"),  # doubled
        (("LEA R5, R5, R6, 0x1",) * 4, ("LEA R5, R5, R6, 0x1",) * 8, "a round holds 1 LEA"),  # merged
        ((ADD, "POPC R5, R5") * 4, (ADD, "POPC R5, R5") * 8, "a round holds 1 IADD3, 1 POPC"),
    ],
)
def test_a_folded_chain_is_refused(short: tuple[str, ...], long: tuple[str, ...], said: str) -> None:
    with pytest.raises(SassError, match=said):
        checking.check(_round(short, long), {"IADD3": 1}, {}, False, False)


def test_the_instruction_between_has_to_be_there() -> None:
    """A LOP3 that ptxas merged with the next LOP3 leaves as many as the instruction alone has."""
    logic = "LOP3.LUT R5, R5, R6, R7, 0x96, !PT"
    found = _round((logic,) * 4, (logic,) * 8)
    with pytest.raises(SassError, match="a round holds 1 LOP3"):
        checking.check(found, {"LOP3": 1}, {"LOP3": 1}, False, False)
    both = _round((logic, "IMAD R5, R5, R8, R9") * 4, (logic, "IMAD R5, R5, R8, R9") * 8)
    assert checking.check(both, {"LOP3": 1}, {"IMAD": 1}, False, False).extra == {"IMAD": 1}


def test_one_operation_on_several_pipelines_is_one_kind() -> None:
    lines = (
        "IMAD.IADD R1, R2, 0x1, R3",
        "IADD3.X R1, R2, R3, RZ",
        "IMAD.X R1, RZ, 0x1, R3",
        "VIADD R1, R2, 0x1",
    )
    assert {checking.kind(line) for line in lines} == {"IADD3"}
    for name in ("HFMA2.MMA", "HFMA2"):  # a constant, and halves
        assert checking.kind(f"{name} R3, -RZ, RZ, 0, 0") == "MOV"
        assert checking.kind(f"{name} R3, R4, R5, R6") == "HFMA2"
    assert (
        checking.kind("IMAD.MOV.U32 R3, RZ, RZ, -R4")
        == "IADD3"
        != checking.kind("IMAD.MOV.U32 R3, RZ, RZ, R4")
    )
    assert checking.kind("@P0 MUFU.EX2 R3, R4") == "MUFU.EX2"


def test_the_list_holds_every_row_of_table_v() -> None:
    mine = {operation.name for operation in instructions.operations()} | {"mov.u32 clock"}
    rows = {figure.instruction for figure in tables.load("abdelkhalik_a100") if figure.table == "V"}
    spelled = {name for row in rows for name in tables.spellings(row)}
    assert spelled <= mine and len(mine) == len(instructions.operations()) + 1


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "link", "sass"),
    long_after(
        1,
        [
            ("add.u32", "crossed", {"IADD3": 1}),  # x + b + c would be one IADD3
            ("and.b32", "prmt", {"LOP3": 1}),
            ("setp.ne.s32", "direct", {"ISETP": 1}),
            ("min.u32", "crossed", {"VIMNMX": 1}),
            ("mul24.lo.u32", "both", {"IMAD": 1, "PRMT": 2}),
            ("popc.b64", "halves", {"POPC": 2, "IADD3": 1}),
            ("fma.rn.f64", "direct", {"DFMA": 1}),
            ("tanh.approx.f32", "direct", {"MUFU.TANH": 1}),
        ],
    ),
)
def test_compiled_chains(name: str, link: str, sass: dict[str, int]) -> None:
    built = programs.build(instructions.get(name), "sm_90a")
    assert built.plan.link == link
    assert {kind: n for kind, n in built.alone.items() if kind != "MOV"} == sass


@pytest.mark.long
@needs_nvcc
@pytest.mark.parametrize(
    ("target", "name", "sass"),
    [
        ("sm_75", "min.u32", {"IMNMX": 1}),
        ("sm_80", "redux.sync.add.u32", {"REDUX": 1}),
        ("sm_86", "min.f16x2", {"HMNMX2": 1}),
        ("sm_89", "cvt.rn.f16x2.e4m3x2", {"F2FP": 1}),  # PTX 8.1
        ("sm_100a", "rcp.approx.f32", {"FSETP": 2, "SEL": 2, "FMUL": 2, "MUFU.RCP": 1}),  # constants: HFMA2
        ("sm_103a", "add.bf16", {"HFMA2": 1}),
        ("sm_110a", "min.u32", {"IMNMX": 1}),
        ("sm_120a", "rcp.approx.ftz.f64", {"MUFU.RCP64H": 1}),
    ],
)
def test_compiled_chains_of_other_targets(target: str, name: str, sass: dict[str, int]) -> None:
    """The SASS as spec/sass has it."""
    built = programs.build(instructions.get(name), target)
    assert {kind: n for kind, n in built.alone.items() if kind != "MOV"} == sass


@needs_nvcc
def test_a_plain_chain_of_adds_is_seen_to_be_folded() -> None:
    operation = instructions.get("add.u32")
    kernels = [chains.chain(operation, "direct", n, 1, f"direct_{n}") for n in (4, 8)]
    cubin = toolchain.assemble(chains.source(kernels, "sm_90a"), "sm_90a")
    codes = loops.kernels(toolchain.disassemble(cubin))
    with pytest.raises(SassError):
        found = checking.per_round(codes["direct_4"], codes["direct_8"], (4, 8))
        checking.check(found, {"IADD3": 1}, {}, False, False)


@needs_nvcc
def test_three_of_a_sequence_that_the_compiler_makes_one_are_said() -> None:
    (built,) = bench.build([instructions.get("add.f16")], "sm_90a")
    said = "changed by the compiler: 1 HFMA2 between the clock reads, expected 3 HFMA2"
    assert built.changed == {"independent_3": said} and list(built.straight) == ["dependent_3"]


@needs_nvcc
def test_what_the_compiler_removes_is_said() -> None:
    (found,) = bench.build([instructions.get("bar.warp.sync")], "sm_90a")
    said = "changed by the compiler: a round holds nothing, the instruction alone is nothing"
    assert found == ("bar.warp.sync", said)


@needs_nvcc
def test_what_a_target_lacks_is_said() -> None:
    (found,) = bench.build([instructions.get("add.bf16")], "sm_80")
    said = "refused by the compiler: ptxas: line 26: Feature 'add.bf16' requires .target sm_90 or higher"
    assert found == ("add.bf16", said)


def _built(name: str, link: str, extra: dict[str, int]) -> programs.Built:
    plan = programs.Plan(link, (16, 32), (1, 2), "prmt" if link == "mad" else "")
    found = checking.Round({"IADD3": 1.0}, {"IADD3": 1}, extra, "0123456789abcdef")
    return programs.Built(instructions.get(name), plan, b"", {"IADD3": 1}, found, {"independent_3": []})


@pytest.fixture
def result() -> Result:
    """An add in 4 cycles, a mad in 4.5, and an and of 4 cycles with an additional mad."""
    found = Result(Conditions({"name": "NVIDIA Test"}, {}, {}, 1980.0, {"fns.b32": "changed: nothing"}))
    for name, link, extra, cycles in (
        ("add.u32", "crossed", {}, 4.0),
        ("mad.lo.u32", "direct", {}, 4.5),
        ("and.b32", "mad", {"IMAD": 1}, 8.5),
    ):
        points = [Point(1, 1, cycles, cycles, cycles + 0.1), Point(2, 32, 32.0, 32.0, 32.0)]
        found.timed.append(Timed(_built(name, link, extra), points, straight={"clock64": 2, "clock32": 9}))
    for n in (1, 2, 3):
        found.timed[0].straight[f"independent_{n}"] = 2 + 3 + 2 * n
        found.timed[0].built.straight[f"independent_{n}"] = ["CS2R R2, SR_CLOCKLO", "CS2R R4, SR_CLOCKLO"]
    found.timed[2].built.changed["independent_3"] = "changed by the compiler: 1 LOP3"
    return found


def test_additional_instructions_are_subtracted(result: Result) -> None:
    assert [result.completion(timed) for timed in result.timed] == [
        (4.0, "crossed"),
        (4.5, "direct"),
        (4.0, "mad"),
    ]
    result.timed[2].other = 8.0  # a prmt between, whose own latency nobody measured
    assert result.completion(result.timed[2]) == (4.0, "mad")
    del result.timed[1]
    assert result.completion(result.timed[1]) is None


def test_the_written_file_reads_as_tables(result: Result, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(toolchain, "require", lambda *tools: "nvcc")
    monkeypatch.setattr(toolchain, "version", lambda tool: "13.0.88")
    path = tmp_path / "ours.yaml"
    path.write_text(report.yaml_text(result, "hopper", 5))
    found = {figure.key: figure for figure in tables.load(path)}
    assert found[Key("and.b32", "", "completion_latency")].value == 4.0
    assert found[Key("add.u32", "", "issue_interval")].value == 2.0
    assert found[Key("add.u32", "", "throughput", 32, 2)].value == 64.0
    assert found[Key("add.u32", "x 1", "cycles_per_instruction")].value == 7.0
    assert found[Key("add.u32", "", "cycles_independent")].value == 3.0
    assert found[Key("mov.u32 clock", "clock 32", "cycles_per_instruction")].value == 9.0
    changed = found[Key("fns.b32", "", "completion_latency")]
    assert changed.value is None and changed.text == "changed: nothing"
    for quantity in ("cycles_independent", "cycles_per_instruction"):
        assert found[Key("and.b32", "", quantity)].text == "changed by the compiler: 1 LOP3"
        assert Key("mad.lo.u32", "", quantity) not in found
    rows = list(csv.DictReader(io.StringIO(report.csv_text(result))))
    assert len(rows) == 6 and {row["link"] for row in rows} == {"crossed", "direct", "mad"}


@pytest.mark.parametrize(
    ("after", "rates", "said"),
    [
        ({"clocks_event_reasons.active": "0x0000000000000004"}, (1980, 1980), "throttled by the power limit"),
        ({"clocks_event_reasons.active": "0x0000000000000060"}, (1980, 1980), "the temperature and the temp"),
        ({}, (1980.0, 1755.0), "the SM clock changed from 1980 to 1755 MHz while measuring"),
    ],
)
def test_a_throttled_clock_ends_the_measurement(
    after: dict[str, str], rates: tuple[float, float], said: str
) -> None:
    idle = {"clocks_event_reasons.active": "0x0000000000000001"}
    clocks.check_steady(idle, {}, (1980.0, 1979.0))
    with pytest.raises(DeviceError, match=said):
        clocks.check_steady(idle, after, rates)


def test_a_clock_that_was_not_written_is_no_time() -> None:
    taken = np.array([[[5, 105], [7, 110]], [[5, 105], [0, 0]]], np.uint64)
    assert clocks.elapsed("i1_16", taken[:1]) == [105]
    with pytest.raises(DeviceError, match="i1_16: it gave no time for some of its 2 warps"):
        clocks.elapsed("i1_16", taken)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_floats_stay_between_one_and_two(kind: str) -> None:
    words = bench.operands(kind).view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind])
    first, second = np.split(words, 2)
    assert first.min() >= 1 and first.max() <= 2 and len(np.unique(first)) > 900
    assert second.min() >= 0.5 and second.max() <= 1
    np.testing.assert_allclose(first.astype(float) * second, 1, rtol=1.01 * float(np.finfo(words.dtype).eps))


@pytest.mark.parametrize(
    ("kind", "numbers", "said"),
    [
        ("f32", [1.0, -2.5], ""),
        ("f32", [1.0, np.inf], "infinite"),
        ("f32", [np.nan, np.nan, np.inf], "NaN"),
        ("f64", [0.0, 1.0], "zero"),
        ("f32", [1e-39, 1.0], "subnormal"),
        ("f64", [1e-39, 1.0], ""),
        ("f64", [1e-310, 1.0], "subnormal"),
        ("f16", [1.0, 6e-5], "subnormal"),
        ("f16", [1.0, 6.2e-5], ""),
    ],
)
def test_what_a_chain_has_come_to(kind: str, numbers: list[float], said: str) -> None:
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    words = np.full((len(numbers), 8 // dtype().itemsize), np.nan, dtype)
    words[:, 0] = numbers
    assert bench.worst(words.view(np.uint64)[:, 0], kind, 8 * dtype().itemsize) == said


def test_both_halves_of_a_packed_register_are_looked_at() -> None:
    pair = np.array([[1.0, np.inf, 0, 0]], np.float16).view(np.uint64)[:, 0]
    assert bench.worst(pair, "f16", 16) == "" and bench.worst(pair, "f16", 32) == "infinite"


def _followed(name: str) -> float:
    """The number that a chain of f32 has come to after 2048 rounds, by its PTX and the operands that its
    kernel loads."""
    operation = instructions.get(name)
    kernel = chains.chain(operation, "direct", 2, 1, "i1")
    words = bench.operands("f32").view(np.float32)
    held = {register: words[offset // 4] for register, offset in kernel.loads.items()}
    rounds = {"mul": lambda a, b: a * b, "div": lambda a, b: a / b, "sub": lambda a, b: a - b}
    rounds |= {"fma": lambda a, b, c: a * b + c, "sqrt": np.sqrt, "rcp": lambda a: np.float32(1) / a}
    for _ in range(1024):
        for step in kernel.steps:
            target, *sources = step.split(maxsplit=1)[1].rstrip(";").split(", ")
            held[target] = rounds[name.split(".")[0]](*(held[source] for source in sources))
    return float(held["x0"])


@pytest.mark.parametrize(
    "name", ["div.rn.f32", "mul.rn.f32", "fma.rn.f32", "sub.f32", "sqrt.rn.f32", "rcp.rn.f32"]
)
def test_chains_of_floats_stay_normal(name: str) -> None:
    assert 1e-3 < abs(_followed(name)) < 1e4


def test_a_chain_of_quotients_of_two_dividends_would_leave_the_range() -> None:
    """What was measured once: 427 cycles of the subroutine instead of 58."""
    words = bench.operands("f32").view(np.float32)
    x = words[0]
    with np.errstate(all="ignore"):
        for turn in range(2048):
            x = words[2 * 1024 * (1 + turn % 2)] / x
    assert not 1e-3 < abs(x) < 1e4
