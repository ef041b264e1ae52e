"""From a black box to its specification: questions, candidates, and questions again.

    found = golden.dissect(f, formats={"a": "f16", "b": "f16", "c": "f32", "d": "f32"}, k=8)
    found.instruction, found.yaml, found.undecided

Reading order: `box` asks and keeps answers, `sum_order` finds which terms meet before which, `templates` are
the programs of that order, `ranking` puts them in order, `mutations` are the neighbours of a candidate,
`fitting` searches among those, `discriminate` finds questions between candidates that explain all answers,
`dissection` is the whole of it, `evidence` and `report` say what it found. The numbers are in `policy`, the
engine is golden.identify.search; `sources` opens black boxes by name.
"""
