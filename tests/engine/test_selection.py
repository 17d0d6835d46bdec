"""Several candidates of one stream: which there are, how they are scored, which stay, which is selected."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.engine import functional, selection
from undertow.engine.output import SETTINGS, CrossPrediction
from undertow.engine.variants import candidate_configs
from undertow.inputs.dense import as_slice
from undertow.inputs.scaling import Scaling
from undertow.inputs.transfer import DeviceSlice
from undertow.lab.synthetic.streams import drifting

SHAPE = (6, 5)
SMALL = {"max_rank": 3, "window": 4}
CONFIGS = candidate_configs("default", SMALL, SHAPE)


def slow(slices=30, seed=0, **settings):
    """Low rank with random temporal rows: entries have no level."""
    return drifting(SHAPE, 2, slices=slices, drift=0.3, seed=seed, **settings)


def own_levels(slices=30, seed=0):
    """Every entry wanders for itself, far from 0."""
    rng = np.random.default_rng(seed)
    steps = 0.3 * rng.normal(size=(slices, *SHAPE)).cumsum(0)
    return 5 * rng.normal(size=SHAPE) + steps + 0.1 * rng.normal(size=steps.shape)


def assert_same_answer(one, other):
    for name in ("low_rank", "std", "low_rank_std", "outliers", "outlier_probability"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.settings == other.settings
    assert (one.rank, one.elbo, one.iterations) == (other.rank, other.elbo, other.iterations)


# Scores


def at_work(scores, configs=CONFIGS, steps=5, scored=5, **fields):
    """A selection in mid-stream, of candidates that have learned nothing; None where one does not take part."""
    start = selection.start(configs, SHAPE)
    candidates = tuple(
        replace(candidate, state=replace(candidate.state, unit=1.0, steps=steps), score=score, scored=scored)
        for candidate, score in zip(start.candidates, scores, strict=True)
        if score is not None
    )
    return replace(start, candidates=candidates, steps=steps, typical=np.ones(SHAPE), **fields)


def after_errors(piece, errors):
    """Scores of two models that miss every entry of a slice by so much."""
    before = at_work([0.0, 0.0], CONFIGS[:2], scored=0)
    cross_predicted = [CrossPrediction(piece.values + error, np.ones(SHAPE)) for error in errors]
    return selection.with_scores(before, piece, cross_predicted)


def test_the_better_predictor_is_selected():
    after = after_errors(as_slice(np.ones(SHAPE)), [0.2, -0.1])
    assert after.selected is after.candidates[1]
    assert [candidate.score for candidate in after.candidates] == pytest.approx(2 * np.log([0.2, 0.1]))
    assert [candidate.scored for candidate in after.candidates] == [1, 1]


def test_an_outlier_that_all_miss_does_not_count():
    x = np.ones(SHAPE)
    errors = np.full((2, *SHAPE), [[[0.1]], [[0.2]]])
    plain = after_errors(as_slice(x), errors)
    errors[:, 3, 4] = 1e6, 10.0  # both far beyond what the entry usually is: which is farther off says nothing
    hit = after_errors(as_slice(x), errors)
    assert [one.score for one in hit.candidates] == pytest.approx([one.score for one in plain.candidates])
    errors[:, 3, 4] = 1e6, 0.2  # this one was no outlier: the other predicted it
    missed = after_errors(as_slice(x), errors)
    assert missed.selected is missed.candidates[1]
    limited = (0.1**2 * (x.size - 1) + (selection.ERROR_CAP * selection.ERROR_LIMIT) ** 2) / x.size
    assert missed.candidates[0].score == pytest.approx(np.log(limited))


def test_only_what_was_observed_is_scored():
    x = np.ones(SHAPE)
    x[0] = np.nan
    errors = np.full((2, *SHAPE), [[[0.1]], [[0.2]]])
    errors[0, 0] = 2.0
    after = after_errors(as_slice(x), errors)
    assert after.candidates[0].score == pytest.approx(2 * np.log(0.1))
    empty = after_errors(as_slice(np.full(SHAPE, np.nan)), errors)
    assert [candidate.scored for candidate in empty.candidates] == [0, 0]


def test_scores_are_averages_over_the_recent_past():
    candidate = at_work([0.0], CONFIGS[:1], scored=0).candidates[0]
    for score in (1.0, 2.0, 6.0):
        candidate = candidate.with_score(score)
    assert candidate.score == pytest.approx(3.0)
    for _ in range(200):
        candidate = candidate.with_score(-1.0)
    assert candidate.score == pytest.approx(-1.0, abs=1e-6)
    assert candidate.scored == 203


def test_one_that_joined_late_is_scored_once_its_window_is_full():
    before = at_work([-1.0, -1.0], CONFIGS[:2], steps=50)
    piece = as_slice(np.ones(SHAPE))
    cross_predicted = [CrossPrediction(piece.values + 0.1, np.ones(SHAPE))] * 2
    for steps, counts in ((3, 5), (4, 6)):
        young = replace(before.candidates[1], state=replace(before.candidates[1].state, steps=steps))
        after = selection.with_scores(replace(before, candidates=(before.candidates[0], young)), piece, cross_predicted)
        assert [candidate.scored for candidate in after.candidates] == [6, counts]


def test_outliers_are_reported_by_a_robust_model_that_is_nearly_as_good():
    plain, robust = CONFIGS.index(loose()), 0
    scores = [None] * len(CONFIGS)
    scores[plain], scores[robust] = -2.0, -2.0 + 0.9 * selection.SCORE_MARGIN
    near = at_work(scores)
    assert near.selected.state.config is CONFIGS[plain]
    assert near.outlier_reporter.state.config is CONFIGS[robust]
    scores[robust] = -2.0 + 1.1 * selection.SCORE_MARGIN
    assert (
        with_outlier_fraction(at_work(scores), 1.1 * selection.FEW_OUTLIERS).outlier_reporter.state.config
        is CONFIGS[plain]
    )


def test_outliers_are_reported_by_a_robust_model_that_calls_few_entries_outliers():
    plain, robust = CONFIGS.index(loose()), 0
    scores = [None] * len(CONFIGS)
    scores[plain], scores[robust] = -2.0, 5.0
    calm = with_outlier_fraction(at_work(scores), 0.9 * selection.FEW_OUTLIERS)
    assert calm.selected.state.config is CONFIGS[plain]
    assert calm.outlier_reporter.state.config is CONFIGS[robust]


def with_outlier_fraction(before, fraction):
    """The selection with every candidate expecting this fraction of outliers."""

    def expecting(state):
        outliers = replace(state.core.outliers, rate_a=np.float32(fraction), rate_b=np.float32(1 - fraction))
        return replace(state, core=replace(state.core, outliers=outliers))

    return replace(before, candidates=tuple(replace(one, state=expecting(one.state)) for one in before.candidates))


def loose():
    """A configuration that is not robust."""
    return next(config for config in CONFIGS if not config.robust)


# Schedule


def test_the_warm_up_ends_with_the_best_and_a_robust_one_that_is_nearly_as_good():
    """The best is not robust: with it stays the best robust one, though others that are not robust are better."""
    scores = [-2.9 if config.robust else -3.0 - 0.01 * position for position, config in enumerate(CONFIGS)]
    scores[1] = -2.95
    after = selection.scheduled(at_work(scores, scored=selection.WARM_UP))
    best, other = after.candidates
    assert after.selected is best
    assert best.score == min(scores)
    assert not best.state.config.robust
    assert other.state.config is CONFIGS[1]
    assert after.changed == after.steps


def test_a_robust_one_far_behind_is_dropped():
    scores = [-1.0 if config.robust else -3.0 - 0.01 * position for position, config in enumerate(CONFIGS)]
    after = selection.scheduled(
        with_outlier_fraction(at_work(scores, scored=selection.WARM_UP), 2 * selection.FEW_OUTLIERS)
    )
    assert [candidate.score for candidate in after.candidates] == sorted(scores)[:2]
    assert not any(candidate.state.config.robust for candidate in after.candidates)


def test_the_warm_up_ends_with_the_best_two_if_the_best_is_robust():
    scores = [-3.0 - 0.1 * position for position in range(len(CONFIGS))]
    assert CONFIGS[-1].robust
    after = selection.scheduled(at_work(scores, scored=selection.WARM_UP))
    assert [candidate.state.config for candidate in after.candidates] == [CONFIGS[-1], CONFIGS[-2]]


def test_none_is_dropped_early_but_the_worst_at_halving():
    scores = [float(-position) for position in range(len(CONFIGS))]
    for scored in (0, 1, selection.HALVING - 1):
        assert len(selection.scheduled(at_work(scores, scored=scored)).candidates) == len(CONFIGS)
    after = selection.scheduled(at_work(scores, scored=selection.HALVING))
    assert sorted(candidate.score for candidate in after.candidates) == sorted(scores)[: selection.AFTER_HALVING]


def test_trials_come_and_go():
    scores = [-2.0, -1.0] + [None] * (len(CONFIGS) - 2)
    now = at_work(scores, steps=100, changed=100)
    tried = []
    for _ in range(len(CONFIGS)):
        assert (
            selection.scheduled(replace(now, steps=now.steps + selection.TRIAL_PAUSE - 1)).candidates == now.candidates
        )
        now = selection.scheduled(replace(now, steps=now.steps + selection.TRIAL_PAUSE))
        trial = now.candidates[-1]
        assert (len(now.candidates), trial.scored, trial.state.steps) == (3, 0, 0)
        assert now.selected.score == -2.0
        tried.append(trial.state.config)
        assert len(selection.scheduled(replace(now, steps=now.steps + selection.TRIAL_LENGTH - 1)).candidates) == 3
        now = selection.scheduled(replace(now, steps=now.steps + selection.TRIAL_LENGTH))
        assert sorted(candidate.score for candidate in now.candidates) == [-2.0, -1.0]
    waiting = list(CONFIGS[2:])
    assert tried == [*waiting, *waiting][: len(CONFIGS)]


def test_one_that_has_become_better_stays():
    now = at_work([-2.0, -1.0] + [None] * (len(CONFIGS) - 2), steps=300, changed=100)
    now = selection.scheduled(now)
    trial = replace(now.candidates[-1], score=-5.0, scored=30)
    now = replace(now, candidates=(*now.candidates[:2], trial), steps=now.steps + selection.TRIAL_LENGTH)
    after = selection.scheduled(now)
    assert after.selected is trial
    assert sorted(candidate.score for candidate in after.candidates) == [-5.0, -2.0]


# Streams


def follow(values, **settings):
    model = ut.RobustCP(**SMALL, **settings)
    return model, [model.update(x) for x in values]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_streams_with_levels_get_a_level_and_others_do_not(seed):
    _, results = follow(own_levels(seed=seed))
    assert all(result.settings["level"] for result in results[5:])
    _, results = follow(slow(seed=seed).values)
    assert not any(result.settings["level"] for result in results[-5:])


@pytest.mark.slow
def test_the_least_score_is_selected_and_results_name_its_settings():
    model = ut.RobustCP(**SMALL)
    for count, x in enumerate(slow(slices=24).values, start=1):
        result = model.update(x)
        now = model._selection
        assert now.selected.score == min(candidate.score for candidate in now.candidates)
        scored = count - 1  # the first slice cannot be predicted
        assert len(now.candidates) == (7 if scored < selection.HALVING else 4 if scored < selection.WARM_UP else 2)
        config = model.config
        assert result.settings == {name: getattr(config, name) for name in SETTINGS}
        assert model.smoothed().settings == result.settings
    reported = json.loads(json.dumps(dict(result.settings)))
    assert reported == result.settings
    assert {type(value) for value in result.settings.values()} <= {bool, int, float, str}
    assert any(candidate.state.config.robust for candidate in now.candidates)


@pytest.mark.slow
@pytest.mark.parametrize("seen", [14, pytest.param(4, marks=pytest.mark.full)])
def test_a_selection_saved_in_its_warm_up_goes_on_bit_for_bit(seen, tmp_path):
    values = slow(slices=25, observed=0.8).values
    model, _ = follow(values[:seen])
    model.save(tmp_path / "selection.ckpt")
    loaded = ut.load(tmp_path / "selection.ckpt")
    assert repr(loaded) == repr(model)
    assert len(loaded._selection.candidates) > 2
    for x in values[seen:]:
        assert_same_answer(model.update(x), loaded.update(x))
    ours, theirs = model._selection, loaded._selection
    assert (ours.configs, ours.steps, ours.changed) == (theirs.configs, theirs.steps, theirs.changed)
    np.testing.assert_array_equal(ours.typical, theirs.typical)
    for one, other in zip(ours.candidates, theirs.candidates, strict=True):
        assert (one.score, one.scored, one.state.config) == (other.score, other.scored, other.state.config)


@pytest.mark.slow
def test_bad_input_leaves_the_selection():
    values = slow(slices=6).values
    model, _ = follow(values[:4])
    before = model._selection
    arrays = [np.array(leaf) for candidate in before.candidates for leaf in jax.tree.leaves(candidate.state.core)]
    bad = values[4].copy()
    bad[2, 3] = np.inf
    for wrong in (bad, np.zeros((2, 2)), np.full(SHAPE, "a")):
        with pytest.raises((ValueError, TypeError), match="x must"):
            model.update(wrong)
        assert model._selection is before
    with pytest.raises(ValueError, match="x must be finite"):
        model.partial_fit(np.stack([values[4], bad]))
    assert model._selection is before
    now = [np.array(leaf) for candidate in before.candidates for leaf in jax.tree.leaves(candidate.state.core)]
    for old, new in zip(arrays, now, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.slow
def test_a_step_leaves_the_selection_it_came_from():
    values = slow(slices=6).values
    model, _ = follow(values[:5])
    before, piece = model._selection, as_slice(values[5])
    one, first = selection.step(before, piece)
    _, second = selection.step(before, piece)
    assert_same_answer(first, second)
    assert (before.steps, one.steps) == (5, 6)


# Two settings that are selected from, each on its own


def sizes(slices=24, seed=0, shape=SHAPE):
    """Positive data whose sizes differ by factors, with noise in proportion: (observed with gaps, complete)."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.normal(size=(shape[0], 1)), rng.normal(size=(1, shape[1]))
    times = 0.3 * rng.normal(size=(slices, 1, 1)).cumsum(0)
    complete = 100 * np.exp(rows + columns + times + 0.1 * rng.normal(size=(slices, *shape)))
    return np.where(rng.random(complete.shape) < 0.8, complete, np.nan), complete


def single(values, **settings):
    state = ut.init(ut.make_config("fixed", **{**SMALL, **settings}), values.shape[1:])
    results = []
    for x in values:
        state, result = ut.step(state, x)
        results.append(result)
    return state, results


@pytest.mark.slow
def test_units_do_not_matter_on_the_logarithmic_scale():
    values, _ = sizes()
    _, ours = single(values, scale="log", level=True)
    _, theirs = single(values * 2.0**20, scale="log", level=True)
    for one, other in zip(ours, theirs, strict=True):
        for name in ("low_rank", "std", "low_rank_std", "outliers", "noise_std"):
            np.testing.assert_allclose(getattr(other, name), 2.0**20 * getattr(one, name), rtol=1e-6)
        np.testing.assert_allclose(other.outlier_probability, one.outlier_probability, atol=1e-6)


@pytest.mark.full
def test_error_bars_on_the_logarithmic_scale_grow_with_the_size():
    values, complete = sizes(shape=(12, 10))
    _, results = single(values, scale="log", level=True, max_rank=4, window=6)
    covered = []
    for x, truth, result in list(zip(values, complete, results, strict=True))[10:]:
        assert np.isfinite(result.std).all()
        assert (result.std >= result.low_rank_std).all()
        assert (result.low_rank_std > 0).all()
        large, small = result.low_rank > np.quantile(result.low_rank, 0.8), result.low_rank < np.median(result.low_rank)
        assert result.std[large].mean() > 3 * result.std[small].mean()
        hidden = np.isnan(x)
        covered.append((np.abs(truth - result.low_rank) < 1.96 * result.std)[hidden].mean())
    assert 0.85 < np.mean(covered) < 0.99


@pytest.mark.slow
def test_a_model_without_outliers_still_finds_outliers():
    data = slow(slices=24, outlier_fraction=0.0, observed=0.8)
    values = data.values.copy()
    position = tuple(np.argwhere(data.mask[20])[7])
    values[20][position] += 10
    _, results = single(values, robust=False)
    hit = results[20]
    assert hit.outlier_probability[position] > 0.99
    assert hit.outliers[position] == pytest.approx(10, rel=0.2)
    assert (hit.outlier_probability[~data.mask[20]] == 0).all()
    assert (hit.outliers[~data.mask[20]] == 0).all()
    calm = np.mean([(result.outlier_probability > 0.5).mean() for result in results[10:20]])
    assert calm < 0.03


@pytest.mark.slow
def test_nothing_can_be_predicted_before_anything_is_learned():
    state = ut.init(ut.make_config("fixed", **SMALL), SHAPE)
    data = slow(slices=16, outlier_fraction=0.0)
    assert functional.cross_predict(state, DeviceSlice(as_slice(data.values[0]))) is None
    state, _ = single(data.values[:15])
    cross_predicted = functional.cross_predict(state, DeviceSlice(as_slice(data.values[15])))
    error = np.linalg.norm(
        Scaling.of(state.config, state.unit).unscaled(cross_predicted.mean) - data.low_rank[15]
    ) / np.linalg.norm(data.low_rank[15])
    assert error < 0.5
    assert (cross_predicted.variance > 0).all()


@pytest.mark.slow
def test_slices_that_say_nothing_do_not_end_the_warm_up():
    model = ut.RobustCP(**SMALL)
    for _ in range(selection.WARM_UP + 2):
        model.update(np.zeros(SHAPE))
    assert len(model._selection.candidates) == len(CONFIGS)


@pytest.mark.slow
def test_an_entry_that_starts_with_zeros_is_scored_later():
    values = slow(slices=12).values
    values[0] = 0
    for factor in (1.0, 1e200, 1e-25):
        model, _ = follow(values * factor)
        assert all(candidate.scored == len(values) - 2 for candidate in model._selection.candidates)
        assert all(np.isfinite(candidate.score) for candidate in model._selection.candidates)
