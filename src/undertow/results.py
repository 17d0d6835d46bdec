"""Result: one slice as Undertow sees it, or one slice of every member of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from undertow.diagnostics import Flags, Status
from undertow.engine.output import Output
from undertow.inputs.labels.names import Labels
from undertow.inputs.labels.placing import Way
from undertow.view import notebook, slices
from undertow.view.explanation import Explanation, event_sentences, explanation
from undertow.view.names import Names, in_words
from undertow.view.table import Table

Floats = NDArray[np.floating[Any]]


class Interval(NamedTuple):
    """Bounds of every entry: arrays as those of the result that gives them."""

    lower: Any
    upper: Any


class Result:
    """A slice in the units of the data: what it should be, how sure that is, and what does not fit.

    Arrays have the shape of the slice, (I_1, …, I_N). Where only observed entries are kept, they have one number for
    each entry that was given, in the same order. A fleet's result has members as the first axis of every array, in the
    order of `members`; numbers become arrays (n,), and `result[position]` is the result of one member.

    Arrays are of the kind of the slice: of NumPy, or with its labels as `xarray.DataArray`, or as frame or series of
    pandas or polars. `plain(name)` gives those of NumPy.

    A slice that came in single precision, or as integers of up to 16 bits, is reported in single precision; one that
    comes out of the model's memory (`smoothed`, `at`) in double.

    Everything is fetched from the device when it is first asked for, and copied to the host asynchronously before that
    where the last slices were asked for the same: a program that asks for the results of one slice after it has handed
    over the next one keeps both the host and the device busy.

    Attributes:
        members: for fleets, the number of each member (n,); else None.
        present: for fleets, which members had a slice (n,). Those that had none have NaN, and −1 for `rank`,
            `iterations` and `flags`; else None.

    Examples:
        >>> import numpy as np, undertow as ut
        >>> result = ut.RobustCP(max_rank=3, window=4).update(np.ones((6, 5)))
        >>> result.mean.shape, result.std.shape, result.rank, result.status.codes
        ((6, 5), (6, 5), 1, ('NO_NOISE',))
    """

    def __init__(
        self,
        source: Output | Future[Result],
        members: NDArray[np.int64] | None = None,
        present: NDArray[np.bool_] | None = None,
    ) -> None:
        """Results are made by `update` and its like, not by users.

        Args:
            source: where everything comes from, or the result that this one will be.
            members: for fleets, the number of each member.
            present: for fleets, which members had a slice.
        """
        self._source = source
        self.members = members
        self.present = present
        self._fleet: tuple[Result, int] | None = None
        self._way: Way | None = None
        self._labels: Labels | None = None

    @cached_property
    def mean(self) -> Floats:
        """What every entry should be, missing ones included: its low-rank part, and its level where there is one."""
        return self._array("mean")

    @cached_property
    def low_rank(self) -> Floats:
        """The low-rank part: of `RobustCP` `mean` without the levels, of a tracker what its CP model says."""
        return self._array("low_rank")

    @cached_property
    def weights(self) -> Any:
        """How much each predictor of a tracker counted, by name; of a fleet of trackers (n, K); of `RobustCP` {}."""
        return self._output.weights() if hasattr(self._output, "weights") else {}

    @cached_property
    def predictions(self) -> Mapping[str, Floats]:
        """Of a tracker what every predictor says of each entry, of an observed one without having seen it; else {}."""
        made: Mapping[str, Floats] = getattr(self._output, "predictions", dict)()
        return {name: self._labelled(values) for name, values in made.items()}

    @cached_property
    def events(self) -> Any:
        """What is wrong beyond single entries, by name: `undertow.tracker.events.Named`, or n of them; else None."""
        return getattr(self._output, "named", None)

    @cached_property
    def std(self) -> Floats:
        """Predictive standard deviation: about 95 % of new, clean observations fall within ±1.96 std of `mean`."""
        return self._array("std")

    def interval(self, level: float = 0.95) -> Interval:
        """Where this fraction of new, clean observations lies, by quantiles on the scale of the stream.

        On a curved scale it is not symmetric about `mean`, and does not reach below zero where nothing ever did; on the
        linear one that of 95 % is `mean` ± 1.96 `std`.

        Args:
            level: The fraction, above 0 and below 1.
        """
        given: Any = level
        if isinstance(given, bool) or not isinstance(given, Real):
            raise TypeError(f"level must be a number, got {level!r}: 0.95 is the interval of 95 %.")
        if not 0 < level < 1:
            raise ValueError(f"level must be above 0 and below 1, got {level!r}: 0.95 is the interval of 95 %.")
        return Interval(*(self._labelled(one) for one in self._ends(float(level))))

    @cached_property
    def low_rank_std(self) -> Floats:
        """Standard deviation of `mean` alone, without noise. Mean-field inference makes it too small."""
        return self._array("low_rank_std")

    @cached_property
    def outliers(self) -> Floats:
        """Expected value of the outlier in every entry; 0 where nothing was observed."""
        return self._array("outliers")

    @cached_property
    def outlier_probability(self) -> Floats:
        """Probability that an observed entry is an outlier; 0 where nothing was observed."""
        return self._array("outlier_probability")

    @cached_property
    def innovations(self) -> Floats:
        """How far each observation lies from what was predicted without it, in standard deviations.

        NaN where nothing was observed or predicted, and everywhere for models that do not predict, such as `RobustCP`.
        """
        if hasattr(self._output, "innovations"):
            return self._array("innovations")
        return self._labelled(np.full_like(self.plain("mean"), np.nan))

    @cached_property
    def novelty(self) -> Any:
        """How unlike the slice, and those just before it, are to everything that came earlier: float, or (n,) float64.

        About 1 is usual, whatever the stream; a tracker follows what lasts, but this does not get used to it soon. NaN
        in the first slices, where nothing was observed, for slices of more than 40,000 entries, and of `RobustCP`.
        """
        if hasattr(self._output, "novelty"):
            return self._number("novelty", float)
        return float("nan") if self.members is None else np.full(len(self), np.nan)

    @cached_property
    def rank(self) -> Any:
        """Active components: int, or (n,) int32."""
        return self._number("rank", int)

    @cached_property
    def noise_std(self) -> Any:
        """Typical noise standard deviation: float, or (n,) float64."""
        return self._number("noise_std", float)

    @cached_property
    def iterations(self) -> Any:
        """Sweeps over all unknowns, 0 where nothing was learned: int, or (n,) int32."""
        return self._number("iterations", int)

    @cached_property
    def elbo(self) -> Any:
        """Evidence lower bound of the window, in the stream's own unit: float, or (n,) float64.

        Not comparable between settings. With `memory="recursive"` it is an objective and not a bound: what evicted
        slices say is in it once for every mode.
        """
        return self._number("elbo", float)

    @cached_property
    def flags(self) -> Any:
        """What was noticed: `undertow.diagnostics.Flags`, or their numbers (n,) int32."""
        return self._number("flags", lambda flags: Flags(int(flags)))

    @cached_property
    def status(self) -> Any:
        """How it went, with advice: `undertow.Status`, or a tuple of n of them."""
        if self.members is None:
            found = self.events
            where = in_words(found, self._names) if found is not None and found.flags() else ""
            return Status(Flags(int(self.flags)), _known(self.since), where)
        codes = list(zip(np.maximum(self.flags, 0).tolist(), self.since.tolist(), strict=True))
        by_code = {code: Status(Flags(code[0]), _known(code[1])) for code in set(codes)}
        named = self.events if self.events is not None else [None] * len(codes)
        return tuple(
            self[position].status if found is not None and found.flags() else by_code[code]
            for position, (code, found) in enumerate(zip(codes, named, strict=True))
        )

    @cached_property
    def since(self) -> Any:
        """Where the data repeat themselves, the first of the slices that are all equal, counted from 0; else −1.

        An integer, or (n,) int64.
        """
        return self._number("since", int)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The main settings that this result was found with, by name."""
        return self._output.settings()

    @property
    def indices(self) -> tuple[NDArray[np.int32], ...] | None:
        """Where the entries lie, one array per mode; None where the arrays are whole slices."""
        return self._output.indices

    def along(self, way: Way | None, labels: Labels | None = None) -> Self:
        """With its arrays as the slice was given; for those who make results.

        Args:
            way: From arrays of the model to those of the kind that was given; None for plain arrays.
            labels: Of the stream.

        Returns:
            Itself.
        """
        self._way, self._labels = way, labels
        return self

    def plot(self) -> Any:
        """The slice as a picture: data, mean, standard deviation, and how far off every entry is, flags circled.

        Of slices with more than two modes the two largest are shown, where the outliers are.

        Returns:
            A figure of matplotlib, which notebooks show; `figure.savefig("slice.png")` writes it.

        Raises:
            ImportError: Matplotlib is not installed.
        """
        return slices.draw(self._view("plot"))

    def explain(self, entry: Any = None, /, **labels: Any) -> Explanation:
        """Why an entry was flagged, or why not, in words and numbers: what every predictor said, and how far off.

        Args:
            entry: Its labels by mode, `{"src": "A", "dst": "B"}`, or one label or number for each mode, `(0, 3)`.
            **labels: The same by mode, `src="A", dst="B"`, in place of it.
        """
        self._single("explain")
        names = self._names
        return self.explained(names.position(labels if entry is None else entry), names)

    def explained(self, position: tuple[int, ...], names: Names, components: Table | None = None) -> Explanation:
        """As `explain`, by position; for models, which know their components.

        Args:
            position: Of the entry, an index for each mode.
            names: Of modes and labels.
            components: What each component adds, if that is known.

        Returns:
            The explanation.
        """
        output: Any = self._output
        seen = self._observed()
        value = None if seen is None or np.isnan(seen[position]) else float(seen[position])
        expected, std = (float(self.plain(name)[position]) for name in ("mean", "std"))
        distance = None
        if value is not None:
            innovation = float(output.innovations()[position]) if hasattr(output, "innovations") else float("nan")
            distance = (value - expected) / std if np.isnan(innovation) and std > 0 else innovation
        return explanation(
            entry=names.entry(position),
            position=position,
            value=value,
            expected=expected,
            std=std,
            distance=distance,
            probability=float(self.plain("outlier_probability")[position]),
            said=output.said_of(position) if hasattr(output, "said_of") else {},
            weights=dict(self.weights),
            components=components,
            events=event_sentences(self.events, position, names),
        )

    def _repr_html_(self) -> str:
        if self.members is not None:
            return notebook.box(repr(self))
        pairs = [("flagged", self._flagged()), ("rank", str(self.rank)), ("noise", f"{self.noise_std:.3g}")]
        size = "×".join(map(str, self.plain("mean").shape))
        bar = notebook.weights(self.weights) if self.weights else ""
        return notebook.box(f"slice of {size}", notebook.facts(pairs), bar, notebook.status(self.status))

    @property
    def _names(self) -> Names:
        return Names.of(self.plain("mean").shape, self._labels)

    def _view(self, what: str) -> slices.SliceView:
        self._single(what)
        arrays = {name: self.plain(name) for name in ("mean", "std", "outliers")}
        title = f"{self._flagged()} flagged, {', '.join(self.status.codes) or 'ok'}"
        probability = self.plain("outlier_probability")
        data, bounds = self._observed(), self._ends(0.95)
        return slices.SliceView(self._names, title, **arrays, probability=probability, data=data, bounds=bounds)

    def _flagged(self) -> str:
        count = int(np.count_nonzero(self.plain("outlier_probability") > 0.5))
        return f"{count:,} {'entry' if count == 1 else 'entries'}"

    def _observed(self) -> Floats | None:
        """The slice as it came, NaN where nothing was observed; None where it is not at hand."""
        seen = self._output.observed() if hasattr(self._output, "observed") else None
        return None if seen is None else np.where(seen[1], seen[0], np.nan)

    def _single(self, what: str) -> None:
        if self.members is not None:
            raise ValueError(f"{what} is for one stream, got the results of {len(self)}: take one, result[position].")
        if self._fleet is not None:
            raise ValueError(
                f"{what} needs the slice as it came, which fleets of CP models do not keep: "
                "use Fleet(n, shape, model='tracker')."
            )
        if self.indices is not None:
            raise ValueError(f"{what} needs whole slices of a single stream, got {self!r}.")

    def __len__(self) -> int:
        return len(self._of_all("len()"))

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, position: int) -> Result:
        """The result of one member of a fleet, by its position in `members`."""
        members = self._of_all("an index")
        assert self.present is not None
        if not self.present[position]:
            raise ValueError(f"member {members[position]} was absent and has no result: look at `present` first.")
        if hasattr(self._output, "member"):  # of a fleet of trackers
            return Result(self._output.member(position))
        one = Result(self._source)
        one._fleet = self, position
        return one

    def __repr__(self) -> str:
        if self.present is not None:
            return f"Result(members={len(self)}, present={int(self.present.sum())})"
        return f"Result(rank={self.rank}, noise_std={self.noise_std:.3g}, status={str(self.status)!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold what was computed, not the wait for it."""
        return {**vars(self), "_source": self._output}

    def _of_all(self, what: str) -> NDArray[np.int64]:
        if self.members is None:
            raise TypeError(f"{what} is for results of a fleet, got the result of a single stream: use its arrays.")
        return self.members

    @property
    def _output(self) -> Output:
        """Where everything comes from; waits for a result that is not there yet.

        Not a `cached_property`: in Python 3.11 its lock is shared by all results, and the one waited for needs it too.
        """
        if isinstance(self._source, Future):
            return self._source.result()._output
        return self._source

    def plain(self, name: str) -> Floats:
        """One of the arrays in NumPy and in the order of the model, whatever was given.

        Args:
            name: Of the array: "mean", "std", …
        """
        if self._fleet is not None:
            fleet, position = self._fleet
            values: Floats = fleet.plain(name)[position]
            return values
        return self._of_present(getattr(self._output, name)())

    def _ends(self, level: float) -> tuple[Floats, Floats]:
        """The interval in NumPy."""
        if self._fleet is not None:
            fleet, position = self._fleet
            lower, upper = fleet._ends(level)
            return lower[position], upper[position]
        lower, upper = self._output.interval(level)
        return self._of_present(lower), self._of_present(upper)

    def _of_present(self, values: Floats) -> Floats:
        """NaN for members without a slice."""
        if self.present is None or self.present.all():
            return values
        return np.where(self.present.reshape(-1, *([1] * (values.ndim - 1))), values, np.nan)

    def _array(self, name: str) -> Floats:
        return self._labelled(self.plain(name))

    def _labelled(self, values: Floats) -> Floats:
        """As the slice was given: with its labels, if it had any."""
        return values if self._way is None else cast(Floats, self._way.back(values))

    def _number(self, name: str, kind: Any) -> Any:
        if self.members is None or self.present is None:
            return kind(self.plain(name))
        numbers = getattr(self._output, name)()
        return np.where(self.present, numbers, -1 if numbers.dtype.kind == "i" else np.nan)


def _known(since: int) -> int | None:
    return None if since < 0 else since
