"""Files that come in and go out: read within limits, written whole or not at all, harmless as text."""
