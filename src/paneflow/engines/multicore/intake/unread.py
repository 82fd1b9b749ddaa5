"""Events that a worker reads itself: their columns and keys are read where they are processed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Batch


class ReadEvents(NamedTuple):
    """Events with key codes and columns, in the order in which they were pushed."""

    events: Batch
    ends: Array
    """How many events there are up to the end of each push."""


@dataclass(frozen=True, eq=False)
class Unread:
    """Events as they were pushed, none of them behind the watermark."""

    read: Callable[[], ReadEvents]
    """Reads the events; any thread may call it."""
    rows: int
    pushes: int
    """How many pushes they came in."""
    watermark: int
    """Where the watermark is behind them."""
    arrived: float

    def __len__(self) -> int:
        return self.rows
