"""The commands of hw_capture."""
