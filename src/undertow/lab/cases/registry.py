"""The data sets that cases come from. A new one is one entry of `DATASETS`."""

from __future__ import annotations

from collections.abc import Mapping

from undertow.lab.cases import changing
from undertow.lab.cases.case import Condition, Data, Dataset, Size
from undertow.lab.cases.making import film, from_synthetic, matrices, raised, synthetic, unfolded
from undertow.lab.recordings import abilene, airport, chicago, hangzhou, intel_lab, lobby, pincat, radar, sunnybrook
from undertow.lab.recordings.files import Folder
from undertow.lab.synthetic.streams import authors, drifting, traffic


def _traffic(condition: Condition, seed: int, size: Size, folder: Folder) -> Data:
    stream = traffic(
        slices=size.slices,
        slices_per_day=_TRAFFIC_DAY,
        observed=condition.observed,
        anomaly_fraction=condition.outliers,
        seed=seed,
    )
    return from_synthetic(stream, size.burn_in)


_TRAFFIC_DAY = 24
_FULL, _HALF, _SPARSE = Condition(1.0), Condition(0.5), Condition(0.15)
_FULL_BAD, _HALF_BAD, _SPARSE_BAD = Condition(1.0, 0.02), Condition(0.5, 0.02), Condition(0.15, 0.02)
_SYNTHETIC = (_FULL, _FULL_BAD, _HALF_BAD, _SPARSE, _SPARSE_BAD)
_PICTURE = (_FULL_BAD, _HALF, _HALF_BAD, _SPARSE, _SPARSE_BAD)
_SEVERE = Condition(0.1, 0.1)

_ALL = (
    Dataset(
        "drifting",
        "drifting factors, rank 5",
        5,
        synthetic(drifting, (40, 40), 5),
        _SYNTHETIC,
        in_quick=(_FULL_BAD, _SPARSE_BAD),
    ),
    Dataset(
        "authors", "authors' generator, rank 5", 5, synthetic(authors, (40, 40), 5), _SYNTHETIC, in_quick=(_SPARSE_BAD,)
    ),
    Dataset(
        "drifting_rank10", "drifting factors, rank 10", 10, synthetic(drifting, (50, 50), 10), (_SEVERE, _HALF_BAD)
    ),
    Dataset("authors_rank10", "authors' generator, rank 10", 10, synthetic(authors, (50, 50), 10), (_SEVERE,)),
    Dataset(
        "drifting_3way",
        "drifting factors, rank 4",
        4,
        synthetic(drifting, (20, 20, 10), 4),
        (_FULL_BAD, Condition(0.3, 0.05), _SPARSE),
    ),
    Dataset(
        "traffic",
        "generated traffic",
        5,
        _traffic,
        (_FULL_BAD, _HALF, _HALF_BAD, _SPARSE_BAD),
        full=Size(slices=240, burn_in=72),
        period=_TRAFFIC_DAY,
    ),
    Dataset(
        "abilene",
        "Abilene traffic",
        15,
        matrices(abilene.load),
        (_FULL, _FULL_BAD, _HALF, _HALF_BAD, _SPARSE),
        full=Size(slices=1152, burn_in=864),
        quick=Size(slices=60, burn_in=20),
        in_quick=(_HALF,),
        period=abilene.SLICES_PER_DAY,
        recorded=True,
    ),
    Dataset(
        "intel_lab",
        "Intel lab sensors",
        4,
        matrices(intel_lab.load),
        (_FULL, _HALF, _HALF_BAD, _SPARSE),
        full=Size(slices=1008, burn_in=432),
        quick=Size(slices=60, burn_in=20),
        period=intel_lab.SLICES_PER_DAY,
        recorded=True,
    ),
    Dataset(
        "hangzhou",
        "Hangzhou metro",
        10,
        matrices(hangzhou.load),
        (_HALF,),
        full=Size(slices=648, burn_in=324),
        quick=Size(slices=60, burn_in=20),
        period=hangzhou.SLICES_PER_DAY,
        recorded=True,
    ),
    Dataset(
        "radar",
        "radar road traffic",
        5,
        matrices(radar.load),
        (Condition(0.7),),  # of what was measured: nothing is scored where nothing was
        full=Size(slices=504, burn_in=168),
        quick=Size(slices=60, burn_in=20),
        period=radar.SLICES_PER_DAY,
        recorded=True,
    ),
    Dataset(
        "chicago",
        "Chicago taxi trips",
        10,
        matrices(chicago.load),
        (_HALF,),
        full=Size(slices=336, burn_in=168),
        quick=Size(slices=60, burn_in=20),
        period=chicago.SLICES_PER_DAY,
        recorded=True,
    ),
    Dataset(
        "airport",
        "airport hall video",
        15,
        film(airport.load),
        _PICTURE,
        full=Size(slices=60, burn_in=20, stride=2),
        quick=Size(slices=40, burn_in=15, stride=3, crop=40),
        in_quick=(_SPARSE,),
        recorded=True,
    ),
    Dataset(
        "lobby",
        "lobby video",
        15,
        film(lobby.load),
        (_FULL, _HALF),
        full=Size(slices=330, burn_in=20, stride=2),
        quick=Size(slices=60, burn_in=20, stride=3),
        recorded=True,
    ),
    Dataset(
        "pincat",
        "PINCAT heart MRI",
        15,
        film(pincat.load),
        (_HALF, _SPARSE, _SPARSE_BAD),
        full=Size(slices=50, burn_in=20, stride=2),
        quick=Size(slices=40, burn_in=15, stride=2, crop=40),
        recorded=True,
    ),
    Dataset(
        "sunnybrook",
        "Sunnybrook heart MRI",
        30,
        film(lambda folder: sunnybrook.load(folder, beats=2)),
        (_HALF, _HALF_BAD, _SPARSE),
        full=Size(slices=40, burn_in=20, stride=2),
        quick=Size(slices=30, burn_in=10, stride=3, crop=40),
        recorded=True,
    ),
    Dataset("drifting_3way_unfolded", "the same as matrices", 4, unfolded(synthetic(drifting, (20, 20, 10), 4))),
    Dataset("abilene_raised", "Abilene traffic, raised", 5, raised(abilene.load), full=Size(300, 20), recorded=True),
    Dataset("new_factors", "new factors at slice 50", 5, changing.new_factors, full=Size(90, 20)),
    Dataset("changing_rank", "a rank of 3, 6, then 2", 6, changing.changing_rank, full=Size(180, 20)),
    Dataset("first_spike", "a first spike in slice 30", 3, changing.first_spike, full=Size(31, 20)),
)

DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
