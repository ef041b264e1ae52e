"""The diagnosis: which faults a unit may have, how they are searched, and what results say by themselves."""
