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
    """What Undertow says about a wide frame: index = time, columns = entries.

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
        """The frame with what is missing filled in; observed values stay."""
        return self._frame.where(self._frame.notna(), self._array("mean", options))

    def outliers(self, **options: Any) -> Any:
        """A frame of True where an entry is flagged."""
        return self._array("flags", options)

    def _array(self, name: str, options: dict[str, Any]) -> Any:
        """One array of the Dataset as a frame like this one."""
        frame = self._frame
        found = clean(frame, **options)[name].values
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
