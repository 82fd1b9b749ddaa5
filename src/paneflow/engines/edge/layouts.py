"""Slices as they travel: their columns, and how those of several nodes become fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.aggregates.aggregate import Constant
from paneflow.engines import table
from paneflow.slicing.bounds.ranges import Ends
from paneflow.slicing.slices import SLICING, START

if TYPE_CHECKING:
    from paneflow.query import Query

CHILD = "child:name"
"""The column that names the child node something comes from; no user's column has a colon here."""
GONE = "gone"
"""In tables that say which child nodes cannot be asked for more: whether that is so."""
GONE_SCHEMA = pa.schema([(CHILD, pa.string()), (GONE, pa.bool_())])
OVER = "over"
"""In openings: nothing will come of one that was told before."""


class Layout:
    """What the slices of a query look like on their way up.

    Args:
        query: The query, all of whose windows are answered from slices.
        source: The schema of the events that are cut.
    """

    def __init__(self, query: Query, source: pa.Schema) -> None:
        self.query = query
        self.in_order = any(not a.laws.commutative for a in query.aggregates.values())
        """Whether it matters which child node an event of a slice comes from."""
        self.mergeable = not self.in_order and all(
            isinstance(a, Constant) for a in query.aggregates.values()
        )
        """Whether slices of several nodes become fewer bytes when they are merged."""
        self._empty = table.cut(query, source.empty_table())
        plain = self._empty.table.schema.remove_metadata()
        self._plain = plain.names
        self.schema = plain.append(pa.field(CHILD, pa.string())) if self.in_order else plain

    def cut(self, events: pa.Table) -> pa.Table:
        """The slices of events, without the name of their node."""
        return table.pieces(self.query, events)

    def merged(self, slices: pa.Table, lowest: bool) -> pa.Table:
        """Slices as they go on: merged where that makes them fewer.

        `lowest`: they are all of one child node. Those are always merged, because it knows in which
        order its events came.
        """
        if slices.num_rows < 2 or not (lowest or self.mergeable):
            return slices
        made = table.compact(self.query, self._empty.with_table(slices.select(self._plain)))
        for name in slices.column_names[len(self._plain) :]:
            made = made.append_column(name, pa.repeat(slices.column(name)[0], made.num_rows))
        return made.cast(slices.schema)

    def described(self, slices: pa.Table) -> pa.Table:
        """Slices as a table that says which query it belongs to, as `query.slice` gives it."""
        ordered = slices.sort_by(CHILD) if self.in_order else slices
        return self._empty.with_table(ordered.select(self._plain)).table

    def finish(self, slices: pa.Table, ends_in: Ends = (None, None)) -> pa.Table:
        """The rows that slices amount to; of sliding windows those that end in a span."""
        ordered = slices.sort_by(CHILD) if self.in_order else slices
        whole = self._empty.with_table(ordered)
        return table.finish(self.query, whole, ends_in=ends_in, max_rows=None)


def opening_of(slices: pa.Schema) -> pa.Schema:
    """What tells when a session began: the slicing, the key, the start, and whether it is over."""
    keys = [field for field in slices if field.name.startswith("key:")]
    over = pa.field(OVER, pa.bool_())
    return pa.schema([slices.field(SLICING), *keys, slices.field(START), over])
