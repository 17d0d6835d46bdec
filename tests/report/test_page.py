"""The page about a store: complete, self-contained, and safe whatever the labels say."""

from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr
from stubs import StubStream, reported_store

from undertow.report import write_report
from undertow.report.page import time_labels
from undertow.runs.errors import StoreError


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
    page = write_report(reported_store(tmp_path / "s.zarr"))
    assert page == tmp_path / "s-report.html"
    text = page.read_text()
    parsed(text)
    assert text.count("data-chart=") == 5
    assert text.count("data-map=") == 17
    assert "url(" not in text
    for words in (
        "verdict",
        "One entry over time",
        "off by, standard deviations",
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
    assert "<b>5</b> slices: all components that there may be are in use" in text


def test_nothing_in_the_data_becomes_part_of_the_page(tmp_path):
    stream = StubStream(40)
    evil = "<script>alert(1)</script>"
    stream.name, stream.dims, stream.labels = evil, (evil, "b"), ((evil, '"><img src=x>', "c"), None)
    text = write_report(reported_store(tmp_path / "s", stream)).read_text()
    tags = parsed(text)
    assert tags.count["script"] == 1
    assert "img" not in tags.count


@pytest.mark.parametrize("shape", [(7,), (2, 3, 5), (500, 4)], ids=str)
@pytest.mark.parametrize("keep", ["mean,outliers", "none"])
def test_any_shape_and_any_choice_has_a_page(tmp_path, shape, keep):
    text = write_report(reported_store(tmp_path / "s", StubStream(30, shape=shape), keep=keep, alerts=None)).read_text()
    parsed(text)
    assert text.count("data-map=") == (0 if keep == "none" else 12)
    assert ("The data were not kept" in text) == (keep != "none")


@pytest.mark.parametrize("slices", [1, 2, pytest.param(3000, marks=pytest.mark.slow)])
def test_any_length_has_a_page(tmp_path, slices):
    text = write_report(reported_store(tmp_path / "s", StubStream(slices), keep="mean,outliers")).read_text()
    parsed(text)
    assert len(text) < 400_000


def test_a_store_that_is_none_is_one_sentence(tmp_path):
    with pytest.raises(StoreError, match="name a store that undertow run wrote"):
        write_report(tmp_path / "nothing")


def test_a_report_is_written_anew_and_nothing_else_is_written_over(tmp_path):
    store = reported_store(tmp_path / "s.zarr")
    assert write_report(store) == write_report(store)
    (tmp_path / "mine.html").write_text("<p>precious")
    with pytest.raises(StoreError, match=r"mine.html is there already and is no report: .* name another file"):
        write_report(store, tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_text() == "<p>precious"


def test_labels_and_times_of_alerts_are_shown_as_they_are(tmp_path):
    stream = StubStream(40, times=lambda index: np.datetime64("2024-05-01T00:00") + index)
    stream.labels = (("TOKYO", "BERLIN", "PATH/T"), None)
    text = write_report(reported_store(tmp_path / "s", stream, threshold=0.3)).read_text()
    alerts = text[text.index("<h2>Alerts") :]
    assert "TOKYO" in alerts
    assert "PATH/T" in alerts
    assert "2024-05-01 00:" in alerts


def test_times_no_finer_than_they_differ():
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[ns]")
    assert time_labels(days) == ["2024-01-01", "2024-01-02"]
    assert time_labels(days + np.timedelta64(90, "s"))[0] == "2024-01-01 00:01:30"
    assert time_labels(np.array([1, 2])) == ["1", "2"]
