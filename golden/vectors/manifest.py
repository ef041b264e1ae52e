"""The JSON manifest beside a vector file: what the file holds, how it was made, and checksums to find what changed.

`FILE.manifest.json` names the instruction and the hash of its specification, the fields with their widths and bit
order, the seed and the weights of the kinds, and SHA-256 and CRC-32 of the file and of each of its parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from golden.errors import FileFormatError
from golden.instruction import Instruction
from golden.vectors.word import WordLayout

SCHEMA = 1
BIT_ORDER = "fields from MSB to LSB as listed; element 0 of a field in its least significant bits; matrices row by row"


@dataclass(frozen=True)
class Part:
    """A stretch of whole lines: the header, a run of vectors, or the footer."""

    line: int
    lines: int
    bytes: int
    crc32: str


@dataclass
class Manifest:
    """The contents of a manifest; `weights` is None where the vectors were not drawn by `stream` from the seed."""

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
        return {"schema": SCHEMA, "bit_order": BIT_ORDER, **asdict(self)}

    def text(self) -> str:
        """The manifest as the text of its file: one key a line, one part a line."""
        values = self.as_dict()
        parts = ",\n    ".join(json.dumps(part) for part in values.pop("parts"))
        return json.dumps(values, indent=2)[:-2] + f',\n  "parts": [\n    {parts}\n  ]\n}}\n'


def beside(path: str | Path) -> Path:
    """The manifest's path for a vector file."""
    return Path(f"{path}.manifest.json")


def spec_hash(ins: Instruction) -> str:
    """SHA-256 of the instruction's specification without its evidence and sources: equal hashes, equal bits."""
    from golden.export import specification

    told = {key: value for key, value in specification(ins).items() if key not in ("evidence", "sources", "notes")}
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def describe(
    ins: Instruction, layout: WordLayout, file: str, form: str, seed: int, weights: Mapping[str, float] | None
) -> Manifest:
    """A manifest with everything that is known before the vectors are written."""
    from golden import __version__

    fields = [
        {
            "name": f.name,
            "format": ins.formats[f.name].name if f.name in ins.formats else "metadata",
            "elements": f.elements,
            "bits": f.bits,
            "shape": list(f.shape),
            "lsb": f.lsb + (layout.result_width if f.name != "d" else 0),
        }
        for f in layout.fields
    ]
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
        fields,
    )


def load(path: str | Path) -> Manifest:
    """Reads the manifest beside a vector file.

    Raises:
        FileFormatError: it is missing, no JSON, of another schema, or lacks a key.
    """
    file = beside(path)
    try:
        values = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(f"{file}: cannot be read: {error.strerror}; a vector file needs its manifest beside it") from None
    except ValueError as error:
        raise FileFormatError(f"{file}: no JSON: {error}") from None
    if not isinstance(values, dict) or values.pop("schema", None) != SCHEMA:
        raise FileFormatError(f"{file}: no manifest of schema {SCHEMA}")
    values.pop("bit_order", None)
    try:
        parts = [Part(**part) for part in values.pop("parts")]
        return Manifest(**values, parts=parts)
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{file}: wrong or missing key: {error}") from None


def check_instruction(manifest: Manifest, ins: Instruction, path: str | Path) -> None:
    """Refuses a file whose expected results another specification gave."""
    found = spec_hash(ins)
    if found != manifest.spec_sha256:
        raise FileFormatError(
            f"{beside(path)}: made by mmagold {manifest.version} for another specification of {manifest.instruction} "
            f"(spec_sha256 {manifest.spec_sha256[:12]}, now {found[:12]}); make the vectors again"
        )
