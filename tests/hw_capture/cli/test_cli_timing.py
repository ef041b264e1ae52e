"""`mmagold profile`, `bench-gpu` and `timing`: what they print and how they fail."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from long_run import long_after
from typer.testing import CliRunner

from golden.catalog.timing import PARTS, of_board
from golden.cli.app import app
from hw_capture.cli import ablation, timing_run
from hw_capture.cli.timing import nvcc_target
from hw_capture.cli.timing_groups import Measured, Memory
from hw_capture.cli.timing_run import Run
from hw_capture.errors import DeviceError
from hw_capture.gpu import device
from hw_capture.kernels import toolchain
from hw_capture.kernels.build import first_target
from hw_capture.timing import bench as matrix_bench
from hw_capture.timing import clocks
from hw_capture.timing.ablation import machine_code
from hw_capture.timing.memory import bench as memory_bench
from hw_capture.timing.scalar import bench as scalar_bench

RUN = CliRunner(env={"COLUMNS": "200"})


def test_profile() -> None:
    text = RUN.invoke(app, ["profile", "--samples", "64", "--chains", "2", "--length", "3"])
    assert text.exit_code == 0 and "1.89e-08" in text.stdout and "N = 2" in text.stdout
    found = json.loads(
        RUN.invoke(app, ["profile", "--samples", "64", "--chains", "2", "--length", "3", "--json"]).stdout
    )
    assert (
        found["architecture"] == "ampere"
        and len(found["chain"]["tf32"]["low"]) == 3
        and found["mismatches"] is None
    )


def test_profile_of_an_architecture_without_the_types() -> None:
    result = RUN.invoke(app, ["profile", "--arch", "turing", "--samples", "8"])
    assert result.exit_code == 2 and result.stderr.startswith("mmagold: ") and "bf16" in result.stderr


def test_timing_show() -> None:
    text = RUN.invoke(app, ["timing", "show", "sun_a100", "--only", "ldmatrix.x4"])
    assert text.exit_code == 0 and "29.3" in text.stdout and "2206.02874" in text.stdout
    rows = json.loads(
        RUN.invoke(app, ["timing", "show", "abdelkhalik_a100", "--only", "sqrt.rn.f32", "--json"]).stdout
    )
    assert [(row["low"], row["high"]) for row in rows] == [(190, 235)]
    lines = RUN.invoke(app, ["timing", "show", "abdelkhalik_a100", "--only", "sqrt.rn.f32", "--csv"]).stdout
    (row,) = csv.DictReader(lines.splitlines())
    assert (row["instruction"], row["low"], row["high"], row["unit"]) == (
        "sqrt.rn.f32",
        "190.0",
        "235.0",
        "cycles",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    long_after(
        3,
        [
            (
                ["show", "sun_a100", "--only", "ldmatrix.x5"],
                "no instruction of sun_a100 matches 'ldmatrix.x5'; nearest: ldmatrix.x",
            ),
            (
                ["show", "sun_a100", "--only", "qqq", "--json"],
                "no instruction of sun_a100 matches 'qqq'; there are such as ",
            ),
            (
                ["plot", "--out", "pictures", "--only", "ldmatrix.x5"],
                "no instruction with points matches 'ldmatrix.x5'; nearest: ",
            ),
            (
                ["show", "sun_a100", "--csv", "--json"],
                "Invalid value: --json and --csv were both given, expected one",
            ),
            (["plot", "--out", "file"], "file: cannot be made: file is a file, expected a folder"),
            (["compare", "--with", "empty.yaml"], "empty.yaml:4: no table holds a figure"),
            (["compare", "--ours", "empty.yaml"], "empty.yaml:4: no table holds a figure"),
            (["compare", "--ours", "broken.yaml"], "broken.yaml:2: not valid YAML"),
        ],
    ),
)
def test_what_cannot_be_shown_is_one_line(arguments: list[str], said: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.yaml").write_text("source: x\ndevice: x\narchitecture: hopper\ntables: []\n")
    (tmp_path / "broken.yaml").write_text("source: [x\n")
    (tmp_path / "file").write_text("")
    before = set(tmp_path.iterdir())
    result = RUN.invoke(app, ["timing", *arguments])
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith(f"mmagold: {said}") and len(result.stderr.splitlines()) == 1
    assert set(tmp_path.iterdir()) == before


def test_timing_compare_as_json() -> None:
    rows = json.loads(RUN.invoke(app, ["timing", "compare", "--with", "luo_h800", "--json"]).stdout)
    assert rows and all(
        row["ours"] > 0 < row["theirs"] and row["device"] == "NVIDIA H800 PCIe" for row in rows
    )


def test_a_repeated_experiment_stands_for_a_figure_that_we_have_no_other_of() -> None:
    """One store between two clocks: 19 cycles printed, 19 here; the chase of the L2 has both."""
    called = ["timing", "compare", "--with", "abdelkhalik_a100"]
    rows = {row["instruction"]: row for row in json.loads(RUN.invoke(app, [*called, "--json"]).stdout)}
    store, chase = rows["st.shared.u64"], rows["ld.global.cg.u64"]
    assert store["as_printed"] == store["ours"] == store["theirs"] == 19
    assert (chase["ours"], chase["as_printed"], chase["theirs"]) == (280.78, 229.53, 200)
    text = RUN.invoke(app, called).stdout
    (line,) = [line for line in text.splitlines() if line.startswith("st.shared.u64 ")]
    assert line.split()[1:5] == ["completion", "latency", "19", "19"] and "no figure of ours: st." not in text


def test_timing_plot_refuses_other_formats(tmp_path) -> None:
    result = RUN.invoke(app, ["timing", "plot", "--out", str(tmp_path), "--format", "gif"])
    assert result.exit_code == 2 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    long_after(
        4,
        [
            (
                ["--only", "ldmatrix.x5"],
                "no measured instruction of hopper matches 'ldmatrix.x5'; nearest: ldmatrix.x1",
            ),
            (
                ["--group", "scalar", "--only", "mad.lo.u33", "--compile-only"],
                "no timed scalar instruction matches 'mad.lo.u33'; nearest: mad.lo.u32",
            ),
            (["--group", "memory", "--only", "ld.global", "--compile-only"], "memory is measured whole"),
            (["--group", "memory", "--compile-only", "--arch", "turing"], "sm_75 has no clusters"),
            (["--group", "scalars"], "'scalars' is not one of 'matrix', 'wmma', 'scalar', 'memory'"),
            (["--out", "no/such/folder.yaml"], "no/such/folder.yaml: cannot be written"),
            ([], "name a file"),
            (["--compile-only", "--arch", "cdna3", "--only", "ld.shared"], "nvcc"),
        ],
    ),
)
def test_bench_usage(arguments: list[str], message: str) -> None:
    result = RUN.invoke(app, ["bench-gpu", *arguments])
    assert result.exit_code == 2 and message in result.output


def test_the_default_target_is_that_of_the_chip_the_catalog_knows() -> None:
    """Of Blackwell the B200's, for `bench-gpu` as for `capture`."""
    assert nvcc_target("blackwell") == first_target("blackwell") == "sm_100a"


def test_bench_without_pycuda_leaves_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    result = RUN.invoke(app, ["bench-gpu", "--out", str(tmp_path / "ours.yaml"), "--only", "ldmatrix.x1"])
    assert (
        result.exit_code == 2 and "PyCUDA is not installed" in result.stderr and not list(tmp_path.iterdir())
    )


class _Card:
    """A GPU that is there, and no more."""

    def __init__(self, capability: str, free: int = 40 << 30) -> None:
        self.capability, self.free = capability, free
        self.memory_bus_bits = 5120

    def __enter__(self) -> _Card:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def facts(self) -> dict[str, str]:
        return {"name": "NVIDIA Test", "compute_capability": self.capability}

    def load(self, cubin: bytes) -> _Card:
        return self

    def empty(self, *_: int) -> int:
        return 4096

    def free_memory(self) -> int:
        return self.free


def _one_line(arguments: list[str], said: str, out: Path) -> None:
    """A file is asked for; what comes is exit status 2, one line, and no file."""
    result = RUN.invoke(app, [*arguments, "--out", str(out)])
    words = " ".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == 2 and said in words, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 and "internal error" not in words
    assert not out.exists()


_GROUPS = [
    ["bench-gpu", "--only", "ldmatrix.x1"],
    ["bench-gpu", "--group", "scalar", "--only", "fma.rn.f32"],
    ["bench-gpu", "--group", "memory"],
    ["bench-kernels", "--only", "mma_baseline"],
]


@pytest.mark.parametrize("group", _GROUPS)
def test_another_architecture_is_one_line(group: list[str], tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(device, "open", lambda number: _Card("8.6"))
    _one_line(group, "(sm_86), expected NVIDIA Hopper (sm_90a)", tmp_path / "ours.yaml")


@pytest.mark.parametrize("group", _GROUPS)
def test_no_nvcc_is_one_line(group: list[str], tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(device, "open", lambda number: _Card("9.0"))
    monkeypatch.setattr(toolchain, "find", lambda tool: None)
    _one_line(group, "install", tmp_path / "ours.yaml")


@pytest.mark.parametrize("group", _GROUPS)
def test_no_gpu_is_one_line(group: list[str], tmp_path, monkeypatch) -> None:
    def none(number: int) -> _Card:
        raise DeviceError("no CUDA GPU in this machine")

    monkeypatch.setattr(device, "open", none)
    _one_line(group, "no CUDA GPU in this machine", tmp_path / "ours.yaml")


def test_too_little_memory_is_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(device, "open", lambda number: _Card("9.0", free=(2 << 30) + (1 << 20)))
    monkeypatch.setattr(memory_bench, "build", lambda target: memory_bench.Built(b""))
    monkeypatch.setattr(memory_bench, "Watch", lambda gpu: SimpleNamespace(conditions=None))
    monkeypatch.setattr(memory_bench._Bench, "_local", lambda self: iter(()))
    _one_line(
        ["bench-gpu", "--group", "memory"], "the GPU has 1 MiB of memory to spare", tmp_path / "ours.yaml"
    )


@pytest.mark.parametrize("group", [*_GROUPS[:2], _GROUPS[3]])
def test_a_throttled_clock_is_one_line(group: list[str], tmp_path, monkeypatch) -> None:
    """Whatever was measured: it is not written."""
    hot = {
        "clocks_event_reasons.active": "0x0000000000000020",
        "clocks.sm": "1200 MHz",
        "clocks.max.sm": "1980 MHz",
    }
    monkeypatch.setattr(device, "open", lambda number: _Card("9.0"))
    for place, watched in ((matrix_bench, "build"), (scalar_bench, "build"), (machine_code, "build")):
        monkeypatch.setattr(place, watched, lambda *_: (item for item in ()))
    monkeypatch.setattr(clocks, "state", lambda: hot)
    monkeypatch.setattr(clocks, "clock_rate", lambda gpu, kernel: 1200.0)
    monkeypatch.setattr(toolchain, "compile", lambda *_: b"")
    monkeypatch.setattr(_Card, "get", lambda self, name: None, raising=False)
    monkeypatch.setattr(_Card, "compute_capability", (9, 0), raising=False)
    _one_line(
        group, "the SM clock is throttled by the temperature (1200 MHz of 1980 MHz)", tmp_path / "ours.yaml"
    )


@pytest.fixture
def recorded(monkeypatch) -> dict[str, str]:
    """What stands in for every part's measurement: part by file, in order; "scalar" finds a slow clock."""
    written: dict[str, str] = {}

    def record(part: timing_run.Part, run: Run) -> None:
        if part == "scalar":
            raise DeviceError("the SM clock is throttled by the power limit")
        run.write("yaml", "csv")
        written[run.out.name] = part

    monkeypatch.setattr(device, "open", lambda number: _Card("9.0"))
    monkeypatch.setattr(timing_run, "_record", record)
    return written


def test_a_board_is_recorded_into_the_files_that_the_tables_know(recorded, tmp_path) -> None:
    """One part that fails is named, and does not hinder the others."""
    result = RUN.invoke(app, ["bench-board", str(tmp_path / "hopper_x")])
    assert result.exit_code == 2 and result.stderr.splitlines() == [
        "scalar: the SM clock is throttled by the power limit",
        "mmagold: 1 of 5 parts were not recorded whole; again with --part scalar",
    ]
    parts = [part for part in PARTS if part != "scalar"]
    assert recorded == {f"{of_board('hopper_x', part)}.yaml": part for part in parts}
    for name in recorded:
        assert (tmp_path / name).read_text() == "yaml"
        assert gzip.decompress((tmp_path / name).with_suffix(".csv.gz").read_bytes()) == b"csv"
    assert len(list(tmp_path.iterdir())) == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no/such/folder"], "no/such/folder.yaml: cannot be written"),
        (["hopper_x.yaml"], "expected a name without suffix"),
        (["."], "expected a name without suffix"),
        ([""], "expected a name without suffix"),
        (["hopper_x", "--part", "s4"], "'s4' is not one of 'matrix', 'wmma', 'scalar', 'memory', 'kernels'"),
        (["hopper_x", "--arch", "ampere"], "(sm_90), expected NVIDIA Ampere"),
    ],
)
def test_a_board_that_cannot_be_recorded_is_one_line(
    arguments, said, recorded, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUN.invoke(app, ["bench-board", *arguments])
    assert result.exit_code == 2 and said in " ".join(result.stderr.split()), result.stderr
    assert len(result.stderr.splitlines()) == 1 and not recorded and not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", list(timing_run.Part))
def test_every_part_of_a_board_is_measured(part, monkeypatch) -> None:
    found = []
    monkeypatch.setattr(ablation, "record", lambda chosen, run, sizes: found.append(len(chosen)))
    monkeypatch.setattr(Measured, "record", lambda self, run, progress: found.append(len(self._chosen)))
    monkeypatch.setattr(Memory, "record", lambda self, run, progress: found.append(0))
    timing_run._record(part, Run("hopper", 0, 5, Path("x.yaml"), None))
    assert found == [{"matrix": 440, "wmma": 208, "scalar": 285, "memory": 0, "kernels": 26}[part]]


def test_timing_rerun(tmp_path: Path) -> None:
    text = "source: s\ndevice: d\narchitecture: hopper\ntables:\n  - {table: I, title: t, rows: [%s]}\n"
    for name, cycles in (("first", (24.0, 100.0)), ("second", (24.1, 90.0))):
        rows = f"{{instruction: mma, completion: {cycles[0]}, points: [[8, 4, {cycles[1]}, 50]]}}"
        (tmp_path / f"{name}.yaml").write_text(text % rows)
    paths = [str(tmp_path / "first.yaml"), str(tmp_path / "second.yaml")]
    result = RUN.invoke(app, ["timing", "rerun", *paths])
    assert result.exit_code == 0 and "2 of 3 figures within 1 %" in result.stdout
    found = {
        row["kind"]: row for row in json.loads(RUN.invoke(app, ["timing", "rerun", *paths, "--json"]).stdout)
    }
    assert found["completion latency"]["within"] == 1
    late = found["latency, more than 4 warps"]
    assert (late["within"], late["worst"], late["warps"], late["ilp"]) == (0, pytest.approx(0.9), 8, 4)
    nothing = RUN.invoke(app, ["timing", "rerun", paths[0], "luo_h800"])
    assert nothing.exit_code == 2 and "no figure in common" in nothing.stderr


def test_timing_export(tmp_path: Path) -> None:
    out = tmp_path / "trace.config"
    result = RUN.invoke(app, ["timing", "export", "accel-sim", "--from", "hopper_h200", "--out", str(out)])
    assert result.exit_code == 0 and "left out: -trace_opcode_latency_initiation_int: no " in result.stderr
    assert "\n-trace_opcode_latency_initiation_tensor 24,6\n" in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["acel-sim"], "unknown simulator 'acel-sim', expected one of accel-sim, gpgpu-sim; nearest: accel"),
        (["gpgpu-sim", "--from", "abdelkhalik_a100"], "no option of gpgpu-sim has a figure in abdelkhalik"),
        (["accel-sim", "--from", "hopper_h20"], "no timing tables 'hopper_h20'"),
        (["accel-sim", "--from", "hopper_h200", "--from", "sun_a100"], "expected the figures of one device"),
    ],
)
def test_timing_export_says_what_is_wrong(arguments: list[str], said: str) -> None:
    result = RUN.invoke(app, ["timing", "export", *arguments])
    assert result.exit_code == 2 and said in " ".join(result.stderr.replace("│", " ").split())
