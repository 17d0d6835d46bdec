"""`ut.explain`: why an entry of a recording was flagged, from a store or from a Dataset."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from undertow.incidents import Incident
from undertow.runs.store.layout import INCIDENT
from undertow.runs.store.reader import open_store
from undertow.view import recorded
from undertow.view.explanation import Explanation
from undertow.view.series import DETAILS


def recording(source: Any) -> Any:
    """The Dataset of a store, with its incidents; any other source as it is."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    run = open_store(Path(source), filled=True)
    known = [one for one in run.incidents() if not one["false_alarm"]]
    details = np.array([json.dumps({**one, "sentence": str(Incident.from_json(one))}) for one in known], object)
    return run.dataset.assign({DETAILS: ((INCIDENT,), details)})


def explain(source: Any, /, **labels: Any) -> Explanation:
    """Why an entry of a recording was flagged, or why not: how far off it was, since when, and who answered.

    What every predictor said is known while a model runs: `result.explain(…)` and `tracker.explain(…)` have it.

    Args:
        source: A store that `undertow run` wrote, or a Dataset with `mean` and `std` over time, as `ut.clean` gives it.
        **labels: Of the entry, one for each mode by its name: `src="A", dst="B"`; numbers where a mode has no labels.
            And of the slice, by the name of the times: `time="2026-03-04T08:00"`; the one in which the entry was
            farthest off if that is left out.

    Returns:
        An explanation: `print` tells it, its fields are the numbers.

    Raises:
        ValueError: There is no such entry or slice.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> X = np.outer(np.arange(1.0, 13.0), np.arange(1.0, 31.0))
        >>> X[9, 4] = -300
        >>> why = ut.explain(ut.clean(X, model=ut.RobustCP(max_rank=3, window=4)), mode_1=4)
        >>> why.entry, why.value, why.flagged
        ('mode_1 4, time 9', -300.0, True)
    """
    dataset = recording(source)
    return recorded.explained(dataset, labels, float(getattr(dataset, "attrs", {}).get("threshold", 0.5)))
