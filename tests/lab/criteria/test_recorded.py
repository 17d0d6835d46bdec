"""Criteria on recordings, with tiny data in their place: what is tested is the measure."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from undertow.lab.cases import Size
from undertow.lab.cases.case import Data
from undertow.lab.criteria import recorded
from undertow.lab.criteria.criterion import Trial

SLICES = 26


class Nearly:
    """What it is shown, gaps at 1, give or take nothing; entries beyond 3 are flagged, and left out of the mean."""

    def update(self, x):
        off = x > 3
        mean = np.where(np.isnan(x) | off, 1.0, x)
        return SimpleNamespace(mean=mean, std=np.full(x.shape, 0.5), outliers=None, outlier_probability=off * 1.0)


@pytest.fixture
def stream(monkeypatch, tiny):
    """The same generated data for every recording, one entry at 9 in every slice from the last but five on."""

    def make(condition, seed, size, folder):
        values = np.ones((size.slices, 4, 3))
        values[-6:, 0, 0] = 9
        truth = np.ones(values.shape)
        values[:, 1] = np.nan
        foreground = truth[-6:] * (values[-6:] > 3) > 0
        frames = tuple(range(size.slices - 6, size.slices))
        return Data(values, truth, truth, values > 3, size.burn_in, True, False, frames, foreground)

    dataset = replace(tiny, make=make, full=Size(SLICES, 20))
    monkeypatch.setattr(recorded, "DATASETS", dict.fromkeys(recorded.DATASETS, dataset))


def measure(name, slices=SLICES):
    (criterion,) = (one for one in recorded.CRITERIA if one.name == name)
    return criterion.measure(Trial(Nearly, 0, slices))


def test_completion_and_injected_outliers(stream):
    assert measure("hangzhou") == {"error": 0, "coverage": 1, "flagged": 0}
    assert measure("raised-1")["error"] == 0


def test_flagged_entries_lie_far_from_the_mean(stream):
    assert measure("as-recorded") == {"flagged": 0, "std away": 16}


def test_foreground_is_what_is_flagged(stream):
    assert measure("lobby") == {"foreground F": 1}


def test_server_faults_are_scored_after_the_minutes_before(monkeypatch):
    values = np.ones((40, 3))
    values[20:30] = 9
    faulty = np.arange(40) // 10 == 2
    train = np.full((10, 3), 9.0)
    recording = SimpleNamespace(values=values, train=train, faulty=faulty)
    monkeypatch.setattr(recorded.smd, "load", lambda folder: recording)
    whole, part = measure("smd", 50), measure("smd", 30)
    assert whole["VUS-PR"] == part["VUS-PR"] == pytest.approx(1, abs=0.15)
    assert whole["VUS-PR, probability"] == whole["VUS-PR"]
