"""The simulators: found and run."""
