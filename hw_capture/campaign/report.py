"""Reports of campaigns: one JSON file that later campaigns add to, and the same as Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from golden import __version__
from golden.catalog.lookup import instruction
from golden.errors import FileFormatError, UnknownNameError
from golden.files.inputs import read_json
from golden.files.output import write_text
from golden.model.instruction import Instruction
from hw_capture.campaign.run import Outcome
from hw_capture.campaign.source import COUNTS, dots_of_tile

_FORMAT = 1  # version of the report's JSON
_NUMBER = (int, float)
_IN_JSON: dict[Any, Any] = {tuple: list, float: _NUMBER}
_KINDS = ((name, get_origin(hint) or hint) for name, hint in get_type_hints(Outcome).items())
_FIELDS = {name: _IN_JSON.get(kind, kind) for name, kind in _KINDS}
"""The keys of a campaign and what JSON holds in their place."""
_WORDS = {str: "text", int: "a count", _NUMBER: "a number", list: "a list", dict: "a mapping"}


class Report:
    """The outcomes of campaigns on one GPU. Outcomes that continue each other are added up."""

    def __init__(self, facts: Mapping[str, Any], compiler: str, outcomes: Iterable[Outcome] = ()) -> None:
        self.facts, self.compiler, self.outcomes = dict(facts), compiler, list(outcomes)

    def add(self, outcome: Outcome) -> None:
        """Adds an outcome, to an earlier one where it begins at that one's next tile."""
        for i, old in enumerate(self.outcomes):
            if _series(old) == _series(outcome) and old.next_tile == outcome.first_tile:
                self.outcomes[i] = _joined(old, outcome)
                return
        self.outcomes.append(outcome)

    def merge(self, other: Report) -> None:
        """Takes from another report, of a GPU of the same kind,
        the series in which it checked more than this one.

        Raises:
            FileFormatError: the other report is of another device, driver or compiler, or a mismatch would be
                lost: the series that checked more does not have it.
        """
        self.check_origin(other.facts, other.compiler)
        for outcome in other.outcomes:
            series = _series(outcome)
            theirs = [found for found in other.outcomes if _series(found) == series]
            ours = [found for found in self.outcomes if _series(found) == series]
            taken = _total("dots", theirs) > _total("dots", ours)
            kept, dropped = (
                _total("mismatches", found) for found in ((theirs, ours) if taken else (ours, theirs))
            )
            if dropped > kept:
                raise FileFormatError(
                    f"{outcome.instruction}, kind {outcome.kind}, seed {outcome.seed}: the report with fewer "
                    f"dot products has {dropped} mismatches, the other {kept} on the same operands: find out "
                    "which GPU is wrong before merging"
                )
            if taken:
                self.outcomes = [found for found in self.outcomes if _series(found) != series] + theirs

    def check_origin(self, facts: Mapping[str, Any], compiler: str) -> None:
        """Raises FileFormatError where another device, driver or compiler would add to this report."""
        other = Report(facts, compiler)
        if (other.facts, other.compiler) != (self.facts, self.compiler):
            raise FileFormatError(f"report of {_origin(other)}, expected {_origin(self)}")

    def next_tile(
        self, architecture: str, instruction: str, seed: int, kind: str, faults: Mapping[str, Any]
    ) -> int:
        """The tile after the last that an outcome of this series has executed."""
        series = (architecture, instruction, seed, kind, dict(faults))
        return max((old.next_tile for old in self.outcomes if _series(old) == series), default=0)

    def dots(
        self, architecture: str, instruction: str, seed: int, kind: str, faults: Mapping[str, Any]
    ) -> int:
        """The dot products that the outcomes of this series have checked."""
        series = (architecture, instruction, seed, kind, dict(faults))
        return _total("dots", [old for old in self.outcomes if _series(old) == series])

    def data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "format": _FORMAT,
            "mmagold": __version__,
            "device": self.facts,
            "compiler": self.compiler,
            "date": datetime.now(UTC).date().isoformat(),
            "dots": sum(outcome.dots for outcome in self.outcomes),
            "mismatches": sum(outcome.mismatches for outcome in self.outcomes),
            "campaigns": [asdict(outcome) for outcome in self.outcomes],
        }

    def write(self, path: str | Path) -> None:
        """Writes the JSON file, whole or not at all."""
        write_text(path, json.dumps(self.data(), indent=1) + "\n")

    def markdown(self) -> str:
        """The report as a page."""
        data = self.data()
        what = "CPU" if "cpuid" in self.facts else "tensor core"
        return "\n".join(
            [
                f"# Campaign: the {what} against the golden arithmetic",
                "",
                f"{_origin(self)}, {data['date']}: {data['dots']:.3e} dot products, {data['mismatches']} "
                "mismatches.",
                "",
                "| Instruction | SASS | Kind | Seed | Dot products | A second | Mismatches | NaN | Infinity "
                "| Zero | Subnormal |",
                "|---|---|---|---|---|---|---|---|---|---|---|",
                *(_row(outcome) for outcome in self.outcomes),
                "",
            ]
        )


def _origin(report: Report) -> str:
    """The device and what made the program that ran on it."""
    facts = report.facts
    if "cpuid" in facts:
        return f"{facts['name']} (CPUID {facts['cpuid']}), {facts['system']}, {report.compiler}"
    cuda = f", CUDA {facts['cuda']}" if "cuda" in facts else ""
    return f"{facts.get('name', 'GPU')}, driver {facts.get('driver', '?')}{cuda}, nvcc {report.compiler}"


def _total(count: str, outcomes: Iterable[Outcome]) -> int:
    return sum(getattr(outcome, count) for outcome in outcomes)


def _series(outcome: Outcome) -> tuple[str, str, int, str, dict[str, Any]]:
    return outcome.architecture, outcome.instruction, outcome.seed, outcome.kind, outcome.faults


def _joined(old: Outcome, new: Outcome) -> Outcome:
    values = {item.name: getattr(old, item.name) for item in fields(Outcome)}
    for name in ("dots", "mismatches", "seconds"):
        values[name] = round(getattr(old, name) + getattr(new, name), 3)
    values["next_tile"], values["sass"] = new.next_tile, new.sass or old.sass
    values["results"] = {name: count + new.results.get(name, 0) for name, count in old.results.items()}
    values["records"] = (old.records + new.records)[:100]
    return Outcome(**values)


def _row(outcome: Outcome) -> str:
    shares = (
        f"{outcome.results.get(name, 0) / max(outcome.dots, 1):.2%}"
        for name in ("nan", "infinity", "zero", "subnormal")
    )
    planted = "".join(f", fault {key} = {value}" for key, value in outcome.faults.items())
    return (
        f"| `{outcome.instruction}`{planted} | {', '.join(outcome.sass)} | {outcome.kind} | {outcome.seed} | "
        f"{outcome.dots:.3e} | {outcome.rate:.2e} | {outcome.mismatches} | {' | '.join(shares)} |"
    )


def load(path: str | Path) -> Report:
    """Reads a report; raises FileFormatError where no campaign can have written it, such as counts that
    contradict each other."""
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise FileFormatError(f"{path}: report of format {found}, expected {_FORMAT}")
    for key, kind in (("device", dict), ("compiler", str), ("campaigns", list)):
        if not isinstance(data.get(key), kind):
            raise FileFormatError(f"{path}: key '{key}' is {data.get(key)!r}, expected {kind.__name__}")
    outcomes = [_outcome(item, f"{path}: campaign {i}") for i, item in enumerate(data["campaigns"])]
    for key in ("dots", "mismatches"):
        if data.get(key) != _total(key, outcomes):
            raise FileFormatError(
                f"{path}: key '{key}' is {data.get(key)!r}, its campaigns have {_total(key, outcomes)}"
            )
    _check_no_tile_counts_twice(outcomes, str(path))
    return Report(data["device"], data["compiler"], outcomes)


def _check_no_tile_counts_twice(outcomes: Iterable[Outcome], where: str) -> None:
    ends: dict[Any, int] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.first_tile):
        series = (*_series(outcome)[:-1], json.dumps(outcome.faults, sort_keys=True))
        if outcome.first_tile < ends.get(series, 0):
            raise FileFormatError(
                f"{where}: {outcome.instruction}, kind {outcome.kind}: tile {outcome.first_tile} is there "
                "twice"
            )
        ends[series] = outcome.next_tile


def _outcome(item: Any, where: str) -> Outcome:
    """One campaign of a report, checked; raises FileFormatError."""
    if not isinstance(item, dict) or set(item) != set(_FIELDS):
        found = ", ".join(sorted(set(_FIELDS) ^ set(item))) if isinstance(item, dict) else type(item).__name__
        raise FileFormatError(f"{where}: keys differ from a campaign's: {found}")
    for key, kind in _FIELDS.items():
        value = item[key]
        number = isinstance(value, (int, float))
        if not isinstance(value, kind) or isinstance(value, bool) or (number and not 0 <= value < math.inf):
            raise FileFormatError(f"{where}: key '{key}' is {value!r}, expected {_WORDS[kind]}")
    if not all(isinstance(name, str) for name in item["sass"]) or not all(
        isinstance(row, dict) for row in item["records"]
    ):
        raise FileFormatError(
            f"{where}: key 'sass' or 'records' holds something else than names and mismatches"
        )
    _check_counts(item, where)
    return Outcome(**{**item, "sass": tuple(item["sass"])})


def _check_counts(item: dict[str, Any], where: str) -> None:
    """Holds the numbers of a campaign against each other: an edited one shows."""
    counts = item["results"]
    if set(counts) != set(COUNTS[2:]) or not all(
        type(count) is int and count >= 0 for count in counts.values()
    ):
        raise FileFormatError(
            f"{where}: key 'results' is {counts!r}, expected counts of {', '.join(COUNTS[2:])}"
        )
    # Counts that do not add up were edited, or are of another campaign.
    if sum(counts.values()) != item["dots"]:
        raise FileFormatError(
            f"{where}: key 'results' is {counts!r}, expected counts that add up to {item['dots']}"
        )
    ins = _instruction(item, where)
    tiles = item["next_tile"] - item["first_tile"]
    if tiles < 0 or item["dots"] != tiles * dots_of_tile(ins):
        raise FileFormatError(
            f"{where}: counts contradict each other: {item['dots']} dot products, tiles from "
            f"{item['first_tile']} to {item['next_tile']} of {dots_of_tile(ins)}"
        )
    # A mismatch without a record could not be checked.
    kept = len(item["records"])
    if (
        item["mismatches"] > item["dots"]
        or kept > item["mismatches"]
        or bool(kept) != bool(item["mismatches"])
    ):
        raise FileFormatError(
            f"{where}: counts contradict each other: {item['mismatches']} mismatches in {item['dots']} dot "
            f"products, {kept} of them in 'records'"
        )


def _instruction(item: dict[str, Any], where: str) -> Instruction:
    try:
        return instruction(item["architecture"], item["instruction"])
    except UnknownNameError as error:
        raise FileFormatError(f"{where}: {error}") from None
