import json
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from undertow.lab.studies import cost
from undertow.tracker.predictors.cp import configs


def test_the_tracker_beside_its_models(monkeypatch, reporter):
    made = []

    def seconds(make, values):
        made.append(make)
        one, processor = (0.5, 0.6) if make is cost.ut.Tracker else (0.3, 0.3)
        return np.full(len(values), one), np.full(len(values), processor)

    monkeypatch.setattr(cost, "seconds", seconds)
    table = cost.costs([(4, 3)], slices=4, rounds=2, reporter=reporter)
    assert table.rows == [("4×3", "3", "2.00", "1.20", "1.67", "2.00", "500.0")]
    assert len(made) == 3 * 2  # once for compiling


@pytest.mark.slow
def test_the_models_predict_and_learn_without_a_tracker():
    model, values = cost.CPModels((4, 3)), cost.stream((4, 3), 3, 0.9)
    for x in values:
        said = model.update(x).mean
    assert said.shape == (4, 3)
    assert [one.state.steps for one in model._models] == [3] * len(configs((4, 3)))


def test_a_new_process_is_told_where_to_keep_nothing(monkeypatch):
    def run(command, env, **rest):
        assert "JAX_COMPILATION_CACHE_DIR" not in env
        assert json.loads(command[-1]) == [[4, 3], 4, cost.COLD_OBSERVED]
        return SimpleNamespace(stdout="[2.0, 8.0, 0.5, 0.1, 0.3]")

    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "elsewhere")
    monkeypatch.setattr(subprocess, "run", run)
    assert cost.cold((4, 3), 4).rows == [("4×3", "4", "2.0", "8.0", "8.9", "200", "280", "300")]


def test_every_slice_of_a_run_is_timed():
    values = cost.stream((4, 3), 5, 0.5)
    clock, processor = cost.seconds(lambda: SimpleNamespace(update=lambda x: SimpleNamespace(mean=x)), values)
    assert len(clock) == len(processor) == 5
    assert min(clock) > 0 <= min(processor)
