"""Nothing changes unseen: programs, results and files of an earlier state of the code.

After a change of the arithmetic on purpose, run ``make record`` and say so in the changelog.
"""

import json
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from recorded.programs import digests
from recorded.streams import MODELS, SMALL, dense

import undertow as ut
from undertow.runs.store.reader import open_store
from undertow.serialization import container

HERE = Path(__file__).parent
IN_MAKE_TEST = ("default", "fixed", "level", "paper")
pytestmark = pytest.mark.slow
RECORDED = json.loads((HERE / "results.json").read_text())


def tiers(names):
    """Some in make test, the others in make full."""
    return [name if name in IN_MAKE_TEST else pytest.param(name, marks=pytest.mark.full) for name in names]


def summary(parts):
    """Of arrays as one: count, sum, sum of sizes and a sum that depends on the order."""
    values = np.concatenate([np.ravel(part) for part in parts]).astype(np.float64)
    return [values.size, values.sum(), np.abs(values).sum(), values @ np.cos(np.arange(values.size))]


def test_the_compiled_programs_are_the_recorded_ones():
    recorded = json.loads((HERE / "programs.json").read_text())
    if recorded["jax"] != jax.__version__:
        pytest.skip(
            f"recorded with jax {recorded['jax']}, this is {jax.__version__}, which may write programs otherwise"
        )
    assert digests() == recorded["programs"]


@pytest.mark.parametrize("name", tiers(MODELS))
def test_results_are_the_recorded_ones(name):
    params, stream = MODELS[name]
    model = ut.RobustCP(**params)
    results = [model.update(x) for x in stream()]
    for array, expected in RECORDED[name].items():
        scale = expected[2] + 1e-12
        np.testing.assert_allclose(
            summary([getattr(one, array) for one in results]), expected, rtol=0, atol=1e-6 * scale, err_msg=array
        )


@pytest.mark.parametrize("name", tiers(["default", "fixed", "level", "fast", "paper"]))
def test_a_recorded_checkpoint_goes_on_as_an_uninterrupted_model_does(name):
    # How common each pace of a level is, which is learned since, is not in the file.
    x, near = dense((6, 5), 2), 1e-4 if name == "level" else 1e-8
    loaded = ut.load(HERE / f"{name}.ckpt")
    model = ut.RobustCP(**loaded.get_params())
    for one in x[:6]:
        model.update(one)
    for one in x[6:]:
        expected, result = model.update(one), loaded.update(one)
        np.testing.assert_allclose(result.low_rank, expected.low_rank, rtol=near, atol=near)
        np.testing.assert_allclose(result.std, expected.std, rtol=near)


@pytest.mark.full
def test_a_recorded_fleet_goes_on():
    x = dense((6, 5), 2)
    fleet, model = ut.Fleet.load(HERE / "fleet.ckpt"), ut.load(HERE / "fixed.ckpt")
    for one in x[6:]:
        expected, result = model.update(one), fleet.update(np.stack([one, 2 * one]))
        np.testing.assert_allclose(result.low_rank, np.stack([expected.low_rank, 2 * expected.low_rank]), rtol=1e-6)


def test_a_run_of_several_models_goes_on_with_the_one_that_predicted_best(tmp_path):
    pytest.importorskip("xarray")
    x, folder = dense((6, 5), 2), tmp_path / "store"
    np.save(tmp_path / "x.npy", x)
    ut.run(tmp_path / "x.npy", ut.RobustCP(**SMALL), store=folder, limit=6)
    (path, *_) = sorted((folder / ".undertow").glob("checkpoint-*"), reverse=True)
    header, arrays = container.read(path)
    arrays["model"] = np.frombuffer((HERE / "default.ckpt").read_bytes(), np.uint8)  # as an earlier version left it
    container.write(path, header, arrays)
    summary = ut.run(tmp_path / "x.npy", ut.RobustCP(**SMALL), store=folder, resume=True)
    assert (summary.slices, summary.new_slices) == (9, 3)
    best = ut.load(HERE / "default.ckpt")
    last = [best.update(one).low_rank for one in x[6:]][-1]
    np.testing.assert_allclose(open_store(folder).slice("mean", 8), last, rtol=1e-5, atol=1e-5)


def test_a_recorded_store_is_read_and_gone_on_with(tmp_path, monkeypatch):
    xarray = pytest.importorskip("xarray")
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(HERE / "store.zip") as archive:
        archive.extractall()
    x = np.load("stream.npy")
    before = xarray.open_zarr("store.zarr").load()
    assert before.sizes["time"] == 6
    np.testing.assert_allclose(before["data"], x[:6].astype(np.float32))
    model = ut.RobustCP(**SMALL)
    summary = ut.run(
        ut.open_stream("stream.npy"),
        model,
        store="store.zarr",
        resume=True,
        checkpoint_every=3,
        keep="low_rank,std,outliers,outlier_probability,data",
    )
    assert (summary.slices, summary.new_slices) == (9, 3)
    uninterrupted = ut.RobustCP(**SMALL)
    low_rank = [uninterrupted.update(one).low_rank for one in x]
    np.testing.assert_allclose(xarray.open_zarr("store.zarr")["low_rank"], low_rank, rtol=1e-5, atol=1e-5)
