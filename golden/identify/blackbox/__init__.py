"""From a black box to its specification: queries, candidates, and queries again.

    found = golden.dissect(f, formats={"a": "f16", "b": "f16", "c": "f32", "d": "f32"}, k=8)
    found.instruction, found.yaml, found.undecided

A question (query) is one dot product for the box; the bank (`box`) holds questions and answers. `sum_order`
and `product_groups` find which terms meet before which, `templates` has the skeletons of that order, and
`starting_points` what one term shows. A change of a candidate is a `moves.Move`: `neighbourhood` lists single
ones (`key_values`, `step_changes`), `joint_keys` keys that hide each other. `fitting` searches
among them, and `discriminate` separates rivals. The whole search is `dissecting`, in three layers: `asking`
has the box and all questions, `first_candidate` leads to a candidate, `checking` finds what makes it wrong.
`evidence` and `report` say what shows each key; `sources` opens black boxes by name."""
