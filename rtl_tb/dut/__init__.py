"""A designer's unit: its description, its ports, and the wrapper that gives every unit the same ports."""
