"""The engine of passes."""

from __future__ import annotations

import gc

from golden.identify.search import seldom_collected


def test_thresholds_of_the_garbage_are_put_back_by_the_last_of_several_searches() -> None:
    before = gc.get_threshold()
    first, second = seldom_collected(), seldom_collected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() != before, "one of them still searches"
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
