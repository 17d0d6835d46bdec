"""What can go wrong in a step, as flags that compiled code can carry. Advice in words: `undertow.diagnostics`."""

from enum import IntFlag


class Flags(IntFlag):
    """Flags of one step; several can be set at once."""

    NONE = 0
    EMPTY = 1
    """Nothing was observed in this slice."""
    NOT_CONVERGED = 2
    """The sweeps ended at `max_iterations`."""
    RANK_FULL = 4
    """All `max_rank` components live."""
    RANK_ZERO = 8
    """No component lives: nothing but noise was found."""
    MANY_OUTLIERS = 16
    """More than half of the observed entries are flagged, or the slice is far noisier than usual."""
    NO_NOISE = 32
    """The noise is at the least level the arithmetic can tell from 0."""
    SINGULAR = 64
    """Some rows could not be solved and kept their last values."""
    OUT_OF_RANGE = 128
    """Some values were too large to compute with and were left out."""
    NOT_FINITE = 256
    """The step gave values that are not finite; the state is as before it."""
    CHANGED = 512
    """The slice did not fit what had been learned before it."""
