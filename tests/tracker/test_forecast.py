"""A forecast with the names of its stream."""

import numpy as np
import pytest

from undertow.inputs.labels.names import Labels
from undertow.tracker.forecast import Forecast

MEAN = np.arange(12.0).reshape(2, 2, 3)


def test_labels_and_times_come_along():
    pytest.importorskip("xarray")
    times = np.array(["2026-03-01T00", "2026-03-01T01"], "datetime64[us]")
    made = Forecast(MEAN, MEAN + 1, Labels(("src", "dst"), (("a", "b"), None)), times).to_xarray()
    assert made["mean"].dims == ("ahead", "src", "dst")
    assert float(made["std"].sel(ahead=2, src="b").isel(dst=2)) == 12
    assert made["time"].dims == ("ahead",)
    assert made["time"].values[1] == times[1]


def test_it_is_short_in_a_notebook():
    times = np.array(["2026-03-01T00", "2026-03-01T01"], "datetime64[h]")
    assert repr(Forecast(MEAN, MEAN)) == "Forecast(2 slices of 2×3)"
    assert repr(Forecast(MEAN, MEAN, None, times)).endswith("of 2×3, 2026-03-01T00 to 2026-03-01T01)")


def test_a_notebook_shows_how_error_bars_grow():
    shown = Forecast(MEAN, np.stack([np.full((2, 3), 1.0), np.full((2, 3), 2.0)]))._repr_html_()
    for part in ("2 slices of 2×3", "0 to 11", "± 1.96", "± 3.92"):
        assert part in shown


def test_without_labels_modes_are_numbered():
    pytest.importorskip("xarray")
    made = Forecast(MEAN, MEAN).to_xarray()
    assert made["mean"].dims == ("ahead", "mode_1", "mode_2")
    assert "time" not in made.coords
