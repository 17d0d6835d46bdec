"""Trackers: digests of their programs, results of small streams, and files that must go on being read."""

import tempfile
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from recorded.programs import digest

import undertow as ut
from undertow.tracker import ahead, answering, judging, season
from undertow.tracker.predictors.cp import regression
from undertow.tracker.state import start

SHAPE, PERIOD, SAVED = (6, 5), 4, 22
FILES = Path(__file__).parent / "trackers.zip"
CHECKPOINT, FLEET, STORE, STREAM = "tracker.ckpt", "fleet.ckpt", "store.zarr", "stream.npy"
ARRAYS = ("mean", "std", "low_rank", "outliers", "outlier_probability")


def smooth(shape=SHAPE, seed=0, slices=30):
    """Two components that drift, noise, 3 % of outliers, a fifth missing; (slices, *shape)."""
    rng = np.random.default_rng(seed)
    rows, x = np.zeros(2), np.empty((slices, *shape))
    factors = [rng.normal(size=(size, 2)) for size in shape]
    letters = "abcdefg"[: len(shape)]
    for one in x:
        rows = 0.9 * rows + rng.normal(size=2)
        one[:] = np.einsum(",".join(letter + "r" for letter in letters) + ",r->" + letters, *factors, rows)
    x += 3.0 + 0.1 * rng.normal(size=x.shape)
    x[rng.random(x.shape) < 0.03] += 12.0
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


def counts(shape=SHAPE, seed=1, slices=30):
    """Counts with a cycle of `PERIOD` slices; their scale is curved."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(size=shape) * 1.2 + 2)
    cycle = 1 + 0.8 * np.sin(2 * np.pi * np.arange(slices) / PERIOD)
    return rng.poisson(rate * cycle.reshape(-1, *[1] * len(shape))).astype(float)


STREAMS = {
    "smooth": ({}, smooth),
    "counts": ({"period": PERIOD}, counts),
    "three_modes": ({}, lambda: smooth((4, 3, 2), 2)),
    "vector": ({"believed_after": 2}, lambda: smooth((7,), 3)),
}


def results(name):
    """What a tracker gives for one of these streams, and its forecast."""
    given, stream = STREAMS[name]
    tracker = ut.Tracker(**given)
    found = [tracker.update(x) for x in stream()]
    return found, tracker.forecast(5)


def arrays(name):
    """The arrays of these results by name, all slices in one."""
    found, forecast = results(name)
    made = {array: np.stack([getattr(one, array) for one in found]) for array in ARRAYS}
    made["weights"] = np.array([list(one.weights.values()) for one in found])
    return made | {"forecast_mean": forecast.mean, "forecast_std": forecast.std}


def digests():
    """Of the programs of a slice, by name; those of the CP models are with those of `RobustCP`."""
    state = start(SHAPE, PERIOD)
    entries = state.core.last.size
    values, mask, scale = jnp.zeros(entries), jnp.ones(entries, bool), jnp.int32(0)
    past = state.season
    models = [model.state for model in state.cps]
    cps = tuple(regression(model.core, values, mask, model.settings, np.float32(1)) for model in models)
    expected = season.predict(past, entries)
    verdict = jax.eval_shape(judging.judge, state.core, values, mask, scale, expected, cps)
    verdict = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), verdict)
    means = (values,) * len(models)
    several = np.zeros((ahead.TOGETHER, len(ahead.CANDIDATES), entries), np.float32)
    grams, one = np.zeros((ahead.TOGETHER, *(len(ahead.CANDIDATES),) * 2), np.float32), np.zeros(ahead.TOGETHER)
    horizons, rows = ahead.in_blocks([1, 2]), season.rows(past)
    asked = {
        "regression": (regression, models[0].core, values, mask, models[0].settings, np.float32(1)),
        "judge": (judging.judge, state.core, values, mask, scale, expected, cps),
        "answer": (answering.learn, state.core, verdict, values, mask, scale, values, means),
        "season": (season.predicted, past.deviation, rows),
        "season_learned": (season.deviations, past.deviation, rows, values, mask.astype(np.float32)),
        "expected": (ahead.now, state.core.level, models[0].core, horizons),
        "scored": (ahead.compared, values, mask, several, several[:, 0], grams, one, one, scale),
    }
    return {name: digest(*parts) for name, parts in asked.items()}


def write_files():
    """Files of this version of the library, where there are none."""
    if FILES.exists():
        return
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(FILES, "w", zipfile.ZIP_DEFLATED) as archive:
        some, x = Path(folder), smooth()
        ut.Tracker().fit(x[:SAVED]).save(some / CHECKPOINT)
        fleet = ut.Fleet(2, SHAPE, model="tracker")
        for one in x[:SAVED]:
            fleet.update(np.stack([one, 2 * one]))
        fleet.save(some / FLEET)
        np.save(some / STREAM, x)
        ut.run(some / STREAM, store=some / STORE, limit=SAVED)
        for path in sorted(one for one in some.rglob("*") if one.is_file()):
            archive.write(path, path.relative_to(some))
