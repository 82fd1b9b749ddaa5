"""The clock of a shard: how far the stream has come, and when to look again without new events.

By default this is Spark's own watermark, and Spark runs an empty batch whenever it has moved.
A stream that closes its windows when it is idle needs timers by the wall clock. Spark has one kind
of timer in an operator, so such a stream keeps its watermark itself: every shard is told the
latest time in every batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from paneflow.engines.live.open_windows import OpenWindows

STATE = "seen long, active long, armed long"
"""The latest time seen, when an event last came, and the timer that is set; the latter two in ms
of the wall clock at which Spark started the batch, so that a repeated batch sees the same."""


class Clock(ABC):
    """The watermark of a shard, batch by batch."""

    mode: ClassVar[str]
    tells_all: ClassVar[bool]
    """Whether all shards are told the latest time of each batch."""

    @abstractmethod
    def watermark(
        self, state: Any, before: int | None, latest: int | None, timers: Any, windows: OpenWindows
    ) -> int | None:
        """Where the watermark stands now; `latest` is the latest time that a batch brought."""

    @abstractmethod
    def wind(self, state: Any, handle: Any, watermark: int | None, windows: OpenWindows) -> None:
        """Set the next timer of a shard that has open windows."""


@dataclass(frozen=True)
class SparkClock(Clock):
    """Spark's watermark, as of the last batch, in milliseconds."""

    mode: ClassVar[str] = "EventTime"
    tells_all: ClassVar[bool] = False

    def watermark(
        self, state: Any, before: int | None, latest: int | None, timers: Any, windows: OpenWindows
    ) -> int | None:
        seen = int(timers.getCurrentWatermarkInMs()) * 1000
        return seen if seen > 0 else before

    def wind(self, state: Any, handle: Any, watermark: int | None, windows: OpenWindows) -> None:
        handle.registerTimer(max((watermark or 0) // 1000, 0) + 1)


@dataclass(frozen=True)
class IdleClock(Clock):
    """Our own watermark: it jumps past all open windows when no event has arrived for a time."""

    lateness: int
    idle: int
    """In milliseconds."""

    mode: ClassVar[str] = "ProcessingTime"
    tells_all: ClassVar[bool] = True

    def watermark(
        self, state: Any, before: int | None, latest: int | None, timers: Any, windows: OpenWindows
    ) -> int | None:
        now = int(timers.getCurrentProcessingTimeInMs())
        seen, active, armed = state.get() if state.exists() else (None, now, None)
        if latest is not None:
            seen = latest if seen is None else max(seen, latest)
            active = now
        state.update((seen, active, None if armed is None or armed <= now else armed))
        if seen is None:
            return before
        reached = int(seen) - self.lateness
        if latest is None and now >= active + self.idle:
            reached = windows.horizon(int(seen))
        return reached if before is None else max(before, reached)

    def wind(self, state: Any, handle: Any, watermark: int | None, windows: OpenWindows) -> None:
        seen, active, armed = state.get()
        # Windows by position may stay open forever: nothing of them closes a second time.
        if armed is None and seen is not None and (watermark or 0) < windows.horizon(seen):
            handle.registerTimer(active + self.idle)
            state.update((seen, active, active + self.idle))


def clock(lateness: int, idle: int | None) -> Clock:
    """The clock of a stream; durations are in microseconds."""
    return SparkClock() if idle is None else IdleClock(lateness, max(1, idle // 1000))
