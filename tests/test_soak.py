"""Long runs, left to `make soak`."""

import resource

import numpy as np
import pytest

import undertow as ut


@pytest.mark.soak
def test_a_hundred_thousand_slices_stay_sound_and_flat():
    """Drift, gaps, outliers, empty slices and changes of scene for a long time: nothing breaks, nothing grows."""
    rng = np.random.default_rng(0)
    model = ut.RobustCP(max_rank=3, window=6)
    left, right = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    peak = 0
    for t in range(100_000):
        if t % 5_000 == 4_999:
            left = rng.normal(size=(5, 2))
        x = (left * rng.normal(size=2)) @ right.T + 0.05 * rng.normal(size=(5, 4))
        x[rng.random((5, 4)) < 0.02] += 20
        x[rng.random((5, 4)) < (1.0 if t % 997 == 0 else 0.3)] = np.nan
        result = model.update(x)
        assert np.isfinite(result.low_rank).all()
        assert np.isfinite(result.std).all()
        if t == 1_000:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000  # KiB
