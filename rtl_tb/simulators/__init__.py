"""The simulators: found, examined, run."""
