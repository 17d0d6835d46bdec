"""The folder of compiled programs."""

import os

import pytest

from undertow.cli.environment import use_compilation_cache


@pytest.fixture
def cache_home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")  # restored afterwards, whatever happens
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    return tmp_path / "undertow" / "jax"


def test_compiled_programs_are_kept_in_a_private_folder(cache_home):
    use_compilation_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(cache_home)
    assert cache_home.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_touch_is_not_trusted(cache_home):
    cache_home.mkdir(parents=True)
    cache_home.chmod(0o777)
    use_compilation_cache()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_the_choice_of_the_user_stands(monkeypatch, cache_home):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "elsewhere")
    use_compilation_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "elsewhere"
    assert not cache_home.exists()
