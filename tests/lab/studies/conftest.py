"""A method that knows the truth up to one per cent: what is tested here is the study, not the method."""

from dataclasses import replace

import numpy as np
import pytest

from undertow.lab import methods
from undertow.lab.methods import Method
from undertow.lab.reporter import Silent
from undertow.lab.store import ResultStore
from undertow.lab.studies import accuracy
from undertow.lab.track import Answer


def nearly_true(data, settings):
    for t, truth in enumerate(data.truth):
        corrupted = np.zeros(data.shape, bool) if data.corrupted is None else data.corrupted[t]
        yield Answer(
            0.001,
            1.01 * truth,
            std=np.abs(truth) + 1,
            probability=corrupted.astype(float),
            score=corrupted.astype(float),
            rank=int(np.linalg.matrix_rank(truth)) if truth.ndim == 2 else 1,
            flag="changed" if t == 51 else "",
        )


@pytest.fixture(autouse=True)
def stub(monkeypatch):
    method = Method("undertow", "Undertow", "undertow", "undertow.estimator", nearly_true, lambda case: {"preset": "x"})
    monkeypatch.setitem(methods.ALL_METHODS, "undertow", method)
    monkeypatch.setattr(accuracy, "ROBUST_CP", replace(method, name="undertow_cp"))


@pytest.fixture
def reporter():
    return Silent()


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path)
