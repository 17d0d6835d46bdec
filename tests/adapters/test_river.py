"""The adapters pass river's own checks. Its data set for detectors has to be downloaded; a generated one stands in."""

import random

import pytest
from adapter_stubs import Mean

import undertow as ut
from undertow.adapters.river import Completer, Detector

COSTLY = ("check_bounded_memory_growth",)  # it traces every allocation: with real models only


class Stub:
    """A model that compiles nothing."""

    def learn_one(self, x):
        if self._model is None:
            self._model = Mean()
        super().learn_one(x)


class StubCompleter(Stub, Completer):
    __doc__ = Completer.__doc__


class StubDetector(Stub, Detector):
    __doc__ = Detector.__doc__


def samples(count=200):
    draw = random.Random(0)
    for _ in range(count):
        size, wrong = draw.gauss(10, 1), draw.random() < 0.1
        x = {name: size * n + draw.gauss(0, 0.1) for n, name in enumerate("abcdef", 1)}
        yield (x | {"c": x["c"] + 30} if wrong else x), int(wrong)


class Samples:
    def __iter__(self):
        return samples()


@pytest.fixture
def checks(monkeypatch):
    """River's checks, with generated data; importing them takes seconds."""
    from river import checks

    monkeypatch.setattr(checks, "_yield_datasets", lambda model, scale=1: iter([Samples()]))
    return checks


@pytest.mark.slow
@pytest.mark.parametrize("kind", [StubCompleter, StubDetector])
def test_they_pass_the_checks_of_river(kind, checks):
    names = []
    for check in checks.yield_checks(kind()):
        if check.__name__ not in COSTLY:
            check(kind())
            names.append(check.__name__)
    assert len(names) > 20


@pytest.mark.full
@pytest.mark.parametrize("kind", [Completer, Detector])
def test_they_pass_the_checks_of_river_with_a_real_model(kind, checks):
    for check in checks.yield_checks(kind("cp")):
        check(kind(ut.RobustCP(max_rank=2, window=3)))


@pytest.mark.full
def test_a_tracker_completes_samples_and_finds_what_is_wrong():
    completer, detector = Completer(), Detector()
    *learned, last = (x for x, wrong in samples(60) if not wrong)
    for x in learned:
        for learner in (completer, detector):
            learner.learn_one(x)
    found = completer.transform_one({name: value for name, value in last.items() if name != "c"})
    assert found["c"] == pytest.approx(last["c"], rel=0.05)
    assert detector.score_one(last) < 0.5 < detector.score_one(last | {"c": last["c"] + 30})
    assert completer.transform_one(last | {"c": float("nan")}) == found, "looking at samples teaches nothing"


@pytest.mark.slow
def test_a_pipeline_of_river_completes_samples():
    from river import compose, preprocessing

    pipeline = compose.Pipeline(preprocessing.StandardScaler(), StubCompleter())
    for x, _ in samples(20):
        pipeline.learn_one(x)
    x = {"a": 10.0, "b": 20.0}
    assert sorted(pipeline.transform_one(x)) == list("abcdef")


def test_features_that_come_later_are_named(caplog):
    detector = StubDetector()
    detector.learn_one({"a": 1.0, "b": 2.0, "text": "x"})
    detector.learn_one({"a": 1.0, "new": 2.0})
    detector.learn_one({"a": 1.0, "new": 2.0})
    assert [record.getMessage() for record in caplog.records] == [
        "features that were not in the first sample are not learned, text first: give all with features="
    ]
    assert 0 <= detector.score_one({"b": 3.0, "newer": 1}) <= 1
    assert StubDetector().score_one({"a": 1.0}) == 0
    assert StubCompleter().transform_one({"a": 1.0}) == {"a": 1.0}
