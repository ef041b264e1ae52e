"""Vectors of every sort are among those that changes are tried on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import golden
from golden.vectors import default_set
from rtl_tb.check.repair.clusters import result_classes, spread


def test_what_is_seldom_is_taken_first() -> None:
    """Of 2,000 vectors two with an infinite result, three of one kind of stimulus."""
    vectors = default_set(golden.instruction("hopper", "HMMA.16816.F32"), 2000, seed=1)
    classes = result_classes(vectors)
    normal = np.flatnonzero(classes == 5)
    infinite = np.flatnonzero(classes == 1)[:2]
    kinds = np.zeros(2000, np.uint8)
    kinds[normal[:3]] = 7
    places = np.union1d(normal, infinite)
    found = spread(replace(vectors, kinds=kinds), places, 8, np.random.default_rng(1))
    assert len(found) == 8 and set(infinite) <= set(found) and set(normal[:3]) <= set(found)


def test_classes_are_those_of_the_right_results() -> None:
    vectors = default_set(golden.instruction("hopper", "HMMA.16816.F32"), 7, seed=1)
    words = [0x7FC00000, 0xFF800000, 0x80000000, 0x00000001, 0xBF800000, 0x3F800000, 0x007FFFFF]
    vectors = replace(vectors, d=np.array(words, vectors.d.dtype))
    assert result_classes(vectors).tolist() == [0, 1, 2, 3, 4, 5, 3]
