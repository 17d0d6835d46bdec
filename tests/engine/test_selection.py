"""Several models of one stream: who takes part, how they are judged, who stays, and that the right one speaks."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.engine import functional
from undertow.engine import selection as panel
from undertow.engine.output import SETTINGS, CrossPrediction
from undertow.inputs.dense import as_slice
from undertow.inputs.scaling import Given, Scaling
from undertow.lab.synthetic.streams import drifting

SHAPE = (12, 10)
SMALL = {"max_rank": 4, "window": 6}
CONFIGS = panel.candidates("default", SMALL, SHAPE)


def slow(slices=30, seed=0, **knobs):
    """Low rank with random temporal rows: entries have no level."""
    return drifting(SHAPE, 2, slices=slices, drift=0.3, seed=seed, **knobs)


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


# Who may take part


def test_what_is_not_given_is_tried():
    assert len(CONFIGS) == len(set(CONFIGS)) == len(panel.VARIANTS)
    for config, variant in zip(CONFIGS, panel.VARIANTS, strict=True):
        assert {name: getattr(config, name) for name in variant} == variant
        assert (config.max_rank, config.window) == (4, 6)
    assert {config.max_rank for config in panel.candidates("default", {"window": 6}, SHAPE)} == {16}


@pytest.mark.parametrize("pins", [{"level": False}, {"robust": True, "noise": "shared"}, {"forgetting": 0.7}])
def test_what_is_given_stays_and_nothing_is_tried_twice(pins):
    configs = panel.candidates("default", {**SMALL, **pins, "scale": None}, SHAPE)
    expected = {tuple({**variant, **pins}.items()) for variant in panel.VARIANTS}
    assert len(configs) == len(set(configs)) == len(expected) < len(CONFIGS)
    for config in configs:
        assert {name: getattr(config, name) for name in pins} == pins
    assert {config.scale for config in configs} == {"linear", "log"}


@pytest.mark.parametrize(
    ("preset", "given"),
    [
        ("fixed", {}),
        ("paper", {}),
        ("default", {"start": "svd"}),
        ("default", {"outliers": "gaussian_gamma", "start": "svd", "noise": "shared"}),
        ("default", {"level": True, "robust": True, "noise": "entry", "scale": "log", "forgetting": 0.9}),
    ],
)
def test_where_nothing_is_left_to_choose_there_is_one(preset, given):
    (config,) = panel.candidates(preset, {**SMALL, **given}, SHAPE)
    assert config == ut.make_config(preset, **SMALL, **given)


def test_room_for_components_grows_with_the_slice():
    shapes = [(3,), (12, 10), (100, 100), (30, 20, 20), (200, 200), (1000, 1000), (10**4, 10**4)]
    rooms = [panel.largest_rank(shape) for shape in shapes]
    assert rooms == sorted(rooms)
    assert (rooms[0], rooms[2], rooms[-1]) == (16, 25, 64)


# How they are judged


def at_work(scores, configs=CONFIGS, steps=5, judged=5, **fields):
    """A panel in mid-stream, of models that have learned nothing; None where a model does not take part."""
    start = panel.init(configs, SHAPE)
    members = tuple(
        replace(member, state=replace(member.state, unit=1.0, steps=steps), score=score, judged=judged)
        for member, score in zip(start.members, scores, strict=True)
        if score is not None
    )
    return replace(start, members=members, steps=steps, typical=np.ones(SHAPE), **fields)


def judged(piece, errors):
    """Scores of two models that miss every entry of a slice by so much."""
    before = at_work([0.0, 0.0], CONFIGS[:2], judged=0)
    cross_predicted = [CrossPrediction(piece.values + error, np.ones(SHAPE)) for error in errors]
    return panel._judged(before, piece, cross_predicted)


def test_the_better_foreteller_speaks():
    after = judged(as_slice(np.ones(SHAPE)), [0.2, -0.1])
    assert after.speaker is after.members[1]
    assert [member.score for member in after.members] == pytest.approx(2 * np.log([0.2, 0.1]))
    assert [member.judged for member in after.members] == [1, 1]


def test_an_outlier_that_all_miss_does_not_count():
    x = np.ones(SHAPE)
    errors = np.full((2, *SHAPE), [[[0.1]], [[0.2]]])
    plain = judged(as_slice(x), errors)
    errors[:, 3, 4] = 1e6, 10.0  # both far beyond what the entry usually is: which is farther off says nothing
    hit = judged(as_slice(x), errors)
    assert [one.score for one in hit.members] == pytest.approx([one.score for one in plain.members])
    errors[:, 3, 4] = 1e6, 0.2  # this one was no outlier: the other foretold it
    missed = judged(as_slice(x), errors)
    assert missed.speaker is missed.members[1]
    limited = (0.1**2 * (x.size - 1) + (panel.MOST * panel.LIMIT) ** 2) / x.size
    assert missed.members[0].score == pytest.approx(np.log(limited))


def test_only_what_was_observed_is_judged():
    x = np.ones(SHAPE)
    x[0] = np.nan
    errors = np.full((2, *SHAPE), [[[0.1]], [[0.2]]])
    errors[0, 0] = 2.0
    after = judged(as_slice(x), errors)
    assert after.members[0].score == pytest.approx(2 * np.log(0.1))
    empty = judged(as_slice(np.full(SHAPE, np.nan)), errors)
    assert [member.judged for member in empty.members] == [0, 0]


def test_scores_are_averages_over_the_recent_past():
    member = at_work([0.0], CONFIGS[:1], judged=0).members[0]
    for score in (1.0, 2.0, 6.0):
        member = panel._with_score(member, score)
    assert member.score == pytest.approx(3.0)
    for _ in range(200):
        member = panel._with_score(member, -1.0)
    assert member.score == pytest.approx(-1.0, abs=1e-6)
    assert member.judged == 203


def test_one_that_joined_late_is_judged_once_its_window_is_full():
    before = at_work([-1.0, -1.0], CONFIGS[:2], steps=50)
    piece = as_slice(np.ones(SHAPE))
    cross_predicted = [CrossPrediction(piece.values + 0.1, np.ones(SHAPE))] * 2
    for steps, counts in ((5, 5), (6, 6)):
        young = replace(before.members[1], state=replace(before.members[1].state, steps=steps))
        after = panel._judged(replace(before, members=(before.members[0], young)), piece, cross_predicted)
        assert [member.judged for member in after.members] == [6, counts]


def test_outliers_are_told_by_a_robust_model_that_is_nearly_as_good():
    plain, robust = CONFIGS.index(loose()), 0
    scores = [None] * len(CONFIGS)
    scores[plain], scores[robust] = -2.0, -2.0 + 0.9 * panel.NEARLY
    near = at_work(scores)
    assert near.speaker.state.config is CONFIGS[plain]
    assert panel._judge_of_outliers(near).state.config is CONFIGS[robust]
    scores[robust] = -2.0 + 1.1 * panel.NEARLY
    assert panel._judge_of_outliers(with_share(at_work(scores), 1.1 * panel.CALM)).state.config is CONFIGS[plain]


def test_outliers_are_told_by_a_robust_model_that_calls_few_entries_outliers():
    plain, robust = CONFIGS.index(loose()), 0
    scores = [None] * len(CONFIGS)
    scores[plain], scores[robust] = -2.0, 5.0
    calm = with_share(at_work(scores), 0.9 * panel.CALM)
    assert calm.speaker.state.config is CONFIGS[plain]
    assert panel._judge_of_outliers(calm).state.config is CONFIGS[robust]


def with_share(before, share):
    """The panel with every member expecting this share of outliers."""

    def expecting(state):
        outliers = replace(state.core.outliers, rate_a=np.float32(share), rate_b=np.float32(1 - share))
        return replace(state, core=replace(state.core, outliers=outliers))

    return replace(before, members=tuple(replace(one, state=expecting(one.state)) for one in before.members))


def loose():
    """A configuration that is not robust."""
    return next(config for config in CONFIGS if not config.robust)


# Who stays


def test_the_opening_ends_with_the_best_and_a_robust_one_that_is_nearly_as_good():
    """The best is not robust: with it stays the best robust one, though others that are not robust are better."""
    scores = [-2.9 if config.robust else -3.0 - 0.01 * place for place, config in enumerate(CONFIGS)]
    scores[1] = -2.95
    after = panel._seated(at_work(scores, judged=panel.OPENING))
    best, other = after.members
    assert after.speaker is best
    assert best.score == min(scores)
    assert not best.state.config.robust
    assert other.state.config is CONFIGS[1]
    assert after.changed == after.steps


def test_a_robust_one_far_behind_gets_no_seat():
    scores = [-1.0 if config.robust else -3.0 - 0.01 * place for place, config in enumerate(CONFIGS)]
    after = panel._seated(with_share(at_work(scores, judged=panel.OPENING), 2 * panel.CALM))
    assert [member.score for member in after.members] == sorted(scores)[:2]
    assert not any(member.state.config.robust for member in after.members)


def test_the_opening_ends_with_the_best_two_if_the_best_is_robust():
    scores = [-3.0 - 0.1 * place for place in range(len(CONFIGS))]
    assert CONFIGS[-1].robust
    after = panel._seated(at_work(scores, judged=panel.OPENING))
    assert [member.state.config for member in after.members] == [CONFIGS[-1], CONFIGS[-2]]


def test_nobody_leaves_early_but_the_worst_at_half_time():
    scores = [float(-place) for place in range(len(CONFIGS))]
    for judged in (0, 1, panel.HALF_TIME - 1):
        assert len(panel._seated(at_work(scores, judged=judged)).members) == len(CONFIGS)
    after = panel._seated(at_work(scores, judged=panel.HALF_TIME))
    assert sorted(member.score for member in after.members) == sorted(scores)[: panel.HALF]


def test_trials_come_and_go():
    scores = [-2.0, -1.0] + [None] * (len(CONFIGS) - 2)
    now = at_work(scores, steps=100, changed=100)
    tried = []
    for _ in range(len(CONFIGS)):
        assert panel._seated(replace(now, steps=now.steps + panel.REST - 1)).members == now.members
        now = panel._seated(replace(now, steps=now.steps + panel.REST))
        newcomer = now.members[-1]
        assert (len(now.members), newcomer.judged, newcomer.state.steps) == (3, 0, 0)
        assert now.speaker.score == -2.0
        tried.append(newcomer.state.config)
        assert len(panel._seated(replace(now, steps=now.steps + panel.TRIAL - 1)).members) == 3
        now = panel._seated(replace(now, steps=now.steps + panel.TRIAL))
        assert sorted(member.score for member in now.members) == [-2.0, -1.0]
    waiting = list(CONFIGS[2:])
    assert tried == [*waiting, *waiting][: len(CONFIGS)]


def test_one_that_has_become_better_stays():
    now = at_work([-2.0, -1.0] + [None] * (len(CONFIGS) - 2), steps=300, changed=100)
    now = panel._seated(now)
    newcomer = replace(now.members[-1], score=-5.0, judged=30)
    now = replace(now, members=(*now.members[:2], newcomer), steps=now.steps + panel.TRIAL)
    after = panel._seated(now)
    assert after.speaker is newcomer
    assert sorted(member.score for member in after.members) == [-5.0, -2.0]


# What a stream makes of them


def follow(values, **settings):
    model = ut.RobustCP(**SMALL, **settings)
    return model, [model.update(x) for x in values]


@pytest.mark.parametrize("seed", [0, 1])
def test_streams_with_levels_get_a_level_and_others_do_not(seed):
    _, results = follow(own_levels(seed=seed))
    assert all(result.settings["level"] for result in results[5:])
    _, results = follow(slow(seed=seed).values)
    assert not any(result.settings["level"] for result in results[-5:])


def test_the_speaker_is_the_least_score_and_results_say_who_spoke():
    model = ut.RobustCP(**SMALL)
    for count, x in enumerate(slow(slices=24).values, start=1):
        result = model.update(x)
        now = model._panel
        assert now.speaker.score == min(member.score for member in now.members)
        judged = count - 1  # the first slice cannot be foretold
        assert len(now.members) == (7 if judged < panel.HALF_TIME else 4 if judged < panel.OPENING else 2)
        config = model.config
        assert result.settings == {name: getattr(config, name) for name in SETTINGS}
        assert model.smoothed().settings == result.settings
    told = json.loads(json.dumps(dict(result.settings)))
    assert told == result.settings
    assert {type(value) for value in result.settings.values()} <= {bool, int, float, str}
    assert any(member.state.config.robust for member in now.members)


@pytest.mark.parametrize("seen", [4, 14])
def test_a_panel_saved_in_its_opening_goes_on_bit_for_bit(seen, tmp_path):
    values = slow(slices=25, observed=0.8).values
    model, _ = follow(values[:seen])
    model.save(tmp_path / "panel.ckpt")
    loaded = ut.load(tmp_path / "panel.ckpt")
    assert repr(loaded) == repr(model)
    assert len(loaded._panel.members) > 2
    for x in values[seen:]:
        assert_same_answer(model.update(x), loaded.update(x))
    ours, theirs = model._panel, loaded._panel
    assert (ours.configs, ours.steps, ours.changed) == (theirs.configs, theirs.steps, theirs.changed)
    np.testing.assert_array_equal(ours.typical, theirs.typical)
    for one, other in zip(ours.members, theirs.members, strict=True):
        assert (one.score, one.judged, one.state.config) == (other.score, other.judged, other.state.config)


def test_bad_input_leaves_the_panel():
    values = slow(slices=6).values
    model, _ = follow(values[:4])
    before = model._panel
    arrays = [np.array(leaf) for member in before.members for leaf in jax.tree.leaves(member.state.core)]
    bad = values[4].copy()
    bad[2, 3] = np.inf
    for wrong in (bad, np.zeros((2, 2)), np.full(SHAPE, "a")):
        with pytest.raises((ValueError, TypeError), match="x must"):
            model.update(wrong)
        assert model._panel is before
    with pytest.raises(ValueError, match="x must be finite"):
        model.partial_fit(np.stack([values[4], bad]))
    assert model._panel is before
    now = [np.array(leaf) for member in before.members for leaf in jax.tree.leaves(member.state.core)]
    for old, new in zip(arrays, now, strict=True):
        np.testing.assert_array_equal(old, new)


def test_learning_leaves_the_panel_it_came_from():
    values = slow(slices=6).values
    model, _ = follow(values[:5])
    before, piece = model._panel, as_slice(values[5])
    one, first = panel.learn(before, piece)
    _, second = panel.learn(before, piece)
    assert_same_answer(first, second)
    assert (before.steps, one.steps) == (5, 6)


# Two settings that the panel chooses from, each for itself


def sizes(slices=24, seed=0):
    """Positive data whose sizes differ by factors, with noise in proportion: (observed with gaps, complete)."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.normal(size=(SHAPE[0], 1)), rng.normal(size=(1, SHAPE[1]))
    times = 0.3 * rng.normal(size=(slices, 1, 1)).cumsum(0)
    complete = 100 * np.exp(rows + columns + times + 0.1 * rng.normal(size=(slices, *SHAPE)))
    return np.where(rng.random(complete.shape) < 0.8, complete, np.nan), complete


def single(values, **settings):
    state = ut.init(ut.make_config("fixed", **SMALL, **settings), SHAPE)
    results = []
    for x in values:
        state, result = ut.step(state, x)
        results.append(result)
    return state, results


def test_units_do_not_matter_on_the_logarithmic_scale():
    values, _ = sizes()
    _, ours = single(values, scale="log", level=True)
    _, theirs = single(values * 2.0**20, scale="log", level=True)
    for one, other in zip(ours, theirs, strict=True):
        for name in ("low_rank", "std", "low_rank_std", "outliers", "noise_std"):
            np.testing.assert_allclose(getattr(other, name), 2.0**20 * getattr(one, name), rtol=1e-6)
        np.testing.assert_allclose(other.outlier_probability, one.outlier_probability, atol=1e-6)


def test_error_bars_on_the_logarithmic_scale_grow_with_the_size():
    values, complete = sizes()
    _, results = single(values, scale="log", level=True)
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


def test_a_model_without_outliers_still_tells_what_is_surprising():
    data = slow(slices=24, outlier_fraction=0.0, observed=0.8)
    values = data.values.copy()
    place = tuple(np.argwhere(data.mask[20])[7])
    values[20][place] += 10
    _, results = single(values, robust=False)
    hit = results[20]
    assert hit.outlier_probability[place] > 0.99
    assert hit.outliers[place] == pytest.approx(10, rel=0.2)
    assert (hit.outlier_probability[~data.mask[20]] == 0).all()
    assert (hit.outliers[~data.mask[20]] == 0).all()
    calm = np.mean([(result.outlier_probability > 0.5).mean() for result in results[10:20]])
    assert calm < 0.03


def test_nothing_can_be_foretold_before_anything_is_learned():
    state = ut.init(ut.make_config("fixed", **SMALL), SHAPE)
    data = slow(slices=16, outlier_fraction=0.0)
    assert functional.cross_predict(state, Given(as_slice(data.values[0]))) is None
    state, _ = single(data.values[:15])
    cross_predicted = functional.cross_predict(state, Given(as_slice(data.values[15])))
    error = np.linalg.norm(
        Scaling.of(state.config, state.unit).unscaled(cross_predicted.mean) - data.low_rank[15]
    ) / np.linalg.norm(data.low_rank[15])
    assert error < 0.5
    assert (cross_predicted.variance > 0).all()


def test_slices_that_tell_nothing_do_not_end_the_opening():
    model = ut.RobustCP(**SMALL)
    for _ in range(panel.OPENING + 2):
        model.update(np.zeros(SHAPE))
    assert len(model._panel.members) == len(CONFIGS)


def test_an_entry_that_starts_with_zeros_is_judged_later():
    values = slow(slices=12).values
    values[0] = 0
    for factor in (1.0, 1e200, 1e-25):
        model, _ = follow(values * factor)
        assert all(member.judged == len(values) - 2 for member in model._panel.members)
        assert all(np.isfinite(member.score) for member in model._panel.members)
