"""`mmagold profile`, `bench-gpu` and `timing`: what they print and how they fail."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden.cli.app import app

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
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


@pytest.mark.parametrize(
    ("arguments", "said"),
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
        (["plot", "--out", "file"], "file: cannot be made: File exists"),
        (["compare", "--with", "empty.yaml"], "empty.yaml:4: no table holds a figure"),
        (["compare", "--ours", "empty.yaml"], "empty.yaml:4: no table holds a figure"),
        (["compare", "--ours", "broken.yaml"], "broken.yaml:2: not valid YAML"),
    ],
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


def test_timing_compare() -> None:
    text = RUN.invoke(app, ["timing", "compare"])
    assert text.exit_code == 0 and "62 of 66 figures within 3 %" in text.stdout
    strict = RUN.invoke(app, ["timing", "compare", "--with", "luo_h800", "--tolerance", "0.01"])
    assert strict.exit_code == 0 and "31 figures within 0.01 %" in strict.stdout
    unknown = RUN.invoke(app, ["timing", "compare", "--with", "sun_a10"])
    assert unknown.exit_code == 2 and "sun_a100" in unknown.stderr


def test_timing_compare_as_json() -> None:
    rows = json.loads(RUN.invoke(app, ["timing", "compare", "--with", "luo_h800", "--json"]).stdout)
    assert rows and all(
        row["ours"] > 0 < row["theirs"] and row["device"] == "NVIDIA H800 PCIe" for row in rows
    )


def test_timing_plot_of_another_file(tmp_path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = RUN.invoke(
        app, ["timing", "plot", "--ours", "sun_a100", "--only", "ldmatrix.x4", "--out", str(tmp_path)]
    )
    other = RUN.invoke(
        app, ["timing", "plot", "--ours", "luo_h800", "--only", "ldmatrix.x4", "--out", str(tmp_path)]
    )
    assert (done.exit_code, other.exit_code) == (0, 2) and [path.name for path in tmp_path.iterdir()] == [
        "ldmatrix.x4.svg"
    ]


def test_timing_plot_refuses_other_formats(tmp_path) -> None:
    result = RUN.invoke(app, ["timing", "plot", "--out", str(tmp_path), "--format", "gif"])
    assert result.exit_code == 2 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
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
        (["--group", "scalars"], "'scalars' is not one of 'matrix', 'scalar', 'memory'"),
        (["--out", "no/such/folder.yaml"], "no/such/folder.yaml: cannot be written"),
        ([], "name a file"),
        (["--compile-only", "--arch", "cdna3", "--only", "ld.shared"], "nvcc"),
    ],
)
def test_bench_usage(arguments: list[str], message: str) -> None:
    result = RUN.invoke(app, ["bench-gpu", *arguments])
    assert result.exit_code == 2 and message in result.output


def test_bench_without_pycuda_leaves_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    result = RUN.invoke(app, ["bench-gpu", "--out", str(tmp_path / "ours.yaml"), "--only", "ldmatrix.x1"])
    assert (
        result.exit_code == 2 and "PyCUDA is not installed" in result.stderr and not list(tmp_path.iterdir())
    )


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
