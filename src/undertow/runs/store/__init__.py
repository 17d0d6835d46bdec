"""Results on disk: a Zarr group that grows slice by slice, and alerts as a table beside it."""
