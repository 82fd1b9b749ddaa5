"""Slices of time windows: their edges are the same on every node, so they meet by their starts."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.interpreting import SLICES
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.edges import Edges
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.question import Question
from paneflow.slicing.slices import SLICING, START, TIME_SLICES


class TimeSlices:
    """Slices that wait until every node below has passed the edge behind them."""

    def __init__(self, question: Question, lowest: bool) -> None:
        """`lowest`: all slices are this node's own."""
        assert question.layout is not None
        self._layout = question.layout
        self._lowest = lowest
        self._mixed = bool(question.sessions)
        """Whether slices of sessions come along."""
        self._waiting = Waiting(self._layout.schema)
        self._edges = Edges(question.sliding)

    def take(self, child: str, tables: Tables) -> None:
        came = tables.get(SLICES)
        if came is not None and self._mixed:
            came = came.filter(pc.equal(came[SLICING], TIME_SLICES))
        self._waiting.add(child, came)

    def due(self, before: int, watermark: int) -> bool:
        return self._edges.by(watermark) > self._edges.by(before)

    def flush(self, watermark: int, waited: Collection[str]) -> dict[str, pa.Table]:
        starts = ticks(self._waiting.all(), START)
        ready = self._waiting.keep(starts >= self._edges.by(watermark))
        return {SLICES: self._layout.merged(ready.drop_columns(FROM), self._lowest)}

    def give_up(self, child: str, lost: bool) -> None:
        """What a lost node has reported stays; nothing of it is waited for."""

    def state(self) -> dict[str, pa.Table]:
        return {"waiting": self._waiting.all()}

    def restore(self, state: Tables) -> None:
        self._waiting.replace(state["waiting"])


def ticks(rows: pa.Table, column: str) -> Array:
    """A column of times as int64."""
    values: Array = rows.column(column).cast(pa.int64()).to_numpy()
    return values if len(values) else np.empty(0, np.int64)
