import jax
import numpy as np
import pytest
from jax.extend import core as extended
from lab.speed.conftest import tiny

from undertow.config import make_config
from undertow.engine import functional
from undertow.lab.speed.formula import step_bytes, sweep_flops
from undertow.lab.speed.growth import slope
from undertow.lab.speed.registry import WORKLOADS
from undertow.model.step import step as model_step


def inner(equation):
    """Programs inside an equation: bodies of loops, branches, calls."""
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(one, extended.ClosedJaxpr):
                yield one.jaxpr
            elif isinstance(one, extended.Jaxpr):
                yield one


def window_flops(program, entries, times=1):
    """Operations of matrix products that touch the whole window; branches and inner loops are not part of a sweep."""
    total = 0
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            summed = np.prod([equation.invars[0].aval.shape[axis] for axis in contracted])
            flops = times * 2 * summed * np.prod(equation.outvars[0].aval.shape)
            matrices = min(one.aval.ndim for one in equation.invars) > 1  # sums against one vector are not meant
            total += flops if matrices and flops >= 2 * entries else 0
        elif equation.primitive.name not in ("cond", "while"):
            again = times * equation.params.get("length", 1)  # a product slice by slice is a loop of known length
            total += sum(window_flops(one, entries, again) for one in inner(equation))
    return total


def loops(program):
    for equation in program.eqns:
        for one in inner(equation):
            yield from loops(one)
            if equation.primitive.name == "while":
                yield one


@pytest.mark.slow
def test_the_formula_counts_what_a_sweep_multiplies():
    shape, window, rank = (20, 15, 10), 5, 4  # traced, not compiled
    config = make_config(max_rank=rank, window=window)
    state = functional.init(config, shape)
    program = jax.make_jaxpr(model_step)(
        state.core, np.zeros(shape, np.float32), np.ones(shape, bool), config.settings()
    )
    counted = max(window_flops(loop, window * np.prod(shape)) for loop in loops(program.jaxpr))
    assert counted == pytest.approx(sweep_flops(shape, window, rank), rel=0.01)


def test_slopes_of_known_powers_are_exact():
    sizes = [2, 4, 8, 16]
    for power in (-1, 0, 0.5, 2):
        values = [3 * size**power for size in sizes]
        assert slope(sizes, values) == pytest.approx(power, abs=1e-12)
    with pytest.raises(ValueError, match="two or more, got 1"):
        slope([1], [1])


def test_formulas_grow_as_they_say():
    base, wide, long = sweep_flops((8, 8), 4, 3), sweep_flops((16, 16), 4, 3), sweep_flops((8, 8), 8, 3)
    assert (wide / base, long / base) == (4, 2)
    assert 1.9 < slope([64, 128], [sweep_flops((8, 8), 4, rank) for rank in (64, 128)]) < 2
    assert 1.9 < slope([500, 1000], [step_bytes((side, side), 20, 3) for side in (500, 1000)]) < 2.1


@pytest.mark.slow
def test_a_step_knows_its_memory():
    workload = tiny(WORKLOADS["small"])
    subject = workload.make(workload, workload.source(workload, 3, None))
    assert subject.memory() > 4 * workload.window * np.prod(workload.shape)


@pytest.mark.slow
def test_pinned_steps_take_that_many_sweeps_and_leave_the_model_alone():
    workload = tiny(WORKLOADS["small"])
    subject = workload.make(workload, workload.source(workload, 4, None))
    for t in range(3):
        subject.feed(t)
    before = subject.state
    assert [subject.pinned(count).feed(3) for count in (2, 4)] == [2, 4]
    assert subject.state is before
