"""How an update went: flags, which of them are harmless, and what to do about each. Loads no compiler."""

from __future__ import annotations

from dataclasses import dataclass

from undertow.model.flags import Flags

__all__ = ["ADVICE", "HARMLESS", "Flags", "Status"]

ADVICE: dict[Flags, str] = {
    Flags.EMPTY: "nothing was observed in this slice: the mean is what was expected before it, see std",
    Flags.NOT_CONVERGED: "the sweeps ended at max_iterations (default 30, 6 in the paper's preset, by "
    "intention) before the slice converged: raise it if this goes on, for example with --set max_iterations=60",
    Flags.RANK_FULL: "all components that there may be are in use: raise max_rank of a RobustCP if the error matters "
    "more than the time",
    Flags.RANK_ZERO: "no structure was found above the noise: wait for more slices, or lengthen the window",
    Flags.MANY_OUTLIERS: "most of this slice does not fit the factors: the scene has changed, or the slice is bad",
    Flags.CHANGED: "this slice did not fit what was learned before it: the scene has changed, "
    "errors may be large for a while",
    Flags.REPEATED: "the data repeat themselves: nothing is learned from them until they change, check the source",
    Flags.RESTARTED: "the first data were of another size by far: the model has started anew with this slice",
    Flags.FILL_VALUES: "well-known fill values (9.96921e36, 1e20, 1e35, 1e36) were taken as missing: "
    "set them to NaN to be sure",
    Flags.NO_NOISE: "the data are fitted to the last digit: the error bars are a lower bound, do not rely on them",
    Flags.SINGULAR: "some rows could not be solved and kept their last values: use dtype='float64'",
    Flags.OUT_OF_RANGE: "some values are a billion times the stream's usual size and were left out as outliers: "
    "check the data, or start a new model if the unit has changed",
    Flags.NOT_FINITE: "the arithmetic overflowed, and this slice was left out: use dtype='float64'",
    Flags.SLICE_OFF: "most of this slice is wrong and nothing was learned from it: check the source, "
    "a change that lasts is believed after a few slices",
    Flags.ROW_OFF: "most of a row is wrong, see events: check that sensor, router or line",
    Flags.LASTING_CHANGE: "some entries have changed for good, see events: their new level has been taken over",
    Flags.DEAD_SENSOR: "some entries give the same number for ever, see events: check these sensors",
}
"""What each flag means and what to do about it, one sentence each."""

HARMLESS = Flags.RANK_FULL | Flags.RANK_ZERO | Flags.EMPTY | Flags.REPEATED | Flags.FILL_VALUES
"""Worth knowing, but the result is as good as the data allow."""

_EVENTS = {Flags.ROW_OFF: "row off", Flags.LASTING_CHANGE: "changed", Flags.DEAD_SENSOR: "dead"}


@dataclass(frozen=True)
class Status:
    """How an update went. ``str(status)`` is "ok" or the advice, one sentence per flag.

    Attributes:
        flags: what was noticed.
        since: the first of the slices that are all equal, counted from 0, where the data repeat themselves; else None.
        where: what is wrong beyond single entries, by name, such as "row off: src A"; "" if nothing is.

    Examples:
        >>> from undertow.diagnostics import Flags, Status
        >>> str(Status())
        'ok'
        >>> status = Status(Flags.RANK_FULL | Flags.SINGULAR)
        >>> status.ok, status.codes
        (False, ('RANK_FULL', 'SINGULAR'))
    """

    flags: Flags = Flags.NONE
    since: int | None = None
    where: str = ""

    @property
    def ok(self) -> bool:
        """False where the result is worse than the data would allow, or the slice itself is suspicious."""
        return not self.flags & ~HARMLESS

    @property
    def codes(self) -> tuple[str, ...]:
        """Names of the flags that are set, for machines."""
        return tuple(flag.name or "" for flag in Flags if flag and flag in self.flags)

    @property
    def advice(self) -> tuple[str, ...]:
        """One sentence for each flag that is set."""
        repeat = "the data repeat themselves"
        known = repeat if self.since is None else f"{repeat} since slice {self.since}"
        named = dict(part.split(": ", 1) for part in self.where.split("; ") if ": " in part)
        found = []
        for flag, text in ADVICE.items():
            if flag in self.flags:
                rows = named.get(_EVENTS.get(flag, ""))
                said = text if rows is None else text.replace(", see events", f" ({rows})")
                found.append(said.replace(repeat, known))
        return tuple(found)

    def __str__(self) -> str:
        return "; ".join(self.advice) or "ok"

    def _repr_html_(self) -> str:
        from undertow.view import notebook  # not needed elsewhere

        return notebook.status(self)
