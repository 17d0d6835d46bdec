"""The time that a labelled slice carries itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.inputs.labels.slices import _is


def moment(x: Any) -> Any:
    """When a slice was observed, as its own labels say: a date, or None.

    The only date among the scalar coordinates of an `xarray.DataArray`, as `X.isel(time=3)` has it; the name of a
    series of pandas, as `frame.iloc[3]` has it.

    Args:
        x: The slice, of any library.
    """
    if type(x) is np.ndarray:
        return None
    if _is(x, "xarray", ("DataArray",)):
        dates = [one.values[()] for one in x.coords.values() if not one.dims and one.dtype.kind == "M"]
    elif _is(x, "pandas", ("Series",)):
        dates = [x.name] if _is(x.name, "pandas", ("Timestamp",)) else []
    else:
        dates = []
    return dates[0] if len(dates) == 1 else None
