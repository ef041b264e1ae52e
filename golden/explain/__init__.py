"""One dot product or one instruction explained to a reader."""
