"""``undertow export``: a store as one file, whose name tells the format."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from undertow.export.netcdf import write_netcdf
from undertow.export.nifti import write_nifti
from undertow.export.table import write_csv
from undertow.export.video import MASK, SUFFIXES, write_video
from undertow.runs.errors import StoreError
from undertow.runs.store.reader import StoredRun, open_store


def export(
    store: str | Path,
    target: str | Path,
    *,
    variables: Sequence[str] | None = None,
    frames_per_second: float = 25.0,
    spreadsheet_safe: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Write the arrays of a store into one file, whose suffix tells the format.

    Args:
        store: what `undertow.run` wrote.
        target: ``.mp4``, ``.mkv``, ``.avi``, ``.mov`` (original | background | outliers), ``.csv``, ``.nc``, ``.nii``
            or ``.nii.gz``.
        variables: which arrays; all that were kept for tables and NetCDF, the mean for NIfTI. Of a video ``mask``:
            white where a pixel is flagged.
        frames_per_second: of a video.
        spreadsheet_safe: in CSV, put an apostrophe before text that a spreadsheet would run as a formula.
        progress: called with the number of slices written so far.

    Returns:
        The path of the file.

    Raises:
        StoreError: the store cannot be read, or cannot be written in this format.

    Example:
        >>> export("lobby.zarr", "lobby.mp4", frames_per_second=10)  # doctest: +SKIP
    """
    run, path = open_store(Path(store), filled=True), Path(target)
    if path.is_dir():
        raise StoreError(f"{path} is a folder: add a file name")
    name, tick = path.name.lower(), progress or (lambda done: None)
    with _complete_file(path) as unfinished:
        if name.endswith(SUFFIXES):
            if list(variables or [MASK]) != [MASK]:
                raise StoreError(
                    "a video shows original, background and outliers, or with --variables mask what is flagged, got "
                    f"{', '.join(variables or ())}"
                )
            write_video(run, unfinished, frames_per_second, tick, mask=bool(variables))
        elif name.endswith(".csv"):
            write_csv(run, unfinished, _chosen(run, variables), tick, safe=spreadsheet_safe)
        elif name.endswith(".nc"):
            write_netcdf(run, unfinished, _chosen(run, variables), tick)
        elif name.endswith((".nii", ".nii.gz")):
            names = _chosen(run, variables or [run.mean_name or "mean"])
            if len(names) > 1:
                raise StoreError(f"NIfTI holds one array, got {', '.join(names)}: export them to one file each")
            write_nifti(run, unfinished, names[0], tick)
        else:
            raise StoreError(f"{path.name} must end in {', '.join(SUFFIXES)}, .csv, .nc, .nii or .nii.gz")
    return path


def _chosen(run: StoredRun, wanted: Sequence[str] | None) -> list[str]:
    """The arrays to export: all that were kept, or those asked for."""
    names = list(wanted or run.kept)
    for name in sorted(set(names) - set(run.kept)):
        kept = ", ".join(run.kept) or "none"
        raise StoreError(f"{run.folder} does not hold {name}: choose among {kept}, or run again with --keep {name}")
    if not names:
        raise StoreError(f"{run.folder} holds values per slice only: run again with --keep mean")
    return names


@contextlib.contextmanager
def _complete_file(target: Path) -> Iterator[Path]:
    """A path to write to; it becomes ``target`` if all goes well and disappears if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".unfinished-{target.name}")  # the suffix stays: libraries go by it
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
