"""How unlike a slice and those before it are to the whole past."""

import numpy as np
import pytest

import undertow as ut
from undertow.inputs.dense import as_slice
from undertow.tracker import novelty
from undertow.tracker.novelty import BOUND, DURATIONS, FEW, start, with_slice


def followed(stream):
    known, found = start(stream[0].size), []
    for x in stream:
        known = with_slice(known, as_slice(x))
        found.append(known.newest)
    return np.array(found)


def plainly(stream):
    """Entry by entry, observation by observation."""
    parts = {}
    for entry in range(stream.shape[1]):
        seen, averages, squares = [], dict.fromkeys(DURATIONS.ravel(), 0.0), {d: [] for d in DURATIONS.ravel()}
        for t, x in enumerate(stream[:, entry]):
            if np.isnan(x):
                continue
            if len(seen) >= FEW:
                away, deviation, compared = x - np.mean(seen), np.std(seen), len(seen) - FEW + 1
                u = np.clip(away / deviation, -BOUND, BOUND) if deviation else BOUND * np.sign(away)
                for d in averages:
                    averages[d] += (u - averages[d]) / min(compared, d)
                    usual = np.mean(squares[d]) if squares[d] else 0.0
                    far = min(averages[d] ** 2 / usual, BOUND**2) if usual else BOUND**2 * (averages[d] != 0)
                    if compared > FEW * d:
                        parts.setdefault(t, []).append(far)
                    if compared >= d:
                        squares[d].append(averages[d] ** 2)
                if deviation:
                    x = np.mean(seen) + u * deviation  # bounded
            seen.append(x)
    return np.array([np.mean(parts.get(t, [np.nan])) for t in range(len(stream))])


def test_it_is_what_the_formula_says():
    draw = np.random.default_rng(0)
    stream = draw.normal(size=(230, 4))
    stream[draw.random(stream.shape) < 0.3] = np.nan
    stream[:120, 3] = 7.0  # never moved
    stream[50] = np.nan
    np.testing.assert_allclose(followed(stream), plainly(stream), rtol=1e-9)


@pytest.mark.parametrize("noise", ["heavy tails", "sizes", "season"])
def test_about_one_is_usual_and_what_lasts_is_found(noise):
    """A fault of 200 slices, by two standard deviations in a fifth of the entries: each value is quite usual."""
    draw, time = np.random.default_rng(3), np.arange(1400)[:, None]
    stream = {
        "heavy tails": draw.standard_t(3, size=(1400, 40)),
        "sizes": np.exp(draw.normal(size=(1400, 40))),
        "season": 2 * np.sin(time / 8 + draw.random(40) * 6) + draw.normal(size=(1400, 40)),
    }[noise]
    stream[1200:, :8] += 2 * stream[:1200, :8].std(axis=0)
    found = followed(stream)
    before, during = found[200:1200], found[1300:]
    assert 0.8 < before.mean() < 1.2
    assert np.quantile(during, 0.1) > np.quantile(before, 0.9)


def test_one_gross_error_does_not_make_it_blind():
    stream = np.random.default_rng(1).normal(size=(600, 5))
    stream[100, 2] = 1e12
    stream[500, 2] = 40
    found = followed(stream)
    assert found[100] > 5
    assert found[500] > 5


def test_neither_unit_nor_offset_matter():
    stream = np.random.default_rng(2).normal(size=(60, 5))
    np.testing.assert_array_equal(followed(4 * stream), followed(stream))
    np.testing.assert_allclose(followed(1e6 + 3e-3 * stream), followed(stream), rtol=1e-5)
    assert np.isfinite(followed(1e300 * stream)[2 * FEW :]).all()


def test_nothing_is_said_of_what_is_empty_new_repeated_or_large():
    stream = np.random.default_rng(2).normal(size=(30, 5))
    stream[25] = np.nan
    found = followed(stream)
    assert np.isnan(found[: 2 * FEW]).all()
    assert np.isnan(found[25])
    assert np.isfinite(found[2 * FEW : 25]).all()
    known = with_slice(start(5), as_slice(stream[0]))
    assert with_slice(known, as_slice(stream[0]), repeated=True) is known
    assert start(novelty.LARGEST_SLICE + 1) is None
    assert np.isnan(novelty.newest(with_slice(None, as_slice(stream[0]))))


@pytest.mark.slow
def test_trackers_and_their_files_have_it(tmp_path):
    stream = np.random.default_rng(5).normal(size=(28, 6, 5)).cumsum(axis=0)
    expected = followed(stream.reshape(28, 30))
    tracker = ut.Tracker()
    for t, x in enumerate(stream):
        np.testing.assert_array_equal(tracker.update(x).novelty, expected[t])
        if t == 15:
            tracker.transform(x[None])
            tracker.save(tmp_path / "saved")
            tracker = ut.load(tmp_path / "saved")
    tracker.forget([[2], []])
    assert not tracker._state.novelty.count.reshape(6, 5)[2].any()
    assert np.isfinite(tracker.update(x).novelty)
    tracker.extend((7, 5))
    assert tracker._state.novelty.averages.shape == (len(DURATIONS), 35)


def test_a_cp_model_alone_has_none():
    result = ut.RobustCP(max_rank=3, window=4).update(np.ones((6, 5)))
    assert np.isnan(result.novelty)
