"""A tracker asks nothing of its device that is still being computed: `update` returns before that is done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import undertow as ut
from undertow.inputs.dense import Slice
from undertow.programs.program import Program
from undertow.tracker.ahead import compared
from undertow.tracker.frame import Frame, choose
from undertow.tracker.recent import _another_size
from undertow.tracker.scales import LINEAR


@pytest.fixture
def fetched(monkeypatch):
    """The slice of now; slices at which arrays that were fetched had been computed, with their sizes; programs run."""
    now, born, found, programs = [0], {}, [], []
    run, kind = Program.__call__, type(jnp.zeros(()))
    value = kind._value.fget

    def running(self, *args, **kwargs):
        made = run(self, *args, **kwargs)
        programs.append(self.name)
        if self is compared:  # on the host, from what is there
            return made
        born.update({id(leaf): (now[0], leaf) for leaf in jax.tree.leaves(made) if isinstance(leaf, kind)})
        return made

    def noted(array):
        if isinstance(array, kind):
            found.append((born.get(id(array), (-1, None))[0], array.size))
        return array

    monkeypatch.setattr(Program, "__call__", running)
    monkeypatch.setattr(kind, "_value", property(lambda self: value(noted(self))))
    for name in ("asarray", "array"):  # these read the memory of a CPU without asking the array
        work = getattr(np, name)
        monkeypatch.setattr(np, name, lambda array, *rest, work=work, **more: work(noted(array), *rest, **more))
    return now, found, programs


@pytest.mark.slow
def test_nothing_is_fetched_of_a_slice_while_it_is_learned(fetched, monkeypatch):
    now, found, programs = fetched
    kind, apart = type(jnp.zeros(())), []
    take = kind.__getitem__
    monkeypatch.setattr(kind, "__getitem__", lambda array, index: (apart.append(array.shape), take(array, index))[1])
    rng, tracker = np.random.default_rng(0), ut.Tracker()
    for slices in range(35):
        now[0] = slices
        found.clear()
        programs.clear()
        apart.clear()
        result = tracker.update(rng.normal(size=(6, 5)))
        if slices > 24:  # the frame is reviewed after 20 and 40 slices, a period is looked for after 24 and 36
            assert all(one <= slices - 2 or (one == slices - 1 and size == 1) for one, size in found), found
            assert not apart  # each part is a program of its own, compiled in every process
            # Before it is judged, judged, answered, kept, compared with forecasts; two of each CP model.
            assert slices % 5 == 0 or len(programs) <= 5 + 2 * len(tracker._now.cps), programs
    found.clear()
    assert np.isfinite(result.mean).all()
    assert (34, 30) in found


@pytest.mark.parametrize("factor", [1, 1.5, 3.5, 5, 100])
def test_by_a_sample_large_slices_are_of_the_size_that_they_are(factor):
    rng, frame = np.random.default_rng(1), Frame(0.0, 1.0, LINEAR)
    three = tuple(Slice(factor * rng.normal(size=(120, 100)), rng.random((120, 100)) < 0.5) for _ in range(3))
    assert _another_size(frame, three) == (choose(three, frame) != frame)
