"""What each source has shown so far: a source that is slow or dead can be told by it."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceMetrics:
    """What one source of a stream has shown so far.

    Attributes:
        source: The source, counted from 0.
        pushed: Events that it has brought.
        latest: The largest time among them, in the unit of the stream's times (microseconds for
            timestamps); None before the first. The source with the smallest one holds back the
            watermark.
        silent_for: Seconds since it brought the last of them; None before the first.
        ended: Whether it has ended.
        error: What its input has failed with, if it was pulled from one (`stream.pull`).

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
        >>> with query.open(sources=2) as stream:
        ...     stream.push([{"t": 7, "v": 5}], source=0)
        ...     [(each.pushed, each.latest) for each in stream.metrics().sources]
        [(1, 7), (0, None)]
    """

    source: int
    pushed: int = 0
    latest: int | None = None
    silent_for: float | None = None
    ended: bool = False
    error: str | None = None


class Sources:
    """Counts for each source; plain lists, because a small push notices what else costs."""

    def __init__(self, number: int) -> None:
        self._pushed = [0] * number
        self._latest: list[int | None] = [None] * number
        self._heard: list[float | None] = [None] * number
        self._ended = [False] * number

    def note(self, source: int, rows: int, latest: int, now: float) -> None:
        """Note a push, its largest time, and when it came by `time.perf_counter()`."""
        self._pushed[source] += rows
        before = self._latest[source]
        if before is None or latest > before:
            self._latest[source] = latest
        self._heard[source] = now

    def end(self, source: int) -> None:
        """Note that a source has ended."""
        self._ended[source] = True

    def metrics(self) -> tuple[SourceMetrics, ...]:
        """What each source has shown so far."""
        now = time.perf_counter()
        every = zip(self._pushed, self._latest, self._heard, self._ended, strict=True)
        return tuple(
            SourceMetrics(k, pushed, latest, None if heard is None else now - heard, ended)
            for k, (pushed, latest, heard, ended) in enumerate(every)
        )
