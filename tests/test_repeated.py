"""The lists of what `make test` leaves to the long run."""

from __future__ import annotations

from pathlib import Path

import pytest
from repeated import LONG, ONE_IN, leave_to_the_long_run

TESTS = Path(__file__).parent


class Case:
    """As much of a test as the choice looks at."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid, self.marks = nodeid, list[str]()

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def test_every_name_is_that_of_a_test_with_parameters() -> None:
    for name in ONE_IN:
        file, _, function = name.partition("::")
        text = (TESTS / file).read_text("utf-8")
        head = text[: text.index(f"def {function}(")]
        assert "@pytest.mark.parametrize" in head.rpartition("\n\n")[2], name


def test_what_is_left_to_the_long_run_has_a_test_that_stays() -> None:
    for file, tests in LONG.items():
        for left, kept in tests.items():
            of, _, stays = kept.partition("::")
            assert stays not in LONG.get(of or file, ()), stays
            for path, function in ((file, left), (of or file, stays)):
                text = (TESTS / path).read_text("utf-8")
                head = text[: text.index(f"def {function}(")].rpartition("\n\n")[2]
                assert "@pytest.mark.long\n" not in head, function
    cases = [Case(f"tests/{file}::{test}") for file, tests in LONG.items() for test in tests]
    leave_to_the_long_run(cases)  # type: ignore[arg-type]
    assert all(case.marks == ["long"] for case in cases)


def test_one_case_in_so_many_stays() -> None:
    name, step = next(iter(ONE_IN.items()))
    cases = [Case(f"tests/{name}[{i}]") for i in range(3 * step)] + [
        Case("tests/golden/test_x.py::test_y[0]")
    ]
    leave_to_the_long_run(cases)  # type: ignore[arg-type]
    kept = [i for i, case in enumerate(cases) if not case.marks]
    assert kept == [0, step, 2 * step, 3 * step]
    assert {mark for case in cases for mark in case.marks} == {"long"}
