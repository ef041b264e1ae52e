"""The reports of a regression: a few lines for the terminal, JUnit XML, and one HTML page with the trend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from golden.cover import coverage as saved
from golden.cover.coverage import Coverage
from golden.cover.page import write_page
from golden.errors import counted
from golden.files.output import write_text
from rtl_tb.check.report import environment, xml_text
from rtl_tb.regress.summary import Summary

_WIDTH, _HEIGHT = 600, 90  # px of the line of coverage over time


def write_reports(folder: Path, data: Summary, covered: Sequence[Coverage], history: list[Summary]) -> None:
    """Writes junit.xml, index.html and, where something was covered, coverage.json and coverage.html."""
    write_text(folder / "junit.xml", junit(data))
    write_text(folder / "index.html", page(data, history))
    if covered:
        saved.save(list(covered), folder / "coverage.json")
        write_page(list(covered), folder / "coverage.html")


def headline(data: Summary) -> str:
    """The verdict in one sentence."""
    what = f"{data['regress']}: {data['vectors']:,} vectors in {data['shards']:,} shards"
    reused = f" ({data['reused']:,} of them from earlier runs)" if data["reused"] else ""
    if data["passed"]:
        return f"PASS: {what}{reused}: 0 differ"
    parts = []
    if data["failing"]:
        parts.append(f"{data['failing']:,} shards fail, {data['failed_vectors']:,} vectors")
    if data["errors"]:
        parts.append(f"{data['errors']:,} could not be run")
    return f"{'FAIL' if data['failing'] else 'ERROR'}: {what}{reused}: {'; '.join(parts)}"


def verdict(row: dict[str, Any]) -> str:
    """What came of a unit on an engine, in two words."""
    if row["failing"]:
        return f"{row['failing']:,} of {row['shards']:,} fail"
    return "not run" if row["error"] else "equal"


def print_text(data: Summary, folder: Path, console: Console) -> None:
    """Prints the verdict, what fails and why, then a line for each unit and engine."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    say(f"[bold {'green' if data['passed'] else 'red'}]{escape(headline(data))}[/]")
    for row in data["rows"]:
        name = f"{row['unit']} on {row['engine']}/{row['simulator']}"
        if row["failing"]:
            say(f"\n[red]{escape(name)}[/]: {escape(_why(row))}")
            say(f"  again: {escape(_again(row))}")
        if row["error"]:
            say(f"\n[red]{escape(name)}[/] could not be run: {escape(row['error'])}")
        for note in row["notes"]:
            say(f"\n[yellow]note[/]  {escape(name)}: {escape(note)}")
    say("")
    console.print(_table(data))
    say(escape(f"{folder / 'index.html'}  {folder / 'junit.xml'}"), "dim")


def _why(row: dict[str, Any]) -> str:
    reason, first = row["reason"], row["first"]
    if first["unset"]:
        return str(first["unset"])
    return str(reason["sentence"]) if reason else f"{row['failed_vectors']:,} vectors fail"


def _again(row: dict[str, Any]) -> str:
    capsule = row["reason"] and row["reason"]["capsule"]
    return f"mmagold rtl check {capsule}" if capsule else str(row["first"]["repeat"])


def _table(data: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("unit", "engine", "simulator"):
        table.add_column(head)
    for head in ("shards", "vectors", "covered", "seconds", "result"):
        table.add_column(head, justify="right")
    for row in data["rows"]:
        covered = data["coverage"].get(row["unit"])
        cells = (row["unit"], row["engine"], row["simulator"], f"{row['shards']:,}", f"{row['vectors']:,}")
        percent = "" if covered is None else f"{covered:.1f} %"
        style = "red" if row["failing"] or row["error"] else None
        table.add_row(*map(escape, cells), percent, f"{row['seconds']:.0f}", verdict(row), style=style)
    return table


def junit(data: Summary) -> str:
    """JUnit XML: a suite for each unit and engine, a case for each mix and seed. What a failure is traced to
    stands once, in the output of the suite."""
    root = ElementTree.Element("testsuites", name=f"mmagold.{data['regress']}")
    for row in data["rows"]:
        name = f"{row['unit']}.{row['engine']}.{row['simulator']}"
        suite = ElementTree.SubElement(root, "testsuite", name=name, time=f"{row['seconds']:.3f}")
        for run in row["runs"]:
            _case(suite, name, run)
        if not row["runs"]:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name="build")
            ElementTree.SubElement(case, "error", message=row["error"] or "nothing ran")
        for key, tag in (
            ("tests", "testcase"),
            ("failures", "testcase/failure"),
            ("errors", "testcase/error"),
        ):
            suite.set(key, str(len(suite.findall(tag))))
        if row["failing"]:
            ElementTree.SubElement(suite, "system-out").text = _story(row)
        elif row["notes"]:
            ElementTree.SubElement(suite, "system-out").text = "\n".join(row["notes"])
    return xml_text(root)


def _case(suite: ElementTree.Element, name: str, run: dict[str, Any]) -> None:
    about = {
        "classname": name,
        "name": f"{run['kinds']}, seed {run['seed']}",
        "time": f"{run['seconds']:.3f}",
    }
    case = ElementTree.SubElement(suite, "testcase", about)
    if run["failing"]:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in run["failing_kinds"].items())
        failed = run["failed_vectors"]
        parts = [f"{failed:,} of {run['vectors']:,} vectors fail"] if failed else []
        parts += [kinds] if kinds else []
        parts += (
            [counted(run["handshake_failures"], "handshake failure")] if run["handshake_failures"] else []
        )
        ElementTree.SubElement(case, "failure", message="; ".join(parts))
    elif run["error"]:
        ElementTree.SubElement(case, "error", message=run["error"])


def _story(row: dict[str, Any]) -> str:
    reason = row["reason"] or {}
    lines = [_why(row), *(failure["text"] for failure in row["first"]["protocol"])]
    if reason.get("trace"):
        lines += [reason["trace"], f"golden {reason['expected']}, DUT {reason['actual']}"]
    return "\n".join([*lines, f"again: {_again(row)}"])


def page(data: Summary, history: list[Summary]) -> str:
    """One HTML page that asks no other host for anything."""
    # Earlier runs that the page draws.
    runs = 60
    shown = history[-runs:]
    covers = [
        sum(each["coverage"].values()) / len(each["coverage"]) for each in shown if each.get("coverage")
    ]
    trends = [
        ("failing shards", [float(each["failing"]) for each in shown], "{:,.0f}"),
        ("could not be run", [float(each.get("errors", 0)) for each in shown], "{:,.0f}"),
        ("vectors", [float(each["vectors"]) for each in shown], "{:,.0f}"),
        ("coverage, mean of the units, %", covers, "{:.1f}"),
    ]
    return (
        environment()
        .get_template("regress.html")
        .render(
            data=data,
            headline=headline(data),
            verdict=verdict,
            why=_why,
            again=_again,
            history=list(reversed(shown)),
            trends=[(name, line(values), form.format(values[-1])) for name, values, form in trends if values],
            width=_WIDTH,
            height=_HEIGHT,
        )
    )


def line(values: Sequence[float]) -> str:
    """The points of an SVG polyline: the first value on the left, 0 at the bottom, the largest on top."""
    top, step = (
        max(*values, 1e-9) if len(values) > 1 else max(values[0], 1e-9),
        _WIDTH / max(len(values) - 1, 1),
    )
    points = [(i * step, (_HEIGHT - 4) * (1 - value / top) + 2) for i, value in enumerate(values)]
    points += [(float(_WIDTH), points[0][1])] if len(points) == 1 else []
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
