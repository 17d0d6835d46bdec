"""The cases. To add one, add a line; what else can be timed than a model says the README in this folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from undertow.lab.speed import rivals
from undertow.lab.speed.case import Case
from undertow.lab.speed.model import Automatic
from undertow.lab.speed.sparse import SparseModel, scattered
from undertow.lab.speed.stream import airport_video

_CASES = (
    Case(
        "small",
        "a traffic matrix, some entries missing: overheads show",
        (40, 40),
        window=10,
        max_rank=12,
        observed=0.5,
        rivals=rivals.ALL,
    ),
    Case(
        "auto",
        "the same with nothing set: several models side by side, and the choice between them",
        (40, 40),
        observed=0.5,
        make=Automatic.of,
        quick=False,
    ),
    Case(
        "tensor",
        "slices with three modes",
        (20, 20, 10),
        window=10,
        max_rank=8,
        rank=4,
        observed=0.3,
        outliers=0.05,
        rivals=rivals.ALL,
    ),
    Case(
        "video",
        "half-observed frames of a small video",
        (144, 176),
        observed=0.5,
        rivals=rivals.ALL,
    ),
    Case(
        "video-full",
        "complete frames without outliers: the plain model",
        (144, 176),
        outliers=0.0,
        settings=MappingProxyType({"robust": False, "noise": "shared"}),
        rivals=(*rivals.ONLINE, "online_cp"),
    ),
    Case(
        "airport",
        "a recorded video, half of it hidden",
        (144, 176),
        rank=15,
        observed=0.5,
        settings=MappingProxyType({"level": True, "robust": False, "noise": "shared"}),
        rivals=rivals.ONLINE,
        source=airport_video,
        recorded=True,
        quick=False,
    ),
    Case(
        "sparse",
        "two entries in a thousand of a large matrix: only these are kept",
        (20_000, 2_000),
        max_rank=8,
        observed=0.002,
        source=scattered,
        make=SparseModel.of,
        quick=False,
    ),
    Case(
        "hd",
        "half-observed frames of a large video",
        (1080, 1920),
        observed=0.5,
        rivals=rivals.ONLINE,
        large=True,
        quick=False,
    ),
)

CASES: Mapping[str, Case] = MappingProxyType({case.name: case for case in _CASES})


def chosen(names: Iterable[str] = (), *, quick: bool = False, large: bool = False) -> list[Case]:
    """The cases of these names; without any, all that fit the run. Unknown names are answered with the known ones."""
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        raise ValueError(f"unknown case {', '.join(unknown)}: choose from {', '.join(CASES)}")
    if wanted:
        return [CASES[name] for name in wanted]
    return [case for case in CASES.values() if (large or not case.large) and (case.quick or not quick)]
