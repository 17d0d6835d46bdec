import numpy as np
import pytest

from undertow.lab.accuracy.case import Condition, from_recording, from_synthetic
from undertow.lab.synthetic.streams import drifting


def test_names_of_conditions():
    assert Condition(0.15, 0.02).name == "15 %, 2 % outliers"
    assert Condition(1.0).name == "100 %, clean"


def test_a_generated_stream_is_judged_by_its_low_rank():
    stream = drifting((5, 4), 2, slices=6, observed=0.5, outlier_fraction=0.1, seed=1)
    case = from_synthetic(stream, burn_in=2)
    np.testing.assert_array_equal(case.truth, stream.low_rank)
    np.testing.assert_array_equal(case.hidden, stream.hidden)
    assert case.yardstick == "hidden"
    # Intervals are judged on observations without corruption.
    np.testing.assert_allclose(
        case.clean - case.truth, np.where(stream.outlier_mask, 0, stream.complete - stream.low_rank)
    )


def test_a_recording_hides_the_same_entries_whatever_is_corrupted(recorded):
    clean = from_recording(recorded, Condition(0.5), seed=3, burn_in=1)
    corrupted = from_recording(recorded, Condition(0.5, 0.2), seed=3, burn_in=1)
    np.testing.assert_array_equal(clean.shown, corrupted.shown)
    np.testing.assert_array_equal(clean.truth, corrupted.truth)
    assert clean.corrupted is None
    changed = corrupted.shown & (corrupted.values != recorded)
    np.testing.assert_array_equal(changed, corrupted.corrupted & corrupted.shown)
    assert clean.shown.sum(axis=(1, 2)).tolist() == [10] * 6


@pytest.mark.parametrize(
    ("condition", "yardstick"),
    [(Condition(0.5), "hidden"), (Condition(1.0, 0.1), "all"), (Condition(1.0), "prediction")],
)
def test_what_decides_a_recording(recorded, condition, yardstick):
    assert from_recording(recorded, condition, seed=0, burn_in=1).yardstick == yardstick


def test_faults_are_shown_but_nobody_has_to_reproduce_them(recorded):
    faults = np.zeros(recorded.shape, dtype=bool)
    faults[4, 0, 0] = True
    case = from_recording(recorded, Condition(1.0), seed=0, burn_in=1, faults=faults)
    assert case.shown.all()
    assert not case.known[4, 0, 0]
    assert case.corrupted[4, 0, 0]
