"""From a black box to its specification: queries, candidates, and queries again.

    found = golden.dissect(f, formats={"a": "f16", "b": "f16", "c": "f32", "d": "f32"}, k=8)
    found.instruction, found.yaml, found.undecided

A question, or query, is one dot product for the box. The stages are in golden/identify; `dissecting` runs
them, `recordings` does so for dot products that were recorded, and `sources` opens black boxes by name."""
