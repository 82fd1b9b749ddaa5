"""The oracle: what a query means, in plain Python, slowly and obviously right.

It finds every window of every key event by event, and computes every aggregate from the list of
the window's values. No slices, no kernels, nothing shared with the engines it judges. Every other
engine is tested against it; use it for small tables, or when in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.oracle import aggregates
from paneflow.engines.oracle.events import Events, array, order, read
from paneflow.engines.oracle.windows import windows_of
from paneflow.windows import Sliding, Window
from paneflow.windows.many_rows import MAX_ROWS, RowCount, check_rows, warn_of_many

if TYPE_CHECKING:
    from paneflow.query import Query


def answer(
    query: Query,
    table: pa.Table,
    *,
    merge: str = "auto",
    max_rows: int | None = MAX_ROWS,
    stacklevel: int | None = None,
) -> pa.Table:
    """The rows of a query over a finite table, ordered by (end, window, seq, key).

    `merge` has no effect: nothing is merged.
    """
    # Functions that take no values of these types are refused before any of them is called.
    schema = query.result_schema(table.schema)
    needed = {name for window in query.windows.values() for name in window.columns}
    needed |= {name for aggregate in query.aggregates.values() for name in aggregate.columns}
    events = read(table, query.key, query.time, needed)
    if events.times:
        count = _count(query, events)
        check_rows(count, query.windows, max_rows)
        span = max(events.times) - min(events.times)
        if stacklevel is not None:
            warn_of_many(count, query.windows, span, stacklevel + 1)
    rows: list[tuple[Any, ...]] = []
    for of_key in events.of_keys():
        key = events.keys[of_key[0]]
        for label, window in query.windows.items():
            for found in windows_of(window, events, of_key):
                results = (
                    aggregates.result(aggregate, events, found.rows)
                    for aggregate in query.aggregates.values()
                )
                rows.append((label, *key, found.seq, found.start, found.end, *results))

    width = len(query.key)

    def place(row: tuple[Any, ...]) -> tuple[Any, ...]:
        label, key, (seq, _, end) = row[0], row[1 : 1 + width], row[1 + width : 4 + width]
        return (end, label, seq, *map(order, key))

    rows.sort(key=place)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [
            _as_array(query.aggregates.get(field.name), column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def _as_array(aggregate: Any, values: tuple[Any, ...], type_: pa.DataType) -> pa.Array[Any]:
    """A column of results; those of a user-defined aggregate must fit its type."""
    if aggregate is not None and aggregate.name == "define":
        made: pa.Array[Any] = aggregate.fitted(values, type_)
        return made
    return array(values, type_)


def _count(query: Query, events: Events) -> RowCount:
    """The number of rows of sliding windows; an upper bound for others."""
    keys = events.of_keys()
    counts = {
        label: sum(_rows_of(window, [events.times[row] for row in of_key]) for of_key in keys)
        for label, window in query.windows.items()
    }
    exact = all(isinstance(window, Sliding) for window in query.windows.values())
    return RowCount(counts, len(events.times), len(keys), exact)


def _rows_of(window: Window, times: list[int]) -> int:
    """The windows of one key, whose events are at these times, in order."""
    if not isinstance(window, Sliding):
        return len(times)
    counted, total = None, 0
    for t in times:
        numbers = window.assigned(t)
        first = numbers.start if counted is None else max(numbers.start, counted)
        total += max(0, numbers.stop - first)
        counted = numbers.stop
    return total
