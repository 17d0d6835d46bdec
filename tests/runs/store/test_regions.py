"""Regions of flagged entries, against a slow search; and as rows of the table of alerts."""

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
from stubs import StubModel, StubStream, load_stub, slice_at

from undertow.runs import RunError, run
from undertow.runs.store.reader import open_store
from undertow.runs.store.regions import regions


def slowly(flagged, modes):
    """Regions by walking from neighbour to neighbour."""
    left, found = {tuple(place) for place in np.argwhere(flagged)}, []
    while left:
        region, waiting = set(), [min(left)]
        while waiting:
            place = waiting.pop()
            if place not in left:
                continue
            left.remove(place)
            region.add(place)
            waiting += [
                other
                for other in left
                if sum(abs(a - b) for a, b in zip(place[:modes], other[:modes], strict=True)) <= 1
            ]
        found.append(region)
    return found


@pytest.mark.parametrize(("shape", "modes"), [((7, 9), 2), ((6, 5, 3), 2), ((4, 5, 4), 3), ((1, 8), 2)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_the_same_regions_as_walking_finds(shape, modes, share):
    for seed in range(5):
        flagged = np.random.default_rng(seed).random(shape) < share
        made = [set(zip(*map(np.ndarray.tolist, region), strict=True)) for region in regions(flagged, modes)]
        assert made == slowly(flagged, modes)


def test_a_long_winding_region_is_one():
    flagged = np.zeros((40, 41), bool)
    flagged[::2] = True
    flagged[1::4, -1] = flagged[3::4, 0] = True
    assert [len(region[0]) for region in regions(flagged, 2)] == [int(flagged.sum())]


class Pictures(StubStream):
    dims = ("row", "column")
    labels = (None, None)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_alerts_of_pictures_are_regions(tmp_path, format):
    folder = tmp_path / "s"
    summary = run(Pictures(20), StubModel(), store=folder, threshold=0.9, alerts=format)
    model, wanted = StubModel(), []
    for t in range(20):
        result = model.update(slice_at(t))
        for region in regions(result.outlier_probability >= 0.9, 2):
            away = np.abs(slice_at(t) - result.mean) / result.std
            worst = max(zip(*region, strict=True), key=lambda place: away[place])
            wanted.append(
                (t, *worst, len(region[0]), region[0].min(), region[0].max(), region[1].min(), region[1].max())
            )
    if format == "csv":
        with open(folder / "alerts.csv", newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pq.read_table(folder / "alerts").to_pylist()
    names = ("time", "row", "column", "entries", "row_first", "row_last", "column_first", "column_last")
    assert [tuple(int(row[name]) for name in names) for row in rows] == wanted
    assert summary.alerts == len(wanted) == len(list(open_store(folder).alerts())) > 3


def test_alerts_of_pictures_are_entries_if_asked_for_and_stay_so(tmp_path):
    folder = tmp_path / "s"
    run(Pictures(20), StubModel(), store=folder, threshold=0.9, alerts_per="entry", limit=3)
    run(Pictures(20), StubModel(), store=folder, threshold=0.9, resume=True, load=load_stub)
    assert (folder / "alerts.csv").read_text().startswith("time,row,column,value,expected,std,probability\n")


def test_what_has_no_pixels_has_no_regions(tmp_path):
    with pytest.raises(RunError, match="alerts_per region is for pictures, which have rows and columns, got site"):
        run(StubStream(6), StubModel(), store=tmp_path / "s", alerts_per="region")
