"""Runs the cases on the GPU of this machine and writes what they answered: results.npz with the raw codes of
each D, and products.json with device, versions, kernels, plans, digests and what was refused.

Operands are not stored: `Case.operands` draws them again, and their digest reveals a generator that drifted.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import FileFormatError
from golden.files.inputs import decoded, parse_json, read_bytes
from golden.files.npyfile import read_arrays
from golden.files.output import write_all, write_text
from golden.kernels.plan import Plan
from hw_capture.errors import DeviceError
from hw_capture.products.calls import Torch
from hw_capture.products.cases import Case
from hw_capture.products.explain import explain, name_of, plan_of
from hw_capture.record.verify import PRODUCTS

Bits = npt.NDArray[Any]
MANIFEST, RESULTS = PRODUCTS, "results.npz"
MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Recorded:
    """What a library answered.

    Attributes:
        d: raw codes (m, n).
        kernels: the kernels that ran.
        operands: digest of what `case.operands()` gave.
        plan: the one that gives these bits, None where none is known.
    """

    case: Case
    d: Bits
    kernels: list[str]
    operands: str
    plan: Plan | None


@dataclass(frozen=True)
class Kept:
    """A product of which the digest of {"d": results} alone was kept; the rest is as `Recorded` has it."""

    case: Case
    answer: str
    kernels: list[str]
    operands: str
    plan: Plan | None


@dataclass
class Report:
    """Counts of one recording. `explained`: products that a named plan gives, every bit; `refused`: (name of
    the case, why)."""

    recorded: int = 0
    explained: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


def digest(arrays: Mapping[str, Bits]) -> str:
    """SHA-256 over names, shapes and little-endian bytes."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


def record(
    cases: Sequence[Case],
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Report:
    """Runs all cases and writes both files, whole.

    Args:
        progress: called with the name of each case before it runs, the number done, and their total.

    Raises:
        ToolMissing: PyTorch is not installed.
        DeviceError: PyTorch finds no GPU.
    """
    torch, report = Torch(), Report()
    entries: dict[str, Any] = {}
    results: dict[str, Bits] = {}
    for done, case in enumerate(cases):
        progress(case.name, done, len(cases))
        operands = case.operands()
        try:
            d, kernels = torch.run(case, operands)
        except DeviceError as error:
            report.refused.append((case.name, str(error)))
            continue
        # A result without a plan is recorded as well: it is what is left to explain.
        plan = explain(case, operands, d)
        report.recorded += 1
        report.explained += plan is not None
        results[case.name] = d
        entries[case.name] = asdict(case) | {
            "kernels": kernels,
            "operands": digest(operands),
            "plan": _in_manifest(case, plan),
        }
    _write(folder, results, {"device": torch.about(), "cases": entries, "refused": dict(report.refused)})
    return report


def load(folder: Path) -> list[Recorded]:
    """What `record` wrote.

    Raises:
        FileFormatError: a file is missing, or the results differ from the manifest.
    """
    about = _manifest(folder / MANIFEST)
    content = read_bytes(folder / RESULTS, MOST_BYTES)
    if hashlib.sha256(content).hexdigest() != about["results"]:
        raise FileFormatError(
            f"{folder / RESULTS}: its SHA-256 is not that of {MANIFEST}, expected the file of that recording"
        )
    arrays = read_arrays(folder / RESULTS, content=content)
    return [Recorded(d=arrays[name], **_read(entry)) for name, entry in about["cases"].items()]


def write_digests(folder: Path, path: Path) -> None:
    """Writes a manifest in which digests stand for the results that `record` wrote.

    Raises:
        FileFormatError: as `load`.
    """
    about = _manifest(folder / MANIFEST)
    results = {one.case.name: digest({"d": one.d}) for one in load(folder)}
    cases = {name: entry | {"answer": results[name]} for name, entry in about["cases"].items()}
    del about["results"]
    write_text(path, json.dumps(about | {"cases": cases}, indent=1) + "\n")


def load_digests(path: Path) -> list[Kept]:
    """What `write_digests` wrote."""
    return [Kept(answer=entry["answer"], **_read(entry)) for entry in _manifest(path)["cases"].values()]


def _manifest(path: Path) -> dict[str, Any]:
    about: dict[str, Any] = parse_json(decoded(read_bytes(path, MOST_BYTES), path), str(path))
    return about


def _read(entry: Mapping[str, Any]) -> dict[str, Any]:
    """All of a product but its results."""
    case = Case(**{one.name: entry[one.name] for one in fields(Case)})
    said = entry["plan"]
    plan = plan_of(case) if said else None
    if plan is not None and said["options"]:
        plan = plan.but(**said["options"])
    return {"case": case, "kernels": entry["kernels"], "operands": entry["operands"], "plan": plan}


def _in_manifest(case: Case, plan: Plan | None) -> dict[str, Any] | None:
    """A plan as the manifest has it: its name, and the further options that were found."""
    base = plan_of(case)
    if plan is None or base is None:
        return None
    more = {key: value for key, value in plan.given.items() if base.given.get(key) != value}
    return {"name": name_of(case), "options": more}


def _write(folder: Path, results: Mapping[str, Bits], about: Mapping[str, Any]) -> None:
    packed = io.BytesIO()
    np.savez_compressed(packed, **results)  # type: ignore[arg-type]
    manifest = {
        "schema": 1,
        "date": datetime.now(UTC).date().isoformat(),
        "results": hashlib.sha256(packed.getvalue()).hexdigest(),
        **about,
    }
    text = json.dumps(manifest, indent=1) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_all(
        {
            folder / RESULTS: lambda stream: stream.write(packed.getvalue()),
            folder / MANIFEST: lambda stream: stream.write(text.encode()),
        }
    )
