"""A store in other formats: video, CSV, NetCDF, NIfTI. One block of slices in memory at a time."""

from undertow.export.entry import export

__all__ = ["export"]
