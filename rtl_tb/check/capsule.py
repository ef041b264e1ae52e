"""The capsule that a failed check leaves in failures/<id>/: everything that is needed to look again, or to
hand it on. `mmagold rtl check failures/<id>` repeats the check with nothing from outside.

report.md/html/json, junit.xml   the story
failing.npz, failing.hex         the first failing vectors with golden's results, and a manifest each
actual.txt                       what the DUT answered to each of them
trace.txt                        golden's steps on the smallest operands that fail
unit.yaml                        the diagnosed unit, where the schema can express it
dissected.yaml, dissected.md     the unit that the DUT was found to be, with --dissect
waves.fst (or .vcd)              a rerun of the first few failing vectors
dut.yaml, rtl/, instruction.yaml the unit, see rtl_tb/check/capsule.py
vectors.npz                      the vectors, where they are not drawn from a seed
capsule.json                     versions, seeds, the options of the check
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from golden import __version__, yamlfile
from golden.budget import Budget
from golden.errors import FileFormatError, MmagoldError
from golden.files.inputs import check_keys, read_json
from golden.files.output import put_folder, workplace, write_text
from golden.vectors import files as vector_files
from rtl_tb import engines
from rtl_tb.check import report
from rtl_tb.check.drawing import digest_of
from rtl_tb.check.options import Options
from rtl_tb.check.record import Check
from rtl_tb.check.source_text import synthesis_files
from rtl_tb.dut.description import Dut, load_dut
from rtl_tb.dut.policy import ComparePolicy
from rtl_tb.engines.builds import files_read
from rtl_tb.engines.job import Job
from rtl_tb.errors import ElaborationError, RtlError
from rtl_tb.runs.verdict import Verdict
from rtl_tb.simulators import simulators
from rtl_tb.simulators.simulators import longest_build

SHOWN = 16
"""Failing vectors that the waveform shows."""
_COMPILING = 1.0
"""Seconds that a simulator has in any case to compile a unit for the waveform: Icarus Verilog takes them for
a large one. What the budget leaves is mostly more."""
_HANGING = 2.0
"""Seconds for a clock cycle in Icarus: a unit that hangs there has its verdict from Verilator."""
_PACKAGES = ("cocotb", "numpy")
FACTS, VECTORS = "capsule.json", "vectors.npz"
_NOTHING = type(None)
_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "engine": str,
    "simulator": str,
    "seed": int,
    "first": int,
    "weights": (dict, _NOTHING),
    "idle": (int, float, _NOTHING),
    "backpressure": (int, float, _NOTHING),
    "resets": (int, _NOTHING),
    "timeout_cycles": int,
    "wall_timeout": (int, float),
}
"""Options of a check that a capsule stores, with their types in JSON; _MORE are stored in another way."""
_MORE: dict[str, type | tuple[type, ...]] = {"count": int, "vectors": (str, _NOTHING), "drawn": str}


def write_capsule(result: Check, job: Job, folder: Path, budget: Budget | None = None) -> Check:
    """Writes the capsule and returns the check with its folder. The same failure of the same DUT gets the
    same name. Only the waveform may take long: it has what is left of the budget, at least _COMPILING
    seconds.

    Raises:
        FileFormatError: the folder cannot be written.
    """
    # Failing vectors that a capsule holds.
    kept = 1000
    failing = np.flatnonzero(result.verdict.failed)[:kept]
    target = folder / _identity(result, failing)
    result = replace(result, capsule=target)
    with workplace(target) as work:
        scratch = work / "capsule"
        scratch.mkdir()
        notes: dict[str, Any] = {}
        if _vector_files(result, failing, scratch):
            notes["repeat_failing"] = result.repeated(target / "failing.npz")
        notes |= _unit(result, scratch) | {"check": _check_options(result, scratch)}
        notes |= {"digest": _options_digest(notes["check"]), "description": _description(scratch)}
        with longest_build(max(_COMPILING, float("inf") if budget is None else budget.left())):
            notes |= _waves(result, job, failing[:SHOWN], scratch)
        _texts(result, scratch, notes)
        put_folder(scratch, target)
    return result


def _identity(result: Check, failing: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(
        repr(
            (
                str(result.dut.file),
                result.options.seed,
                result.options.engine,
                result.options.simulator,
                result.traffic,
            )
        ).encode()
    )
    digest.update(failing.tobytes())
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', result.dut.name)}-{digest.hexdigest()[:8]}"


def _vector_files(result: Check, failing: npt.NDArray[Any], target: Path) -> bool:
    """Writes the failing vectors; False if none fails (only the handshake does)."""
    if not len(failing):
        return False
    # Vectors before each failing one that a capsule holds if none fails alone.
    before = 8
    if result.example is None or not result.example.alone:  # the failure may need the vectors before it
        failing = np.unique(np.clip(failing[:, None] - np.arange(before), 0, None))
    failing = result.verdict.vectors.with_history(failing)
    vectors = result.verdict.vectors[failing]
    vector_files.write(target / "failing.npz", vectors, "npz")
    vector_files.write(target / "failing.hex", vectors, "readmemh")
    write_text(target / "actual.txt", _answers(result.verdict, failing, result.dut.compare))
    return True


def _answers(verdict: Verdict, failing: npt.NDArray[Any], policy: ComparePolicy) -> str:
    """One line a vector: its index in the run, its first wrong element with the expected and the actual code
    of d and, behind a slash, of its status flags, where the unit has any."""
    results = verdict.vectors.instruction.results
    digits = (results["d"].bits + 3) // 4

    def shown(codes: Mapping[str, npt.NDArray[Any]], vector: int, element: int) -> str:
        found = {
            name: int(codes[name].reshape(len(verdict.vectors), -1)[vector, element]) for name in results
        }
        return f"{found['d']:0{digits}x}" + (f"/{found['flags']:x}" if "flags" in found else "")

    expected, actual = verdict.vectors.results, verdict.outcome.results
    lines = ["// vector element expected actual"]
    for i in failing.tolist():
        element = verdict.wrong_element(i, policy)
        answer = (
            "never"
            if verdict.missing[i]
            else "x" * digits
            if verdict.unknown[i]
            else shown(actual, i, element)
        )
        lines.append(f"{i} {element} {shown(expected, i, element)} {answer}")
    return "\n".join(lines) + "\n"


def _waves(result: Check, job: Job, failing: npt.NDArray[Any], target: Path) -> dict[str, Any]:
    """Reruns a few failing vectors with the waveform on; if no simulator can, the note gives the reason.
    Icarus is tried first: it starts at once and shows X, while Verilator has to compile the unit again."""
    vectors = result.verdict.vectors
    few = vectors[vectors.with_history(failing)] if len(failing) else vectors[:SHOWN]
    engine = "cocotb" if result.options.engine == "cocotb" else "selfcheck"
    notes = []
    for simulator in dict.fromkeys((*(("icarus",) if job.dut.vhdl is None else ()), job.simulator)):
        wanted = replace(job, vectors=few, simulator=simulator, waves=target / "waves.fst", program=None)
        wanted = replace(wanted, wall_timeout=min(_HANGING, job.wall_timeout))
        try:
            outcome = engines.run(engine, wanted)
        except MmagoldError as error:
            notes.append(f"{simulator}: {error}")
        else:
            return {"waves": f"waves.fst, {len(few)} vectors, {outcome.engine} on {outcome.version}"}
    return {"waves": f"none: {'; '.join(notes)}"}


def _unit(result: Check, target: Path) -> dict[str, Any]:
    """Copies the unit; the notes name missing files."""
    try:
        outside = bundle(result.dut, target)
    except MmagoldError as error:
        shutil.copyfile(result.dut.file, target / DESCRIPTION)
        return {"not_self_contained": " ".join(str(error).split())}
    named = ", ".join(map(str, outside))
    return {"not_self_contained": f"read by their absolute paths: {named}"} if outside else {}


def _check_options(result: Check, target: Path) -> dict[str, Any]:
    """The `Options` of the check as plain values; `vectors` is a file of the capsule."""
    options = result.options
    kept = {name: getattr(options, name) for name in _OPTIONS}
    kept |= {"count": result.drawn, "vectors": None, "drawn": digest_of(result.vectors)}
    if options.weights is not None:
        kept["weights"] = {kind: float(weight) for kind, weight in options.weights.items()}
    if options.vectors is not None or options.until_covered:
        vector_files.write(target / VECTORS, result.vectors, "npz")
        kept |= {"vectors": VECTORS, "weights": None, "first": 0}
    return kept


def _options_digest(kept: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _description(folder: Path) -> dict[str, str]:
    """Digests, by name, of the files of a capsule that specify the expected results."""
    files = (folder / name for name in (DESCRIPTION, INSTRUCTION, LIBRARIES))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}


def open_capsule(folder: Path) -> tuple[Path, Options]:
    """The dut.yaml of a capsule, and the options of the check that left it, without a capsule of its own.

    RTL in it may be repaired. The report mentions another description.

    Raises:
        FileFormatError: it is no capsule, or of a version that did not keep the unit; its options were
            edited.
    """
    file = folder / FACTS
    if not file.is_file():
        near = f"; nearest: {folder / DESCRIPTION}" if (folder / DESCRIPTION).is_file() else ""
        raise FileFormatError(f"{folder}: no capsule of a failed check (it holds no {FACTS}){near}")
    facts = read_json(file)
    if not isinstance(facts, dict) or "check" not in facts:
        raise FileFormatError(f"{file}: it does not say how the check was run; repeat it by its command")
    kept = facts["check"]
    check_keys(kept, _OPTIONS | _MORE, str(file))
    if facts.get("digest", _options_digest(kept)) != _options_digest(kept):
        raise FileFormatError(f"{file}: key 'check' was edited; give other options on the command line")
    weights = kept["weights"]
    if weights is not None:
        check_keys(weights, dict.fromkeys(weights, (int, float)), f"{file}: weights")
    vectors = None if kept["vectors"] is None else folder / VECTORS
    wanted, now = facts.get("description"), _description(folder)
    before = wanted if isinstance(wanted, dict) else now  # older capsules do not say it
    edited = tuple(name for name in sorted(before | now) if before.get(name) != now.get(name))
    return folder / DESCRIPTION, Options(**kept | {"vectors": vectors, "failures": None, "edited": edited})


def _texts(result: Check, target: Path, notes: dict[str, Any]) -> None:
    data = result.as_dict()
    for name, writer in (
        ("report.md", "md"),
        ("report.html", "html"),
        ("report.json", "json"),
        ("junit.xml", "xml"),
    ):
        write_text(target / name, report.WRITERS[writer](data))
    if result.example is not None:
        write_text(target / "trace.txt", result.example.as_dict()["trace"] + "\n")
    if result.dissection is not None:
        write_text(target / "dissected.md", result.dissection.found.report)
        if result.dissection.found.yaml is not None:
            write_text(target / "dissected.yaml", result.dissection.found.yaml)
    unit = result.diagnosis.unit_yaml() if result.diagnosis is not None else None
    if unit is not None:
        write_text(target / "unit.yaml", unit)
    versions = {"mmagold": __version__, "python": platform.python_version(), "simulator": data["version"]}
    facts = {
        "repeat": result.command,
        **notes,
        "seed": result.options.seed,
        "traffic": data["traffic"],
        "versions": versions | _versions(),
    }
    write_text(target / FACTS, json.dumps(facts, indent=2) + "\n")


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


DESCRIPTION, INSTRUCTION, RTL, LIBRARIES = "dut.yaml", "instruction.yaml", "rtl", "libraries.f"


def bundle(dut: Dut, folder: Path) -> list[Path]:
    """Copies a unit into a folder, and returns its files that are still read from outside.

    Raises:
        FileFormatError: the folder cannot be written. RtlError: a file of the unit is missing, or no
            simulator can read it any more.
    """
    folder = folder.absolute()
    folders = [*dut.include, *dut.libraries]
    files = list(dict.fromkeys([*dut.sources, *read_by_any(dut)]))
    root = Path(os.path.commonpath([*(path.parent for path in files), *folders]))
    placed = {path: folder / RTL / path.relative_to(root) for path in (*files, *folders)}
    try:
        for path in folders:
            placed[path].mkdir(parents=True, exist_ok=True)
        for path in files:
            placed[path].parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, placed[path])
    except OSError as error:
        raise RtlError(f"{error.filename}: cannot be copied: {error.strerror}") from None
    write_text(folder / DESCRIPTION, _described(dut, folder, placed))
    return [path for path in read_by_any(load_dut(folder / DESCRIPTION)) if not path.is_relative_to(folder)]


def read_by_any(dut: Dut) -> list[Path]:
    """The files that the simulators of this machine read, each by its own rules, and the files of synthesis.

    Raises:
        RtlError: none reads the unit.
    """
    if dut.vhdl is not None:
        return dut.vhdl.files(dut.sources)
    found: dict[Path, None] = {}
    refused: RtlError | None = None
    for find in (simulators.verilator, simulators.icarus):
        try:
            found |= dict.fromkeys(files_read(dut, find()))
        except RtlError as error:  # missing, or it cannot read this unit
            refused = refused or error
    if not found:
        raise refused or ElaborationError(f"no simulator reads {dut.name}")
    return list(dict.fromkeys([*found, *synthesis_files(dut, found)]))


def _described(dut: Dut, folder: Path, placed: Mapping[Path, Path]) -> str:
    """The dut.yaml of the copy: the content of the file with the paths of the copies."""
    document = _plain(yamlfile.read(dut.file))
    for key in ("filelist", "include", "defines"):
        document.pop(key, None)
    document |= {
        "dut": dut.name,
        "sources": [glob.escape(name) for name in _names(folder, dut.sources, placed)],
    }
    if dut.include:
        document["include"] = _names(folder, dut.include, placed)
    if dut.defines:
        document["defines"] = dict(dut.defines)
    if libraries := [path for path in dut.libraries if path not in dut.include]:
        lines = [f'-y "{name}"\n' for name in _names(folder, libraries, placed)]
        write_text(folder / LIBRARIES, "".join(lines))
        document["filelist"] = LIBRARIES
    if dut.vhdl is not None:
        others = {key: _names(folder, files, placed) for key, files in dut.vhdl.libraries.items()}
        document["vhdl"] = {"standard": dut.vhdl.standard, "libraries": others}
    if "unit" in document:
        shutil.copyfile(dut.file.parent / document["unit"], folder / INSTRUCTION)
        document["unit"] = INSTRUCTION
    head = "# The unit as it was checked; its files are in the same folder.\n"
    return head + yaml.safe_dump(document, sort_keys=False, width=100)


def _names(folder: Path, paths: Iterable[Path], placed: Mapping[Path, Path]) -> list[str]:
    return [str(placed[path].relative_to(folder)) for path in paths]


def _plain(value: Any) -> Any:
    """Values that YAML can represent."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
