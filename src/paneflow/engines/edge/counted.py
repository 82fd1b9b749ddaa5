"""What a question knows of count windows whose events stay on their nodes.

A child node sends *cells*, the events of a key in a short stretch of time, as their number and
their partials. The root adds up the numbers, and so knows in which cells windows begin and end.
Only these it asks for: large ones come as shorter cells, small ones event by event.

Yue, Moczalla, Luthra and Rabl, "Deco: Fast and Accurate Decentralized Aggregation of Count-Based
Windows in Large-Scale IoT Applications", predict instead how many events of a window each node
will have, and correct the prediction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import kind_of
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.table.cutting import written
from paneflow.engines.table.from_events import EventStore
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.columns import read_column
from paneflow.slicing.events import read_events
from paneflow.slicing.slices import SLICING, TIME_SLICES
from paneflow.slicing.times import time_type
from paneflow.windows import Count

if TYPE_CHECKING:
    from paneflow.query import Query

LEAST_SPACING = 1000
"""Windows that begin or end more often are answered from events.

A cell is about 60 bytes, an event 20. With eight child nodes, boundaries have to be some 500
events apart before cells and what is opened of them are half as many bytes as the events.
"""
LOGGED = "counted events"
"""Events as a child node writes them down."""
CELLS = "cells"
PARCELS = "parcels"
"""Events that are sent as they are: those of a cell that was asked for, or of several small."""
NUMBER = "cell:number"
"""The column that tells cells and parcels of a child node apart; later ones have greater."""
PARENT = "cell:parent"
"""The column that tells which cell shorter cells and parcels replace; 0 if none."""
HELD = "parcel:events"


def is_counted(query: Query) -> bool:
    """Whether the order of a query's events decides about nothing but the bounds of windows."""
    several = query.aggregates.values()
    return all(isinstance(a, Constant) and a.laws.commutative for a in several)


def spacing(windows: Iterable[Count]) -> float:
    """About how many events lie between one begin or end of a window and the next."""
    often = sum((1 if w.size % w.slide == 0 else 2) / w.slide for w in windows)
    return 1 / often


class Cut(NamedTuple):
    """Cells of a table of events."""

    cells: pa.Table
    rows: Array
    """The rows of the table in the order of the cells."""
    sizes: Array
    """How many events each cell has."""


class Counted:
    """Cells and parcels of events.

    Args:
        query: The query, all of whose windows go this way.
        source: The schema of the events that are taken.
    """

    def __init__(self, query: Query, source: pa.Schema) -> None:
        self.query = query
        self.windows = {n: w for n, w in query.windows.items() if isinstance(w, Count)}
        self.source = source
        used = dict.fromkeys(c for a in query.aggregates.values() for c in a.columns)
        names = dict.fromkeys((query.time, *query.key, *used))
        self.events = pa.schema([_plain(source.field(name)) for name in names])
        self._columns = list(used)
        self.keys = [f"key:{name}" for name in query.key]
        self.units = self.cut(self.events.empty_table(), 0).cells.schema
        numbers = [pa.field(name, pa.int64()) for name in (NUMBER, PARENT)]
        whose = [pa.field(CHILD, pa.string()), *numbers]
        held = pa.field(HELD, pa.list_(pa.struct(list(self.events))))
        self.schemas = {
            LOGGED: self.events,
            CELLS: pa.schema([*self.units, *whose]),
            PARCELS: pa.schema([*whose, held]),
        }

    def fit(self, events: pa.Table) -> pa.Table:
        """The columns of events that are needed."""
        return events.select(self.events.names).cast(self.events)

    def cut(self, events: pa.Table, grain: int) -> Cut:
        """The events of each key in each stretch of time of so many ticks; 0: each event alone.

        A cell starts with its first event, and not where its stretch does.
        """
        query = self.query
        kinds = {name: kind_of(type_, name) for name, type_ in query.types(self.events).items()}
        columns = {name: read_column(events, name) for name in self._columns}
        moment = time_type(self.events.field(query.time).type, query.time)
        ordered = read_events(events, query.key, query.time)
        arranged = Arranged(ordered, columns)
        (part,) = ordered.parts(1)
        begins = np.arange(len(part.t))
        if grain:
            cell = part.t // grain
            fresh = np.ones(len(cell), np.bool_)
            fresh[1:] = cell[1:] != cell[:-1]
            fresh[part.offsets[:-1][part.offsets[:-1] < len(cell)]] = True
            begins = np.flatnonzero(fresh)
        store = EventStore(part, arranged)
        store.cut_at(begins)
        starts = part.t[begins]
        made = written(query, TIME_SLICES, ordered.keys, store, begins, starts, kinds, moment)
        rows = ordered.arrange(np.arange(len(part.t)))
        sizes = np.diff(begins, append=len(part.t))
        return Cut(made.drop_columns(SLICING), rows, sizes)


def _plain(field: pa.Field) -> pa.Field:
    """A column without a dictionary: each child node has its own."""
    kind = field.type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.field(field.name, plain)
