"""What can end a run before its stream ends."""

from __future__ import annotations

import errno
from pathlib import Path

from undertow.serialization.container import CheckpointError


class RunError(ValueError):
    """A run cannot start or continue; the message is one sentence that says why, what is safe, and what to do."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP; everything up to the last complete slice is in the store."""


class StoreError(ValueError):
    """A store cannot be made, read or resumed; the message is one sentence that says why and what to do."""


STORE_ERRORS = (OSError, StoreError, CheckpointError)
"""What writing a store may fail with."""


def input_failure(what: str, error: Exception, slices: int, folder: Path) -> RunError:
    """The source or the model failed: the slices done before are kept."""
    kept = f"; the {slices} slices before it are in {folder}, continue with --resume" if slices else ""
    failure = RunError(f"{what} ({reason(error)}){kept}")
    failure.__cause__ = error
    return failure


def write_failure(error: Exception, safe: int, folder: Path) -> RunError:
    """The store failed, or a result that was to be written: the ``safe`` slices of the last checkpoint are kept."""
    kept = f"{safe} slices are safe in it, continue with --resume" if safe else "nothing had been kept yet"
    if disk_is_full(error):
        return RunError(f"no space is left for {folder}: {kept} once there is space")
    if not isinstance(error, STORE_ERRORS):
        return RunError(f"a result for {folder} could not be computed ({reason(error)}): {kept}")
    return RunError(f"{folder} cannot be written ({reason(error)}): {kept}")


def disk_is_full(error: BaseException | None) -> bool:
    """Whether a full disk, a quota or a limit on file sizes is behind this."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return True
        error = error.__cause__
    return False


def reason(error: BaseException) -> str:
    """Why something failed, as a part of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    said = " ".join(str(error).split()).partition(". Stored: b'")[0]  # the bytes of zarr's checksums say nothing
    return said.rstrip(".") or type(error).__name__
