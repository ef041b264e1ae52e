"""What does a network answer under another unit's arithmetic? PyTorch's tensors and models through plans of
whole products.

`mmagold.torch` is the way in. The modules of this folder import PyTorch, and nothing else in golden does.
"""
