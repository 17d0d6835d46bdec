"""``undertow demo``."""

import numpy as np
import pytest
import xarray as xr
from stubs import StubModel

from undertow.cli import main
from undertow.cli.demo import last_value, moving_average, warm_up


def test_last_value_and_moving_average_by_hand():
    nan = np.nan
    values = np.array([[1.0, nan], [nan, nan], [3.0, 5.0]])
    np.testing.assert_allclose(last_value(values), [[1, 1], [1, 1], [3, 5]])  # never seen: mean of what was
    np.testing.assert_allclose(moving_average(values, keep=0.75), [[1, 1], [1, 1], [1.5, 5]])
    np.testing.assert_allclose(last_value(np.full((1, 2), nan)), 0)


def test_warm_up_leaves_something_to_judge():
    assert warm_up(288) == 20
    assert warm_up(8) == 2
    assert warm_up(2) == 0


@pytest.fixture
def shown(tmp_path, capsys, monkeypatch):
    """Runs the demo and gives what it printed."""

    def run_demo():
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
        with pytest.raises(SystemExit) as done:
            main(["demo", "--slices", "24", "--out", str(tmp_path / "new" / "folder")])
        assert done.value.code == 0
        return capsys.readouterr().out

    return run_demo


@pytest.mark.full
def test_undertow_beats_the_naive_baselines(shown):
    errors = {
        name: float(line.split("│")[2])
        for line in shown().splitlines()
        for name in ("Undertow", "last value", "moving average")
        if line.startswith(f"│ {name}")
    }
    assert errors["Undertow"] < errors["last value"]
    assert errors["Undertow"] < errors["moving average"]


@pytest.mark.slow
def test_demo_shows_tables_and_writes_store_report_and_picture(tmp_path, shown, monkeypatch):
    monkeypatch.setattr("undertow.runs.default_model.default_model", StubModel)
    text = shown()
    for words in ("components of its CP model", "anomalies found", "anomalies missed", "false alarms", "time in all"):
        assert words in text
    picture = (tmp_path / "new" / "folder" / "traffic.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000
    assert "traffic" in (tmp_path / "new" / "folder" / "report.html").read_text()
    found = xr.open_zarr(tmp_path / "new" / "folder" / "traffic.zarr")
    assert found["mean"].dims == ("time", "origin", "destination")
    assert str(found["origin"].values[3]) == "router-03"
    assert found["time"].values[1] - found["time"].values[0] == np.timedelta64(5, "m")


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as done:
        main(["demo", "--out", str(tmp_path / "file" / "x")])
    assert done.value.code == 2
    assert capsys.readouterr().err == f"undertow: {tmp_path}/file/x: not a directory\n"
