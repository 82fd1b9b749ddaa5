"""Random streams: questions, sources, disorder, batches; and what the oracle says of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow.aggregates.values import kind_of
from paneflow.engines.multicore.choosing import BY_NAME, choose, without_partial
from paneflow.engines.multicore.stream import Stream
from tests.compared import note_stream
from tests.multicore.refusals import REASONS
from tests.properties.cases import AGGREGATES, WINDOWS, Case, draw_case
from tests.properties.compare import assert_same_rows

STREAMED = tuple(WINDOWS)


@dataclass(frozen=True)
class StreamCase:
    query: pf.Query
    pushes: list[tuple[int, pa.Table]]
    """Source and events, in the order of arrival."""
    sources: int
    schema: pa.Schema

    def expected(self) -> pa.Table:
        """The oracle's rows: ties go by source, then by position in it."""
        parts = [
            events for k in range(self.sources) for source, events in self.pushes if source == k
        ]
        table = pa.concat_tables([self.schema.empty_table(), *parts])
        return without_partial(self.query).over(table, engine="oracle")

    def __repr__(self) -> str:
        pushes = [(source, events.to_pylist()) for source, events in self.pushes]
        return f"{self.query!r}, {self.sources} sources\n{pushes}"


def draw_stream(
    r: random.Random,
    windows: tuple[str, ...] = STREAMED,
    aggregates: tuple[str, ...] = tuple(AGGREGATES),
    most: int = 40,
) -> StreamCase:
    """A question, and events that come out of order by no more than its lateness."""
    return as_stream(draw_case(r, windows=windows, aggregates=aggregates, most=most), r)


def as_stream(case: Case, r: random.Random) -> StreamCase:
    """The events of a table from one or more sources, in batches, out of order."""
    table = case.table
    t = table["t"].cast(pa.int64()).to_numpy()
    unit = 1_000_000 if pa.types.is_timestamp(table.schema.field("t").type) else 1
    disorder = r.choice([0, 0, 3, 20]) * unit
    lateness = f"{disorder} us" if unit > 1 else disorder
    query = pf.Query(
        case.query.windows, case.query.aggregates, case.query.key, "t", lateness=lateness
    )
    shifted = [int(x) + r.randint(0, disorder) for x in t]
    arrival = table.take(pa.array(np.argsort(shifted, kind="stable")))
    sources = r.choice([1, 1, 2, 3])
    pushes: list[tuple[int, pa.Table]] = []
    start = 0
    while start < len(arrival):
        size = r.choice([1, 2, 5, 20])
        piece = arrival.slice(start, size)
        start += size
        of = [r.randrange(sources) for _ in range(len(piece))]
        for source in range(sources):
            mine = piece.filter(pa.array([k == source for k in of], pa.bool_()))
            if len(mine) or r.random() < 0.1:
                pushes.append((source, mine))
    return StreamCase(query, pushes, sources, table.schema)


def answer(
    case: StreamCase,
    r: random.Random,
    strategy: str = "auto",
    workers: int = 1,
    pauses: Callable[[int], None] | None = None,
) -> tuple[list[pa.Table], Any]:
    """All tables that a stream gives, and its metrics at the end."""
    got: list[pa.Table] = []
    with Stream(case.query, workers, strategy, case.sources, pauses) as stream:
        for source, events in case.pushes:
            stream.push(events, source)
            if r.random() < 0.3:
                got += stream.results(r.choice([0, 0, 0.001]))
        stream.finish()
        got += stream.results()
        return got, stream.metrics()


def check(
    case: StreamCase,
    r: random.Random,
    strategy: str = "auto",
    workers: int = 1,
    pauses: Callable[[int], None] | None = None,
) -> None:
    """The oracle's rows, in the oracle's order."""
    expected = case.expected()
    got, metrics = answer(case, r, strategy, workers, pauses)
    assert metrics.late == 0
    assert_same_rows(case.query, pa.concat_tables([expected.slice(0, 0), *got]), expected)
    note_stream(strategy, case.query, sum(len(events) for _, events in case.pushes), expected)


def check_or_refused(
    case: StreamCase,
    r: random.Random,
    strategy: str,
    workers: int,
    pauses: Callable[[int], None] | None = None,
) -> bool:
    """Whether a strategy serves a stream: then its rows are right, else the reason is known."""
    query = without_partial(case.query)
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(case.schema).items()}
    why = None if strategy == "auto" else BY_NAME[strategy].refuses(query, kinds)
    if why is None:
        check(case, r, strategy, workers, pauses)
    else:
        assert any(reason in why for reason in REASONS), why
        with pytest.raises(pf.UnsupportedError, match=re.escape(why)):
            choose(query, kinds, workers, strategy)
    return why is None
