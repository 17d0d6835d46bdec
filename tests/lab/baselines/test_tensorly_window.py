"""TensorLy on a window: the newest slice is what the package finds on the stacked window."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.lab.baselines import tensorly_window
from undertow.lab.synthetic.streams import drifting

tensorly = pytest.importorskip("tensorly")


@pytest.mark.parametrize("kind", ["robust_pca", "masked_cp"])
def test_is_the_package_on_the_last_slices(kind: str) -> None:
    from tensorly.decomposition import parafac, robust_pca

    stream = drifting((7, 6), 2, slices=8, observed=0.8, drift=0.0, seed=1)
    state = tensorly_window.init(tensorly_window.Config(kind=kind, rank=2, window=5), (7, 6))  # type: ignore[arg-type]
    for values in stream.values:
        state, result = tensorly_window.step(state, values)
    window, mask = np.nan_to_num(stream.values[-5:]), stream.mask[-5:].astype(float)
    if kind == "robust_pca":
        low_rank, sparse = robust_pca(window, mask=mask, verbose=0)
        assert result.outliers is not None
        np.testing.assert_allclose(result.outliers, sparse[-1] * mask[-1])
    else:
        low_rank = tensorly.cp_to_tensor(parafac(window, 2, mask=mask, random_state=0))
    np.testing.assert_allclose(result.low_rank, low_rank[-1])
