"""What a step computed in units of the data: the logarithmic scale, and outliers of a model that is not robust."""

import json

import numpy as np
import pytest

import undertow as ut
from undertow.engine import functional
from undertow.engine.output import SETTINGS
from undertow.inputs.dense import as_slice
from undertow.inputs.scaling import Scaling
from undertow.inputs.transfer import DeviceSlice
from undertow.lab.synthetic.streams import drifting

SHAPE = (6, 5)
SMALL = {"max_rank": 3, "window": 4}
pytestmark = pytest.mark.slow


def clean(slices):
    """Low rank that drifts, without outliers."""
    return drifting(SHAPE, 2, slices=slices, drift=0.3, outlier_fraction=0.0, observed=0.8)


def sizes(slices=24, seed=0, shape=SHAPE):
    """Positive data whose sizes differ by factors, with noise in proportion: (observed with gaps, complete)."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.normal(size=(shape[0], 1)), rng.normal(size=(1, shape[1]))
    times = 0.3 * rng.normal(size=(slices, 1, 1)).cumsum(0)
    complete = 100 * np.exp(rows + columns + times + 0.1 * rng.normal(size=(slices, *shape)))
    return np.where(rng.random(complete.shape) < 0.8, complete, np.nan), complete


def follow(values, **settings):
    state = ut.init(ut.make_config(**{**SMALL, **settings}), values.shape[1:])
    results = []
    for x in values:
        state, result = ut.step(state, x)
        results.append(result)
    return state, results


def test_results_name_the_settings_in_plain_values():
    model = ut.RobustCP(**SMALL)
    result = model.update(clean(1).values[0])
    assert result.settings == {name: getattr(model.config, name) for name in SETTINGS}
    assert model.smoothed().settings == result.settings
    assert json.loads(json.dumps(dict(result.settings))) == result.settings


def test_units_do_not_matter_on_the_logarithmic_scale():
    values, _ = sizes()
    _, ours = follow(values, scale="log", level=True)
    _, theirs = follow(values * 2.0**20, scale="log", level=True)
    for one, other in zip(ours, theirs, strict=True):
        for name in ("low_rank", "std", "low_rank_std", "outliers", "noise_std"):
            np.testing.assert_allclose(getattr(other, name), 2.0**20 * getattr(one, name), rtol=1e-6)
        np.testing.assert_allclose(other.outlier_probability, one.outlier_probability, atol=1e-6)


@pytest.mark.full
def test_error_bars_on_the_logarithmic_scale_grow_with_the_size():
    values, complete = sizes(shape=(12, 10))
    _, results = follow(values, scale="log", level=True, max_rank=4, window=6)
    covered = []
    for x, truth, result in list(zip(values, complete, results, strict=True))[10:]:
        assert np.isfinite(result.std).all()
        assert (result.std >= result.low_rank_std).all()
        assert (result.low_rank_std > 0).all()
        large, small = result.mean > np.quantile(result.mean, 0.8), result.mean < np.median(result.mean)
        assert result.std[large].mean() > 3 * result.std[small].mean()
        hidden = np.isnan(x)
        covered.append((np.abs(truth - result.mean) < 1.96 * result.std)[hidden].mean())
    assert 0.85 < np.mean(covered) < 0.99


def test_a_model_without_outliers_still_finds_outliers():
    data = clean(24)
    values = data.values.copy()
    position = tuple(np.argwhere(data.mask[20])[7])
    values[20][position] += 10
    _, results = follow(values, robust=False)
    hit = results[20]
    assert hit.outlier_probability[position] > 0.99
    assert hit.outliers[position] == pytest.approx(10, rel=0.2)
    assert (hit.outlier_probability[~data.mask[20]] == 0).all()
    assert (hit.outliers[~data.mask[20]] == 0).all()
    calm = np.mean([(result.outlier_probability > 0.5).mean() for result in results[10:20]])
    assert calm < 0.03


def test_nothing_can_be_predicted_before_anything_is_learned():
    state = ut.init(ut.make_config(**SMALL), SHAPE)
    data = clean(16)
    assert functional.cross_predict(state, DeviceSlice(as_slice(data.values[0]))) is None
    state, _ = follow(data.values[:15])
    cross_predicted = functional.cross_predict(state, DeviceSlice(as_slice(data.values[15])))
    seen = data.mask[15]
    predicted = Scaling.of(state.config, state.unit).unscaled(cross_predicted.mean)
    error = np.linalg.norm((predicted - data.low_rank[15])[seen]) / np.linalg.norm(data.low_rank[15][seen])
    assert error < 0.5
    assert (cross_predicted.variance > 0).all()
