import numpy as np
import pytest

from undertow.lab.metrics import average_precision
from undertow.lab.vus import ranges, soft_labels, vus_pr


def test_ranges_are_found_at_both_ends():
    assert ranges(np.array([True, False, True, True])) == [(0, 1), (2, 4)]
    assert ranges(np.zeros(3, bool)) == []


def test_soft_labels_fall_off_and_never_exceed_one():
    faulty = np.array([0, 0, 0, 1, 0, 0, 0, 0], bool)
    near, far = np.sqrt(1 - 1 / 4), np.sqrt(1 - 2 / 4)
    np.testing.assert_allclose(soft_labels(faulty, 4), [0, far, near, 1, near, far, 0, 0])
    np.testing.assert_array_equal(soft_labels(faulty, 0), faulty)
    np.testing.assert_array_equal(soft_labels(np.array([1, 0, 1], bool), 2), [1, 1, 1])


def test_without_a_buffer_one_range_is_average_precision():
    draw = np.random.default_rng(0)
    faulty = np.zeros(50, bool)
    faulty[20:23] = True
    score = draw.integers(0, 9, 50).astype(float)
    assert vus_pr(score, faulty, buffer=0) == pytest.approx(average_precision(score, faulty))


def by_definition(score, faulty, buffer):
    """Threshold by threshold, as in the docstring."""
    areas = []
    for length in range(buffer + 1):
        soft = soft_labels(faulty, length)
        area = last = 0.0
        for threshold in sorted(set(score), reverse=True):
            found = score >= threshold
            touched = np.mean([found[begin:end].any() for begin, end in ranges(soft > 0)])
            positives = faulty.sum() + (soft - faulty)[found].sum() / 2
            recall = min(1.0, soft[found].sum() / positives) * touched
            area += (recall - last) * soft[found].sum() / found.sum()
            last = recall
        areas.append(area)
    return np.mean(areas)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sums_equal_the_definition(seed):
    draw = np.random.default_rng(seed)
    faulty = np.zeros(60, bool)
    faulty[5:8] = faulty[30:31] = faulty[34:40] = True
    score = np.round(draw.random(60), 1) + 0.3 * faulty
    assert vus_pr(score, faulty, 8) == pytest.approx(by_definition(score, faulty, 8))


def test_a_near_miss_is_better_than_a_far_one():
    faulty = np.zeros(100, bool)
    faulty[50:60] = True
    near, far = np.zeros(100), np.zeros(100)
    near[46:56], far[20:30] = 1, 1
    assert vus_pr(faulty.astype(float), faulty, 20) > vus_pr(near, faulty, 20) > vus_pr(far, faulty, 20)


def test_bad_input_is_one_sentence():
    assert np.isnan(vus_pr([1.0, 2.0], [False, False]))
    with pytest.raises(ValueError, match="as long as each other"):
        vus_pr([1.0, 2.0], [True])
    with pytest.raises(ValueError, match="must not hold NaN"):
        vus_pr([np.nan, 2.0], [True, False])
