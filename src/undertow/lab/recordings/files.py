"""Where files of public data are expected, whether they are the right ones, and how they are read.

The files are not part of the package. Their folder is, in this order: the argument, the environment variable
``UNDERTOW_DATA``, ``../shared/data`` seen from the root of the git checkout that holds the working directory.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIABLE = "UNDERTOW_DATA"
Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DataFile:
    """One public file.

    name      its file name
    sha256    of the bytes that the loaders were written for
    citation  whom to cite
    origin    where to look for it, in words
    """

    name: str
    sha256: str
    citation: str
    origin: str


def data_folder(folder: Folder = None) -> Path:
    """The folder of the files, whether it exists or not."""
    if folder is not None:
        return Path(folder)
    if named := os.environ.get(VARIABLE):
        return Path(named)
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    return root.parent / "shared" / "data"


def locate(file: DataFile, folder: Folder = None) -> Path:
    """The path of a file that is there and holds what it should; otherwise one sentence with the remedy."""
    path = data_folder(folder) / file.name
    if not path.is_file():
        raise FileNotFoundError(
            f"{file.name} is expected at {path}: put it there ({file.origin}), or name its folder with folder=… "
            f"or the environment variable {VARIABLE}"
        )
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{path} is not the file this loader knows, its SHA-256 is {found[:12]}… instead of {file.sha256[:12]}…: "
            f"get it again ({file.origin})"
        )
    return path


def read_npz(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    """Some arrays of a NumPy archive."""
    with np.load(path) as held:
        return {name: held[name] for name in names}


def read_mat(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    """Some variables of a MATLAB file, axes in MATLAB's order, whichever version of the format it has."""
    try:
        from scipy.io import loadmat
    except ImportError:
        raise ImportError(f"{path.name} is read by scipy: pip install 'undertow[bench]'") from None
    try:
        found: dict[str, NDArray[Any]] = loadmat(path, variable_names=list(names))
    except NotImplementedError:  # version 7.3 is HDF5
        found = _read_hdf5(path, names)
    lacking = [name for name in names if name not in found]
    if lacking:
        raise ValueError(f"{path} holds no variable {', '.join(lacking)}: get the file again")
    return {name: np.asarray(found[name]) for name in names}


def _read_hdf5(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{path.name} is MATLAB 7.3, read by h5py: pip install 'undertow[bench]'") from None
    with h5py.File(path) as opened:
        return {name: np.asarray(opened[name]).T for name in names if name in opened}
