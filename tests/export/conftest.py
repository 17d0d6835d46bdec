"""Shared by the tests of exports."""

import pytest
from stubs import StubStream, minute, store_stub


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Twelve slices."""
    folder = tmp_path_factory.mktemp("store") / "s"
    store_stub(folder, StubStream(12, times=minute), keep="data,mean,outliers")
    return folder
