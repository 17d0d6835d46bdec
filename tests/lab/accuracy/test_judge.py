import dataclasses

import numpy as np
import pytest

from undertow.lab.accuracy.case import Case, Condition, from_recording
from undertow.lab.accuracy.judge import FIGURES, best_f1, error_curves, scores
from undertow.lab.accuracy.track import Recorder


def track_of(case: Case, estimate, **more):
    recorder = Recorder()
    for t, low_rank in enumerate(estimate):
        recorder.add(0.01, low_rank, rank=2, **{name: array[t] for name, array in more.items()})
    return recorder.track()


def judged(case, track):
    return scores(case, track, error_curves(case, track))


def test_errors_are_means_over_judged_slices(recorded):
    case = from_recording(recorded, Condition(0.5), seed=0, burn_in=2)
    estimate = recorded * 1.1
    estimate[:2] = 0  # burn-in: not judged
    found = judged(case, track_of(case, estimate))
    assert found["hidden_error"] == pytest.approx(0.1, rel=1e-4)
    assert found["all_error"] == pytest.approx(0.1, rel=1e-4)
    assert found["prediction_error"] is None
    assert found["rank"] == 2


def test_repeating_a_complete_recording_earns_nothing(recorded):
    case = from_recording(recorded, Condition(1.0), seed=0, burn_in=1)
    found = judged(case, track_of(case, recorded, prediction=recorded * 0.8))
    assert found["all_error"] is None
    assert found["hidden_error"] is None
    assert found["prediction_error"] == pytest.approx(0.2, rel=1e-4)


def test_outliers_at_probability_one_half_or_at_the_best_threshold(recorded):
    case = from_recording(recorded, Condition(1.0, 0.2), seed=0, burn_in=1)
    score = np.where(case.corrupted, 0.4, 0.1)
    assert judged(case, track_of(case, recorded, score=score))["outlier_f1"] == 1
    found = judged(case, track_of(case, recorded, score=score, probability=score))
    assert found["outlier_f1"] == 0  # nothing above one half: the order is right, the decision is not
    assert found["outlier_precision"] == pytest.approx(1)


def test_best_f1_by_hand():
    assert best_f1(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False])) == pytest.approx(0.8)
    assert best_f1(np.array([1.0, 1.0]), np.array([True, False])) == pytest.approx(2 / 3)  # ties go together


def test_coverage_counts_hidden_entries_only(recorded):
    case = from_recording(recorded, Condition(0.5, 0.1), seed=0, burn_in=1)
    std = np.where(case.shown, 0.0, 1.0)
    assert judged(case, track_of(case, recorded + 1, std=std))["coverage"] == 1
    assert judged(case, track_of(case, recorded + 2, std=std))["coverage"] == 0


def test_foreground_is_what_differs_from_the_background(recorded):
    people = np.zeros((1, 5, 4), dtype=bool)
    people[0, 1:3, 1:3] = True
    case = dataclasses.replace(
        from_recording(recorded, Condition(1.0), seed=0, burn_in=1), foreground_frames=(4,), foreground=people
    )
    score = np.full(recorded.shape, 0.1)
    score[4][people[0]] = 0.3
    assert judged(case, track_of(case, recorded, score=score))["foreground_f"] == 1
    assert judged(case, track_of(case, recorded, score=score, probability=score))["foreground_f"] == 0
    assert judged(case, track_of(case, recorded))["foreground_f"] is None
    nobody = dataclasses.replace(case, foreground=np.zeros_like(people))
    assert judged(nobody, track_of(case, recorded, score=score))["foreground_f"] is None


def test_pictures_and_numbers_that_json_can_hold(recorded):
    pytest.importorskip("skimage")
    case = from_recording(recorded, Condition(0.5), seed=0, burn_in=1, pictures=True)
    found = judged(case, track_of(case, recorded))
    assert found["ssim"] == pytest.approx(1, abs=1e-5)
    assert found["psnr"] is None or found["psnr"] > 100
    broken = recorded.copy()
    broken[3] = np.inf
    curves = error_curves(case, track_of(case, broken))
    assert curves["all_error"][3] is None
    assert set(judged(case, track_of(case, broken))) <= set(FIGURES)
