"""The search in hindsight, on a method whose error is known for every setting."""

from dataclasses import replace

import numpy as np
import pytest

from undertow.lab import baselines
from undertow.lab.baselines.baseline import RANKS
from undertow.lab.hindsight import FINALISTS, changed, evaluations, hindsight
from undertow.lab.methods import ALL_METHODS, Method
from undertow.lab.reporter import Silent
from undertow.lab.scales import SCALES
from undertow.lab.store import ResultStore
from undertow.lab.track import Answer

GRID = ({"rank": (1, 3), "scale": ("linear", "sqrt")}, {"step": (0.1, 0.3)})


class Counting(Silent):
    def __init__(self):
        super().__init__()
        self.finished = 0

    def done(self):
        self.finished += 1


def off_by(data, settings):
    """The truth, off by how far the settings are from rank 3, square roots and a step of .3; rank 9 knows outliers."""
    wrong = abs(settings["rank"] - 3) + (settings.get("scale") != "sqrt") + 10 * abs(settings.get("step", 0) - 0.3)
    wrong += 0.001 * settings["seed"]
    for truth, corrupted in zip(data.truth, data.corrupted, strict=True):
        yield Answer(0.001, (1 + wrong) * truth, score=corrupted * (1.0 if settings["rank"] == 9 else -1.0))


def method(**parts):
    def settings(case):
        return {"rank": 2, "seed": case.seed}

    return Method("off", "off", "baseline", "undertow.lab.baselines.naive", off_by, settings, **parts)


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path)


@pytest.mark.slow
def test_stage_by_stage_to_the_least_error(tiny, store):
    cases = [tiny.case(tiny.conditions[0], seed) for seed in (0, 1)]
    one, reporter = method(hindsight=GRID), Counting()
    published = [one.settings(case) for case in cases]
    best = hindsight(cases, one, published, store, reporter)
    assert best.changes == {"rank": 3, "scale": "sqrt", "step": 0.3}
    errors = [result["scores"]["hidden_error"] for result in best.results]
    assert errors == pytest.approx([0, 0.001], abs=1e-6)  # every case with its own seed
    # ranks 2, 1 and 3 on two scales, two steps, each stage with its start; finalists and published on both cases
    assert reporter.finished == evaluations(one, published[0], 2) == (1 + 6) + (1 + 2) + (FINALISTS + 1) * 2


def test_the_published_settings_are_never_beaten_by_a_worse_grid(case, store):
    worse = method(hindsight=({"rank": (50, 90)},))
    best = hindsight([case], worse, [worse.settings(case)], store, Silent())
    assert best.changes == {}


def test_a_score_may_be_better_when_it_is_high(case, store):
    one = method(hindsight=({"rank": (3, 9)},))
    best = hindsight([case], one, [one.settings(case)], store, Silent(), score="outlier_precision")
    assert best.changes == {"rank": 9}
    assert best.results[0]["scores"]["outlier_precision"] == 1


def test_what_cannot_run_or_has_no_grid_has_no_column(case, store):
    refusing = method(hindsight=GRID, unsupported=lambda data, settings: "no")
    reporter = Counting()
    assert hindsight([case], refusing, [refusing.settings(case)], store, reporter) is None
    assert reporter.finished == evaluations(refusing, refusing.settings(case), 1)  # progress ends at its end
    assert hindsight([case], method(), [{}], store, Silent()) is None
    assert evaluations(method(), {}, 3) == 0


def test_the_linear_scale_is_no_setting():
    assert changed({"rank": 2}, {"scale": "linear"}) == {"rank": 2}
    assert changed({"rank": 2}, {"scale": "sqrt"}) == {"rank": 2, "scale": "sqrt"}


def test_every_grid_holds_real_settings_and_is_small(case):
    for name, baseline in baselines.METHODS.items():
        own = ALL_METHODS[name]
        assert own.hindsight == baseline.hindsight
        assert evaluations(own, own.settings(case), 1) <= 40, name
        for stage in baseline.hindsight:
            for setting, values in stage.items():
                for value in values:
                    if setting == "scale":
                        assert value in SCALES
                    else:
                        baseline.configure(**{setting: value})
        if "rank" in baseline.settings and name != "tensorly_robust_pca":  # which has none
            assert any(stage.get("rank") == RANKS for stage in baseline.hindsight), name
        if name not in ("last_value", "running_median"):  # the same on every scale
            assert any("scale" in stage for stage in baseline.hindsight), name


def test_a_baseline_on_another_scale_answers_on_that_of_the_data(case):
    size_free = replace(case.data, values=100 * np.abs(case.data.values) + 1)
    tracks = {
        scale: ALL_METHODS["last_value"].follow(size_free, {"scale": scale}).low_rank for scale in ("linear", *SCALES)
    }
    shown = size_free.shown
    for track in tracks.values():
        np.testing.assert_allclose(track[shown], size_free.values[shown], rtol=1e-5)
    # A mean of square roots is not the square root of a mean.
    means = [ALL_METHODS["moving_mean"].follow(size_free, {"scale": scale}).low_rank for scale in SCALES]
    assert not np.allclose(means[0], means[1])
