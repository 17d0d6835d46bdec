"""The interface of an outlier model: residuals in, weights and targets out."""

from __future__ import annotations

from typing import Protocol

import jax.numpy as jnp
from jax import Array

from undertow.model.noise import contaminated, gaussian_gamma
from undertow.model.settings import Settings
from undertow.model.types import Factors, Level, OutlierState, Window


class OutlierModel(Protocol):
    """What a module must define to be an outlier model; its ELBO terms are in elbo.py.

    States are values: every function that changes one returns another. `window` holds the data, `slice_weights` are ω
    (W,), `residual` and `variance` are y − m̄ − x̄ and Var x + Var m of the window (W, I_1, …, I_N).
    """

    def init(
        self, settings: Settings, shape: tuple[int, ...], dtype: jnp.dtype, entries: int | None, length: int | None
    ) -> OutlierState:
        """Before any data, for a window of `length` slots, or as many as are used."""

    def begin(
        self, settings: Settings, state: OutlierState, factors: Factors, window: Window, level: Level | None
    ) -> tuple[OutlierState, Factors]:
        """At the start of a step: outliers and temporal row of the newest slice."""

    def infer(
        self, state: OutlierState, factors: Factors, window: Window, level: Level | None
    ) -> tuple[OutlierState, Factors]:
        """Outliers and temporal row of the newest slice with the other factors and the noise fixed."""

    def changed(self, state: OutlierState, window: Window) -> Array:
        """After `begin`: whether the newest slice does not fit what was learned before."""

    def adapt_likely(self, settings: Settings, state: OutlierState, window: Window) -> Array:
        """After `begin`: whether components should be pruned or added."""

    def one_slice(self, state: OutlierState) -> OutlierState:
        """The state for a window of a single slice, about which nothing is known yet."""

    def unobserved(self, state: OutlierState, slot: Array, like: Array) -> OutlierState:
        """The state for a window of one slice of `like`'s shape: that in `slot`, as if nothing had been observed."""

    def cleared(self, state: OutlierState) -> OutlierState:
        """The state with nothing known about single entries."""

    def weights_and_targets(self, state: OutlierState, window: Window, slice_weights: Array) -> tuple[Array, Array]:
        """w and y of the factor updates, each (W, I_1, …, I_N)."""

    def candidate_weights(self, state: OutlierState, window: Window, slice_weights: Array) -> Array:
        """Weights for the fit of a candidate component (W, I_1, …, I_N)."""

    def level_weights(self, state: OutlierState, slot: Array) -> tuple[Array, Array]:
        """Of one slice: the fraction of its precision that each entry keeps, and the noise variance."""

    def update(
        self,
        settings: Settings,
        state: OutlierState,
        window: Window,
        slice_weights: Array,
        residual: Array,
        variance: Array,
    ) -> OutlierState:
        """All coordinate updates in turn."""

    def too_wide(
        self, settings: Settings, state: OutlierState, window: Window, residual: Array, variance: Array
    ) -> Array:
        """After the sweeps: whether less noise and more outliers are worth a try."""

    def median_noise(self, state: OutlierState, window: Window, residual: Array, variance: Array) -> Array:
        """Noise variance by the median of the residuals, over that in use."""

    def scaled_noise(self, state: OutlierState, factor: Array) -> OutlierState:
        """The state with all noise variances times a factor."""

    def finish(
        self,
        settings: Settings,
        state: OutlierState,
        window: Window,
        slice_weights: Array,
        residual: Array,
        variance: Array,
    ) -> OutlierState:
        """Once per slice, after the sweeps."""

    def outliers(self, state: OutlierState, window: Window, slot: Array, residual: Array) -> tuple[Array, Array]:
        """Expected outlier and outlier probability of every entry of a slice, given its residual."""

    def noise_variance(self, state: OutlierState, slot: Array) -> Array:
        """Variance of a new observation around low rank and level in one slice (I_1, …, I_N)."""

    def typical_noise(self, state: OutlierState) -> Array:
        """One number for the noise variance."""

    def usual_noise(self, state: OutlierState, slice_weights: Array) -> Array:
        """The same for reports."""


def outlier_model(settings: Settings) -> OutlierModel:
    """The outlier model that the settings name."""
    return contaminated if settings.outliers == "contaminated" else gaussian_gamma
