"""Sparse slices: the door, the path that is chosen, and agreement with the path that keeps all entries."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.engine import capacity, functional, memory
from undertow.inputs import packing
from undertow.inputs.packing import entry_capacity, fibres
from undertow.inputs.sparse import as_entries
from undertow.inputs.split import half
from undertow.model.step import step as model_step

SHAPE = (11, 8)
SMALL = {"max_rank": 4, "window": 5, "dtype": "float64"}


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


@pytest.mark.parametrize("changes", [{}, {"robust": False}, {"scale": "log"}], ids=str)
def test_both_paths_agree(changes):
    config = ut.make_config("fixed", noise="shared", **SMALL, **changes)
    everything, observed = functional.init(config, SHAPE), functional.init(config, SHAPE, entries=9)
    rooms, ranks = [], []
    for x in stream(SHAPE, 12):
        everything, theirs = functional.step(everything, x)
        observed, ours = functional.step(observed, x)
        for name in ("low_rank", "std", "low_rank_std", "outliers", "outlier_probability"):
            wanted = getattr(theirs, name)[x.indices]
            np.testing.assert_allclose(getattr(ours, name), wanted, rtol=1e-6, atol=1e-9, err_msg=name)
        assert (ours.rank, ours.iterations, ours.status) == (theirs.rank, theirs.iterations, theirs.status)
        assert ours.elbo == pytest.approx(theirs.elbo, rel=1e-9)
        np.testing.assert_array_equal(ours.indices, x.indices)
        rooms.append(observed.entry_capacity)
        ranks.append(ours.rank)
    assert rooms[6:8] == [64, 96]  # the window has grown
    assert len(set(ranks)) > 1
    all_of_it = np.indices(SHAPE)
    for name in ("low_rank", "std", "low_rank_std"):
        ours, theirs = (getattr(functional.at(state, all_of_it), name) for state in (observed, everything))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    earlier = functional.smoothed(observed, 2)
    wanted = functional.smoothed(everything, 2).low_rank[earlier.indices]
    np.testing.assert_allclose(earlier.low_rank, wanted, rtol=1e-6, atol=1e-9)


@pytest.fixture
def always_sparse(monkeypatch):
    """However small: so that tests need not be large."""
    monkeypatch.setattr(capacity, "SMALL_WINDOW", 0)
    monkeypatch.setattr(capacity, "SPARSE_FRACTION", 1.0)


def test_the_first_slice_decides_which_path():
    row = np.arange(40)
    few = ut.Entries((row, row), row + 1.0, (20_000, 500))
    assert capacity.prefers_entries(20, few)
    assert not capacity.prefers_entries(20, replace(few, shape=(200, 400)))  # small
    many = np.unravel_index(np.arange(60_000), (1000, 1000))
    assert not capacity.prefers_entries(20, ut.Entries(many, np.ones(60_000), (1000, 1000)))  # 6 %
    result = ut.RobustCP(window=3).update(few)
    assert result.low_rank.shape == (40,)
    told = {"entries": "observed", "noise": "shared", "level": False, "robust": True, "max_rank": 16}
    assert told.items() <= result.settings.items()


def test_small_sparse_slices_go_the_way_of_whole_ones():
    xs = list(stream((6, 5), 3))
    model, other = ut.RobustCP("fixed", **SMALL), ut.RobustCP("fixed", **SMALL)
    for x in xs:
        whole = np.full(x.shape, np.nan)
        whole[x.indices] = x.values
        np.testing.assert_array_equal(model.update(x).low_rank, other.update(whole).low_rank)
    np.testing.assert_array_equal(model.at([0, 2], [1, 4]).std, other.smoothed().std[[0, 2], [1, 4]])
    assert "entries" not in model.smoothed().settings


def test_save_load_and_the_rest_of_the_shell(always_sparse, tmp_path):
    *xs, last = stream(SHAPE, 4)
    model = ut.RobustCP("fixed", **SMALL).partial_fit(xs)
    assert model.get_params()["noise"] is None
    assert model.config.noise == "shared"
    assert "3 slices of 11×8" in repr(model)
    assert [matrix.shape[0] for matrix in model.factors.modes] == [11, 8]
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


def test_scipy_of_any_format(always_sparse):
    x = scipy.sparse.random_array(SHAPE, density=0.3, rng=np.random.default_rng(0))
    told = []
    for kind in ("coo", "csr", "csc", "lil", "dok", "bsr"):
        result = ut.RobustCP(**SMALL).update(x.asformat(kind))
        order = np.lexsort(result.indices)
        told.append((result.low_rank[order], *(index[order] for index in result.indices)))
    for other in told[1:]:
        np.testing.assert_array_equal(other, told[0])
    old = as_entries(scipy.sparse.csr_matrix(x.toarray()))
    assert old.values.sum() == pytest.approx(x.sum())


def test_zeros_are_observations_and_nan_asks():
    x = ut.Entries(([0, 1, 2], [0, 0, 0]), [0.0, np.nan, 2.0], (3, 2))
    np.testing.assert_array_equal(x.mask, [True, False, True])
    piece = x.to_slice()
    np.testing.assert_array_equal(piece.mask[:, 0], [True, False, True])
    assert not piece.mask[:, 1].any()


def test_a_slice_without_entries(always_sparse):
    nothing = ut.Entries(([], []), [], SHAPE)
    model = ut.RobustCP(**SMALL)
    for x in (nothing, *stream(SHAPE, 2), nothing):
        result = model.update(x)
    assert "EMPTY" in result.status.codes
    assert result.low_rank.shape == (0,)
    assert np.isfinite(model.at([0], [0]).std).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((([0, 1], [0, 1]), [1.0], (2, 2)), "indices of mode 0 must be as many"),
        ((([0, 2], [0, 1]), [1.0, 2.0], (2, 2)), "below its size 2, got 2"),
        ((([0, -1], [0, 1]), [1.0, 2.0], (2, 2)), "at least 0 and below its size 2, got -1"),
        ((([0.0, 1.0], [0, 1]), [1.0, 2.0], (2, 2)), "must be integers, got dtype float64"),
        ((([0, 1],), [1.0, 2.0], (2, 2)), "a tuple of 2 arrays"),
        ((np.zeros((2, 2), int), [1.0, 2.0], (2, 2)), "a tuple of 2 arrays.* got ndarray"),
        ((([0, 1], [0, 1]), [1.0, np.inf], (2, 2)), r"must be finite, got 1 infinite of 2, the first at \(1, 1\)"),
        ((([0, 1, 0], [0, 1, 0]), [1.0, 2.0, 3.0], (2, 2)), r"once each, got 1 repeated, the first at \(0, 0\)"),
        ((([0, 0], [0, 0]), [1.0, 2.0], (2**31 - 1,) * 2), "once each"),
        ((([0], [0], [0]), [1j], (2**31 - 1,) * 3), "real numbers"),
        ((([0, 0],) * 3, [1.0, 2.0], (2**31 - 1,) * 3), "once each"),
        ((([0], [0]), [[1.0]], (2, 2)), "in one row"),
        ((([0], [0]), [1.0], (2, 0)), "each of size 1 to"),
        ((([0], [0]), [1.0], (2, 2.5)), "tuple of integers"),
    ],
)
def test_bad_entries_are_refused_in_one_sentence(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ut.Entries(*arguments)


def test_a_mask_beside_sparse_input_is_refused():
    with pytest.raises(ValueError, match="mask must not be given with a sparse x"):
        ut.RobustCP().update(scipy.sparse.eye(3), mask=np.ones((3, 3)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_goes_in_comes_back(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    size = int(np.prod(shape))
    where = np.array(data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=20)), int)
    indices = np.unravel_index(where, shape)
    values = np.array(data.draw(st.lists(st.floats(-9, 9), min_size=where.size, max_size=where.size)))
    x = ut.Entries(indices, values, shape)
    room = entry_capacity(where.size)
    assert room >= max(64, where.size)
    (kept,) = packing.packed(x, room, x.values)
    np.testing.assert_array_equal(packing.unpacked(kept, x), values)
    entry_index = packing.entry_index(x, room)
    whole = x.to_slice()
    sorted_ones = tuple(index[: where.size] for index in entry_index.indices)
    np.testing.assert_array_equal(whole.values[sorted_ones], kept[: where.size])
    np.testing.assert_array_equal(half(whole, 7)[indices], half(x, 7))
    smaller = sorted(range(len(shape)), key=lambda mode: -shape[mode])
    for level, fibre in enumerate(fibres(sorted_ones, shape), start=1):
        rest = np.stack([sorted_ones[mode] for mode in smaller[level:]])
        np.testing.assert_array_equal(rest[:, fibre], rest)
        assert len(set(fibre)) == len({tuple(column) for column in rest.T})


def test_buckets_are_few_and_fit():
    rooms = [entry_capacity(count) for count in range(1, 5000)]
    assert all(room >= count for count, room in enumerate(rooms, start=1))
    assert sorted(set(rooms)) == [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144]


def compiled(shape, count, rank=2):
    config = ut.make_config("fixed", max_rank=rank, window=3, noise="shared")
    state = functional.init(config, shape, entries=count)
    x = ut.Entries(tuple(np.arange(count) for _ in shape), np.ones(count), shape)
    values = packing.packed(x, state.entry_capacity, x.values.astype(np.float32), x.mask)
    return model_step.lower(
        state.core, *values, config.settings(), None, packing.entry_index(x, state.entry_capacity)
    ).compile()


def test_memory_goes_with_entries_and_rows_not_with_the_size_of_a_slice():
    small, large, twice = (
        compiled(shape, count).memory_analysis()
        for shape, count in (((100, 100), 96), ((10_000, 10_000), 96), ((10_000, 10_000), 192))
    )
    rows = 2 * (10_000 - 100)
    per_row = (large.temp_size_in_bytes - small.temp_size_in_bytes) / rows
    assert per_row < 4 * 100  # a slice has 10,000 entries per row
    assert twice.temp_size_in_bytes - large.temp_size_in_bytes < 3 * 96 * 4 * 100
    config = ut.make_config("fixed", max_rank=2, window=3, noise="shared")
    needed = sum(memory.sparse_bytes(config, (10_000, 10_000), 96))
    assert large.temp_size_in_bytes + large.argument_size_in_bytes + large.output_size_in_bytes < needed


def test_slices_too_large_for_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000_000)
    with pytest.raises(ValueError, match="GiB are free"):
        functional.init(ut.make_config("fixed", noise="shared"), (100_000, 10_000), entries=1000)


def test_one_program_per_entry_capacity():
    config = ut.make_config("fixed", max_rank=2, window=3, noise="shared")
    before = model_step._cache_size()
    state = functional.init(config, (50, 60), entries=1)
    for count in (5, 40, 64, 80, 96, 70):
        state, _ = functional.step(
            state, ut.Entries((np.arange(count) % 50, np.arange(count) % 60), np.ones(count), (50, 60))
        )
    assert state.entry_capacity == 96
    assert model_step._cache_size() - before == 2


def test_doctest():
    import doctest

    from undertow.inputs import sparse as entries

    result = doctest.testmod(entries)
    assert (result.attempted > 0, result.failed) == (True, 0)
