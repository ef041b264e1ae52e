"""Reports say each thing once."""

from typing import Any
from xml.etree import ElementTree

from rtl_tb.check import report


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
