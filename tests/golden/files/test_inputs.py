"""Whatever a file holds, a command reads it or says in one line, with status 2, that it cannot: never a
crash, never an end."""

from __future__ import annotations

import glob
import io
import json
import os
import random
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden import yamlfile
from golden.cli import app
from golden.errors import FileFormatError, MmagoldError, SpecError
from golden.files import inputs, npyfile
from golden.vectors import captured, files, manifest

HMMA = "hopper:HMMA.16816.F32"
UNIT = """\
unit: mine
shape: {k: 4}
formats: {a: f16, b: f16, c: f32, d: f32}
program:
  - fda: {fraction_bits: 24, rounding: toward_zero}
    k: {from: 0, to: 3}
"""
SECONDS = 20


@contextmanager
def in_time() -> Iterator[None]:
    """Fails where a file keeps its reader busy."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("no end"))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def refused(*arguments: str) -> str:
    with in_time():
        done = CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")
    assert done.exit_code == 2 and done.stderr.startswith("mmagold: ") and done.stderr.count("\n") == 1, done
    assert "internal error" not in done.stderr and len(done.stderr) < 1500, done.stderr
    return str(done.stderr)


# YAML -------------------------------------------------------------------------------------------------------

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "[" * 30_000 + "]" * 30_000, "nested too deeply"),
        ("a: " + "[" * 1_000_000, "nested too deeply"),
        ("a: " + "{b: " * 30_000, "nested too deeply"),
        ("- " * 30_000 + "x", "nested too deeply"),
        ("\n".join(" " * i + "a:" for i in range(300)), "nested too deeply"),
        (BOMB, "more than 1000000 values"),
        ("a: &a {b: *a}", "in the value that it repeats"),
        ("a: *b", "alias 'b' without an anchor"),
        ("a: &x 1\nb: &x 2", "anchor 'x' stands twice"),
        ("a: " + "9" * 5000, "a number of 5000 characters"),
        ("a: " + ":".join(["59"] * 100_000), "a number of"),
        ("a: 0x" + "f" * 5000, "a number of"),
        ("a: 1\n---\nb: 2", "a second document"),
        ("a: !!set {x}", "tag"),
        ("a: !!python/object/apply:os.system [x]", "tag"),
        ("\ufeff- 1", "expected a mapping"),
        ("a: \0", "not valid YAML"),
        ("a:\n\t- 1", "line begins with a tab, expected spaces"),
    ],
)
def test_yaml_that_is_more_than_it_looks(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    path.write_text(text)
    assert words in refused("show", str(path)) and f"{path}:" in refused("spec", "check", str(path))


def test_aliases_are_copies() -> None:
    read = yamlfile.parse("a: &x {b: 1}\nc: *x\nd: [*x, *x]")
    read["c"].take("b", int)
    with pytest.raises(SpecError, match="unknown key 'b'"):
        read["a"].done()
    assert read == {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]} and read["c"].lines == {"b": 1}


@pytest.mark.parametrize("content", [b"\xff", b"unit: \xe9", b"\xff\xfeu\0"])
def test_yaml_is_utf8(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "u.yaml").write_bytes(content)
    assert "not UTF-8" in refused("show", str(tmp_path / "u.yaml"))


def test_a_file_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamlfile, "MAX_BYTES", 1 << 16)
    (tmp_path / "u.yaml").symlink_to("/dev/zero")
    assert "it is a device, expected a file" in refused("show", str(tmp_path / "u.yaml"))
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "it is a FIFO, expected a file" in refused("show", str(tmp_path / "pipe.yaml"))
    (tmp_path / "long.yaml").write_text("# comment\n" * 10_000)
    assert "larger than" in refused("show", str(tmp_path / "long.yaml"))
    assert "cannot be read" in refused("show", str(tmp_path) + "/none.yaml")
    (tmp_path / "folder.yaml").mkdir()
    assert "cannot be read" in refused("show", str(tmp_path / "folder.yaml"))


# Patterns ---------------------------------------------------------------------------------------------------


def test_a_pattern_stands_for_what_glob_says(tmp_path: Path) -> None:
    for name in ("a.sv", "b.v", ".hidden.sv", "x/a.sv", "x/y/c.sv", "x/y/d.svh", ".git/e.sv", "z[1]/f.sv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "linked").symlink_to(tmp_path / "x", target_is_directory=True)
    patterns = [
        "*.sv",
        "**/*.sv",
        "x/**",
        "**",
        "*/*.sv",
        "x/../*.v",
        "[ab].*",
        "**/y/?.sv",
        "x/y/c.sv",
        "none/*",
    ]
    for pattern in (*patterns, str(tmp_path / "**" / "*.sv"), ".h*", "**/*"):
        wanted = sorted(Path(name) for name in glob.glob(str(tmp_path / pattern), recursive=True))
        assert inputs.matches(tmp_path, pattern) == wanted, pattern


def test_a_pattern_ends(tmp_path: Path) -> None:
    """In a loop of links, in a folder of more files than it may look at, and over the whole file system."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a" / "b.sv").touch()
    assert inputs.matches(tmp_path, "**/b.sv") == [tmp_path / "a" / "b.sv"]
    for n in range(5):
        (tmp_path / "a" / f"{n}.sv").touch()
    with pytest.raises(SpecError, match="looks at more than 5 files, expected a pattern that begins with"):
        inputs.matches(tmp_path, "**/*.sv", most=5)
    with pytest.raises(SpecError, match="looks at more than 1000 files"):
        inputs.matches(tmp_path, "/**/*.svx", most=1000)


# JSON -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('{"a":' * 1000 + "1" + "}" * 1000, "nested deeper"),
        ('["\\"", ' + "[" * 100, "nested deeper"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "key 'c' appears twice"),
        ("[NaN]", "NaN"),
        ("[-Infinity]", "Infinity"),
        ("[" + "9" * 5000 + "]", "5000 digits"),
        ("\ufeff{}", "BOM"),
        ('{"a": "\0"}', "control character"),
        ("", "no JSON"),
        ("{} {}", "Extra data"),
    ],
)
def test_json_that_is_none(text: str, words: str) -> None:
    with in_time(), pytest.raises(FileFormatError, match=words):
        inputs.parse_json(text, "x.json")


# Arrays -----------------------------------------------------------------------------------------------------


def header(shape: str, dtype: str = "'<u2'") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


BAD_ARRAYS = {
    "empty": b"",
    "text": b"hello",
    "huge": header("(1099511627776, 1099511627776)"),
    "negative": header("(-1, -4)") + bytes(8),
    "no items": header("(1000000000000000000,)", "'|S0'"),
    "objects": header("(1,)", "'|O'") + b"\x80\x04K\x01.",
    "code": header("__import__('os')"),
    "nested": header("(" * 3000),
    "short": header("(16, 16)") + bytes(100),
    "long": header("(1, 1)") + bytes(100),
    "version": b"\x93NUMPY\x09\x00" + bytes(20),
    "a list": header("[1]") + bytes(2),
    "structure": header("(1,)", "[('a', '<u2')]") + bytes(2),
    "wide": header("(4096,)", "'<U65536'") + bytes(10),
    "float": header("(1,)", "'<f2'") + bytes(2),
    "strings": header("(1,)", "'<U1'") + bytes(4),
    "bools": header("(1,)", "'|b1'") + bytes(1),
}


@pytest.mark.parametrize("name", long_after(8, BAD_ARRAYS))
def test_arrays_that_are_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(BAD_ARRAYS[name])
    assert "a.npy" in refused("run", HMMA, "--a", str(path))
    with zipfile.ZipFile(tmp_path / "in.npz", "w") as archive:
        archive.writestr("a.npy", BAD_ARRAYS[name])
    assert "in.npz[a]" in refused("run", HMMA, "--in", str(tmp_path / "in.npz"))


def test_an_archive_that_unpacks_to_much(tmp_path: Path) -> None:
    """A member of a few kilobytes that says it is, and unpacks to, more than may be."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(1 << 22, np.uint16))
    with zipfile.ZipFile(tmp_path / "in.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", buffer.getvalue())
    with pytest.raises(FileFormatError, match="unpacks to more"):
        npyfile.read_arrays(tmp_path / "in.npz", most=1 << 20)
    assert npyfile.read_arrays(tmp_path / "in.npz")["a"].shape == (1 << 22,)
    with zipfile.ZipFile(tmp_path / "two.npz", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a.npy", header("(1,)") + bytes(2))
        archive.writestr("a.npy", header("(1,)") + bytes(2))
    assert "there twice" in refused("run", HMMA, "--in", str(tmp_path / "two.npz"))


@pytest.mark.parametrize(
    "text",
    [
        "f" * 1_000_000,
        "0x" + "0" * 100_000 + "1" * 17,
        "1_",
        "0x",
        "-1",
        "1e5",
        "१",
        "0" * 10 + "\0",
        "// x",
        "é",
    ],
)
def test_hex_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.hex").write_text(text)
    assert "a.hex" in refused("run", HMMA, "--a", str(tmp_path / "a.hex"))


@pytest.mark.parametrize(
    "text", ["f" * 1000, "0x" + "f" * 1000, "9" * 6000, "2**99999999", "1e999999", "nan(1)", "0x1p99999"]
)
def test_operand_text(text: str) -> None:
    with in_time():
        done = CliRunner().invoke(app.app, ["explain", HMMA, "--a", text], prog_name="mmagold")
    assert done.exit_code in (0, 2) and len(done.stderr) < 500 and "internal" not in done.stderr


# Mutations --------------------------------------------------------------------------------------------------


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A file with some bytes changed, cut, doubled or exchanged for words that mean something to readers."""
    words = [
        b"\0",
        b"\xff",
        b"{",
        b"[",
        b"]",
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b'"',
        b"'",
        b"\n",
        b": ",
        b"&a ",
        b"*a",
        b"9" * 50,
    ]
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, size = rng.randrange(len(content) + 1), rng.choice((0, 1, 1, 4, 40))
        kept = content[at + size :]
        if rng.random() < 0.2:
            content = content[:at] + kept[::-1] if rng.random() < 0.3 else content[: at + size] + content[at:]
        else:
            content = content[:at] + rng.choice(words) + kept
    return content


ROUNDS = int(os.environ.get("MMAGOLD_FUZZ", "6"))


def attack(path: Path, rng: random.Random, *arguments: str, statuses: tuple[int, ...] = (0, 2)) -> None:
    good = path.read_bytes()
    for _ in range(ROUNDS):
        path.write_bytes(mutated(good, rng))
        with in_time():
            done = CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")
        kept = done.exit_code in statuses and "internal error" not in done.stderr
        assert kept and (done.exit_code == 0 or done.stderr.count("\n") == 1), (
            done,
            path.read_bytes()[:2000],
        )
    path.write_bytes(good)


def test_mutated_units(tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    path.write_text(UNIT)
    attack(path, random.Random(1), "spec", "check", str(path))


def same(content: bytes, good: bytes) -> bool:
    """Whether the bytes are alike, or mean the same as JSON."""
    return content == good or (good.startswith(b"{") and json.loads(content) == json.loads(good))


@pytest.mark.parametrize("form", long_after(1, ["readmemh", "csv", "npz"]))
def test_mutated_vectors_and_manifests(form: str, tmp_path: Path) -> None:
    """No edit of either file is believed, unless it changes nothing."""
    path = tmp_path / "v.x"
    files.write_stream(path, golden.instruction("hopper", "HMMA.16816.F32"), 8, form=form)
    for file in (path, manifest.path_for(path)):
        good = file.read_bytes()
        rng = random.Random(2)
        for _ in range(ROUNDS):
            file.write_bytes(mutated(good, rng))
            with in_time():
                done = CliRunner().invoke(app.app, ["vectors", "--check", str(path)], prog_name="mmagold")
            assert done.exit_code == 2 or (done.exit_code == 0 and same(file.read_bytes(), good)), (
                done,
                file.read_bytes(),
            )
            assert done.exit_code == 0 or (
                done.stderr.count("\n") == 1 and "internal error" not in done.stderr
            ), done.stderr
        file.write_bytes(good)


def test_mutated_operands(tmp_path: Path) -> None:
    ins = golden.instruction("hopper", "HMMA.16816.F32")
    arrays = {
        name: np.zeros((1, *shape), ins.formats[name].dtype)
        for name, shape in ins.operand_shapes(False).items()
    }
    np.savez_compressed(tmp_path / "in.npz", **arrays)
    attack(tmp_path / "in.npz", random.Random(3), "run", HMMA, "--dot", "--in", str(tmp_path / "in.npz"))
    np.save(tmp_path / "a.npy", arrays["a"])
    attack(tmp_path / "a.npy", random.Random(4), "run", HMMA, "--dot", "--a", str(tmp_path / "a.npy"))
    (tmp_path / "a.hex").write_text("3c00 " * 16)
    attack(tmp_path / "a.hex", random.Random(5), "run", HMMA, "--dot", "--a", str(tmp_path / "a.hex"))


def test_mutated_recordings(tmp_path: Path) -> None:
    """The manifest of recorded vectors, of schema 1 and 2."""
    full = captured.read_manifest("hopper")
    name = min(full["instructions"], key=lambda name: full["instructions"][name]["dots"])
    (tmp_path / "hopper").mkdir()
    path = tmp_path / "hopper" / "manifest.json"
    captured.write_manifest(path.parent, full | {"instructions": {name: full["instructions"][name]}})
    entry: Any = full["instructions"][name]
    (path.parent / entry["file"]).write_bytes(
        (captured.vectors_folder() / "hopper" / entry["file"]).read_bytes()
    )
    good, rng = path.read_bytes(), random.Random(6)
    for _ in range(ROUNDS):
        path.write_bytes(mutated(good, rng))
        with in_time():
            try:
                list(captured.load("hopper", tmp_path))
            except MmagoldError as error:
                assert "\n" not in str(error) and len(str(error)) < 2000


def test_a_missing_file_is_named_with_where_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest name in its folder; or where this installation has what a page names by its path."""
    monkeypatch.chdir(tmp_path)
    Path("dot4.yaml").touch()
    with pytest.raises(FileFormatError, match=r"^dot.yaml: .*such file or directory; nearest: dot4.yaml$"):
        inputs.read_text("dot.yaml")
    for name in ("spec/examples/sticky_rne.yaml", "rtl_tb/examples/own_unit/mac4.sv"):
        with pytest.raises(FileFormatError, match=f"; this installation has it at /.*/{name}$"):
            inputs.read_text(name)
    for name in ("spec/examples/nothing.yaml", "none/dot4.yaml"):
        with pytest.raises(FileFormatError, match=r"No such file or directory$"):
            inputs.read_text(name)
