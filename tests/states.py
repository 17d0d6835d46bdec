"""States for tests of the phases."""

from dataclasses import replace

import dense
import jax.numpy as jnp
import numpy as np

from undertow.model.control import Progress
from undertow.model.factors import predict, rank


def planted(shape, length, seed=3):
    """A state without components on data with one strong rank-one term."""
    settings, core = dense.random_core(shape, 3, length, "default", seed=seed, observed=0.8)
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=length) * 3
    for rows in shape:
        signal = signal[..., None] * rng.normal(size=rows)
    mask = np.asarray(core.window.mask)
    values = np.where(mask, signal + 0.1 * rng.normal(size=signal.shape), 0)
    empty = core.factors
    for component in range(3):
        empty = rank.without(empty, jnp.asarray(component))
    outliers = replace(core.outliers, probability=jnp.zeros_like(core.outliers.probability))
    window = replace(core.window, values=jnp.asarray(values))
    return settings, replace(core, window=window, factors=empty, outliers=outliers), signal


def progress(core):
    """As after a sweep that converged."""
    residual, variance = core.window.values - predict.low_rank(core.factors), predict.variance(core.factors)
    zero = jnp.asarray(0, jnp.int32)
    return Progress(
        factors=core.factors,
        outliers=core.outliers,
        level=None,
        known=tuple(jnp.ones(len(rows), bool) for rows in core.factors.means),
        residual=residual,
        variance=variance,
        newest=core.window.values[core.window.newest],
        misfit=jnp.asarray(False),
        too_large=jnp.asarray(False),
        warm=jnp.asarray(False),
        moving=jnp.asarray(False),
        iterations=zero,
        sweep_limit=zero,
        rounds=zero,
        adapting=jnp.asarray(True),
        failed=zero,
        closed=jnp.asarray(False),
        elbo=jnp.zeros(()),
    )
