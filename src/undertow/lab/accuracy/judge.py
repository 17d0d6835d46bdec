"""Judging a track: every figure that the scoreboard shows, from one place.

Errors are means over the judged slices of ‖L − truth‖ / ‖truth‖ (the running average of the relative error, RAE, at the
end of the stream). A figure that does not apply is None, never a flattering number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from undertow.lab import metrics
from undertow.lab.accuracy.case import Bools, Case
from undertow.lab.accuracy.track import Floats, Track

Scores = dict[str, float | None]
_PICTURES = 20  # at most so many slices are compared as pictures


@dataclass(frozen=True)
class Figure:
    """One column of numbers: how to name it, and which way is better."""

    title: str
    meaning: str
    better: str  # "low", "high" or "0.95"
    digits: int = 3


FIGURES: Mapping[str, Figure] = {
    "hidden_error": Figure("error, hidden entries", "relative error of L on entries that were not shown", "low"),
    "all_error": Figure("error, all entries", "relative error of L on all entries with a known truth", "low"),
    "prediction_error": Figure(
        "test-then-train", "relative error of the prediction of a slice before it is seen", "low"
    ),
    "outlier_f1": Figure(
        "outlier F1",
        "shown entries; at probability ½ for Undertow, at the threshold best in hindsight for methods without one",
        "high",
    ),
    "outlier_precision": Figure("outlier AP", "average precision of the outlier score on shown entries", "high"),
    "foreground_f": Figure(
        "foreground F", "F-measure of moving people against drawn masks; thresholds as for outlier F1", "high"
    ),
    "psnr": Figure("PSNR", "peak signal-to-noise ratio of L as a picture, dB", "high", digits=1),
    "ssim": Figure("SSIM", "structural similarity of L as a picture", "high"),
    "rank": Figure("rank", "components in use, median over slices", "none", digits=0),
    "coverage": Figure(
        "calibration", "share of hidden, uncorrupted entries within ±1.96 standard deviations; 0.95 is right", "0.95"
    ),
    "speed": Figure(
        "time per slice", "median time of a slice over the time of one 512×512 matrix product in the same run", "low", 2
    ),
    "troubled": Figure("trouble", "share of slices that the method itself reports as failed", "low", 2),
}


def error_curves(case: Case, track: Track) -> dict[str, list[float | None]]:
    """Errors and rank slice by slice, burn-in included."""
    curves = {
        "hidden_error": _errors(track.low_rank, case, case.hidden),
        "all_error": _errors(track.low_rank, case, case.known),
        "prediction_error": _errors(track.prediction, case, case.known),
        "rank": np.asarray(track.rank, dtype=np.float64),
    }
    return {name: [_number(value) for value in curve] for name, curve in curves.items()}


def scores(case: Case, track: Track, curves: Mapping[str, list[float | None]]) -> Scores:
    """Every figure but the speed, which needs a yardstick."""
    begin = case.burn_in
    found: Scores = {name: _mean(curves[name][begin:]) for name in ("hidden_error", "all_error", "prediction_error")}
    found |= _outliers(case, track) | _foreground(case, track)
    if case.known_truth or case.hidden.any():
        found |= _pictures(case, track)
    else:
        found["all_error"] = None  # the truth itself was shown
    ranks = track.rank[begin:]
    found["rank"] = None if np.isnan(ranks).all() else float(np.nanmedian(ranks))
    found["coverage"] = _coverage(case, track)
    found["troubled"] = len(track.troubles) / len(case)
    return {name: None if value is None else _number(value) for name, value in found.items()}


def best_f1(score: Floats, actual: Bools) -> float:
    """The largest F1 over all thresholds: as if somebody had told the method which one to take."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    hits = np.cumsum(actual[order])[ends]
    return float(np.max(2 * hits / (ends + 1 + actual.sum()), initial=0.0))


def _errors(estimate: Floats | None, case: Case, where: Bools) -> Floats:
    if estimate is None:
        return np.full(len(case), np.nan)
    pairs = zip(estimate, case.truth, where, strict=True)
    return np.array([metrics.relative_error(x, y, w) if np.isfinite(x).all() else np.nan for x, y, w in pairs])


def _outliers(case: Case, track: Track) -> Scores:
    none: Scores = {"outlier_f1": None, "outlier_precision": None}
    if case.corrupted is None or track.score is None:
        return none
    where = case.shown.copy()
    where[: case.burn_in] = False
    actual, score = case.corrupted[where], track.score[where]
    if not actual.any() or not np.isfinite(score).all():
        return none
    if track.probability is not None:
        f1 = metrics.f1(track.probability[where] > 0.5, actual)
    else:
        f1 = best_f1(score, actual)
    return {"outlier_f1": f1, "outlier_precision": metrics.average_precision(score, actual)}


def _foreground(case: Case, track: Track) -> Scores:
    if case.foreground is None or not case.foreground_frames:
        return {"foreground_f": None}
    frames = list(case.foreground_frames)
    where = case.shown[frames]
    actual = case.foreground[where]
    if not actual.any():
        return {"foreground_f": None}
    if track.probability is not None:
        return {"foreground_f": metrics.f1(track.probability[frames][where] > 0.5, actual)}
    if track.score is None:
        return {"foreground_f": None}
    score = track.score[frames][where]
    return {"foreground_f": best_f1(score, actual) if np.isfinite(score).all() else None}


def _pictures(case: Case, track: Track) -> Scores:
    if not case.pictures:
        return {}
    step = max(1, math.ceil((len(case) - case.burn_in) / _PICTURES))
    span = float(np.ptp(case.truth))
    chosen = [t for t in range(case.burn_in, len(case), step) if np.isfinite(track.low_rank[t]).all()]
    found: Scores = {"psnr": _mean([metrics.psnr(track.low_rank[t], case.truth[t], span) for t in chosen])}
    try:
        found["ssim"] = _mean([metrics.ssim(track.low_rank[t], case.truth[t], span) for t in chosen])
    except ImportError:
        found["ssim"] = None  # scikit-image is optional, everything else is not lost with it
    return found


def _coverage(case: Case, track: Track) -> float | None:
    if track.std is None:
        return None
    where = case.hidden.copy()
    where[: case.burn_in] = False
    if case.corrupted is not None:
        where &= ~case.corrupted
    return _number(metrics.coverage(case.clean, track.low_rank, track.std, where=where)) if where.any() else None


def _mean(values: list[float] | list[float | None]) -> float | None:
    kept = [value for value in values if value is not None and not math.isnan(value)]
    return float(np.mean(kept)) if kept else None


def _number(value: float) -> float | None:
    """Six digits of a finite number; None instead of what JSON cannot hold."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
