"""Which change of a unit's own text makes its results right: where a fault stands, as file and line."""
