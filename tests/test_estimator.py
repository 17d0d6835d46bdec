"""RobustCP: the estimator around one model."""

import copy
import gc
import resource

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.lab.synthetic.streams import drifting

pytestmark = pytest.mark.slow
DATA = drifting((6, 5), 2, slices=14, observed=0.8, seed=4)
SMALL = {"max_rank": 3, "window": 4}


@pytest.fixture(scope="module")
def learned():
    return ut.RobustCP(**SMALL).partial_fit(DATA.values)


@pytest.fixture
def model(learned):
    return copy.copy(learned)


def test_update_and_partial_fit_are_the_same(model):
    other = ut.RobustCP(**SMALL)
    for x in DATA.values:
        result = other.update(x)
    np.testing.assert_array_equal(model.smoothed().low_rank, other.smoothed().low_rank)
    np.testing.assert_allclose(model.reconstruct(), result.low_rank, rtol=1e-5, atol=1e-6)


def test_fit_starts_anew(model):
    again = model.fit(DATA.values[:5])
    assert again is model
    assert model.state.steps == 5


def test_the_paper_model_transforms_too():
    model = ut.RobustCP("paper", **SMALL, dtype="float64").partial_fit(DATA.values[:6])
    before = model.reconstruct()
    filled = model.transform(DATA.values[6:8])
    assert filled.shape == (2, 6, 5)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(model.reconstruct(), before)


def test_transform_learns_nothing(model):
    before = model.reconstruct()
    filled = model.transform(DATA.values[-3:])
    assert filled.shape == (3, 6, 5)
    assert np.isfinite(filled).all()
    assert model.state.steps == 14
    np.testing.assert_array_equal(model.reconstruct(), before)
    error = np.linalg.norm(filled[-1] - DATA.low_rank[-1]) / np.linalg.norm(DATA.low_rank[-1])
    assert error < 0.3


def test_factors_multiply_to_the_reconstruction(model):
    factors = model.factors
    assert factors.temporal.shape == (4, model.smoothed().rank)
    for lag in range(4):
        product = np.einsum("r,ir,jr->ij", factors.temporal[-1 - lag], *factors.modes)
        np.testing.assert_allclose(product, model.reconstruct(lag), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make", [lambda x: np.ma.masked_invalid(x), lambda x: x.tolist(), lambda x: x.astype(np.float64)]
)
def test_the_same_answer_for_every_kind_of_array(make):
    expected = ut.RobustCP(**SMALL).update(DATA.values[0])
    got = ut.RobustCP(**SMALL).update(make(DATA.values[0]))
    np.testing.assert_array_equal(got.low_rank, expected.low_rank)


@pytest.mark.parametrize(("kind", "reported"), [("f4", "f4"), ("f2", "f4"), ("u1", "f4"), ("i4", "f8"), ("f8", "f8")])
@pytest.mark.parametrize("settings", [{}, {"robust": False}, {"scale": "log"}])
def test_results_come_in_the_precision_of_the_data(kind, reported, settings):
    data = np.random.default_rng(0).integers(1, 200, (4, 6, 5))
    model, double = (ut.RobustCP(**SMALL, **settings) for _ in range(2))
    for x in data:
        result, expected = model.update(x.astype(kind)), double.update(x.astype("f8"))
        for name in ("low_rank", "std", "low_rank_std", "outliers", "outlier_probability"):
            array = getattr(result, name)
            assert array.dtype == reported
            array[0, 0] = 0  # whoever asked may write into it
            np.testing.assert_allclose(array.ravel()[1:], getattr(expected, name).ravel()[1:], rtol=1e-5, atol=1e-5)
    assert ut.RobustCP(**SMALL, dtype="float64").update(data[0].astype("f4")).std.dtype == "f8"


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("unit", [1e-42, 1e-35, 1.0, 1e22, 1e30, 1e37])
def test_single_precision_holds_results_of_any_unit(unit, scale):
    model = ut.RobustCP(**SMALL, scale=scale)
    for x in np.random.default_rng(0).uniform(1, 2, (4, 6, 5)):
        result = model.update((x * unit).astype("f4"))
    for array in (result.low_rank, result.std, result.low_rank_std, result.outliers):
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
    np.testing.assert_allclose(result.low_rank, 1.5 * unit, rtol=0.5)


def test_error_bars_on_the_logarithmic_scale_do_not_cancel_in_single_precision():
    rng, rows = np.random.default_rng(0), np.logspace(0, 4, 6)
    model, double = (ut.RobustCP(**SMALL, scale="log") for _ in range(2))
    for _ in range(6):
        x = (np.outer(rows, rng.uniform(1, 2) * np.ones(5)) * (1 + 1e-5 * rng.normal(size=(6, 5)))).astype("f4")
        single, exact = model.update(x), double.update(x.astype("f8"))
    np.testing.assert_allclose(single.std, exact.std, rtol=1e-3)


def test_labelled_arrays():
    xarray = pytest.importorskip("xarray")
    labelled = xarray.DataArray(DATA.values[0], dims=("from", "to"))
    expected = ut.RobustCP(**SMALL).update(DATA.values[0])
    np.testing.assert_array_equal(ut.RobustCP(**SMALL).update(labelled).low_rank, expected.low_rank)


def test_parameters_can_be_read_and_set():
    model = ut.RobustCP(max_rank=3)
    assert model.get_params()["max_rank"] == 3
    assert model.get_params()["window"] is None
    assert model.set_params(window=4) is model
    assert model.config.window == 4
    clone = ut.RobustCP(**model.get_params())
    assert clone.config == model.config
    model.update(DATA.values[0])
    with pytest.raises(ValueError, match="settings cannot change once slices have been seen"):
        model.set_params(window=5)
    with pytest.raises(TypeError, match="'windows' is not a setting"):
        clone.set_params(windows=5)
    assert clone.config.window == 4


def test_repr_reads_like_a_call(model):
    assert repr(ut.RobustCP("paper", max_rank=7)) == "RobustCP(preset='paper', max_rank=7)"
    assert repr(ut.RobustCP()) == "RobustCP()"
    assert repr(model).startswith("RobustCP(max_rank=3, window=4)  # 14 slices of 6×5, ")


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"max_rank": 0}, ValueError, "max_rank must be at least 1"),
        ({"max_rank": 2.5}, TypeError, "max_rank must be an integer"),
        ({"window": -3}, ValueError, "window must be at least 1"),
        ({"window": 2**40}, ValueError, "window must be"),
        ({"forgetting": 0.0}, ValueError, r"forgetting must lie in \(0, 1\]"),
        ({"forgetting": 1.01}, ValueError, "forgetting"),
        ({"forgetting": "much"}, TypeError, "forgetting must be a number"),
        ({"outlier_rate": 0.7}, ValueError, "outlier_rate"),
        ({"outlier_variance": 0.5}, ValueError, "outlier_variance"),
        ({"tolerance": float("nan")}, ValueError, "tolerance"),
        ({"max_iterations": 1}, ValueError, "max_iterations must be at least 2"),
        ({"dtype": "float16"}, ValueError, "dtype must be one of 'float32', 'float64'"),
        ({"noise": "none"}, ValueError, "noise must be one of"),
        ({"scale": "square"}, ValueError, "scale must be one of 'linear', 'log'"),
        ({"level": 1}, TypeError, "level must be True or False, got 1"),
        ({"robust": "yes"}, TypeError, "robust must be True or False"),
        ({"preset": "paper", "level": True}, ValueError, "level must be False with outliers='gaussian_gamma'"),
        ({"preset": "paper", "scale": "log"}, ValueError, "scale must be 'linear' with outliers='gaussian_gamma'"),
        ({"outliers": "gaussian_gamma"}, ValueError, "start must be 'svd' with outliers='gaussian_gamma'"),
        ({"preset": "best"}, ValueError, "preset must be one of 'default', 'fast', 'paper', got 'best'"),
        ({"seed": -1}, ValueError, "seed"),
    ],
)
def test_bad_settings(settings, kind, message):
    with pytest.raises(kind, match=message) as caught:
        ut.RobustCP(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["smoothed", "transform", "save", "factors"])
def test_nothing_can_be_asked_before_the_first_slice(what, tmp_path):
    model = ut.RobustCP()
    with pytest.raises(ValueError, match=f"{what} needs at least one slice"):
        {
            "smoothed": model.smoothed,
            "transform": lambda: model.transform(DATA.values),
            "save": lambda: model.save(tmp_path / "model"),
            "factors": lambda: model.factors,
        }[what]()


def test_a_stack_of_slices_is_asked_for():
    with pytest.raises(ValueError, match="X must be a stack of slices"):
        ut.RobustCP().partial_fit(np.zeros(3))


def test_a_bad_slice_among_many_leaves_the_model(model):
    before, steps = model.reconstruct(), model.state.steps
    bad = DATA.values[:4].copy()
    bad[2, 0, 0] = np.inf
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match="x must be finite"):
            learn(bad)
        assert model.state.steps == steps
        np.testing.assert_array_equal(model.reconstruct(), before)


def test_numpy_numbers_are_numbers(tmp_path):
    model = ut.RobustCP(max_rank=np.int64(3), window=np.int32(4), forgetting=np.float32(0.5))
    model.update(DATA.values[0])
    model.save(tmp_path / "model")
    assert ut.load(tmp_path / "model").config == model.config


def test_rank_factors_and_repr_agree():
    model = ut.RobustCP("paper", **SMALL, dtype="float64")
    result = model.partial_fit(DATA.values[:6]).smoothed()
    assert model.factors.temporal.shape == (4, result.rank)
    assert f"{result.rank} components" in repr(model)


def test_bad_input_leaves_the_model(model):
    before = model.reconstruct()
    with pytest.raises(ValueError, match="x must have shape"):
        model.update(np.zeros((2, 2)))
    np.testing.assert_array_equal(model.reconstruct(), before)


@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.full)])
def test_memory_does_not_grow_with_the_number_of_slices(rounds):
    model = ut.RobustCP(**SMALL, max_iterations=2)
    values = np.random.default_rng(0).normal(size=(50, 6, 5))
    for x in values:
        model.update(x)
    gc.collect()
    arrays, peak = len(jax.live_arrays()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(rounds):
        for x in values:
            model.update(x)
    gc.collect()
    assert len(jax.live_arrays()) <= arrays
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 30_000  # KiB
    assert model.state.steps == 50 * (rounds + 1)
