"""What a black box computes: from queries to a program, and from wrong results to the fault behind them.

`probe` measures one property of a unit with a few dot products, and needs no hypothesis about the rest.
`blackbox` finds the whole program of a unit that can only be queried (`golden.dissect`):

1. Repeatability. Every conclusion assumes that an answer depends on the operands alone (`repeatability`), and
   on the bits that the unit reads (`ignored_bits`).
2. Structure. Masks, one large term that another cancels among small ones, show the order of the sum
   (`sum_order`), pairs of small terms the groups that are added before a cut (`product_groups`), and single
   products the parts of operands that a multiplier reads in each pass (`parts`).
3. Skeletons. Each order that the structure allows becomes a program with widths and roundings still open
   (`templates`). Questions with one term show what every order shares (`one_term`, `starting_points`).
4. Fitting. The bank holds all questions with their answers (`box`). Moves change one key of a candidate, or
   two that hide each other (`neighbourhood`, `step_changes`, `joint_keys`); the one that explains most of the
   bank is kept, until the candidate explains it all (`fitting`).
5. Counterexamples. Rounds of new questions, aimed at the candidate's own steps, look for a wrong answer
   (`asking`, `checking`). A wrong answer joins the bank, and step 4 begins again.
6. Rivals. Neighbours that explain the same bank are separated by operands that both answer differently, or
   proved equal (`discriminate`). What remains is reported as undecided (`evidence`, `report`).

`diagnose` begins with a known unit and its wrong results (`diagnosis`). Its mutations are the faults that RTL
has: of the program, of the ports, of one signal of the data path. They are ranked by the wrong results that
they explain, and the best are combined (`diagnose.ranking`). Where none fits, conditions say where they lie.

Both searches are lists of passes on one engine (`search`): each pass has an invariant, and counts what it was
worth. `comparing` searches operands on which two units differ, and `minimising` makes such operands readable.
"""
