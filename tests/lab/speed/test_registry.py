import numpy as np
import pytest
from lab.speed.conftest import tiny

from undertow.lab.baselines import METHODS
from undertow.lab.speed.baselines import unsupported
from undertow.lab.speed.registry import _ALL, WORKLOADS, chosen
from undertow.lab.speed.slices import Slices


def recorded(workload, slices, folder=None):
    frames = np.random.default_rng(0).uniform(1, 2, (slices, *workload.shape))
    shown = np.random.default_rng(1).random(frames.shape) < workload.observed
    return Slices(np.where(shown, frames, np.nan), list(frames), list(~shown))


def test_names_are_unique_and_baselines_are_known():
    assert len({workload.name for workload in _ALL}) == len(_ALL)
    for workload in _ALL:
        assert set(workload.baselines) <= set(METHODS)
        assert workload.shows
        assert workload.kind in ("synthetic full", "synthetic masked", "recorded")


OTHERS = [pytest.param(name, marks=pytest.mark.full) for name in WORKLOADS if name not in ("default", "small")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", *OTHERS])
def test_every_workload_feeds(name):
    workload = tiny(WORKLOADS[name])
    if workload.recorded:
        workload = tiny(workload, source=recorded, settings={})  # a level would be one more program to compile
    slices = workload.source(workload, 3, None)
    subject = workload.make(workload, slices)
    for t in range(3):
        assert subject.feed(t) >= 1
    assert np.isfinite(slices.error(subject.low_rank(), 2))
    assert subject.flops(2) == 2 * subject.flops(1) > 0


def test_what_is_chosen():
    assert [workload.name for workload in chosen(["video", "small", "video"])] == ["video", "small"]
    assert [workload.name for workload in chosen(["hd"])] == ["hd"]  # asked for by name
    assert "hd" not in {workload.name for workload in chosen()}
    assert "hd" in {workload.name for workload in chosen(large=True)}
    assert all(workload.quick for workload in chosen(quick=True))
    with pytest.raises(ValueError, match="unknown workload vidoe: choose from small"):
        chosen(["vidoe"])


def test_baselines_say_why_they_are_left_out():
    video = WORKLOADS["video"]
    assert unsupported("tensorly_robust_pca", video, quick=True).endswith("left out of a quick run")
    assert unsupported("tensorly_robust_pca", WORKLOADS["small"], quick=True) is None
    assert unsupported("online_cp", video, quick=False) == "needs complete slices"
