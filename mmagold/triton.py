"""Triton kernels on a CPU with a chip's arithmetic, bit for bit.

    TRITON_INTERPRET=1 python my_test.py

    from mmagold.triton import emulate

    with emulate("hopper") as chip:
        kernel[grid](a, b, c, ..., num_warps=4)
    assert not chip.cpu  # operations whose results were the CPU's

Needs Triton and PyTorch (pip install 'mmagold[triton]'); docs/triton.md has the rules.
"""

from golden.errors import ToolMissing, pip_install

try:
    import triton as _triton
except ImportError as error:
    raise ToolMissing(
        f"Triton cannot be imported ({error}), expected what {pip_install('triton')} brings"
    ) from None

from golden.tensors.interpreter import emulate

__all__ = ["emulate"]
del _triton
