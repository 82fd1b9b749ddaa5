"""Windows that each child node answers for itself: their rows are final where they are made."""

from __future__ import annotations

import pyarrow as pa

from paneflow.engines.edge.nodes.held import HeldWindows
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.question import ROWS, Question
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.slicing.times import read_times


class LocalWindows:
    """Events wait until the watermark has passed them, then become rows."""

    def __init__(self, question: Question) -> None:
        assert question.local is not None
        self._time = question.query.time
        self._schema = question.schemas[ROWS]
        self._waiting = Waiting(question.source)
        self._windows = HeldWindows(question.local, question.source)

    @property
    def watermark(self) -> int:
        """Until when there are rows."""
        return self._windows.watermark

    def take(self, events: pa.Table) -> None:
        """Take events."""
        self._waiting.add("", events)

    def advance(self, watermark: int) -> tuple[pa.Table, int]:
        """Rows that are final now, and how many events came too late."""
        if watermark == BEFORE_ALL:
            return self._schema.empty_table().drop_columns(self._schema.names[-1:]), 0
        later = read_times(self._waiting.all(), self._time)[0] >= watermark
        ready = self._waiting.keep(later).drop_columns(FROM)
        rows, late = self._windows.take_events(ready, watermark)
        return rows.cast(pa.schema(list(self._schema)[:-1])), late

    def state(self) -> dict[str, pa.Table]:
        """All that is held, for a snapshot."""
        return {"waiting": self._waiting.all()} | self._windows.state()

    def restore(self, tables: Tables, watermark: int) -> None:
        """Take up what `state` gave."""
        self._waiting.replace(tables["waiting"])
        self._windows.restore(tables, watermark)
