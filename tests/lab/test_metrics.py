import builtins
import math

import numpy as np
import pytest

from undertow.lab import metrics


def test_relative_error_by_hand():
    assert metrics.relative_error([3.0, 1.0], [3.0, 4.0]) == pytest.approx(3 / 5)
    assert metrics.relative_error([3.0, 1.0], [3.0, 4.0], where=[True, False]) == 0
    assert metrics.relative_error([1e200, 0], [1e200, 1e200]) == pytest.approx(math.sqrt(0.5))
    assert metrics.relative_error([2e-200], [1e-200]) == pytest.approx(1)


def test_nothing_to_compare_is_nan_and_zero_truth_is_infinite():
    assert math.isnan(metrics.relative_error([1.0], [1.0], where=[False]))
    assert math.isnan(metrics.rmse([1.0], [1.0], where=[False]))
    assert math.isnan(metrics.f1([False], [False]))
    assert math.isnan(metrics.average_precision([0.3], [False]))
    assert math.isnan(metrics.coverage([1.0], [1.0], [1.0], where=[False]))
    assert metrics.relative_error([1.0], [0.0]) == math.inf
    assert metrics.relative_error([0.0], [0.0]) == 0


def test_rmse_by_hand():
    assert metrics.rmse([1.0, 5.0], [1.0, 2.0]) == pytest.approx(3 / math.sqrt(2))


def test_f1_by_hand():
    predicted = [True, True, True, False, False]
    actual = [True, True, False, True, False]
    assert metrics.f1(predicted, actual) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert metrics.f1(predicted, actual, where=[True, True, False, False, True]) == 1


def test_average_precision_by_hand():
    assert metrics.average_precision([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0]) == pytest.approx((1 + 2 / 3) / 2)
    assert metrics.average_precision([0.5] * 4, [1, 0, 0, 0]) == pytest.approx(0.25)
    assert metrics.average_precision([0.1, 0.9], [0, 1]) == 1


def test_average_precision_by_thresholds():
    rng = np.random.default_rng(1)
    scores, actual = rng.integers(6, size=50) / 6, rng.uniform(size=50) < 0.3
    total, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        flagged = scores >= threshold
        hits = (flagged & actual).sum()
        total += (hits / actual.sum() - recall) * hits / flagged.sum()
        recall = hits / actual.sum()
    assert metrics.average_precision(scores, actual) == pytest.approx(total)


def test_coverage():
    assert metrics.coverage([0.0, 3.0], [0.0, 0.0], [1.0, 1.0]) == 0.5
    assert metrics.coverage([0.0, 3.0], [0.0, 0.0], [1.0, 1.0], level=3) == 1
    normal = np.random.default_rng(0).standard_normal(20_000)
    assert metrics.coverage(normal, 0 * normal, 1 + 0 * normal) == pytest.approx(0.95, abs=0.005)


def test_psnr_by_hand():
    truth = np.array([0.0, 1.0])
    assert metrics.psnr(truth + 0.1, truth) == pytest.approx(20)
    assert metrics.psnr(truth + 0.1, truth, data_range=10) == pytest.approx(40)
    assert metrics.psnr(truth, truth) == math.inf
    with pytest.raises(ValueError, match="data_range must be a positive number"):
        metrics.psnr([1.0], [1.0])


def test_ssim_knows_equal_from_different():
    pytest.importorskip("skimage")
    picture = np.random.default_rng(0).uniform(size=(12, 12))
    assert metrics.ssim(picture, picture) == pytest.approx(1)
    assert metrics.ssim(picture[::-1], picture) < 0.5
    assert metrics.ssim(picture[:4, :4], picture[:4, :4]) == pytest.approx(1)
    with pytest.raises(ValueError, match="at least 3×3"):
        metrics.ssim(picture[:2], picture[:2])


def test_ssim_without_scikit_image_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("skimage"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'undertow\[bench\]'"):
        metrics.ssim(np.eye(4), np.eye(4))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.rmse([1.0], [1.0, 2.0]), "truth must have the shape of estimate"),
        (lambda: metrics.rmse([1.0], [1.0], where=[True, False]), "where must have the shape"),
        (lambda: metrics.average_precision([math.nan, 1.0], [1, 0]), "scores must not hold NaN"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
