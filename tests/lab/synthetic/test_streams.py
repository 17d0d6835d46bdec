import math

import numpy as np
import pytest

from undertow.lab.synthetic.streams import authors, drifting, traffic

SHAPES = [(7,), (6, 5), (4, 5, 3), (2, 3, 2, 3)]
GENERATORS = [drifting, authors]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("generate", GENERATORS)
def test_counts_are_exact_and_parts_add_up(generate, shape):
    stream = generate(shape, 2, slices=6, observed=0.3, outlier_fraction=0.2, seed=3)
    entries = math.prod(shape)
    assert len(stream) == 6
    assert stream.shape == shape
    assert (stream.mask.reshape(6, -1).sum(axis=1) == math.ceil(0.3 * entries)).all()
    assert (stream.outlier_mask.reshape(6, -1).sum(axis=1) == math.floor(0.2 * entries)).all()
    np.testing.assert_array_equal(np.isnan(stream.values), stream.hidden)
    np.testing.assert_array_equal(stream.values[stream.mask], stream.complete[stream.mask])


def test_share_that_floating_point_spoils_is_still_exact():
    stream = drifting(
        (100,), 1, slices=1, observed=0.07, outlier_fraction=0.29
    )  # 0.29 · 100 = 28.999…, 0.07 · 100 = 7.000…1
    assert stream.mask.sum() == 7
    assert stream.outlier_mask.sum() == 29


@pytest.mark.parametrize("generate", GENERATORS)
def test_seed_decides_and_the_truth_does_not_depend_on_the_mask(generate):
    one, same = generate((5, 4), 2, slices=4, seed=1), generate((5, 4), 2, slices=4, seed=1)
    np.testing.assert_array_equal(one.complete, same.complete)
    assert not np.allclose(one.low_rank, generate((5, 4), 2, slices=4, seed=2).low_rank)
    sparse = generate((5, 4), 2, slices=4, seed=1, observed=0.3, missing="rows")
    np.testing.assert_array_equal(sparse.complete, one.complete)


@pytest.mark.parametrize("generate", GENERATORS)
def test_every_slice_has_the_rank(generate):
    stream = generate((8, 9), 3, slices=5)
    assert [np.linalg.matrix_rank(slice_, tol=1e-9) for slice_ in stream.low_rank] == [3] * 5


def test_drifting_scale_noise_and_outliers():
    stream = drifting((40, 40), 5, slices=20, seed=0)
    assert np.abs(stream.low_rank).mean() == pytest.approx(1)
    rest = stream.complete - stream.low_rank
    assert rest[~stream.outlier_mask].std() == pytest.approx(0.1, rel=0.03)
    added = rest[stream.outlier_mask]
    assert np.abs(added).mean() == pytest.approx(10, rel=0.01)
    assert (added > 0).mean() == pytest.approx(0.5, abs=0.1)
    for sign, wanted in (("positive", 1), ("negative", -1)):
        stream = drifting(
            (9, 9), 2, slices=3, outlier_sign=sign, noise_std=0, outlier_magnitude=3, outlier_fraction=0.1
        )
        np.testing.assert_allclose((stream.complete - stream.low_rank)[stream.outlier_mask], 3 * wanted)


def test_drifting_follows_its_formula():
    """Without temporal row the last slice is made of Q alone and the path between is a polynomial of degree N in t."""
    stream = drifting((6, 5), 2, slices=8, temporal="constant", normalize=False, seed=4)
    third = np.diff(stream.low_rank, n=3, axis=0)
    np.testing.assert_allclose(third, 0, atol=1e-10)
    assert np.abs(np.diff(stream.low_rank, n=2, axis=0)).max() > 1e-3


def test_no_drift_without_temporal_row_stands_still():
    stream = drifting((6, 5), 2, slices=4, drift=0, temporal="constant")
    np.testing.assert_allclose(stream.low_rank, stream.low_rank[:1].repeat(4, axis=0))
    moving = drifting((6, 5), 2, slices=4, drift=0)
    assert not np.allclose(moving.low_rank[0], moving.low_rank[1])


def test_normal_temporal_rows_without_drift_share_one_subspace():
    stream = drifting((6, 5), 2, slices=10, drift=False)
    assert np.linalg.matrix_rank(stream.low_rank.reshape(10, -1)) == 2


def test_authors_units():
    stream = authors((40, 40), 5, slices=10, seed=1)
    assert stream.low_rank[0].mean() == pytest.approx(1)
    assert stream.low_rank.min() > 0
    rest = stream.complete - stream.low_rank
    assert rest[stream.outlier_mask].mean() == pytest.approx(10, rel=1e-3)
    assert rest[~stream.outlier_mask].std() == pytest.approx(stream.noise_std, rel=0.03)
    raw = authors((40, 40), 5, slices=10, seed=1, normalize=False)
    mean = raw.low_rank[0].mean()
    np.testing.assert_allclose(raw.complete / mean, stream.complete)
    assert raw.noise_std == 0.01
    assert stream.noise_std == pytest.approx(0.01 / mean)


def test_authors_drift_does_not_depend_on_the_length():
    short, long = (authors((4, 3), 2, slices=n, normalize=False, seed=2).low_rank for n in (5, 50))
    np.testing.assert_allclose(short, long[:5])
    relative = np.linalg.norm(long[49] - long[0]) / np.linalg.norm(long[0])
    assert 0.02 < relative < 0.3


@pytest.mark.parametrize("generate", GENERATORS)
def test_abrupt_change_happens_exactly_there(generate):
    stream = generate((8, 8), 2, slices=10, change_at=6, temporal="constant", drift=0.1)
    jumps = np.linalg.norm(np.diff(stream.low_rank, axis=0), axis=(1, 2))
    assert jumps.argmax() == 5
    assert jumps[5] > 5 * np.delete(jumps, 5).max()


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_missing_whole(shape):
    mask = drifting(shape, 1, slices=6, observed=0.5, missing="rows").mask
    lines = mask.reshape(6, shape[0], -1)
    assert (lines.all(axis=2) | ~lines.any(axis=2)).all()
    assert (lines.all(axis=2).sum(axis=1) == math.ceil(0.5 * shape[0])).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_are_contiguous_boxes(shape):
    for hidden in ~drifting(shape, 1, slices=6, observed=0.5, missing="blocks").mask:
        where = np.argwhere(hidden)
        assert 0 < len(where) < hidden.size
        assert len(where) == np.prod(where.max(axis=0) - where.min(axis=0) + 1)


def test_extreme_shares():
    assert drifting((4, 4), 1, slices=2, observed=0).mask.sum() == 0
    assert drifting((4, 4), 1, slices=2, observed=0, missing="blocks").mask.sum() == 0
    assert drifting((4, 4), 1, slices=2, observed=1, missing="blocks").mask.all()
    assert drifting((4, 4), 1, slices=2, outlier_fraction=1).outlier_mask.all()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"shape": ()}, "shape must"),
        ({"shape": (3, 0)}, "shape must"),
        ({"rank": 0}, "rank must"),
        ({"slices": 0}, "slices must"),
        ({"observed": 15}, "observed must lie between 0 and 1, got 15"),
        ({"outlier_fraction": -0.1}, "outlier_fraction must"),
        ({"outlier_sign": "up"}, "outlier_sign must"),
        ({"noise_std": math.nan}, "noise must"),
        ({"drift": 2}, "drift must"),
        ({"temporal": "random"}, "temporal must"),
        ({"missing": "columns"}, "missing must"),
        ({"change_at": 0}, "change_at must"),
        ({"change_at": 3}, "change_at must"),
    ],
)
@pytest.mark.parametrize("generate", GENERATORS)
def test_bad_parameters(generate, bad, words):
    with pytest.raises(ValueError, match=words):
        generate(**{"shape": (4, 4), "rank": 2, "slices": 3, **bad})


def test_traffic_is_positive_low_rank_and_daily():
    stream = traffic(16, slices=288, seed=5)
    assert stream.complete.min() > 0
    sizes = np.linalg.svd(stream.low_rank[150], compute_uv=False)
    assert sizes[4] < 1e-10 * sizes[0]
    assert sizes[1] > 0.02 * sizes[0]
    total = stream.low_rank.sum(axis=(1, 2))
    assert total[10 * 12 : 11 * 12].mean() > 1.5 * total[5 * 12 : 6 * 12].mean()  # ten o'clock against five


def test_traffic_anomalies_and_gaps():
    stream = traffic(16, slices=200, observed=0.7, anomaly_fraction=0.02, seed=6)
    assert stream.outlier_mask.mean() == pytest.approx(0.02, rel=0.1)
    rest = np.abs(stream.complete - stream.low_rank)
    assert np.median(rest[stream.outlier_mask]) > 20 * np.median(rest[~stream.outlier_mask])
    assert 0.66 < stream.mask.mean() < 0.7
    assert (~stream.mask.any(axis=2)).any()  # a router that went silent
    clean = traffic(5, slices=4, anomaly_fraction=0, observed=1)
    assert not clean.outlier_mask.any()
    assert clean.mask.all()


@pytest.mark.parametrize("bad", [{"nodes": 0}, {"slices": 0}, {"slices_per_day": 0}, {"noise": -1}, {"observed": 70}])
def test_traffic_bad_parameters(bad):
    with pytest.raises(ValueError, match="must"):
        traffic(**{"nodes": 4, "slices": 4, **bad})
