"""Reports say each thing once."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rtl_tb.check import report
from rtl_tb.locate.result import Edit, Repair, SingleFault


def said(*remaining: int) -> dict[str, Any]:
    """A diagnosis of 1,000 wrong results with so many hypotheses."""
    return {
        "failing": 1000,
        "hypotheses": [{"text": f"fault {i}", "remaining": left} for i, left in enumerate(remaining)],
    }


def test_what_the_sentence_says_is_not_said_below_it() -> None:
    assert report.other_hypotheses(said(0, 0, 5)) == []
    assert [one["remaining"] for one in report.other_hypotheses(said(5, 9, 900))] == [9]
    assert report.other_hypotheses(said()) == []


def test_lines_of_a_text_stand_once_where_each_fault_is_listed() -> None:
    edits = tuple(Edit(Path("a.sv"), line, "x = y;", "y", "z") for line in (3, 7))
    faults = tuple(SingleFault(edit, 5, 0) for edit in edits)
    two = Repair(edits, 10, 10, 0, 100, faults).as_dict()
    listed = "\n".join([report.repair_line(two), *(fault["text"] for fault in two["faults"])])
    assert listed.count("a.sv:3") == listed.count("a.sv:7") == 1
    assert report.repair_line(two) == "these changes together: all 100 vectors are right"
    one = Repair(edits[:1], 10, 10, 0, 100).as_dict()
    assert report.repair_line(one).startswith("a.sv:3: with `z` for `y`")


def test_junit_has_the_story_once() -> None:
    kind = {"tried": 10, "wrong": 3, "unknown": 0, "missing": 0}
    data = {
        "dut": "mac4",
        "kinds": [kind | {"kind": name} for name in ("tie", "wide")],
        "protocol": [{"text": "stopped"}],
        "synthesis": [],
        "notes": ["a note"],
        "diagnosis": {"sentence": "your unit is another"},
        "example": None,
        "seconds_build": 1.0,
        "seconds_run": 1.0,
    }
    text = report.junit(data)
    suite = ElementTree.fromstring(text)[0]
    assert text.count("your unit is another") == 1
    assert suite.find("system-out").text.split("\n") == ["a note", "your unit is another"]
    assert [one.get("message") for one in suite.iter("failure")][-1] == "1 handshake failure"


def verdict(**changed: Any) -> str:
    """The first line of a report on 200 vectors."""
    data = {"dut": "mac4", "instruction": "mac4.yaml", "level": "dot", "vectors": 200, "passed": False}
    return report.headline(data | {"wrong": 0, "unknown": 0, "missing": 0, "protocol": []} | changed)


def test_a_unit_with_right_results_fails_by_what_failed() -> None:
    """Never "0 of 200 vectors fail"."""
    stopped = [{"text": "stopped"}]
    right = "FAIL: mac4 against mac4.yaml: no result of 200 vectors is wrong, but 1 handshake failure"
    assert verdict(protocol=stopped) == right
    assert verdict(protocol=[*stopped, {"text": "bit 3", "kind": "other_output"}]) == (
        f"{right}, 1 fault of other outputs"
    )
    assert verdict(wrong=2, protocol=stopped) == (
        "FAIL: mac4 against mac4.yaml: 2 of 200 vectors fail (2 wrong, 1 handshake failure)"
    )
