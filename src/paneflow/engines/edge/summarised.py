"""What a question knows of windows whose quantiles are found in two steps.

A child node sends a summary of each slice, and the root asks for those values only that a quantile
can be among. A summary holds some of a slice's distinct values, its *points*, and how many values
lie in the *gap* behind each. The aim is that of Dema, in Yue, "Efficient Window Aggregation for
Decentralized Stream Processing Systems".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.holistic import Quantiles
from paneflow.engines import table
from paneflow.engines.edge.layouts import CHILD
from paneflow.slicing.layout import runs_columns
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

DETAILED = "detailed slices"
"""Slices with all their values, as a child node writes them down."""
SUMMARIES = "summaries"
NUMBER = "slice:number"
"""The column that tells the slices of a child node apart."""
POSITION = "value:position"
"""The column that tells where a gap begins: how many values of the slice come before it."""


def has_quantiles(query: Query) -> bool:
    """Whether all that a query needs of a slice's values, one by one, is quantiles."""
    several = query.aggregates.values()
    return any(isinstance(a, Quantiles) for a in several) and all(
        isinstance(a, Quantiles) or (isinstance(a, Constant) and a.laws.commutative)
        for a in several
    )


class Summarised:
    """Slices in full, their summaries, and the answers to questions about them.

    Args:
        query: The query, all of whose windows go this way.
        source: The schema of the events that are cut.
    """

    def __init__(self, query: Query, source: pa.Schema) -> None:
        self.query = query
        self.layout = table.cut(query, source.empty_table())
        self.windows = [w for w in query.windows.values() if isinstance(w, Sliding)]
        self.shares: dict[str, list[float]] = {}
        """The shares of the quantiles that are asked for, by column."""
        for aggregate in query.aggregates.values():
            if isinstance(aggregate, Quantiles):
                known = self.shares.setdefault(aggregate.columns[0], [])
                known += [q for q in aggregate.qs if q not in known]
        self.runs = runs_columns(query)
        self.gaps = {column: f"gaps({column})" for column in self.runs}
        self.answers = {column: f"answers({column})" for column in self.runs}
        self.detailed = self.layout.table.schema.remove_metadata()
        whose = [pa.field(CHILD, pa.string()), pa.field(NUMBER, pa.int64())]
        gaps = [pa.field(name, pa.list_(pa.int64())) for name in self.gaps.values()]
        self.summaries = pa.schema([*self.detailed, *gaps, *whose])
        self.schemas = {DETAILED: self.detailed, SUMMARIES: self.summaries}
        for column, name in self.answers.items():
            values = self.detailed.field(self.runs[column])
            self.schemas[name] = pa.schema([*whose, pa.field(POSITION, pa.int64()), values])

    def cut(self, events: pa.Table) -> pa.Table:
        """The slices of events, in full."""
        return table.pieces(self.query, events)

    def compact(self, slices: pa.Table) -> pa.Table:
        """The slices of one node, one for each key and stretch."""
        made = table.compact(self.query, self.layout.with_table(slices))
        return made.replace_schema_metadata().cast(self.detailed)

    def rows(self, slices: pa.Table, after: int | None, until: int) -> pa.Table:
        """The rows of windows that end after one time and not after another."""
        held = self.layout.with_table(slices)
        return table.finish(self.query, held, ends_in=(after, until), max_rows=None)
