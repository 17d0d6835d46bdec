"""What can end a run before its stream ends."""

from __future__ import annotations

import errno


class RunError(ValueError):
    """A run cannot start or continue; the message is one sentence that says why, what is safe, and what to do."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP; everything up to the last complete slice is in the store."""


class StoreError(ValueError):
    """A store cannot be made, read or resumed; the message is one sentence that says why and what to do."""


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
