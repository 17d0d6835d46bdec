"""Every operation over observed entries against the same operation over all entries, masked."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.inputs import packing
from undertow.inputs.sparse import Entries
from undertow.model import elbo
from undertow.model.factors import layout, predict, rank
from undertow.model.factors.directions import leading_directions
from undertow.model.noise import contaminated, tempering
from undertow.model.phases import candidate
from undertow.model.types import Window, over_slice

pytestmark = pytest.mark.usefixtures("double")

PALETTE = [((9,), 2, 4), ((4, 7), 3, 3), ((3, 5, 4), 2, 3), ((2, 4, 3, 3), 2, 2)]
CASES = pytest.mark.parametrize(
    ("shape", "size", "length"),
    [case if len(case[0]) == 3 else pytest.param(*case, marks=pytest.mark.full) for case in PALETTE],
)
CAPACITY = 96


def both(shape, size, length, seed, observed=0.4, **changes):
    """A state with all entries, and the same one with the observed ones only."""
    settings, core = dense.random_core(
        shape, size, length, "default", seed, observed=observed, noise="shared", **changes
    )
    outliers = core.outliers
    outliers = replace(
        outliers,
        noise_shape=jnp.full(shape, outliers.pool_shape),
        noise_rate=jnp.full(shape, outliers.pool_rate),
    )
    core = replace(core, outliers=outliers)
    values, mask = np.asarray(core.window.values), np.asarray(core.window.mask)
    pieces = [
        Entries(tuple(np.nonzero(there)), slice_[there], shape) for slice_, there in zip(values, mask, strict=True)
    ]
    parts = [
        (*packing.packed(piece, CAPACITY, piece.values, piece.mask), packing.entry_index(piece, CAPACITY))
        for piece in pieces
    ]
    stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *parts)
    window = Window(*stacked[:2], core.window.newest, core.window.filled, stacked[2])
    sparse = replace(
        core,
        window=window,
        outliers=replace(
            outliers,
            probability=listed(outliers.probability, window),
            noise_shape=outliers.pool_shape,
            noise_rate=outliers.pool_rate,
        ),
    )
    return settings, core, sparse


def listed(array, window):
    """Of an array (W, I_1, …, I_N) the entries of the sparse window (W, E), 0 in unused positions."""
    slots = np.arange(window.values.shape[0])[:, None]
    return jnp.where(window.mask, jnp.asarray(array)[(slots, *window.entry_index.indices)], 0)


def assert_same(ours, theirs):
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11), ours, theirs)


@pytest.mark.slow
def test_the_sparse_window_holds_the_same():
    _, core, sparse = both((4, 7), 3, 3, seed=0)
    assert sparse.window.mask.sum() == core.window.mask.sum()
    assert_same(over_slice(sparse.window.values), over_slice(core.window.values))


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "size", "length"), PALETTE[:3:2])
def test_sweeps_and_rows(shape, size, length):
    _, core, sparse = both(shape, size, length, seed=1)
    rng = np.random.default_rng(0)
    weights = jnp.asarray(np.asarray(core.window.mask) * rng.uniform(0.5, 2, core.window.mask.shape))
    few, entry_index = listed(weights, sparse.window), sparse.window.entry_index
    time_weights = jnp.asarray(rng.uniform(0.3, 1, length))

    @jax.jit
    def updated(factors, weights, values, entry_index):
        swept = layout.sweep(factors, weights, values, time_weights, entry_index, 0.6)
        return swept, layout.update_rows(factors, weights, values, time_weights, entry_index)

    assert_same(
        updated(sparse.factors, few, sparse.window.values, entry_index),
        updated(core.factors, weights, core.window.values, None),
    )


@pytest.mark.slow
def test_many_rows_are_solved_in_blocks(monkeypatch):
    from undertow.model.factors import observed

    _, core, sparse = both((4, 7), 3, 3, seed=1)
    time_weights = jnp.ones(3)
    monkeypatch.setattr(observed, "SOLVE_BLOCK", 2)
    swept = jax.jit(layout.sweep)
    assert_same(
        swept(sparse.factors, sparse.window.mask * 1.5, sparse.window.values, time_weights, sparse.window.entry_index),
        swept(core.factors, core.window.mask * 1.5, core.window.values, time_weights, None),
    )


@pytest.mark.slow
@CASES
def test_mean_variance_and_components(shape, size, length):
    _, core, sparse = both(shape, size, length, seed=2)
    entry_index, mask = sparse.window.entry_index, sparse.window.mask

    @jax.jit
    def summed(factors, entry_index):
        component = layout.component(factors, 0, entry_index)
        return layout.low_rank(factors, entry_index), layout.variance(factors, entry_index), *component

    for ours, theirs in zip(summed(sparse.factors, entry_index), summed(core.factors, None), strict=True):
        assert_same(jnp.where(mask, ours, 0), listed(theirs, sparse.window))


@pytest.mark.full
@CASES
def test_candidates_and_pruning(shape, size, length):
    settings, core, sparse = both(shape, size, length, seed=3)
    omega = jnp.asarray(dense.slice_weights(settings, core.window))
    count = omega @ over_slice(core.window.mask * 1.0)

    @jax.jit
    def moved(state):
        weights, targets = contaminated.weights_and_targets(state.outliers, state.window, omega)
        energy = (weights * targets**2).sum()
        entry_index = state.window.entry_index
        fit = candidate.CandidateFit(weights, targets, energy, count, omega, settings.precision_prior, entry_index)
        found = fit.fitted()
        prior = settings.precision_prior
        start = (state.factors, targets, targets**2, elbo.low_rank(state.factors, omega, prior))
        pruned, made = rank.prune_smallest(*start, weights, omega, prior, entry_index)
        directions = leading_directions(weights * targets, entry_index)
        seen = (found.low_rank(entry_index), found.square(entry_index), pruned[1], pruned[2])
        return (
            directions,
            found,
            pruned[0],
            made,
            *(jnp.where(state.window.mask, one, 0) for one in seen),
        )

    found = [moved(sparse), moved(core)]
    assert_same(found[0][:4], found[1][:4])
    for ours, theirs in zip(found[0][4:], found[1][4:], strict=True):
        assert_same(ours, listed(theirs, sparse.window))


@pytest.mark.full  # tests/engine/test_sparse_streams.py compares whole steps
@pytest.mark.parametrize(("shape", "size", "length"), PALETTE[1:2])
def test_the_outlier_model(shape, size, length):
    settings, core, sparse = both(shape, size, length, seed=4)
    omega = jnp.asarray(dense.slice_weights(settings, core.window))

    @jax.jit
    def run(state):
        begun, factors = contaminated.begin(settings, state.outliers, state.factors, state.window, None)
        wide = tempering.reset_noise(settings, state.outliers, state.factors, state.window, omega, None)
        square = jnp.where(state.window.mask, state.window.values**2, 0)
        updated = contaminated.update(settings, state.outliers, state.window, omega, state.window.values, square)
        finished = contaminated.finish(settings, updated, state.window, omega, state.window.values, square)
        bound = elbo.contaminated(settings, finished, state.window, omega, state.window.values, square)
        stuck = replace(state.outliers, probability=state.window.mask * 0.9)
        shut = [tempering.shut_out(one, state.window, omega) for one in (state.outliers, stuck)]
        return [begun, wide, updated, finished], (factors, bound, shut)

    found = [run(sparse), run(core)]
    assert_same(found[0][1], found[1][1])
    assert found[0][1][2][1]
    for ours, theirs in zip(found[0][0], found[1][0], strict=True):
        for name, value in vars(ours).items():
            other = getattr(theirs, name)
            if name == "probability":
                other = listed(other, sparse.window)
            elif name in ("noise_shape", "noise_rate"):
                other = other.reshape(-1)[0]
            assert_same(value, other)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "size", "length"), PALETTE[:3])
def test_size_and_distance_of_whole_slices_need_no_entries(shape, size, length):
    _, core, _ = both(shape, size, length, seed=5)
    slices = [np.asarray(predict.low_rank(core.factors))[slot] for slot in (0, 1)]
    drawn = [(core.factors.row_means[slot], *core.factors.means) for slot in (0, 1)]
    assert_same(layout.size_of(drawn[0]), layout.size_of(jnp.asarray(slices[0])))
    assert_same(layout.distance(*drawn), layout.distance(*map(jnp.asarray, slices)))
    assert layout.distance(drawn[0], drawn[0]) == 0


@pytest.mark.slow
def test_a_sample_is_spread_evenly_over_the_entries():
    lengths = jnp.asarray([3, 0, 200], jnp.int32)
    entry_index = replace(layout.empty_entry_index((3, 256), (9, 9)), lengths=lengths)
    values = jnp.arange(3 * 256.0).reshape(3, 256)
    some = np.asarray(layout.sample(values, entry_index, 40))
    assert some.size == 40
    assert set(some) <= {0, 1, 2, *range(512, 712)}
    assert len(set(some)) == 40
    assert np.asarray(layout.sample(values, entry_index, 4000)).size == values.size
