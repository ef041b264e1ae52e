"""The sample on which a search rules plans out gives the bits of whole products, for every way to cut K."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden.kernels.candidates import Candidate, candidates
from golden.kernels.drawing import drawn
from golden.kernels.sampling import Answer, Sample
from golden.number.formats import get_format


@pytest.mark.parametrize(("fmt", "out", "k", "every"), [("f16", "f16", 330, 57), ("f64", "f64", 200, 93)])
def test_no_plan_is_ruled_out_by_its_own_product(fmt: str, out: str, k: int, every: int) -> None:
    """Chains are shared among the candidates of one sample, so that a wrong key would mix them."""
    formats = {"a": get_format(fmt), "b": get_format(fmt), "d": get_format(out)}
    rng = np.random.default_rng(k)
    a, b = drawn(rng, formats["a"], (7, k), 3), drawn(rng, formats["b"], (k, 9), 3)
    given = list(candidates("hopper", formats, k))
    sample = Sample(Answer(a, b, golden.gemm(a, b, given[0].plans[0])), 63, formats)
    sample.remember(given)
    tried = 0
    for candidate in given[::every]:
        for plan in candidate.plans:
            d = golden.gemm(a, b, plan)
            sample.d = d[sample.rows, sample.columns]
            alone, together = sample.equal_plan(plan), {p: n for n, p in sample.equal(candidate)}
            assert alone == together[plan] == sample.count == 63, plan
            assert sample.equal(Candidate((plan,))) == [(63, plan)]
            tried += 1
    assert tried > 20


def test_the_elements_that_cancel_most_come_first() -> None:
    a = np.array([[1.0, 1.0], [1.0, -1.0], [4.0, -3.0]], np.float16)
    b = np.array([[1.0, 2.0], [0.5, 1.9]], np.float16)
    d = (a.astype(np.float32) @ b.astype(np.float32)).view(np.uint32)
    formats = {"a": get_format("f16"), "b": get_format("f16"), "d": get_format("f32")}
    sample = Sample(Answer(a.view(np.uint16), b.view(np.uint16), d), 3, formats)
    ratios = [abs(x) for x in d.view(np.float32)[sample.rows, sample.columns]]
    assert (sample.rows[0], sample.columns[0]) == (1, 1) and ratios[0] < 0.2
