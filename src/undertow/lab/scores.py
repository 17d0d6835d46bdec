"""Scores of a track: everything that the scoreboard shows, from one place.

Errors are means over the scored slices of ‖L − truth‖ / ‖truth‖ (the running average of the relative error, RAE, at the
end of the stream). A score that does not apply is None, never a flattering number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from undertow.lab import metrics
from undertow.lab.cases.case import Bools, Data
from undertow.lab.track import Floats, Track

Scores = dict[str, float | None]
_PICTURES = 20  # slices compared as pictures, at most


@dataclass(frozen=True)
class Score:
    """One column of numbers: how to name it, and which way is better."""

    title: str
    meaning: str
    better: str  # "low", "high" or "0.95"
    digits: int = 3


SCORES: Mapping[str, Score] = {
    "hidden_error": Score("error, hidden entries", "relative error of L on entries that were not shown", "low"),
    "all_error": Score("error, all entries", "relative error of L on all entries with a known truth", "low"),
    "prediction_error": Score(
        "test-then-train", "relative error of the prediction of a slice before it is seen", "low"
    ),
    "outlier_f1": Score(
        "outlier F1",
        "shown entries; at probability ½ for Undertow, at the threshold best in hindsight for methods without one",
        "high",
    ),
    "outlier_precision": Score("outlier AP", "average precision of the outlier score on shown entries", "high"),
    "foreground_f": Score(
        "foreground F", "F-measure of moving people against drawn masks; thresholds as for outlier F1", "high"
    ),
    "psnr": Score("PSNR", "peak signal-to-noise ratio of L as a picture, dB", "high", digits=1),
    "ssim": Score("SSIM", "structural similarity of L as a picture", "high"),
    "rank": Score("rank", "components in use, median over slices", "none", digits=0),
    "coverage": Score(
        "calibration", "fraction of hidden, uncorrupted entries within ±1.96 standard deviations; 0.95 is right", "0.95"
    ),
    "speed": Score(
        "time per slice", "median time of a slice over the time of one 512×512 matrix product in the same run", "low", 2
    ),
    "flagged": Score("flagged", "fraction of slices that the method itself reports as gone wrong", "low", 2),
}


def error_curves(data: Data, track: Track) -> dict[str, list[float | None]]:
    """Errors and rank slice by slice, burn-in included."""
    curves = {
        "hidden_error": _errors(track.low_rank, data, data.hidden),
        "all_error": _errors(track.low_rank, data, data.known),
        "prediction_error": _errors(track.prediction, data, data.known),
        "rank": np.asarray(track.rank, dtype=np.float64),
    }
    return {name: [_number(value) for value in curve] for name, curve in curves.items()}


def scores(data: Data, track: Track, curves: Mapping[str, list[float | None]]) -> Scores:
    """Every score but the speed, which `undertow.lab.evaluate` measures."""
    begin = data.burn_in
    found: Scores = {name: _mean(curves[name][begin:]) for name in ("hidden_error", "all_error", "prediction_error")}
    found |= _outliers(data, track) | _foreground(data, track)
    if data.known_truth or data.hidden.any():
        found |= _pictures(data, track)
    else:
        found["all_error"] = None  # the truth itself was shown
    ranks = track.rank[begin:]
    found["rank"] = None if np.isnan(ranks).all() else float(np.nanmedian(ranks))
    found["coverage"] = _coverage(data, track)
    found["flagged"] = len(track.flagged) / len(data)
    return {name: None if value is None else _number(value) for name, value in found.items()}


def best_f1(score: Floats, actual: Bools) -> float:
    """The largest F1 over all thresholds: as if the best one were known in advance."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    hits = np.cumsum(actual[order])[ends]
    return float(np.max(2 * hits / (ends + 1 + actual.sum()), initial=0.0))


def _errors(estimate: Floats | None, data: Data, where: Bools) -> Floats:
    if estimate is None:
        return np.full(len(data), np.nan)
    pairs = zip(estimate, data.truth, where, strict=True)
    return np.array([metrics.relative_error(x, y, w) if np.isfinite(x).all() else np.nan for x, y, w in pairs])


def _outliers(data: Data, track: Track) -> Scores:
    none: Scores = {"outlier_f1": None, "outlier_precision": None}
    if data.corrupted is None or track.score is None:
        return none
    where = data.shown.copy()
    where[: data.burn_in] = False
    actual, score = data.corrupted[where], track.score[where]
    if not actual.any() or not np.isfinite(score).all():
        return none
    if track.probability is not None:
        f1 = metrics.f1(track.probability[where] > 0.5, actual)
    else:
        f1 = best_f1(score, actual)
    return {"outlier_f1": f1, "outlier_precision": metrics.average_precision(score, actual)}


def _foreground(data: Data, track: Track) -> Scores:
    if data.foreground is None or not data.foreground_frames:
        return {"foreground_f": None}
    frames = list(data.foreground_frames)
    where = data.shown[frames]
    actual = data.foreground[where]
    if not actual.any():
        return {"foreground_f": None}
    if track.probability is not None:
        return {"foreground_f": metrics.f1(track.probability[frames][where] > 0.5, actual)}
    if track.score is None:
        return {"foreground_f": None}
    score = track.score[frames][where]
    return {"foreground_f": best_f1(score, actual) if np.isfinite(score).all() else None}


def _pictures(data: Data, track: Track) -> Scores:
    if not data.pictures:
        return {}
    step = max(1, math.ceil((len(data) - data.burn_in) / _PICTURES))
    span = float(np.ptp(data.truth))
    chosen = [t for t in range(data.burn_in, len(data), step) if np.isfinite(track.low_rank[t]).all()]
    found: Scores = {"psnr": _mean([metrics.psnr(track.low_rank[t], data.truth[t], span) for t in chosen])}
    try:
        found["ssim"] = _mean([metrics.ssim(track.low_rank[t], data.truth[t], span) for t in chosen])
    except ImportError:
        found["ssim"] = None  # scikit-image is optional, everything else is not lost with it
    return found


def _coverage(data: Data, track: Track) -> float | None:
    if track.std is None:
        return None
    where = data.hidden.copy()
    where[: data.burn_in] = False
    if data.corrupted is not None:
        where &= ~data.corrupted
    return _number(metrics.coverage(data.clean, track.low_rank, track.std, where=where)) if where.any() else None


def _mean(values: list[float] | list[float | None]) -> float | None:
    kept = [value for value in values if value is not None and not math.isnan(value)]
    return float(np.mean(kept)) if kept else None


def _number(value: float) -> float | None:
    """Six digits of a finite number; None instead of what JSON cannot hold."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
