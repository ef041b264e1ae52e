"""Whether vectors find planted faults: mutants, their runs, the kill matrix."""
