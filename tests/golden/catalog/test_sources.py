"""spec/sources.yaml: every named test and command exists, and damaged files are refused."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from pages import check_command

from golden.errors import SpecError
from golden.publish import papers_page

ROOT = Path(__file__).resolve().parents[3]
ROWS = [(source.name, row) for source in papers_page.load() for row in source.rows]


@cache
def _tests(file: str) -> set[str]:
    return set(re.findall(r"^def (test_\w+)\(", (ROOT / file).read_text("utf-8"), re.M))


def test_every_row_of_the_audit_is_there() -> None:
    """139 rows: 49 of MMA-Sim, 15 of PTX, 48 of Sun et al., 27 of Abdelkhalik et al.; no item twice."""
    assert Counter(name for name, _ in ROWS).total() == 139
    assert [len(source.rows) for source in papers_page.load()] == [49, 15, 48, 27]
    assert not [item for item, n in Counter(row.item for _, row in ROWS).items() if n > 1]


def test_every_test_that_is_named_exists() -> None:
    named = {one for _, row in ROWS for one in row.shown if one.startswith(papers_page.TEST)}
    missing = []
    for one in named:
        file, _, name = one.partition("::")
        if not (ROOT / file).exists() or name not in _tests(file):
            missing.append(one)
    assert len(named) > 60 and missing == []


@pytest.mark.parametrize(
    "command",
    sorted({one for _, row in ROWS for one in row.shown if one.startswith(papers_page.COMMAND)}),
)
def test_every_command_that_is_named_exists(command: str) -> None:
    check_command(command)


def test_what_is_quoted_says_what_would_decide_it() -> None:
    """A chip that was not there, a later manual, or no result: nothing that Hopper or a compiler decides."""
    quoted = [row for _, row in ROWS if row.verdict == "quoted"]
    assert len(quoted) <= 8
    assert all(re.search(r"not there|later PTX|vendor says|No result", row.reason) for row in quoted)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{item: x, verdict: same, figures: y, shown: [mmagold list]}", "expected one of equal"),
        ("{item: x, verdict: equal, figures: y, reason: z, shown: [mmagold list]}", "expected no reason"),
        ("{item: x, verdict: different, figures: y, shown: [mmagold list]}", "expected a reason"),
        ("{item: x, verdict: equal, figures: y, shown: []}", "key 'shown' is empty"),
        ("{item: x, verdict: equal, figures: y, shown: [make test]}", "expected 'mmagold"),
        ("{item: x, verdict: equal, figures: y}", "key 'shown' is missing"),
        ("{item: x, verdict: equal, figures: y, shown: [mmagold list], extra: 1}", "extra"),
    ],
)
def test_a_damaged_file_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, message: str
) -> None:
    (tmp_path / "sources.yaml").write_text(f"sources:\n  - name: n\n    cite: c\n    rows:\n      - {row}\n")
    monkeypatch.setattr(papers_page, "spec_folder", lambda: tmp_path)
    with pytest.raises(SpecError, match=rf"sources[.]yaml:5: .*{re.escape(message)}"):
        papers_page.load()
