"""Masks of what moves: scores against the definitions, the baseline on a generated scene."""

import numpy as np
import pytest

from undertow.lab.studies.foreground import f_score, foreground, generated


def test_f_is_the_harmonic_mean_of_precision_and_recall():
    found, truth = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    assert f_score(found, truth) == pytest.approx(2 * 0.5 * 0.5 / (0.5 + 0.5))
    assert f_score(truth, truth) == 1.0
    assert f_score(~truth, truth) == 0.0


def test_generated_scenes_are_repeatable_and_in_the_range_of_a_camera():
    scene = generated(seed=1)
    assert np.array_equal(scene.frames, generated(seed=1).frames)
    assert scene.frames.min() >= 0
    assert scene.frames.max() <= 255
    assert scene.truth.shape == (len(scene.known), *scene.frames.shape[1:])
    assert 0 < scene.truth.mean() < 0.2


def test_the_baseline_finds_who_walks_before_a_still_background():
    pytest.importorskip("cv2")
    table = foreground([generated(drift=0.0)], ("MOG2",), say=lambda line: None)
    assert float(table.rows[0][1]) > 0.3


@pytest.mark.full
def test_the_tracker_finds_them_before_one_that_drifts():
    table = foreground([generated(shape=(24, 24), drift=0.3)], ("tracker",), say=lambda line: None)
    assert float(table.rows[0][1]) > 0.5
