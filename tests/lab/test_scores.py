import dataclasses

import numpy as np
import pytest

from undertow.lab.cases import Condition
from undertow.lab.cases.making import from_recording
from undertow.lab.scores import SCORES, best_f1, error_curves, scores
from undertow.lab.track import Answer, stack


def track_of(estimate, **more):
    return stack(
        Answer(0.01, low_rank, rank=2, **{name: array[t] for name, array in more.items()})
        for t, low_rank in enumerate(estimate)
    )


def scored(data, track):
    return scores(data, track, error_curves(data, track))


def test_errors_are_means_over_scored_slices(recorded):
    data = from_recording(recorded, Condition(0.5), seed=0, burn_in=2)
    estimate = recorded * 1.1
    estimate[:2] = 0  # burn-in: not scored
    found = scored(data, track_of(estimate))
    assert found["hidden_error"] == pytest.approx(0.1, rel=1e-4)
    assert found["all_error"] == pytest.approx(0.1, rel=1e-4)
    assert found["prediction_error"] is None
    assert found["rank"] == 2


def test_repeating_a_complete_recording_earns_nothing(recorded):
    data = from_recording(recorded, Condition(1.0), seed=0, burn_in=1)
    found = scored(data, track_of(recorded, prediction=recorded * 0.8))
    assert found["all_error"] is None
    assert found["hidden_error"] is None
    assert found["prediction_error"] == pytest.approx(0.2, rel=1e-4)


def test_outliers_at_probability_one_half_or_at_the_best_threshold(recorded):
    data = from_recording(recorded, Condition(1.0, 0.2), seed=0, burn_in=1)
    score = np.where(data.corrupted, 0.4, 0.1)
    assert scored(data, track_of(recorded, score=score))["outlier_f1"] == 1
    found = scored(data, track_of(recorded, score=score, probability=score))
    assert found["outlier_f1"] == 0  # nothing above one half: the order is right, the decision is not
    assert found["outlier_precision"] == pytest.approx(1)


def test_best_f1_by_hand():
    assert best_f1(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False])) == pytest.approx(0.8)
    assert best_f1(np.array([1.0, 1.0]), np.array([True, False])) == pytest.approx(2 / 3)  # ties go together


def test_coverage_counts_hidden_entries_only(recorded):
    data = from_recording(recorded, Condition(0.5, 0.1), seed=0, burn_in=1)
    std = np.where(data.shown, 0.0, 1.0)
    assert scored(data, track_of(recorded + 1, std=std))["coverage"] == 1
    assert scored(data, track_of(recorded + 2, std=std))["coverage"] == 0


def test_foreground_is_what_differs_from_the_background(recorded):
    people = np.zeros((1, 5, 4), dtype=bool)
    people[0, 1:3, 1:3] = True
    data = dataclasses.replace(
        from_recording(recorded, Condition(1.0), seed=0, burn_in=1), foreground_frames=(4,), foreground=people
    )
    score = np.full(recorded.shape, 0.1)
    score[4][people[0]] = 0.3
    assert scored(data, track_of(recorded, score=score))["foreground_f"] == 1
    assert scored(data, track_of(recorded, score=score, probability=score))["foreground_f"] == 0
    assert scored(data, track_of(recorded))["foreground_f"] is None
    empty = dataclasses.replace(data, foreground=np.zeros_like(people))
    assert scored(empty, track_of(recorded, score=score))["foreground_f"] is None


def test_pictures_and_numbers_that_json_can_hold(recorded):
    pytest.importorskip("skimage")
    data = from_recording(recorded, Condition(0.5), seed=0, burn_in=1, pictures=True)
    found = scored(data, track_of(recorded))
    assert found["ssim"] == pytest.approx(1, abs=1e-5)
    assert found["psnr"] is None or found["psnr"] > 100
    broken = recorded.copy()
    broken[3] = np.inf
    curves = error_curves(data, track_of(broken))
    assert curves["all_error"][3] is None
    assert set(scored(data, track_of(broken))) <= set(SCORES)
