"""Chains and flows of memory: what their loops hold, and what is written of them; a GPU is stood in for by
known numbers."""

import csv
import io
import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from golden.catalog import timing as tables
from golden.catalog.timing import Key
from hw_capture.errors import DeviceError, SassError
from hw_capture.kernels import toolchain
from hw_capture.timing import loops
from hw_capture.timing.memory import bench, programs, report
from hw_capture.timing.memory.bench import Result, Sample, Stream
from hw_capture.timing.records import Conditions

needs_nvcc = pytest.mark.skipif(
    toolchain.find("nvcc") is None or (toolchain.find("nvdisasm") or toolchain.find("cuobjdump")) is None,
    reason="nvcc and a disassembler (nvdisasm or cuobjdump) are not installed",
)
CHAIN = next(chain for chain in programs.CHAINS if chain.instruction == "ld.global.ca.u64")
FLOW = next(flow for flow in programs.FLOWS if flow.level == "L1")


def _code(inside: list[str], before: tuple[str, ...] = ()) -> loops.Code:
    lines = [*before, "CS2R R2, SR_CLOCKLO", *inside, "CS2R R4, SR_CLOCKLO", "EXIT"]
    return loops.Code(list(enumerate(lines)), {})


def test_a_loop_holds_its_loads() -> None:
    load = "LDG.E.64.STRONG.SM R2, desc[UR4][R2.64]"
    assert bench.check(CHAIN, _code([load] * programs.UNROLL)) == {"LDG": programs.UNROLL}
    with pytest.raises(SassError, match=r"ld.global.ca.u64: a turn holds 15 x LDG, expected 16 x LDG"):
        bench.check(CHAIN, _code([load] * (programs.UNROLL - 1)))


def test_a_flow_whose_loads_left_the_loop_is_refused() -> None:
    load = "LDG.E.128.STRONG.SM R4, desc[UR4][R2.64]"
    assert bench.check(FLOW, _code([load] * programs.FLOW))
    with pytest.raises(SassError, match=r"a turn holds 0 x LDG[.]E[.]128, expected 8"):
        bench.check(FLOW, _code([], (load,) * programs.FLOW))
    with pytest.raises(SassError, match="stands outside of the loop, too"):
        bench.check(FLOW, _code([load] * programs.FLOW, (load,)))


@needs_nvcc
def test_every_loop_compiles_and_holds_its_instruction() -> None:
    codes = loops.kernels(toolchain.disassemble(bench.build("sm_90a").cubin))
    for operator in bench.LEVELS:  # with the chase, the loads that bring its data near
        names = codes[f"ld_global_{operator}_u64"].names()
        assert sum(name.startswith("LDG") for name in names) > programs.UNROLL


@pytest.mark.parametrize("unit", [bench.LINE, bench.PAGE])
def test_a_chase_goes_through_all_words_once(unit: int) -> None:
    """The generator 421 k + 11 has the full period for every number of words that is swept."""
    for size in bench.sizes(4 * unit if unit == bench.PAGE else bench.SMALLEST, 4096 * unit):
        count = size // unit
        seen, k = set(), 0
        for _ in range(count):
            seen.add(k)
            k = (421 * k + 11) % count
        assert len(seen) == count and k == 0


def test_sizes_rise_by_quarters_of_an_octave() -> None:
    found = bench.sizes()
    assert found[0] == 1 << 10 and found[-1] == 8 << 30 and len(found) == 4 * 23 + 1
    assert all(math.isclose(b / a, 1.25, rel_tol=0.1) for a, b in pairwise(found))


def _runs(cycles: int, nanoseconds: int) -> list[np.ndarray]:
    start = np.array([10, 20, 30, 40])[:, None]
    block = np.concatenate([start, start + cycles, start + 5, start + 5 + nanoseconds], axis=1)
    return [block.astype(np.int64)] * 3


def test_bytes_in_a_cycle_and_in_a_second() -> None:
    stream = bench.flowed("ld", "L2", _runs(1000, 500), 64_000, 2)
    assert stream.per_sm == 128.0 and stream.gigabytes == pytest.approx(4 * 64_000 / 530)
    with pytest.raises(DeviceError, match="ld, L2: it gave no time for some of its 4 blocks"):
        bench.flowed("ld", "L2", [np.zeros((4, 4), np.int64)], 64_000, 1)


def test_too_little_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimpleNamespace(empty=lambda *_: 4096, free_memory=lambda: (2 << 30) + (32 << 20))
    monkeypatch.setattr(bench._Bench, "_local", lambda self: iter(()))
    with pytest.raises(DeviceError, match="the GPU has 32 MiB of memory to spare, expected at least 64"):
        bench._Bench(gpu, None, 5)
    gpu.free_memory = lambda: 12 << 30
    assert bench._Bench(gpu, None, 5).size == 10 << 30


def test_the_written_file_reads_as_tables(tmp_path, monkeypatch) -> None:
    facts = {"name": "NVIDIA Test", "memory_clock_khz": 2_000_000}
    result = Result(
        Conditions(facts, {}, {}, 1980.0, {"ld.global by size, 8 B": "too little memory"}), bus_bits=5120
    )
    for size, cycles in ((16 << 10, 33.0), (4 << 20, 270.0), (1 << 30, 700.0)):
        for operator in bench.LEVELS:
            name = f"ld.global.{operator}.u64"
            result.samples.append(Sample(name, "", size, cycles, cycles, cycles + 1))
    result.samples.append(Sample("atom.shared.add.u32", "1 lane", None, 60.0, 60.0, 60.0))
    result.samples.append(Sample("ld.global.cg.u32", "", 4 << 20, 276.0, 276.0, 276.0))
    result.streams += [Stream("ld.shared.v4.u32", "shared", 127.0, 30_000), Stream("ld", "DRAM", 12.0, 2_400)]
    result.lines = [[300] * 50 + [500] * 50, [230 + k % 20 for k in range(-19, 81)]]
    result.far = {"L2": [272.0, 283.0, 295.0, 281.0]}
    monkeypatch.setattr(toolchain, "require", lambda *tools: "nvcc")
    monkeypatch.setattr(toolchain, "version", lambda tool: "13.0.88")
    path = tmp_path / "ours.yaml"
    path.write_text(report.yaml_text(result, "hopper", 5))
    found = {figure.key: figure for figure in tables.load(path)}
    levels = {
        name: found[Key(f"ld.global.{name}.u64", "", "completion_latency")].value for name in bench.LEVELS
    }
    assert levels == {"ca": 33.0, "cg": 270.0, "cv": 700.0}
    assert found[Key("ld.global.ca.u64", "", "latency", size=1 << 30)].value == 700.0
    assert found[Key("ld.global.cg.u32", "", "completion_latency")].value == 276.0
    assert found[Key("atom.shared.add.u32", "1 lane", "completion_latency")].value == 60.0
    assert found[Key("ld.shared.v4.u32", "shared", "throughput")].value == 127.0
    assert found[Key("ld", "DRAM, in theory", "chip_throughput")].value == 2560.0
    first, second, again = (
        found[Key("ld.global.cg.u64", f"L2, {part}", "completion_latency")]
        for part in ("first load, group 1 of 2", "first load, group 2 of 2", "loaded again")
    )
    assert (first.value, first.text, second.value) == (300.0, "50 % of the lines, 300 to 300", 500.0)
    assert (again.value, again.text) == (239.5, "100 % of the lines, 230 to 249")
    by_place = [
        found[Key("ld.global.u64", f"L2, {which} of 4 multiprocessors", "completion_latency")].value
        for which in ("least", "median", "most")
    ]
    assert by_place == [272.0, 282.0, 295.0]
    rows = list(csv.DictReader(io.StringIO(report.csv_text(result))))
    assert len(rows) == 11 + 200 + 4 and rows[-5]["variant"] == "line 99, again"
    assert (rows[-1]["variant"], rows[-1]["cycles"]) == ("L2, multiprocessor 3", "281.000")


def test_lines_are_split_only_where_there_is_a_gap() -> None:
    rng = np.random.default_rng(1)
    one = [int(n) for n in rng.normal(300, 12, 16384)]
    assert report.groups(one) == [sorted(one)]
    heaps = [sorted(int(n) for n in rng.normal(middle, 5, 4000)) for middle in (297, 328, 450)]
    found = report.groups([n for heap in heaps for n in heap])
    assert len(found) == 3 and [abs(len(part) - 4000) < 40 for part in found] == [True] * 3
    # A few lines far away are no group.
    assert len(report.groups(one + [900] * 100)) == 1
    # 12 apart with a width of 12: two heaps in truth, but no gap between them.
    assert len(report.groups([int(n) for m in (300, 312) for n in rng.normal(m, 12, 8000)])) == 1


class _Gpu:
    """Answers every launch with the same cycles, and remembers where each kernel was sent."""

    sm_count, memory_bus_bits = 132, 5120

    def __init__(self) -> None:
        self.launches: list[tuple[str, tuple[int, ...]]] = []
        self.filled: set[int] = set()

    def empty(self, *_: int) -> int:
        return 1 << 40

    def free_memory(self) -> int:
        return 12 << 30

    def fill(self, *_: int) -> None:
        """Nothing is there."""

    write = fill

    def get(self, name: str):
        def launch(*arguments, grid, block, shared=0):
            numbers = tuple(int(n) for n in arguments)
            self.launches.append((name, numbers))
            if name == "fill":
                self.filled.add(numbers[0])

        return launch

    def download(self, _buffer: int, shape: tuple[int, ...], _dtype: str) -> np.ndarray:
        return np.array([1, 1 + 64 * 1024], np.uint64)[: shape[0]]


def test_small_chases_lie_at_many_places_and_bring_their_own_lines_near(monkeypatch) -> None:
    monkeypatch.setattr(bench._Bench, "_local", lambda self: iter(()))
    gpu = _Gpu()
    chased = bench._Bench(gpu, gpu, 5)
    (small, *_), places = list(chased.strides()), set()
    assert small == Sample("ld.global.ca.u64", "stride 8 B", 32, 64.0, 64.0, 64.0)
    for name, (first, size, buffer, apart, *_rest) in gpu.launches:
        if name == "ld_global_ca_u64" and size:
            assert buffer in gpu.filled and buffer <= first < buffer + size and apart >= bench.LINE
            places.add(buffer)
    assert len(places) > bench.BASES
    assert {
        "ld.global by stride 65536 B, 17179869184 B",
        "ld.global by stride 16384 B, 17179869184 B",
    } <= set(chased.left_out)


def test_what_leaves_the_multiprocessor_is_timed_at_many_lines(monkeypatch) -> None:
    monkeypatch.setattr(bench._Bench, "_local", lambda self: iter(()))
    gpu = _Gpu()
    list(bench._Bench(gpu, gpu, 5).short())
    for name, there in (
        ("atom_global_add_u32", 3),
        ("cp_async_bulk", 6),
        ("st_global_u32_and_ld_global_cg_u32", 1),
    ):
        firsts = [numbers[0] for kernel, numbers in gpu.launches if kernel == name]
        assert len(firsts) == there * bench.PLACES and len(set(firsts)) > bench.PLACES // 2, name
    assert {numbers[0] for kernel, numbers in gpu.launches if kernel == "atom_shared_add_u32"} == {0}


def test_every_multiprocessor_is_asked(monkeypatch) -> None:
    monkeypatch.setattr(bench._Bench, "_local", lambda self: iter(()))
    gpu = _Gpu()
    written: list[tuple[int, ...]] = []
    monkeypatch.setattr(gpu, "write", lambda _buffer, words: written.append(tuple(words.tolist())))
    asked = bench._Bench(gpu, gpu, 5)
    assert asked.everywhere() == {level: [8.0] * 132 for level in ("L2", "DRAM")}
    assert written == [(0, 0, number, 0) for number in range(132)] * 2
    names = [name for name, _ in gpu.launches if name != "fill"]
    assert names == ["ld_global_cg_u64_on_one"] * 132 + ["flow_l2", "ld_global_cv_u64_on_one"] * 132
    monkeypatch.setattr(gpu, "download", lambda *_: np.zeros(2, np.uint64))
    with pytest.raises(DeviceError, match="no block ran on multiprocessor 0"):
        asked.everywhere()


def test_a_chase_beyond_the_l2_meets_no_line_of_one_before(monkeypatch) -> None:
    monkeypatch.setattr(bench._Bench, "_local", lambda self: iter(()))
    gpu = _Gpu()
    list(bench._Bench(gpu, gpu, 5).caches())
    chases = [(at, numbers) for at, (name, numbers) in enumerate(gpu.launches) if name.endswith("_u64")]
    far = [at for at, (_, near, *_) in chases if not near]
    assert far and all(gpu.launches[at - 1][0] == "flow_l2" for at in far)
