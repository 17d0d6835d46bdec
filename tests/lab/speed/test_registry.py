import numpy as np
import pytest
from lab.speed.conftest import tiny

from undertow.lab.baselines import METHODS
from undertow.lab.speed import rivals
from undertow.lab.speed.registry import _CASES, CASES, chosen
from undertow.lab.speed.stream import Stream


def recorded(case, slices, folder=None):
    frames = np.random.default_rng(0).uniform(1, 2, (slices, *case.shape))
    shown = np.random.default_rng(1).random(frames.shape) < case.observed
    return Stream(np.where(shown, frames, np.nan), frames, ~shown)


def test_names_are_unique_and_rivals_are_known():
    assert len({case.name for case in _CASES}) == len(_CASES)
    for case in _CASES:
        assert set(case.rivals) <= set(METHODS)
        assert case.shows
        assert case.kind in ("synthetic full", "synthetic masked", "recorded")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if name != "auto"])
def test_every_case_feeds(name):
    case = tiny(CASES[name])
    if case.recorded:
        case = tiny(case, source=recorded, settings={})  # a level would be one more program to compile
    stream = case.source(case, 3, None)
    subject = case.make(case, stream)
    for t in range(3):
        assert subject.feed(t) >= 1
    assert np.isfinite(stream.error(subject.low_rank(), 2))
    assert subject.flops(2) == 2 * subject.flops(1) > 0


def test_what_is_chosen():
    assert [case.name for case in chosen(["video", "small", "video"])] == ["video", "small"]
    assert [case.name for case in chosen(["hd"])] == ["hd"]  # asked for by name
    assert "hd" not in {case.name for case in chosen()}
    assert "hd" in {case.name for case in chosen(large=True)}
    assert all(case.quick for case in chosen(quick=True))
    with pytest.raises(ValueError, match="unknown case vidoe: choose from small"):
        chosen(["vidoe"])


def test_rivals_say_why_they_are_left_out():
    video = CASES["video"]
    assert rivals.refuses("tensorly_robust_pca", video, quick=True).endswith("left out of a quick run")
    assert rivals.refuses("tensorly_robust_pca", CASES["small"], quick=True) is None
    assert rivals.refuses("online_cp", video, quick=False) == "needs complete slices"
