"""Operand classes for dot products, named by structure: what the vectors, the comparison and the tests feed
to units.

    operands = stimuli.generate(ins, "cancelling", 1000, np.random.default_rng(7))
    d = ins.dot(**operands)

Uniform random bits hardly ever meet the cases where two units differ, so each kind aims at one place of the
datapath. `KINDS` lists them; `describe(kind)` says in one line what a kind aims at. Every kind works for
every instruction: where a format cannot express a structure (b1 has no exponents, f16 products cannot reach
f32's subnormals), it comes as near as the format allows. The operands depend on nothing but the instruction,
the kind, the count and the generator's state.

`kinds` lists them and generates. They are defined by theme in `ordinary`, `range_ends`, `alignment`,
`cancellation`, `rounding` and `specials`, all made of the random draws of `draw`; `codes` builds the codes of
a format from exponents; `sequences` puts them in order for units that keep their accumulator. `integers` says
what they are called for units of integers.
"""

from golden.stimuli.codes import (
    corner_codes,
    encode,
    highest_exponent,
    is_nan,
    is_special,
    lowest_exponent,
    negate,
    one,
    special_codes,
    tiniest_exponent,
)
from golden.stimuli.integers import INTEGER_KINDS, expanded, kind_name
from golden.stimuli.kinds import (
    BOUNDARY_KINDS,
    BOUNDARY_WEIGHT,
    KINDS,
    SEARCH_KINDS,
    describe,
    generate,
)

__all__ = [
    "BOUNDARY_KINDS",
    "BOUNDARY_WEIGHT",
    "INTEGER_KINDS",
    "KINDS",
    "SEARCH_KINDS",
    "corner_codes",
    "describe",
    "encode",
    "expanded",
    "generate",
    "highest_exponent",
    "is_nan",
    "is_special",
    "kind_name",
    "lowest_exponent",
    "negate",
    "one",
    "special_codes",
    "tiniest_exponent",
]
