"""Who runs shards of long work: processes of this machine or a Dask cluster; and their results on disk."""
