"""NIfTI: slices with up to three modes become volumes, one after the other along the fourth axis."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from undertow.runs.errors import StoreError
from undertow.runs.store.reader import StoredRun

_LARGEST = 32767  # the header counts in 16 bits
_OFFSET = 352


def _place(header: Any, run: StoredRun) -> None:
    """Affine, size of voxels and units of the source, where that was NIfTI too."""
    try:
        known = json.loads(run.dataset.attrs.get("nifti", "null"))
    except ValueError:
        return
    if not known:
        return
    header.set_xyzt_units(*known["units"])
    header.set_qform(known["affine"], code=known["codes"][0])
    header.set_sform(known["affine"], code=known["codes"][1])
    header.set_zooms(known["zooms"])


def write_nifti(run: StoredRun, path: Path, name: str, tick: Callable[[int], None]) -> None:
    """One array in single precision; the first axis of the file is the first mode."""
    try:
        import nibabel
    except ModuleNotFoundError:
        raise StoreError("NIfTI needs nibabel: pip install 'undertow[mri]'") from None
    shape = (*run.shape, 1, 1)[:3]
    if len(run.shape) > 3 or max(*shape, run.length) > _LARGEST:
        raise StoreError(
            f"NIfTI holds volumes of up to 3 modes, each and the number of slices up to {_LARGEST}, "
            f"got {run.length} slices of {'×'.join(map(str, run.shape))}: export to .nc instead"
        )
    header: Any = nibabel.Nifti1Header()  # type: ignore[no-untyped-call]
    header.set_data_dtype(np.float32)
    header.set_data_shape((*shape, run.length))
    _place(header, run)
    header["vox_offset"] = _OFFSET
    header["descrip"] = f"undertow {name}"[:79].encode()
    compressed = path.name.lower().endswith(".gz")
    # No name and no time in the compressed file: the same store gives the same bytes.
    with open(path, "wb") as plain:
        file = cast("IO[bytes]", gzip.GzipFile("", "wb", 6, plain, mtime=0)) if compressed else plain
        file.write(header.binaryblock.ljust(_OFFSET, b"\0"))
        for start, arrays in run.blocks([name]):
            for values in arrays[name]:
                file.write(np.asarray(values, "<f4").tobytes(order="F"))
            tick(start + len(arrays[name]))
        if compressed:
            file.close()
