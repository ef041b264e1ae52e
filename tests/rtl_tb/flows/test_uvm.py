"""UVM environments: compiled and run with Verilator, against a package that stands in for the UVM library
(uvm_stand_in). A sound unit passes; a unit with any of the faults of engine_dut.py, and a file of vectors
that is not the one that was written, do not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import engine_dut as small
import loading_unit as loads
import numpy as np
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.cover.coverage import Coverage
from golden.cover.points.classes import classify, coarse_of
from golden.model.registers import decode
from golden.number.formats import Kind, get_format
from golden.vectors import files
from rtl_tb.dut.description import load_dut
from rtl_tb.errors import RtlError
from rtl_tb.flows import uvm
from rtl_tb.simulators import simulators

ROOT = Path(__file__).parents[3]
STAND_IN = Path(__file__).parent / "uvm_stand_in"
COUNT = 300
HEX = "0123456789abcdef"


def run(folder, *plusargs):
    """`make verilator` in the folder of an environment: what it printed, and its status."""
    fast = ("OPT_FAST=-O0", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0")
    done = subprocess.run(
        ["make", "-C", folder, "verilator", f"UVM_HOME={STAND_IN}", f"PLUS={' '.join(plusargs)}", *fast],
        env=dict(simulators.verilator().env),
        capture_output=True,
        text=True,
        check=False,
    )
    log = folder / "run.log"
    said = log.read_text() if log.is_file() else done.stdout + done.stderr
    return SimpleNamespace(passed=done.returncode == 0, text=said)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An environment of the small unit, and the unit."""
    folder = tmp_path_factory.mktemp("uvm")
    dut = small.write_small(folder / "dut")
    uvm.write(dut, folder / "uvm", COUNT, seed=3)
    return folder / "uvm", dut


def counted(file):
    """The hits that a simulation wrote, by coverpoint."""
    hits = {}
    for line in file.read_text().splitlines():
        name, _, count = line.split("\t")
        hits.setdefault(name, []).append(int(count))
    return hits


def expected_hits(dut, folder):
    """The hits that golden/cover counts of the vectors in a folder."""
    vectors = files.read(folder / "vectors.hex", dut.instruction)
    coverage = Coverage(dut.instruction)
    coverage.sample(vectors.operands, vectors.d)
    return {name: hits.tolist() for name, hits in coverage.hits.items()}


@pytest.mark.long
def test_a_sound_unit_passes_and_is_covered_as_golden_counts(built):
    folder, dut = built
    done = run(folder, "+random=50", "+hits=hits.txt")
    assert done.passed, done.text
    assert f"mmagold PASS: {COUNT + 50} results, all equal" in done.text
    assert run(folder, "+random=0", "+hits=hits.txt", "+idle=0", "+backpressure=0").passed
    hits, wanted = counted(folder / "hits.txt"), expected_hits(dut, folder)
    assert {"class of d", "class of a, class of b", "non-zero products"} <= hits.keys()
    assert hits == {name: wanted[name] for name in hits}


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (small.WRONG, "[MISMATCH] result 70 is"),
        (small.DEAF, "[TIMEOUT]"),
        (small.EXTRA, "mmagold FAIL"),
        (small.UNSTABLE, "[HANDSHAKE] out_data changed"),
        (small.DROPPED, "[HANDSHAKE] out_valid fell"),
        (small.FINISH, "$finish"),
    ],
)
def test_a_fault_fails(built, fault, said):
    folder, dut = built
    kept = (folder / "vectors.hex").read_bytes()
    try:
        files.write(folder / "vectors.hex", small.small_vectors(dut, COUNT, fault, at=70))
        done = run(folder, "+random=0", "+timeout=300")
    finally:
        (folder / "vectors.hex").write_bytes(kept)
    assert not done.passed and "mmagold PASS" not in done.text
    assert said in done.text, done.text


SPOILED = """
    reg [8:0] stalled = 0, slept = 0, alone = 0;
    always @(posedge clk) begin
        stalled <= v3 && !out_ready ? stalled + (stalled != 500) : 0;
        alone <= v3 && !out_ready && !in_valid ? alone + (alone != 500) : 0;
        slept <= in_valid ? 0 : slept + (slept != 500);
    end
    wire late = $test$plusargs("spoils_stall") && stalled > 200;
    wire last = $test$plusargs("spoils_last") && alone > 8;
    wire sleepy = $test$plusargs("spoils_idle") && slept > 200;
"""
"""What a result that waits for long, one that waits while the source idles, and operands after a long idle
time do to the small unit, by plusargs."""


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """An environment of the small unit with such faults."""
    folder = tmp_path_factory.mktemp("waits")
    small.write_small(folder)
    rtl = small.RTL.replace("    integer i;", f"{SPOILED}    integer i;").replace(
        "total = c;", "total = c ^ sleepy;"
    )
    (folder / "small.sv").write_text(rtl.replace(": d3;", ": d3 ^ late ^ last;"))
    uvm.write(load_dut(folder / "small.yaml"), folder / "uvm", COUNT, seed=3)
    return folder / "uvm"


@pytest.mark.long
@pytest.mark.parametrize("spoils", ["nothing", "stall", "last", "idle"])
def test_long_waits_show_what_single_cycles_never_do(waiting, spoils):
    """A sound unit keeps within a time limit that is shorter than a long wait."""
    done = run(waiting, f"+spoils_{spoils}", "+timeout=100")
    assert done.passed == (spoils == "nothing"), done.text
    assert "[TIMEOUT]" not in done.text
    calm = run(waiting, f"+spoils_{spoils}", "+idle=0", "+backpressure=0")
    assert calm.passed, calm.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lines: lines[:-1], "holds 299 vectors, expected 300"),
        (lambda lines: [*lines[:-1], "0 // zeros"], "holds no vector"),
        (
            lambda lines: [*lines[:-1], lines[-1].translate(dict.fromkeys(map(ord, HEX), "z"))],
            "holds no vector",
        ),
        (lambda lines: [*lines[:-1], flipped(lines[-1])], "[MODEL] the vector file expects"),
    ],
)
def test_a_file_of_vectors_that_was_edited_is_no_pass(built, edit, said):
    folder, _ = built
    kept = (folder / "vectors.hex").read_text()
    try:
        (folder / "vectors.hex").write_text("\n".join(edit(kept.splitlines())) + "\n")
        done = run(folder, "+random=0")
    finally:
        (folder / "vectors.hex").write_text(kept)
    assert not done.passed and "mmagold PASS" not in done.text
    assert said in done.text, done.text


def flipped(line):
    """A line of vectors with another last bit of d."""
    word, rest = line.split(" ", 1)
    return f"{word[:-1]}{int(word[-1], 16) ^ 1:x} {rest}"


@pytest.mark.long
def test_one_kind_alone(built):
    done = run(built[0], "+kind=zeros", "+random=0")
    assert done.passed, done.text
    done = run(built[0], "+kind=zeroes", "+random=0")
    assert not done.passed and "holds no vector of kind zeroes" in done.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("dut", "passes"),
    [
        ("rtl_tb/examples/wrong_f/dut.yaml", False),
        ("rtl_tb/rtl/duts/fda_hopper_f16.yaml", True),
        ("rtl_tb/rtl/duts/gdfs_mxfp4.yaml", True),
        ("rtl_tb/mutants/units/systolic_mac/dut.yaml", True),
        ("rtl_tb/mutants/units/mode_inputs/dut.yaml", True),
        ("rtl_tb/mutants/units/two_path_tree/dut.yaml", True),
        ("rtl_tb/mutants/units/packed_structs/dut.yaml", True),
        ("tests/rtl_tb/flags/dut.yaml", True),
    ],
)
def test_units_of_every_style(dut, passes, tmp_path):
    unit = load_dut(ROOT / dut)
    uvm.write(unit, tmp_path, 1000)
    done = run(tmp_path, "+random=0", "+hits=hits.txt")
    assert done.passed == passes, done.text
    hits, wanted = counted(tmp_path / "hits.txt"), expected_hits(unit, tmp_path)
    assert hits == {name: wanted[name] for name in hits}


TILE = {
    "unit.yaml": "unit: tile\nshape: {m: 2, n: 3, k: 4}\nformats: {a: s8, b: s8, c: s32, d: s32}\n"
    "program: [integer_dot_add: {}]\n",
    "dut.yaml": "dut: tile\ntop: tile\nsources: [tile.sv]\nunit: unit.yaml\nlevel: tile\n"
    "handshake: {kind: combinational}\nports: {a: a, b: b, c: c, d: d}\n",
    "tile.sv": """module tile (input [63:0] a, input [95:0] b, input [191:0] c, output reg [191:0] d);
  integer i, j, k;
  reg signed [31:0] total;
  always @* for (i = 0; i < 2; i = i + 1) for (j = 0; j < 3; j = j + 1) begin
    total = c[32*(3*i+j)+:32];
    for (k = 0; k < 4; k = k + 1) total = total + $signed(a[8*(4*i+k)+:8]) * $signed(b[8*(3*k+j)+:8]);
    d[32*(3*i+j)+:32] = total + FAULT;
  end
endmodule
""",
}


@pytest.mark.long
@pytest.mark.parametrize("fault", ["0", "(i == 1 && j == 2 ? 1 : 0)"])
def test_tiles(fault, tmp_path):
    for name, text in TILE.items():
        (tmp_path / name).write_text(text.replace("FAULT", fault))
    dut = load_dut(tmp_path / "dut.yaml")
    uvm.write(dut, tmp_path / "uvm", 100)
    done = run(tmp_path / "uvm", "+random=0", "+hits=hits.txt")
    assert done.passed == (fault == "0"), done.text
    vectors = files.read(tmp_path / "uvm" / "vectors.hex", dut.instruction)
    coverage = Coverage(dut.instruction)
    for i, j in np.ndindex(2, 3):
        a, b, c = (vectors.operands[name] for name in "abc")
        coverage.sample({"a": a[:, i], "b": b[:, :, j], "c": c[:, i, j]}, vectors.d[:, i, j])
    hits = counted(tmp_path / "uvm" / "hits.txt")
    assert hits == {name: coverage.hits[name].tolist() for name in hits}


@pytest.mark.long
@pytest.mark.parametrize("form", ["with", "alone"])
@pytest.mark.parametrize("fault", ["", "load-adds", "clear-ignored"])
def test_a_unit_that_loads(form, fault, tmp_path):
    body = dict(loads.FAULTS[form])[fault] if fault else loads.SOUND[form]
    dut = load_dut(loads.described(tmp_path, form, body))
    uvm.write(dut, tmp_path / "uvm", COUNT)
    done = run(tmp_path / "uvm", "+random=200")
    assert done.passed != bool(fault), done.text
    if fault:
        assert "[MISMATCH]" in done.text
        return
    assert f"mmagold PASS: {COUNT + 200} results, all equal" in done.text
    assert run(tmp_path / "uvm", "+random=0", "+hits=hits.txt").passed
    hits, wanted = counted(tmp_path / "uvm" / "hits.txt"), expected_hits(dut, tmp_path / "uvm")
    assert "class of what load replaces" in hits
    assert hits == {name: wanted[name] for name in hits}


def truth(what, fmt, numbers, codes):
    """What golden/cover says of codes."""
    if what == "class":
        found = classify(fmt, numbers, codes)
    elif what == "coarse":
        found = coarse_of(fmt, numbers)
    else:
        found = numbers.sign if what == "sign" else numbers.kind == Kind.ZERO
    return np.asarray(found, np.int64)[:, 0]


@pytest.mark.parametrize(
    "name", ["f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "ue8m0", "s8", "u8", "s32"]
)
def test_ranges_say_what_golden_says_of_each_code(name):
    fmt = get_format(name)
    for what in ("class", "coarse", "sign", "zero"):
        function = uvm.code_function("f", what, fmt, 0)
        rng = np.random.default_rng(5)
        near = {upper + step for upper, _ in function.pieces for step in (-1, 0, 1)}
        kept = [code for code in near if 0 <= code < 1 << function.kept]
        kept += [int(code) for code in rng.integers(0, 1 << function.kept, 2000, np.uint64)]
        codes = (np.array(kept, np.uint64) << np.uint64(function.shift)).astype(fmt.dtype)[:, None]
        numbers = decode(fmt, codes)
        places = np.searchsorted(
            np.array([upper for upper, _ in function.pieces], np.uint64), np.array(kept, np.uint64)
        )
        values = np.array([value for _, value in function.pieces])[places]
        assert (values == truth(what, fmt, numbers, codes)).all(), what


def test_the_command_and_what_it_refuses(tmp_path):
    dut = small.write_small(tmp_path)
    out = tmp_path / "uvm"
    done = CliRunner().invoke(app, ["rtl", "uvm", str(dut.file), "--out", str(out), "--count", "50"])
    assert done.exit_code == 0, done.output
    assert {"files.f", "Makefile", "README.md", "vectors.hex", "small_tb.sv", "small_dpi.c"} <= {
        path.name for path in out.iterdir()
    }
    assert golden.vectors.files.check(out / "vectors.hex", dut.instruction).count == 50
    with pytest.raises(RtlError, match="argument 'prefix' is '9x'"):
        uvm.write(dut, out, prefix="9x")
    text = dut.file.read_text().replace(
        "handshake: {kind: valid_ready", "handshake: {kind: latency, latency: measure} #"
    )
    (tmp_path / "measured.yaml").write_text(text)
    with pytest.raises(RtlError, match="write the number that it prints"):
        uvm.write(load_dut(tmp_path / "measured.yaml"), out)
