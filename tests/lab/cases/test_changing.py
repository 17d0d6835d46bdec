import numpy as np

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.cases.changing import CHANGE_AT, RANKS, SLICES_PER_RANK, SPIKE_AT


def test_factors_change_once():
    truth = DATASETS["new_factors"].case(Condition(0.5, 0.02), 0).data.truth
    before, after = truth[:CHANGE_AT].reshape(CHANGE_AT, -1), truth[CHANGE_AT:].reshape(-1, 1600)
    assert (np.linalg.matrix_rank(before), np.linalg.matrix_rank(after)) == (5, 5)
    assert np.linalg.matrix_rank(np.concatenate([before, after])) == 10


def test_the_rank_is_as_it_says():
    truth = DATASETS["changing_rank"].case(Condition(0.3), 0).data.truth
    assert tuple(np.linalg.matrix_rank(one) for one in truth[::SLICES_PER_RANK]) == RANKS


def test_spikes_come_in_one_slice_only():
    data = DATASETS["first_spike"].case(Condition(0.8, 3 / 240, 1e3), 0).data
    assert data.corrupted.sum() == data.corrupted[SPIKE_AT].sum() == 3
    assert (data.values[data.corrupted] > 900).all()
