"""The state of a shard, without a JVM: what comes of the parcels of a batch."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.open_windows import OpenWindows
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.spark.slices.packing import UNTOLD, from_bytes, to_bytes
from paneflow.engines.spark.unbounded.shard_state import ShardProcessor

SOURCE = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
PARTS = range(3)


class Value:
    """A value in Spark's state store."""

    _held: Any = None

    def exists(self) -> bool:
        return self._held is not None

    def get(self) -> Any:
        return self._held

    def update(self, value: Any) -> None:
        self._held = value


class Map:
    """A map in Spark's state store."""

    def __init__(self) -> None:
        self._held: dict[Any, Any] = {}

    def iterator(self) -> Any:
        return iter(self._held.items())

    def keys(self) -> Any:
        return iter(self._held)

    def removeKey(self, key: Any) -> None:
        del self._held[key]

    def updateValue(self, key: Any, value: Any) -> None:
        self._held[key] = value


class Handle:
    """What Spark gives a processor to keep its state by."""

    def getValueState(self, name: str, schema: str) -> Value:
        return Value()

    def getMapState(self, name: str, key: str, value: str) -> Map:
        return Map()

    def registerTimer(self, at: int) -> None:
        pass


class Timers:
    """A watermark behind all events."""

    def getCurrentWatermarkInMs(self) -> int:
        return 3_600_000


@pytest.mark.parametrize("came", list(itertools.permutations(PARTS)), ids=str)
@pytest.mark.parametrize("window", [W.tumbling("10 s"), W.count(len(PARTS))], ids=str)
def test_events_of_one_time_stand_in_the_order_of_their_parts(
    window: W.Window, came: tuple[int, ...]
) -> None:
    query = pf.Query(window, {"all": A.collect("v"), "last": A.last("v")}, time="ts")
    send = OpenWindows(query, SOURCE).sent
    sent = [pa.table({"ts": [5], "v": [p]}) for p in PARTS]
    parcels = [to_bytes(send(table.cast(SOURCE))) for table in sent]
    frame = pd.DataFrame(
        {
            "part": came,
            "parcel": [parcels[part] for part in came],
            "events": [1] * len(came),
            "latest": [UNTOLD] * len(came),
        }
    )
    shard = ShardProcessor(query, SOURCE, StreamOptions())
    shard.init(Handle())
    (answer,) = shard.handleInputRows(("0",), iter([frame]), Timers())
    (row,) = from_bytes(answer["packed"][0]).to_pylist()
    assert (row["all"], row["last"]) == ([0, 1, 2], 2)
