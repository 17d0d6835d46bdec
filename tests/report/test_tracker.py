"""What the report shows of a tracker."""

import json
import re
from html import unescape

import pytest
from stubs import StubStream, StubTracker

from undertow.report import write_report
from undertow.runs import run


@pytest.mark.slow
@pytest.mark.parametrize("slices", [20, 300])
def test_weights_are_drawn_and_events_are_listed(tmp_path, slices):
    run(StubStream(slices), StubTracker(), store=tmp_path / "s", keep="mean,outliers")
    text = write_report(tmp_path / "s").read_text()
    drawn = [json.loads(unescape(found)) for found in re.findall(r'data-chart="([^"]*)"', text)]
    (weights,) = (one for one in drawn if one["how"].get("stacked"))
    names = [line["name"] for line in weights["lines"]]
    assert (len(names), names[0], names[-1]) == (3, "level 50%", "cp 12%")
    assert weights["lines"][0]["values"] == [0.5] * min(slices, 240)
    assert "<td>row off: site b</td><td>4</td><td>7</td>" in text
    assert "<td>dead: c 3</td>" in text
