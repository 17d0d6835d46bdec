"""Models in several threads, and after a fork."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import undertow as ut
from undertow.cluster.sharded import ShardedCP

SMALL = {"max_rank": 3, "window": 4}
FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, undertow as ut
MAKE
x = np.random.default_rng(0).normal(size=(6, 5))
model = make()
model.update(x)
child = os.fork()
if child == 0:
    for use in (model.update, lambda x: make().update(x)):
        try:
            use(x + 1)
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(model.update(x + 2).mean.shape)
"""
CHILD = """from undertow.engine import exclusive; import os
os.getpid = lambda own=os.getpid(): own + 1
exclusive.check_process(); print("fits")"""
"""As if in another process."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: ut.RobustCP(**SMALL), (6, 5)),
        (lambda: ut.Fleet(4, (6, 5), **SMALL), (4, 6, 5)),
        pytest.param(lambda: ShardedCP(**SMALL), (6, 5), marks=pytest.mark.full),
        pytest.param(lambda: ut.Tracker(), (6, 5), marks=pytest.mark.full),
        pytest.param(lambda: ut.Fleet(2, (6, 5), model="tracker"), (2, 6, 5), marks=pytest.mark.full),
    ],
    ids=["cp", "fleet of cp", "sharded", "tracker", "fleet of trackers"],
)
def test_threads_lose_no_slices(make, shape):
    model = make()
    slices = np.random.default_rng(0).normal(size=(16, *shape))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(model.update, slices))
    assert all(np.isfinite(result.mean).all() for result in results)
    single = model.extract(1) if isinstance(model, ut.Fleet) else model
    assert getattr(single, "steps", 0) == 16 or "16 slices" in repr(single)


@pytest.mark.slow
def test_models_can_be_read_while_they_learn(tmp_path):
    model = ut.RobustCP(**SMALL)
    slices = np.random.default_rng(0).normal(size=(30, 6, 5))
    model.update(slices[0])

    def read(position):
        model.save(tmp_path / f"{position}.ckpt")
        return model.smoothed(0).mean, model.factors, model.state, copy.copy(model), repr(model)

    with ThreadPoolExecutor(3) as pool:
        reading = [pool.submit(read, position) for position in range(10)]
        for _ in pool.map(model.update, slices[1:]):
            pass
        assert all(np.isfinite(future.result()[0]).all() for future in reading)


@pytest.mark.slow
def test_copies_and_pickles_have_locks_of_their_own():
    model = ut.RobustCP(**SMALL)
    model.update(np.ones((6, 5)))
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other._lock is not model._lock
        assert other.update(np.ones((6, 5))).mean.shape == (6, 5)


@pytest.mark.slow
def test_a_model_that_was_only_looked_at_may_be_forked():
    code = f"import undertow as ut; repr(ut.RobustCP().config); {CHILD}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "fits\n", done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(
    "make", ["ut.RobustCP(max_rank=3, window=4)", pytest.param("ut.Tracker()", marks=pytest.mark.full)]
)
def test_a_forked_process_gets_one_sentence(make):
    program = FORKED.replace("MAKE", f"make = lambda: {make}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    *refused, after = done.stdout.splitlines()
    assert len(refused) == 2
    assert all("spawn" in line for line in refused)
    assert after == "(6, 5)"
