"""One method on one case: scored, and kept."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.cases.case import Case
from undertow.lab.methods import Method, Settings
from undertow.lab.provenance import provenance
from undertow.lab.reporter import Reporter
from undertow.lab.scores import error_curves, scores
from undertow.lab.store import ResultStore

CaseResult = dict[str, Any]


def evaluate(
    case: Case, method: Method, settings: Settings, store: ResultStore, reporter: Reporter, frames: Sequence[int] = ()
) -> CaseResult:
    """One method on one case: found in the store, or computed and kept.

    What goes wrong with one case never stops the others; what failed is tried again next time.

    Args:
        case: what it sees, and what it is scored by.
        method: which.
        settings: of the method.
        store: of finished results.
        reporter: shows progress.
        frames: slices whose low rank is kept as well.

    Returns:
        "status" ("ok", "skipped" or "failed"), "reason", and if it is "ok" also "scores", "curves", "settings",
        "decided_by", "flagged" and the low rank of the wanted "frames".
    """
    key = {**case.identity, "method": method.name, "settings": settings, "frames": list(frames)}
    key["code"] = provenance(method.module)
    found = store.get(key)
    if found is None:
        try:
            found = _compute(case, method, settings, reporter, frames)
        except (ImportError, OSError) as error:  # an optional package or a data file is missing: it says which
            found = {"status": "skipped", "reason": str(error)}
            reporter.say(str(error))
        except Exception as error:  # whatever stops one method, the others still run
            found = {"status": "failed", "reason": " ".join(str(error).split()) or type(error).__name__}
            reporter.say(f"{method.label} on {case.dataset.name}: {found['reason']}")
        if found["status"] == "ok":
            store.put(key, found)
    reporter.done()
    return found


def _compute(case: Case, method: Method, settings: Settings, reporter: Reporter, frames: Sequence[int]) -> CaseResult:
    data = case.data
    reason = method.unsupported(data, settings)
    if reason is not None:
        return {"status": "skipped", "reason": reason}
    reporter.start(f"{case.dataset.name}: {method.label}", len(data))
    product = matrix_product_seconds()
    track = method.follow(data, settings, reporter.tick)
    product = min(product, matrix_product_seconds())
    curves = error_curves(data, track)
    found = scores(data, track, curves)
    found["speed"] = track.seconds_per_slice / product
    found["seconds"] = track.seconds_per_slice
    return {
        "status": "ok",
        "reason": "",
        "decided_by": data.decided_by,
        "shape": list(data.shape),
        "burn_in": data.burn_in,
        "scores": found,
        "curves": curves,
        "settings": settings,
        "flagged": track.flagged[:3],
        "frames": {str(t): pack(track.low_rank[t]) for t in frames},
    }


def matrix_product_seconds(size: int = 512, repeats: int = 7) -> float:
    """Median time of one 512×512 product in double precision, now: the unit in which machines can be compared."""
    left = np.random.default_rng(0).standard_normal((size, size))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        left @ left
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def pack(picture: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON can hold it, in single precision."""
    data = np.ascontiguousarray(picture, dtype="<f4")
    return {"shape": list(data.shape), "float32": base64.b64encode(data.tobytes()).decode("ascii")}


def unpack(packed: dict[str, Any]) -> NDArray[np.float32]:
    """The array that `pack` wrote."""
    return np.frombuffer(base64.b64decode(packed["float32"]), dtype="<f4").reshape(packed["shape"])
