"""Queries that measure one property of a unit, and the interpretation of the answers."""
