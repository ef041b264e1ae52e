"""Campaigns on a GPU: the matrix unit beside the golden arithmetic on operands made on the device."""
