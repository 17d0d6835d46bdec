"""The page about a store: complete, self-contained, and safe whatever the labels say."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr
from stubs import StubModel, StubStream, load_stub

from undertow.report import write_report
from undertow.report.chart import Curve, chart, shown, thinned
from undertow.report.findings import outlier_frequency, top_alerts, worst_slices
from undertow.report.page import time_labels
from undertow.report.pictures import limits, picture, plane, shrunk
from undertow.runs import run
from undertow.runs.errors import StoreError
from undertow.runs.store.reader import open_store


def store_at(folder, stream=None, **options):
    options = {"keep": "data,low_rank,std,outliers,outlier_probability", "threshold": 0.9, **options}
    run(stream or StubStream(40), StubModel(), store=folder, load=load_stub, **options)
    return folder


class Tags(HTMLParser):
    """Everything that a page opens and does not close, and everything it would load from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.count = [], [], {}

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)
        self.loaded += [value for name, value in attrs if name in {"src", "href"} and not value.startswith("data:")]

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page):
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.loaded == []
    return tags


def test_the_page_shows_summary_curves_pictures_alerts_and_settings(tmp_path):
    page = write_report(store_at(tmp_path / "s.zarr"))
    assert page == tmp_path / "s-report.html"
    text = page.read_text()
    tags = parsed(text)
    assert tags.count["svg"] == 4
    assert tags.count["img"] == 17
    assert "url(" not in text
    for words in (
        "40 slices of 3×4",
        "Over time",
        "Where the outliers are",
        "The worst slices",
        "Diagnostics",
        "Settings",
    ):
        assert words in text
    found = xr.open_zarr(tmp_path / "s.zarr")
    assert f"<b>{float(found['observed'].mean()):.1%}</b>" in text
    assert "<b>5</b> slices: all max_rank components are in use" in text


def test_nothing_in_the_data_becomes_part_of_the_page(tmp_path):
    stream = StubStream(40)
    evil = "<script>alert(1)</script>"
    stream.name, stream.dims, stream.labels = evil, (evil, "b"), ((evil, '"><img src=x>', "c"), None)
    text = write_report(store_at(tmp_path / "s", stream)).read_text()
    tags = parsed(text)
    assert tags.count["script"] == 1
    assert tags.count["img"] == 17


@pytest.mark.parametrize("shape", [(7,), (2, 3, 5), (500, 4)], ids=str)
@pytest.mark.parametrize("keep", ["low_rank,outliers", "none"])
def test_any_shape_and_any_choice_has_a_page(tmp_path, shape, keep):
    text = write_report(store_at(tmp_path / "s", StubStream(30, shape=shape), keep=keep, alerts=None)).read_text()
    tags = parsed(text)
    assert tags.count.get("img", 0) == (0 if keep == "none" else 12)
    assert ("The data were not kept" in text) == (keep != "none")


@pytest.mark.parametrize("slices", [1, 2, 3000])
def test_any_length_has_a_page(tmp_path, slices):
    text = write_report(store_at(tmp_path / "s", StubStream(slices), keep="low_rank,outliers")).read_text()
    parsed(text)
    assert len(text) < 400_000


def test_a_store_that_is_none_is_one_sentence(tmp_path):
    with pytest.raises(StoreError, match="name a store that undertow run wrote"):
        write_report(tmp_path / "nothing")


def test_labels_and_times_of_alerts_are_shown_as_they_are(tmp_path):
    stream = StubStream(40, times=lambda index: np.datetime64("2024-05-01T00:00") + index)
    stream.labels = (("TOKYO", "BERLIN", "PATH/T"), None)
    text = write_report(store_at(tmp_path / "s", stream, threshold=0.3)).read_text()
    alerts = text[text.index("farthest from what was expected") :]
    assert "TOKYO" in alerts
    assert "PATH/T" in alerts
    assert "2024-05-01 00:" in alerts


def test_top_alerts_are_the_farthest(tmp_path):
    stored = open_store(store_at(tmp_path / "s", threshold=0.3))
    found = top_alerts(stored, count=3)
    far = sorted((abs(row["value"] - row["expected"]) / row["std"] for row in stored.alerts()), reverse=True)
    assert found.total == len(far) > 10
    assert [abs(row["value"] - row["expected"]) / row["std"] for row in found.rows] == far[:3]


@pytest.mark.parametrize("slices", [1, 33, 100])
def test_outlier_frequency_counts_every_slice_once(tmp_path, slices):
    stored = open_store(store_at(tmp_path / "s", StubStream(slices), threshold=0.3))
    fractions, sampled = outlier_frequency(stored)
    assert sampled == slices
    np.testing.assert_allclose(fractions, (stored.dataset["outlier_probability"].values >= 0.3).mean(axis=0))


def test_a_long_store_is_sampled(tmp_path, monkeypatch):
    stored = open_store(store_at(tmp_path / "s", StubStream(100), threshold=0.3))
    monkeypatch.setattr("undertow.report.findings._SAMPLED_BYTES", 1)
    assert 20 <= outlier_frequency(stored)[1] <= 40


def test_worst_slices_are_not_neighbours(tmp_path):
    stored = open_store(store_at(tmp_path / "s"))
    found = [worst.index for worst in worst_slices(stored)]
    assert len(found) == 4
    assert found == sorted(found)
    assert min(np.diff(found)) > 2
    rates = stored.dataset["outlier_rate"].values[4:]
    assert 4 + int(rates.argmax()) in found


def test_thinning_keeps_the_peaks():
    values = np.zeros(10_000)
    values[1234], values[8765] = 7.0, -3.0
    picks = thinned(values)
    assert len(picks) <= 702
    assert {0, 1234, 8765, 9999} <= set(picks.tolist())


def test_a_curve_has_gaps_where_there_is_nothing():
    drawn = chart(Curve(np.array([1.0, np.nan, 2.0, 3.0]), "error"), list("abcd"))
    assert re.search(r'class="line" d="([^"]*)"', drawn)[1].count("M") == 2
    assert "no values" in chart(Curve(np.array([np.nan, np.nan]), "error"), ["a", "b"])


@pytest.mark.parametrize(
    ("value", "percent", "text"),
    [(0.0, False, "0"), (0.01234, True, "1.23 %"), (1234567.0, False, "1.23e+06"), (12345.0, False, "12,345")],
)
def test_numbers_as_people_write_them(value, percent, text):
    assert shown(value, percent) == text


def test_times_no_finer_than_they_differ():
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]")
    assert time_labels(days) == ["2024-01-01", "2024-01-02"]
    assert time_labels(days + np.timedelta64(90, "s"))[0] == "2024-01-01 00:01:30"
    assert time_labels(np.array([1, 2])) == ["1", "2"]


def test_the_plane_with_most_to_show_is_chosen():
    interest = np.zeros((4, 3, 5))
    interest[2, 1, 3] = 9.0
    arrays, fixed = plane({"x": np.arange(60.0).reshape(4, 3, 5)}, interest)
    assert fixed == {1: 1}
    np.testing.assert_array_equal(arrays["x"], np.arange(60.0).reshape(4, 3, 5)[:, 1, :])


def test_large_slices_become_small_pictures_that_show_every_outlier():
    values = np.zeros((1000, 700))
    values[777, 333] = 5.0
    assert shrunk(values).max() == 5.0
    assert len(picture("x", values, 0, 5, "gray")) < 21_000
    assert limits(np.zeros((2, 2))) == (0.0, 0.0)
    assert limits(np.full((2, 2), np.nan)) == (0.0, 1.0)
    assert limits(np.array([1.0, -4.0]), around_zero=True)[1] == pytest.approx(4, rel=0.01)
