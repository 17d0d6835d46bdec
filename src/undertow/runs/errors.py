"""What can end a run before its stream ends."""

from __future__ import annotations

import errno


class RunError(ValueError):
    """A run cannot begin or go on; the message is one sentence that says why, what is safe, and what to do."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C or a polite request to end; everything up to the last whole slice is in the store."""


def room_is_gone(error: BaseException | None) -> bool:
    """Whether a full disk, a quota or a limit on file sizes is behind this."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return True
        error = error.__cause__
    return False
