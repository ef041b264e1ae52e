"""Campaigns on a GPU: the matrix unit against the golden arithmetic on operands made on the device."""
