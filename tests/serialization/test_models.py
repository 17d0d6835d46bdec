"""Saving and loading: bit-identical continuation, and refusal with a reason."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import undertow as ut
from undertow.lab.synthetic.streams import drifting
from undertow.serialization import container

pytestmark = pytest.mark.slow
DATA = drifting((6, 5), 2, slices=14, observed=0.8, seed=5)
SMALL = {"max_rank": 3, "window": 4}
SINGLE = {"preset": "fixed", **SMALL}


SHORT = [("fixed", "float32", 9), ("fixed", "float64", 1), ("paper", "float64", 9)]
LONG = [case for case in product(("fixed", "fast", "paper"), ("float32", "float64"), (1, 9)) if case not in SHORT]


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


def test_a_killed_process_goes_on_where_it_saved(tmp_path):
    """N slices equal k slices, a kill, a load, and N − k slices in another process."""
    script = f"""
import os, signal
import undertow as ut
from undertow.lab.synthetic import drifting
values = drifting((6, 5), 2, slices=14, observed=0.8, seed=5).values
model = ut.RobustCP("fixed", max_rank=3, window=4).partial_fit(values[:8])
model.save({str(tmp_path / "state.ckpt")!r})
model.update(values[8])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    resumed = ut.load(tmp_path / "state.ckpt").partial_fit(DATA.values[8:])
    whole = ut.RobustCP(**SINGLE).partial_fit(DATA.values)
    np.testing.assert_array_equal(resumed.reconstruct(), whole.reconstruct())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "state.ckpt"
    ut.RobustCP(**SINGLE).partial_fit(DATA.values[:2]).save(path)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, arrays: header.update(state_version=99), "state version 99, this Undertow reads"),
        (lambda header, arrays: header.update(kind="other"), "holds 'other', not a model"),
        (lambda header, arrays: arrays.pop("0.window.values"), "does not fit this Undertow"),
        (lambda header, arrays: arrays.update({"0.factors.alive": np.ones(9, bool)}), "does not fit this Undertow"),
        (lambda header, arrays: header["configs"][0].update(newer_setting=1), "does not fit this Undertow"),
        (lambda header, arrays: header["members"][0].pop("unit"), "does not fit this Undertow"),
        (lambda header, arrays: header["members"][0].update(config=7), "does not fit this Undertow"),
        (lambda header, arrays: header.update(members=[]), "no model inside"),
        (lambda header, arrays: arrays.update(typical=np.ones(2)), "typical is float64"),
    ],
)
def test_a_file_of_another_version_says_why_not(change, message, saved, tmp_path):
    header, arrays = container.read(saved)
    change(header, arrays)
    container.write(tmp_path / "state.ckpt", header, arrays)
    with pytest.raises(ut.CheckpointError, match=message):
        ut.load(tmp_path / "state.ckpt")
