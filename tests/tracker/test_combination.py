"""The weights of the predictors, against a search over the whole simplex."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from undertow.tracker.combination import CHOICE_MEMORY, FORGETTING, RIDGE, averaged, discounted, simplex_weights

weights_of = jax.jit(simplex_weights)
SIZE = 4


def errors_of(rng, size=SIZE, slices=30):
    """Errors of predictors that are correlated and of different size."""
    mixed = rng.normal(size=(size, size)) * rng.uniform(0.1, 3, size=(size, 1))
    return mixed @ rng.normal(size=(size, slices))


def gram_of(rng, size=SIZE):
    errors = errors_of(rng, size)
    return errors @ errors.T


def loss(gram, weights):
    return weights @ gram @ weights


@pytest.mark.parametrize("seed", range(12))
def test_no_other_weights_are_better(seed):
    rng = np.random.default_rng(seed)
    gram = gram_of(rng)
    found = np.asarray(weights_of(gram), float)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-6)
    start = np.full(SIZE, 1 / SIZE)
    total = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(
        lambda w: loss(gram, w) / np.trace(gram), start, bounds=[(0, 1)] * SIZE, constraints=total, method="SLSQP"
    )
    tried = rng.dirichlet(np.full(SIZE, 0.5), 2000)
    least = min(loss(gram, best.x), *np.einsum("tk,kl,tl->t", tried, gram, tried))
    assert loss(gram, found) <= least * 1.01  # the small ridge costs a little


def test_conditions_of_the_minimum():
    """Karush, Kuhn and Tucker: E w is the same for all that count, and not smaller for those that do not."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        gram = gram_of(rng)
        found = np.asarray(weights_of(gram), float)
        gram += RIDGE * np.diag(np.diag(gram))
        gradient = gram @ found / loss(gram, found)
        np.testing.assert_allclose(gradient[found > 1e-6], 1, atol=1e-3)
        assert (gradient > 0.999).all()


@pytest.mark.slow
def test_problems_that_differ_in_the_size_of_errors_are_solved_as_one():
    rng = np.random.default_rng(4)
    for absent in (np.zeros(SIZE, bool), np.arange(SIZE) == 1):
        gram, sizes = gram_of(rng), np.exp(rng.normal(size=(2, SIZE)))
        together = simplex_weights(gram, absent, sizes)
        for size, found in zip(sizes, together, strict=True):
            expected = simplex_weights(gram * size * size[:, None], absent)
            np.testing.assert_allclose(found, expected, atol=1e-4)
            assert not np.asarray(found)[absent].any()


def test_order_and_unit_do_not_matter():
    rng = np.random.default_rng(5)
    gram, order = gram_of(rng), np.array([2, 0, 3, 1])
    found = weights_of(gram)
    np.testing.assert_allclose(weights_of(gram[order][:, order]), found[order], atol=1e-4)
    for unit in (2.0**-60, 2.0**-20, 2.0**40):
        np.testing.assert_allclose(weights_of((gram * unit).astype(np.float32)), found, atol=1e-5)


def test_equal_predictors_share_their_weight():
    error = np.random.default_rng(0).normal(size=30)
    errors = np.stack([error, error, error, 5 * np.roll(error, 1)])
    np.testing.assert_allclose(weights_of(errors @ errors.T)[:3], 1 / 3, atol=0.03)
    np.testing.assert_allclose(weights_of(np.zeros((SIZE, SIZE))), 1 / SIZE, atol=1e-6)


def test_one_that_explodes_leaves_the_others_as_they_are():
    """Its errors must not be the measure of theirs."""
    rng = np.random.default_rng(1)
    errors = rng.normal(size=(3, 200)) * np.array([[1.0], [2.0], [3.0]])
    alone = weights_of(errors @ errors.T)
    with_it = np.vstack([errors, 1e5 * rng.normal(size=200)])
    np.testing.assert_allclose(weights_of(with_it @ with_it.T), [*alone, 0], atol=0.01)


def test_discounted_errors_are_the_sum_over_ages():
    rng = np.random.default_rng(2)
    gram, expected = np.zeros((len(FORGETTING), 2, 2)), np.zeros((len(FORGETTING), 2, 2))
    slices = [(rng.normal(size=(2, 6)), rng.random(6)) for _ in range(5)]
    for errors, importance in slices:
        gram = discounted(gram, errors, importance)
    for age, (errors, importance) in enumerate(reversed(slices)):
        expected += FORGETTING[:, None, None] ** age * ((errors * importance) @ errors.T)
    np.testing.assert_allclose(gram, expected, rtol=1e-5)


@pytest.mark.slow
def test_never_much_worse_than_the_best_for_long():
    """Predictors take turns in being the only good one: after a switch the answer is as good within some slices."""
    rng = np.random.default_rng(4)
    gram, turns, length, entries = np.stack([np.eye(SIZE) * 1e-6] * len(FORGETTING)), 8, 80, 20
    ours, best = [], []
    for turn in range(turns):
        for _ in range(length):
            sizes = np.where(np.arange(SIZE) == turn % SIZE, 0.1, 1.0)
            errors = sizes[:, None] * rng.normal(size=(SIZE, entries))
            weights = np.asarray(weights_of(gram[0]))  # those that follow quickly
            ours.append(((weights @ errors) ** 2).mean())
            best.append((errors[turn % SIZE] ** 2).mean())
            gram = discounted(gram, errors, np.full(entries, 1 / entries))
    ours, best = (np.reshape(one, (turns, length)) for one in (ours, best))
    settled = length // 2
    assert ours[:, settled:].mean() < 2.0 * best[:, settled:].mean()
    assert ours.mean() < 0.3  # the average of predictors that are right in turn: 0.19


@jax.jit
def followed(gram, sets, paces, errors):
    """One slice: the error of the answer, all as the tracker does it."""
    entries = errors.shape[1]
    gram = discounted(gram, errors, np.full(entries, 1 / entries))
    paces = CHOICE_MEMORY * paces + ((sets @ errors) ** 2).mean(1)
    weights = averaged(sets, paces, entries) @ errors
    return gram, jax.vmap(simplex_weights)(gram), paces, (weights**2).mean()


@pytest.mark.slow
@pytest.mark.parametrize("every", [50, 400])
@pytest.mark.parametrize("shared", [0.0, 3.0])
def test_regret(every, shared):
    """Against the best predictor in hindsight: of the whole stream, and from 20 slices after every switch of each turn.

    They take turns in being good, or one of them always is; noise that all of them share tells nothing.
    """
    rng = np.random.default_rng(11)
    length, entries = 400, 60
    state = (np.stack([np.eye(SIZE) * 1e-6] * len(FORGETTING)), np.full((len(FORGETTING), SIZE), 1 / SIZE))
    state = (*state, np.zeros(len(FORGETTING)))
    ours, alone = [], []
    for t in range(length):
        sizes = np.where(np.arange(SIZE) == t // every % SIZE, 1.0, 3.0)
        errors = sizes[:, None] * rng.normal(size=(SIZE, entries)) + shared * rng.normal(size=entries)
        *state, error = followed(*(np.asarray(part, np.float32) for part in state), errors.astype(np.float32))
        ours.append(float(error))
        alone.append((errors**2).mean(1))
    ours, alone = np.array(ours), np.array(alone)
    assert np.sqrt(ours[20:].mean()) <= 1.03 * np.sqrt(alone[20:].mean(0).min())
    settled = np.arange(length) % every >= 20
    turns = alone[np.arange(length), np.arange(length) // every % SIZE]
    assert np.sqrt(ours[settled].mean()) <= 1.03 * np.sqrt(turns[settled].mean())


def test_those_that_did_better_count_more():
    """Sets of weights are averaged by how well each has done; alike, they count alike."""
    sets = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    np.testing.assert_allclose(averaged(sets, np.ones(3), 40.0), 1 / 3, rtol=1e-5)
    np.testing.assert_allclose(averaged(sets, np.zeros(3), 40.0), 1 / 3, rtol=1e-5)
    found = np.asarray(averaged(sets, np.array([1.0, 1.1, 2.0]), 40.0))
    assert found.sum() == pytest.approx(1, abs=1e-6)
    assert found[0] > 2 * found[1] > 100 * found[2]
    np.testing.assert_allclose(averaged(sets, np.array([1.0, 1.1, 2.0]), 0.0), 1 / 3, rtol=1e-5)  # nothing was observed
    np.testing.assert_allclose(averaged(sets, 2.0**40 * np.array([1.0, 1.1, 2.0]), 40.0), found, rtol=1e-4)
