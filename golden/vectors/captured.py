"""Outputs captured on real GPUs: the vectors committed in vectors/, and the evidence that spec/evidence makes
of them.

    for vector in captured.load("hopper"):
        d = golden.instruction("hopper", vector.name)(**vector.operands)      # must equal vector.d

`python -m golden.vectors.captured` checks every committed file against its manifest and writes spec/evidence
again. The vectors come with a checkout, not with an installed wheel; spec/evidence comes with both.

A manifest of schema 1 names device, date, seed and, for each instruction, its file, hash, shapes and the
operand class of every tile. Schema 2 adds scales, the `tools` that built the kernels and, for each
instruction that hw_capture recorded, `ptx` and `sass` (lines by form of the kernel), `emulated`, `seed` and
`date`. Both schemas are read.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.boundary import end
from golden.catalog.architectures import captures
from golden.catalog.evidence_file import with_digest
from golden.errors import FileFormatError, UnknownNameError, nearest
from golden.files.inputs import check_keys, decoded, parse_json, read_bytes
from golden.files.npyfile import read_arrays
from golden.files.output import write_whole
from golden.paths import docs_folder, spec_folder
from golden.paths import vector_file as file_name

Bits = npt.NDArray[Any]
SCHEMA = 2
"""The schema that is written."""
_read: dict[tuple[bytes, str | None], dict[str, Any]] = {}
"""Manifests by the SHA-256 of their text."""
ARRAYS = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b")
_GPU = ("name", "compute_capability", "cuda", "driver")
_AMD = ("name", "target", "hip", "driver")
_CPU = ("name", "cpuid", "system", "compiler")
_ENTRY = {
    "file": str,
    "sha256": str,
    "tiles": int,
    "dots": int,
    "shapes": dict,
    "dtypes": dict,
    "class_set": str,
    "classes": list,
}
_RECORDED = {"ptx": dict, "sass": dict, "emulated": bool, "seed": int, "date": str}
_MANIFEST = {
    "architecture": str,
    "device": dict,
    "date": str,
    "seed": int,
    "operands": str,
    "operand_classes": dict,
    "instructions": dict,
}


@dataclass(frozen=True)
class Captured:
    """The committed tiles of one instruction: raw bits in the shapes of the matrix API,
    one batch entry a tile."""

    name: str
    operands: dict[str, Bits]
    d: Bits
    classes: tuple[str, ...]
    """What the operands of each tile are, in words."""


def vectors_folder() -> Path:
    """Returns the vectors/ folder of the checkout; raises FileFormatError in an installation without one."""
    folder = Path(__file__).resolve().parents[2] / "vectors"
    if not folder.is_dir():
        raise FileFormatError(
            f"{folder}: captured vectors are part of a checkout, this installation has none"
        )
    return folder


def architectures(folder: Path | None = None) -> list[str]:
    """Returns the architectures that have captured vectors."""
    return sorted(path.parent.name for path in (folder or vectors_folder()).glob("*/manifest.json"))


def read_manifest(architecture: str, folder: Path | None = None) -> dict[str, Any]:
    """Returns the checked manifest of one architecture's vectors; raises FileFormatError naming file and key.

    That of the checkout (no `folder`) must be the one that spec/evidence was made of.
    """
    return copy.deepcopy(_manifest(architecture, folder))


def read_manifest_file(path: Path, architecture: str | None = None) -> dict[str, Any]:
    """Returns the checked manifest in `path`, of any or of the one architecture; raises FileFormatError."""
    return copy.deepcopy(_checked(path, read_bytes(path), architecture))


def _manifest(architecture: str, folder: Path | None) -> dict[str, Any]:
    """As `read_manifest`, but shared: nobody changes it."""
    path = (folder or vectors_folder()) / architecture / "manifest.json"
    if architecture not in (known := architectures(folder)):
        raise FileFormatError(
            f"{path.parent}: nothing is recorded of {architecture}, expected one of {', '.join(known)}"
        )
    content = read_bytes(path)
    recorded = captures(architecture).manifest_sha256
    if folder is None and recorded != hashlib.sha256(content).hexdigest():
        raise FileFormatError(
            f"{path}: edited: its SHA-256 is not the one in spec/evidence/{architecture}.yaml "
            f"({recorded[:16]})"
        )
    return _checked(path, content, architecture)


def _checked(path: Path, content: bytes, architecture: str | None) -> dict[str, Any]:
    """The manifest in the content of a file; the same content is read once."""
    key = hashlib.sha256(content).digest(), architecture
    if key not in _read:
        manifest = parse_json(decoded(content, path), str(path))
        _check_manifest(manifest, architecture, path)
        _read[key] = manifest
    return _read[key]


def _check_manifest(manifest: Any, architecture: str | None, path: Path) -> None:
    # The schemas that are read.
    readable = (1, 2)
    if not isinstance(manifest, dict) or manifest.get("schema") not in readable:
        found = manifest.get("schema") if isinstance(manifest, dict) else type(manifest).__name__
        raise FileFormatError(f"{path}: schema is {found}, expected {' or '.join(map(str, readable))}")
    check_keys(manifest, _MANIFEST, f"{path}", others=True)
    device = manifest["device"]
    check_keys(device, dict.fromkeys(device_facts(device), str), f"{path}: device", others=True)
    if architecture is not None and manifest["architecture"] != architecture:
        raise FileFormatError(
            f"{path}: architecture is '{manifest['architecture']}', expected '{architecture}'"
        )
    # Each entry names a file in the same folder, its arrays, and the class of every tile.
    for name, entry in manifest["instructions"].items():
        where = f"{path}: {name}"
        check_keys(entry, _ENTRY, where, others=True)
        check_keys(entry, {key: kind for key, kind in _RECORDED.items() if key in entry}, where, others=True)
        classes = manifest["operand_classes"].get(entry["class_set"])
        if (
            not isinstance(classes, list)
            or not all(isinstance(word, str) for word in classes)
            or len(entry["classes"]) != entry["tiles"]
        ):
            raise FileFormatError(
                f"{where}: 'classes' does not name the class of each of the {entry['tiles']} tiles"
            )
        if not all(type(i) is int and 0 <= i < len(classes) for i in entry["classes"]):
            raise FileFormatError(
                f"{where}: 'classes' holds something that is no index of class set '{entry['class_set']}'"
            )
        if Path(entry["file"]).name != entry["file"] or set(entry["shapes"]) != set(entry["dtypes"]):
            raise FileFormatError(
                f"{where}: 'file' is not a plain file name, or 'shapes' and 'dtypes' name different arrays"
            )


def device_facts(device: Mapping[str, Any]) -> tuple[str, ...]:
    """The facts that a manifest must give about a device. They differ for a CPU (it has a CPUID), for GPUs of
    AMD (they have a target) and for GPUs of NVIDIA."""
    return _CPU if "cpuid" in device else _AMD if "target" in device else _GPU


def device_text(device: Mapping[str, Any]) -> str:
    """The device of a manifest with what made the programs that ran on it: "NVIDIA H200 (compute capability
    9.0, CUDA 13.0, driver 580.65)"."""
    labels = {
        "compute_capability": "compute capability ",
        "cuda": "CUDA ",
        "driver": "driver ",
        "cpuid": "CPUID ",
        "hip": "HIP ",
    }
    facts = ", ".join(f"{labels.get(key, '')}{device[key]}" for key in device_facts(device)[1:])
    return f"{device['name']} ({facts})"


def load(architecture: str, folder: Path | None = None) -> Iterator[Captured]:
    """Yields the committed vectors of every captured instruction, each file checked against the manifest.

    Raises:
        FileFormatError: a file is missing, was edited or cut short, or is not what the manifest says.
    """
    manifest = _manifest(architecture, folder)
    yield from load_entries(manifest, (folder or vectors_folder()) / architecture)


def load_entries(
    manifest: dict[str, Any], folder: Path, names: Iterable[str] | None = None
) -> Iterator[Captured]:
    """Yields the vectors of a checked manifest (of `names` only, if given) whose files lie in `folder`;
    see `load`."""
    for name in manifest["instructions"] if names is None else names:
        yield _load_entry(manifest, name, folder)


def load_one(architecture: str, name: str) -> Captured:
    """Returns the committed vectors of one instruction; raises UnknownNameError when it was not captured."""
    manifest = _manifest(architecture, None)
    if name not in manifest["instructions"]:
        raise UnknownNameError(
            f"'{name}' has no captured vectors on {architecture}{nearest(name, manifest['instructions'])}"
        )
    return _load_entry(manifest, name, vectors_folder() / architecture)


def _load_entry(manifest: dict[str, Any], name: str, folder: Path) -> Captured:
    entry = manifest["instructions"][name]
    path = folder / entry["file"]
    arrays = _read_arrays(path, entry)
    for key in (*ARRAYS[:4], *entry["shapes"]):
        found = (list(arrays[key].shape), str(arrays[key].dtype)) if key in arrays else "missing"
        wanted = entry["shapes"].get(key), entry["dtypes"].get(key)
        if found != wanted:
            raise FileFormatError(f"{path}: array '{key}' is {found}, expected {wanted}")
    if arrays["d"].shape[0] != entry["tiles"] or arrays["d"].size != entry["dots"]:
        raise FileFormatError(f"{path}: holds {arrays['d'].size} results, the manifest says {entry['dots']}")
    words = manifest["operand_classes"][entry["class_set"]]
    result = arrays.pop("d")
    return Captured(name, arrays, result, tuple(words[i] for i in entry["classes"]))


def _read_arrays(path: Path, entry: dict[str, Any]) -> dict[str, Bits]:
    # Bytes of one file of vectors.
    max_file = 1 << 30
    content = read_bytes(path, max_file)
    digest = hashlib.sha256(content).hexdigest()
    if digest != entry["sha256"]:
        raise FileFormatError(
            f"{path}: {len(content)} bytes with sha256 {digest[:16]}..., expected {entry['sha256'][:16]}...: "
            "the file was edited or cut short"
        )
    return read_arrays(path, ARRAYS, content=content)


# Writing ----------------------------------------------------------------------------------------------------


def save(
    folder: Path, name: str, arrays: Mapping[str, Bits], class_set: str, classes: list[int]
) -> dict[str, Any]:
    """Writes the vectors of one instruction and returns its manifest entry. The same arrays always give
    the same bytes."""
    content = pack(arrays)
    path = folder / file_name(name)
    _replace(path, content)
    ordered = [key for key in ARRAYS if key in arrays]
    return {
        "file": path.name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "tiles": int(arrays["d"].shape[0]),
        "dots": int(arrays["d"].size),
        "shapes": {key: list(arrays[key].shape) for key in ordered},
        "dtypes": {key: str(arrays[key].dtype) for key in ordered},
        "class_set": class_set,
        "classes": classes,
    }


def pack(arrays: Mapping[str, Bits]) -> bytes:
    """Returns the bytes of a compressed .npz whose every time stamp is the same (LZMA: a sixth smaller
    than deflate)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key in (key for key in ARRAYS if key in arrays):
            member = io.BytesIO()
            np.lib.format.write_array(
                member, np.ascontiguousarray(arrays[key]), version=(1, 0), allow_pickle=False
            )
            info = zipfile.ZipInfo(f"{key}.npy")  # without a date
            info.external_attr, info.create_system = 0o644 << 16, 3
            archive.writestr(info, member.getvalue(), zipfile.ZIP_LZMA)
    return buffer.getvalue()


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Writes folder/manifest.json whole or not at all: one line for each key,
    each class and each instruction."""

    def inner(key: str, value: Any) -> str:
        if key == "instructions":
            lines = (f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items())
            return "{\n" + ",\n".join(lines) + "}"
        if key == "operand_classes":
            sets = (
                f"  {json.dumps(name)}: [\n   " + ",\n   ".join(map(json.dumps, words)) + "]"
                for name, words in value.items()
            )
            return "{\n" + ",\n".join(sets) + "\n }"
        return json.dumps(value)

    text = (
        "{\n"
        + ",\n".join(f" {json.dumps(key)}: {inner(key, value)}" for key, value in manifest.items())
        + "\n}\n"
    )
    _replace(folder / "manifest.json", text.encode())


def _replace(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; raises FileFormatError when it cannot be written."""
    write_whole(path, lambda stream: stream.write(content))


def evidence(architecture: str, folder: Path | None = None) -> str:
    """Returns the text of spec/evidence/ARCHITECTURE.yaml: which instructions are captured,
    where and how often."""
    path = (folder or vectors_folder()) / architecture / "manifest.json"
    manifest = read_manifest_file(path, architecture)
    device = manifest["device"]
    lines = [
        f"# Written by `python -m golden.vectors.captured` from vectors/{architecture}/manifest.json; edit "
        "neither by hand.",
        f"architecture: {architecture}",
        f"source: outputs of an {device['name']}, recorded with operands of known classes",
        f"device: {device['name']}",
        *(f"{key}: {json.dumps(device[key])}" for key in device_facts(device)[1:]),
        f"date: {json.dumps(manifest['date'])}",
        f"vectors: vectors/{architecture}",
        f"manifest_sha256: {hashlib.sha256(path.read_bytes()).hexdigest()}",
        "captured:   # results recorded of each instruction",
    ]
    lines += [f"  {json.dumps(name)}: {entry['dots']}" for name, entry in manifest["instructions"].items()]
    return with_digest("\n".join(lines) + "\n")


def campaign_evidence() -> str:
    """Returns the text of spec/evidence/campaigns.yaml: the reports in docs/campaigns and their SHA-256."""
    lines = [
        "# Written by `python -m golden.vectors.captured` from docs/campaigns; edit neither by hand.",
        "source: reports of mmagold campaign, with their SHA-256",
        "reports:",
        *(
            f"  {path.name}: {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for path in sorted((docs_folder() / "campaigns").glob("*"))
            if path.suffix in (".json", ".md")
        ),
    ]
    return with_digest("\n".join(lines) + "\n")


def main(arguments: list[str]) -> int:
    """Checks all committed vectors and writes spec/evidence; with --check it only compares.
    Returns the exit status.

    Raises:
        FileFormatError: a file is not as it was recorded, the evidence not what the files give, or it cannot
            be written.
    """
    if any(argument != "--check" for argument in arguments):
        print("usage: python -m golden.vectors.captured [--check]", file=sys.stderr)
        return 2
    for architecture in architectures():
        vectors = list(load(architecture, vectors_folder()))
        _update(architecture, evidence(architecture), bool(arguments))
        results = sum(vector.d.size for vector in vectors)
        print(f"{architecture}: {len(vectors)} instructions, {results} results, all files as recorded")
    _update("campaigns", campaign_evidence(), bool(arguments))
    return 0


def _update(name: str, text: str, only_check: bool) -> None:
    path = spec_folder() / "evidence" / f"{name}.yaml"
    if not only_check:
        path.parent.mkdir(exist_ok=True)
        _replace(path, text.encode())
    elif not path.exists() or path.read_text("utf-8") != text:
        raise FileFormatError(
            f"{path}: is not what the recorded files give; run 'python -m golden.vectors.captured'"
        )


if __name__ == "__main__":
    end(lambda: main(sys.argv[1:]), "golden.vectors.captured")
