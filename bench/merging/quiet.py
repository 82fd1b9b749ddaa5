"""Waits for a quiet moment: two cores are needed, and other processes may use them."""

from __future__ import annotations

import time
from pathlib import Path

STATISTICS = Path("/proc/stat")
GLANCE = 0.04


def busy() -> int:
    """Hundredths of a second that all processors together have been busy since boot."""
    user, nice, system, _, _, *interrupts = map(
        int, STATISTICS.read_text().split("\n")[0].split()[1:]
    )
    return user + nice + system + sum(interrupts[:3])


def wait_for_quiet(patience: float = 0.25) -> bool:
    """Whether the processors were idle for a moment within that many seconds."""
    if not STATISTICS.exists():
        return True
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = busy()
        time.sleep(GLANCE)
        if busy() - before <= 1:
            return True
    return False
