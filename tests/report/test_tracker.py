"""What the report shows of a tracker."""

import pytest
from stubs import StubStream, StubTracker

from undertow.report import write_report
from undertow.runs import run


@pytest.mark.slow
@pytest.mark.parametrize("slices", [20, 300])
def test_weights_are_drawn_and_events_are_listed(tmp_path, slices):
    run(StubStream(slices), StubTracker(), store=tmp_path / "s", keep="mean,outliers")
    text = write_report(tmp_path / "s").read_text()
    assert text.count('<path class="share') == 3
    assert "level 50%" in text
    assert "cp 12%" in text
    assert "<td>row off: site b</td><td>4</td><td>7</td>" in text
    assert "<td>dead: c 3</td>" in text
