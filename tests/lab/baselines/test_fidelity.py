"""One draw of each: the baselines stay near what their published codes gave (`undertow bench fidelity`)."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import METHODS, brtf
from undertow.lab.synthetic.streams import SyntheticStream, authors, drifting


def median_error(found: np.ndarray, stream: SyntheticStream) -> float:
    errors = np.linalg.norm(found - stream.low_rank, axis=(1, 2)) / np.linalg.norm(stream.low_rank, axis=(1, 2))
    return float(np.median(errors[19:]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "observed", "original"),
    [("olstec", 1.0, 0.278), ("olstec", 0.15, 0.878), ("online_sgd", 1.0, 0.415), ("online_cp", 1.0, 0.785)],
)
def test_drifting_stream(name: str, observed: float, original: float) -> None:
    stream = drifting((40, 40), 5, observed=observed, seed=1)
    method = METHODS[name]
    state = method.init(method.configure(rank=5, seed=101), stream.shape)
    found = []
    for values in stream.values:
        state, result = method.step(state, values)
        found.append(result.low_rank)
    assert median_error(np.stack(found), stream) == pytest.approx(original, rel=0.25)


@pytest.mark.slow
def test_batch_on_the_published_generator() -> None:
    stream = authors((40, 40), 5, observed=0.15, seed=0)
    fitted = brtf.fit(brtf.Config(rank=5), stream.values, stream.mask)
    assert median_error(fitted.low_rank, stream) == pytest.approx(0.110, rel=0.2)
