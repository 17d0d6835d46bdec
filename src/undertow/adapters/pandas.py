"""An accessor of pandas: after `import undertow.adapters.pandas`, frames have `.undertow`."""

from __future__ import annotations

from typing import Any

from undertow.runs.cleaning import clean

try:
    import pandas
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"this needs {error.name}: pip install 'undertow[pandas]'", name=error.name) from None


@pandas.api.extensions.register_dataframe_accessor("undertow")
class Accessor:
    """What Undertow says about a frame: wide (index = time, columns = entries) or long (columns time, labels, value).

    Examples:
        >>> import numpy as np, pandas as pd, undertow as ut
        >>> import undertow.adapters.pandas
        >>> frame = pd.DataFrame(np.outer(np.arange(1.0, 9), np.arange(1.0, 8)), columns=list("abcdefg"))
        >>> frame.iloc[3, 2] = np.nan
        >>> completed = frame.undertow.completed(model=ut.RobustCP(max_rank=3, window=4))
        >>> bool(completed.notna().all().all()), completed.columns.equals(frame.columns)
        (True, True)
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def clean(self, **options: Any) -> Any:
        """`undertow.clean` of the frame, wide or long: an `xarray.Dataset`."""
        return clean(self._frame, **options)

    def completed(self, **options: Any) -> Any:
        """The frame with what is missing filled in; observed values stay. A long one has a row for every entry then."""
        found = clean(self._frame, **options)
        if _is_long(self._frame, found):
            return _completed(self._frame, found, options.get("value"))
        return self._frame.where(self._frame.notna(), self._array(found["mean"].values))

    def outliers(self, **options: Any) -> Any:
        """A frame of True where an entry is flagged; of a long frame a column, for its rows."""
        found = clean(self._frame, **options)
        if not _is_long(self._frame, found):
            return self._array(found["flags"].values)
        return pandas.Series(found["flags"].values[_places(self._frame, found)], self._frame.index, name="outlier")

    def _array(self, found: Any) -> Any:
        """One array of the Dataset as a frame like this one."""
        frame = self._frame
        columns = frame.columns
        if columns.nlevels == 1:
            matrix = found
        else:
            levels = [list(dict.fromkeys(columns.get_level_values(n))) for n in range(columns.nlevels)]
            places = [[level.index(part) for part in columns.get_level_values(n)] for n, level in enumerate(levels)]
            matrix = found[(slice(None), *places)]
        if matrix.shape != frame.shape:
            raise ValueError(f"the frame must be wide, with a row per time and columns of numbers, got {frame.shape}.")
        return pandas.DataFrame(matrix, frame.index, columns)


def _is_long(frame: Any, found: Any) -> bool:
    """Whether times and labels of the results are columns of the frame."""
    return frame.columns.nlevels == 1 and set(found["mean"].dims) <= set(frame.columns)


def _places(frame: Any, found: Any) -> tuple[Any, ...]:
    """Where each row of a long frame lies in the results, an index for every dimension."""
    time, *modes = found["mean"].dims
    return (
        found[time].to_index().get_indexer(_plain(frame[time], found[time].dtype.kind)),
        *(pandas.Index(found[mode].values.astype(str)).get_indexer(frame[mode].astype(str)) for mode in modes),
    )


def _plain(times: Any, kind: str) -> Any:
    """As the results have them: dates without a zone are in UTC."""
    if getattr(times.dtype, "tz", None) is not None:
        return times.dt.tz_convert("UTC").dt.tz_localize(None)
    return pandas.to_datetime(times) if kind == "M" else times


def _completed(frame: Any, found: Any, value: Any) -> Any:
    """A row for every time and entry, in their order, with the columns of time, labels and value."""
    dims, numeric = found["mean"].dims, pandas.api.types.is_numeric_dtype
    name = value or next(name for name in frame.columns if name not in dims and numeric(frame[name]))
    filled = found["data"].where(found["data"].notnull(), found["mean"]).values
    index = pandas.MultiIndex.from_product([found[dim].values for dim in dims], names=dims)
    made = pandas.Series(filled.ravel(), index, name=name).reset_index()
    kind = frame[dims[0]].dtype
    if getattr(kind, "tz", None) is not None:
        made[dims[0]] = made[dims[0]].dt.tz_localize("UTC").astype(kind)
    return made[[one for one in frame.columns if one in made]]
