"""A clock on the wall that tests set by hand."""

from __future__ import annotations

import threading

import pytest

from paneflow.engines.multicore import wall_clock
from paneflow.engines.multicore.wall_clock import WallClock

LOOK = 0.002
"""Real seconds after which a waiting thread looks at the clock again."""


class HandClock(WallClock):
    """Time stands still until it is moved on."""

    def __init__(self, today: int = 0) -> None:
        self._passed = 0.0
        self._today = today

    def now(self) -> float:
        return self._passed

    def today(self) -> int:
        return self._today + round(self._passed * 1e6)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(LOOK)

    def pass_by(self, seconds: float) -> None:
        self._passed += seconds


def hand_clock(monkeypatch: pytest.MonkeyPatch, today: int = 0) -> HandClock:
    """The clock that all streams look at from now on."""
    clock = HandClock(today)
    monkeypatch.setattr(wall_clock, "clock", clock)
    return clock
