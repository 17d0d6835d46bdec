"""A tracker in a file: what is saved comes back, and what does not fit is refused in one sentence."""

import copy
import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import undertow as ut
from undertow.inputs.dense import as_slice
from undertow.serialization import container
from undertow.serialization.container import CheckpointError
from undertow.tracker import files
from undertow.tracker import season as seasons
from undertow.tracker import state as states
from undertow.tracker.ahead import BINS, CANDIDATES, Ahead, Pending, Scored
from undertow.tracker.clock import Clock
from undertow.tracker.frame import Frame

SHAPE = (3, 2)


@pytest.fixture(scope="module")
def state():
    """As it might be: every array holds other numbers than at the start."""
    rng = np.random.default_rng(0)

    def filled(leaf):
        made = rng.integers(0, 5, leaf.shape) if leaf.dtype != np.float32 else rng.normal(size=leaf.shape)
        return np.asarray(made, leaf.dtype)

    begun = states.start(SHAPE, period=4)
    own = {name: part for name, part in vars(begun.novelty).items() if name != "newest"}
    season = begun.season
    for _ in range(11):
        season, _ = seasons.fitted(season, rng.normal(size=6), np.ones(6, np.float32), 6)
        season = seasons.remembered(season, *rng.normal(size=(2, 6)), np.zeros(6), np.ones(6))
    one = Pending(12, rng.normal(size=(len(CANDIDATES), 6)).astype(np.float32), np.ones(6, np.float32))
    gram = rng.normal(size=(len(CANDIDATES), len(CANDIDATES))).astype(np.float32)
    spread = rng.random(BINS).astype(np.float32)
    recent = (as_slice(rng.normal(size=SHAPE)), as_slice([[1.0, np.nan], [2.0, 3.0], [0.1, 1e300]]))
    return states.Tracking(
        shape=SHAPE,
        frame=Frame(0.1, 1 / 3, 1),
        core=jax.tree.map(filled, begun.core),
        cps=begun.cps,
        recent=recent,
        seen=7,
        used=5,
        novelty=replace(begun.novelty, **{name: rng.random(part.shape) for name, part in own.items()}, newest=2.5),
        season=season,
        ahead=Ahead({2: (one, one)}, {1: Scored(gram, spread, 0.1, 3, -0.7)}, 4),
        clock=Clock(1 / 3, (0.1, 0.2), 7),
    )


@pytest.fixture
def content(state):
    header, arrays = files.packed(state)
    return copy.deepcopy(header), dict(arrays)


def reread(content):
    return files.unpacked(container.from_bytes(container.to_bytes(*content), "x"), "x")


@pytest.mark.slow
def test_everything_comes_back(state, content):
    again = reread(content)
    assert (again.shape, again.frame, again.seen, again.used) == (SHAPE, state.frame, 7, 5)
    before, after = (jax.tree.leaves((one.core, [model.state.core for model in one.cps])) for one in (state, again))
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    for name, part in vars(state.novelty).items():
        np.testing.assert_array_equal(getattr(again.novelty, name), part)
    assert [model.state.config for model in again.cps] == [model.state.config for model in state.cps]
    assert [model.state.unit for model in again.cps] == [1.0] * len(state.cps)
    for one, other in zip(state.recent, again.recent, strict=True):
        assert one.values.dtype == other.values.dtype
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.mask, other.mask)


@pytest.mark.slow
def test_the_same_state_is_the_same_bytes(state, content):
    again = container.to_bytes(*files.packed(reread(content)))
    assert again == container.to_bytes(*content)


@pytest.mark.slow
def test_before_the_first_data_there_is_no_frame():
    begun = states.start(SHAPE)
    assert reread(files.packed(begun)).frame is None


def refused(content, match):
    with pytest.raises(CheckpointError, match=match) as caught:
        reread(content)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_every_array_is_missed(content):
    header, arrays = content
    for name in list(arrays)[::4]:
        refused((header, {key: array for key, array in arrays.items() if key != name}), "does not fit this Undertow")


@pytest.mark.slow
def test_every_field_of_the_header_is_missed(content):
    header, arrays = content
    for name in set(header) - {"kind", "state_version"}:
        refused(({key: value for key, value in header.items() if key != name}, arrays), "does not fit this Undertow")


def test_arrays_of_another_shape_or_type_are_refused(content):
    header, arrays = content
    for name in ("core.gram", "core.level.mean", "cp.0.factors.means.0", "recent.0.values", "recent.1.mask"):
        assert name in arrays
        refused((header, arrays | {name: np.zeros((1, 9), arrays[name].dtype)}), name.rsplit(".", 1)[0])
        refused((header, arrays | {name: np.zeros(arrays[name].shape, np.int16)}), name.rsplit(".", 1)[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shape", "six"),
        ("shape", [3, 3]),
        ("shape", []),
        ("frame", {"colour": 0.0}),
        ("frame", 3),
        ("seen", "many"),
        ("recent", 9),
        ("recent", None),
        ("models", [{}]),
        ("models", 1),
    ],
)
def test_headers_that_say_something_else_are_refused(content, name, value):
    header, arrays = content
    refused((header | {name: value}, arrays), "does not fit this Undertow")


@pytest.mark.parametrize(("version", "missing"), [(9, 9), (10, 1)])
def test_files_of_versions_before_are_completed(content, version, missing):
    header, arrays = content
    begins = ("scored.1.spread", "core.zeros.", "core.events.former")[: 1 if version == 10 else 3]
    added = {name for name in arrays if name.startswith(begins)}
    assert len(added) == missing
    kept = {name: array for name, array in arrays.items() if name not in added and not name.startswith("novelty.")}
    refused((header, kept), "does not fit this Undertow")
    state = files.unpacked((header | {"state_version": version}, kept), "state.ckpt")
    assert not state.novelty.count.any()
    assert (state.ahead.scored[1].spread == 0).all()
    assert state.ahead.scored[1].factor == 0.1
    np.testing.assert_array_equal(state.core.last, arrays["core.last"])
    if version == 10:
        np.testing.assert_array_equal(state.core.zeros.count, arrays["core.zeros.count"])
        return
    assert np.isnan(state.core.events.former).all()
    assert not state.core.zeros.count.any()


@pytest.mark.parametrize(
    "change", [{"kind": "RobustCP"}, {"kind": None}, {"state_version": 99}, {"state_version": "1"}]
)
def test_other_kinds_and_versions_are_named(content, change):
    header, arrays = content
    refused((header | change, arrays), "this Undertow reads trackers of version")


def test_damaged_files_are_refused(content, tmp_path, tried):
    whole = container.to_bytes(*content)
    path = tmp_path / "tracker.ckpt"
    path.write_bytes(whole)
    assert isinstance(ut.load(path), ut.Tracker)
    damaged = [whole[:-1], whole[: len(whole) // 2], whole + b"x"]
    for position in range(0, len(whole), len(whole) // 40):
        spoilt = bytearray(whole)
        spoilt[position] ^= 1
        damaged.append(bytes(spoilt))
    for one in damaged:
        path.write_bytes(one)
        with pytest.raises(CheckpointError) as caught:
            ut.load(path)
        assert "\n" not in str(caught.value)
    tried("damaged file of a tracker, refused", len(damaged))


def test_a_tracker_that_has_seen_nothing_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="save needs at least one slice"):
        ut.Tracker().save(tmp_path / "x")
    with pytest.raises(ValueError, match="to_bytes needs at least one slice"):
        ut.Tracker().to_bytes()
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_the_size_is_what_the_documentation_says():
    """Of trackers, by its table: in megabytes, after the first slice and after 26."""
    page = (Path(__file__).parents[2] / "docs/how-to/save-and-load.md").read_text()
    first, last = map(float, re.search(r"^\| 8×8 \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE).groups())
    draw, tracker = np.random.default_rng(0), ut.Tracker()
    left, right = draw.normal(size=(8, 2)), draw.normal(size=(8, 2))
    sizes = []
    for _ in range(26):
        tracker.update((left * draw.normal(size=2)) @ right.T + 0.1 * draw.normal(size=(8, 8)))
        sizes.append(len(tracker.to_bytes()) / 1e6)
    assert sizes[0] == pytest.approx(first, rel=0.1)
    assert sizes[-1] == pytest.approx(last, rel=0.1)
