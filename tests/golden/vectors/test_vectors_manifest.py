"""What a manifest says is held against the unit, the file and itself: no edit of it,
or of both, is believed."""

from __future__ import annotations

import copy
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from long_run import long_after
from typer.testing import CliRunner

import golden
from golden import vectors
from golden.cli import app
from golden.vectors import files, manifest

HMMA = golden.instruction("hopper", "HMMA.16816.F32")
TF32 = golden.instruction("hopper", "HMMA.1688.F32.TF32")
QUAD = golden.instruction("volta", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
each_form = pytest.mark.parametrize("form", files.NAMES)


def refused(file: Path) -> str:
    """The one line of `mmagold vectors --check FILE`, which must end with status 2."""
    done = CliRunner().invoke(app.app, ["vectors", "--check", str(file)], prog_name="mmagold")
    assert done.exit_code == 2 and done.stderr.startswith("mmagold: ") and done.stderr.count("\n") == 1, (
        done,
        done.exception,
    )
    assert len(done.stderr) < 1000
    return str(done.stderr)


def other(value: Any) -> Any:
    """Another plausible value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    if isinstance(value, list):
        return value[:-1] if value else [{}]
    if isinstance(value, dict):
        return dict(list(value.items())[:-1])
    return {"file": "x", "sha256": "0" * 64}


def edits(values: Any, key: str = "") -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Every key, at any depth: another value, another type, gone; every object: a key more."""
    places: list[tuple[Any, str]] = (
        list(values.items()) if isinstance(values, dict) else list(enumerate(values))
    )
    for name, value in places:
        where = f"{key}.{name}"
        for what, new in (
            ("other", other(value)),
            ("type", [value]),
            ("null", None if value is not None else 7),
        ):
            if not (isinstance(value, (int, str)) and new == value):
                yield f"{where} {what}", lambda held, name=name, new=new: held.__setitem__(name, new)
        yield f"{where} gone", lambda held, name=name: held.__delitem__(name)
        if isinstance(value, (dict, list)):
            for edit, change in edits(value, where):
                yield edit, lambda held, name=name, change=change: change(held[name])
    if isinstance(values, dict):
        yield f"{key} more", lambda held: held.__setitem__("colour", 1)


def written(folder: Path, form: str, **options: Any) -> tuple[Path, dict[str, Any]]:
    file = folder / "v.bin"
    files.write_stream(file, HMMA, 40, form=form, **options)
    return file, json.loads(manifest.path_for(file).read_text())


@each_form
def test_every_edit_of_a_manifest_is_refused(form: str, tmp_path: Path) -> None:
    file, good = written(tmp_path, form, weights={"narrow": 2.0, "tie": 1.0})
    files.check(file)
    seen = 0
    for edit, change in edits(good):
        changed = copy.deepcopy(good)
        change(changed)
        manifest.path_for(file).write_text(json.dumps(changed))
        with pytest.raises(golden.MmagoldError):
            files.check(file)
            pytest.fail(f"{edit} was believed")
        seen += 1
    assert seen > 100
    manifest.path_for(file).write_text(json.dumps(good))
    files.check(file)


GIVEN_BY_UNIT_OR_FILE = {
    **{
        "format": "csv",
        "level": "tile",
        "architecture": "turing",
        "instruction": TF32.name,
        "spec_sha256": "0" * 64,
    },
    **{
        "count": 39,
        "operand_width": 543,
        "result_width": 31,
        "bit_order": manifest.BIT_ORDER + "!",
        "schema": 3,
    },
    **{
        "classes": {"narrow": 20, "tie": 20},
        "bytes": 7,
        "sha256": "0" * 64,
        "signals": {"file": "v.bin", "sha256": "0" * 64},
    },
}


@pytest.mark.parametrize("form", long_after(1, files.NAMES))
@pytest.mark.parametrize("key", GIVEN_BY_UNIT_OR_FILE)
def test_a_new_digest_does_not_help(form: str, key: str, tmp_path: Path) -> None:
    """Who edits a key and computes the digest again is still found, wherever unit or file say otherwise."""
    file, good = written(tmp_path, form, weights={"narrow": 2.0, "tie": 1.0})
    value = "testfloat" if (form, key) == ("csv", "format") else GIVEN_BY_UNIT_OR_FILE[key]
    changed = good | {key: value}
    manifest.path_for(file).write_text(json.dumps(changed | {"digest": manifest.digest(changed)}))
    refused(file)


@pytest.mark.parametrize("key", ["name", "format", "elements", "bits", "shape", "lsb"])
def test_fields_are_those_of_the_unit(key: str, tmp_path: Path) -> None:
    file, good = written(tmp_path, "readmemh")
    good["fields"][1][key] = other(good["fields"][1][key])
    manifest.path_for(file).write_text(json.dumps(good | {"digest": manifest.digest(good)}))
    assert "fields" in refused(file)


@pytest.mark.parametrize("form", [name for name in files.NAMES if name != "npz"])
@pytest.mark.parametrize("level", long_after(1, ["dot", "tile", "fragment"]))
def test_a_wrong_result_is_found_though_every_checksum_fits(form: str, level: str, tmp_path: Path) -> None:
    file = tmp_path / "v.bin"
    files.write_stream(file, QUAD, 6, level=level, form=form)
    good = manifest.load(file)
    lines = file.read_bytes().split(b"\n")
    place = good.parts[1].line + 2
    line = bytearray(lines[place - 1])
    old = _last_digit_of_d(bytes(line), form)
    line[old] = ord("1") if line[old] != ord("1") else ord("2")
    lines[place - 1] = bytes(line)
    _write_again(file, b"\n".join(lines), good)
    assert f"v.bin:{place}: edited: d is" in refused(file)


def _last_digit_of_d(text: bytes, form: str) -> int:
    return {
        "readmemh": lambda: text.rindex(b" //") - 1,
        "sv": lambda: text.rindex(b"; //") - 1,
        "testfloat": lambda: text.rindex(b" ") - 1,
        "csv": lambda: text.rindex(b",") - 1,
        "jsonl": lambda: text.index(b'"', text.index(b'"d": ') + 7 + (b'"d": [' in text)) - 1,
    }[form]()


def _write_again(file: Path, content: bytes, made: manifest.Manifest) -> None:
    """File and manifest as somebody would leave them who computes every checksum again."""
    file.write_bytes(content)
    at = 0
    parts = []
    for part in made.parts:
        text = content[at : at + part.bytes]
        parts.append(manifest.Part(part.line, part.lines, part.bytes, f"{zlib.crc32(text):08x}"))
        at += part.bytes
    made.parts, made.sha256 = parts, hashlib.sha256(content).hexdigest()
    manifest.path_for(file).write_text(made.text())


def test_a_wrong_result_in_an_archive(tmp_path: Path) -> None:
    import numpy as np

    file = tmp_path / "v.npz"
    made = files.write_stream(file, HMMA, 20)
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays["d"][7] ^= 1
    np.savez(file, **arrays)
    made.sha256, made.bytes = hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_size
    manifest.path_for(file).write_text(made.text())
    assert "v.npz[7]: edited: d is" in refused(file)
    arrays["d"] = arrays["d"].astype(np.uint64)
    np.savez(file, **arrays)
    made.sha256, made.bytes = hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_size
    manifest.path_for(file).write_text(made.text())
    assert "[d]: is uint64" in refused(file)


def test_what_a_line_says_besides_its_bits(tmp_path: Path) -> None:
    """Comments, case and the number of a vector are part of the format."""
    file = tmp_path / "v.sv"
    made = files.write_stream(file, HMMA, 20)
    text = file.read_bytes()
    for old, new in (
        (b" 7: vector", b" 6: vector"),
        (b"; // ", b";//  "),
        (b"vectors of level dot", b"vectors of level dox"),
    ):
        _write_again(file, text.replace(old, new, 1), made)
        assert "v.sv" in refused(file)


def test_manifests_of_schema_1_are_read(tmp_path: Path) -> None:
    file, good = written(tmp_path, "readmemh")
    old = {key: value for key, value in good.items() if key != "digest"} | {"schema": 1}
    manifest.path_for(file).write_text(json.dumps(old))
    assert files.check(file).count == 40 and len(files.read(file)) == 40
    manifest.path_for(file).write_text(json.dumps(old | {"seed": 2}))
    assert "header differs" in refused(file)
    manifest.path_for(file).write_text(json.dumps(good | {"schema": 1}))
    assert "unknown key 'digest'" in refused(file)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"schema": 2\0}',
        b"[" * 100_000,
        b'{"a":' * 30_000,
        b'{"schema": 2, "schema": 2}',
        b'{"schema": NaN}',
        b'{"schema": 1e999}',
        b'{"schema": ' + b"9" * 10_000 + b"}",
        b'{"schema": true}',
        b'{"schema": [2]}',
    ],
)
def test_what_is_no_manifest(text: bytes, tmp_path: Path) -> None:
    file, _ = written(tmp_path, "readmemh")
    manifest.path_for(file).write_bytes(text)
    assert "v.bin.manifest.json: no" in refused(file)


def test_an_endless_count_is_not_drawn(tmp_path: Path) -> None:
    """A manifest of schema 1 that claims 10**15 vectors, next to a file of a few lines."""
    file, good = written(tmp_path, "readmemh")
    count = 10**15
    parts = [dict(part) for part in good["parts"]]
    parts[1]["lines"] = count
    parts[2]["line"] = parts[1]["line"] + count
    old = {key: value for key, value in good.items() if key != "digest"}
    old |= {"schema": 1, "count": count, "classes": {"narrow": count}, "parts": parts}
    manifest.path_for(file).write_text(json.dumps(old))
    refused(file)
    assert len(vectors.default_set(HMMA, 3)) == 3
