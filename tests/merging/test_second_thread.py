"""When PBA gets its second thread, by the rule that docs/merging.md states."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from paneflow.merging import pba
from paneflow.merging.contract import Fifo
from paneflow.merging.machine.cost import nanoseconds
from paneflow.merging.pba import WORTH_A_THREAD, WORTH_SHARING, Pba, open_window, pays
from tests.merging.cases import cases

LONG = 2 * WORTH_A_THREAD


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Two cores, and combines that cost what the test says."""
    said = [WORTH_SHARING]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(pba, "nanoseconds", lambda operator: said[-1])
    return said


def test_dear_combines_over_long_chunks_are_shared(cost: list[float]) -> None:
    operator = cases()["max"].operator
    assert pays(operator, LONG)
    with open_window(operator, LONG) as window:  # type: ignore[attr-defined]
        assert isinstance(window, Pba)


def test_otherwise_sba_does_it_alone(cost: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    operator = cases()["max"].operator
    assert not pays(operator, LONG - 2)
    assert not pays(replace(operator, compiled=False), LONG)
    cost.append(WORTH_SHARING - 0.1)
    assert not pays(operator, LONG)
    assert type(open_window(operator, LONG)) is Fifo
    cost.append(1000.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert not pays(operator, LONG)


def test_rows_are_shared_only_if_merged_in_place(cost: list[float]) -> None:
    rows = cases()["bloom filter"].operator
    assert pays(rows, LONG)
    assert not pays(replace(rows, combine_into=None), LONG)
    assert not pays(cases()["record row"].operator, LONG)


def test_sums_of_floats_are_never_shared(cost: list[float]) -> None:
    """Two threads group them in another way, so a stopwatch would decide about the last bits."""
    assert not pays(cases()["moment sketch"].operator, LONG)
    assert not pays(cases()["sum of floats"].operator, LONG)


def test_what_a_combine_costs_is_measured_once() -> None:
    operator = cases()["moment sketch"].operator
    assert 0 < nanoseconds(operator) == nanoseconds(replace(operator))
