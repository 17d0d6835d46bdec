"""Rows that were left out."""

from undertow.sources.formats import counted


def test_a_stream_without_end_is_counted_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(counted, "MOST_PLACES", 3)
    left_out = counted.Counted()
    for place in range(10):
        left_out.add(place, 2)
    for place in (8, 9):  # read again
        left_out.add(place, 2)
    assert left_out.rows == 20
    assert len(left_out._at) == 3
