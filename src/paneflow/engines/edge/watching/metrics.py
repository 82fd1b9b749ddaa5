"""What one node has done, counted as it happens.

The thread that runs the node counts, and others read: Prometheus, and heartbeats to the parent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.engines.edge.watching.latencies import Latencies

MICROSECONDS = 10**6


@dataclass
class Traffic:
    """Bytes and messages exchanged with one neighbour."""

    received_bytes: int = 0
    received_messages: int = 0
    sent_bytes: int = 0
    sent_messages: int = 0


@dataclass(frozen=True)
class Reading:
    """What a node has done so far, at one moment.

    Attributes:
        events: Events that came in from sources.
        late: Events, or slices, that came after their windows had closed.
        refused: Messages that were refused, whoever sent them.
        reports: Reports that were made for the parent.
        rows: Rows that were written.
        lag: How many seconds the watermark is behind the clock; None where time is no timestamp.
        queued_messages: Messages that the parent has not acknowledged.
        queued_bytes: Their size.
        children: Whether each node below is alive, by name.
        traffic: What was exchanged with each neighbour, by name.
        latencies: How long it took from the reports that closed windows to their rows.
    """

    events: int
    late: int
    refused: int
    reports: int
    rows: int
    lag: float | None
    queued_messages: int
    queued_bytes: int
    children: Mapping[str, bool]
    traffic: Mapping[str, Traffic]
    latencies: Latencies


class Metrics:
    """Counts what a node does.

    Args:
        node: The name of the node.
        role: Its role.
        timestamps: Whether times are timestamps, so that a watermark can be compared with a clock.
        clock: Gives seconds since 1970.
    """

    def __init__(
        self,
        node: str,
        role: str,
        *,
        timestamps: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.node = node
        self.role = role
        self._timestamps = timestamps
        self._clock = clock
        self._lock = Lock()
        self._counts = dict.fromkeys(("events", "late", "refused", "reports", "rows"), 0)
        self._watermark: int | None = None
        self._queue = (0, 0)
        self._children: dict[str, bool] = {}
        self._traffic: dict[str, Traffic] = {}
        self._latencies = Latencies()

    def count(
        self, *, events: int = 0, late: int = 0, refused: int = 0, reports: int = 0, rows: int = 0
    ) -> None:
        """Note that so many more of these have been seen or made."""
        with self._lock:
            counts = self._counts
            counts["events"] += events
            counts["late"] += late
            counts["refused"] += refused
            counts["reports"] += reports
            counts["rows"] += rows

    def received(self, neighbour: str, size: int, messages: int = 1) -> None:
        """Note what came from a neighbour."""
        with self._lock:
            traffic = self._traffic.setdefault(neighbour, Traffic())
            traffic.received_bytes += size
            traffic.received_messages += messages

    def sent(self, neighbour: str, size: int, messages: int = 1) -> None:
        """Note what went to a neighbour."""
        with self._lock:
            traffic = self._traffic.setdefault(neighbour, Traffic())
            traffic.sent_bytes += size
            traffic.sent_messages += messages

    def closed(self, seconds: float) -> None:
        """Note how long it took from the report that closed windows to their rows."""
        with self._lock:
            self._latencies.add(seconds)

    def moved_to(self, watermark: int) -> None:
        """Note how far the node has come."""
        known = self._timestamps and BEFORE_ALL < watermark < AFTER_ALL
        self._watermark = watermark if known else None

    def queued(self, messages: int, size: int) -> None:
        """Note what the parent has not yet acknowledged."""
        self._queue = messages, size

    def alive(self, children: Mapping[str, bool]) -> None:
        """Note which nodes below are alive."""
        self._children = dict(children)

    def read(self) -> Reading:
        """Everything, at one moment."""
        with self._lock:
            latencies = self._latencies.copy()
            traffic = {name: Traffic(**vars(one)) for name, one in self._traffic.items()}
            counts = dict(self._counts)
        return Reading(
            **counts,
            lag=self._lag(),
            queued_messages=self._queue[0],
            queued_bytes=self._queue[1],
            children=self._children,
            traffic=traffic,
            latencies=latencies,
        )

    def as_dict(self) -> dict[str, Any]:
        """What a heartbeat carries: few bytes, and zeros left out."""
        reading = self.read()
        found: dict[str, Any] = {
            "events": reading.events,
            "late": reading.late,
            "refused": reading.refused,
            "reports": reading.reports,
            "rows": reading.rows,
            "in": sum(one.received_bytes for one in reading.traffic.values()),
            "out": sum(one.sent_bytes for one in reading.traffic.values()),
            "queued": reading.queued_messages,
            "queued_bytes": reading.queued_bytes,
            "alive": sum(reading.children.values()),
            "children": len(reading.children),
        }
        measured = {
            "latency": reading.latencies.quantile(0.5),
            "latency_p99": reading.latencies.quantile(0.99),
            "lag": reading.lag,
        }
        return (
            {"role": self.role, "at": round(self._clock(), 3)}
            | {name: value for name, value in found.items() if value}
            | {name: round(value, 4) for name, value in measured.items() if value is not None}
        )

    def _lag(self) -> float | None:
        watermark = self._watermark
        return None if watermark is None else self._clock() - watermark / MICROSECONDS
