"""What is plainly wrong, Undertow by default: is it flagged, and does the low rank stay clean?

First spikes: clean 20×12 streams of rank 3, a fifth of them hidden; in slice 30, for the first time, some entries are
off. Then the Intel lab recording, if it is there: every beginning of values that cannot be true (temperature beyond
0 to 50 °C, humidity beyond 0 to 100 %), by how it came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from undertow.lab.cases import DATASETS, Condition
from undertow.lab.cases.changing import SPIKE_AT
from undertow.lab.methods import ALL_METHODS
from undertow.lab.recordings import intel_lab
from undertow.lab.recordings.files import Folder
from undertow.lab.reporter import Reporter
from undertow.lab.scores import error_curves
from undertow.lab.studies.table import StudyTable

SPIKES = ((1, 10), (3, 10), (15, 10), (1, 1e3), (3, 1e3), (15, 1e3), (1, 1e5), (15, 1e5))
"""How many entries are off, and by how much; the noise is 0.05 and entries are around 1."""
LONG_GAP = 20
"""Slices without a value beyond which a sensor comes back rather than goes on."""
JUMP = 1.5
"""Change from the last value, in interquartile ranges of its quantity, beyond which a fault is sudden."""


def faults(seeds: Sequence[int], reporter: Reporter, folder: Folder = None) -> list[StudyTable]:
    """Both tables; only the first where the recording is missing."""
    reporter.begin(len(SPIKES) * len(seeds) + 1)
    headings = ("entries off", "by", "flagged", "others flagged", "error over usual")
    spikes = StudyTable("First spikes", headings)
    for count, size in SPIKES:
        fractions, others, errors = zip(*(first_spike(count, size, seed, reporter) for seed in seeds), strict=True)
        spikes.rows.append(
            (str(count), f"{size:g}", f"{np.mean(fractions):.2f}", f"{np.mean(others):.1f}", f"{np.median(errors):.2f}")
        )
    try:
        found = sensor_faults(reporter, folder)
    except FileNotFoundError as missing:
        reporter.say(str(missing))
        return [spikes]
    impossible = StudyTable("Intel lab: impossible values", ("how it came", "beginnings", "flagged"))
    impossible.rows += [(kind, str(len(flags)), str(sum(flags))) for kind, flags in sorted(found.items())]
    return [spikes, impossible]


def first_spike(count: int, size: float, seed: int, reporter: Reporter) -> tuple[float, int, float]:
    """Fraction of the spikes that is flagged, other entries flagged, and the error over that of the slices before."""
    data = DATASETS["first_spike"].case(Condition(0.8, count / 240, size), seed).data
    reporter.start(f"{count} entries off by {size:g}, seed {seed}", len(data))
    track = ALL_METHODS["undertow"].follow(data, {}, reporter.tick)
    assert data.corrupted is not None
    assert track.probability is not None
    flagged, spikes = track.probability[-1] > 0.5, data.corrupted[-1]
    errors = [float("nan") if error is None else error for error in error_curves(data, track)["all_error"]]
    usual = float(np.median(errors[SPIKE_AT - 10 : SPIKE_AT]))
    reporter.done()
    return float(flagged[spikes].mean()), int((flagged & ~spikes).sum()), errors[-1] / usual


def sensor_faults(reporter: Reporter, folder: Folder = None) -> dict[str, list[bool]]:
    """Of every beginning of impossible values, whether it was flagged; by how it came."""
    recording = intel_lab.load(folder)
    data = DATASETS["intel_lab"].case(folder=folder, slices=len(recording)).data
    reporter.start("Intel lab", len(data))
    track = ALL_METHODS["undertow"].follow(data, {}, reporter.tick)
    assert track.probability is not None
    found = defaultdict[str, list[bool]](list)
    last, when = np.full(data.shape, np.nan), np.full(data.shape, -LONG_GAP - 1)
    wrong, broken = np.zeros(data.shape, bool), np.zeros(data.shape[0], bool)
    answers = zip(recording.values, recording.impossible, track.probability > 0.5, strict=True)
    for t, (values, impossible, flagged) in enumerate(answers):
        seen = ~np.isnan(values)
        for entry in zip(*np.nonzero(impossible & seen & ~wrong), strict=True):
            if t - when[entry] > LONG_GAP:
                kind = "after a gap"
            elif abs(values[entry] - last[entry]) < JUMP:
                kind = "crossing slowly"
            else:
                kind = "a jump of a sensor with faults before" if broken[entry[0]] else "a jump of a sensor without any"
            found[kind].append(bool(flagged[entry]))
        broken |= impossible.any(axis=1)
        wrong, last, when = np.where(seen, impossible, wrong), np.where(seen, values, last), np.where(seen, t, when)
    reporter.done()
    return found
