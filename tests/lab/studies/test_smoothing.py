"""What later slices add, measured on what was hidden alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from undertow.lab.reporter import Silent
from undertow.lab.studies import smoothing as study
from undertow.lab.studies.forecast import ForecastRow


def test_errors_are_those_of_hidden_entries_after_the_first_slices(monkeypatch):
    truth = np.random.default_rng(0).uniform(1, 2, (60, 6, 5))
    truth[:, 0, 0] = np.nan
    row = ForecastRow("made", lambda folder: SimpleNamespace(values=truth), 60, 10, 7)
    monkeypatch.setattr(study, "ROWS", {"made": row})
    shares = []

    def clean(given, smooth, progress):
        shares.append(np.isnan(given).mean())
        off = np.where(np.isnan(given), 1.1 if smooth else 1.2, 5.0)
        off[: study.BURN_IN] = 9
        return {"mean": np.nan_to_num(truth) * off}

    monkeypatch.setattr(study, "clean", clean)
    table = study.smoothing(None, 60, 3, Silent())
    assert table.rows == [("made", "0.200", "0.100", "50%")]
    assert shares[0] == shares[1] == pytest.approx(0.5, abs=0.05)


def test_a_recording_that_is_not_there_is_left_out(tmp_path):
    reporter = Silent()
    assert study.smoothing(["abilene"], 60, 0, reporter, tmp_path).rows == []
    assert "abilene" in reporter.sentences[0]
