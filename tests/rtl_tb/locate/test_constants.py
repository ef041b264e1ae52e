"""Constants of a unit's text, which are built one by one: which are tried, in which order, beside what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from repaired_dot import judged, line_of, planted

from rtl_tb.errors import RtlError
from rtl_tb.locate.budget import ALL, Budget
from rtl_tb.locate.changes import Change, Changes, Place, find_changes
from rtl_tb.locate.hints import suspicious_lines
from rtl_tb.locate.search import _Search, find_repairs
from rtl_tb.locate.selector import with_selector
from rtl_tb.locate.texts import Texts

SHORT = ("logic signed [31:0] sum;", "logic signed [27:0] sum;")
"""A sum that is four bits short."""


def texts_of(changes: Changes) -> set[str]:
    return {
        changes.texts[one.place.file][one.place.start - 8 : one.place.end] for one in changes.of_constants()
    }


def the(changes: Changes, before: str, after: str, line: int) -> Change:
    (found,) = (
        one
        for one in [*changes.of_constants(), *changes.of_choices()]
        if (one.before, one.after, changes.line(one)) == (before, after, line)
    )
    return found


def test_text_that_no_instance_has_is_not_tried(tmp_path: Path) -> None:
    """A branch that is left out and a module that nobody uses; the same text where it counts is tried."""
    other = "module unused; localparam int X = 40 + 2; endmodule\n"
    dut = planted(
        tmp_path, ("endmodule\n", f"endmodule\n{other}"), ("a > b;", "a > b; localparam int N = 4;")
    )
    tried = texts_of(find_changes(dut))
    assert not any(text.endswith(("X = 40", "int N = 4")) for text in tried)
    assert any(text.endswith("[BITS-1") for text in tried)


def test_lines_that_the_lint_warns_of_come_first(tmp_path: Path) -> None:
    """The declaration of a signal that is too short for what it takes, all numbers of it; else the likeliest
    number of every place before a third one of any."""
    dut = planted(tmp_path, SHORT)
    found = find_changes(dut)
    hinted = suspicious_lines(dut, found)
    line = line_of(SHORT[0])
    assert (tmp_path / "dot4.sv", line) in hinted
    listed = found.of_constants(hinted)
    there = [(one.place.file, found.line(one)) in hinted for one in listed]
    assert there == sorted(there, reverse=True)
    assert any(found.line(one) == line and one.before == "27" for one in listed)
    places = [one.place for one in found.of_constants()]
    third = next(number for number, place in enumerate(places) if places[:number].count(place) == 2)
    assert set(places) == set(places[:third])


def test_a_unit_with_many_warnings_gives_no_hint(tmp_path: Path) -> None:
    many = "".join(f"wire [3:0] w{number} = a;\n" for number in range(40))
    dut = planted(tmp_path, ("    logic signed [BITS", f"{many}    logic signed [BITS"))
    assert suspicious_lines(dut, find_changes(dut)) == set()


def test_a_text_is_run_with_its_changes(tmp_path: Path) -> None:
    """In Icarus: what mends the unit leaves no vector wrong, what Icarus refuses gives no answer."""
    cast, plain = "BITS'(signed'({}[8*k +: 8]))", "$signed({}[8*k +: 8])"
    read = [(cast.format(name), plain.format(name)) for name in "ab"]
    verdict, job = judged(planted(tmp_path, SHORT, *read), tmp_path)
    changes = find_changes(job.dut)
    texts = Texts(changes, job, Budget(60), tmp_path / "texts")
    assert texts.icarus is not None
    line = line_of(SHORT[0])
    wider = the(changes, "27", "54", line)
    as_it_is, mended = texts.wrong((), ALL, "a"), texts.wrong((wider,), ALL, "b")
    assert as_it_is is not None and np.array_equal(as_it_is, verdict.wrong) and as_it_is.any()
    assert mended is not None and not mended.any()
    refused = Change(wider.place, "27", "nothing")
    assert texts.wrong((refused,), ALL, "c") is None
    assert not list((tmp_path / "texts").glob("[abc]")), "the files of a run are gone behind it"


def test_what_is_made_stands_in_the_build_of_all_choices(tmp_path: Path) -> None:
    """A constant that is made in any case, also within a choice."""
    dut = planted(tmp_path)
    changes = find_changes(dut)
    width = next(one for one in changes.of_constants() if one.before == "16" or one.before == "2")
    listed = changes.of_choices()
    written = with_selector(dut, changes, listed, tmp_path / "choices", (width,)).sources[1].read_text()
    plain = with_selector(dut, changes, listed, tmp_path / "plain").sources[1].read_text()
    start = plain.index("localparam int BITS = ") + len("localparam int BITS = ")
    assert plain[start:].startswith("2 * W") and written[start:].startswith(f"{width.after} * W")


def test_the_thread_aside_ends_alone() -> None:
    budget = Budget(60)
    aside = budget.aside()
    aside.end()
    assert aside.over() and not budget.over()
    with pytest.raises(RtlError, match="was up"):
        aside.look()


def test_a_width_of_a_port_ends_no_search(tmp_path: Path) -> None:
    """With it c no longer fits the description of the unit, and no choice is built beside it."""
    verdict, job = judged(planted(tmp_path, SHORT), tmp_path)
    changes = find_changes(job.dut)
    file = tmp_path / "dot4.sv"
    start = changes.texts[file].index("31:0] c,")
    port = Change(Place(file, start, start + 2), "31", "32")
    texts = Texts(changes, job, Budget(60), tmp_path / "texts")
    search = _Search(verdict, job, texts.budget, None)
    assert search._second_choices(changes, None, port, texts, tmp_path / "second") == []


@pytest.mark.long
def test_a_choice_and_a_constant_are_mended_together(tmp_path: Path) -> None:
    dut = planted(tmp_path, ("sum + c", "c[0] ? sum - c : sum + c"), SHORT)
    verdict, job = judged(dut, tmp_path)
    found = find_repairs(verdict, job, 300)
    assert found and found[0].whole
    assert {edit.line for edit in found[0].edits} == {line_of("sum + c"), line_of(SHORT[0])}
