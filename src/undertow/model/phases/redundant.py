"""Prune redundant components: collinear ones that none of them can be pruned alone."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from undertow.model import elbo
from undertow.model.control import Progress
from undertow.model.defaults import COLLINEAR, REDUNDANT_SWEEPS
from undertow.model.factors import rank
from undertow.model.flow import choose, repeat
from undertow.model.phases.sweep import sweep
from undertow.model.settings import Settings
from undertow.model.types import Window


def prune_redundant(settings: Settings, window: Window, progress: Progress) -> Progress:
    """Leave out the most collinear component, again as long as the ELBO gains once the others have been swept.

    Not with a level, which would take part of its role and is not in the bound.
    """
    if settings.start == "svd" or progress.level is not None:
        return progress

    def bound(now: Progress) -> Array:
        return elbo.total(settings, window, now.factors, now.outliers, now.residual, now.variance)

    def one_less(before: Progress) -> tuple[Progress, Array]:
        likeness = rank.collinearity(before.factors)
        less = rank.without(before.factors, jnp.argmax(likeness))
        start = replace(before, factors=less, sweep_limit=before.iterations + REDUNDANT_SWEEPS)
        after = lax.while_loop(
            lambda now: now.iterations < now.sweep_limit, lambda now: sweep(settings, window, now), start
        )
        gains = (likeness.max() > COLLINEAR) & (bound(after) > bound(before))
        # As if nothing had been tried: these sweeps are not the slice's own.
        after = replace(after, moving=before.moving, iterations=before.iterations, sweep_limit=before.sweep_limit)
        return choose(gains, after, before), gains

    fewer, _ = repeat(one_less, progress, settings.max_rank)
    return replace(fewer, redundancy=jnp.asarray(False))
