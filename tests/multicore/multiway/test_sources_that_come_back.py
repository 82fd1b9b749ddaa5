"""A source that was silent and is heard again holds back nothing that the watermark has passed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.intake.front import Arrival
from paneflow.engines.multicore.multiway.designs import (
    MultiQueue,
    MultiQueueLockFree,
    TupleGateSingle,
)

QUERY = pf.Query(W.tumbling(5), {"n": A.count()}, time="t")
SCHEMA = pa.schema([("t", pa.int64())])


@pytest.mark.parametrize("strategy", [MultiQueue, MultiQueueLockFree, TupleGateSingle])
def test_events_leave_before_the_watermark_that_silence_has_raised(strategy: Any) -> None:
    front = strategy.front(QUERY, SCHEMA, 2)

    def pushed(source: int, *times: int) -> Arrival:
        batch = pa.record_batch([pa.array(times, pa.int64())], SCHEMA)
        added = front.add(source, batch, None)
        return Arrival(source, batch, None, len(times), 0.0, True, added=added)

    def silent(source: int) -> Arrival:
        return Arrival(source, None, None, 0, 0.0, True, silent=True)

    # All in one step, as when the stream is behind.
    came = [pushed(0, 1, 7), pushed(1, 2), silent(0), silent(1), pushed(1, 3)]
    events, watermark = front.take(came)
    assert events.t.tolist() == [1, 2, 7]
    assert watermark == 10
    assert front.late == 1
