"""An accessor of pandas: after `import undertow.adapters.pandas`, frames have `.undertow`."""

from __future__ import annotations

from typing import Any

import numpy as np

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
        if (long := _long(self._frame, found)) is not None:
            return _completed(long, found, options.get("value"))
        return self._frame.where(self._frame.notna(), self._array(found["mean"].values))

    def outliers(self, **options: Any) -> Any:
        """A frame of True where an entry is flagged; of a long frame a column, for its rows."""
        found = clean(self._frame, **options)
        if (long := _long(self._frame, found)) is None:
            return self._array(found["flags"].values)
        places = _places(long, found)
        known = np.all(places >= 0, axis=0)  # rows that were left out are not flagged
        flags = known & found["flags"].values[tuple(np.where(known, places, 0))]
        return pandas.Series(flags, self._frame.index, name="outlier")

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
            raise ValueError(
                f"the frame must have a row per time and columns of numbers, or columns of times, labels and values, "
                f"got {len(columns)} columns of which some are neither: use undertow.clean."
            )
        return pandas.DataFrame(matrix, frame.index, columns)


def _long(frame: Any, found: Any) -> Any:
    """The frame with times and labels of the results among its columns; None if it is a wide one."""
    dims = list(found["mean"].dims)
    if frame.columns.nlevels > 1 or frame.index.nlevels > 1:
        return None
    if dims[0] not in frame.columns and dims[0] == (frame.index.name or "time"):
        frame = frame.rename_axis(index=dims[0]).reset_index()
    return frame if set(dims) <= set(frame.columns) else None


def _places(frame: Any, found: Any) -> Any:
    """Where each row of a long frame lies in the results: an index for every dimension, −1 for what is not there."""
    time, *modes = found["mean"].dims
    labels = [(found[time].to_index(), _plain(frame[time], found[time].dtype.kind))]
    labels += [(pandas.Index(found[mode].values.astype(str)), frame[mode].astype(str)) for mode in modes]
    for dim, (known, _) in zip(found["mean"].dims, labels, strict=True):
        if not known.is_unique:
            raise ValueError(f"{dim} has labels that read the same: rename one, or use undertow.clean")
    return np.array([known.get_indexer(asked) for known, asked in labels])


def _plain(times: Any, kind: str) -> Any:
    """As the results have them: dates without a zone are in UTC."""
    if getattr(times.dtype, "tz", None) is not None:
        return times.dt.tz_convert("UTC").dt.tz_localize(None)
    return pandas.to_datetime(times) if kind == "M" else times


def _completed(frame: Any, found: Any, value: Any) -> Any:
    """A row for every time and entry, in their order, with the columns of time, labels and value."""
    dims, numeric = found["mean"].dims, pandas.api.types.is_numeric_dtype
    numbers = [name for name in frame.columns if name not in dims and numeric(frame[name])]
    name = value or (numbers[0] if len(numbers) == 1 else None)
    if name is None:
        raise ValueError(
            f"the column of values is not clear among {', '.join(map(str, numbers))}: name it with value=…"
        )
    filled = found["data"].where(found["data"].notnull(), found["mean"]).values
    index = pandas.MultiIndex.from_product([found[dim].values for dim in dims], names=dims)
    made = pandas.Series(filled.ravel(), index, name=name).reset_index()
    kind = frame[dims[0]].dtype
    if getattr(kind, "tz", None) is not None:
        made[dims[0]] = made[dims[0]].dt.tz_localize("UTC").astype(kind)
    return made[[one for one in frame.columns if one in made]]
