"""Shared by the tests of runs."""

import os

import pytest
from stubs import everything_in, run_stub


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The files of a run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole") / "whole"
    run_stub(folder)
    return everything_in(folder)


@pytest.fixture(autouse=True)
def nothing_waits_for_the_disk(monkeypatch):
    """What survives a power cut cannot be tested here, and waiting for it takes longer than everything else."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
