"""The two models of a program: the reference in exact Python integers, and the C core."""
