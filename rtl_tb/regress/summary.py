"""The sum of a regression: figures by unit and engine, merged coverage, and the history of earlier runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from golden.cover.coverage import Coverage
from golden.errors import FileFormatError
from golden.files.inputs import parse_json, read_text
from golden.files.output import write_text
from rtl_tb.check.report import headline
from rtl_tb.regress.runner import Group, Regression
from rtl_tb.regress.shard import Result, Shard
from rtl_tb.runs.verdict import failed_in

HISTORY = "history.jsonl"
Summary = dict[str, Any]


def coverages(result: Regression) -> list[Coverage]:
    """What the vectors of all shards cover, one for each instruction; tiles are not covered."""
    duts = {unit.name: unit.dut for unit in result.plan.units}
    found: dict[tuple[str, str], Coverage] = {}
    for shard in result.shards:
        saved = result.of(shard).get("coverage")
        if saved is not None:
            ins = duts[shard.unit].instruction
            key = ins.architecture, ins.name
            if key not in found:
                found[key] = Coverage(ins)
            found[key].merge_saved(saved)
    return list(found.values())


def summary(result: Regression, covered: Sequence[Coverage]) -> Summary:
    """Everything that the reports show, as plain values, stable for machines."""
    by_instruction = {(each.instruction.architecture, each.instruction.name): each for each in covered}
    rows = [row(result, group) for group in groups(result)]
    ran = [shard for shard in result.shards if "error" not in result.of(shard)]
    return {
        "regress": result.plan.name,
        "file": str(result.plan.file),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "status": result.status,
        "passed": result.status == 0,
        "shards": len(result.shards),
        "run": len(result.shards) - len(result.reused),
        "reused": len(result.reused),
        "failing": len(result.failing),
        "errors": len(result.errors) + len(result.refused),
        "vectors": sum(result.of(shard)["vectors"] for shard in ran),
        "failed_vectors": sum(failed_in(result.of(shard)) for shard in ran),
        "seconds": round(result.seconds, 1),
        "rows": rows,
        "coverage": {
            unit.name: round(by_instruction[key].percent, 2)
            for unit in result.plan.units
            if (key := (unit.dut.instruction.architecture, unit.dut.instruction.name)) in by_instruction
        },
    }


def groups(result: Regression) -> list[Group]:
    """Unit, engine and simulator of everything in the request, in the order of the plan."""
    return [
        (unit.name, engine.engine, engine.simulator) for unit in result.plan.units for engine in unit.engines
    ]


def row(result: Regression, group: Group) -> dict[str, Any]:
    """The figures of one unit on one engine, with the reason of a failure."""
    shards = [shard for shard in result.shards if shard.group == group]
    results = [result.of(shard) for shard in shards]
    errors = [each["error"] for each in results if "error" in each]
    if group in result.refused:
        errors.append(result.refused[group])
    failing = [shard for shard in shards if not result.of(shard).get("passed", True)]
    unit, engine, simulator = group
    return {
        "unit": unit,
        "engine": engine,
        "simulator": simulator,
        **_figures(results, errors),
        "reused": sum(shard.key in result.reused for shard in shards),
        "errors": len(errors),
        "notes": list(dict.fromkeys(note for each in results for note in each.get("notes", ()))),
        "first": None if not failing else _first(failing[0], result.of(failing[0])),
        "reason": _reason(result.explained.get(group)),
        "runs": runs(result, shards),
    }


def runs(result: Regression, shards: Sequence[Shard]) -> list[dict[str, Any]]:
    """The shards of one unit and engine, together by mix and seed."""
    found: dict[tuple[str, int], list[Shard]] = {}
    for shard in shards:
        found.setdefault((shard.mix, shard.seed), []).append(shard)
    return [_of_seed(result, mix, seed, each) for (mix, seed), each in found.items()]


def _of_seed(result: Regression, mix: str, seed: int, shards: Sequence[Shard]) -> dict[str, Any]:
    results = [result.of(shard) for shard in shards]
    errors = [each["error"] for each in results if "error" in each]
    figures = _figures(results, errors)
    kinds: Counter[str] = Counter()
    for kind in (kind for each in results for kind in each.get("kinds", ())):
        kinds[kind["kind"]] += failed_in(kind)
    return {
        "kinds": mix,
        "seed": seed,
        **figures,
        "passed": not errors and not figures["failing"],
        "failing_kinds": {kind: failed for kind, failed in kinds.items() if failed},
    }


def _figures(results: Sequence[Result], errors: Sequence[str]) -> dict[str, Any]:
    """The figures of several shards together. One that ended in an error judged nothing; it is counted
    apart."""
    ran = [each for each in results if "error" not in each]
    return {
        "shards": len(results),
        "vectors": sum(each["vectors"] for each in ran),
        "failing": sum(not each["passed"] for each in ran),
        "failed_vectors": sum(map(failed_in, ran)),
        "handshake_failures": sum(each["handshake_failures"] for each in ran),
        "error": errors[0] if errors else None,
        "seconds": round(sum(each["seconds"] for each in ran), 3),
    }


def _first(shard: Shard, result: Result) -> dict[str, Any]:
    """The first failing shard: where it is, its first failures, and the command that repeats it."""
    return {
        "kinds": shard.mix,
        "seed": shard.seed,
        "first": shard.first,
        "count": shard.count,
        "unset": None if result["unset"] is None else result["unset"]["sentence"],
        **{key: result[key] for key in ("first_failures", "protocol", "repeat")},
    }


def _reason(explained: Result | None) -> dict[str, Any] | None:
    """Why the first failing shard fails, out of the whole report of its check."""
    if explained is None:
        return None
    if "error" in explained:
        return {
            "sentence": f"could not be looked at again: {explained['error']}",
            "trace": None,
            "capsule": None,
        }
    report = explained["report"]
    if explained["passed"]:
        return {
            "sentence": "passes when it is run again: the failure is not repeatable",
            "trace": None,
            "capsule": None,
        }
    example = report["example"]
    return {
        "sentence": report["diagnosis"]["sentence"] if report["diagnosis"] else headline(report),
        "trace": None if example is None else example["trace"],
        "expected": None if example is None else example["expected"],
        "actual": None if example is None else example["actual"],
        "capsule": report["capsule"],
    }


# History ----------------------------------------------------------------------------------------------------


def add_to_history(folder: Path, data: Summary) -> list[Summary]:
    """Adds a run to the history in a folder and returns the whole of it, oldest first."""
    file = folder / HISTORY
    before = read_history(file)
    kept = ("date", "status", "shards", "reused", "vectors", "failing", "errors", "seconds", "coverage")
    line = {key: data[key] for key in kept}
    line["units"] = {
        f"{row['unit']} {row['engine']}/{row['simulator']}": row["failing"] for row in data["rows"]
    }
    # Earlier runs that the history keeps.
    kept_runs = 500
    together = [*before, line][-kept_runs:]
    write_text(file, "".join(json.dumps(each) + "\n" for each in together))
    return together


def read_history(file: Path) -> list[Summary]:
    """Earlier runs, oldest first.

    Raises:
        FileFormatError: the file is there and is none of ours: it is not ours to replace.
    """
    if not file.exists():
        return []
    found = [parse_json(line, str(file)) for line in read_text(file).splitlines() if line.strip()]
    for each in found:
        if not isinstance(each, dict) or not {"date", "status", "vectors", "failing"} <= set(each):
            raise FileFormatError(f"{file}: no history of regressions; move it away")
    return found
