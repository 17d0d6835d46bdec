"""Labels that come and go: `Tracker(grow=True)`."""

import numpy as np
import pandas as pd
import pytest

import undertow as ut
from undertow.inputs.labels import growing
from undertow.tracker import season
from undertow.tracker.rearranging import rearranged

ROWS = [f"r{number}" for number in range(6)]


def frame(time, rows=ROWS):
    """A slice; every row has its own size, and noise that does not depend on who else is there."""
    values = []
    for row in rows:
        number = int(row[1:])
        draw = np.random.default_rng((number, time))
        values.append(
            10 * (1 + number) * np.array([1, 1, 2, 4, 3]) * (1 + 0.3 * np.sin(time / 5)) + draw.normal(size=5)
        )
    return pd.DataFrame(values, pd.Index(rows, name="src"), pd.Index(list("abcde"), name="dst"))


def learned(slices, **settings):
    tracker = ut.Tracker(**settings)
    for time in range(slices):
        tracker.update(frame(time))
    return tracker


def leaves(state):
    import jax

    parts = (state.core, [model.state.core for model in state.cps], season.ordered(state.season), state.heard)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]


@pytest.mark.slow
def test_rows_that_were_added_and_removed_leave_no_trace():
    state = learned(6, grow=True)._state
    wide = rearranged(state, [np.array([0, 1, 2, 3, 4, 5, -1, -1]), np.arange(5)])
    assert wide.shape == (8, 5)
    assert wide.cps[0].state.core.window.values.shape[1:] == (8, 5)
    assert not wide.recent[0].mask[6:].any()
    back = rearranged(wide, [np.arange(6), np.arange(5)])
    for one, other in zip(leaves(state), leaves(back), strict=True):
        np.testing.assert_array_equal(one, other)
    turned = rearranged(state, [np.array([3, 2, 1, 0, 5, 4]), np.arange(5)])
    np.testing.assert_array_equal(
        turned.cps[0].state.core.factors.means[0][0], state.cps[0].state.core.factors.means[0][3]
    )


@pytest.mark.full
def test_a_label_that_appears_changes_nothing_for_the_others():
    """As long as nothing is observed in its row, to rounding; then it is learned without a restart."""
    still, grows = learned(20), learned(20, grow=True)
    for time in range(20, 40):
        wanted, found = still.update(frame(time)), grows.update(frame(time).reindex([*ROWS, "r6"]))
        off = ((found.mean.loc[ROWS] - wanted.mean) / wanted.std).abs().to_numpy().max()
        wider = (found.std.loc[ROWS] / wanted.std - 1).abs().to_numpy().max()
        assert off < 1e-2, time  # the same stream with its rows in another order: 3e-3 at most
        assert wider < 1e-2, time
    assert grows.labels.coords[0] == (*ROWS, "r6")
    for time in range(40, 70):
        result = grows.update(frame(time, [*ROWS, "r6"]))
    assert (result.mean.loc["r6"] - frame(69, ["r6"]).loc["r6"]).abs().max() < 5
    assert result.mean.shape == (7, 5)
    assert grows.forecast(2).mean.shape == (2, 7, 5)
    assert grows.transform([frame(70, [*ROWS, "r6"])])[0].shape == (7, 5)


@pytest.mark.full
def test_a_file_has_the_places(tmp_path):
    grows = learned(4, grow=True)
    grows.update(frame(4, [*ROWS, "r6"]))
    again = ut.from_bytes(grows.to_bytes())
    assert again.grow
    assert again.labels == grows.labels
    for time in (5, 6):
        wanted, found = grows.update(frame(time, [*ROWS, "r7"])), again.update(frame(time, [*ROWS, "r7"]))
        pd.testing.assert_frame_equal(wanted.mean, found.mean)


@pytest.mark.slow
def test_who_is_silent_for_long_leaves_the_place_to_others(monkeypatch):
    monkeypatch.setattr(growing, "SILENT", 3)
    grows = learned(4, grow=True)
    for time in range(4, 8):
        grows.update(frame(time, ROWS[:5]))
    assert grows.labels.coords[0] == tuple(ROWS)
    result = grows.update(frame(8, [*ROWS[:5], "r9"]))
    assert grows.labels.coords[0] == (*ROWS[:5], "r9")
    assert grows._state.shape == (6, 5)
    assert list(result.mean.index) == [*ROWS[:5], "r9"]
    assert result.std.loc["r9"].min() > result.std.loc["r1"].max()  # nothing is known of it


@pytest.mark.slow
def test_a_cp_model_forgets_rows_when_it_is_asked():
    model, draw = ut.RobustCP(max_rank=3, window=4), np.random.default_rng(0)
    with pytest.raises(ValueError, match="forget needs at least one slice"):
        model.forget([[0], []])
    for _ in range(6):
        model.update(np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0)) + draw.normal(0, 0.1, (6, 5)))
    with pytest.raises(ValueError, match=r"rows must be numbers for each mode of \(6, 5\), got \[\[6\], \[\]\]"):
        model.forget([[6], []])
    model.forget([[2], []])
    gone = np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0))
    gone[2] = np.nan
    result = model.update(gone)
    assert result.std[2].min() > 3 * result.std[3].max()


@pytest.mark.slow
def test_rows_are_forgotten_when_it_is_asked():
    tracker = learned(4)
    with pytest.raises(ValueError, match=r"rows must be numbers for each mode of \(6, 5\), got \[\[6\], \[\]\]"):
        tracker.forget([[6], []])
    tracker.forget([[2], []])
    assert not np.asarray(tracker._state.core.level.seen).reshape(6, 5)[2].any()
    assert np.asarray(tracker._state.core.level.seen).reshape(6, 5)[3].all()
    with pytest.raises(ValueError, match="forget needs at least one slice"):
        ut.Tracker().forget([[0], []])


@pytest.mark.slow
def test_what_is_refused_leaves_everything_as_it_was():
    grows = learned(2, grow=True)
    before = grows.to_bytes()
    bad = frame(2, [*ROWS, "r6"])
    bad.iloc[0, 0] = np.inf
    with pytest.raises(ValueError, match="finite"):
        grows.update(bad)
    many = pd.DataFrame(np.ones((5000, 5)), pd.Index([f"x{n}" for n in range(5000)], name="src"), frame(0).columns)
    with pytest.raises(ValueError, match="5,000 labels of src that are new"):
        grows.update(many)
    twice = pd.concat([frame(2), frame(2).iloc[:1]])
    with pytest.raises(ValueError, match="must all be different, got 'r0' twice"):
        grows.update(twice)
    assert grows.to_bytes() == before
    assert grows.update(frame(2)).mean.shape == (6, 5)


@pytest.mark.slow
def test_without_being_asked_nothing_grows():
    tracker = learned(2)
    with pytest.raises(ValueError, match=r"not among the 6 of the stream.*grow=True"):
        tracker.update(frame(2, [*ROWS, "r6"]))
    with pytest.raises(TypeError, match="grow must be True or False, got 3"):
        ut.Tracker(grow=3)


@pytest.mark.slow
@pytest.mark.parametrize("new", [ut.Tracker, lambda: ut.RobustCP(max_rank=2, window=4)])
def test_rows_can_be_added_at_the_ends_of_modes(new):
    draw, model = np.random.default_rng(0), new()
    model.extend((9, 9))  # nothing is known before the first slice
    slices = draw.normal(10, 1, (8, 6, 5))
    for x in slices[:5]:
        model.update(x)
    for shape in ((5, 5), (6, 5, 1), (6,)):
        with pytest.raises(ValueError, match=r"shape must be \(6, 5\), or larger"):
            model.extend(shape)
    model.extend((6, 5))
    model.extend((8, 5))
    wide = np.full((8, 5), np.nan)
    wide[:6] = slices[5]
    result = ut.from_bytes(model.to_bytes()).update(wide)
    np.testing.assert_array_equal(result.mean, model.update(wide).mean)
    assert result.mean.shape == (8, 5)
    assert np.isfinite(result.mean).all()
    model.labels = {"src": list("abcdefgh"), "dst": None}
    with pytest.raises(ValueError, match="one entry per label"):
        model.extend((9, 5))
