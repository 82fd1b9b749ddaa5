"""The latest time in a report: what it tells of was not cut for queries that are added later."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.edge.counted import PARCELS
from paneflow.engines.edge.interpreting import EVENTS
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.counts.parcels import unpacked
from paneflow.engines.edge.question import ROWS, Question
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.slicing.slices import LAST
from paneflow.slicing.times import read_times


def latest_in(tables: Tables, question: Question) -> int:
    """The latest time in tables of a query; BEFORE_ALL if there is none."""
    found = [_latest(name, table, question) for name, table in tables.items()]
    return max(found, default=BEFORE_ALL)


def _latest(name: str, table: pa.Table, question: Question) -> int:
    if table.num_rows == 0:
        return BEFORE_ALL
    if name == PARCELS and question.counted is not None:
        name, table = EVENTS, unpacked(table, question.counted.events).events
    if name == EVENTS:
        return int(read_times(table, question.query.time)[0].max())
    column = "end" if name == ROWS else LAST
    if column not in table.column_names:
        return BEFORE_ALL
    latest: int = pc.max(table.column(column).cast(pa.int64())).as_py()
    return latest
