"""PyTorch under the arithmetic of another unit, bit for bit: a matrix product, or a whole model.

    from mmagold.torch import emulate, emulated_matmul

    d = emulated_matmul(a, b, golden.plan("hopper", "cublas_f16.f16.f32"))
    with emulate("my_unit.yaml"):
        logits = model(x)

Needs PyTorch (pip install 'mmagold[torch]'); docs/torch.md has the rules.
"""

from golden.errors import ToolMissing, pip_install

try:
    import torch as _torch
except ImportError as error:
    raise ToolMissing(
        f"PyTorch cannot be imported ({error}), expected what {pip_install('torch')} brings"
    ) from None

from golden.tensors.matmul import emulated_matmul
from golden.tensors.mode import emulate

__all__ = ["emulate", "emulated_matmul"]
del _torch
