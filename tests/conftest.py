"""Shared by all tests: one compilation cache for all test processes, so that no program is compiled twice.

It is JAX's: that one knows a program by what it does, so most survive a change of the source. Programs that the library
keeps are those of one version, and the tests leave the user's alone.
"""

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

_SHARED = Path(__file__).parents[1] / ".pytest_cache" / "jax"  # in the checkout: what is in it is trusted code
_SHARED.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_SHARED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ["UNDERTOW_CACHE"] = "off"
MANY_MAPPINGS = 15_000


@pytest.fixture
def double():
    """Double precision for tests that call the compiled functions directly."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def programs_are_let_go():
    """Compiled programs are let go when there are many: a process may map only so many pieces of memory (65,530), and
    every program takes some. Whoever needs one again finds it in the cache on disk."""
    yield
    jax = sys.modules.get("jax")
    if jax is not None and _mapped() > MANY_MAPPINGS:
        from undertow.programs.program import forget_all

        forget_all()
        jax.clear_caches()
        gc.collect()


def _mapped():
    """How many pieces of memory this process has mapped; many where nobody says."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return MANY_MAPPINGS + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests stay until the end: looking for what could go among them is a quarter of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)  # by then it is known which tests are to run
def pytest_collection_modifyitems(items):
    """Files with long tests come first: at the end no process waits for another that has just begun with one."""
    long = {item.path for item in items if item.get_closest_marker("full")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture
def tried(record_property):
    """Called with a fault and how often it was tried; the counts are shown at the end."""
    return lambda fault, count: record_property(f"tried: {fault}", count)


def pytest_terminal_summary(terminalreporter):
    counts = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, count in report.user_properties:
            if name.startswith("tried: "):
                counts[name.removeprefix("tried: ")] += count
    for fault, count in sorted(counts.items()):
        terminalreporter.write_line(f"{count:6} × {fault}")
