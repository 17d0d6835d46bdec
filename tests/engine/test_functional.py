"""The functional API: purity, units, orders, numerical problems as flags, bad input as one sentence."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import undertow as ut
from undertow.engine import functional
from undertow.lab.synthetic.streams import drifting
from undertow.model.step import step as model_step

pytestmark = pytest.mark.slow
SMALL = {"max_rank": 3, "window": 4}
SHAPE = (6, 5)
KINDS = {
    "default": {},
    "paper": {"preset": "paper"},
    "level": {"level": True},
    "level, not robust": {"level": True, "robust": False, "noise": "shared"},
    "log": {"level": True, "scale": "log"},
}
"""Settings that make different models."""
HARD = (("default", "float32"), ("log", "float32"), ("paper", "float64"))
"""Which of them learn hard streams in make test."""


def stream(slices=12, shape=SHAPE, seed=0, **settings):
    settings = {"observed": 0.8, "outlier_fraction": 0.03, **settings}
    return drifting(shape, 2, slices=slices, seed=seed, **settings)


def follow(values, config=None, state=None):
    state = state or ut.init(config or ut.make_config(**SMALL), values.shape[1:])
    results = []
    for x in values:
        state, result = ut.step(state, x)
        results.append(result)
    return state, results


def arrays_of(state):
    return [np.array(leaf) for leaf in jax.tree.leaves(state.core)]


def assert_sound(result, mask=None):
    """Finite, non-negative where it must be, probabilities within [0, 1] and 0 where nothing was observed."""
    for name in ("low_rank", "std", "low_rank_std", "outliers", "outlier_probability"):
        assert np.isfinite(getattr(result, name)).all(), name
    assert (result.std >= result.low_rank_std).all()
    assert (result.low_rank_std >= 0).all()
    assert ((result.outlier_probability >= 0) & (result.outlier_probability <= 1)).all()
    assert np.isfinite(result.noise_std)
    assert np.isfinite(result.elbo)
    if mask is not None:
        assert (result.outlier_probability[~mask] == 0).all()
        assert (result.outliers[~mask] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_step_is_pure(kind):
    values = stream().values
    dtype = "float64" if kind == "paper" else "float32"  # programs that other tests have compiled
    state, _ = follow(values[:6], ut.make_config(**KINDS[kind], **SMALL, dtype=dtype))
    before = arrays_of(state)
    first, one = ut.step(state, values[6])
    _, other = ut.step(state, values[6])
    np.testing.assert_array_equal(one.low_rank, other.low_rank)
    np.testing.assert_array_equal(one.std, other.std)
    for old, now in zip(before, arrays_of(state), strict=True):
        np.testing.assert_array_equal(old, now)
    assert (first.steps, state.steps) == (7, 6)


def test_inputs_are_neither_changed_nor_kept():
    values = stream().values
    x, mask = values[0].copy(), ~np.isnan(values[0])
    kept, kept_mask = x.copy(), mask.copy()
    state, _ = ut.step(ut.init(ut.make_config(**SMALL), SHAPE), x, mask)
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(mask, kept_mask)
    before = arrays_of(state)
    x[:], mask[:] = 1e9, False
    for old, now in zip(before, arrays_of(state), strict=True):
        np.testing.assert_array_equal(old, now)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e300, 7.0])
def test_masked_values_are_ignored(garbage):
    data = stream()
    _, clean = follow(data.values)
    state = ut.init(ut.make_config(**SMALL), SHAPE)
    for x, mask, expected in zip(data.values, data.mask, clean, strict=True):
        state, result = ut.step(state, np.where(mask, x, garbage), mask)
        np.testing.assert_array_equal(result.low_rank, expected.low_rank)
        assert_sound(result, mask)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1e6, 1e-9, 3.0])
def test_the_unit_of_the_data_does_not_matter(kind, factor):
    values = stream().values
    config = ut.make_config(**KINDS[kind], **SMALL, dtype="float64")
    _, expected = follow(values, config)
    _, found = follow(values * factor, config)
    for one, other in zip(expected, found, strict=True):
        scale = np.abs(one.low_rank).max() + one.noise_std
        np.testing.assert_allclose(other.low_rank / factor, one.low_rank, atol=1e-6 * scale)
        np.testing.assert_allclose(other.std / factor, one.std, rtol=1e-5)
        assert other.rank == one.rank


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_matter(kind):
    values = stream().values
    rows, columns = np.random.default_rng(1).permutation(6), np.random.default_rng(2).permutation(5)
    config = ut.make_config(**KINDS[kind], **SMALL, dtype="float64")
    _, expected = follow(values, config)
    _, found = follow(values[:, rows][:, :, columns], config)
    for one, other in zip(expected, found, strict=True):
        scale = np.abs(one.low_rank).max() + one.noise_std
        np.testing.assert_allclose(other.low_rank, one.low_rank[rows][:, columns], atol=1e-6 * scale)


@pytest.mark.full
def test_the_order_of_modes_matters_less_than_the_tolerance():
    values = stream(slices=20, noise_std=0.05).values
    converged = {"tolerance": 1e-4, "max_iterations": 300, "dtype": "float64"}
    _, expected = follow(values, ut.make_config(**SMALL, **converged))
    _, found = follow(np.swapaxes(values, 1, 2), ut.make_config(**SMALL, **converged))
    for one, other in list(zip(expected, found, strict=True))[8:]:
        assert np.sqrt(np.mean((other.low_rank.T - one.low_rank) ** 2)) < 0.2 * one.noise_std


@pytest.mark.parametrize(
    ("preset", "shape"),
    [
        ("default", (4, 3, 2)),
        *(pytest.param("default", shape, marks=pytest.mark.full) for shape in [(7,), (4, 3), (2, 3, 2, 2)]),
        *(pytest.param("paper", shape, marks=pytest.mark.full) for shape in [(7,), (4, 3, 2), (2, 3, 2, 2)]),
    ],
)
def test_slices_of_any_order(preset, shape):
    data = stream(shape=shape, slices=8)
    _, results = follow(data.values, ut.make_config(preset, **SMALL))
    for result, mask in zip(results, data.mask, strict=True):
        assert result.low_rank.shape == shape
        assert_sound(result, mask)


@settings(max_examples=40, deadline=None)
@given(
    masks=hnp.arrays(bool, (6, *SHAPE), elements=st.booleans()),
    seed=st.integers(0, 1000),
    size=st.sampled_from([1.0, 1e-20, 1e20]),
)
def test_any_pattern_of_missing_entries(masks, seed, size):
    values = np.random.default_rng(seed).normal(size=(6, *SHAPE)) * size
    state = ut.init(ut.make_config(**SMALL), SHAPE)
    for x, mask in zip(values, masks, strict=True):
        state, result = ut.step(state, x, mask)
        assert_sound(result, mask)
        assert ("EMPTY" in result.status.codes) == (not mask.any())


def test_whole_rows_and_whole_slices_may_be_missing():
    data = stream(slices=16, observed=1.0)
    values = data.values.copy()
    values[:, 2, :] = np.nan
    values[9] = np.nan
    _, results = follow(values)
    for result in results:
        assert_sound(result)
    assert "EMPTY" in results[9].status.codes
    assert "EMPTY" not in results[10].status.codes


def hard_streams():
    rng = np.random.default_rng(0)
    zeros = np.zeros((8, *SHAPE))
    single = np.full((8, *SHAPE), np.nan)
    single[:, 0, 0] = 3.0
    late = np.concatenate([zeros[:4], rng.normal(size=(4, *SHAPE))])
    grows = rng.normal(size=(8, *SHAPE)) * np.array([1e-30] * 4 + [1e30] * 4)[:, None, None]
    lone = zeros.copy()
    lone[3, 1, 1] = 1e30
    return {
        "constant": zeros + 5.0,
        "zeros": zeros,
        "tiny": rng.normal(size=(8, *SHAPE)) * 1e-30,
        "huge": rng.normal(size=(8, *SHAPE)) * 1e30,
        "denormal": np.full((8, *SHAPE), 5e-324),
        "largest": np.full((8, *SHAPE), 1e308),
        "from tiny to huge": grows,
        "a single entry": single,
        "one huge entry": lone,
        "all outliers": rng.standard_cauchy((8, *SHAPE)) * 1e6,
        "zeros, then data": late,
        "exactly rank one": np.ones((8, 1, 1)) * np.outer(np.arange(1.0, 7), np.arange(1.0, 6)),
    }


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype) if (kind, dtype) in HARD else pytest.param(kind, dtype, marks=pytest.mark.full)
        for kind in KINDS
        for dtype in ("float32", "float64")
    ],
)
@pytest.mark.parametrize("name", hard_streams())
def test_numerical_problems_are_a_status(kind, dtype, name):
    state, results = follow(hard_streams()[name], ut.make_config(**KINDS[kind], **SMALL, dtype=dtype))
    for result in results:
        assert_sound(result)
        assert isinstance(str(result.status), str)
    for leaf in arrays_of(state):
        assert np.isfinite(leaf).all()


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("one huge entry", "zeros, then data", "tiny") else pytest.param(name, marks=pytest.mark.full)
        for name in hard_streams()
    ],
)
def test_several_models_of_a_hard_stream_give_sound_results(name):
    model = ut.RobustCP(**SMALL)
    for x in hard_streams()[name]:
        result = model.update(x)
        assert_sound(result)
        assert result.settings["max_rank"] == 3


def test_status_says_what_was_noticed():
    _, results = follow(hard_streams()["zeros"])
    assert "RANK_ZERO" in results[-1].status.codes
    _, results = follow(hard_streams()["from tiny to huge"])
    assert "OUT_OF_RANGE" in results[-1].status.codes
    assert not results[-1].status.ok
    assert (results[-1].outlier_probability > 0.99).all()
    assert "billion" in str(results[-1].status)
    _, results = follow(hard_streams()["exactly rank one"])
    np.testing.assert_allclose(results[-1].low_rank, hard_streams()["exactly rank one"][-1], rtol=1e-3)


def test_a_changed_scene_is_noticed():
    before, after = stream(slices=20, seed=1, observed=1.0), stream(slices=20, seed=2, observed=1.0)
    state, _ = follow(before.values)
    _, results = follow(after.values[:1] * 5, state=state)
    assert "CHANGED" in results[0].status.codes
    assert not results[0].status.ok
    assert "the scene has changed" in str(results[0].status)


@pytest.mark.full
def test_a_steady_stream_raises_no_alarm():
    _, results = follow(stream(slices=40, shape=(12, 10), drift=0.0).values, ut.make_config(max_rank=4, window=8))
    assert not any("CHANGED" in result.status.codes for result in results[10:])


def test_nothing_is_compiled_after_the_first_slice():
    values = stream(slices=30).values
    config = ut.make_config(**SMALL)
    model_step.forget()
    programs = model_step.count()
    state, _ = follow(values[:1], config)
    assert model_step.count() == programs + 1
    state, _ = follow(values[1:], state=state)
    follow(np.full((2, *SHAPE), np.nan), state=state)
    follow(values[:3] * 1e-12, state=state)
    follow(values[:3].astype(np.float32), state=state)
    follow(np.ones((2, *SHAPE), int), state=state)
    follow(values[:2], ut.make_config(**SMALL, forgetting=0.7, outlier_rate=0.1, max_iterations=7))
    for kind in ("level", "level, not robust", "log"):
        follow(values[:2], ut.make_config(**SMALL, **KINDS[kind]))
    assert model_step.count() == programs + 2  # with a level, and without


def test_single_precision_is_close_to_double():
    values = stream(slices=20).values
    _, double = follow(values, ut.make_config(**SMALL, dtype="float64"))
    _, single = follow(values, ut.make_config(**SMALL, dtype="float32"))
    for one, other in zip(double, single, strict=True):
        assert np.abs(one.low_rank - other.low_rank).max() < 0.3 * one.noise_std


def test_the_global_precision_of_jax_is_left_alone():
    follow(stream(slices=2).values, ut.make_config(**SMALL, dtype="float64"))
    assert jax.numpy.asarray(1.0).dtype == np.float32


BAD = {
    "another shape": (np.zeros((5, 6)), None, ValueError, r"x must have shape \(6, 5\).*got \(5, 6\)"),
    "complex": (np.zeros(SHAPE, complex), None, TypeError, "x must hold real numbers, got dtype complex"),
    "objects": (np.full(SHAPE, None), None, TypeError, "x must hold real numbers, got dtype object"),
    "strings": (np.full(SHAPE, "a"), None, TypeError, "x must hold real numbers"),
    "infinite": (np.full(SHAPE, np.inf), None, ValueError, "x must be finite where observed"),
    "other mask": (np.zeros(SHAPE), np.ones((2, 2), bool), ValueError, "mask must have the shape of x"),
    "odd mask": (np.zeros(SHAPE), np.full(SHAPE, 3), ValueError, "mask must hold True and False"),
    "no array": ("nothing", None, TypeError, "x must be an array of real numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_leaves_the_state(name):
    x, mask, kind, message = BAD[name]
    state, _ = follow(stream(slices=3).values)
    before = arrays_of(state)
    with pytest.raises(kind, match=message) as caught:
        ut.step(state, x, mask)
    assert "\n" not in str(caught.value)
    for old, now in zip(before, arrays_of(state), strict=True):
        np.testing.assert_array_equal(old, now)
    ut.step(state, np.zeros(SHAPE))


@pytest.mark.full
def test_smoothed_slices_know_what_came_later():
    data = stream(slices=30, shape=(12, 10), observed=0.3, noise_std=0.05)  # drifts: the newest slice is the hardest
    state = ut.init(ut.make_config(max_rank=4, window=8), (12, 10))
    late, now = [], []
    for t, x in enumerate(data.values):
        state, result = ut.step(state, x)
        if t >= 10:
            late.append(np.linalg.norm(functional.smoothed(state, 2).low_rank - data.low_rank[t - 2]))
            now.append(np.linalg.norm(result.low_rank - data.low_rank[t]))
            np.testing.assert_allclose(functional.smoothed(state, 0).low_rank, result.low_rank, rtol=1e-5, atol=1e-5)
    assert np.mean(late) < 0.8 * np.mean(now)


FIELDS = ("mean", "low_rank", "std", "low_rank_std", "outliers", "outlier_probability", "rank", "noise_std")


@pytest.mark.parametrize("kind", ["default", "level, not robust", "log, not robust"])
def test_the_newest_slice_is_the_same_by_smoothed_and_at_as_by_step(kind):
    settings = KINDS.get(kind, {"scale": "log", "robust": False})
    values = stream(outlier_fraction=0.0).values
    values[-1, 2, 3] = 30.0
    state, results = follow(values, ut.make_config(**settings, **SMALL, dtype="float64"))
    newest, everywhere = functional.smoothed(state, 0), functional.at(state, np.indices(SHAPE))
    assert results[-1].outlier_probability[2, 3] > 0.9
    for found in (newest, everywhere):
        for name in FIELDS:
            wanted = getattr(results[-1], name)
            np.testing.assert_allclose(getattr(found, name), wanted, rtol=1e-6, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(found.interval(0.9), results[-1].interval(0.9), rtol=1e-6)
    one = functional.at(state, (2, 3))
    assert one.outliers == pytest.approx(results[-1].outliers[2, 3])
    if settings.get("robust") is False:
        assert (functional.smoothed(state, 1).outlier_probability == 0).all()  # it has learned from them


def test_low_rank_is_the_mean_without_its_level():
    usual = np.random.default_rng(4).uniform(20, 80, SHAPE)  # of no low rank
    values = usual + stream(outlier_fraction=0.0, observed=1.0).values
    state, results = follow(values, ut.make_config(level=True, **SMALL, dtype="float64"))
    assert state.core.level is not None
    newest = np.asarray(state.core.level.mean)[int(state.core.window.newest)] * state.unit
    np.testing.assert_allclose(results[-1].low_rank + newest, results[-1].mean, rtol=1e-9)
    assert np.abs(newest).mean() > 1


@pytest.mark.parametrize(("lag", "kind"), [(-1, ValueError), (4, ValueError), (1.5, TypeError), (True, TypeError)])
def test_lags_outside_the_window(lag, kind):
    state, _ = follow(stream(slices=9).values)
    with pytest.raises(kind, match="lag must be"):
        functional.smoothed(state, lag)


def test_results_are_fetched_when_asked_for(monkeypatch):
    """A step hands nothing back to the host by itself; an array that is not asked for stays where it is."""
    model = ut.RobustCP(max_rank=3, window=4)
    data = drifting((6, 5), 2, slices=6, seed=1)
    for x in data.values[:5]:
        model.update(x).low_rank  # noqa: B018
    with jax.transfer_guard_device_to_host("disallow"):
        result = model.update(data.values[5])
    assert "mean" not in vars(result)
    assert result.low_rank.dtype == np.float64
    np.testing.assert_array_equal(result.low_rank, result.mean)  # there is no level
    assert "outliers" not in vars(result)
