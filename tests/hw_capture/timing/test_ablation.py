"""The ladder of whole products: bank conflicts against known patterns, machine code, the check of results,
files."""

import csv
import ctypes
import itertools
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.catalog import timing as tables
from golden.catalog.timing import Key
from golden.cli.app import app
from golden.errors import UnknownNameError
from golden.studies.timing_plots import product_parts
from hw_capture.errors import DeviceError, SassError
from hw_capture.kernels import toolchain
from hw_capture.timing.ablation import machine_code, report, run, variants
from hw_capture.timing.ablation.machine_code import Layout, Traffic
from hw_capture.timing.ablation.run import Point, Product, Result
from hw_capture.timing.records import Conditions

RUN = CliRunner(env={"COLUMNS": "200"})
LAYOUT = Path(variants.__file__).with_name("layout.h")
needs_nvcc = pytest.mark.skipif(
    toolchain.find("nvcc") is None or (toolchain.find("nvdisasm") or toolchain.find("cuobjdump")) is None,
    reason="nvcc and a disassembler (nvdisasm or cuobjdump) are not installed",
)


def _variant(label: str, architecture: str = "hopper") -> variants.Variant:
    return next(v for v in variants.all_variants(architecture) if v.label == label)


# Bank conflicts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "width", "lanes", "expected"),
    [
        (4, 4, 32, Traffic(1, 0)),
        (8, 4, 32, Traffic(1, 1)),  # the ways of Table X of Sun et al.: 2, 4, 8
        (16, 4, 32, Traffic(1, 3)),
        (32, 4, 32, Traffic(1, 7)),
        (128, 4, 32, Traffic(1, 31)),
        (132, 4, 32, Traffic(1, 0)),  # a padded column
        (0, 4, 32, Traffic(1, 0)),  # one word for all
        (8, 8, 32, Traffic(2, 0)),
        (16, 8, 32, Traffic(2, 2)),
        (16, 16, 32, Traffic(4, 0)),
        (64, 16, 32, Traffic(4, 12)),  # ldmatrix.x4 of rows of 64 bytes
        (128, 16, 32, Traffic(4, 28)),
        (144, 16, 32, Traffic(4, 0)),  # padded by 16 bytes
        (128, 16, 8, Traffic(1, 7)),  # ldmatrix.x1
    ],
)
def test_conflicts_of_known_patterns(step: int, width: int, lanes: int, expected: Traffic) -> None:
    assert machine_code.traffic([lane * step for lane in range(lanes)], width) == expected
    assert machine_code.traffic([4096 + lane * step for lane in range(lanes)], width) == expected


def test_conflicts_of_the_ladder_are_those_that_the_profiler_counts() -> None:
    """Nsight Compute on an H100, 2048 in each direction: 12,582,912 conflicts of LDSM in each linear kernel,
    none of LDSM or LDGSTS in a permuted one."""
    for variant in variants.all_variants("hopper"):
        if not variant.warpgroups:
            copies, loads = machine_code.of_product(variant, 2048)
            assert loads.conflicts == (0 if variant.permuted else 12_582_912)
            assert copies.conflicts == 0 and loads.parts == 4 * 16 * 4 * 16 * 16 * 64


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(("tile_k", "permuted"), list(itertools.product((32, 64), (0, 1))))
def test_kernels_ask_for_the_addresses_that_are_counted(tile_k: int, permuted: int, tmp_path) -> None:
    library = tmp_path / "layout.so"
    text = f'enum {{ TILE_K = {tile_k}, PERMUTED = {permuted} }};\n#include "{LAYOUT}"\n'
    functions = {"place": "row, unsigned chunk", "copied": "item"}
    functions |= dict.fromkeys(("a_address", "b_address"), "row, unsigned k16, unsigned lane")
    for name, parameters in functions.items():
        given = parameters.replace("unsigned ", "")
        text += f"unsigned its_{name}(unsigned {parameters}) {{ return {name}({given}); }}\n"
    (tmp_path / "layout.c").write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "layout.c"], check=True)
    c, layout = ctypes.CDLL(str(library)), Layout(tile_k, bool(permuted))
    rows, chunks = range(128), range(layout.chunks)
    places = [layout.place(row, chunk) for row in rows for chunk in chunks]
    assert places == [c.its_place(row, chunk) for row in rows for chunk in chunks]
    assert sorted(places) == list(range(0, 128 * layout.row_bytes, 16))
    items = range(128 * layout.chunks)
    assert [layout.copied(item) for item in items] == [c.its_copied(item) for item in items]
    for row, k16, lane in itertools.product(range(0, 128, 16), range(tile_k // 16), range(32)):
        assert layout.a_address(row, k16, lane) == c.its_a_address(row, k16, lane)
        assert layout.b_address(row, k16, lane) == c.its_b_address(row, k16, lane)


# Machine code -----------------------------------------------------------------------------------------------


def test_what_each_architecture_runs() -> None:
    ampere, hopper = (variants.all_variants(arch) for arch in ("ampere", "hopper"))
    assert {v.name for v in ampere} == {
        "mma_baseline",
        "mma_permuted",
        "mma_pipeline",
        "mma_permuted_pipeline",
    }
    assert len(hopper) == len({v.label for v in hopper}) == 26
    assert all(v.dynamic_shared <= 227 << 10 for v in hopper)
    with pytest.raises(UnknownNameError, match="expected ampere, ada, hopper"):
        variants.all_variants("volta")


@needs_nvcc
@pytest.mark.parametrize(
    ("architecture", "target", "label"),
    long_after(
        1,
        [
            ("hopper", "sm_90a", "wgmma_tma n256, 4 stages, cluster 2"),
            ("ampere", "sm_80", "mma_permuted_pipeline 3 stages"),
            *(("ampere", "sm_80", v.label) for v in variants.all_variants("ampere")),
            *(("hopper", "sm_90a", v.label) for v in variants.all_variants("hopper")),
        ],
    ),
)
def test_compiled_kernels_hold_what_they_have_to(architecture: str, target: str, label: str) -> None:
    (built,) = machine_code.build([_variant(label, architecture)], target)
    assert isinstance(built, machine_code.Built), built
    if label.startswith("mma"):
        assert built.loop["HMMA.16816.F32.BF16"] == 64 and built.loop["LDSM.16.M88.4"] == 16
    else:
        assert built.loop["HGMMA"] == 4


@needs_nvcc
def test_changed_kernels_are_seen() -> None:
    variant = _variant("wgmma_tma n256, 4 stages, cluster 2")
    text = toolchain.disassemble(toolchain.compile(variant.source(), "sm_90a"))
    machine_code.check(variant, text)
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if " HGMMA" in line)
    wait = next(line for line in lines if "WARPGROUP.DEPBAR" in line)
    spill = lines[at][: lines[at].index("HGMMA")] + "LDL.64 R2, [R1] ;"
    for changed, said in (
        ([*lines[:at], *lines[at + 1 :]], "3 x HGMMA, expected 4"),
        ([*lines[:at], wait, *lines[at:]], "2 x WARPGROUP.DEPBAR, expected 1"),
        ([*lines[:at], spill, *lines[at:]], "1 x LDL, expected 0"),
        ([line.replace("MULTICAST", "") for line in lines], "0 x UTMALDG.2D.MULTICAST, expected 1"),
        ([line.replace(".text.run", ".text.other") for line in lines], "holds no kernel"),
    ):
        with pytest.raises(SassError, match=said):
            machine_code.check(variant, "\n".join(changed))


# Results ----------------------------------------------------------------------------------------------------


class FakeGpu:
    """Keeps buffers as they are. At 1000 MHz a launch takes 1000 cycles more at each further place, and every
    fourth launch twice as long."""

    compute_capability, sm_count = (9, 0), 132

    def __init__(self):
        self.launched = 0

    def upload(self, data):
        return data

    def empty(self, nbytes, fill=None):
        return 4096 if fill == 0 else np.zeros(nbytes, np.uint8)

    def fill(self, buffer, nbytes, value):
        self.clocks = np.zeros((nbytes // 40, 5), np.uint64)

    def load(self, cubin):
        return self

    def get(self, name):
        return SimpleNamespace(name=name, launch=self.launch)

    def launch(self, a, b, d, clocks, *sizes, grid, block, shared):
        self.launched += 1
        place = next(i for i, one in enumerate(self.product.places) if one[2] is d)
        cycles = (10_000 + 1000 * place) * (2 if self.launched % 4 == 0 else 1)
        first = (int(clocks) - 4096) // 40
        self.clocks[first : first + grid] = (7, 1000, 1000 + cycles, 500, 500 + cycles)

    def wait(self, what=""):
        """All is done."""

    def milliseconds(self, launch, what=""):
        launch()
        return 4.0

    def download(self, buffer, shape, dtype):
        return self.clocks.reshape(shape) if len(shape) == 3 else np.zeros(shape, dtype)


def test_cycles_are_the_mean_of_the_places_and_the_median_at_each(monkeypatch) -> None:
    pauses = []
    monkeypatch.setattr(run.time, "sleep", pauses.append)
    monkeypatch.setattr(Product, "check", lambda *_: 2048)
    gpu = FakeGpu()
    gpu.product = product = Product(gpu, 256, 1)
    point = run._alone(product, machine_code.Built(_variant("mma_baseline"), b"", {}))
    assert point.cycles == (13_500, 10_000, 17_000)  # 10,000 to 17,000 at eight places
    assert point.mhz == 1000 and point.checked == 2048
    assert point.share == pytest.approx(256**3 / (13_500 * 132 * 2048))
    assert pauses == [0.04] * 8 * 3  # 10 times what one takes; 3 launches at each


def test_a_rate_begins_when_the_power_has_settled() -> None:
    """The first 250 ms do not count."""
    spent: list[float] = []

    def group(count: int) -> float:
        spent.append(count * (1.0 if sum(spent) < 250 else 2.0))
        return spent[-1] / count

    assert run.steady_milliseconds(group, 5) == 2.0 and sum(spent[:-5]) >= 250


def test_operands_are_as_drawn() -> None:
    a, b = run.operands(256, 1)
    values = golden.to_float("bf16", a)
    assert a.shape == b.shape == (256, 256) and not np.array_equal(a, b)
    assert -1 <= values.min() < -0.9 and 0.9 < values.max() <= 1


def test_products_are_held_against_the_model() -> None:
    variant = _variant("mma_baseline")
    product = Product(FakeGpu(), 256, 1)
    plan = golden.plan("hopper", variant.instruction.name)
    right = golden.gemm(product.a, np.ascontiguousarray(product.b.T), plan)
    assert product.check(variant, right) == 2 * run.LINES * 256
    assert product.same_bits(right) == [variant.instruction.name]
    unseen = next(i for i in range(256) if i not in product.lines)
    for row, column, said in (
        (product.lines[0], unseen, "rows"),
        (unseen, product.lines[-1], "columns"),
        (unseen, unseen, "elements of the first kernel"),
    ):
        wrong = right.copy()
        wrong[row, column] ^= 1
        with pytest.raises(run.ResultError, match=f"mma_baseline, 256: 1 of .*{said}"):
            product.check(variant, wrong)
        assert product.same_bits(wrong) == []


def test_a_first_kernel_that_wrote_nothing_is_seen() -> None:
    product = Product(FakeGpu(), 256, 1)
    with pytest.raises(run.ResultError, match="1024 of 1024 elements"):
        product.check(_variant("mma_baseline"), np.full((256, 256), 0xFFFFFFFF, np.uint32))


def test_cycles_are_those_of_the_slowest_multiprocessor() -> None:
    kernel = SimpleNamespace(name="run")
    rows = [(0, 100, 150), (1, 1000, 1100), (0, 160, 300), (1, 1010, 1090)]
    clocks = np.array([(*row, 10, 10 + (row[2] - row[1]) // 2) for row in rows], np.uint64)
    assert run.longest(kernel, clocks) == 200 and run.rate(clocks) == 2000
    clocks[2] = 0
    with pytest.raises(DeviceError, match="no time for some of its 4 blocks"):
        run.longest(kernel, clocks)


# Files and command ------------------------------------------------------------------------------------------


def _result() -> Result:
    facts = {"name": "NVIDIA Test", "compute_capability": "9.0"}
    points = [
        Point("mma_baseline", "mma_baseline", "", 2048, 0.1, (2e5, 1.9e5, 2.1e5), 1980.2, 0.155, 16384),
        Point("mma_permuted", "mma_permuted", "", 2048, 0.07, (1.3e5, 1.3e5, 1.3e5), 1980.1, 0.24, 16384),
        Point("cublas", "cublas", "", 2048, 0.04),
    ]
    return Result(Conditions(facts, {}), points, {"mma_baseline": {"LDG": 8}})


def test_written_file_reads_as_tables(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(toolchain, "require", lambda *tools: "nvcc")
    monkeypatch.setattr(toolchain, "version", lambda tool: "13.0.88")
    path, points = tmp_path / "ours.yaml", tmp_path / "points.csv"
    path.write_text(report.yaml_text(_result(), "hopper", variants.all_variants("hopper"), 9))
    points.write_text(report.csv_text(_result()))
    found = {figure.key: (figure.value, figure.unit) for figure in tables.load(path)}
    assert found[Key("mma_baseline", "2048", "kernel_cycles")] == (2e5, "cycles")
    assert found[Key("mma_baseline", "2048", "chip_throughput")] == (171.8, "TFLOP/s")
    assert found[Key("mma_baseline", "2048", "share_of_peak")] == (15.5, "%")
    assert found[Key("mma_baseline", "2048", "bank_conflicts")] == (12_582_912, "conflicts")
    assert found[Key("cublas", "2048", "chip_throughput")] == (429.5, "TFLOP/s")
    assert len(found) == 8 and tables.measured(path)
    assert [row["cycles"] for row in csv.DictReader(points.open())] == ["200000", "130000", ""]


def test_variants_are_taken_apart() -> None:
    assert product_parts("2048") == (2048, None, "")
    assert product_parts("8192, 3 stages") == (8192, 3, "")
    assert product_parts("4096, n256, 4 stages, cluster 2") == (4096, 4, "n256, cluster 2")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "mma_permutd"], "no kernel of hopper matches 'mma_permutd'; nearest: mma_permuted"),
        (["--arch", "volta"], "architecture 'volta' has none of these kernels, expected ampere"),
        (["--arch", "cdna3"], "nvcc compiles for"),
        (["--size", "2000", "--csv", "x.csv"], "2000, expected a multiple of 256"),
        (["--out", "no/such/folder.yaml"], "no/such/folder.yaml: cannot be written"),
        ([], "missing, expected a file"),
    ],
)
def test_usage(arguments: list[str], said: str) -> None:
    result = RUN.invoke(app, ["bench-kernels", *arguments])
    assert result.exit_code == 2 and said in result.output


def test_without_pycuda_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    result = RUN.invoke(app, ["bench-kernels", "--out", str(tmp_path / "ours.yaml")])
    assert result.exit_code == 2 and "PyCUDA is not installed" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("0x0000000000000001", "0x0000000000000004", None),
        ("0x0000000000000004", "0x0000000000000001", "throttled by the power limit"),
        ("0x0000000000000001", "0x0000000000000024", r"throttled by the temperature \("),
    ],
)
def test_a_board_held_down_by_more_than_its_power_is_not_recorded(before, after, said, monkeypatch) -> None:
    conditions = Conditions({}, {"clocks_event_reasons.active": before}, sm_mhz=1980.0)
    monkeypatch.setattr(run, "Watch", lambda gpu: SimpleNamespace(conditions=conditions))
    monkeypatch.setattr(run, "state", lambda: {"clocks_event_reasons.active": after})
    with nullcontext() if said is None else pytest.raises(DeviceError, match=said):
        assert run.measure(SimpleNamespace(), [], []).points == []


def test_a_wrong_product_is_exit_status_1_and_leaves_no_file(tmp_path, monkeypatch) -> None:
    from hw_capture.gpu import device

    def fails(*arguments, **options):
        raise run.ResultError("mma_baseline, 256: 1 of 2048 elements of D (rows) differ")

    gpu = SimpleNamespace(facts=lambda: {"compute_capability": "9.0"})
    monkeypatch.setattr(device, "open", lambda index: nullcontext(gpu))
    monkeypatch.setattr(machine_code, "build", lambda *arguments: (item for item in ()))
    monkeypatch.setattr(run, "measure", fails)
    result = RUN.invoke(app, ["bench-kernels", "--out", str(tmp_path / "ours.yaml")])
    assert result.exit_code == 1 and "1 of 2048 elements" in result.stdout and not list(tmp_path.iterdir())
