"""Online-CP against its accumulated normal equations, and against what it must solve exactly."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import online_cp
from undertow.lab.synthetic.streams import drifting


@pytest.mark.slow
def test_equals_the_accumulated_normal_equations() -> None:
    stream = drifting((4, 3, 5), 2, slices=8, outlier_fraction=0.0, seed=5)
    state = online_cp.init(online_cp.Config(rank=2, initial_slices=3), (4, 3, 5))
    for t in range(3):
        state, _ = online_cp.step(state, stream.values[t])
    factors = list(state.factors)
    projections, grams = list(state.projections), list(state.grams)
    letters = "abc"
    for t in range(3, 8):
        values = stream.values[t]
        design = np.einsum("ar,br,cr->abcr", *factors).reshape(-1, 2)
        row = np.linalg.lstsq(design, values.ravel(), rcond=None)[0]
        for mode in range(3):
            others = [k for k in range(3) if k != mode]
            spec = f"abc,{letters[others[0]]}r,{letters[others[1]]}r->{letters[mode]}r"
            projections[mode] = projections[mode] + row * np.einsum(spec, values, *[factors[k] for k in others])
            whole = np.einsum("ir,jr->ijr", *[factors[k] for k in others]).reshape(-1, 2) * row
            grams[mode] = grams[mode] + whole.T @ whole
        factors = [np.linalg.solve(gram, p.T).T for p, gram in zip(projections, grams, strict=True)]
        state, result = online_cp.step(state, values)
        expected = np.einsum("ar,br,cr,r->abc", *factors, row)
        np.testing.assert_allclose(result.low_rank, expected, rtol=1e-6, atol=1e-8)


def test_the_start_holds_the_normal_equations_of_its_slices() -> None:
    stream = drifting((6, 5), 2, slices=3, outlier_fraction=0.0, noise_std=0.0, drift=0.0, seed=6)
    state = online_cp.init(online_cp.Config(rank=2, initial_slices=3, iterations=500), (6, 5))
    for t, values in enumerate(stream.values):
        state, result = online_cp.step(state, values)
        assert result.status == ("ok" if t == 2 else "initialising")
    np.testing.assert_allclose(result.low_rank, stream.low_rank[2], atol=1e-3)
    for factor, projection, gram in zip(state.factors, state.projections, state.grams, strict=True):
        np.testing.assert_allclose(factor @ gram, projection, atol=2e-2 * np.abs(projection).max())


def test_follows_a_clean_stream_without_drift() -> None:
    stream = drifting((6, 5), 2, slices=30, outlier_fraction=0.0, noise_std=0.01, drift=0.0, seed=7)
    state = online_cp.init(online_cp.Config(rank=2, initial_slices=3, iterations=1000), (6, 5))
    for values in stream.values:
        state, result = online_cp.step(state, values)
    assert np.linalg.norm(result.low_rank - stream.low_rank[-1]) < 0.02 * np.linalg.norm(stream.low_rank[-1])
