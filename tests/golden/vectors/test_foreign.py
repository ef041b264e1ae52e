"""Files that others made: TestFloat's lines in both directions, columns and arrays without a manifest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ieee import Ieee
from typer.testing import CliRunner

import golden
from golden.cli import app
from golden.errors import FileFormatError, MmagoldError, OperandError
from golden.paths import spec_folder
from golden.vectors import files, foreign

FMA = spec_folder() / "examples" / "ieee_fma_flags.yaml"
# From testfloat_gen 3e, f16_mulAdd, -tininessafter, with SoftFloat's RISC-V specialization.
GENERATED = {
    0: """87FF E850 0000 344F 01
0000 0000 857F 857F 00
74FB E879 7BFE FC00 05
""",
}
COLUMNS = "a,b,c,d,flags"


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app.app, list(map(str, arguments)))
    return done.exit_code, done.stdout, done.stderr


def test_lines_of_testfloat_gen(tmp_path: Path) -> None:
    unit = golden.load_instruction(FMA)
    for code, text in GENERATED.items():
        (tmp_path / "gen.txt").write_text(text)
        report = foreign.compare(tmp_path / "gen.txt", unit.of_mode(code), COLUMNS)
        assert (report.count, report.wrong, report.compared) == (3, 0, ("d", "flags"))
        vectors = foreign.read(tmp_path / "gen.txt", unit.of_mode(code), COLUMNS)
        assert vectors.d.tolist() == [0x344F, 0x857F, 0xFC00] and len(vectors) == 3


def test_a_unit_with_modes_and_flags_writes_testfloats_lines(tmp_path: Path) -> None:
    """A file a mode; operands, result, flags in TestFloat's bits, whatever the order of the unit's own; held
    against exact rationals."""
    text = FMA.read_text("utf-8").replace(
        "flags: [inexact, underflow, overflow, invalid]", "flags: [invalid, overflow, inexact]"
    )
    (tmp_path / "unit.yaml").write_text(text)
    status, out, _ = run("vectors", tmp_path / "unit.yaml", "--count", 300, "--out", tmp_path / "fma.txt")
    assert status == 0 and out.count("written: 300 vectors") == 5
    f16, seen = Ieee("f16"), 0
    for mode in ("nearest_even", "toward_zero", "down", "up", "nearest_away"):
        file = tmp_path / f"fma-{mode}.txt"
        for line in file.read_text().splitlines():
            a, b, c, d, flags = (int(word, 16) for word in line.split(" "))
            assert line == f"{a:04X} {b:04X} {c:04X} {d:04X} {flags:02X}" and not flags & ~0b10101
            seen |= flags
            if all(not f16.is_nan(x) and not f16.is_infinite(x) for x in (a, b, c)):
                exact = f16.value(a) * f16.value(b) + f16.value(c)
                if exact and not f16.is_infinite(d):
                    assert d == f16.rounded(exact, mode) and bool(flags & 1) == (f16.value(d) != exact)
        code, said, _ = run("vectors", "--check", file, tmp_path / "unit.yaml")
        assert code == 0 and "unchanged: 300 vectors" in said
    assert seen == 0b10101
    with pytest.raises(FileFormatError, match="has no modes, which are options of TestFloat"):
        files.write_stream(tmp_path / "all.txt", golden.load_instruction(tmp_path / "unit.yaml"), 10)


def test_a_wrong_result_is_a_verdict_and_a_wrong_file_is_not(tmp_path: Path) -> None:
    file = tmp_path / "gen.txt"
    file.write_text(GENERATED[0].replace("344F 01", "3450 00"))
    code, said, _ = run("vectors", "--check", file, FMA, "--columns", COLUMNS, "--mode", "0x0")
    assert code == 1 and "1 differ" in said
    assert f"{file}:1: d is 0x3450, ieee_fma_flags (rnd nearest_even) gives 0x344f" in said
    code, said, _ = run("vectors", "--check", file, FMA, "--columns", COLUMNS, "--mode", "0", "--json")
    assert code == 1 and json.loads(said)["wrong"] == 1
    with pytest.raises(FileFormatError, match=r"gen\.txt:1: d is 0x3450"):
        foreign.read(file, golden.load_instruction(FMA).of_mode(0), COLUMNS)
    for columns, text, wanted in (
        ("a,b,c,x", GENERATED[0], "column 'x' is nothing that .* takes or gives"),
        ("a,b,d", GENERATED[0], "no 'c'"),
        ("a,b,c,c", GENERATED[0], "'c' twice"),
        ("a,b,c,d", GENERATED[0], "gen.txt:1: 5 codes, expected 4 for a,b,c,d"),
        (COLUMNS, GENERATED[0].replace("857F 00", "1857F 00"), "gen.txt:2: '1857F' in column d.* 16 bits"),
        (COLUMNS, GENERATED[0].replace("E850", "E85G"), "gen.txt:1: 'E85G'"),
        (COLUMNS, GENERATED[0].replace("FC00 05", "FC00 08"), "raises divide_by_zero, which"),
        ("a,b,c,-,-", GENERATED[0], "hold no result"),
    ):
        file.write_text(text)
        code, _, said = run("vectors", "--check", file, FMA, "--columns", columns, "--mode", "0")
        assert code == 2 and len(said.splitlines()) == 1
        with pytest.raises((FileFormatError, OperandError), match=wanted):
            foreign.compare(file, golden.load_instruction(FMA).of_mode(0), columns)


def test_columns_of_a_dot_product(tmp_path: Path) -> None:
    """An operand of k elements is k columns; separators, prefixes, comments and a heading are free."""
    ins = golden.instruction("ampere", "HMMA.1688.F32")
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 1 << 16, (2, 20, ins.k)).astype(np.uint16)
    c = rng.integers(0, 1 << 32, 20).astype(np.uint32)
    d = ins.dot(a, b, c)
    lines = [
        ",".join([*(f"0x{x:x}" for x in row_a), *(f"{x:04X}" for x in row_b), f"{z:x}", "7", f"{w:x}"])
        for row_a, row_b, z, w in zip(a, b, c, d, strict=True)
    ]
    (tmp_path / "v.csv").write_text("# by another team\n\n" + "\n".join(lines) + "  // end\n")
    vectors = foreign.read(tmp_path / "v.csv", ins, "a,b,c,-,d")
    assert np.array_equal(vectors.operands["a"], a) and np.array_equal(vectors.d, d)
    np.savez(tmp_path / "v.npz", left=a.view(np.int16), b=b, acc=c, d=d, other=np.zeros(3, int))
    same = foreign.read(tmp_path / "v.npz", ins, "a=left,b,c=acc,d")
    assert np.array_equal(same.operands["a"], a) and np.array_equal(same.d, d)
    without = foreign.read(tmp_path / "v.npz", ins, "a=left,b,c=acc")
    assert np.array_equal(without.d, d)
    for columns, wanted in (
        ("a,b,c=acc", "holds no array 'a'"),
        ("a=left,b,c=other", "lengths"),
        ("a=b,b=acc,c=acc", "of shape"),
    ):
        with pytest.raises(MmagoldError, match=wanted):
            foreign.read(tmp_path / "v.npz", ins, columns)


def test_columns_go_with_a_file_and_a_name(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("0 0 0 0\n")
    code, _, said = run("vectors", "--check", tmp_path / "v.txt", "--columns", "a,b,c,d")
    assert code == 2 and "--columns goes with --check FILE and NAME" in said
    code, _, said = run("vectors", FMA, "--mode", "0x7", "--out", tmp_path / "x.txt")
    assert code == 2 and "mode is '0x7', expected one of 0x0" in said
