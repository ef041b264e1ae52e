"""The list of what `make test` leaves to the long run."""

from __future__ import annotations

from pathlib import Path

import pytest
from repeated import ONE_IN, leave_to_the_long_run

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


def test_one_case_in_n_stays() -> None:
    name, step = next(iter(ONE_IN.items()))
    cases = [Case(f"tests/{name}[{i}]") for i in range(3 * step)] + [
        Case("tests/golden/test_x.py::test_y[0]")
    ]
    leave_to_the_long_run(cases)  # type: ignore[arg-type]
    kept = [i for i, case in enumerate(cases) if not case.marks]
    assert kept == [0, step, 2 * step, 3 * step]
    assert {mark for case in cases for mark in case.marks} == {"long"}
