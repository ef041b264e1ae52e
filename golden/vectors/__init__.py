"""Test vectors: operands by structure with the expected results, as arrays, as packed words and as files.

    from golden import vectors
    chosen = vectors.default_set(ins, count=20_000, seed=1)       # operands, expected d, kind of every vector

`word` defines the bits of a vector, `vectorset` draws vectors.
"""

from golden.vectors.vectorset import DEFAULT_WEIGHTS, VectorSet, default_set, stream
from golden.vectors.word import LEVELS, Field, WordLayout

__all__ = ["DEFAULT_WEIGHTS", "LEVELS", "Field", "VectorSet", "WordLayout", "default_set", "stream"]
