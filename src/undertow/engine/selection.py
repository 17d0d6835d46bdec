"""Automatic settings: a few models of one stream side by side, and the one that foretells best speaks.

No fixed settings are best everywhere: a level of its own for every entry is the making of some streams and the ruin of
others. So before a slice is learned, every model foretells each half of it from the other half; the errors are squared,
averaged, and the log of that averaged over time. The model with the least average gives the answer, all go on learning.

- An entry that all models miss by more than `LIMIT` times its own typical size says nothing about which is better:
  outliers are nobody's fault. Where one of them comes closer, the errors of the others count up to `MOST` times that,
  so that a model gone astray is found out. (Trimming a fixed share instead judges the typical entry only; each model's
  own likelihood flatters small variances.)
- Outliers are told by a robust model wherever one foretells nearly as well as the best, or calls few entries outliers:
  who walks through a picture is foretold well by a model that has learned to follow, and is an outlier all the same.
- After the opening only two stay: the best, and such a robust one if the best is not robust, else the second best.
  Every now and then one that left gets a new start beside them, and stays if it has become better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.config import Config, make_config
from undertow.engine import functional
from undertow.engine.functional import State
from undertow.engine.output import CrossPrediction
from undertow.inputs.dense import Slice
from undertow.inputs.packing import FOR_ENTRIES, Piece, room_for
from undertow.inputs.scaling import Given, Scaling
from undertow.results import Result

VARIANTS: tuple[dict[str, Any], ...] = (
    {"level": False, "robust": True, "noise": "entry", "scale": "linear", "forgetting": 0.95},
    {"level": False, "robust": True, "noise": "entry", "scale": "linear", "forgetting": 0.8},
    {"level": True, "robust": True, "noise": "entry", "scale": "linear", "forgetting": 0.95},
    {"level": True, "robust": False, "noise": "shared", "scale": "linear", "forgetting": 0.95},
    {"level": False, "robust": False, "noise": "shared", "scale": "linear", "forgetting": 0.95},
    {"level": True, "robust": False, "noise": "entry", "scale": "log", "forgetting": 0.95},
    {"level": True, "robust": True, "noise": "entry", "scale": "log", "forgetting": 0.95},
)
"""What is tried where a setting is not given."""
MEMORY = 0.9
"""What a slice back counts in a model's score."""
LIMIT = 3.0
MOST = 10.0
TYPICAL_STEP = 0.1
"""How fast an entry's typical size follows, per observation."""
NEARLY = 0.3
"""Difference in score up to which a robust model may tell the outliers."""
CALM = 0.1
"""Share of outliers up to which it may in any case."""
OPENING = 20
"""Judged slices until only two are left."""
HALF_TIME, HALF = 10, 4
"""After so many judged slices only so many are left: some need a while to get going."""
REST, TRIAL = 120, 40
"""Slices between trials of those that left, and the length of a trial."""
SMALLEST_RANK, LARGEST_RANK = 16, 64
MOST_FOR_ENTRIES = 16
"""Components of a stream of which only observed entries are kept: rows are many there, and cost R² each."""


@dataclass(frozen=True, eq=False)
class Member:
    """One model of the panel."""

    state: State
    score: float = 0.0
    """Log of its squared error, averaged over time."""
    judged: int = 0
    """How many slices that average is over."""


@dataclass(frozen=True, eq=False)
class Panel:
    """All models of one stream."""

    configs: tuple[Config, ...]
    """All that may take part."""
    members: tuple[Member, ...]
    """Those that do, in no order."""
    steps: int
    """Slices seen."""
    typical: NDArray[np.float64]
    """Typical |y| of every entry, NaN where nothing was seen; empty where only observed entries are kept."""
    changed: int
    """Slice at which somebody last joined or left."""
    next_trial: int
    """Place in `configs` of the next to be tried again."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(I_1, …, I_N)."""
        return self.members[0].state.shape

    @property
    def speaker(self) -> Member:
        """The member that foretells best."""
        return min(self.members, key=_standing)


def candidates(preset: str, given: dict[str, Any], shape: tuple[int, ...]) -> tuple[Config, ...]:
    """Every configuration to be tried: what is given stays as it is, what is not is chosen."""
    if preset != "default":
        return (make_config(preset, **given),)
    pinned = {name: value for name, value in given.items() if value is not None}
    if pinned.get("outliers") == "gaussian_gamma" or pinned.get("start") == "svd":
        return (make_config(preset, **pinned),)  # the paper's parts know no variants
    size = {"max_rank": largest_rank(shape)}
    configs = [make_config(preset, **{**size, **variant, **pinned}) for variant in VARIANTS]
    return tuple(dict.fromkeys(configs))


def for_entries(preset: str, given: dict[str, Any], shape: tuple[int, ...]) -> tuple[Config, ...]:
    """The one configuration for streams of which only observed entries are kept."""
    size = {"max_rank": min(largest_rank(shape), MOST_FOR_ENTRIES)} if preset == "default" else {}
    pinned = {name: value for name, value in given.items() if value is not None}
    settings = {**size, **FOR_ENTRIES, **pinned} if preset in ("default", "fixed") else pinned
    return (make_config(preset, **settings),)


def largest_rank(shape: tuple[int, ...]) -> int:
    """Room for components: a picture needs more of them than a small table."""
    return min(max(SMALLEST_RANK, round(math.sqrt(math.prod(shape)) / 4)), LARGEST_RANK)


def init(configs: tuple[Config, ...], shape: tuple[int, ...], entries: int | None = None) -> Panel:
    """All of them, none of which has seen anything. With `entries`, see `functional.init`."""
    members = tuple(Member(functional.init(config, shape, entries)) for config in configs)
    typical = np.full(shape, np.nan) if entries is None else np.empty(0)
    return Panel(configs, members, steps=0, typical=typical, changed=0, next_trial=0)


def sent(panel: Panel, piece: Piece) -> Given | None:
    """A slice on its way to the device, as these models want it; they may still be learning from the one before.

    None where the way of a slice depends on that one: where only observed entries are kept.
    """
    if not isinstance(piece, Slice):
        return None
    given = Given(piece)
    for state in (member.state for member in panel.members):
        if state.unit > 0:
            with functional.scope(state.config):
                given.values(Scaling.of(state.config, state.unit))
                given.mask()
    return given


def learn(panel: Panel, piece: Piece, given: Given | None = None) -> tuple[Panel, Result]:
    """Foretell, judge, learn, let the best speak. A panel of one is used up, as `functional.learn` says.

    Several are copied first: whatever interrupts the learning, it finds either all as before or all as after. `given`
    is the slice if it was `sent` before.
    """
    given = given or Given(piece, room_for(piece, panel.members[0].state.entries))
    cross_predicted = [_cross_predict(panel, member, given) for member in panel.members]
    panel = _judged(panel, piece, cross_predicted)
    speaker, judge = (panel.members.index(member) for member in (panel.speaker, _judge_of_outliers(panel)))
    own = panel.members if len(panel.members) == 1 else copied(panel).members
    learned = [functional.learn(member.state, given, one) for member, one in zip(own, cross_predicted, strict=True)]
    members = (replace(member, state=state) for member, (state, _) in zip(panel.members, learned, strict=True))
    typical = panel.typical
    if len(panel.configs) > 1 and isinstance(piece, Slice):  # else there is nobody to be judged
        typical = _typical(typical, piece)
    panel = replace(panel, members=tuple(members), steps=panel.steps + 1, typical=typical)
    return _seated(panel), Result(learned[speaker][1], learned[judge][1])


def copied(panel: Panel) -> Panel:
    """The same panel in memory of its own."""
    members = tuple(replace(member, state=functional.copied(member.state)) for member in panel.members)
    return replace(panel, members=members)


def _cross_predict(panel: Panel, member: Member, given: Given) -> CrossPrediction | None:
    """Only where it is needed: to be judged, or to find outliers in hindsight."""
    if len(panel.configs) == 1 and member.state.config.robust:
        return None
    return functional.cross_predict(member.state, given)


def _judged(panel: Panel, piece: Piece, cross_predicted: list[CrossPrediction | None]) -> Panel:
    """The panel with the errors of this slice in every member's score."""
    if len(panel.members) == 1 or not piece.mask.any() or all(one is None for one in cross_predicted):
        return panel
    ready = [
        one is not None and _experienced(panel, member)
        for one, member in zip(cross_predicted, panel.members, strict=True)
    ]
    truth = piece.values[piece.mask].astype(np.float64)
    typical = panel.typical[piece.mask]
    if np.isnan(panel.typical).all():
        return panel
    # Errors are measured in the typical size of all, so that no unit is too large to be squared.
    general = float(np.nanmedian(panel.typical))
    limit = LIMIT * np.fmax(typical / general, 1)
    errors = [
        np.minimum(np.abs(_in_data_units(one, member.state)[piece.mask] / general - truth / general), MOST * limit)
        for one, member, counts in zip(cross_predicted, panel.members, ready, strict=True)
        if counts and one is not None
    ]
    if not errors:
        return panel
    telling = np.min(errors, axis=0) < limit
    if not telling.any():
        return panel
    least = np.finfo(np.float32).tiny
    scores = iter([float(np.log(np.mean(error[telling] ** 2) + least)) + 2 * math.log(general) for error in errors])
    members = (
        _with_score(member, next(scores)) if counts else member
        for member, counts in zip(panel.members, ready, strict=True)
    )
    return replace(panel, members=tuple(members))


def _in_data_units(cross_predicted: CrossPrediction, state: State) -> NDArray[np.float64]:
    return Scaling.of(state.config, state.unit).unscaled(np.nan_to_num(cross_predicted.mean))


def _with_score(member: Member, score: float) -> Member:
    """The running average, of all slices as long as they are few."""
    weight = max(1 - MEMORY, 1 / (member.judged + 1))
    return replace(member, score=member.score + weight * (score - member.score), judged=member.judged + 1)


def _experienced(panel: Panel, member: Member) -> bool:
    """One that joined late is judged once its window is full."""
    return member.state.steps == panel.steps or member.state.steps >= member.state.config.window


def _judge_of_outliers(panel: Panel) -> Member:
    """The speaker, or if it is not robust, the best robust member that foretells nearly as well or is calm."""
    speaker = panel.speaker
    if speaker.state.config.robust:
        return speaker
    robust = sorted((one for one in panel.members if one.state.config.robust and one.judged), key=_standing)
    sound = (one for one in robust if one.score < speaker.score + NEARLY or functional.outlier_share(one.state) < CALM)
    return next(sound, speaker)


def _best_two(panel: Panel) -> Panel:
    """The panel with the speaker and the judge of its outliers; if that is the same, with the second best."""
    best, judge = panel.speaker, _judge_of_outliers(panel)
    others = sorted((one for one in panel.members if one is not best), key=_standing)
    return replace(panel, members=(best, others[0] if judge is best else judge), changed=panel.steps)


def _standing(member: Member) -> tuple[bool, float]:
    return member.judged == 0, member.score


def _typical(typical: NDArray[np.float64], piece: Slice) -> NDArray[np.float64]:
    """A running median of |y| per entry: a step up or down by a tenth."""
    size = np.abs(piece.values.astype(np.float64))
    step = np.where(size > typical, 1 + TYPICAL_STEP, 1 / (1 + TYPICAL_STEP))
    first = np.where(size > 0, size, np.nan)  # a size of 0 could not grow by tenths
    return np.where(piece.mask, np.where(np.isnan(typical), first, typical * step), typical)


def _seated(panel: Panel) -> Panel:
    """Who stays, who leaves, who gets another trial."""
    if len(panel.members) < 2 or len(panel.configs) <= 2:
        return panel
    since = panel.steps - panel.changed
    if panel.changed == 0:  # the opening
        played = max(member.judged for member in panel.members)
        if played >= OPENING:
            return _best_two(panel)
        if played < HALF_TIME or len(panel.members) <= HALF:
            return panel
        return replace(panel, members=tuple(sorted(panel.members, key=_standing)[:HALF]))
    if len(panel.members) > 2:
        return _best_two(panel) if since >= TRIAL else panel
    if since < REST:
        return panel
    playing = {member.state.config for member in panel.members}
    waiting = [place for place, config in enumerate(panel.configs) if config not in playing]
    place = next((place for place in waiting if place >= panel.next_trial), waiting[0])
    newcomer = Member(functional.init(panel.configs[place], panel.shape))
    return replace(panel, members=(*panel.members, newcomer), changed=panel.steps, next_trial=place + 1)
