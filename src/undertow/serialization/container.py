"""A checkpoint file: written atomically, versioned, checksummed, and never unpickled.

Layout, integers little-endian::

    magic    8 bytes    b"UNDERTOW"
    version  4 bytes    format version
    sizes    8 + 8      lengths of header and payload
    header   JSON       what the caller needs before it reads the arrays
    payload  npz        the arrays, uncompressed
    digest   32 bytes   SHA-256 of everything before it

A file is written beside its destination, flushed to the disk and renamed, so a crash leaves the old file or the new
one, never half of one. The same content gives the same bytes. The digest detects damage; it does not prove who wrote
the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT_VERSION = 1
_MAGIC = b"UNDERTOW"
_PREFIX = struct.Struct("<8sIQQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_MAX_HEADER_BYTES = 16 * 2**20
_NPY = b"\x93NUMPY\x01\x00"  # how an array of npy's first format begins
_STORABLE = "biufcSUmM"  # kinds of dtype that the npy format keeps without pickling


class CheckpointError(ValueError):
    """A checkpoint cannot be written or read; the message says why and what to do."""


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a checkpoint, replacing what is there only once the new file is safe on disk.

    Args:
        path: The file; a symbolic link is written through.
        header: Plain JSON, without numbers that are not finite.
        arrays: Arrays of numbers or text, by name.

    Raises:
        CheckpointError: The file cannot be written, or the header or an array cannot be stored.
    """
    target = Path(os.path.realpath(path))  # through a symbolic link, not over it
    if target.is_dir():
        raise CheckpointError(f"path must name a file, got the directory {target}: add a file name")
    write_bytes(target, to_bytes(header, arrays))


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file, replacing what is there only once the new one is safe on disk.

    Raises:
        CheckpointError: It cannot be written.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_directory(target.parent)
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {target} could not be written ({error.strerror or error}): "
            "check that the directory exists, may be written and has free space"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # gone already when all went well
            temporary.unlink(missing_ok=True)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a checkpoint.

    Args:
        path: The file.

    Returns:
        The header and the arrays that `write` was given.

    Raises:
        CheckpointError: The file is missing, damaged, of a newer format or not a checkpoint.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"checkpoint {os.fspath(path)} does not exist: check the path") from None
    except IsADirectoryError:
        raise CheckpointError(f"checkpoint {os.fspath(path)} is a directory: name the file in it") from None
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {os.fspath(path)} could not be read ({error.strerror or error}): check its permissions"
        ) from error
    return from_bytes(content, os.fspath(path))


def to_bytes(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """What `write` would write.

    Raises:
        CheckpointError: The header or an array cannot be stored.
    """
    try:
        text = json.dumps(dict(header), sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"header must be plain JSON, got something else ({error}): put numbers that are not finite into arrays"
        ) from None
    if len(text) > _MAX_HEADER_BYTES:
        raise CheckpointError(
            f"header must take at most {_MAX_HEADER_BYTES} bytes, got {len(text)}: put large things into arrays"
        )
    payload = _pack(arrays)
    body = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(text), len(payload)) + text + payload
    return body + hashlib.sha256(body).digest()


def from_bytes(content: bytes, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write` wrote or `to_bytes` gave.

    Args:
        content: The bytes.
        name: What messages call them.

    Returns:
        The header and the arrays.

    Raises:
        CheckpointError: They are damaged, of a newer format or not a checkpoint.
    """
    if not content.startswith(_MAGIC):
        raise CheckpointError(f"{name} is not an Undertow checkpoint: give what save or to_bytes wrote")
    damaged = CheckpointError(f"checkpoint {name} is truncated or damaged: restore it from a copy or start afresh")
    if len(content) < _PREFIX.size + _DIGEST_BYTES:
        raise damaged
    _, version, header_bytes, payload_bytes = _PREFIX.unpack_from(content)
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"checkpoint {name} has format version {version}, this Undertow reads up to {FORMAT_VERSION}: "
            "upgrade undertow"
        )
    total = _PREFIX.size + header_bytes + payload_bytes + _DIGEST_BYTES
    if version < 1 or header_bytes > _MAX_HEADER_BYTES or total != len(content):
        raise damaged
    body = memoryview(content)[:-_DIGEST_BYTES]
    if hashlib.sha256(body).digest() != content[-_DIGEST_BYTES:]:
        raise damaged
    start = _PREFIX.size + header_bytes
    try:
        header = json.loads(bytes(body[_PREFIX.size : start]))
        arrays = _unpack(bytes(body[start:]))
    except (ValueError, KeyError, EOFError, OSError, RuntimeError, MemoryError, RecursionError) as error:
        raise damaged from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise damaged from error
    if not isinstance(header, dict):
        raise damaged
    return header, arrays


def given_bytes(data: Any) -> tuple[bytes, str]:
    """Bytes that a user gave, and what messages call them."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, got {type(data).__name__}: use load for a path.")
    content = bytes(data)
    return content, f"({len(content):,} bytes)"


def _pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An npz archive as ``numpy.savez`` would write it, with any names and without time stamps."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, value in arrays.items():
            array = np.asarray(value, order="C")
            if array.dtype.kind not in _STORABLE:
                raise CheckpointError(
                    f"array {name!r} must hold numbers or text, got dtype {array.dtype}: convert it before saving"
                )
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                member.write(_member_header(array.dtype, array.shape))
                member.write(array.tobytes())
    return buffer.getvalue()


@lru_cache(maxsize=1024)
def _member_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """How the member of an array begins. Kept: to write it and to read it takes longer than most arrays."""
    buffer = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _unpack(payload: bytes) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        # Members are stored as they are: one that claims to be larger than its archive is a decompression bomb.
        if sum(info.file_size for info in archive.infolist()) > len(payload):
            raise ValueError("archive larger inside than outside")
        return {info.filename.removesuffix(".npy"): _array(archive.read(info)) for info in archive.infolist()}


def _array(member: bytes) -> NDArray[Any]:
    start = len(_NPY) + 2 + int.from_bytes(member[len(_NPY) : len(_NPY) + 2], "little")
    shape, by_columns, dtype = _described(member[len(_NPY) : start])
    if not member.startswith(_NPY) or dtype.hasobject or start + dtype.itemsize * math.prod(shape) != len(member):
        raise ValueError("a member is no array of numbers or text")
    return np.ndarray(shape, dtype, member, start, order="F" if by_columns else "C").copy()


@lru_cache(maxsize=1024)
def _described(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type, as the header of a member has them."""
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(io.BytesIO(header))
    return shape, by_columns, dtype


def _sync_directory(directory: Path) -> None:
    """Make the rename itself durable; not every system lets a directory be opened, and there it is not needed."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
