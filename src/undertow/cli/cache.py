"""Keep compiled programs between runs of the command line, so that a second start is quick."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def use_compilation_cache() -> None:
    """Name JAX a folder for compiled programs, before JAX is loaded; a choice made by the user stands.

    What lies in that folder is run as code: it is used only if it belongs to us and nobody else may write or read it.
    Without such a folder everything still works, only slower.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "undertow" / "jax"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError):  # a home that does not exist, is unknown, or is not ours to write
        return
    ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not (ours and stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077 == 0):
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    # By default programs that compile in under a second are not kept, and most of ours do.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
