"""Records of every kind are read from a log as they were written."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa
import pytest

from paneflow.engines.edge.journal import JournalError, RecordCodec
from paneflow.engines.edge.records import (
    AFTER_ALL,
    BEFORE_ALL,
    Ask,
    Asked,
    Closed,
    Cut,
    Ended,
    Flush,
    Joined,
    Left,
    Lost,
    Record,
    Report,
    Reported,
    Silent,
)

SLICES = pa.schema([("slicing", pa.string()), ("start", pa.timestamp("us")), ("n", pa.int64())])
TABLE = pa.table({"slicing": ["time"], "start": pa.array([5]).cast(SLICES.types[1]), "n": [2]})
EVENTS = pa.table({"city": pa.array(["Ulm", "Köln"] * 5000).dictionary_encode()})
CODEC = RecordCodec({"slices": SLICES, "events": EVENTS.schema})

RECORDS: list[Record] = [
    Cut("sensor 1", 7, 123, {"slices": TABLE, "events": EVENTS}, events=10_000, no_time=2),
    Cut("sensor 1", 8, BEFORE_ALL, {}, events=0, no_time=0),
    Silent("Fühler"),
    Ended("sensor 1"),
    Closed(),
    Reported("hall", 2**40, Report(AFTER_ALL, {"slices": TABLE}, {"plug-7": 3})),
    Reported("hall", 1, Report(0)),
    Joined("hall"),
    Left("hall"),
    Lost("hall"),
    Asked(3, Ask("hall", {"done": 7, "of": {"plug-7": {"load": [[1, 2, 3]]}}})),
    Flush(),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    assert CODEC.decode(CODEC.encode(record)) == record


def test_there_is_a_test_for_every_kind() -> None:
    assert {type(record) for record in RECORDS} == set(get_args(Record))


def test_a_large_record_is_compressed() -> None:
    assert len(CODEC.encode(RECORDS[0])) < EVENTS["city"].cast(pa.string()).nbytes / 2


def test_a_record_of_another_query_is_refused() -> None:
    other = RecordCodec({"slices": pa.schema([("slicing", pa.string())])})
    with pytest.raises(JournalError, match=r"table that this query does not have.*empty folder"):
        other.decode(CODEC.encode(RECORDS[5]))
    with pytest.raises(JournalError, match="cannot be read"):
        CODEC.decode(b"\0")
