import json
from dataclasses import replace

import numpy as np
import pytest

from undertow.lab.accuracy.cells import CellStore, provenance, write_json
from undertow.lab.accuracy.contenders import CONTENDERS, chosen, typical_size
from undertow.lab.accuracy.contest import pack, run_cell, unpack
from undertow.lab.accuracy.grids import GRIDS, candidates
from undertow.lab.accuracy.reporter import Silent

NAIVE = CONTENDERS["moving_mean"]


def run(contest, store, contender=NAIVE, **options):
    return run_cell(contest, contender, contest.own_settings(contender), store, Silent(), **options)


def test_a_finished_cell_is_not_run_again(contest, tmp_path):
    first = run(contest, CellStore(tmp_path))

    def forbidden(*arguments):
        raise AssertionError("run again")

    stopped = replace(NAIVE, follow=forbidden)
    assert run(contest, CellStore(tmp_path), stopped) == first
    assert run(contest, CellStore(tmp_path, fresh=True), stopped)["status"] == "failed"
    assert first["status"] == "ok"
    assert first["yardstick"] == "hidden"
    assert first["scores"]["speed"] > 0


def test_another_seed_setting_or_frame_is_another_cell(tiny, contest, tmp_path):
    store = CellStore(tmp_path)
    run(contest, store)
    run(tiny.contest(tiny.conditions[0], seed=1), store)
    run(contest, store, frames=(4,))
    run_cell(contest, NAIVE, {"forgetting": 0.1}, store, Silent())
    assert len(list(tmp_path.glob("*.json"))) == 4
    assert provenance(True) != provenance(False)


def test_an_interrupted_run_leaves_whole_cells_only(contest, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(contest, CellStore(tmp_path), replace(NAIVE, follow=interrupted))
    assert list(tmp_path.iterdir()) == []
    run(contest, CellStore(tmp_path))
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text()[:40])  # a disk that was full
    assert run(contest, CellStore(tmp_path))["status"] == "ok"
    assert json.loads(path.read_text())["result"]["status"] == "ok"


def test_trouble_of_one_cell_is_a_sentence(contest, tmp_path):
    def broken(*arguments):
        raise ZeroDivisionError("division\nby zero")

    def absent(*arguments):
        raise FileNotFoundError("x.mat is expected at /there")

    reporter = Silent()
    store = CellStore(tmp_path)
    for follow in (broken, absent):
        cell = run_cell(contest, replace(NAIVE, follow=follow), {}, store, reporter)
        assert cell["status"] in ("failed", "skipped")
    assert reporter.sentences == ["moving mean on tiny: division by zero", "x.mat is expected at /there"]
    assert not list(tmp_path.iterdir())  # tried again next time


def test_refusals_have_reasons(tiny, contest, tmp_path):
    store = CellStore(tmp_path)
    assert run(contest, store, CONTENDERS["online_cp"])["reason"] == "needs complete slices"
    assert run(contest, store, CONTENDERS["sofia"])["reason"] == "needs a season"
    seasonal = replace(tiny, period=4).contest(tiny.conditions[0], seed=0)
    assert run(seasonal, store, CONTENDERS["sofia"])["reason"].startswith("needs 3 seasons of 4 slices")


def test_rivals_see_data_of_unit_size(tiny, tmp_path):
    condition = tiny.conditions[0]
    plain = run(tiny.contest(condition, 0), CellStore(tmp_path / "plain"), CONTENDERS["online_sgd"])
    scaled = tiny.contest(condition, 0)
    case = scaled.case
    scaled._case = replace(case, values=case.values * 1e6, truth=case.truth * 1e6, clean=case.clean * 1e6)
    large = run(scaled, CellStore(tmp_path / "large"), CONTENDERS["online_sgd"])
    assert large["scores"]["hidden_error"] == pytest.approx(plain["scores"]["hidden_error"], rel=1e-4)


def test_undertow_and_batch_answer_in_the_same_form(contest, tmp_path):
    ours = replace(CONTENDERS["undertow"], settings=lambda *_: {"max_rank": 3, "window": 4, "max_iterations": 4})
    cell = run(contest, CellStore(tmp_path), ours, frames=(7,))
    assert cell["status"] == "ok"
    assert 0 <= cell["scores"]["coverage"] <= 1
    assert len(cell["curves"]["rank"]) == 8
    assert unpack(cell["frames"]["7"]).shape == (5, 4)
    batch = run(contest, CellStore(tmp_path), CONTENDERS["brtf"])
    assert batch["scores"]["hidden_error"] > 0
    assert batch["scores"]["prediction_error"] is None


def test_arrays_survive_json():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(unpack(json.loads(json.dumps(pack(x)))), x)


def test_json_is_written_whole_or_not_at_all(tmp_path):
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_typical_size_looks_at_the_first_slice_with_data():
    nan = np.nan
    assert typical_size(np.array([[nan, nan], [0.0, nan], [-2.0, 4.0], [100.0, 100.0]])) == 3
    assert typical_size(np.full((2, 2), nan)) == 1


def test_unknown_methods_list_the_known_ones():
    names = [contender.name for contender in chosen("olstec, undertow")]
    assert names == [
        "olstec",
        "undertow",
        "last_value",
        "moving_mean",
        "running_median",
    ]  # the naive are never left out
    with pytest.raises(
        ValueError, match=r"unknown method olstek: choose from undertow, undertow_fast, undertow_paper, last_value"
    ):
        chosen("olstek")


def test_grids_hold_the_published_settings_and_real_knobs(contest):
    from undertow.lab.baselines import METHODS

    assert set(GRIDS) <= set(METHODS)
    for name in GRIDS:
        tried = candidates(contest, CONTENDERS[name])
        assert tried[0] == contest.own_settings(CONTENDERS[name])
        for settings in tried:
            METHODS[name].configure(**settings)
    assert candidates(contest, CONTENDERS["undertow"]) == []
