"""Leading directions against the vectors that a tensor is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from undertow.model.factors.directions import leading_directions

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.slow
def test_leading_directions_of_a_rank_one_tensor():
    rng = np.random.default_rng(2)
    vectors = [rng.normal(size=size) for size in (3, 6, 5, 4)]
    tensor = np.einsum("t,i,j,k->tijk", *vectors)
    for found, vector in zip(jax.jit(leading_directions)(jnp.asarray(tensor)), vectors, strict=True):
        assert abs(found @ vector) == pytest.approx(np.linalg.norm(vector), rel=1e-9)
