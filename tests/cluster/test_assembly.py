"""From rows to slices, against a plain dictionary."""

import numpy as np
import pytest

from undertow.cluster import assembly
from undertow.cluster.assembly import NEVER, Rows
from undertow.cluster.partition import shard_of


def rows(*given):
    return Rows(*(np.array(column) for column in zip(*given, strict=True)))


@pytest.mark.parametrize("seed", range(5))
def test_slices_are_those_of_a_dictionary(seed):
    draw = np.random.default_rng(seed)
    count, streams, entries = 200, 4, 6
    given = Rows(
        draw.integers(0, streams, count), draw.integers(-3, 5, count), draw.integers(0, entries, count),
        np.where(draw.random(count) < 0.1, np.nan, draw.normal(size=count)),
    )  # fmt: skip
    plain: dict = {}
    for stream, time, entry, value in zip(given.stream, given.time, given.entry, given.value, strict=True):
        plain.setdefault((stream, time), [[] for _ in range(entries)])[entry].append(value)
    found = assembly.slices(given, entries)
    assert list(zip(found.stream, found.time, strict=True)) == sorted(plain)
    for (stream, time), turn, values in zip(sorted(plain), found.turn, found.values, strict=True):
        assert turn == sum(1 for other, earlier in plain if other == stream and earlier < time)
        wanted = [[one for one in own if np.isfinite(one)] for own in plain[stream, time]]
        np.testing.assert_allclose(values, [np.mean(own) if own else np.nan for own in wanted])


def test_a_row_delivered_twice_counts_once_and_infinite_is_missing():
    found = assembly.slices(rows((0, 1, 0, 0.1), (0, 1, 0, 0.1), (0, 1, 1, np.inf), (0, 1, 2, 5.0)), 4)
    assert np.array_equal(found.values, [[0.1, np.nan, 5.0, np.nan]], equal_nan=True)


def test_a_slice_of_nothing_but_missing_values_is_a_slice():
    assert np.isnan(assembly.slices(rows((0, 1, 0, np.nan)), 2).values).all()


def test_complete_is_what_lies_before_the_watermark():
    given = rows((0, 1, 0, 1.0), (0, 2, 0, 1.0), (1, 3, 0, 1.0))
    assert assembly.closed(given, 2, until=2).tolist() == [True, True, False]


def test_without_watermark_a_later_row_of_the_same_stream_completes_a_slice():
    given = rows((0, 1, 0, 1.0), (0, 2, 0, 1.0), (1, 1, 0, 1.0))
    assert assembly.closed(given, 2, until=None).tolist() == [True, False, False]


def test_late_is_what_comes_after_its_slice():
    given = rows((0, 1, 0, 1.0), (0, 2, 0, 1.0), (1, -7, 0, 1.0))
    assert assembly.late(given, np.array([1, NEVER])).tolist() == [True, False, False]


def test_the_shard_of_a_stream_never_changes():
    assert [shard_of(name, 8) for name in ("", "router-17", "Süd", "a" * 100)] == [0, 5, 4, 4]


def test_shards_are_about_equal():
    counts = np.bincount([shard_of(f"router-{number}", 16) for number in range(16000)], minlength=16)
    assert counts.min() > 850
    assert counts.max() < 1150
