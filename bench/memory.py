"""The peak memory of a call, as the kernel recorded it.

The kernel records the highest resident size of a process and lets it be reset. That misses no peak,
unlike a thread that polls. It works on Linux; elsewhere nothing is measured.
"""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pyarrow as pa

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


class Peak:
    """The highest resident size from now on, above what is resident now."""

    def __init__(self) -> None:
        gc.collect()
        pa.default_memory_pool().release_unused()
        self._before = _read("VmRSS")
        if self._before is not None:
            RESET.write_text("5")

    def above(self) -> int | None:
        """Bytes; None where they cannot be known."""
        highest = _read("VmHWM")
        if self._before is None or highest is None:
            return None
        return max(0, highest - self._before)


def _read(field: str) -> int | None:
    if not STATUS.exists():
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None
