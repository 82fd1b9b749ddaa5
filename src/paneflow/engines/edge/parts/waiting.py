"""Rows that wait at a node, with the name of the node below that they came from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.slicing.keys import encode_keys

FROM = "from:node"
"""The column that tells the node below."""


class Waiting:
    """A table that grows by what comes and shrinks by what goes on."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema.append(pa.field(FROM, pa.string()))
        self._tables: list[pa.Table] = []

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables)

    def add(self, child: str, table: pa.Table | None) -> None:
        """Take rows that came from a node below."""
        if table is not None and table.num_rows:
            names = self.schema.names[:-1]
            sender = pa.repeat(pa.scalar(child), table.num_rows)
            self._tables.append(table.select(names).append_column(FROM, sender))

    def all(self) -> pa.Table:
        """What waits; rows of one node stand in the order in which they came."""
        self._tables = [pa.concat_tables([self.schema.empty_table(), *self._tables])]
        return self._tables[0]

    def keep(self, chosen: Array) -> pa.Table:
        """Keep the chosen rows; the others are given, by the names of their nodes."""
        table = self.all()
        if chosen.all():
            return self.schema.empty_table()
        if not chosen.any():
            self._tables = []
            return by_node(table)
        kept, gone = split(table, chosen)
        self._tables = [kept]
        return by_node(gone)

    def replace(self, table: pa.Table) -> None:
        """Hold other rows instead."""
        self._tables = [table]

    def clear(self) -> None:
        """Hold nothing more."""
        self._tables = []


def split(table: pa.Table, chosen: Array) -> tuple[pa.Table, pa.Table]:
    """The chosen rows of a table, and the others.

    Rows that came together mostly go together, and are not copied if they do.
    """
    kept, gone = [], []
    at = 0
    for batch in table.to_batches():
        mine = chosen[at : at + batch.num_rows]
        at += batch.num_rows
        if mine.all():
            kept.append(batch)
        elif mine.any():
            kept.append(batch.filter(pa.array(mine)))
            gone.append(batch.filter(pa.array(~mine)))
        else:
            gone.append(batch)
    return pa.Table.from_batches(kept, table.schema), pa.Table.from_batches(gone, table.schema)


def by_node(table: pa.Table) -> pa.Table:
    """Rows by the names of their nodes; those of one node stay in order."""
    codes, distinct = encode_keys(table, (FROM,))
    if distinct.num_rows < 2:
        return table
    return table.take(pa.array(np.argsort(codes, kind="stable")))
