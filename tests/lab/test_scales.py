import numpy as np
import pytest

from undertow.lab.scales import SCALES


@pytest.mark.parametrize("name", SCALES)
def test_there_and_back_again(name):
    values = np.array([-3.0, -0.01, 0.0, 1e-6, 1.0, 1e6, np.nan])
    scale = SCALES[name]
    transformed = scale.forward(values)
    np.testing.assert_allclose(scale.backward(transformed), values, rtol=1e-9)
    assert (np.diff(transformed[:-1]) > 0).all()


@pytest.mark.parametrize("name", ["sqrt", "asinh"])
def test_what_has_run_away_stays_finite_in_single_precision(name):
    back = SCALES[name].backward(np.array([-1e300, 1e300]))
    assert np.isfinite(back.astype(np.float32)).all()
    np.testing.assert_allclose(back, [-1e30, 1e30], rtol=1e-6)
