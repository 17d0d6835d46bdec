"""The study of forecasts, on a recording that repeats itself."""

import numpy as np
import pytest

from undertow.lab.recordings.recording import Recording
from undertow.lab.studies import forecast

DAY = 5
VALUES = np.tile(np.arange(1.0, DAY + 1)[:, None] * [1.0, 2.0, 3.0], (8, 1))
VALUES[7, 1] = np.nan


@pytest.fixture
def rows(monkeypatch):
    row = forecast.ForecastRow("tiny", lambda folder: Recording(VALUES, "nobody"), len(VALUES), DAY, 1)

    def gone(folder):
        raise FileNotFoundError("gone.npz is not there")

    monkeypatch.setattr(forecast, "ROWS", {"tiny": row, "gone": forecast.ForecastRow("gone", gone, 9, 2, 1)})

    def exact(values, period):
        for now in range(len(values)):
            yield lambda horizon, now=now: (VALUES[(now + horizon) % DAY], np.full(3, 0.1))

    monkeypatch.setitem(forecast.METHODS, "tracker", exact)
    monkeypatch.setitem(forecast.METHODS, "SOFIA", forecast.last_value)


@pytest.mark.slow
def test_errors_and_coverage(rows, reporter):
    one, most, day = forecast.forecasts(None, reporter)
    assert one.headings == most.headings == day.headings
    for table in (one, most, day):
        (row,) = table.rows  # the other recording has no file
        found = dict(zip(table.headings, row, strict=True))
        assert found["recording"] == "tiny"
        assert found["tracker"] == found["seasonal naive"] == "0.000"
        assert float(found["Holt–Winters"]) < 0.05
        assert found["covered"] == "100 %"
    steps = [
        np.linalg.norm(VALUES[(t + 1) % DAY] - VALUES[t % DAY]) / np.linalg.norm(VALUES[(t + 1) % DAY])
        for t in range(20, 39)
    ]
    assert float(one.rows[0][2]) == pytest.approx(np.mean(steps), abs=1e-3)
    assert day.rows[0][2] == "0.000"  # a day earlier everything was the same


@pytest.mark.slow
def test_some_days_and_methods_only(rows, reporter):
    one, most, day = forecast.forecasts(["tiny"], reporter, days=7, methods=["last value", "seasonal naive"])
    assert one.headings == ("recording", "last value", "seasonal naive")
    assert one.rows == [("tiny", one.rows[0][1], "0.000")]
    assert most.rows == [("tiny", most.rows[0][1], "0.000")]
    assert float(most.rows[0][1]) > 0.1
    assert day.rows == [("tiny", "0.000", "0.000")]


def test_unknown_recordings_are_named(rows, reporter):
    with pytest.raises(ValueError, match="unknown recording what"):
        forecast.forecasts(["what"], reporter)


@pytest.mark.slow
def test_sofia_follows_a_season():
    made = list(forecast.with_sofia(np.abs(VALUES[:, :2]) + 1, DAY))
    assert np.isfinite(made[-1](1)).all()
