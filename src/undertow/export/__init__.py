"""A store in other people's formats: video, CSV, NetCDF, NIfTI. One block of slices in memory at a time."""

from undertow.export.choose import export

__all__ = ["export"]
