"""Validation of HDF5 files and Zarr folders before they are read.

No data from other files, no chunks larger than memory, no codec that unpickles: that would run code from the folder.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from undertow.sources.base import StreamError
from undertow.sources.errors import import_extra

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
MAX_CHUNK_BYTES = 2**30
HDF5_SECONDS = 60
_OPENED: set[tuple[str, int, int, int]] = set()
_PROBE_BYTES = 4 * 2**30
_TOO_LARGE = 75
_PROBE = f"""
import math, os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # each thread of it takes address space
import h5py
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({_PROBE_BYTES}, {_PROBE_BYTES}))
except (ImportError, OSError, ValueError):  # not on this system, or a lower limit is in force
    pass
seen = []
def read(item, *where):
    for one in where:
        try:
            item[one]
        except Exception:
            pass
def visit(name, item):
    read(item.attrs, *item.attrs)
    if isinstance(item, h5py.Dataset) and item.size and item.size > 0 and len(seen) < 100:
        if not item.is_virtual and not item.external and math.prod(item.chunks or ()) * item.dtype.itemsize < 2**29:
            seen.append(item)
try:
    with h5py.File(sys.argv[1], "r") as file:
        file.visititems(visit)
        for item in seen:
            text = item.dtype.kind == "O" and item.size < 10**6  # of which each may lie elsewhere
            read(item, *([...] if text else [(0,) * item.ndim, tuple(size - 1 for size in item.shape)]))
finally:
    try:
        with open("/proc/self/status") as file:  # getrusage has what the process that started this one has taken
            used = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
    except OSError:  # not on this system
        used = []
    if used and used[0] > {_PROBE_BYTES * 3 // 4 // 1024}:
        os._exit({_TOO_LARGE})
"""
_MAX_DATASETS = 10_000
_METADATA = ("zarr.json", ".zarray", ".zmetadata")
_MAX_METADATA_BYTES = 64 * 2**20
_MAX_CHUNK_ENTRIES = 2**28
_SAFE = {
    "adler32", "astype", "base64", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "default", "delta", "endian",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "pcodec", "quantize",
    "sharding_indexed", "shuffle", "transpose", "v2", "vlen-bytes", "vlen-utf8", "zfpy", "zlib", "zstd",
}  # fmt: skip


def hdf5_datasets(file: Any, name: str) -> dict[str, Any]:
    """Every array of numbers in an open file by its full name; one sentence for a file that should not be read.

    Soft links are skipped: what they lead to is found under its own name. No group is entered twice.
    """
    h5py = import_extra("h5py", "store", "An HDF5 file")
    found: dict[str, Any] = {}
    groups = [("", file)]
    seen = {h5py.h5o.get_info(file.id).addr}
    while groups:
        prefix, group = groups.pop()
        for key in group:
            link, full = group.get(key, getlink=True), f"{prefix}{key}"
            if isinstance(link, h5py.ExternalLink):
                raise StreamError(f"{name} takes {full} from another file: copy the data into one file first")
            if not isinstance(link, h5py.HardLink) or key.startswith("#"):
                continue
            item = group[key]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                continue
            seen.add(address)
            if isinstance(item, h5py.Group):
                groups.append((f"{full}/", item))
            elif isinstance(item, h5py.Dataset) and item.shape is not None and item.dtype.kind in "biuf":
                _check_dataset(item, name)
                found[full] = item
            if len(found) + len(groups) > _MAX_DATASETS:
                raise StreamError(f"{name} holds more than {_MAX_DATASETS} arrays: copy one of them into its own file")
    return found


def _check_dataset(dataset: Any, name: str) -> None:
    """Refuse what would read other files or allocate more than a real file needs."""
    if dataset.external or dataset.is_virtual:
        raise StreamError(f"{name} takes {dataset.name} from other files: copy the data into one file first")
    chunks = dataset.chunks or ()
    if math.prod(chunks) * dataset.dtype.itemsize > MAX_CHUNK_BYTES:
        raise StreamError(f"{name} claims chunks of {chunks} in {dataset.name}: it may be damaged, write it again")


def check_hdf5_ends(path: Path) -> None:
    """Open a file in a process of its own first: libhdf5 runs for ever in some damaged files, some take all memory
    meanwhile, and it cannot be stopped."""
    known = path.stat()
    key = (str(path.resolve()), known.st_ino, known.st_size, known.st_mtime_ns)
    if key in _OPENED or not sys.executable or hasattr(sys, "frozen"):
        return
    command = [sys.executable, "-P", "-c", _PROBE, str(path)]  # -P: no modules from the present folder
    try:
        ended = subprocess.run(
            command, timeout=HDF5_SECONDS, check=False, stdin=subprocess.DEVNULL, capture_output=True
        )
    except subprocess.TimeoutExpired:
        raise StreamError(
            f"{path.name} could not be opened within {HDF5_SECONDS} seconds: it is probably damaged, write it again"
        ) from None
    if ended.returncode == _TOO_LARGE:
        raise StreamError(
            f"{path.name} takes more than {_PROBE_BYTES >> 30} GB of memory to open: "
            "it is probably damaged, write it again"
        )
    if ended.returncode < 0:
        raise StreamError(f"{path.name} makes the HDF5 library crash: it is damaged, write it again")
    _OPENED.add(key)


def hdf5_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The arrays of a file with their shapes."""
    check_hdf5_ends(path)
    with import_extra("h5py", "store", "An HDF5 file").File(path, "r") as file:
        return {key: tuple(item.shape) for key, item in hdf5_datasets(file, path.name).items()}


def check_zarr(path: Path) -> list[Path]:
    """Refuse a folder with a codec not known to be safe, with chunks larger than any slice, or with a pipe in it.

    Returns:
        The files of metadata in it.
    """
    folders, found = [path], []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not entry.is_file() and not entry.is_dir() and entry.name[:1] != ".":
                    raise StreamError(f"{entry.name} in {path.name} is no file: a pipe would be waited for, remove it")
                elif entry.name in _METADATA:
                    _check_metadata(Path(entry.path), path.name)
                    found.append(Path(entry.path))
    return found


def _check_metadata(path: Path, name: str) -> None:
    if path.stat().st_size > _MAX_METADATA_BYTES:
        raise StreamError(f"{name} has metadata above {_MAX_METADATA_BYTES} bytes: it may be damaged, write it again")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise StreamError(f"{path.name} in {name} is not JSON: it may be damaged, write it again") from None
    _check_content(content, name)


def _check_content(content: Any, name: str) -> None:
    for inner in content if isinstance(content, list) else ():
        _check_content(inner, name)
    for key, inner in content.items() if isinstance(content, dict) else ():
        if key in ("codecs", "filters", "compressor", "compressors", "index_codecs", "serializer"):
            _check_codecs(inner, name)
        if key in ("chunks", "chunk_shape"):
            _check_chunk(inner, name)
        if key != "attributes":
            _check_content(inner, name)


def _check_codecs(codecs: Any, name: str) -> None:
    for codec in codecs if isinstance(codecs, list) else [codecs]:
        if codec is None:
            continue
        known = codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec
        if not isinstance(known, str) or known.removeprefix("numcodecs.") not in _SAFE:
            raise StreamError(f"{name} uses the codec {known!r}, which is not known to be safe: write it with zstd")


def _check_chunk(shape: Any, name: str) -> None:
    sizes = [size for size in shape if isinstance(size, int)] if isinstance(shape, list) else []
    if math.prod(sizes) > _MAX_CHUNK_ENTRIES or min(sizes, default=1) < 1:
        raise StreamError(f"{name} claims chunks of {sizes} entries: it may be damaged, write it again")
