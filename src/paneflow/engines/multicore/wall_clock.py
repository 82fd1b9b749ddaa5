"""The clock on the wall: whether a source has fallen silent, whether a time lies too far ahead."""

from __future__ import annotations

import threading
import time


class WallClock:
    """Real time."""

    def now(self) -> float:
        """Seconds, which never go back."""
        return time.monotonic()

    def today(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1000

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait until a condition is notified, or this long."""
        condition.wait(min(seconds, threading.TIMEOUT_MAX))


clock = WallClock()
"""What streams look at; tests put another one here."""
