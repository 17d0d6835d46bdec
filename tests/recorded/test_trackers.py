"""Trackers do not change unseen: their programs, what they say of small streams, and files of an earlier state.

After a change of the arithmetic on purpose: ``make record``, and why in the commit.
"""

import functools
import json
import zipfile

import jax
import numpy as np
import pytest
from recorded import trackers
from recorded.test_recorded import HERE, summary
from recorded.trackers import CHECKPOINT, FILES, FLEET, SAVED, STORE, STREAM, STREAMS, arrays, smooth

import undertow as ut
from undertow.runs.store.reader import open_store

RECORDED = json.loads((HERE / "trackers.json").read_text())
NEAR = 1e-3
"""Decisions, as which frame suits a stream, hang on comparisons: single precision shows on other processors."""
IN_MAKE_TEST = ("smooth", "counts")
pytestmark = pytest.mark.slow


def test_the_programs_of_a_tracker_are_the_recorded_ones():
    if RECORDED["jax"] != jax.__version__:
        pytest.skip(f"recorded with jax {RECORDED['jax']}, this is {jax.__version__}: it may write programs otherwise")
    assert trackers.digests() == RECORDED["programs"]


@pytest.mark.parametrize(
    "name", [name if name in IN_MAKE_TEST else pytest.param(name, marks=pytest.mark.full) for name in STREAMS]
)
def test_what_a_tracker_says_is_what_was_recorded(name):
    made = arrays(name)
    assert made.keys() == RECORDED["results"][name].keys()
    for array, expected in RECORDED["results"][name].items():
        near = NEAR * (expected[2] + 1e-12)
        np.testing.assert_allclose(summary(made[array]), expected, rtol=0, atol=near, err_msg=array)


@functools.cache
def uninterrupted():
    """What a tracker says that saw all of them."""
    return arrays("smooth")["mean"]


def near_the_recorded(mean, slices):
    """Within a tenth of what was said of these slices without an interruption, by the version that is tested."""
    expected = uninterrupted()[slices]
    assert np.sqrt(np.mean((mean - expected) ** 2)) < 0.1 * np.sqrt(np.mean(expected**2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With the recorded files, where the tests are run."""
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(FILES) as archive:
        archive.extractall()
    return tmp_path


def test_a_recorded_tracker_goes_on(folder):
    tracker = ut.load(folder / CHECKPOINT)
    assert np.isfinite(tracker.forecast(3).mean).all()
    near_the_recorded([tracker.update(x).mean for x in smooth()[SAVED:]], slice(SAVED, None))


@pytest.mark.full
def test_a_recorded_fleet_of_trackers_goes_on(folder):
    fleet = ut.Fleet.load(folder / FLEET)
    means = np.array([fleet.update(np.stack([x, 2 * x])).mean for x in smooth()[SAVED:]])
    near_the_recorded(means[:, 0], slice(SAVED, None))
    near_the_recorded(means[:, 1] / 2, slice(SAVED, None))


def test_a_recorded_store_of_a_tracker_is_read_and_gone_on_with(folder):
    pytest.importorskip("xarray")
    before = open_store(folder / STORE).slice("mean", SAVED - 1)
    run = ut.run(STREAM, store=STORE, resume=True)
    assert (run.slices, run.new_slices) == (30, 30 - SAVED)
    after = open_store(folder / STORE)
    np.testing.assert_array_equal(after.slice("mean", SAVED - 1), before)
    near_the_recorded([after.slice("mean", number) for number in range(SAVED, 30)], slice(SAVED, None))
