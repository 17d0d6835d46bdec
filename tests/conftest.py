"""Shared by all tests: one compilation cache for all test processes, so that no program is compiled twice."""

import os
from pathlib import Path

import pytest

_SHARED = Path(__file__).parents[1] / ".pytest_cache" / "jax"  # in the checkout: what is in it is trusted code
_SHARED.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_SHARED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")


@pytest.fixture
def double():
    """Double precision for tests that call the compiled functions directly."""
    import jax

    with jax.enable_x64(True):
        yield
