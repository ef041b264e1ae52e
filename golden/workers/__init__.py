"""Who runs shards of long work: processes of this machine or a Dask cluster; and their results on disk."""

MOST_WORKERS = 4096
"""Processes or threads that a command starts at most."""
