"""Regressions: many units, engines, kinds and seeds, shared out in shards that a rerun does not repeat.

`plan` reads regress.yaml, `fingerprints` say what a result depends on, `shard` runs one, `runner` keeps
results and puts it together, `summary` and `report` say what came of it.
"""
