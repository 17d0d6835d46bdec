"""Runs of the tracker that stop at bad input or end with their pipe: the remedy that the sentence names goes on."""

import io
import json
import re
import shlex
import sys

import numpy as np
import pytest
import xarray as xr
from stubs import differing_files, everything_in

from undertow.cli import main

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def lines(seed=0, slices=10, infinite_at=None):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(slices, 6, 2)) @ draw.normal(size=(2, 5))
    if infinite_at is not None:
        x[infinite_at, 2, 3] = np.inf
    return "".join(json.dumps({"values": one.tolist()}) + "\n" for one in x)


@pytest.fixture
def run(capsys, monkeypatch):
    """Exit code and everything that was said; a pipe brings `piped`."""

    def call(source, *arguments, piped=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(piped.encode()))))
        with pytest.raises(SystemExit) as done:
            main(["run", source, *arguments])
        return done.value.code, "".join(capsys.readouterr())

    return call


@pytest.mark.parametrize("source", ["a.jsonl", "-"])
def test_after_an_infinite_value_each_remedy_resumes_the_tracker(source, run, tmp_path):
    content = lines(infinite_at=6)
    (tmp_path / "a.jsonl").write_text(content)
    code, said = run(source, "--store", "stopped", piped=content)
    assert code == 2
    remedies = re.search(r"holds an infinite value: take them as missing with (--\S+ \S+) or (--\S+ \S+?)\)", said)
    assert "the 6 slices before it are in stopped, continue with --resume" in said
    for number, remedy in enumerate(map(shlex.split, remedies.groups())):
        if number:
            assert run(source, "--store", "stopped", "--overwrite", piped=content)[0] == 2
        assert run(source, "--store", "stopped", "--resume", *remedy, piped=content)[0] == 0
        assert run(source, "--store", f"whole {number}", *remedy, piped=content)[0] == 0
        assert not differing_files(tmp_path / "stopped", everything_in(tmp_path / f"whole {number}"))
        assert float(xr.open_zarr("stopped", chunks=None)["observed"][6]) == pytest.approx(29 / 30)


def test_a_pipe_into_the_tracker_goes_on_with_the_same_data_or_with_new(run, tmp_path):
    store = ("--store", "pieces")
    assert run("-", *store, "--limit", "4", piped=lines())[0] == 0
    code, said = run("-", *store, "--resume", piped=lines(seed=1))
    assert code == 2
    assert "brings other data than what was read from it before" in said
    assert "--new-data" in said
    assert run("-", *store, "--resume", piped=lines())[0] == 0
    assert run("-", "--store", "whole", piped=lines())[0] == 0
    assert not differing_files(tmp_path / "pieces", everything_in(tmp_path / "whole"))
    assert run("-", *store, "--resume", "--new-data", piped=lines(seed=1, slices=3))[0] == 0
    assert run("-", "--store", "both", piped=lines() + lines(seed=1, slices=3))[0] == 0
    pieces, both = (xr.open_zarr(name, chunks=None) for name in ("pieces", "both"))
    for name in ("data", "mean", "std", "outlier_probability"):
        np.testing.assert_array_equal(pieces[name], both[name])
