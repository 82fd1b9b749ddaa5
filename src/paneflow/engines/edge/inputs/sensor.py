"""What a program that measures something holds: a connection to a child that loses no event.

A thread sends what is pushed, and keeps it until the child has it in its log. The child may be
restarted meanwhile, or the network fail: the sensor connects again and sends what is missing.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.inputs.arrow_streams import write_events
from paneflow.engines.edge.inputs.columns import Columns
from paneflow.engines.edge.inputs.sensors.line import Line
from paneflow.engines.edge.inputs.sensors.messages import check_name
from paneflow.engines.edge.network.keys import Keys
from paneflow.errors import PaneflowError
from paneflow.tables import EVERY_COLUMN, to_arrow


class SensorTimeout(PaneflowError, TimeoutError):
    """A child has not answered for as long as the caller was willing to wait."""


class Sensor:
    """Sends events to a child node. Any thread may use it.

    Every event is taken exactly once for as long as the sensor lives, whatever happens to the child
    and the network. A new sensor of the same name continues where the log of the child ends:
    `position` tells how many batches that are, so that a program which can read its data again
    knows where to go on.

    Args:
        address: Where the child listens for sensors, such as `tcp://10.0.0.5:7001`.
        name: The name of the source. Each sensor has its own.
        keys: The sensor's own keys. Needed unless the child is on this machine.
        child_key: The public key of the child, needed with `keys`.
        most_bytes: How much may wait for acknowledgement before `push` has to wait.

    Example:
        >>> from paneflow.edge import Sensor
        >>> with Sensor("tcp://127.0.0.1:7101", "plug-7") as sensor:  # doctest: +SKIP
        ...     sensor.push([{"ts": "2026-05-01T12:00:00Z", "plug": 7, "load": 21.5}])
    """

    def __init__(
        self,
        address: str,
        name: str,
        *,
        keys: Keys | None = None,
        child_key: bytes | None = None,
        most_bytes: int = 64 << 20,
    ) -> None:
        check_name(name)
        self.name = name
        self._line = Line(address, name, secrets.token_hex(8), keys, child_key, most_bytes)

    def position(self, timeout: float | None = None) -> int:
        """How many batches of this source are in the child's log, or have been pushed since.

        Waits until the child answers. Each push is one batch, unless it is larger than the messages
        that the child takes; an end counts as one, too.

        Args:
            timeout: For how many seconds to wait at most; None: for as long as it takes. What takes
                longer is a `SensorTimeout`.

        Returns:
            The number of the last batch; 0 if there is none.

        Example:
            >>> sensor.position()  # doctest: +SKIP
            3
        """
        with self._line.changed:
            self._wait(lambda: self._line.welcome is not None, timeout)
            return self._line.outbox.last or 0

    def push(self, events: Any, timeout: float | None = None) -> None:
        """Send events: any kind of table that paneflow reads, or a list of dicts.

        They are checked against the child's schema at once. What the child does not read is left
        out. Waits while the child has not been reached yet, and while too much is unacknowledged.

        Args:
            events: The events, in any order.
            timeout: For how many seconds to wait at most; None: for as long as it takes.

        Example:
            >>> row = {"ts": "2026-05-01T12:00:00Z", "plug": 7, "load": 21.5}
            >>> sensor.push([row])  # doctest: +SKIP
        """
        end = _end(timeout)
        with self._line.changed:
            self._wait(lambda: self._line.welcome is not None, timeout)
            welcome = self._line.welcome
            assert welcome is not None, "it has been waited for"
        columns = Columns(welcome.schema, welcome.time)
        for body in write_events(_fitted(events, columns), welcome.message_bytes):
            self._add(body, end)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything that was pushed is in the child's log.

        Args:
            timeout: For how many seconds to wait at most; None: for as long as it takes.

        Example:
            >>> sensor.flush(timeout=10)  # doctest: +SKIP
        """
        with self._line.changed:
            self._wait(lambda: not self._line.outbox.waiting, timeout)

    def end(self, timeout: float | None = None) -> None:
        """Say that nothing will follow, so that no window waits for this source; and flush.

        Args:
            timeout: For how many seconds to wait at most; None: for as long as it takes.

        Example:
            >>> sensor.end()  # doctest: +SKIP
        """
        end = _end(timeout)
        self.position(timeout)
        self._add(None, end)
        self.flush(_left(end))

    def close(self, timeout: float | None = None) -> None:
        """Flush, then disconnect. The source may be continued by another sensor of this name.

        Args:
            timeout: For how many seconds to wait at most; None: for as long as it takes.

        Example:
            >>> sensor.close()  # doctest: +SKIP
        """
        try:
            if not self._line.closed:
                self.flush(timeout)
        finally:
            self._line.close()

    def __enter__(self) -> Sensor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._line.close()  # the program failed: it should not have to wait for the child

    def _add(self, body: pa.Buffer | None, end: float | None) -> None:
        size = 0 if body is None else body.size
        with self._line.changed:
            self._wait(lambda: self._line.outbox.takes(size), _left(end))
            self._line.outbox.add(body)
        self._line.wake()

    def _wait(self, condition: Callable[[], bool], timeout: float | None) -> None:
        """Wait with the lock held, for something that the line's thread brings about."""
        line = self._line
        reached = line.changed.wait_for(
            lambda: line.closed or line.failure is not None or condition(), timeout
        )
        if line.failure is not None:
            raise line.failure
        if line.closed:
            raise PaneflowError(f"sensor {self.name!r} is closed: open another one")
        if not reached:
            unsent = line.outbox.waiting
            raise SensorTimeout(
                f"the child at {line.address} has not "
                + (f"acknowledged {unsent} batches" if unsent else "answered")
                + f" within {timeout:g} seconds: see whether it runs, and what its log says"
            )


def _fitted(events: Any, columns: Columns) -> pa.Table:
    if isinstance(events, list) and events and all(isinstance(row, dict) for row in events):
        return columns.of_rows(events)
    return columns.fit(to_arrow(events, EVERY_COLUMN)[0])


def _end(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(end: float | None) -> float | None:
    return None if end is None else max(end - time.monotonic(), 0.0)
