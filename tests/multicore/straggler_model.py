"""Streams with events behind the watermark, replayed one event at a time in plain Python.

What SEMANTICS says of late events, and nothing else: for each event as it comes, the windows that
have not been emitted and that it joins; for each step of the watermark, the windows it emits.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.windows import Session, SlideByTime, Sliding

BEFORE_ALL, AFTER_ALL = -(2**62), 2**62
SCHEMA = pa.schema(
    {
        "t": pa.int64(),
        "k": pa.int64(),
        "v": pa.int64(),
        "x": pa.float64(),
        "grown": pa.int64(),
        "mark": pa.bool_(),
    }
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Arrival:
    """An event of a source, or its end."""

    source: int
    event: Row | None
    after: float = 0.0
    """Seconds by the clock since the arrival before it."""


@dataclass(frozen=True)
class Case:
    query: pf.Query
    sources: int
    arrivals: list[Arrival]

    def __repr__(self) -> str:
        came = [(a.source, None if a.event is None else a.event["t"]) for a in self.arrivals]
        return f"{self.query!r}, {self.sources} sources\n{came}\n{self.arrivals}"


@dataclass
class Given:
    """A window that has been emitted: what tells it apart, and its events."""

    label: str
    seq: int
    start: int
    end: int
    events: list[tuple[int, int, int, Row]]


@dataclass
class Model:
    """A stream's windows. Events are held as (time, source, position, values)."""

    query: pf.Query
    sources: int
    idle: float = math.inf
    """Seconds after which a source is silent."""
    late: list[Row] = field(default_factory=list)
    """The events that found none of their windows open, in the order in which they came."""
    given: list[Given] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._frontiers = dict.fromkeys(range(self.sources), BEFORE_ALL)
        self._watermark = self._latest = BEFORE_ALL
        self._came = 0
        self._clock = 0.0
        self._heard = dict.fromkeys(range(self.sources), 0.0)
        self._timed: dict[tuple[str, Any, int], list[Any]] = {}
        self._sessions: dict[tuple[str, Any], list[list[Any]]] = {}
        self._numbered: dict[tuple[str, Any], int] = {}
        self._placed: dict[str, list[Any]] = {}

    def replay(self, arrivals: list[Arrival]) -> None:
        for place, arrival in enumerate(arrivals):
            self._clock += arrival.after if place else 0.0
            self._advance()
            self._heard[arrival.source] = self._clock
            if arrival.event is None:
                self._frontiers[arrival.source] = AFTER_ALL
            else:
                self._take(arrival.source, arrival.event)
                seen = max(self._frontiers[arrival.source], arrival.event["t"])
                self._frontiers[arrival.source] = seen
                self._latest = max(self._latest, seen)
            self._advance()
        self.reached = self._watermark
        """The watermark before the end."""
        self._watermark = AFTER_ALL
        self._emit()

    def _advance(self) -> None:
        going_on = [k for k, frontier in self._frontiers.items() if frontier < AFTER_ALL]
        heard = [k for k in going_on if self._clock < self._heard[k] + self.idle]
        if going_on and not heard and self._latest > BEFORE_ALL:
            self._watermark = max(self._watermark, self._end_of_all())
        least = min((self._frontiers[k] for k in (heard or going_on)), default=AFTER_ALL)
        if least > BEFORE_ALL:
            reached = least if least == AFTER_ALL else least - self.query.lateness.value
            self._watermark = max(self._watermark, reached)
        self._emit()

    def _end_of_all(self) -> int:
        """The watermark by which the windows of all events so far have closed."""
        ends, t = [self._latest], self._latest
        for window in self.query.windows.values():
            if isinstance(window, Sliding):
                ends += [_end(window, n) for n in _numbers(window, t)]
            elif isinstance(window, Session):
                ends.append(t + window.gap.value + 1)
            elif isinstance(window, SlideByTime):
                ends.append(
                    next(
                        b
                        for b in itertools.count(t + 1)
                        if (b - window.offset.value) % window.slide.value == 0
                    )
                )
        by_time = all(isinstance(w, Sliding | SlideByTime) for w in self.query.windows.values())
        return max(ends) + (not by_time)

    def _take(self, source: int, values: Row) -> None:
        event = (values["t"], source, self._came, values)
        self._came += 1
        joined, would_join = 0, 0
        for label, window in self.query.windows.items():
            if isinstance(window, Sliding):
                numbers = _numbers(window, values["t"])
                still_open = [n for n in numbers if _end(window, n) > self._watermark]
                for n in still_open:
                    self._timed.setdefault((label, values["k"], n), []).append(event)
                joined += len(still_open)
                would_join += len(numbers)
            elif isinstance(window, Session):
                joined += self._join_session(label, window, event)
                would_join += 1
            else:
                if values["t"] >= self._watermark:
                    self._placed.setdefault(label, []).append(event)
                    joined += 1
                would_join += 1
        if joined == 0 and would_join > 0:
            self.late.append(values)

    def _join_session(self, label: str, window: Session, event: Any) -> bool:
        t, gap = event[0], window.gap.value
        sessions = self._sessions.setdefault((label, event[3]["k"]), [])
        near = [
            s for s in sessions if min(e[0] for e in s) - gap <= t <= max(e[0] for e in s) + gap
        ]
        if not near and t + gap < self._watermark:
            return False
        sessions[:] = [s for s in sessions if s not in near]
        sessions.append([*(e for s in near for e in s), event])
        return True

    def _emit(self) -> None:
        for (label, key, n), events in list(self._timed.items()):
            window = self.query.windows[label]
            if _end(window, n) <= self._watermark:
                start, end = _end(window, n) - window.range.value, _end(window, n)
                self.given.append(Given(label, n, start, end, events))
                del self._timed[label, key, n]
        for (label, key), sessions in self._sessions.items():
            gap = self.query.windows[label].gap.value
            for events in sorted(sessions, key=min):
                start, end = min(events)[0], max(events)[0] + gap
                if self._watermark > end:
                    seq = self._numbered.get((label, key), 0)
                    self._numbered[label, key] = seq + 1
                    self.given.append(Given(label, seq, start, end, events))
                    sessions.remove(events)

    def rows(self) -> pa.Table:
        """All rows in the order (end, window, seq, key)."""
        schema = self.query.result_schema(SCHEMA)
        rows: list[Row] = []
        if self.given:
            keyed = [
                {**e[3], "#": place, "0": 0}
                for place, window in enumerate(self.given)
                for e in sorted(window.events, key=lambda e: e[:3])
            ]
            wide = SCHEMA.append(pa.field("#", pa.int64())).append(pa.field("0", pa.int64()))
            whole = pf.Query(W.tumbling(1), self.query.aggregates, "#", "0")
            answers = whole.over(pa.Table.from_pylist(keyed, schema=wide), engine="oracle")
            for answer in answers.to_pylist():
                of = self.given[answer["#"]]
                row = {"window": of.label, "seq": of.seq, "start": of.start, "end": of.end}
                row |= {name: of.events[0][3][name] for name in self.query.key}
                rows.append(row | {name: answer[name] for name in self.query.aggregates})
        for label, events in self._placed.items():
            alone = self.query.with_windows({label: self.query.windows[label]})
            ordered = [e[3] for e in sorted(events, key=lambda e: e[:3])]
            table = pa.Table.from_pylist(ordered, schema=SCHEMA)
            rows += alone.over(table, engine="oracle").to_pylist()

        def place(row: Row) -> Any:
            keys = [(row[name] is not None, row[name] or 0) for name in self.query.key]
            return row["end"], row["window"], row["seq"], keys

        return pa.Table.from_pylist(sorted(rows, key=place), schema=schema)


def _end(window: Any, n: int) -> int:
    return int(window.offset.value + n * window.slide.value + window.range.value)


def _numbers(window: Sliding, t: int) -> list[int]:
    """The windows that a time is in."""
    reach, slide, offset = window.range.value, window.slide.value, window.offset.value
    some = range((t - offset - reach) // slide - 1, (t - offset) // slide + 2)
    return [n for n in some if offset + n * slide <= t < offset + n * slide + reach]


digits = A.define(
    lift=lambda v: (v + 1, 10),
    combine=lambda a, b: ((a[0] * b[1] + b[0]) % 9973, (a[1] * b[1]) % 9973),
    lower=lambda a: a[0],
    identity=(0, 1),
    commutative=False,
    samples=(0, 3, 8),
)
"""The values as digits of one number: tells every order from every other."""
FOLDED = {
    "n": A.count(),
    "sum": A.sum("v"),
    "most": A.max("x"),
    "first": A.first("v"),
    "last": A.last("x"),
    "where": A.arg_min("v", by="x"),
    "mean": A.mean("v"),
}
"""What every strategy can fold, whatever the order in which events come."""
KEPT = {"all": A.collect("v"), "median": A.median("v"), "digits": digits("v")}


def time_windows(r: random.Random) -> list[W.Window]:
    return [
        W.sliding(r.randint(1, 20), r.randint(1, 8), offset=r.randint(0, 5)),
        W.sliding(r.randint(2, 9), 1),
        W.sliding(r.randint(1, 4), r.randint(4, 9)),
        W.tumbling(r.randint(1, 15)),
    ]


def windows_by_events(r: random.Random) -> list[W.Window]:
    return [
        W.slide_by_tuple(r.randint(1, 9), r.randint(1, 4)),
        W.slide_by_time(r.randint(1, 5), r.randint(1, 7)),
        W.delta("grown", r.randint(1, 12), r.randint(0, 8)),
    ]


def sessions(r: random.Random) -> list[W.Window]:
    return [W.session(r.randint(0, 3)), W.session(r.randint(2, 8))]


def draw(
    r: random.Random, windows: list[W.Window], aggregates: dict[str, Any], most: int = 50
) -> Case:
    """Events of which many come behind the watermark."""
    chosen = r.sample(windows, r.randint(1, min(3, len(windows))))
    if not any(isinstance(w, Sliding | Session) for w in chosen) and r.random() < 0.9:
        chosen[0] = r.choice([w for w in windows if isinstance(w, Sliding | Session)])
    names = r.sample(list(aggregates), r.randint(1, min(3, len(aggregates))))
    query = pf.Query(
        list(dict.fromkeys(chosen)),
        {name: aggregates[name] for name in names},
        key=r.choice([None, "k", "k"]),
        time="t",
        lateness=r.choice([0, 0, 0, 1, 5]),
    )
    sources = r.choice([1, 1, 2, 3])
    arrivals: list[Arrival] = []
    clock, ended = r.randint(-5, 5), set[int]()
    jumps = r.choice([(0, 0, 0, 1, 2), (0, 0, 3, 9), (0, 1, 2, 3, 4, 5, 30)])
    steps = r.choice([(0, 1), (0, 0, 0, 1, 4), (0, 1, 2, 3, 15)])
    for _ in range(r.randint(1, most)):
        clock += r.choice(steps)
        t = clock - r.choice(jumps)
        event = {
            "t": t,
            "k": r.choice([0, 1, 1, None]) if query.key else 0,
            "v": r.randint(0, 8),
            "x": float(r.randint(0, 3)),
            "grown": 2 * t,
            "mark": r.random() < 0.3,
        }
        alive = [k for k in range(sources) if k not in ended]
        arrivals.append(Arrival(r.choice(alive), event))
        if len(alive) > 1 and r.random() < 0.03:
            ended.add(alive[0])
            arrivals.append(Arrival(alive[0], None))
    return Case(query, sources, arrivals)


def with_pauses(r: random.Random, case: Case) -> Case:
    """The same stream with time between arrivals, by the clock."""
    pauses = r.choice([(0, 0, 0, 1, 3), (1, 2, 4), (0, 0, 0, 0, 9)])
    return replace(
        case, arrivals=[replace(arrival, after=r.choice(pauses)) for arrival in case.arrivals]
    )


def pushes(r: random.Random, case: Case) -> list[tuple[float, int, pa.Table | None]]:
    """The arrivals, as many of one source together as chance will have it.

    For each the seconds before it, by the clock, the source, and the events; None if it ends.
    """
    together = r.choice([1, 3, 100])
    made: list[tuple[float, int, list[Row] | None]] = []
    for arrival in case.arrivals:
        source, event, after = arrival.source, arrival.event, arrival.after
        last = made[-1] if made else None
        joins = last and last[1] == source and after == 0 and r.randrange(together)
        if last and joins and last[2] is not None and event is not None:
            last[2].append(event)
        else:
            made.append((after, source, None if event is None else [event]))
    return [
        (after, source, None if rows is None else pa.Table.from_pylist(rows, schema=SCHEMA))
        for after, source, rows in made
    ]
