"""A capsule repeats the check that left it: moved, with everything else gone."""

from __future__ import annotations

import json
import shutil

import engine_dut as small
import pytest
from typer.testing import CliRunner

import golden
from golden.cli.app import app
from golden.errors import FileFormatError, OperandError
from golden.vectors import files, vectorset
from rtl_tb.check.capsule import bundle, open_capsule
from rtl_tb.check.check import check
from rtl_tb.dut.description import load_dut

LIST = "+incdir+include\n+define+EXTRA=1\n-y library\nsource/small.sv\n"


def scattered(folder):
    """The small unit with a fault, its text in a header, a library and a source that a file list names."""
    small.write_small(folder)
    for name in ("include", "library", "source", "shared"):
        (folder / name).mkdir()
    text = small.RTL.replace("total = c;", "total = c ^ odd;").replace(
        "integer i;", '`include "odd.svh"\ninteger i;'
    )
    (folder / "source" / "small.sv").write_text(text)
    (folder / "small.sv").unlink()
    (folder / "include" / "odd.svh").write_text(
        '`include "../shared/width.svh"\nwire `BITS odd; parity p(a, odd);\n'
    )
    (folder / "shared" / "width.svh").write_text("`define BITS [`EXTRA-1:0]\n")
    (folder / "library" / "parity.v").write_text(
        "module parity (input [31:0] a, output odd); assign odd = a[7]; endmodule\n"
    )
    (folder / "files.f").write_text(LIST)
    description = small.DUT.replace("sources: [small.sv]", "filelist: files.f")
    (folder / "small.yaml").write_text(description)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """The capsule of a failed check elsewhere, the unit's own files gone; and the check's report."""
    folder = tmp_path_factory.mktemp("capsule")
    scattered(folder / "unit")
    words = ["rtl", "check", str(folder / "unit" / "small.yaml"), "--engine", "selfcheck", "--sim", "icarus"]
    words += ["--count", "300", "--seed", "5", "--kinds", "random_bits=1,tie=2", "--idle", "0.5", "--json"]
    words += ["--budget", "4", "--repair", "0"]
    places = ["--build", str(folder / "build"), "--failures", str(folder / "failures")]
    run = CliRunner().invoke(app, [*words, *places])
    assert run.exit_code == 1, run.output
    report = json.loads(run.stdout)
    (capsule,) = (folder / "failures").iterdir()
    assert str(capsule) == report["capsule"]
    facts = json.loads((capsule / "capsule.json").read_text())
    assert "not_self_contained" not in facts
    place = folder / "another machine"
    shutil.move(capsule, place)
    shutil.rmtree(folder / "unit")
    shutil.rmtree(folder / "failures", ignore_errors=True)
    return place, report, folder


def again(folder, place, *words):
    run = CliRunner().invoke(
        app, ["rtl", "check", str(place), "--build", str(folder / "b2"), "--json", *words]
    )
    return run.exit_code, json.loads(run.stdout)


@pytest.mark.long
def test_a_capsule_repeats_the_check_anywhere(moved):
    place, report, folder = moved
    code, found = again(folder, place)
    assert code == 1
    same = (
        "vectors",
        "wrong",
        "kinds",
        "seed",
        "engine",
        "simulator",
        "traffic",
        "cycles",
        "example",
        "faults",
    )
    assert {key: found[key] for key in same} == {key: report[key] for key in same}
    assert found["capsule"] is None and found["file"] == str(place / "dut.yaml")


@pytest.mark.long
def test_what_is_given_counts_more_than_what_the_capsule_keeps(moved):
    place, report, folder = moved
    code, found = again(folder, place, "--vectors", str(place / "failing.npz"))
    assert code == 1 and found["wrong"] == found["vectors"] == report["wrong"]
    code, found = again(folder, place, "--seed", "6", "--count", "80")
    assert (code, found["vectors"], found["seed"]) == (1, 80, 6) and found["traffic"]["idle"] == 0.5


@pytest.mark.long
def test_a_repaired_copy_passes(moved, tmp_path):
    place, _, _ = moved
    shutil.copytree(place, tmp_path / "copy")
    (parity,) = (tmp_path / "copy").rglob("parity.v")
    parity.write_text(parity.read_text().replace("a[7]", "1'b0"))
    assert again(tmp_path, tmp_path / "copy")[0] == 0


def test_an_edited_description_is_told_and_edited_options_are_refused(moved, tmp_path):
    """A policy that takes any NaN, or less traffic, could make of the failure a pass."""
    place, _, _ = moved
    copy = shutil.copytree(place, tmp_path / "copy")
    (copy / "dut.yaml").write_text((copy / "dut.yaml").read_text() + "compare: {nan: any}\n")
    code, found = again(tmp_path, copy, "--repair", "0", "--budget", "1")
    assert code == 1 and found["notes"][0].startswith("dut.yaml of the capsule was edited")
    facts = json.loads((copy / "capsule.json").read_text())
    for edit in ({"count": 10}, {"idle": None}):
        (copy / "capsule.json").write_text(json.dumps(facts | {"check": facts["check"] | edit}))
        with pytest.raises(FileFormatError, match="key 'check' was edited"):
            open_capsule(copy)


def test_other_vectors_than_those_that_failed_are_no_repetition(moved, tmp_path, monkeypatch):
    place, _, _ = moved
    monkeypatch.setattr(vectorset, "_BLOCK", 256)  # as another version might draw
    file, options = open_capsule(place)
    with pytest.raises(OperandError, match="this version of mmagold draws others"):
        check(file, options)


@pytest.mark.long
def test_vectors_of_a_file_are_in_the_capsule(tmp_path):
    scattered(tmp_path / "unit")
    ins = golden.load_instruction(tmp_path / "unit" / "small_unit.yaml")
    files.write(tmp_path / "mine.npz", vectorset.default_set(ins, 200, 3))
    words = [
        "rtl",
        "check",
        str(tmp_path / "unit" / "small.yaml"),
        "--engine",
        "selfcheck",
        "--sim",
        "icarus",
    ]
    words += ["--vectors", str(tmp_path / "mine.npz"), "--failures", str(tmp_path / "f")]
    run = CliRunner().invoke(app, [*words, "--build", str(tmp_path / "build"), "--json"])
    report = json.loads(run.stdout)
    (tmp_path / "mine.npz").unlink()
    (capsule,) = (tmp_path / "f").iterdir()
    code, found = again(tmp_path, capsule)
    assert code == 1 and (found["wrong"], found["vectors"]) == (report["wrong"], 200)


def test_a_header_by_an_absolute_path_is_told(tmp_path):
    scattered(tmp_path / "unit")
    header = tmp_path / "unit" / "include" / "odd.svh"
    far = tmp_path / "far.svh"
    far.write_text("`define BITS [0:0]\n")
    header.write_text(header.read_text().replace("../shared/width.svh", str(far)))
    (tmp_path / "copy").mkdir()
    assert bundle(load_dut(tmp_path / "unit" / "small.yaml"), tmp_path / "copy") == [far]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no capsule of a failed check"),
        ("{}", "does not say how the check was run"),
        ('{"check": {"engine": 3}}', "key 'engine' is 3, expected a string"),
        ('{"check": {"motor": "fast"}}', "unknown key 'motor'"),
    ],
)
def test_a_folder_that_is_no_capsule_is_one_line(tmp_path, text, message):
    if text is not None:
        (tmp_path / "capsule.json").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        open_capsule(tmp_path)
    run = CliRunner().invoke(app, ["rtl", "check", str(tmp_path)])
    assert run.exit_code == 2
