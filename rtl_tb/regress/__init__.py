"""Regressions: many units, engines, kinds and seeds, shared out in shards that a rerun does not repeat.

`plan` reads regress.yaml, `binding` says what a result depends on, `shard` runs one, `pool` has the workers,
`store` keeps results, `runner` puts it together, `summary` and `report` say what came of it.
"""
