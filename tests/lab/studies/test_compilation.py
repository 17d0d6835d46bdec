"""How large the compiled step is."""

import pytest

from undertow.lab.studies import compilation


@pytest.mark.full
def test_the_step_is_measured():
    made = compilation.make((6, 5))
    assert 1000 < made.lines < 8000
    assert made.traced > 0
    assert made.compiled > made.lowered > 0
    assert made.kernels > 100
