"""What the tests of sharded models run in processes of their own: devices are counted when JAX starts.

Arguments: number of devices in this process, number of processes, number of this process, port, file for the answers,
the slice before which the model is saved and loaded (-1: never), and the shape of a slice.
"""

import os
import sys

import numpy as np

SLICES = 5
SETTINGS = {"max_rank": 3, "window": 4, "dtype": "float64"}


def slices(shape):
    """A low rank that the model finds, some outliers, a fifth missing."""
    rng = np.random.default_rng(7)
    factors = [rng.normal(size=(size, 2)) for size in shape]
    for _ in range(SLICES):
        rows = "ijk"[: len(shape)]
        x = np.einsum(",".join(f"{row}r" for row in rows) + f",r->{rows}", *factors, rng.normal(size=2))
        x += 0.05 * rng.normal(size=shape)
        x[rng.random(shape) < 0.05] += 10
        x[rng.random(shape) < 0.2] = np.nan
        yield x


def answers(result):
    arrays = {name: np.asarray(getattr(result, name)) for name in ("mean", "std", "outlier_probability")}
    return {**arrays, "numbers": np.array([result.rank, result.iterations, result.noise_std, result.elbo])}


def main(devices, processes, number, port, file, saved, sizes):
    import jax

    jax.config.update("jax_num_cpu_devices", int(devices))
    if int(processes) > 1:
        jax.distributed.initialize(f"127.0.0.1:{port}", int(processes), int(number))
    import undertow as ut
    from undertow.cluster.sharded import ShardedCP, cost

    shape = tuple(map(int, sizes.split("x")))
    model, found = ShardedCP(**SETTINGS), {}
    for k, x in enumerate(slices(shape)):
        if k == int(saved):  # and loaded by every process
            model = ShardedCP.of(ut.from_bytes(model.gathered().to_bytes()))
        if k == 2 and int(processes) > 1:  # what one process must refuse
            bad = x.copy()
            bad[0, -1] = np.inf
            try:
                model.update(bad)
            except ValueError as error:
                found["refused"] = np.array(str(error))
        for name, array in answers(model.update(x)).items():
            found[f"{name}{k}"] = array
    found["rows"] = np.array([model.rows.start, model.rows.stop])
    if int(processes) == 1:
        split = int(np.argmax(shape))
        longer = cost((*shape[:split], 4 * shape[split], *shape[split + 1 :]), **SETTINGS)
        for name, one in (("cost", model.cost()), ("longer", longer)):
            found[name] = np.array([one.communication.sweep, one.communication.rest, one.memory])
    np.savez(file, **found)


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    main(*sys.argv[1:])
