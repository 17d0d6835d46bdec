"""A model of one stream and what the host remembers of it: what `undertow.RobustCP` and its checkpoints carry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from undertow.config import Config
from undertow.engine import functional
from undertow.engine.history import History
from undertow.engine.output import Output
from undertow.engine.state import State, init, precision
from undertow.inputs.dense import Slice
from undertow.inputs.scaling import Scaling
from undertow.inputs.sparse import AnySlice
from undertow.inputs.transfer import DeviceSlice
from undertow.results import Result


@dataclass(frozen=True, eq=False)
class Learner:
    """State and history of one stream.

    Attributes:
        state: Of the model.
        history: What is remembered of the slices before.
    """

    state: State
    history: History = field(default_factory=History)

    @property
    def layout(self) -> tuple[tuple[int, ...], bool]:
        """Shape of a slice, and whether only observed entries are kept."""
        return self.state.shape, self.state.entry_capacity is not None

    def copy(self) -> Learner:
        """The same in memory of its own."""
        return replace(self, state=self.state.copy())


def start(config: Config, shape: tuple[int, ...], entries: int | None = None) -> Learner:
    """A model that has seen nothing. With `entries`, see `undertow.init`."""
    return Learner(init(config, shape, entries))


def transfer(learner: Learner, validated: AnySlice) -> DeviceSlice | None:
    """Send a slice to the device as this model wants it, while that may still be learning from the one before.

    Returns:
        The slice; None where its layout depends on the one before: where only observed entries are kept.
    """
    if not isinstance(validated, Slice):
        return None
    given, state = DeviceSlice(validated), learner.state
    if state.unit > 0:
        with precision(state.config):
            given.values(Scaling.of(state.config, state.unit))
            given.mask()
    return given


def step(learner: Learner, validated: AnySlice, given: DeviceSlice | None = None) -> tuple[Learner, Result]:
    """Learn from a slice, unless it only repeats those before it; start anew where the first ones were bad.

    Args:
        learner: Its state is donated, as `functional.step_donating` says.
        validated: The slice.
        given: The same on the device, from `transfer`.

    Returns:
        The model after the slice, and the slice as it sees it.
    """
    state = learner.state
    history, verdict = learner.history.judge(validated, state.unit, state.steps, state.config.window)
    if verdict.revised:
        state = init(state.config, state.shape, state.entry_capacity)
    given = given or DeviceSlice.of(validated, state.entry_capacity)

    def with_notes(output: Output) -> Result:
        noticed, since = output.noticed | int(verdict.flags), int(verdict.since)
        return Result(replace(output, noticed=noticed, repeating_since=since))

    if verdict.frozen:
        return Learner(state, history), with_notes(functional.latest(state, given))
    cross_predicted = None if state.config.robust else functional.cross_predict(state, given)
    after, output = functional.step_donating(state, given, cross_predicted)
    return Learner(after, history), with_notes(output)
