"""The platform is that of JAX's default backend."""

import jax
import pytest

from undertow.model import platform


@pytest.mark.parametrize(("backend", "expected"), [("cpu", platform.CPU), ("gpu", platform.ACCELERATOR)])
def test_the_platform_follows_the_backend(backend, expected, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert platform.current() is expected
