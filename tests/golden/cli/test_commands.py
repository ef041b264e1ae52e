"""The command line: what it prints, what it writes, and that every mistake is one line and exit status 2."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden.catalog.lookup import resolve
from golden.cli import app, completion
from golden.cli.app import DOORS, MORE
from golden.files import output
from golden.vectors import operand_files

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "spec" / "examples"
HMMA = "hopper:HMMA.16816.F32"
SPARSE = "ampere:mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "rtx_blackwell:mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"  # noqa: E501


def call(*arguments: str, status: int = 0) -> Any:
    result = CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")
    assert result.exit_code == status, (result.output, result.exception)
    return result


def data(*arguments: str) -> Any:
    return json.loads(call(*arguments, "--json").stdout)


def complaint(*arguments: str) -> str:
    """The one line on stderr of a failing call."""
    result = call(*arguments, status=2)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("mmagold: "), result.stderr
    return str(lines[0])


# Lists and documents ----------------------------------------------------------------------------------------


def test_version_and_help() -> None:
    assert call("--version").stdout == f"mmagold {golden.__version__}\n"
    for arguments in ((), ("--help",)):
        result = CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")
        for command in (
            "list",
            "show",
            "run",
            "explain",
            "compare",
            "export",
            "spec",
            "algorithms",
            "formats",
        ):
            assert command in result.output


def test_list_filters() -> None:
    everything = data("list")
    assert len(everything) == sum(len(golden.instructions(arch)) for arch in golden.architectures())
    kind = golden.instruction("hopper", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3").evidence.kind
    found = data("list", "--arch", "hopper", "--type", "e4m3", "--shape", "m64n8k32", "--evidence", kind)
    wanted = [
        row
        for row in everything
        if row["architecture"] == "hopper"
        and "e4m3" in row["formats"].values()
        and (row["m"], row["n"], row["k"]) == (64, 8, 32)
        and row["evidence"] == kind
    ]
    assert found == wanted and found
    dmma = data("list", "DMMA.16816", "--arch", "hopper", "--shape", "16x8x16")
    assert dmma and all(row["name"].startswith("mma.sync.aligned.m16n8k16.row.col.f64") for row in dmma)
    assert data("list", "--shape", "m1n1k1") == []


def test_list_tables() -> None:
    overview = call("list").stdout
    assert all(arch in overview for arch in golden.architectures())
    folded = call("list", "--arch", "hopper", "--type", "e4m3").stdout
    assert "8..256" in folded and folded.rstrip().endswith("instructions")
    assert call("list", "--shape", "m1n1k1").stderr == "no instruction matches\n"
    assert "e4m3fnuz" in call("formats").stdout and "gdfs" in call("algorithms").stdout
    assert {row["name"] for row in data("formats")} == set(golden.formats())
    assert "t_fdpa" in {alias for row in data("algorithms") for alias in row["aliases"]}


@pytest.mark.parametrize(
    ("asked", "hint"),
    long_after(
        2,
        [
            (["nvpf4"], "'nvpf4' is in no name or type; nearest: nvfp4"),
            (["hoper", "nvfp4"], "'hoper' is in no name or type; nearest: hopper"),
            (["HMAM.16816"], "'HMAM.16816' is in no name or type; nearest: HMMA.1"),
            (["h100", "nvfp4"], "'nvfp4' is on blackwell, rtx_blackwell\n"),
            (["nvfp4", "--arch", "hopper"], "'nvfp4' is on blackwell, rtx_blackwell\n"),
        ],
    ),
)
def test_a_search_that_finds_nothing_says_what_could_be_meant(asked: list[str], hint: str) -> None:
    assert call("list", *asked).stderr.startswith(f"no instruction matches; {hint}")


def test_show_and_export(tmp_path: Path) -> None:
    from golden.explain.specification import specification, to_markdown

    ins = golden.instruction("hopper", "HMMA.16816.F32")
    text = call("show", HMMA).stdout
    for part in (ins.name, "m = 16, n = 8, k = 16", "special_values", "33", ins.evidence.kind):
        assert part in text
    assert data("show", HMMA) == json.loads(json.dumps(specification(ins)))
    assert call("export", HMMA).stdout == to_markdown(ins)
    out = tmp_path / "spec.json"
    assert call("export", HMMA, "--format", "json", "--out", str(out)).stdout == ""
    assert json.loads(out.read_text()) == data("show", HMMA)
    written = call(
        "export", "sv", str(EXAMPLES / "sticky_rne.yaml"), "--out", str(tmp_path / "sv"), "--prefix", "u"
    )
    files = {Path(line).name: Path(line) for line in written.stdout.split()}
    assert set(files) == {"u.sv", "dut.yaml", "unit.yaml"} and "module u (" in files["u.sv"].read_text()
    for name, path in (
        (SPARSE, "fast form: fda"),
        (SCALED, "fast form: gdfs"),
        (str(EXAMPLES / "block_scaled.yaml"), "blocks of doubles"),
        (str(EXAMPLES / "q15_multiply.yaml"), "blocks of integers, or the interpreter"),
        ("cdna3:v_mfma_f32_16x16x32_fp8_bf8", "fast form: fdrda"),
    ):
        assert f"computed by   {path}\n" in call("show", name).stdout


# Names ------------------------------------------------------------------------------------------------------


def test_ways_to_name() -> None:
    full = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert resolve(HMMA).name == resolve(f"hopper:{full}").name == resolve(full, "hopper").name == full
    assert resolve("HMMA.16816.F32", "hopper") is resolve(HMMA) is resolve(HMMA, "hopper")
    assert resolve("v_mfma_f32_16x16x32_fp8_bf8").architecture == "cdna3"
    assert resolve("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "ada").sparse
    assert resolve(str(EXAMPLES / "late_c.yaml")).name == "late_c"


def test_unknown_names() -> None:
    assert "'hoper'; nearest: hopper" in complaint("show", "hoper:HMMA.16816.F32")
    assert "unknown architecture 'hoper'" in complaint("show", "HMMA.16816.F32", "--arch", "hoper")
    near = complaint("show", "hopper:mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f23")
    assert "nearest: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in near
    assert "exists on ampere, ada, hopper" in complaint("show", "HMMA.16816.F32")
    assert complaint("show", "HMMA.16816.F33").endswith(
        "nearest: HMMA.16816.F32 (f32 for f33), HMMA.16816.F16 (f16 for f33)"
    )
    assert "nearest: v_mfma_f32" in complaint("show", "v_mfma_f32_16x16x32_fp8_bf9")
    assert "unknown format 'f61'" in complaint("list", "--type", "f61")
    assert "unknown evidence 'publishd'" in complaint("list", "--evidence", "publishd")
    assert "m16n8k16 or 16x8x16" in complaint("list", "--shape", "16by8")
    assert "cannot be read" in complaint("show", "missing.yaml")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("show",), "Missing argument 'NAME'; see mmagold show -h"),
        (("lost",), "No such command 'lost'"),
        (("--nope", "list"), "No such option: --nope"),
        (("export", HMMA, "--format", "pdf"), "pdf"),
        (("export", HMMA, "--pipeline", "sum"), "only 'export sv NAME' has a pipeline"),
        (("export", "sv", HMMA), "sv writes several files; name a folder"),
        (
            ("export", "sv", HMMA, "--out", "x", "--pipeline", "scale"),
            "pipeline names 'scale', expected steps",
        ),
        (("export", "sv", HMMA, "--out", "x", "--prefix", "1"), "prefix is '1', expected letters"),
        (("compare", HMMA), "Missing argument 'NAME2'"),
        (("list", "--nope"), "No such option: --nope"),
        (("rtl", "chek"), "No such command 'chek'"),
        (("timing", "show", "--nope"), "No such option: --nope"),
        (("campaign", "--arch", "hopper", "--jobs", "0"), "--jobs is '0', expected at least 1"),
    ],
)
def test_usage_errors_are_one_line(arguments: tuple[str, ...], reported: str) -> None:
    assert reported in complaint(*arguments)


def test_kept_completions_are_those_of_the_specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAGOLD_CACHE", str(tmp_path / "cache"))
    specs = tmp_path / "spec"
    shutil.copytree(ROOT / "spec", specs, ignore=shutil.ignore_patterns("timing", "plans"))
    monkeypatch.setenv("MMAGOLD_SPEC", str(specs))

    def complete(word: str) -> list[str]:
        asked = {
            "_MMAGOLD_COMPLETE": "complete_bash",
            "COMP_WORDS": f"mmagold\nshow\n{word}",
            "COMP_CWORD": "2",
        }
        command = [sys.executable, "-m", "mmagold"]
        return subprocess.run(
            command, env=os.environ | asked, capture_output=True, text=True, check=True
        ).stdout.split()

    assert complete("armv9:") == complete("armv9:") != []  # made, then kept
    (tmp_path / "cache" / "completion" / "chips.json").write_text("{}")
    assert complete("armv") == ["armv9:"]
    (specs / "architectures" / "armv9.yaml").rename(specs / "architectures" / "armv10.yaml")
    changed = (specs / "architectures" / "armv10.yaml").read_text()
    (specs / "architectures" / "armv10.yaml").write_text(
        changed.replace("architecture: armv9", "architecture: armv10")
    )
    assert complete("armv") == ["armv10:"]


def test_completion() -> None:
    context: Any = type("Context", (), {"params": {}})()
    assert completion.instruction(context, "ho") == ["hopper:"]
    assert HMMA.split(":")[0] in completion.architecture("")
    assert completion.architecture("h1") == ["h100"] and "rtx5090:" in completion.instruction(
        context, "rtx50"
    )
    names = completion.instruction(context, "cdna3:v_mfma_f32_16x16x32")
    assert "cdna3:v_mfma_f32_16x16x32_fp8_bf8" in names and all(
        name.startswith("cdna3:v_mfma_f32_16x16x32") for name in names
    )
    assert "h100:HMMA.16816.F32" in completion.instruction(context, "h100:HMMA.168")
    context.params["arch"] = "mi300x"
    assert completion.instruction(context, "v_mfma_f64_16") == ["v_mfma_f64_16x16x4_f64"]
    assert completion.number_format("e4") == ["e4m3", "e4m3fnuz"]
    assert "nvfp4" in completion.number_format("nv")


@pytest.mark.parametrize(
    ("typed", "cursor", "offered"),
    long_after(
        1,
        [  # as Bash parts words at colons, and what it puts in place of the last part
            (["mmagold", "show", "hopper", ":", "HMMA.168"], 4, "HMMA.16816.F32"),
            (["mmagold", "show", "hopper", ":"], 3, "HMMA.16816.F32"),
            (
                [
                    "mmagold",
                    "explain",
                    "b200",
                    ":",
                    "tcgen05.mma.cta_group",
                    "::",
                    "1.kind",
                    "::",
                    "mxf4nvf4.b",
                ],
                8,
                "mxf4nvf4",
            ),
            (["mmagold", "show", "--arch", "hopper", "HMMA.168"], 4, "HMMA.16816.F32"),
            (["mmagold", "docs", "export", "cdna3", ":", "v_mfma_f64"], 5, "v_mfma_f64_16x16x4_f64"),
            (["mmagold", "show", "hop"], 2, "hopper:"),
        ],
    ),
)
def test_bash_completes_names_with_colons(typed: list[str], cursor: int, offered: str) -> None:
    asked = {"COMP_WORDS": "\n".join(typed), "COMP_CWORD": str(cursor), "_MMAGOLD_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys, mmagold; sys.argv[0] = 'mmagold'; mmagold.main()"],
        env={**os.environ, **asked, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    begun = "" if typed[cursor] == ":" else typed[cursor]
    assert any(line.startswith(offered) for line in lines), (done.stdout[:300], done.stderr)
    assert all(line.startswith(begun) for line in lines)


# Widths -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [("formats",), ("show", SCALED)],
    ids=lambda arguments: arguments[0],
)
def test_nothing_wraps_in_a_pipe(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is a line: as many as where there is room without end."""
    monkeypatch.setenv("COLUMNS", "3000")
    wide = call(*arguments).stdout.splitlines()
    monkeypatch.delenv("COLUMNS")
    assert [line.rstrip() for line in call(*arguments).stdout.splitlines()] == [
        line.rstrip() for line in wide
    ]
    monkeypatch.setenv("COLUMNS", "60")
    assert len(call(*arguments).stdout.splitlines()) > len(wide) or arguments[0] in ("formats", "list")


# Explain ----------------------------------------------------------------------------------------------------


def test_explain_numbers() -> None:
    """1 * 1 + 2**-24: Hopper keeps 25 fraction bits, so the sum is exact
    and the cut to f32 loses half a unit."""
    answer = data("explain", HMMA, "--a", "1", "--b", "0x3c00", "--c", "2**-24")
    assert (answer["d"], answer["exact"], answer["error_ulp"]) == ("0x3f800000", "16777217*2^-24", -0.5)
    text = call("explain", HMMA, "--a", "1,0x0001", "--b", "1,1", "--c", "2**-26").stdout
    for part in (
        "largest exponent 0",
        "lost",
        "0x3f800000",
        "rounding changed the sum by",
        "ULP",
        "14 zeros",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("text", "fmt", "codes"),
    [
        ("1.5,-0,inf,-inf", "f16", [0x3E00, 0x8000, 0x7C00, 0xFC00]),
        ("2**-24, 2^-24, 0x1p-24, 3*2**-24", "f16", [1, 1, 1, 3]),
        ("1/3, -1/4, 2/1", "f16", [0x3555, 0xB400, 0x4000]),
        ("0x3c00,0x0001", "f16", [0x3C00, 1]),
        ("-2**1,+2**0", "f16", [0xC000, 0x3C00]),
        ("nan", "e4m3", [0x7F]),
        ("", "f16", [0]),
        ("1e-45", "f32", [1]),
        ("6,0.5,0xf", "e2m1", [7, 1, 15]),
        ("-1,0x80,127", "s8", [255, 128, 127]),
        ("1", "ue8m0", [127]),
    ],
)
def test_operand_text(text: str, fmt: str, codes: list[int]) -> None:
    parsed = operand_files.parse_codes(text, golden.get_format(fmt), 4, "a")
    assert parsed.tolist() == codes + [0] * (4 - len(codes)) and parsed.dtype == golden.get_format(fmt).dtype


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--a", "1,x"), "argument 'a'[1] is 'x', expected a number"),
        (("--a", "0x12345"), "expected a 16-bit f16 code"),
        (("--b", ",".join(["1"] * 17)), "argument 'b' has 17 elements, expected at most 16"),
        (("--c", "1,2"), "expected one"),
        (("--scale-a", "1"), "takes none"),
        (("--a", "1,,2"), "argument 'a'[1] is ''"),
        (("--c", "2**99999999999"), "expected a number"),
    ],
)
def test_explain_complaints(options: tuple[str, ...], message: str) -> None:
    assert message in complaint("explain", HMMA, *options)


def test_explain_sparse_and_scaled() -> None:
    """Metadata 0xe selects columns 2 and 3 of the first four; scales multiply."""
    answer = data("explain", SPARSE, "--a", "3", "--b", "5,6,7,8", "--metadata", "0xe")
    assert answer["d_value"] == "21.0"
    assert data("explain", SPARSE, "--a", "3", "--b", "5,6,7,8")["d_value"] == "15.0", (
        "default metadata: columns 0 and 1"
    )
    assert data("explain", SCALED, "--a", "3", "--b", "2", "--scale-a", "4")["d_value"] == "24.0"
    assert "expected one of 0x1" in complaint("explain", SPARSE, "--metadata", "0x5")
    integer = "ampere:mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
    assert data("explain", integer, "--a", "-3", "--b", "7", "--c", "1")["d"] == "0xffffffec"
    assert "s8 holds integers" in complaint("explain", integer, "--a", "1.5")
    assert "outside s8's range -128..127" in complaint("explain", integer, "--a", "128")


def test_explain_special_and_chain() -> None:
    assert "infinite or NaN" in call("explain", HMMA, "--a", "inf", "--b", "0").stdout
    chain = call("explain", "ampere:HMMA.16816.F32", "--a", "1", "--b", "1").stdout
    assert "k = 0-7" in chain and "k = 8-15" in chain
    for path in EXAMPLES.glob("*.yaml"):
        ins = golden.load_instruction(path)
        if ins.modes is not None:
            continue  # takes an operand more, see test_modes.py
        a, b = ("1", "3") if ins.k == 1 else ("1,2", "3,0.5")
        c = () if "c" in ins.absent else ("--c", "1")
        assert "ULP" in call("explain", str(path), "--a", a, "--b", b, *c).stdout


# Run --------------------------------------------------------------------------------------------------------


@pytest.fixture
def matrices() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {
        "a": golden.from_float("f16", rng.standard_normal((2, 16, 16))),
        "b": golden.from_float("f16", rng.standard_normal((2, 16, 8))),
        "c": golden.from_float("f32", rng.standard_normal((2, 16, 8))),
    }


def save(folder: Path, arrays: dict[str, Any], suffix: str) -> list[str]:
    """Writes every operand to its own file and returns the options that name them."""
    options = []
    for name, array in arrays.items():
        path = folder / f"{name}{suffix}"
        if suffix == ".npy":
            np.save(path, array)
        else:
            path.write_text("# operand\n" + " ".join(f"{code:x}" for code in array.ravel()) + " // end\n")
        options += [f"--{name.replace('_', '-')}", str(path)]
    return options


def test_run_every_way_gives_the_same(tmp_path: Path, matrices: dict[str, Any]) -> None:
    want = golden.instruction("hopper", "HMMA.16816.F32")(**matrices)
    npy, hexed, archive = tmp_path / "d.npy", tmp_path / "d.hex", tmp_path / "d.npz"
    np.savez(tmp_path / "in.npz", **matrices)
    call("run", HMMA, *save(tmp_path, matrices, ".npy"), "--out", str(npy))
    call("run", HMMA, *save(tmp_path, matrices, ".hex"), "--out", str(hexed))
    call("run", HMMA, "--in", str(tmp_path / "in.npz"), "--out", str(archive))
    assert (np.load(npy) == want).all() and (np.load(archive)["d"] == want).all()
    words = [
        word for line in hexed.read_text().splitlines() if not line.startswith("//") for word in line.split()
    ]
    assert [int(word, 16) for word in words] == want.ravel().tolist() and all(
        len(word) == 8 for word in words
    )
    assert call("run", HMMA, "--in", str(tmp_path / "in.npz")).stdout == hexed.read_text()
    # A result is a legal operand: feed d back as c.
    again = call("run", HMMA, *save(tmp_path, matrices, ".hex")[:4], "--c", str(hexed))
    assert again.stdout.startswith("// hopper mma.sync")


def test_run_gives_status_flags_where_they_fit_and_says_where_they_do_not(tmp_path: Path) -> None:
    name = str(EXAMPLES / "ieee_fma_flags.yaml")
    ins = golden.load_instruction(name)
    given = golden.stimuli.generate(ins, "special_values", 40, np.random.default_rng(1))
    np.savez(tmp_path / "in.npz", **given)
    archive, plain = tmp_path / "d.npz", tmp_path / "d.npy"
    assert (
        call("run", name, "--dot", "--in", str(tmp_path / "in.npz"), "--out", str(archive)).stderr.count("\n")
        == 1
    )
    found = np.load(archive)
    assert (found["d"] == ins.dot(**given)).all() and (found["flags"] == ins.flags(**given)).all()
    for out in (("--out", str(plain)), ()):
        said = call("run", name, "--dot", "--in", str(tmp_path / "in.npz"), *out)
        note = "only d is written"
        assert note in said.stderr and ".npz" in said.stderr and note not in said.stdout
    assert (np.load(plain) == found["d"]).all()


def test_compare_reports_status_flags(tmp_path: Path) -> None:
    text = (EXAMPLES / "ieee_fma_flags.yaml").read_text()
    assert "tiny: unbounded" in text
    (tmp_path / "other.yaml").write_text(text.replace("tiny: unbounded", "tiny: before_rounding"))
    (tmp_path / "none.yaml").write_text(
        "".join(line for line in text.splitlines(True) if not line.startswith("flags:")).replace(
            ", tiny: unbounded", ""
        )
    )
    name = str(EXAMPLES / "ieee_fma_flags.yaml")
    reported = call("compare", name, str(tmp_path / "other.yaml"), "--budget", "50000").stdout
    assert (
        "in status flags alone" in reported
        and "inexact, underflow" in reported
        and "not compared" not in reported
    )
    assert data("compare", name, str(tmp_path / "other.yaml"), "--budget", "50000")["flags"] > 0
    assert "not compared" in call("compare", name, str(tmp_path / "none.yaml"), "--budget", "5000").stdout


def test_run_dot_values_and_scales(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    given = {
        "a": rng.standard_normal((3, 16)),
        "b": rng.standard_normal((3, 16)),
        "c": rng.standard_normal(3),
    }
    out = tmp_path / "d.npy"
    call("run", HMMA, "--dot", "--values", *save(tmp_path, given, ".npy"), "--out", str(out))
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    raw = {name: golden.from_float(ins.formats[name], values) for name, values in given.items()}
    assert [ins.reference_dot(raw["a"][i], raw["b"][i], raw["c"][i]) for i in range(3)] == np.load(
        out
    ).tolist()
    from golden import stimuli

    for name in (SPARSE, SCALED):
        other = resolve(name)
        drawn = stimuli.generate(other, "narrow", 5, rng)
        call("run", name, "--dot", *save(tmp_path, drawn, ".hex"), "--out", str(out))
        assert np.load(out).tolist() == [
            other.reference_dot(**{key: codes[i] for key, codes in drawn.items()}) for i in range(5)
        ]


def test_signed_integers_are_taken_as_they_are(tmp_path: Path) -> None:
    name = "ampere:mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
    given = {
        "a": np.full((16, 32), -3, np.int8),
        "b": np.full((32, 8), 2, np.int8),
        "c": np.full((16, 8), 10, np.int32),
    }
    call("run", name, *save(tmp_path, given, ".npy"), "--out", str(tmp_path / "d.npy"))
    assert (np.load(tmp_path / "d.npy").view(np.int32) == 10 - 32 * 6).all()


def bad_files(folder: Path) -> dict[str, tuple[str, str]]:
    """Files that cannot be operand a of HMMA, with a part of the complaint each must cause."""
    good = np.zeros((16, 16), np.uint16)
    np.save(folder / "good.npy", good)
    whole = (folder / "good.npy").read_bytes()
    contents: dict[str, tuple[bytes, str]] = {
        "nan.hex": (b"3c00 3c00\nnan 0\n", "nan.hex:2: 'nan' is no hex code"),
        "value.hex": (b"1.5 0", "value.hex:1: '1.5' is no hex code"),
        "wide.hex": (b"0\n0\n13c00\n", "wide.hex:3: 13c00 does not fit f16's 16 bits"),
        "short.hex": (b"0 " * 255, "holds 255 codes, expected a multiple of 256 for operand a (16 x 16)"),
        "empty.hex": (b"// nothing\n", "holds 0 codes"),
        "binary.hex": (b"\xff\xfe", "byte 0 is not ASCII"),
        "cut.npy": (whole[:-7], "not a NumPy file"),
        "head.npy": (whole[:20], "not a NumPy file"),
        "none.npy": (b"", "not a NumPy file"),
        "words.npy": (b"3c00 3c00", "not a NumPy file"),
    }
    for name, (content, _) in contents.items():
        (folder / name).write_bytes(content)
    cases = {name: (str(folder / name), message) for name, (_, message) in contents.items()}
    arrays: dict[str, tuple[Any, str]] = {
        "float": (good.astype(np.float32), "--values converts values to f16"),
        "shape": (good[:, :8], "shape (16, 8), expected"),
        "text": (np.array(["3c00"]), "expected raw f16 bits"),
        "big": (good.astype(np.int64) + 70000, "[0, 0]: 70000 is no 16-bit"),
        "minus": (good.astype(np.int64) - 1, "-1 is no 16-bit f16 code"),
    }
    for name, (array, message) in arrays.items():
        np.save(folder / f"{name}.npy", array)
        cases[name] = (str(folder / f"{name}.npy"), message)
    np.save(folder / "pickle.npy", np.array([{}], object), allow_pickle=True)
    cases["pickle"] = (str(folder / "pickle.npy"), "not a NumPy file")
    cases["missing"] = str(folder / "missing.npy"), "cannot be read: No such file"
    cases["folder"] = str(folder), "cannot be read"
    return cases


def test_bad_operand_files(tmp_path: Path, matrices: dict[str, Any]) -> None:
    rest = save(tmp_path, {"b": matrices["b"][0], "c": matrices["c"][0]}, ".hex")
    out = tmp_path / "d.npy"
    for path, message in bad_files(tmp_path).values():
        assert message in complaint("run", HMMA, "--a", path, *rest, "--out", str(out)), path
        assert not out.exists()


def test_bad_archives_and_outputs(tmp_path: Path, matrices: dict[str, Any]) -> None:
    good = tmp_path / "in.npz"
    np.savez(good, **matrices)
    np.savez(tmp_path / "key.npz", **matrices, scale_A=matrices["a"])
    (tmp_path / "cut.npz").write_bytes(good.read_bytes()[:-200])
    damaged = bytearray(good.read_bytes())
    damaged[300] ^= 0xFF
    (tmp_path / "damaged.npz").write_bytes(damaged)
    np.savez(tmp_path / "part.npz", a=matrices["a"])
    assert "unknown key 'scale_A', expected a, b, c" in complaint(
        "run", HMMA, "--in", str(tmp_path / "key.npz")
    )
    assert "truncated" in complaint("run", HMMA, "--in", str(tmp_path / "cut.npz"))
    assert "damaged.npz[a]: truncated or damaged" in complaint(
        "run", HMMA, "--in", str(tmp_path / "damaged.npz")
    )
    assert "operand 'b' is missing" in complaint("run", HMMA, "--in", str(tmp_path / "part.npz"))
    assert "with --in" in complaint("run", HMMA, "--a", str(good))
    assert "unknown kind of output" in complaint(
        "run", HMMA, "--in", str(good), "--out", str(tmp_path / "d.bin")
    )
    assert "does not exist" in complaint(
        "run", HMMA, "--in", str(good), "--out", str(tmp_path / "no" / "d.npy")
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cut.npz",
        "damaged.npz",
        "in.npz",
        "key.npz",
        "part.npz",
    ]


def test_nothing_half_written(tmp_path: Path) -> None:
    target = tmp_path / "d.hex"
    target.write_text("old")

    def fail(stream: Any) -> None:
        stream.write(b"new, but not all of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        output.write_whole(target, fail)
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]
    output.write_whole(target, lambda stream: stream.write(b"new"))
    assert target.read_text() == "new" and list(tmp_path.iterdir()) == [target]


# Compare and check ------------------------------------------------------------------------------------------


def test_compare() -> None:
    answer = data("compare", HMMA, "ampere:HMMA.16816.F32", "--budget", "3000", "--seed", "7")
    assert answer["numeric"] > 100 and answer["example"]["products"] == 1
    assert answer["example"]["x"]["d"] != answer["example"]["y"]["d"]
    text = call("compare", HMMA, "ampere:HMMA.16816.F32", "--budget", "3000", "--trace").stdout
    assert "answer differently" in text and "shortest example" in text and text.count("largest exponent") >= 2
    same = call("compare", HMMA, HMMA, "--budget", "1500").stdout
    assert "no difference" in same and "not a proof" in same
    assert "operand a is f16" in complaint("compare", HMMA, "hopper:HMMA.1688.F32.TF32")
    unit = str(EXAMPLES / "sticky_rne.yaml")
    assert (
        data("compare", unit, "volta:mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "--budget", "3000")[
            "numeric"
        ]
        > 0
    )


def test_spec_check(tmp_path: Path) -> None:
    for path in EXAMPLES.glob("*.yaml"):
        assert call("spec", "check", str(path)).stdout.startswith(f"{path}: ok: unit {path.stem}, k = ")
    assert data("spec", "check", str(EXAMPLES / "late_c.yaml"))["k"] == 8
    count = len(golden.instructions("hopper"))
    checked = call("spec", "check", str(ROOT / "spec" / "architectures" / "hopper.yaml")).stdout
    assert f"ok: {count:,} instructions of hopper compile" in checked
    bad = tmp_path / "unit.yaml"
    bad.write_text((EXAMPLES / "exact_pair.yaml").read_text().replace("{k: 2}", "{k: 2, kk: 3}"))
    assert f"{bad}:" in complaint("spec", "check", str(bad)) and "unknown key 'kk'" in complaint(
        "spec", "check", str(bad)
    )
    bad.write_text("unit: [1\n")
    assert "not valid YAML" in complaint("spec", "check", str(bad))
    bad.write_text("a: 1\n")
    assert "expected a custom unit" in complaint("spec", "check", str(bad))


def test_an_interrupt_gives_one_line_and_its_own_status(monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("golden.cli.lists.print_overview", interrupted)
    done = CliRunner().invoke(app.app, ["list"])
    assert done.exit_code == 130 and done.stderr == "mmagold: interrupted\n"


def test_an_old_word_is_one_line(tmp_path: Path) -> None:
    """Read as before, with a line that says the new word; the command goes on."""
    text = (EXAMPLES / "sticky_rne.yaml").read_text("utf-8").replace("cut: sticky_added", "cut: sticky")
    (tmp_path / "old.yaml").write_text(text, "utf-8")
    command = [sys.executable, "-m", "mmagold", "spec", "check", str(tmp_path / "old.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.startswith("mmagold: ") and line.endswith("'cut: sticky' is now written 'cut: sticky_added'")


def test_a_command_that_is_built_alone_is_the_same() -> None:
    whole = typer.main.get_command(app.app)
    context = whole.make_context("mmagold", ["--help"], resilient_parsing=True)
    for name, command in whole.commands.items():
        alone = typer.main.get_command(app._named(["mmagold", name])).commands
        assert list(alone) == [name]
        assert [one.opts for one in alone[name].get_params(context)] == [
            one.opts for one in command.get_params(context)
        ]
    for words in (["mmagold"], ["mmagold", "shov"], ["mmagold", "--help"]):
        assert app._named(words) is app.app


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"COMP_WORDS": "mmagold\nrtl\ncheck\n", "COMP_CWORD": "3"}, "rtl"),
        ({"COMP_WORDS": "mmagold\nrtl\n", "COMP_CWORD": "2"}, "rtl"),
        (
            {"COMP_WORDS": "mmagold\nrt\ncheck", "COMP_CWORD": "1"},
            "",
        ),  # what is behind the cursor says nothing
        ({"_TYPER_COMPLETE_ARGS": "mmagold rtl "}, "rtl"),  # of Zsh and Fish: up to the cursor
        ({"_TYPER_COMPLETE_ARGS": "mmagold rtl"}, ""),
        ({"_TYPER_COMPLETE_ARGS": "mmagold rtl che"}, "rtl"),
        ({}, ""),
    ],
)
def test_completing_reads_one_command(
    environment: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COMP_WORDS", "COMP_CWORD", "_TYPER_COMPLETE_ARGS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert completion.command() == words
    monkeypatch.setenv("_MMAGOLD_COMPLETE", "complete_bash")
    chosen = app._named(["mmagold"])
    assert [group.name for group in chosen.registered_groups if group.name == words] == [words] * bool(words)
    assert (len(typer.main.get_command(chosen).commands) == 1) is bool(words)


def test_looking_at_a_unit_loads_no_other_package() -> None:
    """Neither the packages that bring commands, nor Pydantic, which some versions of typer use."""
    text = (
        "import sys; sys.argv = ['mmagold', 'show', 'hopper:HMMA.16816.F32']; import golden.cli.app as app\n"
    )
    text += "try: app.main()\nexcept SystemExit as end: assert end.code == 0\n"
    text += "print(sorted({'rtl_tb', 'hw_capture', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.endswith("[]\n")


def test_one_export_writes_every_form(tmp_path: Path) -> None:
    """YAML reads back as the same arithmetic; the old words write the same text; a wrong word is one line."""
    ins = golden.instruction("cdna3", "v_mfma_f32_16x16x16_f16")
    name = f"cdna3:{ins.name}"
    call("export", "yaml", name, "--out", str(tmp_path / "unit.yaml"))
    unit = golden.load_instruction(tmp_path / "unit.yaml")
    rng = np.random.default_rng(1)
    operands = {key: rng.integers(0, 1 << 16, (500, ins.k), np.uint16) for key in "ab"}
    c = rng.integers(0, 1 << 32, 500, np.uint32)
    assert (unit.dot(**operands, c=c) == ins.dot(**operands, c=c)).all()
    same = [
        call("export", "docs", name, "--format", "html"),
        call("docs", "export", name, "--format", "html"),
    ]
    assert same[0].stdout == same[1].stdout != ""
    for words in (("export", "yml", name), ("export", "dpi"), ("export", "yaml", name, "--format", "json")):
        done = call(*words, status=2)
        assert done.stderr.count("\n") == 1


def test_help_has_every_command_behind_a_door() -> None:
    shown = call("--help").stdout
    places = [shown.index(door) for door in (*DOORS, MORE)]
    assert places == sorted(places)
    for names, place, following in zip(DOORS.values(), places, places[1:], strict=False):
        assert all(re.search(rf"^\W* {name} ", shown[place:following], re.M) for name in names)
