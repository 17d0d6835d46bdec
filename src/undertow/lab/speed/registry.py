"""The workloads. A new one is one entry; the README of the lab says what else than a model can be timed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from undertow.lab.names import pick
from undertow.lab.speed.baselines import ALL, ONLINE
from undertow.lab.speed.model import Default, SparseModel
from undertow.lab.speed.slices import airport_video, scattered
from undertow.lab.speed.workload import Workload

_ALL = (
    Workload(
        "small",
        "a traffic matrix, some entries missing: overheads show",
        (40, 40),
        window=10,
        max_rank=12,
        observed=0.5,
        baselines=ALL,
    ),
    Workload(
        "default",
        "the same through the default model",
        (40, 40),
        observed=0.5,
        make=Default,
        quick=False,
    ),
    Workload(
        "tensor",
        "slices with three modes",
        (20, 20, 10),
        window=10,
        max_rank=8,
        rank=4,
        observed=0.3,
        outliers=0.05,
        baselines=ALL,
    ),
    Workload("video", "half-observed frames of a small video", (144, 176), observed=0.5, baselines=ALL),
    Workload(
        "video-full",
        "complete frames without outliers: the plain model",
        (144, 176),
        outliers=0.0,
        settings=MappingProxyType({"robust": False, "noise": "shared"}),
        baselines=(*ONLINE, "online_cp"),
    ),
    Workload(
        "airport",
        "a recorded video, half of it hidden",
        (144, 176),
        rank=15,
        observed=0.5,
        settings=MappingProxyType({"level": True, "robust": False, "noise": "shared"}),
        baselines=ONLINE,
        source=airport_video,
        recorded=True,
        quick=False,
    ),
    Workload(
        "sparse",
        "two entries in a thousand of a large matrix: only these are kept",
        (20_000, 2_000),
        max_rank=8,
        observed=0.002,
        source=scattered,
        make=SparseModel,
        quick=False,
    ),
    Workload(
        "hd",
        "half-observed frames of a large video",
        (1080, 1920),
        observed=0.5,
        baselines=ONLINE,
        large=True,
        quick=False,
    ),
)

WORKLOADS: Mapping[str, Workload] = MappingProxyType({workload.name: workload for workload in _ALL})


def chosen(names: Iterable[str] = (), *, quick: bool = False, large: bool = False) -> list[Workload]:
    """The workloads of these names; without any, all that fit the run. Unknown names are answered with the known."""
    if wanted := list(names):
        return pick("workload", wanted, WORKLOADS)
    return [one for one in WORKLOADS.values() if (large or not one.large) and (one.quick or not quick)]
