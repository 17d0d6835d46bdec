"""``undertow export``: which format a file name asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from undertow.export.blocks import ExportError, kept, whole_file
from undertow.export.netcdf import write_netcdf
from undertow.export.nifti import write_nifti
from undertow.export.table import write_csv
from undertow.export.video import SUFFIXES, write_video
from undertow.runs.store.reader import open_filled

Tick = Callable[[int], None]


def export(
    store: str | Path,
    target: str | Path,
    *,
    variables: Sequence[str] | None = None,
    frames_per_second: float = 25.0,
    progress: Tick | None = None,
) -> Path:
    """Write the arrays of a store into one file, whose suffix tells the format.

    Args:
        store: what `undertow.run` wrote.
        target: ``.mp4``, ``.mkv``, ``.avi``, ``.mov`` (original | background | outliers), ``.csv``, ``.nc``, ``.nii``
            or ``.nii.gz``.
        variables: which arrays; all that were kept for tables and NetCDF, ``low_rank`` for NIfTI.
        frames_per_second: of a video.
        progress: called with the number of slices written so far.
    """
    run, path = open_filled(Path(store)), Path(target)
    tick = progress or (lambda done: None)
    name = path.name.lower()
    if path.is_dir():
        raise ExportError(f"{path} is a folder: add a file name")
    with whole_file(path) as unfinished:
        if name.endswith(SUFFIXES):
            if variables:
                raise ExportError("a video always shows original, background and outliers: leave the variables out")
            write_video(run, unfinished, frames_per_second, tick)
        elif name.endswith(".csv"):
            write_csv(run, unfinished, kept(run, variables), tick)
        elif name.endswith(".nc"):
            write_netcdf(run, unfinished, kept(run, variables), tick)
        elif name.endswith((".nii", ".nii.gz")):
            names = kept(run, variables or ["low_rank"])
            if len(names) > 1:
                raise ExportError(f"NIfTI holds one array, got {', '.join(names)}: export them to one file each")
            write_nifti(run, unfinished, names[0], tick)
        else:
            raise ExportError(f"{path.name} must end in {', '.join(SUFFIXES)}, .csv, .nc, .nii or .nii.gz")
    return path
