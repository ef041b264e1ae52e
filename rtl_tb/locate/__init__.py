"""Fault localisation in a unit's own text: the change that makes its results right, as file and line."""
