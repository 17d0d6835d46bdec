"""Small streams whose results are recorded: every preset, every layout of the window."""

import numpy as np

import undertow as ut

SLICES = 9


def dense(shape, seed, observed=0.8, level=0.0):
    """Rank 2 with noise, a few outliers and missing entries; (SLICES, *shape)."""
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=(size, 2)) for size in (SLICES, *shape)]
    letters = "abcdefg"[: len(factors)]
    x = np.einsum(",".join(letter + "r" for letter in letters) + "->" + letters, *factors)
    x += level * rng.normal(size=shape) + 0.05 * rng.normal(size=x.shape)
    x[rng.random(x.shape) < 0.03] += 8.0
    x[rng.random(x.shape) > observed] = np.nan
    return x


def sparse(seed):
    """Lists of observed entries of large slices."""
    rng = np.random.default_rng(seed)
    u, v, c = rng.normal(size=(4000, 2)), rng.normal(size=(3000, 2)), rng.normal(size=(5, 2))
    for row in c:
        i, j = (rng.integers(0, size, 900) for size in (4000, 3000))
        flat = np.unique(i * 3000 + j)
        i, j = flat // 3000, flat % 3000
        values = ((u[i] * row) * v[j]).sum(axis=1) + 0.05 * rng.normal(size=i.size)
        yield ut.Entries((i, j), values, (4000, 3000))


DOUBLE = {"dtype": "float64"}
SMALL = {"max_rank": 3, "window": 4, **DOUBLE}
MODELS = {
    "default": (SMALL, lambda: dense((6, 5), 2)),
    "level": ({"level": True, **SMALL}, lambda: dense((6, 5), 3, level=3.0)),
    "log": ({"level": True, "scale": "log", **SMALL}, lambda: np.exp(dense((6, 5), 4))),
    "not_robust": ({"robust": False, "noise": "shared", **SMALL}, lambda: dense((6, 5), 5)),
    "fast": ({"preset": "fast", "max_rank": 3, "window": 4, **DOUBLE}, lambda: dense((6, 5), 6)),
    "paper": ({"preset": "paper", **SMALL}, lambda: dense((6, 5), 7, observed=1.0)),
    "paper_converged": (
        {"preset": "paper", "max_iterations": 100, **SMALL},
        lambda: dense((6, 5), 7, observed=1.0),
    ),
    "three_modes": (SMALL, lambda: dense((4, 3, 2), 8)),
    "vector": ({"level": True, **SMALL}, lambda: dense((7,), 9)),
    "sparse": ({"max_rank": 2, "window": 3, **DOUBLE}, lambda: sparse(10)),
}
