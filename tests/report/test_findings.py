"""What is worth showing of a store."""

import numpy as np
import pytest
from stubs import StubStream, reported_store

from undertow.report.findings import grouped_alerts, outlier_frequency, worst_slices
from undertow.runs.store.reader import open_store


def test_alerts_are_grouped_by_entry_the_farthest_first(tmp_path):
    stored = open_store(reported_store(tmp_path / "s", threshold=0.3))
    found, rows = grouped_alerts(stored, count=3), list(stored.alerts())
    assert found.total == len(rows) > 10
    assert found.entries == len({(row["site"], row["column"]) for row in rows})
    far = {}
    for row in rows:
        distance = abs(row["value"] - row["expected"]) / row["std"]
        far.setdefault((row["site"], row["column"]), []).append((distance, row["time"]))
    best = sorted(far, key=lambda entry: -max(far[entry])[0])[:3]
    assert [group.entry for group in found.groups] == best
    for group in found.groups:
        own = far[group.entry]
        assert (group.count, group.first, group.last) == (len(own), own[0][1], own[-1][1])
        assert group.distance == max(own)[0]


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
