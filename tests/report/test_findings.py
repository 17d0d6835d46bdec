"""What is worth showing of a store."""

import numpy as np
import pytest
from stubs import StubStream, reported_store

from undertow.report.findings import outlier_frequency, top_alerts, worst_slices
from undertow.runs.store.reader import open_store


def test_top_alerts_are_the_farthest(tmp_path):
    stored = open_store(reported_store(tmp_path / "s", threshold=0.3))
    found = top_alerts(stored, count=3)
    far = sorted((abs(row["value"] - row["expected"]) / row["std"] for row in stored.alerts()), reverse=True)
    assert found.total == len(far) > 10
    assert [abs(row["value"] - row["expected"]) / row["std"] for row in found.rows] == far[:3]


@pytest.mark.parametrize("slices", [1, 33, 100])
def test_outlier_frequency_counts_every_slice_once(tmp_path, slices):
    stored = open_store(reported_store(tmp_path / "s", StubStream(slices), threshold=0.3))
    fractions, sampled = outlier_frequency(stored)
    assert sampled == slices
    np.testing.assert_allclose(fractions, (stored.dataset["outlier_probability"].values >= 0.3).mean(axis=0))


def test_a_long_store_is_sampled(tmp_path, monkeypatch):
    stored = open_store(reported_store(tmp_path / "s", StubStream(100), threshold=0.3))
    monkeypatch.setattr("undertow.report.findings._SAMPLED_BYTES", 1)
    assert 20 <= outlier_frequency(stored)[1] <= 40


def test_worst_slices_are_not_neighbours(tmp_path):
    stored = open_store(reported_store(tmp_path / "s"))
    found = [worst.index for worst in worst_slices(stored)]
    assert len(found) == 4
    assert found == sorted(found)
    assert min(np.diff(found)) > 2
    rates = stored.dataset["outlier_rate"].values[4:]
    assert 4 + int(rates.argmax()) in found
