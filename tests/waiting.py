"""Waits for what other threads and processes bring about.

How long that takes depends on what else the machine does, so nothing here decides by the clock. The
only limit is one that nobody meets unless something hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which something is taken to hang."""


def wait_until(condition: Callable[[], object]) -> None:
    """Return once a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what is waited for does not happen"
        time.sleep(0.001)


def comes_to_rest() -> bool:
    """Whether this process, sooner or later, uses no core for a tenth of a second."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        before = time.process_time()
        time.sleep(0.1)
        if time.process_time() - before < 0.01:
            return True
    return False
