"""Which instructions there are: architectures and their families, names, relatives, units from files."""
