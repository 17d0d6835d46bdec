"""Season: what every entry was at the same time of earlier cycles, as a predictor and as a memory.

y_t = s_{t mod P} + d_t. The profile s (P, n) is an exponentially weighted mean over cycles of the completed slices; the
deviation d is a bank of local levels per entry, so that a day that runs high is expected to go on running high. There
is a profile for the period that was found and one for seven of it (the same hour yesterday, the same hour last week),
weighted per entry by the likelihood of what each has predicted. O(entries) per slice, on the host but for the levels.

The period is found from the completed slices of the past: the first clear maximum of their autocorrelation, pooled
over entries, so that it depends neither on the order of entries nor on the unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from undertow.programs.program import program
from undertow.tracker.predictors.base import Given, Prediction
from undertow.tracker.predictors.level import TEMPER, Level, LevelState

HISTORY_BYTES = 4_000_000
"""Completed slices that are kept to find a period in."""
PROFILE_BYTES = 8_000_000
"""The largest profile."""
LONGEST_HISTORY, FEWEST_SLICES = 1024, 24
"""Slices that are kept at most; fewer than the latter are of no use."""
CYCLES = 2.5
"""Cycles that must have been seen of a period."""
SHORTEST = 4
"""Slices of a period at least."""
BESIDE = 8
"""Part of a period by which the maximum of the autocorrelation may miss it."""
CLEAR, RISE = 0.3, 0.2
"""Autocorrelation at a period, and how far it must lie above the lowest one before it."""
ALIKE = 0.1
"""Of two such maxima that differ by less the shorter period counts: multiples of a period are periods, too."""
WEEK = 7
"""Cycles of the longer profile."""
FARTHEST = 2.0
"""Standard deviations from the answer at which an observation is cut off before it enters a profile."""
SLOWEST = 0.3
"""Weight of the newest cycle in a profile at least."""

Floats = NDArray[np.float32]
LEVEL = Level()


@dataclass(frozen=True, eq=False)
class Season:
    """What is remembered of earlier cycles. Arrays belong to this value: `learned` writes into them.

    Attributes:
        entries: n.
        given: The period that the user gave, in slices; 0 if it is to be found.
        clock: Slices since the beginning, by time: the phase is clock mod period.
        periods: Those of the profiles; none as long as none is known.
        profiles: (P, n) each, NaN where nothing is known.
        cycles: How often each phase was seen (P,) each.
        latest: The last completed cycle (P, n), NaN where nothing is known; None as long as no period is.
        deviation: Local levels of what the profiles leave (Q, K, n).
        history: The last completed slices (T, n), a ring.
        filled: How many of them there are.
    """

    entries: int
    given: int = 0
    clock: int = 0
    periods: tuple[int, ...] = ()
    profiles: tuple[Floats, ...] = ()
    cycles: tuple[NDArray[np.int32], ...] = ()
    latest: Floats | None = None
    deviation: LevelState | None = None
    history: Floats | None = None
    filled: int = 0

    def copied(self) -> Season:
        """The same in memory of its own."""
        return replace(
            self,
            profiles=tuple(map(np.copy, self.profiles)),
            cycles=tuple(map(np.copy, self.cycles)),
            latest=None if self.latest is None else self.latest.copy(),
            history=None if self.history is None else self.history.copy(),
        )


def start(entries: int, period: int = 0) -> Season:
    """Nothing seen; with a period that is given the profiles begin immediately."""
    kept = min(LONGEST_HISTORY, HISTORY_BYTES // (4 * entries))
    history = np.zeros((kept, entries), np.float32) if kept >= FEWEST_SLICES and not period else None
    season = Season(entries, period, history=history)
    return _with_period(season, period) if period else season


def most_bytes(entries: int, period: int = 0) -> int:
    """The most memory that a season takes."""
    kept = 0 if period else min(LONGEST_HISTORY, HISTORY_BYTES // (4 * entries))
    longest = (WEEK + 2) * (period or int(kept / CYCLES))
    return 4 * entries * kept + min(4 * entries * longest, 2 * PROFILE_BYTES)


def rows(season: Season, ahead: int = 0) -> Floats:
    """What the profiles have for the next slice, or for `ahead` slices after it (Q, n)."""
    return np.stack(
        [one[(season.clock + ahead) % period] for one, period in zip(season.profiles, season.periods, strict=True)]
    )


def predict(season: Season | None, entries: int) -> Prediction:
    """Of the next slice; NaN where no earlier cycle is known."""
    if season is None or season.deviation is None:
        return Prediction(*[unknown(entries)] * 3)
    made: Prediction = predicted(season.deviation, rows(season))[0]
    return made


def unknown(entries: int) -> Array:
    """NaN for every entry (n,), on the device: made once, not sent with every slice."""
    found: Array = _unknown(entries, getattr(jax.config, "jax_default_device", None))
    return found


@lru_cache(maxsize=8)
def _unknown(entries: int, device: Any) -> Array:
    made: Array = jax.device_put(np.full(entries, np.nan, np.float32))
    return made


def at(season: Season, ahead: int) -> tuple[Any, Any, Any]:
    """What comes `ahead` slices after the next one (n,); NaN where unknown.

    With the deviation of now; the profile without it; and as it was in the last cycle.
    """
    if season.deviation is None or season.latest is None:
        return (np.full(season.entries, np.nan, np.float32),) * 3
    made, profile = predicted(season.deviation, rows(season, ahead))
    return np.asarray(made.mean), np.asarray(profile), season.latest[(season.clock + ahead) % len(season.latest)]


def fitted(season: Season | None, values: Any, weights: Any, entries: int) -> tuple[Season | None, Any]:
    """With the deviations of a slice, and what every entry is now that it is known (n,), NaN where it is not."""
    if season is None or season.deviation is None:
        return season, unknown(entries)
    deviation = deviations(season.deviation, rows(season), values, weights)
    return replace(season, deviation=deviation), predicted(deviation, rows(season))[0].mean


def remembered(season: Season, values: Any, weights: Any, completed: Any, std: Any) -> Season:
    """After a slice, which may be empty.

    Args:
        season: As `fitted` has left it.
        values: Observations on the scale of the stream (n,).
        weights: Of these, 0 where nothing is to be learned.
        completed: The answer (n,): it stands in for what was not observed, and bounds what was.
        std: Of an observation around its prediction (n,).
    """
    return with_slice(season, completed_slice(values, weights, completed, std) if takes_in(season) else None)


def completed_slice(values: Any, weights: Any, completed: Any, std: Any, xp: Any = np) -> Any:
    """What is remembered of a slice, as `remembered` is given it."""
    reach = FARTHEST * std
    return xp.where(weights > 0.5, xp.clip(values, completed - reach, completed + reach), completed)


def with_slice(season: Season, full: Any) -> Season:
    """After a slice, a `completed_slice` (n,); None where nothing of it is taken in."""
    if full is None:
        return replace(season, clock=season.clock + 1)
    full = np.asarray(full, np.float32)
    _into_profiles(season, season.clock, full)
    if season.history is not None:
        season.history[season.clock % len(season.history)] = full
    season = replace(season, clock=season.clock + 1, filled=season.filled + 1)
    return _reviewed(season) if season.history is not None and _due(season.filled) else season


def takes_in(season: Season) -> bool:
    """Whether anything but the number of a slice is remembered."""
    return season.deviation is not None or season.history is not None


def due(season: Season, slices: int) -> bool:
    """Whether a period is looked for once this number of further slices has come."""
    return season.history is not None and _due(season.filled + slices)


def skipped(season: Season, slices: int) -> Season:
    """After a gap in which no slice came: what it would have been is not known; −1 where the last one comes again."""
    if slices < 0:
        return replace(season, clock=season.clock + slices, filled=max(season.filled + slices, 0))
    if season.history is not None and slices:
        # A period cannot be seen across a hole: begin again behind a long one.
        filled = 0 if slices > len(season.history) // 4 else season.filled + slices
        held = min(slices, len(season.history))
        last = season.history[(season.clock - 1) % len(season.history)].copy()
        season.history[(season.clock + np.arange(held)) % len(season.history)] = last
        season = replace(season, filled=filled)
    return replace(season, clock=season.clock + slices)


def reframed(season: Season, convert: Any) -> Season:
    """On another scale; `convert` maps numbers on the former to numbers on the new one."""
    if not season.clock:  # nothing is remembered
        return season
    profiles = tuple(np.asarray(convert(one), np.float32) for one in season.profiles)
    history = None if season.history is None else np.array(convert(season.history), np.float32)
    latest = None if season.latest is None else np.array(convert(season.latest), np.float32)
    deviation = None if season.deviation is None else _reframed(season.deviation, rows(season), convert)
    return replace(season, profiles=tuple(map(np.array, profiles)), latest=latest, history=history, deviation=deviation)


def _reframed(deviation: LevelState, profile: Floats, convert: Any) -> LevelState:
    """The levels of the deviations on another scale, by where they are at the next slice and its slope there."""
    row = np.nan_to_num(profile)[:, None]
    mean, count = np.asarray(deviation.mean), np.asarray(deviation.count)[:, None]
    noise = np.sqrt(np.asarray(deviation.squares) / np.maximum(count, 1e-6)) + 1e-6
    upper, lower = convert(row + mean + noise), convert(row + mean - noise)
    moved, slope = convert(row + mean) - convert(row), (upper - lower) / (2 * noise)
    return replace(
        deviation,
        mean=jnp.asarray(moved, jnp.float32),
        squares=jnp.asarray(np.asarray(deviation.squares) * slope**2, jnp.float32),
    )


def ordered(season: Season) -> Floats:
    """The completed slices that are kept, oldest first."""
    if season.history is None:
        return np.zeros((0, season.entries), np.float32)
    size = min(season.filled, len(season.history))
    return season.history[(season.clock - size + np.arange(size)) % len(season.history)]


def period_of(slices: Floats) -> int:
    """The period of slices (T, n), oldest first; 0 where there is none that is clear."""
    count = len(slices)
    longest = int(count / CYCLES)
    if longest < SHORTEST:
        return 0
    centred = _centred(slices)
    correlation = _autocorrelation(centred)[: longest + 2]
    lags = np.arange(SHORTEST, min(longest, len(correlation) - 2) + 1)
    lowest = np.minimum.accumulate(correlation)
    here = correlation[lags]
    peak = (here >= correlation[lags - 1]) & (here >= correlation[lags + 1])
    peak &= (here > CLEAR) & (here - lowest[lags - 1] > RISE)
    if not peak.any():
        return 0
    first = int(lags[peak & (here > here[peak].max() - ALIKE)][0])
    # Noise, and a stream that was late once, move the maximum: what counts is where most slices are like those before.
    margin = 1 + first // BESIDE
    near = range(max(first - margin, SHORTEST), first + margin + 1)
    return max(near, key=lambda lag: _alike(centred, lag))


def _alike(centred: NDArray[np.floating[Any]], lag: int) -> float:
    """How like a slice is to the one that many slices before, 1 at most: the median over all."""
    now, before = centred[lag:], centred[:-lag]
    return float(np.median(2 * (now * before).sum(1) / np.maximum((now**2 + before**2).sum(1), 1e-30)))


def _centred(slices: Floats) -> NDArray[np.floating[Any]]:
    """Each entry without its own straight line."""
    time = np.linspace(-1, 1, len(slices))[:, None]
    centred = slices - slices.mean(0)
    return np.asarray(centred - time * (time * centred).sum(0) / (time**2).sum())


def _autocorrelation(centred: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Pooled over entries."""
    count = len(centred)
    spectrum = np.fft.rfft(centred, 2 * count, axis=0)
    products = np.fft.irfft((np.abs(spectrum) ** 2).sum(1), 2 * count)[:count]
    return np.asarray(products / max(float(products[0]), 1e-30) * count / (count - np.arange(count)))


def _due(filled: int) -> bool:
    """Whether to look for a period: after 24, 36, 48, 72, 96, … slices."""
    while filled > 1.5 * FEWEST_SLICES and filled % 2 == 0:
        filled //= 2
    return filled in (FEWEST_SLICES, 3 * FEWEST_SLICES // 2)


def _reviewed(season: Season) -> Season:
    """With the period that the past has, if it has one and that is not the one in use."""
    past = ordered(season)
    found = period_of(past)
    in_use = season.periods[0] if season.periods else found
    if found == 0 or (season.periods and found % in_use == 0):
        return season
    season = _with_period(season, found)
    for number, one in enumerate(past, season.clock - len(past)):
        _into_profiles(season, number, one)
    return season


def _into_profiles(season: Season, clock: int, full: Floats) -> None:
    if season.latest is not None:
        season.latest[clock % len(season.latest)] = full
    for profile, count, period in zip(season.profiles, season.cycles, season.periods, strict=True):
        phase = clock % period
        count[phase] += 1
        before = np.where(np.isnan(profile[phase]), full, profile[phase])
        profile[phase] = before + max(1 / count[phase], SLOWEST) * (full - before)


def _with_period(season: Season, period: int) -> Season:
    """With empty profiles of this period, and of a week of it where that is not too large."""
    periods = tuple(one for one in (period, WEEK * period) if 4 * one * season.entries <= PROFILE_BYTES)
    return replace(
        season,
        periods=periods,
        profiles=tuple(np.full((one, season.entries), np.nan, np.float32) for one in periods),
        cycles=tuple(np.zeros(one, np.int32) for one in periods),
        latest=np.full((period, season.entries), np.nan, np.float32) if periods else None,
        deviation=no_deviation(season.entries, len(periods)) if periods else None,
    )


def no_deviation(entries: int, profiles: int) -> LevelState:
    """Levels that have seen nothing, for that many profiles."""
    state: LevelState = jax.tree.map(lambda leaf: jnp.stack([leaf] * profiles), LEVEL.init(entries))
    return state


@program()
def predicted(deviation: LevelState, profile: Array) -> tuple[Prediction, Array]:
    """Profiles and deviations (Q, n) as one prediction (n,), and the profiles alone (n,); NaN where unknown."""
    nothing = jnp.zeros(profile.shape[1])
    said = jax.vmap(lambda one: LEVEL.predict(one, Given(nothing, nothing, nothing)))(deviation)
    known = jnp.isfinite(profile)
    # Until two slices were compared with a profile its noise is not known: a guess would widen all error bars.
    judged = known & (deviation.count > 0).any(1)[:, None]
    # Over as many observations: what was compared for longer has lost more.
    fewest = jnp.where(judged, deviation.count, jnp.inf).min(0)
    fair = jnp.where(judged, fewest / jnp.maximum(deviation.count, 1e-6), 1)
    evidence = jax.scipy.special.logsumexp(TEMPER * deviation.score * fair[:, None], axis=1)

    def shares(of: Array) -> Array:
        return jnp.where(of, jax.nn.softmax(jnp.where(of, evidence, -1e30), axis=0), 0)

    share = shares(judged)
    means = jnp.where(known, profile + jnp.where(deviation.seen, said.mean, 0), 0)
    mean = (share * means).sum(0)
    variance = (share * (said.variance + (means - mean) ** 2)).sum(0)
    alone = (shares(jnp.where(judged.any(0), judged, known)) * jnp.where(known, profile, 0)).sum(0)
    noise = (share * said.noise).sum(0)
    made = [jnp.where(judged.any(0), part, jnp.nan) for part in (mean, variance, noise)]
    return Prediction(*made), jnp.where(known.any(0), alone, jnp.nan)


@program()
def deviations(deviation: LevelState, profile: Array, values: Array, weights: Array) -> LevelState:
    """The levels of the deviations after a slice."""
    known = jnp.isfinite(profile)

    def one(state: LevelState, row: Array, use: Array) -> LevelState:
        nothing = jnp.zeros_like(row)
        return LEVEL.learn(state, Given(jnp.where(use, values - row, 0), weights * use, nothing))[0]

    after: LevelState = jax.vmap(one)(deviation, profile, known)
    return after
