"""Outputs: files are replaced whole, links followed, and what is no file written through, whichever
command writes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest
from long_run import long_after
from typer.testing import CliRunner

from golden.cli import app
from golden.errors import FileFormatError
from golden.files import output
from golden.vectors import captured

HMMA = "hopper:HMMA.16816.F32"
VECTORS = ("vectors", HMMA, "--count", "20", "--format", "readmemh")
COMMANDS: dict[str, tuple[str, ...]] = {
    "export": ("export", HMMA),
    "json": ("docs", "export", HMMA, "--format", "json"),
    "vectors": VECTORS,
    "npz": ("vectors", HMMA, "--count", "20", "--format", "npz"),
}


def mmagold(*arguments: str) -> Any:
    return CliRunner().invoke(app.app, list(arguments), prog_name="mmagold")


def refused(*arguments: str) -> str:
    """The one line of a command that ends with status 2."""
    done = mmagold(*arguments)
    assert done.exit_code == 2 and done.stderr.startswith("mmagold: ") and done.stderr.count("\n") == 1, done
    return str(done.stderr)


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command with descriptors of its own."""
    command = [sys.executable, "-m", "golden.cli.app", *arguments]
    return subprocess.run(command, text=True, timeout=120, check=True, **options)


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.mark.parametrize("command", long_after(1, COMMANDS))
def test_a_fifo_is_written_through(tmp_path: Path, command: str) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    done = mmagold(*COMMANDS[command], "--out", str(fifo))
    reader.join(20)
    assert done.exit_code == 0, done.stderr
    assert stat.S_ISFIFO(fifo.lstat().st_mode) and listing(tmp_path) == ["pipe"]
    mmagold(*COMMANDS[command], "--out", str(tmp_path / "file"))
    assert read == [(tmp_path / "file").read_bytes()] and read[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_device_is_one_line_and_stays_a_device(command: str) -> None:
    before = Path("/dev/full").lstat()
    assert "/dev/full: cannot be written: No space left on device" in refused(
        *COMMANDS[command], "--out", "/dev/full"
    )
    assert (before.st_ino, before.st_rdev) == (
        Path("/dev/full").lstat().st_ino,
        Path("/dev/full").lstat().st_rdev,
    )
    assert not Path("/dev/full.manifest.json").exists()


@pytest.mark.parametrize("place", long_after(1, ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]))
def test_standard_output_by_name(tmp_path: Path, place: str) -> None:
    """As a pipe, and as a file that somebody else holds open: it must get the text, not be replaced."""
    plain = mmagold("export", HMMA).stdout
    assert process("export", HMMA, "--out", place, stdout=subprocess.PIPE).stdout == plain
    held = tmp_path / "held"
    with held.open("w") as file:
        file.write("first\n")
        file.flush()
        process("export", HMMA, "--out", place, stdout=file)
    assert held.read_text() == "first\n" + plain and listing(tmp_path) == ["held"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_is_followed(tmp_path: Path, command: str) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    link.symlink_to(Path("far") / "target")  # nothing there yet
    assert mmagold(*COMMANDS[command], "--out", str(link)).exit_code == 0
    assert link.is_symlink() and target.is_file() and not target.is_symlink()
    target.write_bytes(b"old")
    target.chmod(0o640)
    second = tmp_path / "second"
    second.symlink_to(link)
    assert mmagold(*COMMANDS[command], "--out", str(second)).exit_code == 0
    assert second.is_symlink() and link.is_symlink() and len(target.read_bytes()) > 100
    assert stat.S_IMODE(target.stat().st_mode) == 0o640 and listing(tmp_path / "far") == ["target"]


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("no/such/folder")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "full").symlink_to("/dev/full")
    assert "does not exist" in refused("export", HMMA, "--out", str(tmp_path / "dangling"))
    assert "Too many levels" in refused("export", HMMA, "--out", str(tmp_path / "loop"))
    assert "No space left" in refused("export", HMMA, "--out", str(tmp_path / "full"))
    assert all(path.is_symlink() for path in tmp_path.iterdir()) and len(listing(tmp_path)) == 3


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "it is a folder" in refused("export", HMMA, "--out", str(tmp_path / "folder"))
    assert "it is a folder" in refused(*VECTORS, "--out", str(tmp_path / "folder"))
    assert "does not exist" in refused("export", HMMA, "--out", str(tmp_path / "no" / "file.md"))
    # A folder nobody can write into.
    assert "cannot be written" in refused("export", HMMA, "--out", "/proc/file.md")
    assert "Bad file descriptor" in refused("export", HMMA, "--out", "/dev/fd/77")
    assert "signals" in refused(*VECTORS, "--signals", "--out", "/dev/stdout")
    assert "pictures" in refused("docs", "export", HMMA, "--out", "/dev/stdout")
    assert listing(tmp_path) == ["folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_is_respected(tmp_path: Path) -> None:
    kept = tmp_path / "kept.md"
    kept.write_text("old")
    kept.chmod(0o444)
    assert "Permission denied" in refused("export", HMMA, "--out", str(kept))
    kept.chmod(0o644)
    tmp_path.chmod(0o555)
    assert "Permission denied" in refused("export", HMMA, "--out", str(kept))
    tmp_path.chmod(0o755)
    assert kept.read_text() == "old" and listing(tmp_path) == ["kept.md"]


def test_permissions_are_those_of_the_replaced_file(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o600)
    for path in (old, new):
        output.write_text(path, "text")
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    (tmp_path / "plain").open("w").close()
    assert new.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_all_files_or_none(tmp_path: Path) -> None:
    """A second file that fails leaves the first as it was, and folders made for it go again."""

    def fail(stream: IO[bytes]) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        output.write_all({tmp_path / "a": lambda stream: stream.write(b"new"), tmp_path / "b": fail})
    with pytest.raises(KeyboardInterrupt):
        output.write_folder(tmp_path / "x" / "y", {"a": "new", "z/b": fail})
    assert (tmp_path / "a").read_text() == "old" and listing(tmp_path) == ["a"]
    assert len(output.write_folder(tmp_path / "x" / "y", {"a": "new", "z/b": "new"})) == 2
    assert listing(tmp_path) == ["a", "a", "b", "x", "y", "z"]


def test_a_refused_model_leaves_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "model"
    assert "prefix" in refused("export", "dpi", HMMA, "--out", str(folder), "--prefix", "1x")
    unit = tmp_path / "unit.yaml"
    unit.write_text("unit: u\nshape: {k: 4}\nformats: {a: f16, b: f16, c: f32, d: f32}\nsteps: []\n")
    refused("export", "dpi", str(unit), "--out", str(folder))
    refused("study", "cdna3-rounding", "--samples", "0", "--out", str(folder))
    assert listing(tmp_path) == ["unit.yaml"]
    (tmp_path / "deep").write_text("")
    assert f"{folder.parent} is a file, expected a folder" in refused(
        "export", "dpi", HMMA, "--out", str(folder)
    )


def test_vectors_and_their_manifest_appear_together(tmp_path: Path) -> None:
    """An old pair stays a pair when the new one cannot be finished."""
    file = tmp_path / "v.hex"
    assert mmagold(*VECTORS, "--out", str(file)).exit_code == 0
    before = file.read_bytes()
    manifest = Path(f"{file}.manifest.json")
    text_before = manifest.read_text()
    manifest.unlink()
    manifest.mkdir()
    assert "it is a folder" in refused("vectors", HMMA, "--count", "7", "--out", str(file))
    assert file.read_bytes() == before and json.loads(text_before)["count"] == 20


def test_every_writer_goes_through_it() -> None:
    """No module of the model opens a file for writing by itself; the docs and Yosys have a work folder of
    their own."""
    root = Path(captured.__file__).parents[1]
    allowed = {
        "circuit/synthesis.py",
        "files/output.py",
        "publish/stale.py",
        "publish/sphinx_source.py",
        "publish/site.py",
        "publish/typst_writer.py",
        "publish/schema.py",
        "publish/slots.py",
    }
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        for word in (".write_text(", ".write_bytes(", 'open("w', "os.replace(", "mkstemp("):
            found = text.replace("output.write_text(", "")
            assert word not in found or path.relative_to(root).as_posix() in allowed, (path, word)


def test_an_unwritable_place_is_reported_before_long_work(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="it is a folder"):
        output.check(tmp_path)
    output.check(tmp_path / "new")
    assert listing(tmp_path) == []


# Folders put in place ---------------------------------------------------------------------------------------


def put(target: Path, name: str) -> None:
    with output.workplace(target) as work:
        (work / "made").mkdir()
        (work / "made" / name).write_text(name)
        output.put_folder(work / "made", target)


def test_a_folder_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    put(target, "first")
    put(target, "second")
    assert [path.name for path in target.iterdir()] == ["second"]
    assert [path.name for path in target.parent.iterdir()] == ["folder"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_that_cannot_be_put_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    target = tmp_path / "folder"
    put(target, "first")
    rename = Path.rename

    def failing(path: Path, to: Path) -> Path:
        if path.name == "made":
            raise error
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises((FileFormatError, KeyboardInterrupt)):
        put(target, "second")
    assert [path.name for path in target.iterdir()] == ["first"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_another_program_puts_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two steps of a swap: the last one that puts its folder wins, and nothing is mixed."""
    target, rename, others = tmp_path / "folder", Path.rename, ["other"]

    def racing(path: Path, to: Path) -> Path:
        if path.name == "made" and others:
            to.mkdir()
            (to / others.pop()).write_text("")
        return rename(path, to)

    put(target, "first")
    monkeypatch.setattr(Path, "rename", racing)
    put(target, "second")
    assert [path.name for path in target.iterdir()] == ["second"]
    assert list(tmp_path.iterdir()) == [target]


def test_two_commands_write_a_pair_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes between the two files of the first; without a lock it would leave one of each."""
    pair = [tmp_path / "v.hex", tmp_path / "v.hex.json"]
    replace = os.replace

    def both(word: bytes) -> None:
        output.write_all({path: lambda out: out.write(word) for path in pair})

    other = threading.Thread(target=both, args=(b"second",))

    def interrupted(source: Any, target: Any) -> None:
        replace(source, target)
        if other.ident is None:
            other.start()
            other.join(timeout=0.5)

    monkeypatch.setattr(os, "replace", interrupted)
    both(b"first")
    other.join(timeout=20)
    assert [path.read_bytes() for path in pair] == [b"second", b"second"]
