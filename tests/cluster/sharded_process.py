"""What the tests of sharded models run in processes of their own: devices are counted when JAX starts.

Arguments: number of devices in this process, number of processes, number of this process, port, file for the answers,
and the slice before which the model is saved and loaded (-1: never).
"""

import os
import sys

import numpy as np

SHAPE, SLICES = (6, 48), 5
SETTINGS = {"max_rank": 3, "window": 4, "dtype": "float64"}


def slices():
    """A low rank that the model finds, some outliers, a fifth missing; the mode to be split is not the first."""
    rng = np.random.default_rng(7)
    left, right = rng.normal(size=(SHAPE[0], 2)), rng.normal(size=(SHAPE[1], 2))
    for _ in range(SLICES):
        x = (left * rng.normal(size=2)) @ right.T + 0.05 * rng.normal(size=SHAPE)
        x[rng.random(SHAPE) < 0.05] += 10
        x[rng.random(SHAPE) < 0.2] = np.nan
        yield x


def answers(result):
    arrays = {name: np.asarray(getattr(result, name)) for name in ("mean", "std", "outlier_probability")}
    return {**arrays, "numbers": np.array([result.rank, result.iterations, result.noise_std, result.elbo])}


def main(devices, processes, number, port, file, saved):
    import jax

    jax.config.update("jax_num_cpu_devices", int(devices))
    if int(processes) > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", int(processes), int(number))
    import undertow as ut
    from undertow.cluster.sharded import ShardedCP, cost

    model, found = ShardedCP(**SETTINGS), {}
    for k, x in enumerate(slices()):
        if k == int(saved):  # and loaded by every process
            model = ShardedCP.of(ut.from_bytes(model.gathered().to_bytes()))
        for name, array in answers(model.update(x)).items():
            found[f"{name}{k}"] = array
    found["rows"] = np.array([model.rows.start, model.rows.stop])
    if int(processes) == 1:
        longer = cost((SHAPE[0], 4 * SHAPE[1]), **SETTINGS)
        for name, one in (("cost", model.cost()), ("longer", longer)):
            found[name] = np.array([one.communication.sweep, one.communication.rest, one.memory])
    np.savez(file, **found)


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    main(*sys.argv[1:])
