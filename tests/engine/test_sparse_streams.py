"""Streams of which only observed entries are kept: agreement with streams that keep all, and the rest of RobustCP."""

import numpy as np
import pytest
import scipy.sparse

import undertow as ut
from undertow.engine import capacity, functional, memory
from undertow.inputs import packing
from undertow.model.step import step as model_step

pytestmark = pytest.mark.slow
SHAPE = (6, 5)
SMALL = {"max_rank": 3, "window": 4, "dtype": "float64"}
WIDE = (11, 8), {"max_rank": 4, "window": 5, "dtype": "float64"}
"""A slice of this shape can have more entries than the smallest capacity."""


def stream(shape, slices, seed=3):
    """A component of its own from the sixth slice on; the eighth has many entries; entries in no order."""
    rng = np.random.default_rng(seed)
    modes = [rng.normal(size=(size, 2)) for size in shape]
    for time in range(slices):
        row = np.array([1.5, 1.2 if time > 4 else 0]) * rng.normal(1, 0.3, 2)
        x = np.stack([modes[0][:, r] * row[r] for r in (0, 1)], axis=-1)
        for mode in modes[1:]:
            x = x[..., None, :] * mode
        x = x.sum(axis=-1) + 0.05 * rng.normal(size=shape)
        x = np.where(rng.random(shape) < 0.03, x + 5 * rng.normal(size=shape), x)
        where = rng.permutation(np.flatnonzero(rng.random(x.size) < (0.8 if time == 7 else 0.3)))
        indices = np.unravel_index(where, shape)
        yield ut.Entries(indices, x[indices], shape)


@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        (SHAPE, SMALL),
        *(
            pytest.param(WIDE[0], {**WIDE[1], **changes}, marks=pytest.mark.full)
            for changes in ({}, {"robust": False}, {"scale": "log"})
        ),
    ],
    ids=str,
)
def test_streams_that_keep_observed_entries_agree_with_those_that_keep_all(shape, settings):
    config = ut.make_config(noise="shared", **settings)
    everything, observed = functional.init(config, shape), functional.init(config, shape, entries=9)
    capacities, ranks = [], []
    for x in stream(shape, 12):
        everything, expected = functional.step(everything, x)
        observed, found = functional.step(observed, x)
        for name in ("low_rank", "std", "low_rank_std", "outliers", "outlier_probability"):
            wanted = getattr(expected, name)[x.indices]
            np.testing.assert_allclose(getattr(found, name), wanted, rtol=1e-6, atol=1e-9, err_msg=name)
        assert (found.rank, found.iterations, found.status) == (expected.rank, expected.iterations, expected.status)
        assert found.elbo == pytest.approx(expected.elbo, rel=1e-9)
        np.testing.assert_array_equal(found.indices, x.indices)
        capacities.append(observed.entry_capacity)
        ranks.append(found.rank)
    assert capacities[6:8] == [64, 96 if shape == WIDE[0] else 64]  # a window grows with its slices
    assert len(set(ranks)) > 1
    all_of_it = np.indices(shape)
    for name in ("low_rank", "std", "low_rank_std"):
        found, expected = (getattr(functional.at(state, all_of_it), name) for state in (observed, everything))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    earlier = functional.smoothed(observed, 2)
    wanted = functional.smoothed(everything, 2).low_rank[earlier.indices]
    np.testing.assert_allclose(earlier.low_rank, wanted, rtol=1e-6, atol=1e-9)


@pytest.fixture
def always_sparse(monkeypatch):
    """However small: so that tests need not be large."""
    monkeypatch.setattr(capacity, "SMALL_WINDOW", 0)
    monkeypatch.setattr(capacity, "SPARSE_FRACTION", 1.0)


@pytest.mark.full
def test_a_large_sparse_stream_keeps_observed_entries():
    row = np.arange(40)
    few = ut.Entries((row, row), row + 1.0, (20_000, 500))
    result = ut.RobustCP(window=3).update(few)
    assert result.low_rank.shape == (40,)
    expected = {"entries": "observed", "noise": "shared", "level": False, "robust": True, "max_rank": 16}
    assert expected.items() <= result.settings.items()


def test_small_sparse_slices_are_learned_as_dense_ones():
    xs = list(stream((6, 5), 3))
    model, other = (ut.RobustCP(max_rank=3, window=4, dtype="float64") for _ in range(2))
    for x in xs:
        whole = np.full(x.shape, np.nan)
        whole[x.indices] = x.values
        np.testing.assert_array_equal(model.update(x).low_rank, other.update(whole).low_rank)
    np.testing.assert_array_equal(model.at([0, 2], [1, 4]).std, other.smoothed().std[[0, 2], [1, 4]])
    assert "entries" not in model.smoothed().settings


def test_save_load_and_the_rest_of_the_model(always_sparse, tmp_path):
    *xs, last = stream(SHAPE, 4)
    model = ut.RobustCP(**SMALL).partial_fit(xs)
    assert model.get_params()["noise"] is None
    assert model.config.noise == "shared"
    assert "3 slices of 6×5" in repr(model)
    assert [matrix.shape[0] for matrix in model.factors.modes] == [6, 5]
    model.save(tmp_path / "state.ckpt")
    loaded = ut.load(tmp_path / "state.ckpt")
    one, other = model.update(last), loaded.update(last)
    np.testing.assert_array_equal(one.low_rank, other.low_rank)
    assert one.elbo == other.elbo
    with pytest.raises(ValueError, match="use at"):
        model.transform(xs)
    with pytest.raises(TypeError, match=r"must be sparse .* like the stream before it, got ndarray"):
        model.update(np.ones(SHAPE))
    with pytest.raises(ValueError, match="a list of sparse slices"):
        model.partial_fit(last)
    with pytest.raises(ValueError, match="must have shape"):
        model.update(scipy.sparse.eye(8))
    np.testing.assert_array_equal(model.smoothed().low_rank, loaded.smoothed().low_rank)  # nothing has changed


@pytest.mark.parametrize(
    "given_settings", [{"level": True}, {"noise": "entry"}, {"preset": "paper"}, {"preset": "fast"}], ids=str
)
def test_what_needs_all_entries_is_refused(always_sparse, given_settings):
    with pytest.raises(ValueError, match="where only observed entries are kept"):
        ut.RobustCP(**given_settings).update(next(stream(SHAPE, 1)))


def test_a_slice_without_entries(always_sparse):
    nothing = ut.Entries(([], []), [], SHAPE)
    model = ut.RobustCP(**SMALL)
    for x in (nothing, *stream(SHAPE, 2), nothing):
        result = model.update(x)
    assert "EMPTY" in result.status.codes
    assert result.low_rank.shape == (0,)
    assert np.isfinite(model.at([0], [0]).std).all()


def compiled(shape, count, rank=2):
    config = ut.make_config(max_rank=rank, window=3, noise="shared")
    state = functional.init(config, shape, entries=count)
    x = ut.Entries(tuple(np.arange(count) for _ in shape), np.ones(count), shape)
    values = packing.packed(x, state.entry_capacity, x.values.astype(np.float32), x.mask)
    return model_step.lower(
        state.core, *values, config.settings(), None, packing.entry_index(x, state.entry_capacity)
    ).compile()


@pytest.mark.full
def test_memory_goes_with_entries_and_rows_not_with_the_size_of_a_slice():
    small, large, twice = (
        compiled(shape, count).memory_analysis()
        for shape, count in (((100, 100), 96), ((10_000, 10_000), 96), ((10_000, 10_000), 192))
    )
    rows = 2 * (10_000 - 100)
    per_row = (large.temp_size_in_bytes - small.temp_size_in_bytes) / rows
    assert per_row < 4 * 100  # a slice has 10,000 entries per row
    assert twice.temp_size_in_bytes - large.temp_size_in_bytes < 3 * 96 * 4 * 100
    config = ut.make_config(max_rank=2, window=3, noise="shared")
    needed = sum(memory.sparse_bytes(config, (10_000, 10_000), 96))
    assert large.temp_size_in_bytes + large.argument_size_in_bytes + large.output_size_in_bytes < needed


@pytest.mark.full
def test_one_program_per_entry_capacity():
    config = ut.make_config(max_rank=2, window=3, noise="shared")
    before = model_step.count()
    state = functional.init(config, (50, 60), entries=1)
    for count in (5, 40, 64, 80, 96, 70):
        state, _ = functional.step(
            state, ut.Entries((np.arange(count) % 50, np.arange(count) % 60), np.ones(count), (50, 60))
        )
    assert state.entry_capacity == 96
    assert model_step.count() - before == 2
