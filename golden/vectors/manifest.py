"""The JSON manifest of a vector file: what the file holds, how it was made,
and checksums to find what changed.

`FILE.manifest.json` names the instruction and the hash of its specification, the fields with their widths and
bit order, the seed and the weights of the kinds, and SHA-256 and CRC-32 of the file and of each of its parts.

A manifest is believed only as far as it agrees with the unit, the file and itself: what follows from the unit
is compared with it here (`check_unit`), what follows from the file in golden/vectors/files.py; what follows
from neither (seed, version, weights) is held by `digest`, the SHA-256 of everything else in the manifest.
Manifests of schema 1 have no digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from golden import stimuli
from golden.errors import FileFormatError, nearest
from golden.files.inputs import check_keys, read_json
from golden.model.instruction import Instruction
from golden.vectors.word import RESULTS, WordLayout

BIT_ORDER = (
    "fields from MSB to LSB as listed; element 0 of a field in its least significant bits; matrices "
    "row by row"
)


@dataclass(frozen=True)
class Part:
    """A stretch of whole lines: the header, a run of vectors, or the footer."""

    line: int
    lines: int
    bytes: int
    crc32: str


@dataclass
class Manifest:
    """The contents of a manifest; `weights` is None where the vectors were not drawn
    by `stream` from the seed."""

    file: str
    format: str
    level: str
    architecture: str
    instruction: str
    spec_sha256: str
    version: str
    seed: int
    weights: dict[str, float] | None
    count: int
    operand_width: int
    result_width: int
    fields: list[dict[str, Any]]
    classes: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    sha256: str = ""
    signals: dict[str, str] | None = None
    parts: list[Part] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The manifest as plain values, in the order of the file."""
        # The schema that is written.
        schema = 2
        values = {"schema": schema, "bit_order": BIT_ORDER, **asdict(self)}
        return {**values, "digest": digest(values)}

    def text(self) -> str:
        """The manifest as the text of its file: one key a line, one part a line."""
        values = self.as_dict()
        parts, own = ",\n    ".join(json.dumps(part) for part in values.pop("parts")), values.pop("digest")
        listed = f',\n  "parts": [\n    {parts}\n  ],\n' if parts else ',\n  "parts": [],\n'
        return json.dumps(values, indent=2)[:-2] + listed + f'  "digest": "{own}"\n}}\n'


def digest(values: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest's values, whatever their order, `digest` left out."""
    content = {key: value for key, value in values.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def path_for(path: str | Path) -> Path:
    """The manifest's path for a vector file."""
    return Path(f"{path}.manifest.json")


def spec_hash(ins: Instruction) -> str:
    """SHA-256 of the instruction's specification without its evidence and sources:
    equal hashes, equal bits."""
    from golden.explain.specification import specification

    content = {
        key: value for key, value in specification(ins).items() if key not in ("evidence", "sources", "notes")
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def describe(
    ins: Instruction, layout: WordLayout, file: str, form: str, seed: int, weights: Mapping[str, float] | None
) -> Manifest:
    """A manifest with everything that is known before the vectors are written."""
    from golden import __version__

    return Manifest(
        file,
        form,
        layout.level,
        ins.architecture,
        ins.name,
        spec_hash(ins),
        __version__,
        seed,
        None if weights is None else dict(weights),
        0,
        layout.operand_width,
        layout.result_width,
        fields_of(ins, layout),
    )


def _format_name(ins: Instruction, name: str) -> str:
    """What a field holds; a format that depends on the mode is named by all that it may be."""
    if name in ("metadata", "mode", "clear", "load", "flags"):
        return name
    return "|".join(dict.fromkeys(unit.formats[name].name for unit in ins.mode_units.values() or [ins]))


def fields_of(ins: Instruction, layout: WordLayout) -> list[dict[str, Any]]:
    """The fields of a word as a manifest lists them."""
    return [
        {
            "name": f.name,
            "format": _format_name(ins, f.name),
            "elements": f.elements,
            "bits": f.bits,
            "shape": list(f.shape),
            "lsb": f.lsb + (layout.result_width if f.name not in RESULTS else 0),
        }
        for f in layout.fields
    ]


_NUMBER = (int, float)


def _types(hint: Any) -> tuple[type, ...]:
    """What JSON holds in place of a value of this type."""
    sides = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return tuple(get_origin(side) or side for side in sides)


_KEYS: dict[str, type | tuple[type, ...]] = {
    "schema": int,
    "bit_order": str,
    **{name: _types(hint) for name, hint in get_type_hints(Manifest).items()},
    "digest": str,
}
_PART = {"line": int, "lines": int, "bytes": int, "crc32": str}


def load(path: str | Path) -> Manifest:
    """Reads the manifest of a vector file.

    Raises:
        FileFormatError: it is missing, no JSON, of another schema, has an unknown, missing or wrong key,
            contradicts itself, or is not the one that was written (`digest`).
    """
    file = path_for(path)
    if not file.exists():
        raise FileFormatError(_why_none(Path(path)))
    values = read_json(file)
    schema = values.get("schema") if isinstance(values, dict) else None
    # The schemas that are read.
    readable = (1, 2)
    if isinstance(schema, bool) or schema not in readable:
        raise FileFormatError(f"{file}: no manifest of schema {' or '.join(map(str, readable))}")
    keys = {key: kind for key, kind in _KEYS.items() if schema > 1 or key != "digest"}
    check_keys(values, keys, str(file))
    _check_values(values, file)
    if schema > 1 and values["digest"] != digest(values):
        raise FileFormatError(f"{file}: edited: the SHA-256 of its content is not its 'digest'")
    content = {
        key: value for key, value in values.items() if key not in ("schema", "bit_order", "digest", "parts")
    }
    return Manifest(**content, parts=[Part(**part) for part in values["parts"]])


def _why_none(path: Path) -> str:
    """Why a vector file has no manifest: it is a folder, or not there; and what to do."""
    if not path.is_dir():
        what = "it has no manifest" if path.exists() else "there is no such file, nor its manifest"
        return (
            f"{path}: cannot be read: {what} ({path_for(path).name}, which is in the folder of every file "
            f"that mmagold "
            "vectors --out writes); copy the manifest of the file, or write both again"
        )
    ending = path_for("").name
    named = sorted(found.name.removesuffix(ending) for found in path.glob(f"?*{ending}"))
    # Files of a folder that a message names.
    most_shown = 5
    shown = ", ".join(named[:most_shown]) + ", ..." * (len(named) > most_shown)
    return f"{path}: is a folder, expected a file that mmagold vectors --out wrote; " + (
        f"name one in it: {shown}" if named else f"none lies in it: write one, --out {path / 'v.hex'}"
    )


def _check_values(values: dict[str, Any], file: Path) -> None:
    """Refuses what can be in no manifest, whatever the unit and the file."""
    if values["bit_order"] != BIT_ORDER:
        raise FileFormatError(f"{file}: key 'bit_order' is not that of this package: '{BIT_ORDER}'")
    for key in ("seed", "count", "operand_width", "result_width", "bytes"):
        _least(values, key, 0, file)
    for key in ("spec_sha256", "sha256"):
        _hex(values, key, 64, file)
    for key, kind in (("weights", _NUMBER), ("classes", int)):
        table = values[key] if values[key] is not None else {}
        for name in table:
            if name not in stimuli.KINDS:
                raise FileFormatError(f"{file}: {key}: '{name}' is no kind{nearest(name, stimuli.KINDS)}")
            _least(table, name, 0, file, kind)
    if values["signals"] is not None:
        check_keys(values["signals"], {"file": str, "sha256": str}, f"{file}: signals")
        _hex(values["signals"], "sha256", 64, file)
        if Path(values["signals"]["file"]).name != values["signals"]["file"]:
            raise FileFormatError(
                f"{file}: signals: '{values['signals']['file']}' is not the name of a file in its folder"
            )
    # Every vector has a class.
    if sum(values["classes"].values()) != values["count"]:
        found = sum(values["classes"].values())
        raise FileFormatError(
            f"{file}: key 'count' is {values['count']}, but 'classes' counts {found} vectors"
        )
    _check_parts(values, file)


def _least(values: dict[str, Any], key: str, least: int, file: Path, kind: Any = int) -> None:
    value = values[key]
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
        raise FileFormatError(
            f"{file}: key '{key}' is {json.dumps(value)}, expected a number of {least} or more"
        )


def _hex(values: dict[str, Any], key: str, digits: int, file: Path) -> None:
    if not re.fullmatch(rf"[0-9a-f]{{{digits}}}", values[key]):
        raise FileFormatError(f"{file}: key '{key}' is not {digits} lower-case hex digits")


def _check_parts(values: dict[str, Any], file: Path) -> None:
    """A text has a header, runs of vectors and a footer without gaps; an archive has no parts."""
    parts = values["parts"]
    for number, part in enumerate(parts):
        check_keys(part, _PART, f"{file}: part {number}")
        _hex(part, "crc32", 8, file)
        for key in ("line", "lines", "bytes"):
            _least(part, key, 0, file)
    if values["format"] == "npz":
        if parts:
            raise FileFormatError(f"{file}: key 'parts' is not empty, but an npz file has none")
        return
    lines = 1
    for number, part in enumerate(parts):
        if part["line"] != lines:
            raise FileFormatError(
                f"{file}: part {number} starts at line {part['line']}, but the parts before end at "
                f"{lines - 1}"
            )
        lines += part["lines"]
    found = sum(part["lines"] for part in parts[1:-1]), sum(part["bytes"] for part in parts)
    if len(parts) < 3 or found != (values["count"], values["bytes"]):
        raise FileFormatError(
            f"{file}: its parts hold {found[0]} vectors in {found[1]} bytes, not {values['count']} in "
            f"{values['bytes']}"
        )


def check_unit(manifest: Manifest, ins: Instruction, layout: WordLayout, path: str | Path) -> None:
    """Refuses a manifest that says anything else of the vectors' bits than the unit does."""
    check_instruction(manifest, ins, path)
    widths = {"operand_width": layout.operand_width, "result_width": layout.result_width}
    for key, value in widths.items():
        if getattr(manifest, key) != value:
            raise FileFormatError(
                f"{path_for(path)}: key '{key}' is {getattr(manifest, key)}, but {value} for {ins.name}"
            )
    if json.dumps(manifest.fields) != json.dumps(fields_of(ins, layout)):
        raise FileFormatError(
            f"{path_for(path)}: key 'fields' does not give the operands of {ins.name} (--json lists them)"
        )


def check_instruction(manifest: Manifest, ins: Instruction, path: str | Path) -> None:
    """Refuses a file whose expected results another specification gave."""
    found = spec_hash(ins)
    if found != manifest.spec_sha256:
        raise FileFormatError(
            f"{path_for(path)}: made by mmagold {manifest.version} for another specification of "
            f"{manifest.instruction} (spec_sha256 {manifest.spec_sha256[:12]}, now {found[:12]}); make the "
            "vectors again"
        )
