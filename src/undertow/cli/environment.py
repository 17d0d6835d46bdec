"""What has to be in the environment before NumPy and JAX are loaded."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path


def use_compilation_cache() -> None:
    """Name JAX a folder for compiled programs, so that a second start is quick; a choice made by the user stands.

    What is in that folder is run as code: it is used only if it belongs to the user and nobody else may write or read
    it. Without such a folder everything still works, only slower.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "undertow" / "jax"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError):  # a home that does not exist, is unknown, or may not be written
        return
    owned = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not (owned and stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077 == 0):
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    # By default programs that compile in under a second are not kept, and most of these do.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def one_thread_for_numpy(arguments: Sequence[str]) -> None:
    """With ``bench``, one thread for NumPy's products; a choice made by the user stands.

    Its threads spin while they wait. Beside JAX's that makes small products up to a hundred times slower, and the
    baselines that are timed would be blamed for it.
    """
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    if command == "bench" and "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
