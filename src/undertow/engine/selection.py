"""Automatic settings: several candidate models of one stream side by side, scored by prediction.

No fixed settings are best everywhere: a level of its own for every entry helps some streams and harms others. So before
a slice is learned, every candidate predicts each half of it from the other half. Its score is the log of the mean
squared error, averaged over time; the candidate with the least score is selected and gives the result, and all learn.

- An entry that all candidates miss by more than `ERROR_LIMIT` times its own typical size says nothing about which is
  better: it is an outlier. Where one of them comes closer, the errors of the others count up to `ERROR_CAP` times that,
  so that a model that has diverged is found out. (Trimming a fixed fraction instead scores the typical entry only; each
  model's own likelihood favours small variances.)
- Outliers are reported by a robust candidate wherever one predicts nearly as well as the best, or finds few outliers: a
  model that is not robust can learn to follow what moves through a scene, which is an outlier all the same.
- The schedule is successive halving: all candidates during a warm-up, then four, then two: the best, and such a robust
  one if the best is not robust, else the second best. Every now and then one that was dropped gets a trial beside
  them, and stays if it has become better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from undertow.config import Config
from undertow.engine import functional
from undertow.engine.history import History
from undertow.engine.output import CrossPrediction, Output
from undertow.engine.state import State, init, precision
from undertow.inputs.dense import Slice
from undertow.inputs.scaling import Scaling
from undertow.inputs.sparse import AnySlice
from undertow.inputs.transfer import DeviceSlice
from undertow.model.types import Contaminated
from undertow.results import Result

SCORE_MEMORY = 0.9
"""Weight of a score that is one slice old."""
ERROR_LIMIT, ERROR_CAP = 3.0, 10.0
TYPICAL_STEP = 0.1
"""How fast an entry's typical size follows, per observation."""
SCORE_MARGIN = 0.3
"""Difference in score up to which a robust candidate reports the outliers."""
FEW_OUTLIERS = 0.1
"""Fraction of outliers up to which it does in any case."""
WARM_UP = 20
"""Scored slices until only two candidates are left."""
HALVING, AFTER_HALVING = 10, 4
"""Scored slices until the first halving, and candidates that are left then: some need a while to converge."""
TRIAL_PAUSE, TRIAL_LENGTH = 120, 40
"""Slices between trials of dropped candidates, and the length of a trial."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model of the stream.

    Attributes:
        state: Its state.
        score: Log of its mean squared prediction error, averaged over time.
        scored: How many slices that average is over.
    """

    state: State
    score: float = 0.0
    scored: int = 0

    @property
    def order(self) -> tuple[bool, float]:
        """Sorts candidates, the best first; those without a score last."""
        return self.scored == 0, self.score

    @property
    def outlier_fraction(self) -> float:
        """The fraction of outliers that the model expects; of the default outlier model."""
        outliers = self.state.core.outliers
        assert isinstance(outliers, Contaminated)
        return float(outliers.rate_a / (outliers.rate_a + outliers.rate_b))

    def with_score(self, score: float) -> Candidate:
        """With another score in the running average; the plain average as long as they are few."""
        weight = max(1 - SCORE_MEMORY, 1 / (self.scored + 1))
        return replace(self, score=self.score + weight * (score - self.score), scored=self.scored + 1)


@dataclass(frozen=True, eq=False)
class Selection:
    """All models of one stream.

    Attributes:
        configs: Settings of all that may take part.
        candidates: Those that do, in no order.
        steps: Number of slices learned.
        typical: Typical |y| of every entry, NaN where nothing was seen; empty where only observed entries are kept.
        changed: Slice at which a trial last began or ended; 0 during the warm-up.
        next_trial: Position in `configs` of the next to be tried again.
        history: What is remembered of the slices before.
    """

    configs: tuple[Config, ...]
    candidates: tuple[Candidate, ...]
    steps: int
    typical: NDArray[np.float64]
    changed: int
    next_trial: int
    history: History = field(default_factory=History)

    @property
    def shape(self) -> tuple[int, ...]:
        """(I_1, …, I_N)."""
        return self.candidates[0].state.shape

    @property
    def sparse(self) -> bool:
        """Whether only observed entries are kept."""
        return self.candidates[0].state.entry_capacity is not None

    @property
    def selected(self) -> Candidate:
        """The candidate that predicts best."""
        return min(self.candidates, key=lambda candidate: candidate.order)

    @property
    def outlier_reporter(self) -> Candidate:
        """The selected one, or if that is not robust, the best robust one that is nearly as good or finds few."""
        selected = self.selected
        if selected.state.config.robust:
            return selected
        scored = (candidate for candidate in self.candidates if candidate.state.config.robust and candidate.scored)
        for robust in sorted(scored, key=lambda candidate: candidate.order):
            if robust.score < selected.score + SCORE_MARGIN or robust.outlier_fraction < FEW_OUTLIERS:
                return robust
        return selected

    def copy(self) -> Selection:
        """The same in memory of its own."""
        copies = (replace(candidate, state=candidate.state.copy()) for candidate in self.candidates)
        return replace(self, candidates=tuple(copies))


def start(configs: tuple[Config, ...], shape: tuple[int, ...], entries: int | None = None) -> Selection:
    """Candidates that have seen nothing. With `entries`, see `undertow.init`."""
    candidates = tuple(Candidate(init(config, shape, entries)) for config in configs)
    typical = np.full(shape, np.nan) if entries is None else np.empty(0)
    return Selection(configs, candidates, steps=0, typical=typical, changed=0, next_trial=0)


def transfer(selection: Selection, validated: AnySlice) -> DeviceSlice | None:
    """Send a slice to the device as these candidates want it, while they may still be learning from the one before.

    Returns:
        The slice; None where its layout depends on the one before: where only observed entries are kept.
    """
    if not isinstance(validated, Slice):
        return None
    given = DeviceSlice(validated)
    for state in (candidate.state for candidate in selection.candidates):
        if state.unit > 0:
            with precision(state.config):
                given.values(Scaling.of(state.config, state.unit))
                given.mask()
    return given


def step(selection: Selection, validated: AnySlice, given: DeviceSlice | None = None) -> tuple[Selection, Result]:
    """Predict, score, learn; the selected candidate gives the result.

    Args:
        selection: A single candidate is donated, as `functional.step_donating` says. Several are copied first: whatever
            interrupts the step, all are as before or all as after it.
        validated: The slice.
        given: The same on the device, from `transfer`.

    Returns:
        The selection after the slice, and the slice as the selected candidate sees it.
    """
    first = selection.candidates[0].state
    history, verdict = selection.history.judge(validated, first.unit, selection.steps, first.config.window)
    if verdict.revised:
        selection = start(selection.configs, selection.shape, first.entry_capacity)
    selection = replace(selection, history=history)
    given = given or DeviceSlice.of(validated, first.entry_capacity)

    def with_notes(output: Output) -> Output:
        return replace(output, noticed=output.noticed | int(verdict.flags), repeating_since=int(verdict.since))

    if verdict.frozen:
        return selection, Result(with_notes(functional.latest(selection.selected.state, given)))
    predictions = [_cross_predict(selection, candidate, given) for candidate in selection.candidates]
    selection = with_scores(selection, validated, predictions)
    candidates = selection.candidates
    selected, reporter = (candidates.index(one) for one in (selection.selected, selection.outlier_reporter))
    own = candidates if len(candidates) == 1 else selection.copy().candidates
    states, outputs = zip(
        *(
            functional.step_donating(candidate.state, given, prediction)
            for candidate, prediction in zip(own, predictions, strict=True)
        ),
        strict=True,
    )
    selection = replace(
        selection,
        candidates=tuple(replace(one, state=state) for one, state in zip(candidates, states, strict=True)),
        steps=selection.steps + 1,
        typical=_with_typical(selection, validated),
    )
    return scheduled(selection), Result(with_notes(outputs[selected]), with_notes(outputs[reporter]))


def _cross_predict(selection: Selection, candidate: Candidate, given: DeviceSlice) -> CrossPrediction | None:
    """Only where it is needed: to be scored, or to find outliers in hindsight."""
    if len(selection.configs) == 1 and candidate.state.config.robust:
        return None
    return functional.cross_predict(candidate.state, given)


def _with_typical(selection: Selection, validated: AnySlice) -> NDArray[np.float64]:
    """A running median of |y| per entry, where there are several to be scored: a step up or down by a tenth."""
    typical = selection.typical
    if len(selection.configs) == 1 or not isinstance(validated, Slice):
        return typical
    size = np.abs(validated.values.astype(np.float64))
    step = np.where(size > typical, 1 + TYPICAL_STEP, 1 / (1 + TYPICAL_STEP))
    first = np.where(size > 0, size, np.nan)  # a size of 0 could not grow by tenths
    return np.where(validated.mask, np.where(np.isnan(typical), first, typical * step), typical)


# Scores


def with_scores(selection: Selection, validated: AnySlice, predictions: list[CrossPrediction | None]) -> Selection:
    """The selection with the prediction errors of this slice in the scores."""
    candidates = selection.candidates
    counted = [
        None if prediction is None or not _experienced(selection, candidate) else prediction
        for candidate, prediction in zip(candidates, predictions, strict=True)
    ]
    if len(candidates) == 1 or not validated.mask.any() or not any(counted) or np.isnan(selection.typical).all():
        return selection
    # Errors are measured in the typical size of all entries, so that no unit is too large to be squared.
    unit = float(np.nanmedian(selection.typical))
    limit = ERROR_LIMIT * np.fmax(selection.typical[validated.mask] / unit, 1)
    errors = [
        None if prediction is None else np.minimum(_errors(prediction, one.state, validated, unit), ERROR_CAP * limit)
        for one, prediction in zip(candidates, counted, strict=True)
    ]
    informative = np.min([error for error in errors if error is not None], axis=0) < limit
    if not informative.any():
        return selection
    scored = (
        one if error is None else one.with_score(_log_mean_square(error[informative], unit))
        for one, error in zip(candidates, errors, strict=True)
    )
    return replace(selection, candidates=tuple(scored))


def _experienced(selection: Selection, candidate: Candidate) -> bool:
    """A candidate that joined late is scored once its window is full."""
    return candidate.state.steps == selection.steps or candidate.state.steps >= candidate.state.config.window


def _errors(prediction: CrossPrediction, state: State, validated: AnySlice, unit: float) -> NDArray[np.float64]:
    """Absolute errors of the observed entries."""
    predicted = Scaling.of(state.config, state.unit).unscaled(np.nan_to_num(prediction.mean))[validated.mask]
    truth = validated.values[validated.mask].astype(np.float64)
    errors: NDArray[np.float64] = np.abs(predicted / unit - truth / unit)
    return errors


def _log_mean_square(errors: NDArray[np.float64], unit: float) -> float:
    return float(np.log(np.mean(errors**2) + np.finfo(np.float32).tiny)) + 2 * math.log(unit)


# Schedule


def scheduled(selection: Selection) -> Selection:
    """Successive halving during the warm-up, then two candidates and a third on trial now and then."""
    if len(selection.candidates) < 2 or len(selection.configs) <= 2:
        return selection
    if selection.changed == 0:
        return _halved(selection)
    elapsed = selection.steps - selection.changed
    if len(selection.candidates) > 2:
        return _best_two(selection) if elapsed >= TRIAL_LENGTH else selection
    return _with_trial(selection) if elapsed >= TRIAL_PAUSE else selection


def _halved(selection: Selection) -> Selection:
    scored = max(candidate.scored for candidate in selection.candidates)
    if scored >= WARM_UP:
        return _best_two(selection)
    if scored < HALVING or len(selection.candidates) <= AFTER_HALVING:
        return selection
    best = sorted(selection.candidates, key=lambda candidate: candidate.order)[:AFTER_HALVING]
    return replace(selection, candidates=tuple(best))


def _best_two(selection: Selection) -> Selection:
    """The selected one and the one that reports its outliers; if that is the same, the second best."""
    best, reporter = selection.selected, selection.outlier_reporter
    others = sorted((one for one in selection.candidates if one is not best), key=lambda candidate: candidate.order)
    return replace(selection, candidates=(best, others[0] if reporter is best else reporter), changed=selection.steps)


def _with_trial(selection: Selection) -> Selection:
    """With the next of the dropped candidates, which has seen nothing."""
    running = {candidate.state.config for candidate in selection.candidates}
    dropped = [position for position, config in enumerate(selection.configs) if config not in running]
    position = next((position for position in dropped if position >= selection.next_trial), dropped[0])
    trial = Candidate(init(selection.configs[position], selection.shape))
    return replace(
        selection,
        candidates=(*selection.candidates, trial),
        changed=selection.steps,
        next_trial=position + 1,
    )
