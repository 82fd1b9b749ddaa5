"""The designs of Gulisano et al. whose windows are updated by one thread, as strategies.

A pushing thread for each source does *Add*, and with a T-Gate also *S-Merge*; the stream thread
does the rest: *Update* and *Output*, as with one worker. So they serve every query, and functions
that depend on the order of events as well.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.engines.multicore.multiway.multi_queue import LockedQueues
from paneflow.engines.multicore.multiway.multi_queue_lock_free import LockFreeQueues
from paneflow.engines.multicore.multiway.source_front import Merger, SourceFront
from paneflow.engines.multicore.multiway.tuple_gate import TupleGate
from paneflow.engines.multicore.one_worker.single import Single


class _LockedQueueFront(SourceFront):
    merger: ClassVar[type[Merger]] = LockedQueues


class _QueueFront(SourceFront):
    merger: ClassVar[type[Merger]] = LockFreeQueues


class GateFront(SourceFront):
    """Sources merged by a T-Gate."""

    merger: ClassVar[type[Merger]] = TupleGate


class MultiQueue(Single):
    """MQ."""

    name: ClassVar[str] = "multi_queue"
    front = _LockedQueueFront


class MultiQueueLockFree(Single):
    """MQ-LF."""

    name: ClassVar[str] = "multi_queue_lock_free"
    front = _QueueFront


class TupleGateSingle(Single):
    """TuML-SC: a T-Gate and a single consumer."""

    name: ClassVar[str] = "tuple_gate"
    front = GateFront
