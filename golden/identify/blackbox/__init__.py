"""From a black box to its specification: questions, candidates, and questions again.

    found = golden.dissect(f, formats={"a": "f16", "b": "f16", "c": "f32", "d": "f32"}, k=8)
    found.instruction, found.yaml, found.undecided

`box` asks and counts, `order` finds which terms meet before which, `skeletons` are the programs of that
order, `moves` their neighbours, `fitting` the search among those, `dissecting` the whole of it, `found` what
it says; `sources` opens black boxes by name.
"""
