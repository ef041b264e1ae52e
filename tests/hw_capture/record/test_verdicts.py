"""Status 1 is "not equal", 0 is "equal, and something was compared": commands on a GPU that fails, stands
still or lies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.catalog import timing as tables
from golden.cli.app import app
from golden.errors import FileFormatError, UnknownNameError
from golden.files import lock
from golden.model.instruction import Instruction
from golden.unit import FunctionUnit
from golden.vectors import captured
from hw_capture.campaign import report, run
from hw_capture.campaign.source import COUNTS
from hw_capture.cli import machines
from hw_capture.errors import CompileError, DeviceError, HwError, SassError
from hw_capture.gpu import device
from hw_capture.kernels import build, toolchain
from hw_capture.kernels.build import Built
from hw_capture.record import runner, unit
from hw_capture.record.capture import Options, capture
from hw_capture.timing import bench, clocks
from hw_capture.timing.records import Conditions

HMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
IMMA = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
OTHER = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
H200 = {"name": "NVIDIA H200", "compute_capability": "9.0", "cuda": "13.0", "driver": "580.159"}
A100 = H200 | {"name": "NVIDIA A100", "compute_capability": "8.0"}


def call(*arguments: str, status: int) -> Any:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == status, (done.output, done.exception)
    if status == 2:
        assert len(done.stderr.splitlines()) == 1 and "internal error" not in done.stderr
    return done


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine with an H200 and nvcc, as far as the commands ask."""
    card = SimpleNamespace(facts=lambda: H200)
    monkeypatch.setattr(device, "open", lambda index=0: nullcontext(card))
    monkeypatch.setattr(toolchain, "require", lambda *tools: tools[0])
    monkeypatch.setattr(toolchain, "find", lambda tool: None)
    monkeypatch.setattr(toolchain, "version", lambda tool: "13.0.88")
    return card


# Results ----------------------------------------------------------------------------------------------------


def test_arrays_of_another_shape_or_type_are_not_compared() -> None:
    expected = np.zeros((1, 16, 8), np.uint32)
    for found in (np.zeros((0, 16, 8), np.uint32), np.zeros((16, 8), np.uint32), expected.astype(np.int64)):
        with pytest.raises(DeviceError, match=r"x: .* expected \(1, 16, 8\) of uint32"):
            runner.differing(found, expected, "x")
    assert (
        runner.differing(expected, expected, "x") == 0
        and runner.differing(expected ^ 1, expected, "x") == 128
    )


# capture ----------------------------------------------------------------------------------------------------


class Gpu:
    """Answers as the model does, but for `answer` of the results and the bytes that lay there."""

    def __init__(self, answer: Any = lambda d, fill: d) -> None:
        self.answer = answer

    def facts(self) -> dict[str, Any]:
        return H200

    def run(self, built: Built, operands: dict[str, Any], fill: int) -> Any:
        return self.answer(built.instruction(**operands), fill)


def half_written(d: Any, fill: int) -> Any:
    d.view(np.uint8)[..., 5:] = fill
    return d


def compiled(**wrong: Any) -> Any:
    """Builds groups; with `wrong` the kernels of HMMA have these attributes."""

    def builder(groups: Any, target: str, *_: Any) -> Iterator[list[Built]]:
        for group in groups:
            yield [
                Built(ins, form, b"", "run_0", ("HMMA R0;",), **(wrong if ins.name == HMMA else {}))
                for ins, form in group
            ]

    return builder


def recorded(
    monkeypatch: pytest.MonkeyPatch, folder: Path, status: int, gpu: Any = None, **wrong: Any
) -> Any:
    monkeypatch.setattr(runner, "GpuRunner", lambda card: gpu or Gpu())
    monkeypatch.setattr(build, "build", compiled(**wrong))
    only = f"^({HMMA}|{OTHER})$".replace(".", r"\.")
    return call("capture", "--arch", "hopper", "--out", str(folder), "--only", only, status=status)


def test_capture_ends_with_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "2 recorded" in recorded(monkeypatch, tmp_path / "a", 0).stdout
    assert (
        "0 recorded, 2 already there (not compared again" in recorded(monkeypatch, tmp_path / "a", 0).stdout
    )
    unlike = recorded(monkeypatch, tmp_path / "b", 1, Gpu(lambda d, fill: d ^ 1))
    assert "differs from the model" in unlike.stdout and "2 recorded" in unlike.stdout
    strange = recorded(monkeypatch, tmp_path / "c", 1, error="compiled to 1 x FADD", strange=True)
    assert "1 recorded" in strange.stdout
    refused = recorded(monkeypatch, tmp_path / "d", 2, error="nvcc: error: no")
    assert (
        refused.stderr == f"mmagold: {HMMA} could not be recorded\n" and "nvcc: error: no" in refused.stdout
    )


def test_results_that_a_kernel_never_wrote_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that holds the same before both runs would look like an answer, twice the same."""
    done = recorded(monkeypatch, tmp_path, 2, Gpu(half_written))
    assert "results differ between two runs" in done.stdout and "were not written" in done.stdout
    assert not list(tmp_path.glob("*.npz"))
    done = recorded(monkeypatch, tmp_path / "empty", 2, Gpu(lambda d, fill: d[:0]))
    assert "(0, 16, 8) results of uint32, expected" in done.stderr


def test_kernels_that_never_came_are_failures(tmp_path: Path) -> None:
    chosen = [
        golden.instruction("hopper", name)
        for name in (HMMA, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    ]

    def nothing(groups: Any, target: str) -> Iterator[list[Built]]:
        yield from ()

    def one_form(groups: Any, target: str) -> Iterator[list[Built]]:
        yield [Built(chosen[1], "shared", b"", "run_0")]

    failed = capture(chosen, tmp_path, Gpu(), Options(), builder=nothing).failed
    assert failed == [(ins.name, "no kernel was built") for ins in chosen]
    failed = capture(chosen[1:], tmp_path, Gpu(), Options(), builder=one_form).failed
    assert failed == [(chosen[1].name, "no kernel of the form registers was built")]


def test_two_captures_into_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock.only_writer(tmp_path, tmp_path / ".capturing"):
        assert "another run of mmagold adds to it" in recorded(monkeypatch, tmp_path, 2).stderr
    recorded(monkeypatch, tmp_path, 0)
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz", ".json"}, "the lock is gone"


def test_an_entry_keeps_the_tools_that_built_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [golden.instruction("hopper", name) for name in (HMMA, OTHER)]
    for version, ins in zip(("13.0.88", "13.1.2"), chosen, strict=True):
        monkeypatch.setattr(toolchain, "find", lambda tool: tool if tool == "nvcc" else None)
        monkeypatch.setattr(toolchain, "version", lambda tool, version=version: version)
        capture([ins], tmp_path, Gpu(), Options(), builder=compiled())
    manifest = captured.read_manifest_file(tmp_path / "manifest.json")
    assert manifest["tools"] == {"nvcc": "13.1.2"}
    assert [manifest["instructions"][ins.name].get("tools") for ins in chosen] == [{"nvcc": "13.0.88"}, None]


def test_a_kernel_that_changed_is_recorded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [golden.instruction("hopper", HMMA)]
    assert capture(chosen, tmp_path, Gpu(), Options(), builder=compiled()).recorded == 1
    monkeypatch.setattr("hw_capture.kernels.kernels.ptx", lambda ins, form: "another")
    assert capture(chosen, tmp_path, Gpu(), Options(), builder=compiled()).recorded == 1


@pytest.mark.parametrize(
    ("wrong", "status"), [({}, 0), ({"error": "x", "strange": True}, 1), ({"error": "x"}, 2)]
)
def test_compile_only(wrong: Any, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "build", compiled(**wrong))
    call(
        "capture",
        "--arch",
        "hopper",
        "--compile-only",
        "--only",
        HMMA.replace(".", r"\."),
        "--json",
        status=status,
    )


@pytest.mark.long
def test_the_options_of_capture_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr(runner, "GpuRunner", lambda card: Gpu())
    monkeypatch.setattr(device, "open", lambda index: opened.append(index) or nullcontext())
    monkeypatch.setattr(
        build, "build", lambda groups, target, jobs: opened.append(jobs) or compiled()(groups, target)
    )
    arguments = [
        "capture",
        "--arch",
        "hopper",
        "--only",
        "^wgmma.*m64n.*k16.f16.f16.f16$",
        "--n",
        "8,16",
        "--out",
        str(tmp_path),
    ]
    drawn = ["--seed", "5", "--per-kind", "2", "--gpu", "3", "--jobs", "7"]
    found = json.loads(call(*arguments, *drawn, "--json", status=0).stdout)
    entries = captured.read_manifest_file(tmp_path / "manifest.json")["instructions"]
    assert found["recorded"] == 2 == len(entries) and opened == [3, 7]
    assert all((entry["seed"], entry["per_kind"]) == (5, 2) for entry in entries.values())
    assert "would exceed 1 MiB" in call(*arguments, "--per-kind", "40", "--max-mib", "1", status=2).stderr


# verify -----------------------------------------------------------------------------------------------------


def vectors(folder: Path, **change: Any) -> Path:
    """IMMA's committed vectors in a folder, with another content."""
    vector, manifest = captured.load_one("hopper", IMMA), captured.read_manifest("hopper")
    (folder / "hopper").mkdir()
    arrays = {**vector.operands, "d": vector.d} | change
    entry = captured.save(
        folder / "hopper", IMMA, arrays, manifest["instructions"][IMMA]["class_set"], [0] * len(arrays["d"])
    )
    captured.write_manifest(folder / "hopper", manifest | {"instructions": {IMMA: entry}})
    return folder


def test_vectors_without_a_result_prove_nothing(tmp_path: Path) -> None:
    vector = captured.load_one("hopper", IMMA)
    folder = vectors(tmp_path, d=vector.d[:0], **{name: codes[:0] for name, codes in vector.operands.items()})
    for option in ([], ["--layouts"]):
        assert "mmagold: " in call("verify", str(folder), *option, status=2).stderr


def test_a_folder_whose_manifest_is_gone_is_reported(tmp_path: Path) -> None:
    folder = vectors(tmp_path)
    shutil.copytree(folder / "hopper", folder / "ampere")
    (folder / "ampere" / "manifest.json").unlink()
    done = call("verify", str(folder), status=0)
    assert f"not replayed: {folder / 'ampere' / captured.file_name(IMMA)}: " in done.stderr


def test_the_reference_counts_no_result_twice(tmp_path: Path) -> None:
    folder = vectors(tmp_path)
    for count in (63, 64):
        found = json.loads(call("verify", str(folder), "--reference", str(count), "--json", status=0).stdout)
        tiles = found["results"] // 64
        assert found["reference_results"] <= tiles * min(count, 64)
        assert count < 64 or found["reference_results"] == found["results"]


# campaign ---------------------------------------------------------------------------------------------------


class Bench:
    """A campaign's GPU side that counts what it is asked for."""

    launch_seconds = 0.2
    mismatches = 0
    nothing = False

    def __init__(self, gpu: Any, ins: Any, faults: Any = None) -> None:
        self.ins, self.sass, self.faults, self.tiles = ins, ("HMMA.16816.F32",), dict(faults or {}), 0

    def launch(self, seed: int, first: int, tiles: int, kind: int) -> None:
        self.tiles += 0 if self.nothing else tiles

    def counts(self) -> dict[str, int]:
        dots = self.tiles * self.ins.m * self.ins.n
        wrong = min(dots, self.mismatches)
        return dict.fromkeys(COUNTS, 0) | {"dots": dots, "other": dots, "mismatches": wrong}

    def records(self, count: int) -> list[dict[str, Any]]:
        return [{"tile": i} for i in range(count)]


@pytest.fixture
def on_bench(monkeypatch: pytest.MonkeyPatch) -> type[Bench]:
    class Mine(Bench):
        pass

    monkeypatch.setattr(machines, "Campaign", Mine)
    monkeypatch.setattr(machines, "compiled_ahead", lambda *_: nullcontext())
    return Mine


CAMPAIGN = ("campaign", HMMA, "--dots", "1000")


def test_a_campaign_ends_with_what_it_found(on_bench: type[Bench], tmp_path: Path) -> None:
    out = str(tmp_path / "report.json")
    assert "no mismatch" in call(*CAMPAIGN, "--out", out, status=0).stdout
    assert call(*CAMPAIGN, "--out", out, status=0).stdout == "", "all of it is in the report"
    on_bench.mismatches = 2
    assert "2 MISMATCHES" in call("campaign", HMMA, "--dots", "3000", "--out", out, status=1).stdout
    call("campaign", HMMA, "--dots", "3000", "--out", out, status=1)
    call(*CAMPAIGN, "--fault", "fraction_bits=24", status=1)
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("options", [["--seconds", "0"], ["--limit", "0"]])
def test_a_campaign_of_nothing_proves_nothing(options: list[str], on_bench: type[Bench]) -> None:
    said = call(*CAMPAIGN, *options, status=2).stderr
    assert said.startswith(f"mmagold: no dot product of 1 of 1 instructions was checked, such as {HMMA}")


def test_a_gpu_that_counts_nothing_is_no_pass(on_bench: type[Bench]) -> None:
    on_bench.nothing = True
    assert "counted 0 dot products, expected" in call(*CAMPAIGN, status=2).stderr


def test_a_gpu_of_another_architecture_checks_nothing(machine: Any, on_bench: type[Bench]) -> None:
    machine.facts = lambda: A100
    assert "this GPU is an NVIDIA A100 (sm_80), expected NVIDIA Hopper" in call(*CAMPAIGN, status=2).stderr


def test_a_campaign_of_another_instruction_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\t\tFunction : campaign\n        /*0010*/                   HMMA.1688.F32 R4, R8, R10, R4 ;\n"
    monkeypatch.setattr(toolchain, "disassemble", lambda cubin: text)
    with pytest.raises(SassError, match=r"compiled to 1 x HMMA\.1688\.F32, the spec says HMMA\.16816\.F32"):
        run._found(golden.instruction("hopper", HMMA), b"")
    monkeypatch.setattr(toolchain, "disassemble", lambda cubin: text.replace("1688", "16816"))
    assert run._found(golden.instruction("hopper", HMMA), b"") == ("HMMA.16816.F32",)


def test_a_report_is_continued_by_its_own_gpu_and_one_run(
    on_bench: type[Bench], machine: Any, tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    call(*CAMPAIGN, "--out", str(out), status=0)
    before = out.read_bytes()
    with lock.only_writer(out, tmp_path / ".report.json.lock"):
        assert "another run of mmagold adds to it" in call(*CAMPAIGN, "--out", str(out), status=2).stderr
    machine.facts = lambda: H200 | {"driver": "600.1"}
    said = call("campaign", HMMA, "--dots", "9000", "--out", str(out), status=2).stderr
    assert (
        "report of NVIDIA H200, driver 600.1, " in said and "expected NVIDIA H200, driver 580.159, " in said
    )
    assert out.read_bytes() == before


def outcome(first: int, last: int, mismatches: int = 0) -> run.Outcome:
    dots = 128 * (last - first)
    counts = dict.fromkeys(COUNTS[2:], 0) | {"other": dots}
    records = [{"tile": first}] * mismatches
    return run.Outcome(
        HMMA, "hopper", ("HMMA",), 1, "all", first, last, dots, mismatches, 1.0, counts, records
    )


@pytest.mark.parametrize(
    ("mine", "theirs", "status"),
    [
        ([outcome(0, 9)], [outcome(0, 99)], 0),
        ([outcome(0, 9, 1)], [outcome(0, 99)], 2),
        ([outcome(0, 99)], [outcome(0, 9, 1)], 2),
        ([outcome(0, 9, 1)], [outcome(0, 99, 1)], 1),
        ([outcome(0, 9)], [outcome(0, 99, 1)], 1),
    ],
)
def test_no_mismatch_is_lost_in_a_merge(mine: Any, theirs: Any, status: int, tmp_path: Path) -> None:
    """Two GPUs on the same operands of which one has a mismatch: the longer report alone would say that
    there is none."""
    for name, outcomes in (("mine", mine), ("theirs", theirs)):
        report.Report(H200, "13.0.88", outcomes).write(tmp_path / f"{name}.json")
    before = (tmp_path / "mine.json").read_bytes()
    done = call(
        "campaign",
        "--out",
        str(tmp_path / "mine.json"),
        "--merge",
        str(tmp_path / "theirs.json"),
        status=status,
    )
    if status == 2:
        assert (
            "find out which GPU is wrong" in done.stderr and (tmp_path / "mine.json").read_bytes() == before
        )


def test_tiles_that_count_twice_and_sums_that_were_edited_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report.Report(H200, "13", [outcome(0, 10), outcome(5, 20)]).write(path)
    with pytest.raises(FileFormatError, match="tile 5 is there twice"):
        report.load(path)
    pages = report.Report(H200, "13", [outcome(0, 10, 3)])
    path.write_text(json.dumps(pages.data() | {"mismatches": 0}))
    with pytest.raises(FileFormatError, match="key 'mismatches' is 0, its campaigns have 3"):
        report.load(path)


def test_tiles_between_two_outcomes_do_not_count_as_checked(on_bench: type[Bench], tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    report.Report(H200, "13.0.88", [outcome(0, 10), outcome(100, 110)]).write(out)
    call("campaign", HMMA, "--dots", str(128 * 110), "--out", str(out), status=0)
    assert report.load(out).dots("hopper", HMMA, 1, "all", {}) == 128 * 110


@pytest.mark.parametrize("text", ["floor=--5", "floor=²", "floor=9" + "9" * 40, "floor=", "nonsense=1"])
def test_a_fault_that_is_none_is_one_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "compiled_ahead", lambda *_: nullcontext())
    call(*CAMPAIGN, "--fault", text, status=2)


# profile, bench-gpu, timing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "status"),
    [(lambda d: d, 0), (lambda d: d ^ 1, 1), (lambda d: d[:0], 2), (lambda d: d.astype(np.float64), 2)],
)
def test_profile_on_hardware(answer: Any, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(ins: Instruction) -> FunctionUnit:
        return FunctionUnit.like(ins, lambda a, b, c: answer(ins.dot(a, b, c)))

    monkeypatch.setattr(unit, "units_of", lambda gpu, arch: faulty)
    sizes = ("--samples", "8", "--chains", "1", "--length", "1")
    done = call("profile", "--hardware", "--arch", "hopper", *sizes, "--json", status=status)
    assert status == 2 or (json.loads(done.stdout)["mismatches"] > 0) == (status == 1)


def test_the_options_of_profile_and_bench_gpu_reach_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    monkeypatch.setattr(
        device, "open", lambda index: opened.append(index) or nullcontext(SimpleNamespace(facts=lambda: H200))
    )
    monkeypatch.setattr(unit, "units_of", lambda gpu, arch: lambda ins: ins)
    sizes = ("--samples", "8", "--chains", "1", "--length", "1", "--json")
    seeds = [
        call("profile", "--hardware", "--gpu", "4", "--seed", seed, *sizes, status=0).stdout
        for seed in ("1", "2")
    ]
    assert [json.loads(text)["seed"] for text in seeds] == [1, 2]
    assert json.loads(seeds[0])["errors"] != json.loads(seeds[1])["errors"]
    monkeypatch.setattr(bench, "build", lambda *_: iter_of())
    monkeypatch.setattr(
        bench,
        "measure",
        lambda gpu, built, runs, progress: opened.append(runs) or bench.Result(Conditions(H200, {})),
    )
    call(
        "bench-gpu",
        "--only",
        "ldmatrix.x1",
        "--csv",
        str(tmp_path / "x.csv"),
        "--runs",
        "9",
        "--gpu",
        "6",
        status=2,
    )
    assert opened == [4, 4, 6, 9]


def iter_of() -> Iterator[Any]:
    yield from ()


def test_a_profile_of_results_that_were_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "compile", lambda source, target: b"")
    monkeypatch.setattr(
        unit, "execute", lambda *given: half_written(np.zeros((1, 16, 8), np.uint32), given[-1])
    )
    gpu = SimpleNamespace(facts=lambda: H200, load=lambda cubin: None)
    with pytest.raises(DeviceError, match="differ between two runs, or were never written"):
        ins = golden.instruction("hopper", OTHER)
        asked = unit.units_of(gpu, "hopper")(ins)
        asked.dot(*(np.zeros((1, ins.k), np.uint16),) * 2, np.zeros(1, np.uint32))


def test_whole_tiles_of_a_gpu_are_asked_as_dot_products_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a number that fills no execution of four blocks."""
    ins = golden.instruction("cdna3", "v_mfma_f32_4x4x4_16b_f16")
    assert ins.blocks > 1
    monkeypatch.setattr(unit, "target_for", lambda architecture, facts: "")
    monkeypatch.setattr(toolchain, "compile", lambda source, target: b"")
    monkeypatch.setattr(unit.kernels, "source", lambda ins, form: "")

    def execute(gpu: Any, module: Any, kernel: str, ins: Any, form: str, tiles: Any, fill: int) -> Any:
        assert len(tiles["a"]) % ins.blocks == 0
        return ins(**tiles)

    monkeypatch.setattr(unit, "execute", execute)
    gpu = SimpleNamespace(facts=lambda: H200, load=lambda cubin: None)
    asked = unit.units_of(gpu, "cdna3")(ins)
    drawn = golden.stimuli.generate(ins, "narrow", 3 * ins.m, np.random.default_rng(0))
    tiles = unit.on_diagonals(ins, drawn)
    some = {name: codes[:3] for name, codes in tiles.items()}
    assert asked.tile is not None and np.array_equal(asked.tile(**some), ins(**some))


# gpu:NAME as a black box ------------------------------------------------------------------------------------


def card(capability: tuple[int, int]) -> SimpleNamespace:
    return SimpleNamespace(
        name="H200", compute_capability=capability, close=lambda: None, load=lambda cubin: None
    )


@pytest.mark.parametrize("name", ["gpu:HMMA.16816.F32", "gpu:hopper:HMMA.16816.F32"])
def test_an_instruction_of_the_gpu_is_a_black_box(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "open", lambda: card((9, 0)))
    monkeypatch.setattr(unit, "units_of", lambda gpu, arch: lambda ins: (gpu.name, arch, ins.name))
    expected = golden.instruction("hopper", "HMMA.16816.F32").name
    assert unit.open_box(name) == ("H200", "hopper", expected)
    assert unit.open_box(name.removeprefix("gpu:")) is None


def test_what_a_gpu_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "open", lambda: card((8, 0)))
    assert "HMMA.16816" in call("dissect", "gpu:HMMA.16816.F3", status=2).stderr
    assert "no instruction of a GPU" in call("dissect", f"gpu:{tmp_path / 'u.yaml'}", status=2).stderr


@pytest.mark.parametrize("name", ["gpu:ampere:HMMA.16816.F32"])
def test_a_gpu_that_no_architecture_describes_is_asked_by_any_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is compiled for the GPU as it is; nothing but formats and K is read of the instruction."""
    compiled = []
    monkeypatch.setattr(device, "open", lambda: card((13, 0)))
    monkeypatch.setattr(toolchain, "compile", lambda source, target: compiled.append(target))
    box = unit.open_box(name)
    assert box is not None and compiled == ["sm_130a"]
    assert box.k == 16 and box.formats["a"].name == "f16" and box.formats["d"].name == "f32"
    with pytest.raises(UnknownNameError, match="HMMA"):
        unit.open_box(f"{name}X")
    with pytest.raises(DeviceError, match="no architecture describes"):
        unit.open_chip()


def test_the_gpu_answers_the_instructions_of_its_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(device, "open", lambda: card((9, 0)))
    monkeypatch.setattr(unit, "units_of", lambda gpu, arch: lambda ins: asked.append((arch, ins.name)))
    chip = unit.open_chip()
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    chip.unit(ins)
    assert (chip.name, chip.architecture, asked) == ("H200", "hopper", [("hopper", ins.name)])
    assert chip.unit(golden.instruction("rdna3", "v_dot2_f32_f16")) is None


def test_bench_gpu_without_a_measurement_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "ours.yaml"
    result = bench.Result(Conditions(H200, {}, left_out={"ldmatrix.x1": "the timed loop holds nothing"}))
    monkeypatch.setattr(device, "open", lambda index: nullcontext(SimpleNamespace(facts=lambda: H200)))
    monkeypatch.setattr(bench, "build", lambda *_: iter_of())
    monkeypatch.setattr(bench, "measure", lambda *_: result)
    done = CliRunner().invoke(app, ["bench-gpu", "--only", "ldmatrix.x1", "--out", str(out)])
    assert done.exit_code == 2 and "instructions were not measured" in done.stderr
    assert not out.exists()


def test_loops_that_do_not_hold_their_instruction_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(subjects: Any, *_: Any) -> Iterator[Any]:
        yield from ((subject, "nvcc: no") for subject in subjects)

    monkeypatch.setattr(bench, "build", built)
    done = call("bench-gpu", "--compile-only", "--only", "ldmatrix.x1", status=2)
    assert "loops do not hold their instruction" in done.stderr and "0 of 3 loops hold" in done.stdout


def test_what_only_a_newer_nvcc_has_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(subjects: Any, *_: Any) -> Iterator[Any]:
        yield from (bench.Built(subject, b"", {"HMMA.16816.F32": 1}) for subject in subjects)

    def too_new(ins: Any) -> str:
        return "needs CUDA 13.1, this is 13.0" if ins.name.endswith("f32.f16.f16.f32") else ""

    monkeypatch.setattr(bench, "build", built)
    monkeypatch.setattr("hw_capture.kernels.build.too_new", too_new)
    done = call("bench-gpu", "--compile-only", "--only", "mma.sync.aligned.m16n8k16.row.col.f", status=0)
    assert "left out: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: needs CUDA 13.1" in done.stdout
    assert "f16.f16.f16.f16: 1 x HMMA" in done.stdout
    done = call("bench-gpu", "--compile-only", "--only", "m16n8k16.row.col.f32.f16", status=2)
    assert "no loop was built: needs CUDA 13.1, this is 13.0" in done.stderr


def test_a_kernel_that_wrote_no_time_is_not_measured() -> None:
    """All buffers stay as they were filled."""
    gpu: Any = SimpleNamespace(
        empty=lambda *_: 0,
        fill=lambda *_: None,
        wait=lambda *_: None,
        download=lambda buffer, shape, dtype: np.zeros(shape, dtype),
    )
    kernel: Any = type("Kernel", (), {"name": "c_1", "__call__": lambda *_, **__: None})()
    kernel.launch = kernel
    with pytest.raises(DeviceError, match="c_1: it gave no time for some of its 4 warps"):
        bench._Buffers(gpu).cycles(kernel, None, 4, 2, 64)
    with pytest.raises(DeviceError, match="clock_rate: it measured no time"):
        clocks.clock_rate(gpu, kernel)


@pytest.mark.parametrize("number", long_after(3, [".nan", "-1", "0", ".inf", "true", "text"]))
@pytest.mark.parametrize(
    "row", ["completion: {}", "value: {}", "points: [[1, 1, {}, 5.0]]", "ways: {{2: {}}}", "range: [{}, 1]"]
)
def test_timings_that_are_no_time_are_refused(row: str, number: str, tmp_path: Path) -> None:
    if (row, number) == ("range: [{}, 1]", "0"):
        return
    head = (
        "source: x\ndevice: x\narchitecture: hopper\ntables:\n  - table: T\n    title: t\n    quantity: "
        "latency\n    rows:\n"
    )
    path = tmp_path / "ours.yaml"
    path.write_text(f"{head}      - {{instruction: x, {row.format(number)}}}\n")
    call("timing", "show", str(path), status=2)
    path.write_text(f"{head}      - {{instruction: x, {row.format(0.5)}}}\n")
    assert tables.load(path)


# The cache --------------------------------------------------------------------------------------------------


def test_what_was_cut_or_put_into_the_cache_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path))
    assert toolchain.cached("a", lambda: b"one") == b"one" == toolchain.cached("a", lambda: b"two")
    whole = (tmp_path / "a").read_bytes()
    for content in (whole[:-1], whole + b"x", b"", b"one", whole[:31]):
        (tmp_path / "a").write_bytes(content)
        assert toolchain.cached("a", lambda: b"two") == b"two"
    (tmp_path / "b").write_bytes(whole)
    assert toolchain.cached("b", lambda: b"three") == b"three", "the content of another name"


def test_every_variable_that_changes_the_compiler_changes_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path))
    said = ["release 13.0, V13.0.88"]
    monkeypatch.setattr(toolchain, "_about", lambda tool: said[0])
    made: list[str] = []
    monkeypatch.setattr(toolchain, "_compile", lambda *_: made.append("") or b"x")
    for _ in range(2):
        toolchain.compile("", "sm_90a")
    assert len(made) == 1
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-use_fast_math")
    toolchain.compile("", "sm_90a")
    said[0] += " Build cuda_13.0.r13.0/compiler.2"
    toolchain.compile("", "sm_90a")
    assert len(made) == 3


def test_tools_that_say_nothing_prove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path))
    monkeypatch.setattr(toolchain, "_about", lambda tool: "V13")
    monkeypatch.setattr(toolchain, "run_tool", lambda *_: " \n")
    with pytest.raises(HwError, match="nvdisasm: exit status 0, but it printed nothing"):
        toolchain.disassemble(b"x")
    with pytest.raises(CompileError, match="it wrote no cubin"):
        toolchain.compile("", "sm_90a")
    assert not list(tmp_path.iterdir())
