"""Convolutions as matrix products: integers small enough for every order of sums against PyTorch's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'mmagold[torch]'")

from golden.tensors.convolution import (  # noqa: E402
    Geometry,
    convolution,
    input_gradient,
    weight_gradient,
)

CASES = [
    # spatial, (C_in, C_out), filter, stride, padding, dilation, transposed, output padding, groups
    ((9,), (2, 3), (3,), [1], [0], [1], False, [0], 1),
    ((11, 8), (4, 6), (3, 2), [2, 1], [1, 0], [1, 2], False, [0, 0], 2),
    ((7, 7), (3, 5), (1, 1), [3, 3], [0, 0], [1, 1], False, [0, 0], 1),
    ((5, 6, 4), (2, 2), (2, 3, 2), [2, 1, 1], [1, 2, 0], [1, 1, 2], False, [0, 0, 0], 2),
    ((6, 5), (4, 6), (3, 2), [2, 3], [1, 0], [1, 2], True, [1, 2], 2),
    ((6, 5), (3, 2), (1, 3), [1, 2], [0, 2], [1, 1], True, [0, 1], 1),
    ((7,), (2, 2), (3,), [2], [1], [3], True, [2], 1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_and_gradients(case: tuple) -> None:
    spatial, (inside, outside), window, *how, transposed, more, groups = case
    rng = torch.Generator().manual_seed(5)

    def some(*shape: int) -> torch.Tensor:
        return torch.randint(-8, 9, shape, generator=rng).double()

    x = some(2, inside, *spatial).requires_grad_()
    first, second = (inside, outside // groups) if transposed else (outside, inside // groups)
    w = some(first, second, *window).requires_grad_()
    wanted = torch.convolution(x, w, None, *how, transposed, more, groups)
    grad = some(*wanted.shape)
    wanted.backward(grad)
    geometry = Geometry.of(len(spatial), *how, transposed, more, groups)
    with torch.no_grad():
        assert torch.equal(convolution(x, w, geometry, torch.matmul), wanted)
        assert torch.equal(input_gradient(grad, x.shape, w, geometry, torch.matmul), x.grad)
        assert torch.equal(weight_gradient(grad, x, w.shape, geometry, torch.matmul), w.grad)
