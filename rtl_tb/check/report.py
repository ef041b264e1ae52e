"""The report of a check, as text for the terminal, Markdown, HTML and JUnit XML. All four come from
`Check.as_dict()`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jinja2
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from golden.errors import counted, listed
from golden.files.escape import fence
from golden.files.escape import markdown as escape_markdown
from golden.identify.diagnosis import ACCEPTED
from rtl_tb.check.record import END, REPORT_PARTS
from rtl_tb.runs.example import Example
from rtl_tb.runs.verdict import FAILURES, failed_in

Report = dict[str, Any]
_TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


def headline(report: Report) -> str:
    """The verdict in one sentence."""
    total, failed = report["vectors"], failed_in(report)
    subject = f"{report['dut']} against {report['instruction']}"
    noun = "tiles" if report["level"] == "tile" else "vectors"
    excluded = f"; {report['excluded']}" if report.get("excluded") else ""
    if open_bits := report.get("uncompared"):
        excluded += f"; not compared: {', '.join(open_bits)}"
    if report["passed"]:
        four = report["four_states"]
        but = "; Icarus answers differently" if four is not None and four["other"] else ""
        but += "; not checked as synthesis reads it" if unsynthesised(report) else ""
        return f"PASS: {subject}: 0 of {total:,} {noun} differ{but}{excluded}{untried(report)}"
    parts = [
        f"{report[key]:,} {words}"
        for key, words in (("wrong", "wrong"), ("unknown", "with X or Z"), ("missing", "never answered"))
        if report[key]
    ]
    if report["protocol"]:
        parts.append(_handshake_failures(report))
    why = ", ".join(parts)
    if not failed:
        return f"FAIL: {subject}: no result of {total:,} {noun} is wrong, but {why}{excluded}"
    return f"FAIL: {subject}: {failed:,} of {total:,} {noun} fail ({why}){excluded}"


def untried(report: Report) -> str:
    """The reachable cases of coverage that no vector tried, as the end of a sentence; empty if there are
    none. The rules may call too much reachable (golden/cover/ranges.py)."""
    holes = [] if report["coverage"] is None else report["coverage"]["holes"]
    if not holes or report["coverage"]["given"]:  # a file of vectors tries what its maker wanted
        return ""
    return f"; {counted(len(holes), 'case')} not tried: {listed(holes, 1)}"


def _handshake_failures(report: Report) -> str:
    others = sum(failure.get("kind") == "other_output" for failure in report["protocol"])
    count = len(report["protocol"]) - others
    words = [counted(count, "handshake failure")] * bool(count)
    words += [f"{counted(others, 'fault')} of other outputs"] * bool(others)
    return ", ".join(words)


def _print_four_states(found: Report, say: Callable[..., None]) -> None:
    if found["read_otherwise"]:
        say(escape(found["sentence"]), "dim")
    elif found["unknown"]:
        say(f"[red]X or Z[/]  {escape(found['sentence'])}")
    elif found["refused"]:
        say(escape(found["sentence"]), "dim")


def unsynthesised(report: Report) -> list[str]:
    """The reason why texts of synthesis were not run."""
    return [each["sentence"] for each in report["synthesis"] if each["refused"]]


def wrong_texts(report: Report) -> list[str]:
    """A sentence on each wrong text other than the simulator's."""
    return [each["sentence"] for each in report["synthesis"] if each["failed"]]


class ReportPrinter:
    """Prints a report part by part, as soon as it is known; each part once. `example`: with the example
    itself the trace is as wide as the console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.printed: list[str] = []
        self.hints = 0

    def print_up_to(self, report: Report, until: str = END, example: Example | None = None) -> None:
        """Prints the parts up to this one that are not printed yet."""
        for part in REPORT_PARTS[: REPORT_PARTS.index(until) + 1]:
            if part not in self.printed:
                self.printed.append(part)
                getattr(self, f"_{part}")(report, example)

    def _say(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, highlight=False, soft_wrap=True)

    def _hints(self, report: Report) -> None:
        """The hints that were added since."""
        for text in report["hints"][self.hints :]:
            self._say(f"[red]hint[/]  {escape(text)}")
        self.hints = len(report["hints"])

    def _verdict(self, report: Report, _example: Example | None) -> None:
        say = self._say
        say(f"[bold {'green' if report['passed'] else 'red'}]{escape(headline(report))}[/]")
        say(escape(run_line(report)), "dim")
        say(escape(traffic_line(report)), "dim")
        self._hints(report)
        if report["unset"] is not None:
            say(f"[red]start[/]  {escape(report['unset']['sentence'])}")
        if report["four_states"] is not None:
            _print_four_states(report["four_states"], say)
        for text in wrong_texts(report):
            say(f"[red]text[/]  {escape(text)}")
        for text in report["notes"]:
            say(f"[yellow]note[/]  {escape(text)}")
        for failure in report["protocol"][:5]:
            label = "output" if failure.get("kind") == "other_output" else "handshake"
            say(f"[red]{label}[/]  {escape(failure['text'])}")

    def _example(self, report: Report, example: Example | None) -> None:
        say, shown = self._say, report["example"]
        if shown is not None:
            say(f"\n[bold]{example_title(shown)}[/]")
            if example is None:
                say(escape(shown["trace"]))
            else:
                example.show(self.console)
            say(f"\ngolden  {shown['expected']}  {shown['expected_value']}")
            say(f"[red]DUT     {shown['actual']}  {shown['actual_value']}[/]\n")
        if not report["passed"]:
            self.console.print(_kind_table(report))
        if report["flags"] is not None and not report["passed"]:
            say(f"[red]flags[/]  {escape(flags_line(report))}")

    def _diagnosis(self, report: Report, _example: Example | None) -> None:
        if report["diagnosis"] is not None:
            _print_diagnosis(report, self._say)
        self._hints(report)

    def _end(self, report: Report, _example: Example | None) -> None:
        say = self._say
        for repair in report["repairs"]:
            label = "Fixed by" if repair["whole"] else "Fixed in part by"
            say(f"[bold]{label}[/]  {escape(repair_line(repair))}")
            for index, fault in enumerate(repair["faults"], 1):
                say(f"           fault {index}: {escape(with_example(fault['text'], fault['example']))}")
        self._hints(report)
        if report["dissection"] is not None:
            say(f"[bold]Dissected[/]  {escape(report['dissection']['sentence'])}")
        if report["coverage"] is not None:
            say(escape(coverage_line(report["coverage"])), "dim")
        if report["capsule"]:
            say(escape(f"\nAll of it: {report['capsule']}\nAgain:     {report['repeat']}"))
            say(escape(f"Anywhere:  mmagold rtl check {report['capsule']}"))


def print_text(report: Report, console: Console, example: Example | None = None) -> None:
    """Prints the story of a finished check: verdict, handshake, the smallest example with its trace, kinds,
    the diagnosis, what to run next."""
    ReportPrinter(console).print_up_to(report, example=example)


def _print_diagnosis(report: Report, say: Callable[..., None]) -> None:
    diagnosis = report["diagnosis"]
    say(f"\n[bold]Diagnosis[/]  {escape(diagnosis['sentence'])}")
    for index, fault in enumerate(report["faults"], 1):
        say(f"           fault {index}: {escape(fault_line(fault))}")
    for hypothesis in other_hypotheses(diagnosis):
        line = f"{hypothesis['text']}: {hypothesis['remaining']:,} of {hypothesis['total']:,} differ"
        say(f"           [dim]also  {escape(line)}[/]")
    if report["difference"] is not None:
        say(f"[bold]Differs in[/] {escape(report['difference']['sentence'])}")


def fault_line(fault: Report) -> str:
    """One of several faults in one line, with operands that show it and no other."""
    return with_example(f"{fault['text']}; explains {fault['explains']:,} wrong results", fault["example"])


def with_example(text: str, example: Report | None) -> str:
    """A fault in words, with operands that show it and no other."""
    if example is None:
        return text
    words = []
    for name, codes in example["operands"].items():
        nonzero = {k: code for k, code in enumerate(codes) if code}
        shown = [
            f"{name}[{k}] = {code:#x}" if len(codes) > 1 else f"{name} = {code:#x}"
            for k, code in nonzero.items()
        ]
        words += shown
    given = ", ".join(words) or "zeros"
    return f"{text}; alone with {given}: golden {example['expected']}, DUT {example['actual']}"


def repair_line(repair: Report) -> str:
    """The effect of a change of the text, in one line; without its faults, which are listed below it."""
    return str(repair["summary" if repair["faults"] else "sentence"])


def other_hypotheses(diagnosis: Report) -> list[Report]:
    """Hypotheses after the first that explain most of what differs, if none explains all. If some explain
    all, the sentence of the diagnosis names every one, and they refute all others."""
    most, (best, *others) = ACCEPTED * diagnosis["failing"], diagnosis["hypotheses"][:4] or [None]
    return [each for each in others if each["remaining"] <= most] if best and best["remaining"] else []


def run_line(report: Report) -> str:
    """How the check was run, in one line."""
    speed = report["vectors"] / max(report["seconds_run"], 1e-9)
    latency = "" if report["latency"] is None else f"latency {report['latency']}, "
    where = report["version"] + (f" (translated by {report['translated']})" if report["translated"] else "")
    return (
        f"{report['engine']} on {where}, seed {report['seed']}, {latency}{report['cycles']:,} "
        f"cycles; build {report['seconds_build']:.1f} s, run {report['seconds_run']:.2f} s ({speed:,.0f} "
        "vectors/s)"
    )


def traffic_line(report: Report) -> str:
    """The traffic of the run, in one line."""

    def words(traffic: Report) -> str:
        resets = f"{traffic['resets']:,} resets in mid-flight"
        if report["resets_left_out"]:
            resets += f" ({report['resets_left_out']} left out: each sends a long sequence again)"
        return (
            f"idle cycles before {traffic['idle']:.0%} of the vectors, "
            f"backpressure on {traffic['backpressure']:.0%} of the results, {resets}"
        )

    if report["clock"] is None:
        return "traffic: one vector after the other, as the unit has no clock"
    quiet = not any(report["traffic"][key] for key in ("idle", "backpressure", "resets"))
    main, short = "full throughput" if quiet else words(report["traffic"]), report["handshake"]
    if short is None:
        return f"traffic: {main}" + ("; idle cycles, backpressure and resets were not tried" if quiet else "")
    if short["failed"]:
        return (
            f"traffic: {words(short)}; before that all {report['drawn']:,} vectors passed in a run with "
            "less of it"
        )
    again = "all" if short["vectors"] == report["drawn"] else f"the first {short['vectors']:,}"
    return f"traffic: {main}; then {again} vectors with {words(short)}"


def flags_line(report: Report) -> str:
    """The wrong results in which each status flag differs, in one line."""
    wrong = [f"{name} wrong in {count:,}" for name, count in report["flags"].items() if count]
    return f"{', '.join(wrong) or 'none wrong'}, of {report['wrong']:,} wrong results"


def example_title(example: Report) -> str:
    """The heading of the example: it says so when the vector does not fail alone."""
    if example["alone"] and len(example["sequence"] or ()) > 1:
        count = len(example["sequence"])
        return f"The smallest sequence that fails: {count} dot products, of which the last is wrong"
    place = "" if example["place"] is None else " in row {} and column {} of d".format(*example["place"])
    if example["alone"]:
        return f"The smallest operands that fail{place}"
    return (
        f"Vector {example['vector']}, the first that failed{place}; alone it passes, so the failure needs "
        "other vectors around it"
    )


def coverage_line(coverage: Report) -> str:
    """Coverage in one line, holes by name."""
    holes = coverage["holes"]
    # Coverage holes that a report lists by name.
    shown_holes = 8
    text = f"; not hit: {listed(holes, shown_holes)}" if holes else ""
    return (
        f"functional coverage of {coverage['vectors']:,} {coverage['noun']}: "
        f"{coverage['percent']:.1f} % of {coverage['reachable']} reachable bins{text}"
        + (f"; {coverage['complete']}" if coverage["complete"] else "")
    )


def _kind_table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("vectors")
    for head in ("tried", "wrong", "X or Z", "no answer"):
        table.add_column(head, justify="right")
    failing = failing_kinds(report)
    for row in failing:
        table.add_row(row["kind"], *(f"{row[key]:,}" for key in ("tried", *FAILURES)), style="red")
    if clean := len(report["kinds"]) - len(failing):
        table.add_row(f"{counted(clean, 'kind')} clean", style="dim")
    return table


def failing_kinds(report: Report) -> list[Report]:
    """The stimulus kinds with failing vectors."""
    return [row for row in report["kinds"] if failed_in(row)]


# Files ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The templates of rtl_tb, with the filters that they use."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["thousands"] = lambda number: f"{number:,}"
    templates.filters["md"] = escape_markdown
    return templates


def _render(template: str, report: Report) -> str:
    words = {
        "headline": headline(report),
        "run_line": f"{run_line(report)}; {traffic_line(report)}",
        "fault_line": fault_line,
        "with_example": with_example,
        "repair_line": repair_line,
        "wrong_texts": wrong_texts(report),
        "others": other_hypotheses(report["diagnosis"]) if report["diagnosis"] else [],
        "kinds": report["kinds"] if report["passed"] else failing_kinds(report),
        "clean": 0 if report["passed"] else len(report["kinds"]) - len(failing_kinds(report)),
        "example_title": example_title(report["example"]) if report["example"] else "",
        "flags": flags_line(report) if report["flags"] is not None and not report["passed"] else None,
        "coverage": None if report["coverage"] is None else coverage_line(report["coverage"]),
        "fence": fence(report["example"]["trace"]) if report["example"] else "",
        "tick": fence(report["repeat"]),
        "unit_fence": fence((report["dissection"] or {}).get("yaml") or ""),
    }
    return environment().get_template(template).render(report=report, **words)


def markdown(report: Report) -> str:
    """The report as Markdown."""
    return _render("report.md", report)


def html(report: Report) -> str:
    """The report as one self-contained HTML file."""
    return _render("report.html", report)


def as_json(report: Report) -> str:
    """The report for machines."""
    return json.dumps(report, indent=2) + "\n"


def junit(report: Report) -> str:
    """JUnit XML: one test case for each stimulus kind, one for the handshake and one for each other text of
    synthesis, which is skipped if it could not be run. The explanation of the failures is given once, in the
    output of the suite."""
    suite = ElementTree.Element("testsuite", name=f"mmagold.{report['dut']}")
    failures = 0
    for row in report["kinds"]:
        failed = failed_in(row)
        case = ElementTree.SubElement(suite, "testcase", classname=report["dut"], name=row["kind"])
        if failed:
            failures += 1
            text = (
                f"{row['wrong']} wrong, {row['unknown']} with X or Z, {row['missing']} never answered, "
                f"of {row['tried']}"
            )
            ElementTree.SubElement(case, "failure", message=text)
    case = ElementTree.SubElement(suite, "testcase", classname=report["dut"], name="handshake")
    if report["protocol"]:
        failures += 1
        failure = ElementTree.SubElement(case, "failure", message=_handshake_failures(report))
        failure.text = "\n".join(item["text"] for item in report["protocol"])
    for each in report["synthesis"]:
        case = ElementTree.SubElement(
            suite, "testcase", classname=report["dut"], name=f"as read by {each['by']}"
        )
        if each["refused"]:
            ElementTree.SubElement(case, "skipped", message=each["sentence"])
        elif each["failed"]:
            failures += 1
            ElementTree.SubElement(case, "failure", message=each["sentence"])
    if said := [*report["notes"], *_story(report)]:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(said)
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(failures))
    suite.set("skipped", str(len(unsynthesised(report))))
    suite.set("errors", "0")
    suite.set("time", f"{report['seconds_build'] + report['seconds_run']:.3f}")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return xml_text(root)


def xml_text(root: ElementTree.Element) -> str:
    """A file of XML, one element a line."""
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _story(report: Report) -> list[str]:
    """The diagnosis and the example of a failed check."""
    parts = [report["diagnosis"]["sentence"]] if report["diagnosis"] else []
    if report["example"]:
        parts += [
            report["example"]["trace"],
            f"golden {report['example']['expected']}, DUT {report['example']['actual']}",
            *([flags_line(report)] if report["flags"] is not None else []),
        ]
    return parts


WRITERS = {"json": as_json, "md": markdown, "html": html, "xml": junit}
"""Report writers by file suffix."""
