"""The level: the smoother against a dense Gaussian posterior, what is carried, how walks are chosen, and the bound."""

from dataclasses import replace

import dense
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model import level as levels
from undertow.model.defaults import INITIAL_WALK, WALK_RATIOS
from undertow.model.noise import contaminated
from undertow.model.phases.begin import write
from undertow.model.phases.sweep import smoothed_level
from undertow.model.types import Window

pytestmark = pytest.mark.usefixtures("double")
SHAPE, LENGTH = (3, 2), 5


def setting(filled, newest, seed=0, seen=0.6):
    """A level in the middle of nowhere, a window of which `filled` slices are there, weights and targets."""
    rng = np.random.default_rng(seed)
    present = np.mod(newest - np.arange(LENGTH), LENGTH) < filled
    mask = (rng.random((LENGTH, *SHAPE)) < seen) & present[:, None, None]
    targets = rng.normal(size=mask.shape)
    window = Window(jnp.asarray(targets), jnp.asarray(mask), jnp.int32(newest), jnp.int32(filled))
    level = replace(
        levels.init(LENGTH, SHAPE, jnp.dtype("float64")),
        start_mean=jnp.asarray(rng.normal(size=SHAPE)),
        start_variance=jnp.asarray(rng.uniform(0.1, 2, SHAPE)),
        walk_variance=jnp.asarray(rng.uniform(0.01, 1, SHAPE)),
    )
    return level, window, jnp.asarray(np.where(mask, rng.uniform(0.5, 3, mask.shape), 0)), jnp.asarray(targets)


def in_order(window):
    """Slots of the window, oldest first."""
    return [(int(window.newest) - age) % LENGTH for age in reversed(range(int(window.filled)))]


def prior_precision(level, steps, i):
    """Precision of (start, m_1, …, m_n) of one entry, before any observation."""
    matrix = np.zeros((steps + 1, steps + 1))
    matrix[0, 0] = 1 / level.start_variance[i]
    for t in range(steps):
        matrix[t : t + 2, t : t + 2] += np.array([[1, -1], [-1, 1]]) / level.walk_variance[i]
    return matrix


def posterior(level, weights, targets, slots, i):
    """Mean and covariance of (start, m_1, …, m_n) of one entry, by inverting its joint precision."""
    matrix = prior_precision(level, len(slots), i)
    vector = np.zeros(len(matrix))
    vector[0] = level.start_mean[i] / level.start_variance[i]
    for t, slot in enumerate(slots):
        matrix[t + 1, t + 1] += weights[(slot, *i)]
        vector[t + 1] += weights[(slot, *i)] * targets[(slot, *i)]
    covariance = np.linalg.inv(matrix)
    return covariance @ vector, covariance


@pytest.mark.slow
@pytest.mark.parametrize(("filled", "newest"), [(5, 4), (5, 1), (3, 2), (1, 0)])
@pytest.mark.parametrize("seen", [0.6, 0.0, 1.0])
def test_the_smoother_is_the_dense_posterior(filled, newest, seen):
    level, window, weights, targets = setting(filled, newest, seen=seen)
    new = levels.update(level, window, weights, targets)
    slots = in_order(window)
    for i in np.ndindex(SHAPE):
        mean, covariance = posterior(level, weights, targets, slots, i)
        for t, slot in enumerate(slots):
            np.testing.assert_allclose(new.mean[(slot, *i)], mean[t + 1], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(new.variance[(slot, *i)], covariance[t + 1, t + 1], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("filled", "newest"), [(5, 4), (5, 1), (3, 2), (1, 0)])
@pytest.mark.parametrize("seen", [0.6, 1.0])
def test_what_the_level_costs_the_elbo_is_the_divergence_of_all_its_slices_from_their_prior(filled, newest, seen):
    level, window, weights, targets = setting(filled, newest, seed=2, seen=seen)
    new = levels.update(level, window, weights, targets)
    expected = 0.0
    for i in np.ndindex(SHAPE):
        if not window.mask[(slice(None), *i)].any():
            continue
        mean, covariance = (part[1:] for part in posterior(level, weights, targets, in_order(window), i))
        covariance = covariance[:, 1:]
        precision = np.linalg.inv(np.linalg.inv(prior_precision(new, filled, i))[1:, 1:])
        away = mean - float(level.start_mean[i])
        product = precision @ covariance
        expected += (np.trace(product) - filled - np.linalg.slogdet(product)[1] + away @ precision @ away) / 2
    np.testing.assert_allclose(levels.divergence(new, window), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("walk", [1e-7, 1e-2, 1e3])
def test_single_precision_is_enough_for_what_the_level_costs(walk):
    level, window, weights, targets = setting(5, 1, seed=2)
    level = replace(level, walk_variance=jnp.full(SHAPE, walk))
    new = levels.update(level, window, weights, targets)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == jnp.float64 else leaf, (new, window))
    np.testing.assert_allclose(levels.divergence(*single), levels.divergence(new, window), rtol=1e-5)


@pytest.mark.slow
def test_what_is_carried_is_filtered_at_the_oldest_slice():
    level, window, weights, targets = setting(5, 1)
    new = levels.update(level, window, weights, targets)
    for i in np.ndindex(SHAPE):
        mean, covariance = posterior(level, weights, targets, in_order(window)[:1], i)
        np.testing.assert_allclose(new.next_mean[i], mean[1], rtol=1e-9)
        np.testing.assert_allclose(new.next_variance[i], covariance[1, 1], rtol=1e-9)
    later = levels.arrive(new, write(window, targets[0], window.mask[0]))
    np.testing.assert_array_equal(later.start_mean, new.next_mean)
    np.testing.assert_array_equal(later.start_variance, new.next_variance)


@pytest.mark.slow
def test_the_first_variance_is_by_the_entries_that_were_seen():
    level, window, weights, targets = setting(3, 2, seed=3, seen=0.4)
    seen = np.asarray(window.mask.any(axis=0))
    assert not seen.all()
    new = levels.update(level, window, weights, targets)
    squares = []
    for i in np.argwhere(seen):
        mean, covariance = posterior(level, weights, targets, in_order(window), tuple(i))
        squares.append(mean[0] ** 2 + covariance[0, 0])
    np.testing.assert_allclose(new.initial_variance, np.mean(squares), rtol=1e-9)
    np.testing.assert_allclose(new.start_variance, np.full(SHAPE, np.mean(squares)), rtol=1e-9)
    level, window, weights, targets = setting(5, 1)
    full = levels.update(level, window, weights, targets)
    np.testing.assert_array_equal(full.start_variance, level.start_variance)


def follow(values, mask, length, walk_variance, weight=2.0):
    """The level after every slice, nothing else changing; weights 0 where nothing was observed."""
    level = replace(
        levels.init(length, values.shape[1:], jnp.dtype("float64")),
        walk_variance=jnp.full(values.shape[1:], float(walk_variance)),
    )
    empty = jnp.zeros((length, *values.shape[1:]))
    window = Window(empty, empty > 0, jnp.int32(length - 1), jnp.int32(0))
    one_turn = jax.jit(lambda level, window: levels.update(level, window, window.mask * weight, window.values))
    history = []
    for x, seen in zip(values, mask, strict=True):
        window = write(window, jnp.where(seen, x, 0), jnp.asarray(seen))
        level = one_turn(levels.arrive(level, window), window)
        history.append((level, window))
    return history


@pytest.mark.slow
def test_a_short_window_forgets_nothing():
    """Filtering over a window shorter than the stream is filtering all of it, from the last first variance."""
    rng = np.random.default_rng(4)
    values, mask = rng.normal(size=(14, *SHAPE)).cumsum(0), rng.random((14, *SHAPE)) < 0.7
    history = follow(values, mask, length=4, walk_variance=0.3)
    first_variance = float(history[2][0].initial_variance)  # the last before the window was full
    last, window = history[-1]
    newest = int(window.newest)
    whole = replace(last, start_mean=jnp.zeros(SHAPE), start_variance=jnp.full(SHAPE, first_variance))
    for i in np.ndindex(SHAPE):
        mean, covariance = posterior(whole, 2.0 * mask, values, range(14), i)
        np.testing.assert_allclose(last.mean[(newest, *i)], mean[-1], rtol=1e-9)
        np.testing.assert_allclose(last.variance[(newest, *i)], covariance[-1, -1], rtol=1e-9)


@pytest.mark.slow
def test_a_level_holds_its_value_through_a_gap_and_grows_unsure():
    rng = np.random.default_rng(5)
    values = 3.0 + 0.1 * rng.normal(size=(24, *SHAPE))
    mask = np.ones(values.shape, bool)
    mask[10:20] = False  # longer than the window
    history = [(np.asarray(one.mean[two.newest]), np.asarray(one.variance[two.newest])) for one, two in
               follow(values, mask, length=4, walk_variance=1e-3, weight=100.0)]  # fmt: skip
    for gap in range(10, 20):
        np.testing.assert_allclose(history[gap][0], history[9][0], rtol=1e-9)
        np.testing.assert_allclose(history[gap][1], history[9][1] + 1e-3 * (gap - 9), rtol=1e-9)
    np.testing.assert_allclose(history[-1][0], 3.0, atol=0.2)


@pytest.mark.slow
def test_units_and_the_order_of_entries_do_not_matter():
    level, window, weights, targets = setting(5, 1)
    ours = levels.update(level, window, weights, targets)
    order = jnp.asarray([2, 0, 1])
    swapped = jax.tree.map(lambda leaf: leaf[..., order, :] if leaf.ndim >= 2 else leaf, (level, window))
    theirs = levels.update(*swapped, weights[:, order], targets[:, order])
    np.testing.assert_allclose(theirs.mean, ours.mean[:, order], rtol=1e-12)
    large = replace(
        level,
        start_mean=1e3 * level.start_mean,
        start_variance=1e6 * level.start_variance,
        walk_variance=1e6 * level.walk_variance,
    )
    scaled = levels.update(large, window, weights / 1e6, 1e3 * targets)
    np.testing.assert_allclose(scaled.mean, 1e3 * ours.mean, rtol=1e-9)
    np.testing.assert_allclose(scaled.variance, 1e6 * ours.variance, rtol=1e-9)


def walks_found(targets, mask=None, robustness=None):
    """Walk of every entry after all slices, over noise of variance 1, and the last bank."""
    level = levels.init(2, targets.shape[1:], jnp.dtype("float64"))
    mask = np.ones(targets.shape, bool) if mask is None else mask
    robustness = np.ones(targets.shape) if robustness is None else robustness
    one_turn = jax.jit(levels.finish)
    for x, seen, believed in zip(targets, mask, robustness, strict=True):
        level = one_turn(level, seen, believed, x, jnp.ones(targets.shape[1:]))
    return np.asarray(level.walk_variance), level


def wanderers_and_jitterers(slices=80):
    """Entries 0 to 9 walk by steps as large as three times the noise, 10 to 19 only jitter."""
    rng = np.random.default_rng(6)
    noise = rng.normal(size=(slices, 20))
    noise[:, :10] += 3 * rng.normal(size=(slices, 10)).cumsum(0)
    return noise


def test_wanderers_are_found_to_be_fast_and_jitterers_slow():
    walk, level = walks_found(wanderers_and_jitterers())
    assert (walk[:10] > 1).all()
    assert (walk[10:] < 0.05).all()
    fastest = np.argmax(np.asarray(level.bank.score) - np.log(np.array(WALK_RATIOS))[:, None], axis=0)
    assert (fastest[:10] >= WALK_RATIOS.index(1.0)).all()
    assert (fastest[10:] <= WALK_RATIOS.index(0.01)).all()


@pytest.mark.parametrize(("steps", "slices"), [(0.3, 80), (1.0, 40), (3.0, 40)])
def test_entries_learn_from_each_other_how_fast_they_walk(steps, slices):
    """Within a factor of 3: alone, against the prior, all but the quickest were found to be far too slow by then."""
    rng = np.random.default_rng(11)
    walks = steps * rng.normal(size=(slices, 100)).cumsum(0) + rng.normal(size=(slices, 100))
    walk, _ = walks_found(walks)
    assert steps**2 / 3 < np.median(walk) < 3 * steps**2


@pytest.mark.parametrize("weight", [1.0, 0.02])
def test_one_outlier_changes_no_walk(weight):
    values = wanderers_and_jitterers()
    plain, _ = walks_found(values)
    values[60] += 1e4
    robustness = np.ones(values.shape)
    robustness[60] = weight  # whether the outlier model has noticed or not
    hit, level = walks_found(values, robustness=robustness)
    assert (hit[:10] > 1).all()
    assert (hit[10:] < 0.05).all()
    assert np.median(hit[10:] / plain[10:]) < 3
    assert np.abs(np.asarray(level.bank.mean)[0, 10:]).max() < 5  # a slow filter is not carried away either


@pytest.mark.slow
def test_flagged_entries_in_a_row_do_not_favour_a_faster_level():
    """A fifth of all observations far off and always by as much: whoever follows one of them foretells the next."""
    values = wanderers_and_jitterers(slices=200)[:, 10:]
    off = np.random.default_rng(3).random(values.shape) < 0.2
    values[off] += 3000
    walk, level = walks_found(values, robustness=np.where(off, 1 / 1000, 1.0))
    assert (walk < 0.05).all()
    assert (level.bank.noise_sum < 20 * level.bank.noise_count).all()


def test_an_entry_never_seen_keeps_its_first_walk():
    values = wanderers_and_jitterers(slices=6)
    mask = np.ones(values.shape, bool)
    mask[:, 3] = False
    walk, level = walks_found(values, mask)
    assert walk[3] == INITIAL_WALK
    assert float(level.bank.noise_count[3]) == 0
    assert (walk[4:] != INITIAL_WALK).all()


def test_walks_follow_the_unit():
    values = wanderers_and_jitterers(slices=12)
    one_turn = jax.jit(levels.finish)

    def walks(factor):
        level = levels.init(2, (20,), jnp.dtype("float64"))
        for x in values * factor:
            level = one_turn(level, np.ones(20, bool), np.ones(20), x, jnp.full(20, factor**2))
        return np.asarray(level.walk_variance)

    np.testing.assert_allclose(walks(100.0), 1e4 * walks(1.0), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("filled", [5, 3])
def test_the_update_never_lowers_the_bound(filled):
    """Against the same chain with other weights: q(m) by the update beats every other q(m) of that form."""
    settings, core = dense.random_core(SHAPE, 2, LENGTH, "default", seed=7, filled=filled)
    settings = replace(settings, forgetting=1.0)
    start, *_ = setting(filled, int(core.window.newest), seed=8)
    window, slots = core.window, in_order(core.window)
    targets = np.asarray(window.values)
    weights, _ = contaminated.weights_and_targets(core.outliers, window, jnp.ones(LENGTH))

    def bound(means, covariances):
        """The whole of it: E ln p(y | m), the prior of the chain and the entropy of q(m)."""
        square, chain = np.zeros(targets.shape), 0.0
        for i in np.ndindex(SHAPE):
            mean, covariance = means[i], covariances[i]
            square[(slots, *i)] = (targets[(slots, *i)] - mean[1:]) ** 2 + np.diag(covariance)[1:]
            matrix = prior_precision(start, len(slots), i)
            away = mean - float(start.start_mean[i])
            chain += np.linalg.slogdet(matrix)[1] / 2 - (np.trace(matrix @ covariance) + away @ matrix @ away) / 2
            chain += np.linalg.slogdet(covariance)[1] / 2 + len(mean) / 2
        return dense.contaminated_elbo(settings, core.outliers, window, square) + chain

    def chain_by(other):
        pairs = {i: posterior(start, other, targets, slots, i) for i in np.ndindex(SHAPE)}
        return {i: pair[0] for i, pair in pairs.items()}, {i: pair[1] for i, pair in pairs.items()}

    new = smoothed_level(settings, core.outliers, start, window, window.values)
    means, covariances = chain_by(weights)
    for i in np.ndindex(SHAPE):
        np.testing.assert_allclose(np.asarray(new.mean)[(slots, *i)], means[i][1:], rtol=1e-9)
        np.testing.assert_allclose(np.asarray(new.variance)[(slots, *i)], np.diag(covariances[i])[1:], rtol=1e-9)
    best = bound(means, covariances)
    rng = np.random.default_rng(9)
    for _ in range(20):
        other = np.asarray(weights) * rng.uniform(0.3, 3, targets.shape)
        assert bound(*chain_by(other)) < best
        moved = {i: mean + 0.1 * rng.normal(size=mean.shape) for i, mean in means.items()}
        assert bound(moved, covariances) < best
