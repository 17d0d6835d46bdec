"""The adapter passes scikit-learn's own suite, and works where estimators work."""

import numpy as np
import pandas as pd
import pytest
from adapter_stubs import Mean
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import undertow as ut
from undertow.adapters.sklearn import EXPECTED_FAILED_CHECKS, StreamCleaner

X = np.random.default_rng(0).normal(5, 1, (40, 6))


@parametrize_with_checks([StreamCleaner(Mean())])
def test_it_passes_the_suite(estimator, check):
    check(estimator)


@pytest.mark.full
@pytest.mark.parametrize("model", [ut.RobustCP(max_rank=2, window=3), None], ids=["cp", "tracker"])
def test_it_passes_the_suite_with_a_real_model(model):
    demanded = EXPECTED_FAILED_CHECKS
    found = check_estimator(StreamCleaner(model), on_skip=None, on_fail=None, expected_failed_checks=demanded)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert {one["check_name"] for one in found if one["status"] == "xfail"} == set(demanded)


def test_it_works_in_a_pipeline_and_keeps_names():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.iloc[3, 2] = np.nan
    pipeline = make_pipeline(StandardScaler(), StreamCleaner(Mean())).set_output(transform="pandas")
    found = clone(pipeline).fit_transform(frame)
    assert list(found.columns) == list("abcdef")
    assert found.notna().all().all()


def test_a_row_with_a_spike_is_an_outlier():
    cleaner = StreamCleaner(Mean(), shape=(2, 3)).fit(X)
    rows = X[:3].copy()
    rows[1, 4] = 100
    assert cleaner.predict(rows).tolist() == [1, -1, 1]
    assert cleaner.score_samples(rows).argmin() == 1
    assert cleaner.outlier_probability(rows)[1].argmax() == 4
    count = cleaner.model_.count
    cleaner.partial_fit(X)
    assert cleaner.model_.count == count + 40


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": (4, 4)}, r"shape must have as many entries as X has features, 6, got \(4, 4\)"),
        ({"threshold": 0}, "threshold must be a probability"),
        ({"model": "best"}, "model must be None, 'tracker', 'cp' or a model"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        StreamCleaner(**{"model": Mean(), **settings}).fit(X)


@pytest.mark.slow
def test_a_real_model_completes_rows():
    x = np.outer(np.linspace(1, 2, 12), np.arange(1.0, 8.0))
    gap = x.copy()
    gap[10, 4] = np.nan
    cleaner = StreamCleaner(clone(StreamCleaner(ut.RobustCP(max_rank=3, window=4))).model).fit(gap)
    assert cleaner.transform(gap)[10, 4] == pytest.approx(x[10, 4], rel=0.05)
