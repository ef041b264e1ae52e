"""What does a network answer under another unit's arithmetic? PyTorch's tensors and models through plans of
whole products, and Triton's kernels in its interpreter.

`mmagold.torch` and `mmagold.triton` are the ways in. The modules of this folder import PyTorch, and
`interpreter` and `operations` Triton; nothing else in golden does.
"""
