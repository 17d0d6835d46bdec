"""A contest, and one contender's run in it: a cell."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.lab.accuracy.case import Case
from undertow.lab.accuracy.cells import CellStore, provenance
from undertow.lab.accuracy.contenders import Contender, Settings
from undertow.lab.accuracy.judge import error_curves, scores
from undertow.lab.accuracy.reporter import Reporter
from undertow.lab.accuracy.yardstick import matrix_product_seconds

Cell = dict[str, Any]


@dataclass
class Contest:
    """One case, made only when a cell really has to be computed.

    identity  everything that determines the case, for the key of a cell: stream, condition, seed, size
    make      makes it
    rank      offered to every rival: the true one where it is known
    period    offered to methods that want a season
    """

    identity: dict[str, Any]
    make: Callable[[], Case]
    rank: int
    period: int | None = None
    _case: Case | None = field(default=None, repr=False)

    @property
    def case(self) -> Case:
        """The case, loaded or generated at the first look."""
        if self._case is None:
            self._case = self.make()
        return self._case

    @property
    def label(self) -> str:
        """For progress bars."""
        return str(self.identity.get("stream", ""))

    def own_settings(self, contender: Contender) -> Settings:
        """What the contender would choose itself."""
        return contender.settings(self.rank, self.period, int(self.identity.get("seed", 0)))


def run_cell(
    contest: Contest,
    contender: Contender,
    settings: Settings,
    store: CellStore,
    reporter: Reporter,
    frames: Sequence[int] = (),
) -> Cell:
    """One contender on one case: found in the store, or computed and kept.

    The answer holds "status" ("ok", "skipped" or "failed"), "reason", and if it is "ok" also "scores", "curves",
    "settings", "yardstick", "troubles" and the low rank of the wanted `frames`. Trouble of one cell never stops the
    others; cells that failed are tried again next time.
    """
    ours = contender.family == "ours"
    key = {**contest.identity, "method": contender.name, "settings": settings, "frames": list(frames)}
    key |= provenance(ours)
    found = store.get(key)
    if found is None:
        try:
            found = _compute(contest, contender, settings, reporter, frames)
        except (
            ImportError,
            OSError,
        ) as error:  # an optional package or a data file is missing: the sentence says which
            found = {"status": "skipped", "reason": str(error)}
            reporter.say(str(error))
        except Exception as error:  # whatever a rival dies of, the others still run
            found = {"status": "failed", "reason": " ".join(str(error).split()) or type(error).__name__}
            reporter.say(f"{contender.label} on {contest.label}: {found['reason']}")
        if found["status"] == "ok":
            store.put(key, found)
    reporter.done()
    return found


def _compute(
    contest: Contest, contender: Contender, settings: Settings, reporter: Reporter, frames: Sequence[int]
) -> Cell:
    case = contest.case
    reason = contender.refuses(case, settings)
    if reason is not None:
        return {"status": "skipped", "reason": reason}
    reporter.cell(f"{contest.label}: {contender.label}", len(case))
    product = matrix_product_seconds()
    track = contender.follow(case, settings, reporter.tick)
    product = min(product, matrix_product_seconds())
    curves = error_curves(case, track)
    figures = scores(case, track, curves)
    figures["speed"] = track.seconds_per_slice / product
    figures["seconds"] = track.seconds_per_slice
    return {
        "status": "ok",
        "reason": "",
        "yardstick": case.yardstick,
        "shape": list(case.shape),
        "burn_in": case.burn_in,
        "scores": figures,
        "curves": curves,
        "settings": settings,
        "troubles": list(track.troubles[:3]),
        "frames": {str(t): pack(track.low_rank[t]) for t in frames},
    }


def pack(picture: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON can hold it, in single precision."""
    data = np.ascontiguousarray(picture, dtype="<f4")
    return {"shape": list(data.shape), "float32": base64.b64encode(data.tobytes()).decode("ascii")}


def unpack(packed: dict[str, Any]) -> NDArray[np.float32]:
    """The array that `pack` wrote."""
    return np.frombuffer(base64.b64decode(packed["float32"]), dtype="<f4").reshape(packed["shape"])
