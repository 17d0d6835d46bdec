"""Models and results are looked at and read: with labels, without, and before the first slice."""

import copy
import sys

import numpy as np
import pytest

import undertow as ut

LABELS = {"src": list("ABCDEF"), "dst": ["u", "v", "w", "x", "<y>"]}


def stream(slices=14, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(1, 2, size=(6, 1)), rng.uniform(1, 2, size=(1, 5))
    return 100 * a * b * rng.uniform(0.9, 1.1, size=(slices, 1, 1)) + rng.normal(size=(slices, 6, 5))


@pytest.fixture(scope="module")
def seen():
    """A tracker with labels, and its last result, in which one entry is an outlier and one is missing."""
    tracker = ut.Tracker()
    tracker.labels = LABELS
    values = stream()
    values[-1, 2, 3] += 400
    values[-1, 0, 0] = np.nan
    for x in values:
        result = tracker.update(x)
    return tracker, result, values


def texts(figure):
    import matplotlib.text

    return {text.get_text() for text in figure.findobj(matplotlib.text.Text)}


@pytest.mark.slow
def test_a_flagged_entry_is_explained(seen):
    tracker, result, values = seen
    for found in (
        tracker.explain({"dst": "x", "src": "C"}),
        tracker.explain(dst="x", src="C"),
        result.explain(("C", "x")),
        result.explain(src="C", dst="x"),
    ):
        assert found.flagged
        assert found.position == (2, 3)
        assert found.value == pytest.approx(values[-1, 2, 3])
        assert found.expected == pytest.approx(values[-1, 2, 3] - 400, abs=30)
        assert found.distance > 5
        assert "src C, dst x: Observed" in str(found)
        assert "It is flagged" in str(found)
        assert "expected less" in str(found)
        said = {row["predictor"]: row["said"] for row in found.predictors}
        assert set(said) == set(result.weights)
        assert said["level"] == pytest.approx(found.expected, abs=60)


@pytest.mark.slow
def test_what_the_predictors_said_adds_up_to_what_was_predicted(seen):
    _, result, values = seen
    found = result.explain(("B", "v"))
    combined = sum(row["weight"] * row["said"] for row in found.predictors)
    # On a curved scale the combination is made there; near what was observed all scales are alike.
    assert combined == pytest.approx(values[-1, 1, 1], rel=0.1)
    assert not found.flagged


@pytest.mark.slow
def test_a_missing_entry_is_explained(seen):
    _, result, _ = seen
    found = result.explain(("A", "u"))
    assert found.value is None
    assert found.distance is None
    assert "Nothing was observed; it should be" in str(found)


@pytest.mark.slow
def test_components_carry_labels_and_add_up(seen):
    tracker, _, _ = seen
    table = tracker.components()
    assert table.where(component=1, mode="src").column("label") == LABELS["src"]
    assert table[0]["share"] > 0.9  # the stream has one component
    adds = tracker.explain(("B", "v")).components
    assert len(adds) == max(row["component"] for row in table)


@pytest.mark.slow
def test_pictures_show_labels_and_texts_are_safe(seen):
    pytest.importorskip("matplotlib")
    tracker, result, _ = seen
    assert {"src", "dst", "A", "x", "off by, standard deviations"} <= texts(result.plot())
    shown = texts(tracker.plot())
    assert {"weights of the predictors", "noise (line) and rank (steps)", "A", "<y>"} <= shown
    assert result.plot()._repr_png_()[:4] == b"\x89PNG"
    for html in (tracker._repr_html_(), result._repr_html_(), result.status._repr_html_()):
        assert "<y>" not in html
        assert html.startswith("<div")


@pytest.mark.slow
def test_looking_changes_nothing(seen):
    tracker, _, _ = seen
    before = tracker.to_bytes()
    tracker.components(), tracker.explain((2, 3) if tracker.labels is None else ("C", "x")), tracker._repr_html_()
    assert tracker.to_bytes() == before


@pytest.mark.slow
def test_a_loaded_tracker_can_be_read_and_says_what_it_cannot_explain(seen):
    tracker, _, _ = seen
    loaded = ut.from_bytes(tracker.to_bytes())
    again, first = loaded.components(), tracker.components()
    assert list(again) == list(first)
    assert None not in {row["since"] for row in again}
    assert list(copy.copy(tracker).components()) == list(first)
    assert ut.from_bytes(loaded.to_bytes()).to_bytes() == tracker.to_bytes()
    with pytest.raises(ValueError, match=r"loaded tracker has not seen: call update"):
        loaded.explain(("C", "x"))


@pytest.mark.slow
def test_rows_are_named_in_the_status(seen):
    tracker, _, values = seen
    other = ut.from_bytes(tracker.to_bytes())
    off = values[0].copy()
    off[1] += 400
    status = other.update(off).status
    assert "ROW_OFF" in status.codes
    assert "most of a row is wrong (src B)" in str(status)


@pytest.mark.slow
def test_the_cp_model_is_read_in_the_same_way():
    pytest.importorskip("matplotlib")
    model = ut.RobustCP(max_rank=3, window=4)
    for x in stream(6):
        result = model.update(x)
    assert model.components()[0]["mode"] == "mode_1"
    assert model.explain((0, 1)).value == pytest.approx(stream(6)[-1, 0, 1])
    assert len(model.explain((0, 1)).predictors) == 0
    assert "over the window" in texts(model.plot())
    assert "slice of 6×5" in result._repr_html_()


def test_before_the_first_slice_there_is_nothing_to_see():
    tracker = ut.Tracker()
    with pytest.raises(ValueError, match="plot needs at least one slice"):
        tracker.plot()
    assert "Tracker()" in tracker._repr_html_()


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch):
    from undertow.view import drawing

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    drawing._picture_class.cache_clear()
    with pytest.raises(ImportError, match=r"plots need matplotlib.*pip install 'undertow\[plot\]'"):
        drawing.blank(1, 1)
    drawing._picture_class.cache_clear()
