"""Vector files: every format reads back, says what its specification says, and refuses what was changed,
with the line."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden import stimuli, vectors
from golden.cli.app import app
from golden.errors import OperandError
from golden.vectors import VectorSet, WordLayout, files, manifest, signals, vectorset
from golden.vectors.text import package_name

HMMA = golden.instruction("hopper", "HMMA.16816.F32")
MXF4 = golden.instruction(
    "rtx_blackwell",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
)
F6 = golden.instruction("rtx_blackwell", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32")
SPARSE = golden.instruction("ampere", "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32")
B1 = golden.instruction("ampere", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc")
F64 = golden.instruction("ampere", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
QUAD = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
CHAINS = [
    golden.instruction("hopper", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    golden.instruction("cdna2", "v_mfma_f32_16x16x16f16"),
    golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"),
]
UNITS = {"f16": HMMA, "block scaled e2m1": MXF4, "e3m2 e2m3": F6, "sparse tf32": SPARSE, "b1": B1, "f64": F64}
each_unit = pytest.mark.parametrize("ins", UNITS.values(), ids=list(UNITS))
each_form = pytest.mark.parametrize("form", files.NAMES)


def same(x: VectorSet, y: VectorSet) -> bool:
    codes = all((x.operands[name] == y.operands[name]).all() for name in y.operands)
    return (
        codes and (x.d == y.d).all() and (x.kinds == y.kinds).all() and (x.level, x.seed) == (y.level, y.seed)
    )


@each_unit
@each_form
@pytest.mark.parametrize("level", long_after(1, ["dot", "tile", "fragment"]))
def test_what_is_written_is_read(ins: golden.Instruction, form: str, level: str, tmp_path: Path) -> None:
    file, count = tmp_path / "v.data", 60 if level == "dot" else 2
    made = files.write_stream(file, ins, count, 5, level, form=form)
    back = files.read(file)
    assert same(back, vectors.default_set(ins, count, 5, level)) and list(back.operands) == list(
        ins.operand_shapes(level != "dot")
    )
    assert (
        made.count == count == sum(made.classes.values())
        and made.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    )
    again = tmp_path / "again.data"
    files.write(again, back, form, level=level)
    if form not in ("sv", "npz"):  # whose text names the file, or differs in nothing but the header
        assert again.read_bytes() == file.read_bytes()
    assert same(files.read(again), back)


@each_form
def test_empty_files_and_one_vector(form: str, tmp_path: Path) -> None:
    for count in (0, 1):
        files.write_stream(tmp_path / "v.x", HMMA, count, form=form)
        assert len(files.read(tmp_path / "v.x")) == count


def test_readmemh_lines_are_words(tmp_path: Path) -> None:
    files.write_stream(tmp_path / "v.hex", HMMA, 300, 2)
    chosen, layout = vectors.default_set(HMMA, 300, 2), WordLayout.of(HMMA)
    text = [line for line in (tmp_path / "v.hex").read_text().splitlines() if not line.startswith("//")]
    words = [int(line.split("//")[0], 16) for line in text]
    assert len(words) == 300 and all(len(line.split(" ")[0]) == 144 for line in text)
    for i, word in enumerate(words):
        for field in layout.operand_fields:
            for k, code in enumerate(np.ravel(chosen.operands[field.name][i])):
                assert word >> (32 + field.lsb + field.bits * k) & ((1 << field.bits) - 1) == code
        assert word & 0xFFFFFFFF == chosen.d[i]
        assert text[i].split("// ")[1] == stimuli.KINDS[chosen.kinds[i]]


def test_text_formats_hold_the_elements_in_order(tmp_path: Path) -> None:
    chosen = vectors.default_set(SPARSE, 40)
    for form in ("testfloat", "csv", "jsonl"):
        files.write(tmp_path / form, chosen, form)
    columns = np.loadtxt(tmp_path / "testfloat", dtype=str)
    rows = list(csv.DictReader((tmp_path / "csv").open()))
    objects = [json.loads(line) for line in (tmp_path / "jsonl").open()]
    for i in range(40):
        flat = [
            int(code) for name in ("a", "b", "c", "metadata") for code in np.ravel(chosen.operands[name][i])
        ]
        assert [int(word, 16) for word in columns[i]] == [*flat, chosen.d[i], chosen.kinds[i]]
        for name in ("a", "b", "metadata"):
            wanted = chosen.operands[name][i].tolist()
            assert (
                [int(word, 16) for word in rows[i][name].split()]
                == [int(word, 16) for word in objects[i][name]]
                == wanted
            )
        assert int(rows[i]["d"], 16) == int(objects[i]["d"], 16) == chosen.d[i]
        assert rows[i]["kind"] == objects[i]["kind"] == stimuli.KINDS[chosen.kinds[i]]


def test_fragments_are_the_registers_of_the_lanes(tmp_path: Path) -> None:
    """m16n8k16 of f16: lane L holds A[L // 4][2 * (L % 4)] in the low half
    of its first register (PTX ISA)."""
    files.write_stream(tmp_path / "f.jsonl", HMMA, 3, level="fragment")
    tiles = vectors.default_set(HMMA, 3, level="tile")
    for i, line in enumerate((tmp_path / "f.jsonl").open()):
        registers = [int(word, 16) for word in json.loads(line)["a"]]
        assert len(registers) == 32 * 4
        for lane in range(32):
            row, column = lane // 4, 2 * (lane % 4)
            low, high = tiles.operands["a"][i][row, column : column + 2].tolist()
            assert registers[4 * lane] == low | high << 16
    manifest = json.loads((tmp_path / "f.jsonl.manifest.json").read_text())
    assert [(f["name"], f["bits"], f["shape"]) for f in manifest["fields"]] == [
        ("a", 32, [32, 4]), ("b", 32, [32, 2]), ("c", 32, [32, 4]), ("d", 32, [32, 4])
    ]  # fmt: skip


def test_fragments_of_several_blocks(tmp_path: Path) -> None:
    """Volta's m8n8k4 computes four tiles at once: a record holds them all, of one kind."""
    made = files.write_stream(tmp_path / "q.hex", QUAD, 30, level="fragment")
    back = files.read(tmp_path / "q.hex")
    assert made.count == 30 and len(back) == 120 and back.level == "tile"
    assert (back.kinds.reshape(30, 4) == back.kinds.reshape(30, 4)[:, :1]).all()
    assert (QUAD(**back.operands) == back.d).all()
    with pytest.raises(golden.OperandError, match="3 tiles, expected a multiple of the 4 blocks"):
        files.write(tmp_path / "q.hex", back[:3], level="fragment")


def test_units_without_fragments_are_refused(tmp_path: Path) -> None:
    wgmma = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    with pytest.raises(golden.OperandError, match="does not hold operand b in registers; use level 'tile'"):
        files.write_stream(tmp_path / "w.hex", wgmma, 3, level="fragment")
    assert not list(tmp_path.iterdir())


# Changed files ----------------------------------------------------------------------------------------------


def edit(file: Path, line: int, change: Any) -> None:
    lines = file.read_bytes().split(b"\n")
    lines[line - 1] = change(lines[line - 1])
    file.write_bytes(b"\n".join(lines))


def flip(text: bytes) -> bytes:
    """Another hex digit 40 characters before the kind's comment, or in the middle of the line."""
    at = len(text) // 2
    while text[at] not in b"0123456789abcdef":
        at += 1
    return text[:at] + (b"1" if text[at : at + 1] == b"0" else b"0") + text[at + 1 :]


@pytest.mark.parametrize("form", [form for form in files.NAMES if form not in ("npz", "jsonl")])
@pytest.mark.parametrize("drawn", [True, False], ids=["drawn", "given"])
def test_an_edited_line_is_named(form: str, drawn: bool, tmp_path: Path) -> None:
    file = tmp_path / "v.txt"
    weights = {"narrow": 1.0}  # whose results depend on every bit
    if drawn:
        files.write_stream(file, HMMA, 200, 4, weights=weights, form=form)
    else:
        files.write(file, vectors.default_set(HMMA, 200, 4, weights=weights), form)
    lines = file.read_bytes().split(b"\n")
    for number in (57, 120):
        edit(file, number, flip)
        with pytest.raises(golden.FileFormatError, match=rf"v\.txt:{number}: edited"):
            files.read(file)
        edit(file, number, lambda line: line[:-60])
        with pytest.raises(golden.FileFormatError, match=rf"v\.txt:{number}: "):
            files.read(file)
        file.write_bytes(b"\n".join(lines))
    file.write_bytes(b"\n".join(lines[:99] + lines[100:]))
    with pytest.raises(golden.FileFormatError, match=r"v\.txt:100: edited" if drawn else r"v\.txt:\d+: "):
        files.read(file)


def test_edits_that_leave_d_as_it_was_are_named_too(tmp_path: Path) -> None:
    """In a file drawn from a seed even the name of a kind,
    or an operand that no result depends on, is compared."""
    file = tmp_path / "v.jsonl"
    files.write_stream(file, HMMA, 100)
    edit(file, 31, lambda line: line.replace(b'"a": ["', b'"a": [ "'))
    with pytest.raises(golden.FileFormatError, match=r"v\.jsonl:31: edited"):
        files.read(file)
    files.write_stream(file, HMMA, 100, form="readmemh")
    edit(file, 20, lambda line: line[:150] + b"x")
    with pytest.raises(golden.FileFormatError, match=r"v\.jsonl:20: edited"):
        files.check(file)
    edit(file, 2, lambda line: line + b"!")
    with pytest.raises(golden.FileFormatError, match=r"v\.jsonl:2: edited: .*column"):
        files.check(file)


def test_edits_are_found_in_any_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 100)
    file = tmp_path / "v.hex"
    files.write_stream(file, HMMA, 950, 9)
    assert len(json.loads(Path(f"{file}.manifest.json").read_text())["parts"]) == 12
    for line in (4, 103, 104, 640, 953):
        good = file.read_bytes()
        edit(file, line, flip)
        with pytest.raises(golden.FileFormatError, match=rf"v\.hex:{line}: edited"):
            files.read(file)
        file.write_bytes(good)


@each_form
def test_truncated_and_longer_files_are_refused(form: str, tmp_path: Path) -> None:
    file = tmp_path / "v.bin"
    files.write_stream(file, HMMA, 200, form=form)
    whole = file.read_bytes()
    place = r"v\.bin: truncated" if form == "npz" else r"v\.bin:\d+: the file ends here"
    for kept in (len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:kept])
        with pytest.raises(golden.FileFormatError, match=place):
            files.read(file)
    if form == "readmemh":
        file.write_bytes(whole[: whole.index(b"\n", len(whole) // 2) + 1])
        ends = file.read_bytes().count(b"\n") + 1
        with pytest.raises(
            golden.FileFormatError,
            match=rf"v\.bin:{ends}: the file ends here, expected 203 lines \(200 vectors\)",
        ):
            files.read(file)
    file.write_bytes(whole + b"0\n")
    with pytest.raises(
        golden.FileFormatError, match=r"v\.bin: truncated or edited" if form == "npz" else "after the end"
    ):
        files.read(file)


def test_a_folder_is_no_vector_file(tmp_path: Path) -> None:
    """The message names the vector files in it, or says how to write one."""
    with pytest.raises(
        golden.FileFormatError, match=r"is a folder, expected a file .* none lies in it: write one"
    ):
        files.check(tmp_path)
    (tmp_path / "other.hex").touch()
    for number in range(6):
        (tmp_path / f"v{number}.hex.manifest.json").touch()
    with pytest.raises(golden.FileFormatError, match=r"one in it: v0\.hex, .*v4\.hex, \.\.\.$"):
        files.check(tmp_path)


def test_missing_and_foreign_manifests(tmp_path: Path) -> None:
    file, manifest_file = tmp_path / "v.hex", tmp_path / "v.hex.manifest.json"
    files.write_stream(file, HMMA, 20)
    good = json.loads(manifest_file.read_text())
    for change, text in (
        ({"spec_sha256": "0" * 64}, "another specification of mma.sync"),
        ({"schema": 9}, "no manifest of schema 1 or 2"),
        ({"colour": 1}, "unknown key 'colour'"),
        ({"instruction": "mma.sync.nothing"}, "unknown instruction"),
    ):
        changed = good | change
        manifest_file.write_text(json.dumps(changed | {"digest": manifest.digest(changed)}))
        with pytest.raises(golden.MmagoldError, match=text):
            files.read(file)
    manifest_file.write_text("{")
    with pytest.raises(golden.FileFormatError, match="no JSON"):
        files.read(file)
    manifest_file.unlink()
    with pytest.raises(golden.FileFormatError, match=r"v\.hex: cannot be read.*no manifest \(v\.hex\.mani"):
        files.read(file)


def test_custom_units_need_their_instruction(tmp_path: Path) -> None:
    unit = golden.load_instruction(golden.paths.spec_folder() / "examples" / "sticky_rne.yaml")
    files.write_stream(tmp_path / "c.hex", unit, 50)
    with pytest.raises(golden.FileFormatError, match="custom unit"):
        files.read(tmp_path / "c.hex")
    assert same(files.read(tmp_path / "c.hex", unit), vectors.default_set(unit, 50))
    with pytest.raises(golden.FileFormatError, match="not of hopper"):
        files.read(tmp_path / "c.hex", HMMA)


# Signals ----------------------------------------------------------------------------------------------------


def test_signals_are_the_registers_of_the_datapath() -> None:
    """1.5 * 1 + 2**-13 * 2**-13 + 2 on Hopper, written out by hand: F = 25 fraction bits below exponent 1."""
    zeros = np.zeros(16, np.uint16)
    a, b = zeros.copy(), zeros.copy()
    a[:2], b[:2] = golden.from_float("f16", [1.5, 2.0**-13]), golden.from_float("f16", [1.0, 2.0**-13])
    steps = signals.of(HMMA, {"a": a, "b": b, "c": np.uint32(0x40000000)})
    by_name = {step["step"]: step for step in steps}
    product = by_name["multiply"]["registers"]["products"]
    assert product[0] == {
        "kind": "finite",
        "sign": 0,
        "significand": 3 << 19,
        "exponent": 0,
        "fraction_bits": 20,
    }
    align = by_name["align"]
    assert align["max_exponents"] == [1]
    assert align["registers"]["products"][0]["significand"] == 3 << 23
    assert align["registers"]["products"][1]["significand"] == 0 and align["registers"]["products"][1]["lost"]
    assert align["registers"]["c"][0]["significand"] == 1 << 25
    (total,) = by_name["sum"]["registers"].values()
    assert total[0]["significand"] * 2.0 ** (total[0]["exponent"] - total[0]["fraction_bits"]) == 3.5
    assert steps[-1]["code"] == 0x40600000


@each_form
def test_signals_are_written_for_every_vector(form: str, tmp_path: Path) -> None:
    file = tmp_path / "v.x"
    made = files.write_stream(file, HMMA, 30, form=form, with_signals=True)
    chosen = vectors.default_set(HMMA, 30)
    wanted = [
        signals.of(HMMA, {name: codes[i] for name, codes in chosen.operands.items()}) for i in range(30)
    ]
    if form == "jsonl":
        assert [json.loads(line)["signals"] for line in file.open()] == wanted
    elif form == "csv":
        for row, steps in zip(csv.DictReader(file.open()), wanted, strict=True):
            signals_of_row = {name: int(value) for name, value in row.items() if "." in name and value}
            assert signals_of_row == signals.flat(steps), "no signal lacks a column"
    else:
        companion = tmp_path / "v.x.signals.jsonl"
        assert [json.loads(line) for line in companion.open()] == wanted and made.signals is not None
        companion.write_text(companion.read_text().replace("7", "8", 1))
        with pytest.raises(golden.FileFormatError, match=r"signals\.jsonl: differs"):
            files.read(file)
        return
    assert same(files.read(file), chosen)
    edit(file, 12, flip)
    with pytest.raises(golden.FileFormatError, match=r"v\.x:12: edited"):
        files.read(file)


@pytest.mark.parametrize("ins", long_after(2, [MXF4, SPARSE, B1, CHAINS[0], F6, F64, *CHAINS[1:]]))
def test_every_signal_has_its_column(ins: golden.Instruction) -> None:
    columns = set(signals.columns(ins))
    for steps in signals.rows(vectors.default_set(ins, 150, 8)):
        assert signals.flat(steps).keys() <= columns


def test_signals_need_dot_products(tmp_path: Path) -> None:
    with pytest.raises(golden.OperandError, match="signals explain dot products, but the level is 'tile'"):
        files.write_stream(tmp_path / "v.hex", HMMA, 2, level="tile", with_signals=True)


# SystemVerilog ----------------------------------------------------------------------------------------------

BENCH = """
module bench;
  import v::*;
  vector_t vector;
  logic [WIDTH-1:0] from_file [0:COUNT-1];
  integer i, errors;
  initial begin
    errors = 0;
    $readmemh("v.hex", from_file);
    for (i = 0; i < COUNT; i = i + 1) begin
      vector = unpack_word(vector_word(i));
      if (vector_word(i) !== from_file[i]) errors = errors + 1;
      if ({vector.a, vector.b, vector.c, vector.d} !== from_file[i]) errors = errors + 1;
      $display("%h %h", a_element(vector.a, 3), vector.d);
    end
    $display("errors %0d", errors);
  end
endmodule
"""


def write_package(folder: Path) -> VectorSet:
    for name in ("v.sv", "v.hex"):
        files.write_stream(folder / name, HMMA, 40, 6)
    (folder / "bench.sv").write_text(BENCH)
    return vectors.default_set(HMMA, 40, 6)


def test_package_and_readmemh_run_in_icarus(tmp_path: Path) -> None:
    from rtl_tb.simulators.simulators import icarus

    chosen, found = write_package(tmp_path), icarus()
    subprocess.run(
        [found.compiler, "-g2012", "-o", "bench", "v.sv", "bench.sv"],
        cwd=tmp_path,
        env=dict(found.env),
        check=True,
    )
    done = subprocess.run(
        [found.runtime, "-n", "bench"],
        cwd=tmp_path,
        env=dict(found.env),
        check=True,
        capture_output=True,
        text=True,
    )
    lines = done.stdout.split("\n")
    assert lines[40] == "errors 0" and "warning" not in (done.stdout + done.stderr).lower()
    assert [line.split() for line in lines[:40]] == [
        [f"{a:04x}", f"{d:08x}"] for a, d in zip(chosen.operands["a"][:, 3], chosen.d, strict=True)
    ]


def test_package_passes_verilator_lint(tmp_path: Path) -> None:
    from rtl_tb.simulators.simulators import verilator

    write_package(tmp_path)
    found = verilator()
    command = [
        found.compiler,
        "--lint-only",
        "-Wall",
        "-Wno-DECLFILENAME",
        "-Wno-UNUSEDPARAM",
        "-Wno-UNUSEDSIGNAL",
    ]
    done = subprocess.run(
        [*command, "--timing", "v.sv", "bench.sv"],
        cwd=tmp_path,
        env=dict(found.env),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_packages_stay_small(tmp_path: Path) -> None:
    with pytest.raises(golden.FileFormatError, match="at most 65536; use readmemh"):
        files.write_stream(tmp_path / "v.sv", HMMA, 65537)
    assert not list(tmp_path.iterdir())


def test_documentation_names_every_kind() -> None:
    text = (Path(golden.__file__).parents[1] / "docs" / "vectors.md").read_text("utf-8")
    assert [kind for kind in stimuli.KINDS if f"`{kind}`" not in text] == []


# Command ----------------------------------------------------------------------------------------------------


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["vectors", *map(str, arguments)])


def test_command_writes_and_checks(tmp_path: Path) -> None:
    file = tmp_path / "v.hex"
    done = command(
        "hopper:HMMA.16816.F32",
        "--count",
        300,
        "--seed",
        4,
        "--kinds",
        "narrow=2,tie",
        "--out",
        file,
        "--json",
    )
    assert done.exit_code == 0, done.output
    manifest = json.loads(done.output)
    assert manifest == json.loads(Path(f"{file}.manifest.json").read_text())
    assert manifest["weights"] == {"narrow": 2, "tie": 1} and set(manifest["classes"]) == {"narrow", "tie"}
    assert same(files.read(file), vectors.default_set(HMMA, 300, 4, weights={"narrow": 2, "tie": 1}))
    assert "unchanged: 300 vectors" in command("--check", file).output
    edit(file, 9, flip)
    done = command("--check", file)
    assert done.exit_code == 2 and "v.hex:9: edited" in done.output and "Traceback" not in done.output
    assert json.loads(command("--list-kinds", "--json").output).keys() == set(stimuli.KINDS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    long_after(
        4,
        [
            (["--out", "v.hex"], "'NAME' is missing"),
            (["hopper:HMMA.16816.F32"], "'--out' is missing"),
            (["hopper:HMMA.16816.F32", "--out", "v.vhdl"], "suffix '.vhdl', expected .hex"),
            (["hopper:HMMA.16816.F32", "--out", "v.hex", "--format", "readmem"], "nearest: readmemh"),
            (["hopper:HMMA.16816.F32", "--out", "v.hex", "--kinds", "tie=much"], "weight of 'tie' is 'much'"),
            (["hopper:HMMA.16816.F32", "--out", "v.hex", "--level", "fragmet"], "nearest: fragment"),
            (["hopper:HMMA.16816.F32", "--out", "no/folder/v.hex"], "no/folder/v.hex: cannot be written"),
            (["--check", "nothing.hex"], "nothing.hex: cannot be read: there is no such file"),
        ],
    ),
)
def test_command_refuses_in_one_line(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(*arguments)
    assert done.exit_code == 2 and text in done.output and done.output.count("\n") == 1, done.output
    assert not list(tmp_path.iterdir())


def test_interrupted_writes_leave_nothing(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_stream(tmp_path / "v.hex", HMMA, 100, progress=stop)
    assert not list(tmp_path.iterdir())


def test_files_do_not_depend_on_the_process(tmp_path: Path) -> None:
    """Another process, with another number of threads, writes the same bytes."""
    files.write_stream(tmp_path / "v.hex", HMMA, 9000, 3)
    code = (
        "import golden; from golden.vectors import files; "
        f"files.write_stream(r'{tmp_path / 'w.hex'}', golden.instruction('hopper', 'HMMA.16816.F32'), 9000, "
        "3)"
    )
    root = Path(golden.__file__).parents[1]
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=root, env={"MMAGOLD_THREADS": "1", "PATH": ""}
    )
    assert (tmp_path / "v.hex").read_bytes() == (tmp_path / "w.hex").read_bytes()


# What somebody types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "package"),
    [("module.sv", "vectors_module"), ("std.sv", "vectors_std"), ("9.sv", "vectors_9"), ("my-v.sv", "my_v")],
)
def test_a_package_has_a_name_that_simulators_take(name: str, package: str) -> None:
    assert package_name(name) == package


def test_a_number_of_vectors_that_would_never_end(tmp_path: Path) -> None:
    for count in ("99999999999999999999", str(10**12 + 1)):
        command = ["vectors", "hopper:HMMA.16816.F32", "--count", count, "--out", str(tmp_path / "v.hex")]
        done = CliRunner().invoke(app, command, prog_name="mmagold")
        assert done.exit_code == 2 and f"count is {count}, expected at most {10**12}" in done.stderr
    with pytest.raises(OperandError, match="count is 100000001, expected at most 100000000 in one run"):
        vectorset.excerpt(HMMA, 1, "dot", None, 0, 10**8 + 1)
    with pytest.raises(OperandError, match="first is 10000000000000, expected at most"):
        vectorset.excerpt(HMMA, 1, "dot", None, 10**13, 1)
