"""Windows of child nodes that stand for one window: what makes them one, and how they travel.

"Disco" names three ways to read windows that need to know what came before: windows with equal
bounds are one, windows of equal number are one, or windows that overlap are one. Each node finds
its own windows; what travels is a slice for each, under its label and its number or bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.operator import Array
from paneflow.engines.edge.interpreting import GAPS, ORDER
from paneflow.engines.edge.layouts import Layout
from paneflow.errors import UnsupportedError
from paneflow.slicing.layout import not_sliceable
from paneflow.slicing.slices import SLICING
from paneflow.windows import Duration, Session, Window

if TYPE_CHECKING:
    from paneflow.query import Query

LABEL = "window:label"
GROUP = "window:group"
"""What windows of several nodes have in common: a number, or the time of a mark."""
ENDLESS = 2**59
"""A gap that no two events are apart."""


class Matching:
    """Windows that are matched in one way.

    Args:
        query: The query with these windows alone.
        source: The schema of events.
        way: What makes windows of several nodes one.
    """

    def __init__(self, query: Query, source: pa.Schema, way: str) -> None:
        self.query = query
        self.way = way
        self._stamped = not pa.types.is_integer(source.field(query.time).type)
        key = (*query.key, LABEL, GROUP)
        columns = [*source, pa.field(LABEL, pa.string()), pa.field(GROUP, pa.int64())]
        self.source = pa.schema(columns)
        one = restated(query, {"one": self._session(ENDLESS)}, query.aggregates, key)
        why = not_sliceable(one, self.source)
        if why is not None:
            raise UnsupportedError(
                f"windows of several nodes cannot be matched by {way!r}: {why}; leave the "
                f"interpretation at 'auto'"
            )
        self._cutting = Layout(one, self.source)
        joined = restated(query, {"one": self._session(0)}, query.aggregates, key)
        self.layout = Layout(joined, self.source) if way == GAPS else self._cutting

    @property
    def sessions(self) -> dict[str, Session]:
        """The session that joins windows which overlap, by the name of its slicing."""
        (window,) = self.layout.query.windows.values()
        assert isinstance(window, Session)
        return {str(window): window}

    def group(self, seq: Array, end: Array) -> Array:
        """What windows of several nodes have in common, from their numbers and their ends."""
        return seq if self.way == ORDER else end

    def cut(self, events: pa.Table) -> pa.Table:
        """A slice for each window, from the events of all windows with their labels and groups."""
        slices = self._cutting.cut(events)
        if self.way != GAPS:
            return slices
        slicing = pa.repeat(pa.scalar(next(iter(self.sessions))), slices.num_rows)
        slices = slices.set_column(0, SLICING, slicing)
        at = slices.schema.get_field_index(f"key:{GROUP}")
        return slices.set_column(at, f"key:{GROUP}", pa.array(np.zeros(slices.num_rows, np.int64)))

    def rows(self, slices: pa.Table) -> pa.Table:
        """The rows of windows, of whose slices none is missing."""
        made = self.layout.finish(slices)
        (session,) = self.sessions.values()
        first = made.column("start").cast(pa.int64()).to_numpy().copy()
        last = made.column("end").cast(pa.int64()).to_numpy() - session.gap.value
        number = made.column(GROUP).to_numpy()
        labels = made.column(LABEL)
        for label, window in self.query.windows.items():
            mine = pc.equal(labels, label).to_numpy()
            if self.way == ORDER:
                first[mine], last[mine] = window.extent(number[mine], first[mine], last[mine])
        named = {
            "window": labels,
            "seq": pa.array(number) if self.way == ORDER else pa.nulls(len(made), pa.int64()),
            "start": pa.array(first).cast(made.schema.field("start").type),
            "end": pa.array(last).cast(made.schema.field("end").type),
        }
        for name, column in named.items():
            made = made.set_column(made.schema.get_field_index(name), name, column)
        return made.drop_columns([LABEL, GROUP])

    def _session(self, gap: int) -> Session:
        return Session(gap=Duration(gap, self._stamped))


def restated(
    query: Query,
    windows: Mapping[str, Window],
    aggregates: Mapping[str, Aggregate],
    key: tuple[str, ...],
) -> Query:
    """A query over the same time with other parts, in which nothing comes out of order."""
    return type(query)(windows, aggregates, key, query.time)
