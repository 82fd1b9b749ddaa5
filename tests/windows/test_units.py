"""Whole numbers are durations over integers only: over timestamps nobody knows their unit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W

COUNT = {"n": A.count()}
TIMES = [datetime(2024, 2, 29, 23, 59, s, tzinfo=UTC) for s in (50, 58, 59)]
STAMPED = {
    "UTC": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "no zone, ns": pa.array(TIMES, pa.timestamp("ns")),
    "days": pa.array([date(2024, 2, 29)] * 3),
}


def pushed(query: pf.Query, events: pa.Table, workers: int) -> None:
    with query.open(workers=workers) as stream:
        stream.push(events)


ASKED: dict[str, Callable[[pf.Query, pa.Table], Any]] = {
    "table": lambda query, events: query.over(events),
    "oracle": lambda query, events: query.over(events, engine="oracle"),
    "slices": lambda query, events: query.slice(events),
    "stream": lambda query, events: pushed(query, events, workers=1),
    "two workers": lambda query, events: pushed(query, events, workers=2),
    "explain": lambda query, events: query.explain(events),
}


def events(times: pa.Array) -> pa.Table:
    return pa.table({"t": times, "sent": times, "v": [1, 2, 3]})


WITHOUT_UNIT = {
    "sliding's range": (lambda: W.sliding(3600, "1 s"), "range", "3600"),
    "sliding's slide": (lambda: W.sliding("1 hour", 60), "slide", "60"),
    "sliding's offset": (lambda: W.sliding("1 hour", "1 hour", offset=5), "offset", "5"),
    "tumbling": (lambda: W.tumbling(3600), "range", "3600"),
    "session": (lambda: W.session(30), "gap", "30"),
    "slide_by_time's slide": (lambda: W.slide_by_time(5, 60), "slide", "60"),
    "slide_by_time's offset": (lambda: W.slide_by_time(5, "1 s", offset=-7), "offset", "-7"),
    "slide_by_tuple": (lambda: W.slide_by_tuple(60, 5), "range", "60"),
    "delta's range": (lambda: W.delta("sent", 60, 0), "range", "60"),
    "delta's floats": (lambda: W.delta("sent", 2.5, 1.5), "range", "2.5"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(("window", "name", "number"), WITHOUT_UNIT.values(), ids=WITHOUT_UNIT)
def test_a_whole_number_over_timestamps_is_refused(
    ask: Callable[[pf.Query, pa.Table], Any],
    window: Callable[[], W.Window],
    name: str,
    number: str,
) -> None:
    query = pf.Query({"w": window()}, COUNT, time="t")
    with pytest.raises(pf.InputError) as refusal:
        ask(query, events(STAMPED["UTC"]))
    said = str(refusal.value)
    assert all(word in said for word in (name, "'w'", "timestamp[us, tz=UTC]"))
    assert f'"{number} seconds"' in said


@pytest.mark.parametrize("times", STAMPED.values(), ids=STAMPED)
def test_every_kind_of_timestamp_needs_units(times: pa.Array) -> None:
    with pytest.raises(pf.InputError, match='"5 seconds"'):
        pf.Query(W.tumbling(5), COUNT, time="t").over(events(times))
    pf.Query(W.tumbling("5 s"), COUNT, time="t").over(events(times))


def test_lateness_needs_a_unit_as_well() -> None:
    given = events(STAMPED["UTC"])
    with pytest.raises(pf.InputError, match=r'lateness .* "10 seconds"'):
        pf.Query(W.tumbling("5 s"), COUNT, time="t", lateness=10).over(given)
    for lateness in (0, "10 s", timedelta(seconds=10)):
        pf.Query(W.tumbling("5 s"), COUNT, time="t", lateness=lateness).over(given)


def test_lengths_of_numpy_are_taken_wherever_durations_are() -> None:
    def seconds(n: int) -> np.timedelta64:
        return np.timedelta64(n, "s")

    given = events(STAMPED["UTC"])
    named: dict[str, Any] = {
        "tumbling": lambda s: W.tumbling(s(5), offset=s(1)),
        "sliding": lambda s: W.sliding(s(4), s(2), offset=s(-1)),
        "session": lambda s: W.session(s(3)),
        "slide_by_tuple": lambda s: W.slide_by_tuple(s(4), 2),
        "slide_by_time": lambda s: W.slide_by_time(2, s(5), offset=s(1)),
        "delta": lambda s: W.delta("sent", s(8), s(3)),
    }
    asked = [
        pf.Query({name: made(unit) for name, made in named.items()}, COUNT, None, "t", unit(10))
        for unit in (seconds, lambda n: timedelta(seconds=n))
    ]
    assert asked[0].windows == asked[1].windows
    assert asked[0].lateness == asked[1].lateness
    rows = asked[0].over(given)
    assert rows.num_rows
    assert rows.equals(asked[1].over(given))


def test_zero_is_zero_in_any_unit() -> None:
    given = events(STAMPED["UTC"])
    windows = [
        W.sliding("4 s", "2 s", offset=0),
        W.session(0),
        W.slide_by_time(2, "5 s", offset=0),
        W.delta("sent", "5 s", "0 s"),
    ]
    assert pf.Query(windows, COUNT, time="t", lateness=0).over(given).num_rows


def test_slices_over_timestamps_are_not_finished_by_whole_numbers() -> None:
    stated = pf.Query({"w": W.tumbling("5 us")}, COUNT, time="t")
    cut = stated.slice(events(STAMPED["UTC"]))
    with pytest.raises(pf.InputError, match="another query"):
        pf.Query({"w": W.tumbling(5)}, COUNT, time="t").finish(cut)


def test_active_workers_see_windows_that_keep_their_unit() -> None:
    query = pf.Query(W.sliding("10 s", "1 s"), {"all": A.collect("v")}, time="t")
    given = events(STAMPED["UTC"])
    with query.open(workers=2, strategy="active") as opened:
        opened.push(given)
        opened.finish()
        rows = pa.concat_tables(opened.results())
    assert rows.to_pylist() == query.over(given).to_pylist()


def test_a_day_without_a_time_zone_is_24_hours_from_the_epoch() -> None:
    """On 2024-03-31 clocks in Berlin go forward: the local day has 23 hours, the window 24."""
    local = pa.array([datetime(2024, 3, 31, 12, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin"))
    rows = pf.Query(W.tumbling("1 day"), COUNT, time="t").over(pa.table({"t": local}))
    start, end = rows["start"][0].as_py(), rows["end"][0].as_py()
    assert start.astimezone(UTC) == datetime(2024, 3, 31, tzinfo=UTC)
    assert end.astimezone(UTC) == datetime(2024, 4, 1, tzinfo=UTC)
