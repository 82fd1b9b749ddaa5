"""Several frames of paneflow in one plan of Spark: the rows of each, and a report of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import Observed, observed
from tests.spark.support import (
    assert_same_set,
    frame_of,
    plain,
    ran,
    read_files,
    rows_of,
    write_files,
)
from tests.waiting import wait_until

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def events(*given: tuple[float | None, float]) -> pa.Table:
    """Events of one key at so many seconds."""
    times = [None if t is None else START + int(t * SECOND) for t, _ in given]
    columns = {"k": ["a"] * len(given), "ts": pa.array(times, pa.timestamp("us", "UTC"))}
    return pa.table(columns | {"v": [v for _, v in given]})


ON_TIME = [events((0, 1), (2, 2), (31, 3), (100, 5)), events((140, 9))]
LEFT_OUT = events((1, 7), (None, 8))
"""Late, if it comes in another run, and without a time."""
SUMS = pf.Query(W.tumbling("10 s"), {"value": A.sum("v")}, "k")
PEAKS = pf.Query(W.sliding("20 s", "10 s"), {"value": A.max("v")}, "k")


def closed(query: pf.Query) -> pa.Table:
    """The oracle's rows of windows that end by the latest event."""
    rows = plain(query.over(pa.concat_tables(ON_TIME), engine="oracle"))
    latest = pa.scalar(START + 140 * SECOND, pa.timestamp("us", "UTC"))
    return rows.filter(pc.less_equal(rows["end"], latest))


class Listener(StreamingQueryListener):
    """What a user may write."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Observed]] = []
        self.ended = 0

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        self.reports.append(observed(event.progress))

    def onQueryTerminated(self, event: Any) -> None:
        self.ended += 1


@pytest.mark.long
def test_a_union_of_two_streams(spark: Any, tmp_path: Path) -> None:
    listener = Listener()
    spark.streams.addListener(listener)
    reports: list[dict[str, Observed]] = []
    try:
        write_files(ON_TIME[:1], tmp_path / "in")
        stream = read_files(spark, tmp_path / "in", LEFT_OUT.schema)
        rows = SUMS.over(stream).union(PEAKS.over(stream))
        reports += map(observed, ran(rows, tmp_path).recentProgress)
        write_files([LEFT_OUT, *ON_TIME[1:]], tmp_path / "in", first=1)
        reports += map(observed, ran(rows, tmp_path).recentProgress)
        wait_until(lambda: listener.ended == 2)
    finally:
        spark.streams.removeListener(listener)
    expected = pa.concat_tables([closed(SUMS), closed(PEAKS)])
    assert_same_set(SUMS, rows_of(rows, tmp_path), expected)
    assert listener.reports == reports
    first, second = reports[0]
    assert int(first.removeprefix("paneflow-")) < int(second.removeprefix("paneflow-"))
    for name in (first, second):
        assert sum(report[name].late for report in reports) == 1
        assert sum(report[name].dropped for report in reports) == 1


@pytest.mark.long
def test_a_join_of_two_streams(spark: Any, tmp_path: Path) -> None:
    write_files(ON_TIME, tmp_path / "in")
    stream = read_files(spark, tmp_path / "in", LEFT_OUT.schema)
    peaks = pf.Query(W.tumbling("10 s"), {"peak": A.max("v")}, "k").over(stream)
    rows = SUMS.over(stream).join(peaks, ["window", "k", "seq", "start", "end"])
    ran(rows, tmp_path)
    both = pf.Query(W.tumbling("10 s"), {"value": A.sum("v"), "peak": A.max("v")}, "k")
    assert_same_set(both, rows_of(rows, tmp_path), closed(both))


def test_finite_frames_in_one_plan(spark: Any) -> None:
    events = pa.concat_tables(ON_TIME)
    frame = frame_of(spark, events)
    rows = SUMS.over(frame).union(PEAKS.over(frame))
    expected = [plain(query.over(events, engine="oracle")) for query in (SUMS, PEAKS)]
    assert_same_set(SUMS, rows.toArrow(), pa.concat_tables(expected))


def test_before_the_first_batch_there_is_no_report() -> None:
    assert observed(None) == {}


def test_metrics_of_others_are_left_alone() -> None:
    own = {"rows": 3, "late": 1, "dropped": 2, "held": 4, "held_bytes": 5}
    metrics = {"paneflow-10": own, "7": {"n": 3}, "paneflow-2": own, "paneflow-ish": {"n": 3}}
    assert observed({"observedMetrics": metrics}) == {
        "paneflow-2": Observed(3, 1, 2, 4, 5),
        "paneflow-10": Observed(3, 1, 2, 4, 5),
    }
    assert list(observed({"observedMetrics": metrics})) == ["paneflow-2", "paneflow-10"]
