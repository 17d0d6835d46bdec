"""A slice over several devices and processes: the answer of one device, and what is sent for it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cluster.sharded_process import SETTINGS, SLICES, answers, slices
from ports import free_port

import undertow as ut
from undertow.cluster.communication import communication

PROGRAM = Path(__file__).with_name("sharded_process.py")
SHAPE, CUBE = (6, 48), (4, 16, 3)
"""The mode that is split, the second, is not the first."""


@pytest.fixture(scope="module")
def alone():
    return one_device(SHAPE)


def one_device(shape):
    """What it answers, given slices with the longest mode first."""
    state, found = ut.init(ut.make_config(**SETTINGS), (shape[1], shape[0], *shape[2:])), []
    for x in slices(shape):
        state, result = ut.step(state, x.swapaxes(0, 1))
        told = answers(result).items()
        found.append({name: array.swapaxes(0, 1) if array.ndim > 1 else array for name, array in told})
    return found


def run(folder, devices, processes, saved=-1, shape=SHAPE):
    port, sizes = free_port(), "x".join(map(str, shape))
    files = [folder / f"{number}.npz" for number in range(processes)]
    started = [
        subprocess.Popen(
            [sys.executable, PROGRAM, str(devices), str(processes), str(number), str(port), file, str(saved), sizes]
        )
        for number, file in enumerate(files)
    ]
    assert [one.wait(300) for one in started] == [0] * processes
    return [np.load(file) for file in files]


def agree(found, expected, rows):
    for k in range(SLICES):
        for name, array in expected[k].items():
            there = array[:, rows] if array.ndim > 1 else array
            np.testing.assert_allclose(found[f"{name}{k}"], there, rtol=1e-7, atol=1e-9, err_msg=f"{name} of slice {k}")


@pytest.mark.slow
def test_eight_devices_answer_as_one_and_send_as_much_for_longer_slices(alone, tmp_path):
    (found,) = run(tmp_path, 8, 1)
    agree(found, alone, slice(0, SHAPE[1]))
    # A sweep reduces the statistics of the other mode and of time, and hardly anything else.
    rank, window = SETTINGS["max_rank"], SETTINGS["window"]
    statistics = 8 * window * SHAPE[0] * (rank * (rank + 1) // 2 + rank)
    sweep, rest, memory = found["cost"]
    assert statistics <= sweep <= statistics + 1000
    assert found["longer"][0] == sweep
    assert found["longer"][2] > memory  # it really is longer
    # A median is taken of a sample, here of every entry: the rest knows the sample, and nothing else of the length.
    assert found["longer"][1] - rest <= 8 * 3 * SETTINGS["window"] * 3 * SHAPE[0] * SHAPE[1]


@pytest.mark.full
def test_three_modes_are_split_along_the_longest(tmp_path):
    (found,) = run(tmp_path, 8, 1, shape=CUBE)
    agree(found, one_device(CUBE), slice(0, CUBE[1]))
    rank, window = SETTINGS["max_rank"], SETTINGS["window"]
    statistics = 8 * window * CUBE[0] * CUBE[2] * (rank * (rank + 1) // 2 + rank)
    assert found["longer"][0] == found["cost"][0]
    assert statistics <= found["cost"][0] <= 2 * statistics + 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "saved", [pytest.param(-1, id="as it is"), pytest.param(3, id="loaded", marks=pytest.mark.full)]
)
def test_two_processes_answer_as_one_device_each_for_its_rows(alone, tmp_path, saved):
    half = SHAPE[1] // 2
    both = run(tmp_path, 1, 2, saved)
    assert "process 1 has refused its part of x" in str(both[0]["refused"])
    assert "infinite" in str(both[1]["refused"])
    for found, rows in zip(both, (slice(0, half), slice(half, SHAPE[1])), strict=True):
        assert found["rows"].tolist() == [rows.start, rows.stop]
        agree(found, alone, rows)


@pytest.mark.parametrize("settings", [{"preset": "paper"}, {"robust": False}], ids=["paper", "not robust"])
def test_what_cannot_be_split_is_refused_in_one_sentence(settings):
    from undertow.cluster.sharded import ShardedCP

    with pytest.raises(ValueError, match="must be robust and start warm"):
        ShardedCP(**settings)


def test_a_longest_mode_that_does_not_divide_is_refused():
    import jax

    from undertow.cluster.mesh import Split

    with pytest.raises(ValueError, match=r"multiple of the 4 devices, got 6 .*: leave out the last 2 or .* over 3"):
        Split.of((5, 6), jax.devices() * 4)


def test_collectives_are_counted_in_loops_and_branches():
    program = """HloModule step
%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b)
}
%few (p: f32[2]) -> f32[2] {
  ROOT %r = f32[2]{0} all-reduce(%p), to_apply=%add, metadata={op_name="step/round/sweep/dot"}
}
%sweep (p: f32[2]) -> f32[2] {
  %x = (f32[4,3]{1,0}, pred[5]{0}) all-reduce(%p, %p), to_apply=%add, metadata={op_name="step/round/while/sweep/dot"}
  ROOT %w = f32[2] while(%p), body=%few, metadata={op_name="s/while/sweep/while"}, c={"known_trip_count":{"n":"3"}}
}
%round (p: f32[2]) -> f32[2] {
  %w = f32[2] while(%p), condition=%add, body=%sweep, metadata={op_name="step/round/while"}
  %c = f32[2] conditional(%w), branch_computations={%few, %add}, metadata={op_name="step/round/sweep/hoisted"}
  ROOT %g = s32[7]{0} all-gather(%c), metadata={op_name="step/round/gather"}
}
ENTRY %main (p: f32[2]) -> f32[2] {
  ROOT %w = f32[2] while(%p), condition=%add, body=%round, metadata={op_name="step/while"}
}
"""
    found = communication(program)
    assert found.sweep == 4 * 12 + 5 + 3 * 8
    assert found.rest == 8 + 4 * 7
