"""One check of a unit: the run, the verdict, the smallest example, the report, the capsule."""
