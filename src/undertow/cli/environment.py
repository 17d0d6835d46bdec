"""What has to be in the environment before NumPy and JAX are loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def one_thread_for_numpy(arguments: Sequence[str]) -> None:
    """With ``bench``, one thread for NumPy's products; a choice made by the user stands.

    Its threads spin while they wait. Beside JAX's that makes small products up to a hundred times slower, and the
    baselines that are timed would be blamed for it.
    """
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    if command == "bench" and "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
