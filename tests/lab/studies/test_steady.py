from types import SimpleNamespace

import pytest

from undertow.lab.studies import steady


@pytest.fixture
def tracker(monkeypatch):
    """That counts frames, and what is asked of them."""
    asked = []

    class Counting:
        seen = 0

        def update(self, x):
            assert x.shape == (4, 3)
            Counting.seen += 1
            number = Counting.seen
            return type(
                "Result", (), {name: property(lambda _, name=name: asked.append((number, name)))
                               for name in ("mean", "weights", "outlier_probability")},
            )()  # fmt: skip

    monkeypatch.setattr(steady, "ut", SimpleNamespace(Tracker=Counting))
    return asked


def test_frames_are_left_and_then_fetched(tracker):
    said = []
    found = steady.steady((4, 3), slices=2, before=3, said=lambda what, seconds: said.append(seconds))
    both = [(number, name) for number in (6, 7) for name in ("mean", "outlier_probability")]
    assert tracker == [(1, "mean"), (2, "mean"), (3, "mean"), (5, "weights"), *both]
    assert said == [found.first, found.left, found.fetched]
    assert found.slowest > 0


def test_every_shape_is_a_line_with_its_device(tracker, reporter):
    made = steady.table([(4, 3)], 1, reporter)
    assert [row[0] for row in made.rows] == ["4×3"]
    assert made.rows[0][1]
