"""What the report shows of a tracker."""

import numpy as np
import pytest
from stubs import StubStream, StubTracker

from undertow.report import write_report
from undertow.report.tracker import Event, events
from undertow.runs import run


def test_what_is_said_again_is_one_event():
    texts = np.array(["", "a; b", "a", "", "a"], dtype=object)
    assert events(texts) == [Event("a", 1, 2), Event("b", 1, 1), Event("a", 4, 4)]


@pytest.mark.parametrize("slices", [20, 300])
def test_weights_are_drawn_and_events_are_listed(tmp_path, slices):
    run(StubStream(slices), StubTracker(), store=tmp_path / "s", keep="mean,outliers")
    text = write_report(tmp_path / "s").read_text()
    assert text.count('<path class="share') == 3
    assert "level 50%" in text
    assert "cp 12%" in text
    assert "<td>row off: site b</td><td>4</td><td>7</td>" in text
    assert "<td>dead: c 3</td>" in text
