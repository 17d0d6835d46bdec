import json
from dataclasses import replace

import numpy as np
import pytest

from undertow.lab.evaluate import evaluate, pack, unpack
from undertow.lab.methods import ALL_METHODS
from undertow.lab.reporter import Silent
from undertow.lab.store import ResultStore

MEAN = ALL_METHODS["moving_mean"]


def run(case, store, method=MEAN, **options):
    return evaluate(case, method, method.settings(case), store, Silent(), **options)


def test_a_finished_result_is_not_computed_again(case, tmp_path):
    first = run(case, ResultStore(tmp_path))

    def forbidden(*arguments):
        raise AssertionError("run again")

    stopped = replace(MEAN, answers=forbidden)
    assert run(case, ResultStore(tmp_path), stopped) == first
    assert run(case, ResultStore(tmp_path, fresh=True), stopped)["status"] == "failed"
    assert first["status"] == "ok"
    assert first["decided_by"] == "hidden_error"
    assert first["scores"]["speed"] > 0


@pytest.mark.slow
def test_another_seed_setting_frame_or_method_is_another_result(tiny, case, tmp_path):
    store = ResultStore(tmp_path)
    first = run(case, store)
    run(tiny.case(tiny.conditions[0], seed=1), store)
    assert run(case, store, ALL_METHODS["last_value"])["scores"] != first["scores"]
    run(case, store, frames=(4,))
    evaluate(case, MEAN, {"forgetting": 0.1}, store, Silent())
    assert len(list(tmp_path.glob("*.json"))) == 5


def test_an_interrupted_run_leaves_whole_results_only(case, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(case, ResultStore(tmp_path), replace(MEAN, answers=interrupted))
    assert list(tmp_path.iterdir()) == []
    run(case, ResultStore(tmp_path))
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text()[:40])  # a disk that was full
    assert run(case, ResultStore(tmp_path))["status"] == "ok"
    assert json.loads(path.read_text())["result"]["status"] == "ok"


def test_what_goes_wrong_is_a_sentence(case, tmp_path):
    def broken(*arguments):
        raise ZeroDivisionError("division\nby zero")

    def absent(*arguments):
        raise FileNotFoundError("x.mat is expected at /there")

    reporter = Silent()
    store = ResultStore(tmp_path)
    for answers in (broken, absent):
        found = evaluate(case, replace(MEAN, answers=answers), {}, store, reporter)
        assert found["status"] in ("failed", "skipped")
    assert reporter.sentences == ["moving mean on tiny: division by zero", "x.mat is expected at /there"]
    assert not list(tmp_path.iterdir())  # tried again next time


def test_what_is_unsupported_has_a_reason(tiny, case, tmp_path):
    store = ResultStore(tmp_path)
    assert run(case, store, ALL_METHODS["online_cp"])["reason"] == "needs complete slices"
    assert run(case, store, ALL_METHODS["sofia"])["reason"] == "needs a season"
    seasonal = replace(tiny, period=4).case(tiny.conditions[0], seed=0)
    assert run(seasonal, store, ALL_METHODS["sofia"])["reason"].startswith("needs 3 seasons of 4 slices")


def test_baselines_see_data_of_unit_size(tiny, tmp_path):
    condition = tiny.conditions[0]
    plain = run(tiny.case(condition, 0), ResultStore(tmp_path / "plain"), ALL_METHODS["online_sgd"])
    data = tiny.case(condition, 0).data
    scaled = replace(data, values=data.values * 1e6, truth=data.truth * 1e6, clean=data.clean * 1e6)
    large = run(
        replace(tiny, make=lambda *_: scaled).case(condition, 0),
        ResultStore(tmp_path / "large"),
        ALL_METHODS["online_sgd"],
    )
    assert large["scores"]["hidden_error"] == pytest.approx(plain["scores"]["hidden_error"], rel=1e-4)


@pytest.mark.slow
def test_undertow_answers_in_the_same_form(case, tmp_path):
    found = run(case, ResultStore(tmp_path), ALL_METHODS["undertow"], frames=(7,))
    assert found["status"] == "ok", found
    assert 0 <= found["scores"]["coverage"] <= 1
    assert len(found["curves"]["rank"]) == 8
    assert unpack(found["frames"]["7"]).shape == (6, 5)


@pytest.mark.slow
def test_a_batch_method_predicts_nothing(case, tmp_path):
    batch = run(case, ResultStore(tmp_path), ALL_METHODS["brtf"])
    assert batch["scores"]["hidden_error"] > 0
    assert batch["scores"]["prediction_error"] is None


def test_arrays_survive_json():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(unpack(json.loads(json.dumps(pack(x)))), x)
