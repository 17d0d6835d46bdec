"""What can go wrong in a step, as flags that compiled code can carry. Advice in words: `undertow.diagnostics`."""

from enum import IntFlag


class Flags(IntFlag):
    """Flags of one step; several can be set together.

    Attributes:
        EMPTY: Nothing was observed in this slice.
        NOT_CONVERGED: The sweeps ended at `max_iterations`.
        RANK_FULL: All `max_rank` components are active.
        RANK_ZERO: No component is active: nothing but noise was found.
        MANY_OUTLIERS: More than half of the observed entries are flagged, or the slice is far noisier than usual.
        NO_NOISE: The noise is at the smallest variance that the arithmetic can tell from 0.
        SINGULAR: Some rows could not be solved and kept their last values.
        OUT_OF_RANGE: Some values were too large to compute with and were left out.
        NOT_FINITE: The step gave values that are not finite; the state is as before it.
        CHANGED: The slice did not fit what had been learned before it.
        REPEATED: The slice is equal to those before it, at least the third in a row; set by the host, as are all below.
        RESTARTED: The first data were of another size by far: the model has started anew with this slice.
        FILL_VALUES: Well-known fill values were taken as missing.
        SLICE_OFF: Most of the slice is wrong; nothing was learned from it. This and all below: by the tracker only.
        ROW_OFF: Most of some row, column or other slice of a mode is wrong.
        LASTING_CHANGE: Some entries have changed for good.
        DEAD_SENSOR: Some entries give the same number for ever, though they did not before.
    """

    NONE = 0
    EMPTY = 1
    NOT_CONVERGED = 2
    RANK_FULL = 4
    RANK_ZERO = 8
    MANY_OUTLIERS = 16
    NO_NOISE = 32
    SINGULAR = 64
    OUT_OF_RANGE = 128
    NOT_FINITE = 256
    CHANGED = 512
    REPEATED = 1024
    RESTARTED = 2048
    FILL_VALUES = 4096
    SLICE_OFF = 8192
    ROW_OFF = 16384
    LASTING_CHANGE = 32768
    DEAD_SENSOR = 65536
