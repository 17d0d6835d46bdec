import numpy as np
import pytest

from undertow.lab.synthetic.counts import poisson, walks


@pytest.mark.parametrize("mean", [0.3, 5.0])
def test_counts_are_integers_around_constant_rates(mean):
    stream = poisson(mean, slices=100, observed=0.8, seed=1)
    assert stream.complete.mean() == pytest.approx(mean, rel=0.1)
    np.testing.assert_array_equal(stream.complete, np.round(stream.complete))
    np.testing.assert_array_equal(stream.low_rank[0], stream.low_rank[-1])
    rest = (stream.complete - stream.low_rank) / np.sqrt(stream.low_rank)
    assert rest.var() == pytest.approx(1, rel=0.05)
    assert stream.mask.mean() == pytest.approx(0.8)


def test_walks_step_on_their_own_or_by_rows_and_columns():
    own = walks((6, 5), slices=400, step=0.2, noise_std=0.1, seed=2)
    steps = np.diff(own.low_rank, axis=0)
    assert steps.std() == pytest.approx(0.2, rel=0.05)
    assert np.abs(np.corrcoef(steps.reshape(399, -1).T) - np.eye(30)).max() < 0.25
    shared = walks((6, 5), shared=True, slices=10, seed=2)
    assert np.linalg.matrix_rank(shared.low_rank[3] - shared.low_rank[3].mean(axis=0), tol=1e-9) == 1


def test_a_seed_decides():
    for generate in (lambda seed: poisson(1.0, slices=3, seed=seed), lambda seed: walks(slices=3, seed=seed)):
        np.testing.assert_array_equal(generate(3).complete, generate(3).complete)
        assert (generate(3).complete != generate(4).complete).any()
