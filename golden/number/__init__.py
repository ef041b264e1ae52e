"""Number formats, exact rounding, and arrays of raw codes."""
