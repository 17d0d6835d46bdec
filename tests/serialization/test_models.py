"""Saving and loading: bit-identical continuation, and refusal with a reason."""

import math
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import undertow as ut
from undertow.engine import functional, learner
from undertow.lab.synthetic.streams import drifting
from undertow.serialization import container, models

pytestmark = pytest.mark.slow
DATA = drifting((6, 5), 2, slices=14, observed=0.8, seed=5)
SMALL = {"max_rank": 3, "window": 4}


SHORT = [("default", "float32", 9), ("default", "float64", 1), ("paper", "float64", 9)]
LONG = [case for case in product(("default", "fast", "paper"), ("float32", "float64"), (1, 9)) if case not in SHORT]


@pytest.mark.parametrize(
    ("preset", "dtype", "seen"), [*SHORT, *(pytest.param(*case, marks=pytest.mark.full) for case in LONG)]
)
def test_a_loaded_model_goes_on_bit_for_bit(preset, dtype, seen, tmp_path):
    model = ut.RobustCP(preset, **SMALL, dtype=dtype).partial_fit(DATA.values[:seen])
    model.save(tmp_path / "state.ckpt")
    loaded = ut.load(tmp_path / "state.ckpt")
    assert repr(loaded) == repr(model)
    assert loaded.get_params() == model.get_params()
    for x in DATA.values[seen:]:
        one, other = model.update(x), loaded.update(x)
        for name in ("low_rank", "std", "outliers", "outlier_probability"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.elbo == other.elbo


@pytest.mark.parametrize("entries", [None, 64])
def test_outliers_of_a_loaded_model_that_is_not_robust(entries):
    config = ut.make_config(**SMALL, robust=False, noise="shared")
    state = ut.init(config, DATA.values.shape[1:], entries)
    for x in DATA.values[:6]:
        seen = np.nonzero(~np.isnan(x))
        state, result = ut.step(state, x if entries is None else ut.Entries(seen, x[seen], x.shape))
    header, arrays = models.packed({}, learner.Learner(state))
    for checkpoint in ((header, arrays), (header, {k: v for k, v in arrays.items() if not k.startswith("cross")})):
        _, loaded = models.unpacked(checkpoint, "it")
        found = functional.smoothed(loaded.state, 0)
        if checkpoint[1] is arrays:
            assert found.outlier_probability.max() > 0
            np.testing.assert_allclose(found.outlier_probability, result.outlier_probability, rtol=1e-3, atol=1e-6)
            np.testing.assert_allclose(found.outliers, result.outliers, rtol=1e-3, atol=1e-5)
        else:  # a file of an earlier version
            assert (found.outlier_probability == 0).all()


def test_a_killed_process_goes_on_where_it_saved(tmp_path):
    """N slices equal k slices, a kill, a load, and N − k slices in another process."""
    script = f"""
import os, signal
import undertow as ut
from undertow.engine import functional, learner
from undertow.lab.synthetic import drifting
values = drifting((6, 5), 2, slices=14, observed=0.8, seed=5).values
model = ut.RobustCP(max_rank=3, window=4).partial_fit(values[:8])
model.save({str(tmp_path / "state.ckpt")!r})
model.update(values[8])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    resumed = ut.load(tmp_path / "state.ckpt").partial_fit(DATA.values[8:])
    whole = ut.RobustCP(**SMALL).partial_fit(DATA.values)
    np.testing.assert_array_equal(resumed.reconstruct(), whole.reconstruct())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "state.ckpt"
    ut.RobustCP(**SMALL).partial_fit(DATA.values[:2]).save(path)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, arrays: header.update(state_version=99), "state version 99, this Undertow reads"),
        (lambda header, arrays: header.update(kind="other"), "holds 'other', not a model"),
        (lambda header, arrays: arrays.pop("window.values"), "does not fit this Undertow"),
        (lambda header, arrays: arrays.update({"factors.alive": np.ones(9, bool)}), "does not fit this Undertow"),
        (lambda header, arrays: header["config"].update(newer_setting=1), "does not fit this Undertow"),
        (lambda header, arrays: header.pop("unit"), "does not fit this Undertow"),
    ],
)
def test_a_file_of_another_version_says_why_not(change, message, saved, tmp_path):
    header, arrays = container.read(saved)
    change(header, arrays)
    container.write(tmp_path / "state.ckpt", header, arrays)
    with pytest.raises(ut.CheckpointError, match=message):
        ut.load(tmp_path / "state.ckpt")


SEVERAL = Path(__file__).parents[1] / "recorded" / "default.ckpt"


def test_of_several_models_in_an_earlier_file_the_one_that_predicted_best_is_read():
    header, _ = container.read(SEVERAL)
    best = min(header["members"], key=lambda held: held["score"])
    assert len(header["members"]) > 1
    model = ut.load(SEVERAL)
    settings = header["configs"][best["config"]]
    assert vars(model.config) == settings
    assert model.state.steps == best["steps"]
    assert model.get_params()["preset"] == "default"
    assert {**vars(ut.make_config(**model.get_params()))} == settings
    assert len(model.to_bytes()) < SEVERAL.stat().st_size / 4


def test_an_earlier_file_without_a_model_is_refused(tmp_path):
    header, arrays = container.read(SEVERAL)
    for changed in ({"members": []}, {"members": [{**header["members"][0], "config": 99}]}):
        container.write(tmp_path / "state.ckpt", {**header, **changed}, arrays)
        with pytest.raises(ut.CheckpointError, match="does not fit this Undertow"):
            ut.load(tmp_path / "state.ckpt")


def test_bytes_are_what_is_in_the_file_and_go_on_bit_for_bit(saved):
    model = ut.load(saved)
    content = model.to_bytes()
    assert content == saved.read_bytes()
    other = ut.from_bytes(bytearray(content))
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(model.update(DATA.values[2]).mean, other.update(DATA.values[2]).mean)
    assert ut.from_bytes(content).to_bytes() == content


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("state.ckpt", TypeError, "data must be bytes, got str: use load for a path"),
        (
            b"nothing",
            ut.CheckpointError,
            r"\(7 bytes\) is not an Undertow checkpoint: give what",
        ),
        (b"UNDERTOW", ut.CheckpointError, r"checkpoint \(8 bytes\) is truncated or damaged"),
    ],
)
def test_bytes_that_are_no_model_say_so(data, error, message):
    with pytest.raises(error, match=message):
        ut.from_bytes(data)


def test_a_model_that_has_seen_nothing_has_no_bytes():
    with pytest.raises(ValueError, match="to_bytes needs at least one slice"):
        ut.RobustCP().to_bytes()


@pytest.mark.parametrize(("level", "bytes_per_entry"), [(False, 9), (True, 17)])
@pytest.mark.parametrize("shape", [(6, 5), (40, 40), (144, 176)])
def test_the_size_is_what_the_documentation_says(shape, level, bytes_per_entry):
    config = ut.make_config(level=level).sized(shape)
    size = len(container.to_bytes(*models.packed({}, learner.start(config, shape))))
    window = bytes_per_entry * config.window * math.prod(shape)
    rows = 4 * config.max_rank**2 * (sum(shape) + config.window)
    assert window + rows < size < 1.35 * (window + rows) + 14_000
