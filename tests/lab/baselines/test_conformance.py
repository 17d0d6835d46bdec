"""What every baseline promises, checked on every entry of the registry."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import undertow.lab.baselines
from undertow.lab.baselines import METHODS, Baseline, BaselineResult

# Small settings, so that every method gets past its first slices quickly.
SMALL: dict[str, dict[str, Any]] = {
    "running_median": {"window": 3},
    "online_cp": {"initial_slices": 3},
    "olstec_truncated": {"window": 3},
    "brtf": {"window": 6, "iterations": 8},
    "grasta_trained": {"training_slices": 3, "training_passes": 10, "constant_step": 0.05},
    "sofia": {"period": 3, "cycles": 2, "iterations": 5},
    "tensorly_robust_pca": {"window": 4},
    "tensorly_masked_cp": {"window": 4, "iterations": 10},
}
SHAPES = [(7,), (6, 5), (4, 3, 5)]
SLICES = 9


def _readme_skeleton() -> Baseline:
    """The skeleton that contributors copy: it must keep the promises too."""
    page = (Path(undertow.lab.baselines.__file__).parent / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    skeleton = next(block for block in blocks if "def init(" in block)
    module = types.ModuleType("skeleton")
    sys.modules["skeleton"] = module  # dataclasses look their module up
    exec(compile(skeleton, "README.md", "exec"), module.__dict__)
    (baseline,) = module.BASELINES
    return baseline


_SKELETON = _readme_skeleton()
EVERY = {**METHODS, _SKELETON.name: _SKELETON}


# Those that iterate over windows take seconds; the others are quick enough for every save.
@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow if one.robust or one.batch else ()) for name, one in EVERY.items()
    ]
)
def baseline(request: pytest.FixtureRequest) -> Baseline:
    chosen = EVERY[request.param]
    if chosen.requires and importlib.util.find_spec(chosen.requires) is None:
        pytest.skip(f"needs {chosen.requires}")
    return chosen


@pytest.fixture
def patchy(baseline: Baseline) -> Baseline:
    """A baseline for incomplete data."""
    if not baseline.missing:
        pytest.skip("full data only")
    return baseline


def configured(baseline: Baseline, **settings: Any) -> Any:
    small = {**SMALL.get(baseline.name, {}), **({"rank": 2} if "rank" in baseline.settings else {})}
    return baseline.configure(**{**small, **settings})


def stream(baseline: Baseline, shape: tuple[int, ...] = (6, 5), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rank 2 with a season of three slices and a few outliers; the mask is full for methods that need it so."""
    draw = np.random.default_rng(seed)
    values = seasonal(shape, SLICES, draw) + 0.01 * draw.standard_normal((SLICES, *shape))
    values = values + 5.0 * (draw.random(values.shape) < 0.03)
    mask = draw.random(values.shape) < 0.8 if baseline.missing else np.ones(values.shape, dtype=bool)
    return values, mask


def seasonal(shape: tuple[int, ...], slices: int, draw: np.random.Generator) -> np.ndarray:
    factors = [draw.standard_normal((size, 2)) for size in shape]
    phase = 2 * np.pi * np.arange(slices)[:, None] / 3 + np.array([0.0, 1.6])
    values = np.stack([_compose(factors, row) for row in 1.5 + np.sin(phase)])
    return values / np.abs(values).mean()


def _compose(factors: list[np.ndarray], row: np.ndarray) -> np.ndarray:
    total: np.ndarray = np.zeros(tuple(len(factor) for factor in factors))
    for r, weight in enumerate(row):
        outer: Any = weight
        for factor in factors:
            outer = np.multiply.outer(outer, factor[:, r])
        total += outer
    return total


def run(
    baseline: Baseline, values: np.ndarray, masks: np.ndarray | None, **settings: Any
) -> tuple[list[Any], list[BaselineResult]]:
    state = baseline.init(configured(baseline, **settings), values.shape[1:])
    states, results = [state], []
    for t in range(len(values)):
        state, result = baseline.step(state, values[t], None if masks is None else masks[t])
        states.append(state)
        results.append(result)
    return states, results


def arrays(result: BaselineResult) -> list[np.ndarray]:
    parts = (result.low_rank, result.prediction, result.outliers, result.outlier_score)
    return [part for part in parts if part is not None]


def assert_same(one: list[BaselineResult], other: list[BaselineResult]) -> None:
    for first, second in zip(one, other, strict=True):
        assert (first.status, first.rank) == (second.status, second.rank)
        for left, right in zip(arrays(first), arrays(second), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_results_have_the_shape_of_the_slice_at_every_order(baseline: Baseline) -> None:
    for shape in SHAPES:
        values, mask = stream(baseline, shape)
        _, results = run(baseline, values, mask)
        for result in results:
            for part in arrays(result):
                assert part.shape == shape
                assert part.dtype == np.float64
                assert np.isfinite(part).all()
        assert results[0].prediction is None
        assert results[-1].prediction is not None
        assert results[-1].status == "ok"


def test_outlier_scores_are_zero_where_nothing_was_observed(patchy: Baseline) -> None:
    values, mask = stream(patchy)
    _, results = run(patchy, values, mask)
    for result, observed in zip(results, mask, strict=True):
        assert result.outlier_score is not None
        assert (result.outlier_score >= 0).all()
        assert (result.outlier_score[~observed] == 0).all()
    assert results[-1].outlier_score is not None
    assert results[-1].outlier_score.max() > 0


@pytest.mark.slow
def test_prediction_does_not_know_the_slice(baseline: Baseline) -> None:
    values, mask = stream(baseline)
    states, _ = run(baseline, values[:-1], mask[:-1])
    _, one = baseline.step(states[-1], values[-1], mask[-1])
    _, other = baseline.step(states[-1], 3.0 - 2.0 * values[-1], mask[-1])
    assert one.prediction is not None
    assert other.prediction is not None
    np.testing.assert_array_equal(one.prediction, other.prediction)
    assert not np.array_equal(one.low_rank, other.low_rank)


def test_step_is_pure(baseline: Baseline) -> None:
    values, mask = stream(baseline)
    states, results = run(baseline, values, mask)
    for t in (0, 3, SLICES - 1):
        before = [leaf.copy() for leaf in jax.tree.leaves(states[t])]
        _, again = baseline.step(states[t], values[t], mask[t])
        assert_same([again], [results[t]])
        for leaf, kept in zip(jax.tree.leaves(states[t]), before, strict=True):
            np.testing.assert_array_equal(leaf, kept)


def test_inputs_are_neither_changed_nor_kept(baseline: Baseline) -> None:
    values, mask = stream(baseline)
    _, expected = run(baseline, values, mask)
    state, found = baseline.init(configured(baseline), values.shape[1:]), []
    for t in range(SLICES):
        given, flags = values[t].copy(), mask[t].copy()
        state, result = baseline.step(state, given, flags)
        np.testing.assert_array_equal(given, values[t])
        np.testing.assert_array_equal(flags, mask[t])
        given[:], flags[:] = -77.0, False  # the caller goes on with his arrays
        found.append(result)
    assert_same(found, expected)


def test_results_belong_to_the_caller(baseline: Baseline) -> None:
    values, mask = stream(baseline)
    _, expected = run(baseline, values, mask)
    state = baseline.init(configured(baseline), values.shape[1:])
    for t in range(SLICES):
        state, result = baseline.step(state, values[t], mask[t])
        assert_same([result], [expected[t]])
        for part in arrays(result):
            part[:] = np.nan  # writable, and not part of the state


def test_masked_values_are_ignored_whatever_they_hold(patchy: Baseline) -> None:
    values, mask = stream(patchy)
    _, expected = run(patchy, values, mask)
    for garbage in (np.nan, np.inf, -1e300):
        _, found = run(patchy, np.where(mask, values, garbage), mask)
        assert_same(found, expected)


def test_nan_is_missing(patchy: Baseline) -> None:
    values, mask = stream(patchy)
    _, expected = run(patchy, values, mask)
    _, found = run(patchy, np.where(mask, values, np.nan), None)
    assert_same(found, expected)


def test_whole_slices_may_be_missing(patchy: Baseline) -> None:
    values, mask = stream(patchy)
    mask[0] = mask[SLICES // 2] = mask[-1] = False
    _, results = run(patchy, values, mask)
    for result in results:
        assert all(np.isfinite(part).all() for part in arrays(result))
    assert results[-1].status == "no data"
    assert results[-2].status == "ok"
    # Nothing was seen, so what was known before is the answer.
    assert results[-1].prediction is not None
    np.testing.assert_allclose(results[-1].low_rank, results[-1].prediction, rtol=0, atol=0.2)


@pytest.mark.parametrize("where", [0, 4, SLICES - 1])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_absurd_values_end_in_a_status_not_in_an_exception(baseline: Baseline, where: int) -> None:
    values, mask = stream(baseline)
    values[where] *= 1e200  # its square is not a number any more
    _, results = run(baseline, values, mask)
    for result in results:
        assert all(np.isfinite(part).all() for part in arrays(result))
        assert result.status in ("ok", "initialising", "diverged", "rank 0")
    if (
        where < SLICES - 1 and not baseline.batch
    ):  # a window keeps the slice for a while, all others must have recovered
        assert results[-1].status in ("ok", "initialising")


def test_full_data_methods_refuse_gaps_with_a_sentence(baseline: Baseline) -> None:
    if baseline.missing:
        pytest.skip("takes gaps")
    values, mask = stream(baseline)
    mask[0, 0] = False
    state = baseline.init(configured(baseline), values.shape[1:])
    with pytest.raises(ValueError, match="needs every entry") as caught:
        baseline.step(state, values[0], mask[0])
    assert "\n" not in str(caught.value)


def test_the_seed_decides_the_start(baseline: Baseline) -> None:
    if "seed" not in baseline.settings:
        pytest.skip("draws nothing")
    values, mask = stream(baseline)
    _, one = run(baseline, values, mask, seed=1)
    _, same = run(baseline, values, mask, seed=1)
    assert_same(one, same)
    if not baseline.name.startswith("tensorly"):  # TensorLy draws only when the rank exceeds a mode
        _, other = run(baseline, values, mask, seed=2)
        assert not np.array_equal(one[-1].low_rank, other[-1].low_rank)


def test_unit_equivariance_where_claimed(baseline: Baseline) -> None:
    if baseline.needs_unit_scale:
        pytest.skip("has absolute settings")
    values, mask = stream(baseline)
    _, results = run(baseline, values, mask)
    for factor in (2.0**20, 1e-3):
        _, scaled = run(baseline, factor * values, mask)
        for small, large in zip(results, scaled, strict=True):
            assert (small.status, small.rank) == (large.status, large.rank)
            for left, right in zip(arrays(small), arrays(large), strict=True):
                size = max(float(np.abs(left).max()), 1.0)
                np.testing.assert_allclose(right / factor, left, rtol=1e-5, atol=1e-6 * size)


def test_state_is_a_pytree_of_arrays_that_does_not_grow(baseline: Baseline) -> None:
    values, mask = stream(baseline)
    states, _ = run(baseline, values, mask)
    sizes = [[leaf.shape for leaf in jax.tree.leaves(state)] for state in states]
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in jax.tree.leaves(states[-1]))
    assert all(size == sizes[0] for size in sizes)
    copied = jax.tree.map(lambda leaf: np.array(leaf), states[-2])
    _, expected = baseline.step(states[-2], values[-1], mask[-1])
    _, found = baseline.step(copied, values[-1], mask[-1])
    assert_same([found], [expected])


@pytest.mark.slow
def test_learns_a_clean_stream(baseline: Baseline) -> None:
    values = seasonal((6, 5), 30, np.random.default_rng(3))
    _, results = run(baseline, values, None)
    errors = [
        np.linalg.norm(result.low_rank - truth) / np.linalg.norm(truth)
        for result, truth in zip(results[-6:], values[-6:], strict=True)
    ]
    # Means lag behind a season, GRASTA turns slowly, a short window is little for BRTF, and a gradient
    # step can converge beside the answer; but none may be near "nothing learned", which is 1.
    exact = {"last_value", "online_cp", "olstec", "olstec_truncated", "sofia"}
    exact |= {"tensorly_robust_pca", "tensorly_masked_cp"}
    assert np.mean(errors) < (0.1 if baseline.name in exact else 0.7)


@pytest.mark.parametrize(
    ("values", "mask", "error", "words"),
    [
        (np.zeros((5, 6)), None, ValueError, "x must have shape"),
        (np.zeros((6, 5), dtype=complex), None, TypeError, "x must hold real"),
        (np.full((6, 5), "a"), None, TypeError, "x must hold real"),
        (np.full((6, 5), np.inf), None, ValueError, "x must be finite"),
        (np.zeros((6, 5)), np.ones(6, dtype=bool), ValueError, "mask must have the shape"),
        (np.zeros((6, 5)), np.full((6, 5), 0.5), ValueError, "mask must hold"),
    ],
)
def test_bad_slices_are_answered_with_one_sentence(
    baseline: Baseline, values: Any, mask: Any, error: type[Exception], words: str
) -> None:
    state = baseline.init(configured(baseline), (6, 5))
    with pytest.raises(error, match=words) as caught:
        baseline.step(state, values, mask)
    assert "\n" not in str(caught.value)
    assert ": " in str(caught.value)  # and what to do


@pytest.mark.parametrize("shape", [(), (0, 3), (2.5,), (-1,)])
def test_bad_shapes_are_answered_with_one_sentence(baseline: Baseline, shape: Any) -> None:
    with pytest.raises(ValueError, match="shape must hold") as caught:
        baseline.init(configured(baseline), shape)
    assert "\n" not in str(caught.value)


def test_bad_settings_are_answered_with_one_sentence(baseline: Baseline) -> None:
    for setting, bad in {"rank": 0, "window": 0, "forgetting": 1.5, "step": -1.0, "kind": "x", "cycles": 1}.items():
        if setting in baseline.settings:
            with pytest.raises(ValueError, match=f"{setting} must") as caught:
                configured(baseline, **{setting: bad})
            assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="has no setting nonsense"):
        configured(baseline, nonsense=1)


def test_every_entry_is_described() -> None:
    for name, entry in METHODS.items():
        assert entry.name == name
        assert entry.citation or entry.naive
        assert entry.label
        assert entry.Config.__doc__
        assert entry.orders == (1, None)
        assert set(entry.defaults) <= set(entry.settings)


def test_missing_package_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorly", None)
    chosen = METHODS["tensorly_masked_cp"]
    with pytest.raises(ImportError) as caught:
        chosen.init(chosen.configure(), (3, 3))
    assert 'pip install "undertow[compare]"' in str(caught.value)
    assert "\n" not in str(caught.value)
