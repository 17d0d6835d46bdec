"""Assembly only: the compiled step. The updates themselves are in factors, rank, birth, noise and outliers/.

A step: write the slice into the window; meet it with a robust regression on the current factors; then sweep over all
unknowns until the newest slice stands still, let superfluous components die and missing ones be born, and sweep again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from undertow.model import level as levels
from undertow.model.factors import discounted, layout, predict, rank, separable
from undertow.model.factors.rows import with_row
from undertow.model.factors.svd_start import svd_start
from undertow.model.flags import Flags
from undertow.model.noise import contaminated, gaussian_gamma, mixture
from undertow.model.phases.evict import leave
from undertow.model.phases.infer import OUTLIER_MODELS, Report, only_row, tell, usable, usual_noise
from undertow.model.phases.moves import deaths_and_births, repeat
from undertow.model.phases.sweep import Progress, bound, swept, swept_nearly_full
from undertow.model.settings import Settings
from undertow.model.types import Contaminated, Core, EntryIndex, Factors, GaussianGamma, Level, Window

PATIENCE = 6
"""Sweeps per round once the window is full and nothing has changed: what still moves then moves slowly, and goes on
with the next slice. Births need not wait for it."""
MOVES_EVERY = 4
"""Slots between looks for deaths and births once the window is full: what a look refused, three slices more seldom
justify. A slice that does not fit is looked at at once."""
MISFIT = 2.0
"""Noise variance of a slice, as it is met, over the usual one, beyond which it does not fit."""
THINNING_SWEEPS = 12
"""Sweeps that entangled components have to take the place of one of them."""
MOST_ROUNDS = 8
"""Rounds of sweeping, deaths and births per slice."""


def init_core(settings: Settings, shape: tuple[int, ...], entries: int | None = None) -> Core:
    """An empty window, no component alive. With `entries`, only so many observed ones are kept of every slice."""
    dtype = jnp.dtype(settings.dtype)
    size, length = settings.max_rank, settings.window
    kept = shape if entries is None else (entries,)
    window = Window(
        values=jnp.zeros((length, *kept), dtype),
        mask=jnp.zeros((length, *kept), bool),
        newest=jnp.asarray(length - 1, jnp.int32),
        filled=jnp.asarray(0, jnp.int32),
        entry_index=None if entries is None else layout.empty_entry_index((length, entries), shape),
    )
    factors = Factors(
        means=tuple(jnp.zeros((rows, size), dtype) for rows in shape),
        covariances=tuple(jnp.zeros((rows, size, size), dtype) for rows in shape),
        row_means=jnp.zeros((length, size), dtype),
        row_covariances=jnp.zeros((length, size, size), dtype),
        active=jnp.zeros(size, bool),
        precision_shape=jnp.ones(size, dtype),
        precision_rate=jnp.ones(size, dtype),
    )
    factors = replace(factors, discounted=discounted.init_rows(settings, shape, dtype))
    outliers: Contaminated | GaussianGamma
    if settings.outliers == "contaminated":
        outliers = contaminated.init(settings, shape, dtype, entries)
    else:
        outliers = gaussian_gamma.init(settings, shape, dtype)
    core = Core(window, factors, outliers, levels.init(length, shape, dtype) if settings.level else None)
    separate: Core = jax.tree.map(lambda leaf: leaf.copy(), core)  # a step takes over each array's memory
    return separate


@partial(jax.jit, donate_argnums=0, static_argnames="holes")
def advance(
    core: Core,
    values: Array,
    mask: Array,
    settings: Settings,
    holes: int | None = None,
    entry_index: EntryIndex | None = None,
) -> tuple[Core, Report]:
    """One slice: values and mask in, the new state and the report out. The old state's memory becomes the new one's.

    `holes`, if given, is the most entries that can be missing in the window: see `separable.py` for what that is worth,
    and for which models. `places` say where the values lie, if not all entries of the slice are there.
    """
    window, start = opened(core, values, mask, settings, entry_index)
    gaps = None if holes is None else separable.holes(window, holes)

    def one_sweep(progress: Progress) -> Progress:
        return (
            swept(settings, window, progress) if gaps is None else swept_nearly_full(settings, window, progress, gaps)
        )

    def one_round(progress: Progress) -> Progress:
        progress = lax.while_loop(sweeping, one_sweep, progress)
        if gaps is not None:
            residual = window.values - predict.low_rank(progress.factors)
            progress = replace(progress, residual=residual, variance=predict.variance(progress.factors))
        if settings.start == "svd":
            return progress
        return rank.only_if(due(settings, progress), lambda settled: moves(settings, window, settled), progress)

    end = lax.while_loop(lambda progress: sweeping(progress) | due(settings, progress), one_round, start)
    end = rank.only_if(crowded(end), lambda settled: thinned(settings, window, settled), end)
    cold = rank.only_if(too_wide(settings, window, end), lambda settled: quenched(settings, window, settled), end)
    return closed(settings, core, window, cold)


def opened(
    core: Core, values: Array, mask: Array, settings: Settings, entry_index: EntryIndex | None = None
) -> tuple[Window, Progress]:
    """The slice written into the window and met; all is ready for the sweeps."""
    model = OUTLIER_MODELS[settings.outliers]
    core = leave(settings, core)
    values, seen = usable(values, mask)
    window = write(core.window, values, seen, entry_index)
    level = expected_level(core.level, window)
    outliers, factors = model.begin(settings, core.outliers, core.factors, window, level)
    if settings.start == "svd":
        factors = svd_start(settings, factors, window, model.row_share(window.slice_weights(settings.forgetting)))
    surprised = model.surprised(outliers, window)
    warm = (window.filled == settings.window) & ~surprised & (settings.start == "warm")
    zero = jnp.asarray(0, jnp.int32)
    alone = layout.alone(window, window.newest)
    expected = layout.low_rank(only_row(factors, window.newest), alone.entry_index)[0]
    start = Progress(
        factors=factors,
        outliers=outliers,
        level=level,
        residual=window.values,
        variance=jnp.zeros_like(window.values),
        newest=layout.portrait(factors, window, expected + levels.mean_of(level, window.newest)),
        surprised=surprised,
        too_large=(mask & ~seen).any(),
        warm=warm,
        moving=jnp.asarray(True),
        iterations=zero,
        most=most_sweeps(settings, warm, zero),
        rounds=zero,
        changed=(settings.start == "warm") & (~warm | moves_likely(settings, outliers, window)),
        thinning=thinning_due(settings, window) & (level is None),
        failed=zero,
    )
    return window, start


def moves_likely(settings: Settings, outliers: Contaminated | GaussianGamma, window: Window) -> Array:
    """Whether it is time to look for deaths and births, or the newest slice asks for it."""
    if isinstance(outliers, GaussianGamma):
        return jnp.asarray(False)
    slot, noise = window.newest, contaminated.typical_noise(outliers)
    usual = contaminated.usual_noise(outliers, window.slice_weights(settings.forgetting))
    return (slot % MOVES_EVERY == 0) | (outliers.slice_scale[slot] * noise > MISFIT * usual)


def thinning_due(settings: Settings, window: Window) -> Array:
    """Whether it is time to look for entangled components: often as long as the window fills, then once per turn."""
    growing = (window.filled < settings.window) & (window.newest % MOVES_EVERY == MOVES_EVERY - 1)
    return (settings.start == "warm") & (growing | (window.newest == 0))


def most_sweeps(settings: Settings, warm: Array, iterations: Array) -> Array:
    """How many sweeps there will have been at the end of a round that begins now, at most."""
    most = jnp.asarray(settings.max_iterations, jnp.int32)
    return jnp.where(warm, jnp.minimum(iterations + PATIENCE, most), most)


def sweeping(progress: Progress) -> Array:
    """Whether the next thing to do is a sweep."""
    return progress.moving & (progress.iterations < progress.most)


def due(settings: Settings, progress: Progress) -> Array:
    """Whether the next thing to do is to let components die and be born."""
    settled = progress.changed & ~sweeping(progress) & (progress.warm | ~progress.moving)
    # Not at the very end: a newcomer must have been swept at least once.
    return settled & (progress.rounds < MOST_ROUNDS) & (progress.iterations < settings.max_iterations)


def crowded(progress: Progress) -> Array:
    """Whether, after the last sweep, fewer components are worth a try."""
    return progress.thinning & (rank.entanglement(progress.factors).max() > rank.ENTANGLED)


def thinned(settings: Settings, window: Window, progress: Progress) -> Progress:
    """That try: without the one that is most like the others, again as long as the bound gains once these have had time
    to take its place. Not beside a level, which would take part of that place and is not in the bound."""
    if isinstance(progress.outliers, GaussianGamma) or progress.level is not None:
        return progress

    def one_less(before: Progress) -> tuple[Progress, Array]:
        likeness = rank.entanglement(before.factors)
        less = rank.without(before.factors, jnp.argmax(likeness))
        start = replace(before, factors=less, most=before.iterations + THINNING_SWEEPS)
        after = lax.while_loop(lambda now: now.iterations < now.most, lambda now: swept(settings, window, now), start)
        gains = (likeness.max() > rank.ENTANGLED) & (bound(settings, window, after) > bound(settings, window, before))
        # As if nothing had been tried: these sweeps are not the slice's own.
        after = replace(after, moving=before.moving, iterations=before.iterations, most=before.most)
        return rank.choose(gains, after, before), gains

    fewer, _ = repeat(one_less, progress, settings.max_rank)
    return replace(fewer, thinning=jnp.asarray(False))


def too_wide(settings: Settings, window: Window, progress: Progress) -> Array:
    """Whether, after the last sweep, less noise and more outliers are worth a try."""
    if isinstance(progress.outliers, GaussianGamma):
        return jnp.asarray(False)
    return contaminated.too_wide(settings, progress.outliers, window, progress.residual, progress.variance)


def quenched(settings: Settings, window: Window, progress: Progress) -> Progress:
    """That try."""
    if isinstance(progress.outliers, GaussianGamma):
        return progress
    outliers, slice_weights = progress.outliers, window.slice_weights(settings.forgetting)
    cold = contaminated.colder(settings, outliers, window, slice_weights, progress.residual, progress.variance)
    return replace(progress, outliers=cold)


def closed(settings: Settings, before: Core, window: Window, end: Progress) -> tuple[Core, Report]:
    """What is done once per slice, after the sweeps: the new state and the report."""
    model = OUTLIER_MODELS[settings.outliers]
    slice_weights = window.slice_weights(settings.forgetting)
    outliers = model.finish(settings, end.outliers, window, slice_weights, end.residual, end.variance)
    level = judged_level(outliers, end.level, window, end.residual)
    core = Core(window, end.factors, outliers, level)
    newest = end.residual[window.newest], end.variance[window.newest]
    told = tell(settings, core, window.newest, *newest, usual_noise(settings, core))
    unsettled = end.moving & (end.iterations >= settings.max_iterations)
    flags = jnp.where(unsettled, Flags.NOT_CONVERGED.value, 0)
    flags |= jnp.where(end.failed > 0, Flags.SINGULAR.value, 0)
    flags |= jnp.where(end.surprised & core.factors.active.any(), Flags.CHANGED.value, 0)
    flags |= jnp.where(end.too_large, Flags.OUT_OF_RANGE.value, 0)
    elbo = bound(settings, window, replace(end, outliers=outliers))
    report = replace(told, iterations=end.iterations, elbo=elbo, flags=told.flags | flags)
    return left_out(report.flags & Flags.NOT_FINITE.value != 0, core, before), report


def left_out(condition: Array, core: Core, before: Core) -> Core:
    """Where the condition holds: the state before, its window one empty slice further. Probabilities start anew:
    keeping the old ones for that case would cost as much memory as the window."""
    window, outliers = core.window, core.outliers
    slot = window.newest
    window = replace(
        window,
        values=window.values.at[slot].set(jnp.where(condition, 0, window.values[slot])),
        mask=window.mask.at[slot].set(~condition & window.mask[slot]),
    )
    rows = before.factors.row_means[0], before.factors.row_covariances[0]
    old = with_row(before.factors, slot, jnp.zeros_like(rows[0]), jnp.zeros_like(rows[1]))
    if isinstance(outliers, Contaminated):
        assert isinstance(before.outliers, Contaminated)
        kept: Contaminated | GaussianGamma = replace(before.outliers, probability=jnp.zeros_like(outliers.probability))
    else:
        assert isinstance(before.outliers, GaussianGamma)
        kept = replace(before.outliers, sparse=jnp.zeros_like(outliers.sparse))
    factors, outliers, level = rank.choose(condition, (old, kept, before.level), (core.factors, outliers, core.level))
    return Core(window, factors, outliers, level)


def moves(settings: Settings, window: Window, progress: Progress) -> Progress:
    """Deaths and births."""
    assert isinstance(progress.outliers, Contaminated)
    factors, outliers, residual, variance, changed = deaths_and_births(
        settings, window, progress.factors, progress.outliers, progress.residual, progress.variance
    )
    return replace(
        progress,
        factors=factors,
        outliers=outliers,
        residual=residual,
        variance=variance,
        moving=changed,
        most=most_sweeps(settings, progress.warm, progress.iterations),
        rounds=progress.rounds + changed,
        changed=changed,
    )


def expected_level(level: Level | None, window: Window) -> Level | None:
    """The level with the newest slice expected where the last one was."""
    return None if level is None else levels.arrive(level, window)


def judged_level(
    outliers: Contaminated | GaussianGamma, level: Level | None, window: Window, residual: Array
) -> Level | None:
    """The level with its walks chosen anew, by the newest slice; `residual` is y − m̄ − x̄."""
    if level is None or isinstance(outliers, GaussianGamma):
        return level
    slot = window.newest
    robustness_weight = mixture.robustness_weight(outliers, outliers.probability[slot], outliers.slice_scale[slot])
    noise = mixture.noise_now(outliers)
    return levels.finish(level, window.mask[slot], robustness_weight, residual[slot] + level.mean[slot], noise)


def write(window: Window, values: Array, mask: Array, entry_index: EntryIndex | None = None) -> Window:
    """The window with a slice written over the oldest."""
    length = window.values.shape[0]
    slot = jnp.mod(window.newest + 1, length)
    return Window(
        values=window.values.at[slot].set(values),
        mask=window.mask.at[slot].set(mask),
        newest=slot,
        filled=jnp.minimum(window.filled + 1, length),
        entry_index=jax.tree.map(lambda ring, new: ring.at[slot].set(new), window.entry_index, entry_index),
    )
