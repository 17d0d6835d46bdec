"""The picture of the demo."""

import pytest

from undertow.cli.demo import Estimates, last_value, moving_average
from undertow.cli.demo_picture import draw
from undertow.lab.synthetic.streams import traffic


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"slices": 2}, {"slices": 40}, {"slices": 5, "observed": 1.0}, {"slices": 5, "observed": 0.0}]
)
def test_any_stream_can_be_drawn(tmp_path, settings):
    stream = traffic(6, **settings)
    estimates = Estimates(
        mean=stream.low_rank,
        std=0.1 * stream.low_rank,
        outlier_probability=(stream.outlier_mask & stream.mask).astype(float),
    )
    baselines = {"last value": last_value(stream.values), "moving average": moving_average(stream.values)}
    draw(tmp_path / "picture.png", stream, estimates, baselines)
    content = (tmp_path / "picture.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
