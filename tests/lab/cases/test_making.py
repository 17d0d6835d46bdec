import numpy as np
import pytest

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.cases.making import from_recording, from_synthetic
from undertow.lab.synthetic.streams import drifting


def test_a_generated_stream_is_scored_by_its_low_rank():
    stream = drifting((5, 4), 2, slices=6, observed=0.5, outlier_fraction=0.1, seed=1)
    data = from_synthetic(stream, burn_in=2)
    np.testing.assert_array_equal(data.truth, stream.low_rank)
    np.testing.assert_array_equal(data.hidden, stream.hidden)
    assert data.decided_by == "hidden_error"
    # Intervals are scored on observations without corruption.
    np.testing.assert_allclose(
        data.clean - data.truth, np.where(stream.outlier_mask, 0, stream.complete - stream.low_rank)
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
    ("condition", "score"),
    [(Condition(0.5), "hidden_error"), (Condition(1.0, 0.1), "all_error"), (Condition(1.0), "prediction_error")],
)
def test_what_decides_a_recording(recorded, condition, score):
    assert from_recording(recorded, condition, seed=0, burn_in=1).decided_by == score


def test_faults_are_shown_but_have_no_truth(recorded):
    faults = np.zeros(recorded.shape, dtype=bool)
    faults[4, 0, 0] = True
    data = from_recording(recorded, Condition(1.0), seed=0, burn_in=1, faults=faults)
    assert data.shown.all()
    assert not data.known[4, 0, 0]
    assert data.corrupted[4, 0, 0]


def test_unfolded_slices_are_the_same_entries():
    condition, size = Condition(0.3, 0.05), {"slices": 4, "burn_in": 1}
    whole = DATASETS["drifting_3way"].case(condition, 2, **size).data
    flat = DATASETS["drifting_3way_unfolded"].case(condition, 2, **size).data
    assert flat.shape == (20, 200)
    np.testing.assert_array_equal(flat.values.ravel(), whole.values.ravel())
    np.testing.assert_array_equal(flat.corrupted.ravel(), whole.corrupted.ravel())
