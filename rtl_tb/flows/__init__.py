"""Checks in the flows that teams have: the plugin for pytest, coverage as UCIS, UVM environments."""
