"""The files of spec/evidence carry the SHA-256 of their own text: a claim is believed as it was written,
or not at all."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from golden import yamlfile
from golden.errors import FileFormatError, SpecError
from golden.files.inputs import read_bytes, read_text
from golden.paths import docs_folder, spec_folder
from golden.yamlfile import Section

_LINE = re.compile(r"^digest: ([0-9a-f]{64})\n", re.M)


def with_digest(text: str) -> str:
    """The text with a last line that holds the SHA-256 of the others."""
    return f"{text}digest: {_sha256(text)}\n"


def read(name: str) -> Section | None:
    """spec/evidence/NAME.yaml, None where there is none.

    Raises:
        SpecError: its text is not the one that its digest was made of.
    """
    path = spec_folder() / "evidence" / f"{name}.yaml"
    if not path.exists():
        return None
    try:
        text = read_text(path)
    except FileFormatError as error:
        raise SpecError(str(error)) from None
    found = _LINE.search(text)
    if found is None or text[found.end() :] or found[1] != _sha256(text[: found.start()]):
        raise SpecError(
            f"{path}: edited: its last line, 'digest', is not the SHA-256 of the others (python -m "
            "golden.vectors.captured)"
        )
    document = yamlfile.parse(text, str(path))
    document.take("digest", str)
    return document


def check_report(path: Path) -> Path:
    """A report of docs/campaigns, which must be the one that spec/evidence names. Raises SpecError."""
    document = read("campaigns")
    reports = {} if document is None else document.take("reports", Section)
    if (
        path.parent != docs_folder() / "campaigns"
        or reports.get(path.name) != hashlib.sha256(read_bytes(path)).hexdigest()
    ):
        raise SpecError(
            f"{path}: not the report that spec/evidence/campaigns.yaml names; run 'python -m "
            "golden.vectors.captured'"
        )
    return path


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
