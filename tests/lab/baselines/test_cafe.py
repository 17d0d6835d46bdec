"""The adapter of CAFÉ: with a stand-in for the package, and with the package where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from undertow.lab.baselines import METHODS
from undertow.lab.cases import Condition
from undertow.lab.methods import ALL_METHODS

METHOD = METHODS["cafe"]


class StandIn:
    """Explains every value by the mean of its own row and the rows above; leaves observed values as they are."""

    calls: ClassVar[list[tuple[int, ...]]] = []

    def run(self, table: np.ndarray) -> Any:
        StandIn.calls.append(table.shape)
        means = np.array(
            [np.nanmean(table[: t + 1]) if np.isfinite(table[: t + 1]).any() else 0 for t in range(len(table))]
        )
        explained = np.repeat(means[:, None], table.shape[1], axis=1)
        filled = np.where(np.isnan(table), explained, table)
        return SimpleNamespace(imputed=filled, decompose=lambda: {"residual": filled - explained})


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    StandIn.calls = []
    monkeypatch.setitem(sys.modules, "cafe", SimpleNamespace(CAFE=StandIn))
    return StandIn


def test_fit_is_one_call_on_the_table_of_all_slices(stand_in: type[StandIn]) -> None:
    values = np.arange(24.0).reshape(4, 3, 2)
    values[2, 1, 1] = np.nan
    fitted = METHOD.fit(METHOD.configure(), values)  # type: ignore[misc]
    assert stand_in.calls == [(4, 6)]
    expected = [np.nanmean(values[: t + 1]) for t in range(4)]
    np.testing.assert_allclose(fitted.low_rank, np.broadcast_to(np.reshape(expected, (4, 1, 1)), (4, 3, 2)))
    np.testing.assert_allclose(fitted.outliers, np.nan_to_num(values - fitted.low_rank))
    assert fitted.status == "ok"


def test_step_runs_the_window_with_and_without_the_newest_slice(stand_in: type[StandIn]) -> None:
    values = np.arange(30.0).reshape(5, 6)
    state = METHOD.init(METHOD.configure(window=3), (6,))
    for slice_values in values:
        state, result = METHOD.step(state, slice_values)
    assert stand_in.calls[-2:] == [(3, 6), (3, 6)]
    np.testing.assert_allclose(result.prediction, np.full(6, values[2:4].mean()))
    np.testing.assert_allclose(result.low_rank, np.full(6, values[2:].mean()))


def test_follows_a_case_as_one_that_does_not_look_ahead(stand_in: type[StandIn], tiny: Any) -> None:
    method = ALL_METHODS["cafe"]
    assert method.label == "CAFÉ"  # not "(batch)"
    data = tiny.case(Condition(0.6)).data
    track = method.follow(data, method.settings(tiny.case()))
    assert track.low_rank.shape == data.values.shape
    assert stand_in.calls == [(8, 30)]
    assert "too much memory beyond 2000 entries" in str(
        method.unsupported(SimpleNamespace(shape=(50, 50), shown=np.ones(1)), {})  # type: ignore[arg-type]
    )


def test_missing_package_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cafe", None)
    for call in (
        lambda: METHOD.init(METHOD.configure(), (3, 3)),
        lambda: METHOD.fit(METHOD.configure(), np.ones((3, 3))),
    ):  # type: ignore[misc]
        with pytest.raises(
            ImportError, match=r"needs the package cafe-impute: pip install \"undertow\[compare\]\""
        ) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("cafe") is None, reason="needs cafe-impute")
def test_the_package_does_not_look_ahead() -> None:
    draw = np.random.default_rng(0)
    values = draw.standard_normal((40, 2, 3)).cumsum(axis=0)
    values[draw.random(values.shape) < 0.3] = np.nan
    whole = METHOD.fit(METHOD.configure(), values).low_rank  # type: ignore[misc]
    part = METHOD.fit(METHOD.configure(), values[:30]).low_rank  # type: ignore[misc]
    np.testing.assert_allclose(whole[:30], part, rtol=1e-9, atol=1e-9)
