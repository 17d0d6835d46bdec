"""What was not observed, by the entries around it."""

from dataclasses import replace
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import undertow as ut
from undertow.tracker import files, law, neighbours
from undertow.tracker.core import fresh_core
from undertow.tracker.neighbours import NOISE, REACHES, Flagged
from undertow.tracker.rearranging import rearranged
from undertow.tracker.state import start

SHAPE = (20, 30)
LARGE = (120, 110)


def dense(shape, reach):
    """K (n, n)."""
    sides = [np.exp(-np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / reach) for size in shape]
    return reduce(np.kron, sides)


def known(shape=SHAPE):
    return replace(neighbours.init(LARGE), shape=shape)


def drawn(reach=4.0, noise=0.1, seed=0, shape=SHAPE, observed=0.4):
    """What the answer leaves of a slice, smooth as a picture; which entries were observed, and held out."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(dense(shape, reach) + 1e-9 * np.eye(int(np.prod(shape))))
    residual = root @ rng.normal(size=len(root)) + noise * rng.normal(size=len(root))
    mask = rng.random(len(root)) < observed
    return residual.astype(np.float32), mask, mask & (rng.random(len(root)) < 0.2)


@jax.jit
def asked(state, residual, mask, held, usable=True, deviation=1.0):
    nothing = jnp.zeros_like(residual)
    return neighbours.filled(state, nothing, nothing + deviation, residual, Flagged(mask, nothing > 0, held), usable)


def shapes_of(shape):
    return jax.eval_shape(lambda: fresh_core(int(np.prod(shape)), 1, shape))


def error(estimate, residual, where):
    return np.linalg.norm((np.asarray(estimate) - residual)[where]) / np.linalg.norm(residual[where])


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 96, 97, 130])
def test_long_modes_are_spread_in_tiles(size):
    rows = np.random.default_rng(0).normal(size=(2, 3, size, 2)).astype(np.float32)
    made = neighbours.spread_out(jnp.asarray(rows), np.array(REACHES))
    for one, spread, reach in zip(rows, made, REACHES, strict=True):
        expected = (dense(one.shape, reach) @ one.ravel()).reshape(one.shape)
        np.testing.assert_allclose(spread, expected, atol=5e-3 * np.abs(expected).max())


@pytest.mark.slow
def test_the_smooth_part_is_that_of_a_gaussian_process():
    residual, mask, _ = drawn()
    for made, reach in zip(neighbours.smooth(residual, mask, SHAPE), REACHES, strict=True):
        kernel = dense(SHAPE, reach)
        inside = kernel[np.ix_(mask, mask)] + NOISE * np.eye(mask.sum())
        expected = kernel[:, mask] @ np.linalg.solve(inside, residual[mask])
        assert np.linalg.norm(made - expected) < 0.1 * np.linalg.norm(expected)


@pytest.mark.slow
def test_hidden_entries_follow_those_around_them_and_observed_ones_stay():
    residual, mask, held = drawn()
    _, added, width = asked(known(), residual, mask, held)
    assert error(added, residual, ~mask) < 0.6
    assert not np.any(np.asarray(added)[mask])
    assert np.all(np.asarray(width)[mask] == 1)


def test_where_the_order_of_rows_means_nothing_little_is_said():
    state, rng = known(), np.random.default_rng(1)
    for seed in range(6):
        residual, mask, held = drawn(seed=seed)
        residual = rng.permutation(residual)
        state, added, _ = asked(state, residual, mask, held)
    assert error(added, residual, ~mask) < 1.03


@pytest.mark.slow
def test_a_lone_outlier_says_nothing_of_its_neighbours_and_a_crowd_does():
    mask, crowd, line = np.ones(SHAPE, bool), np.zeros(SHAPE, bool), np.zeros(SHAPE, bool)
    mask[::2, ::3], crowd[5:13, 8:14], line[15] = False, True, True
    alone = np.zeros(SHAPE, bool)
    alone[2, 25] = True
    outlier, residual = (crowd | alone | line) & mask, np.where(crowd | alone | line, 9.0, 0.1).astype(np.float32)
    kept, trusted = neighbours.believed(residual.ravel(), mask.ravel(), outlier.ravel(), SHAPE)
    trusted = np.asarray(trusted).reshape(SHAPE)
    assert not trusted[2, 25]
    assert not trusted[15, 18:].any()
    assert trusted[7:11, 10:12][mask[7:11, 10:12]].all()
    assert trusted[mask & ~outlier].all()
    assert not trusted[~mask].any()
    assert not np.any(np.asarray(kept).reshape(SHAPE)[~trusted])
    mixed = residual * np.where(np.add.outer(np.arange(20), np.arange(30)) % 2, 1, -1)  # nobody agrees on the side
    _, trusted = neighbours.believed(mixed.ravel().astype(np.float32), mask.ravel(), outlier.ravel(), SHAPE)
    assert np.asarray(trusted).reshape(SHAPE)[crowd & mask].mean() < 0.5


@pytest.mark.slow
def test_error_bars_follow_the_errors_of_what_was_held_out():
    widths = []
    for deviation in (0.3, 1.0, 3.0):
        state = known()
        for seed in range(12):
            state, added, width = asked(state, *drawn(seed=seed), True, deviation)
        residual, mask, _ = drawn(seed=11)
        widths.append(width := np.asarray(width)[~mask].mean())
        if deviation < 2:
            inside = np.abs(residual - np.asarray(added))[~mask] < 1.96 * width * deviation
            assert 0.9 < inside.mean() < 0.99
    assert widths[0] > 2 * widths[1]
    assert widths[2] == law.SMALLEST_SPREAD


@pytest.mark.slow
def test_nothing_is_said_of_whole_slices_empty_ones_and_unusable_ones():
    residual, mask, held = drawn()
    for seen, usable in ((np.ones_like(mask), True), (np.zeros_like(mask), True), (mask, False)):
        state, added, width = asked(known(), residual, seen, held & seen, usable)
        assert not np.any(added)
        assert np.all(np.asarray(width) == 1)
        np.testing.assert_array_equal(state.gram, known().gram)


def test_only_large_slices_have_neighbours_and_older_files_of_them_are_read():
    assert neighbours.init((6, 5)) is None
    assert shapes_of((6, 5)).neighbours is None
    core = jax.tree.map(lambda one: np.zeros(one.shape, one.dtype), shapes_of(LARGE))
    arrays = files.named("core", core)
    newer = files._core(LARGE, 1, {**arrays, "core.neighbours.gram": np.eye(3, dtype=np.float32)})
    np.testing.assert_array_equal(newer.neighbours.gram, np.eye(3))
    older = files._core(LARGE, 1, {name: one for name, one in arrays.items() if "neighbours" not in name})
    assert older.neighbours.shape == LARGE
    np.testing.assert_array_equal(older.neighbours.counts, law.init().counts)
    assert not np.any(older.neighbours.gram)


def test_slices_that_grow_keep_what_was_learned():
    state = neighbours.init(LARGE)
    state = replace(state, gram=state.gram + 1)
    assert neighbours.of_shape(state, (121, 110)).shape == (121, 110)
    assert np.all(np.asarray(neighbours.of_shape(state, (121, 110)).gram) == 1)
    assert neighbours.of_shape(state, (6, 5)) is None
    assert neighbours.of_shape(None, LARGE).shape == LARGE


@pytest.mark.slow
def test_a_large_stream_whose_rows_come_and_go_keeps_its_neighbours():
    state = start(LARGE)
    places = [np.arange(LARGE[0]), np.concatenate([np.arange(LARGE[1]), [-1]])]
    assert rearranged(state, places).core.neighbours.shape == (120, 111)


@pytest.mark.full
def test_what_walks_through_a_picture_is_seen_between_the_entries_that_were_observed():
    rng, scene = np.random.default_rng(0), np.random.default_rng(1).normal(size=LARGE).cumsum(1)
    tracker, seen = ut.Tracker(), []
    for number in range(8):
        picture, person = scene + 0.1 * rng.normal(size=LARGE), np.zeros(LARGE, bool)
        person[40:80, 8 * number + 10 : 8 * number + 26] = True
        shown = np.where(rng.random(LARGE) < 0.3, picture + 30 * person, np.nan)
        result = tracker.update(shown)
        seen.append(np.median((result.mean - scene)[person & np.isnan(shown)]))
    assert np.mean(seen[4:]) > 15
