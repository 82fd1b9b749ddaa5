"""Open windows together with what they remember, for a node that asks for rows step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.engines.live.open_windows import Held, OpenWindows

if TYPE_CHECKING:
    from paneflow.query import Query


class HeldWindows:
    """Takes slices and events that are final, gives the rows of windows that have closed."""

    def __init__(self, query: Query, source: pa.Schema, in_order: bool = False) -> None:
        """`in_order`: slices name the child node they come from, and stand in its order."""
        self._in_order = in_order
        self._open = OpenWindows(query, source)
        slices = self._open.layout.remove_metadata().empty_table()
        if in_order and slices.num_columns:
            slices = slices.append_column(CHILD, pa.array([], pa.string()))
        self._held = Held(slices, source.empty_table(), None)
        self.watermark = BEFORE_ALL

    def take_events(self, events: pa.Table, watermark: int) -> tuple[pa.Table, int]:
        """Rows that are final at a watermark, given events alone, and how many came too late."""
        slices, events = self._open.received([self._open.sent(events)])
        return self.take(slices.replace_schema_metadata(), events, watermark)

    def take(self, slices: pa.Table, events: pa.Table, watermark: int) -> tuple[pa.Table, int]:
        """Rows that are final at a watermark, and how many events came too late for all windows."""
        before = None if self.watermark == BEFORE_ALL else self.watermark
        to = None if watermark == BEFORE_ALL else watermark
        missed = 0
        if self._in_order and before is not None and slices.num_rows:
            # Stragglers may belong between slices that are there: all of them are put in order
            # before any window is merged.
            none = events.slice(0, 0)
            _, self._held, missed = self._open.advance(self._held, slices, none, before, before)
            slices = slices.slice(0, 0)
            held = self._held.slices
            self._held = Held(held.sort_by(CHILD), self._held.events, self._held.marks)
        rows, self._held, late = self._open.advance(self._held, slices, events, before, to)
        self.watermark = max(self.watermark, watermark)
        return rows, missed + late

    @property
    def slices(self) -> pa.Table:
        """Slices of windows that are open."""
        return self._held.slices

    @property
    def events(self) -> pa.Table:
        """Events that are still needed."""
        return self._held.events

    def state(self) -> dict[str, pa.Table]:
        """What is remembered, for a snapshot."""
        tables = {"slices": self._held.slices, "events": self._held.events}
        return tables if self._held.marks is None else tables | {"marks": self._held.marks}

    def restore(self, tables: Tables, watermark: int) -> None:
        """Take up what `state` gave."""
        self._held = Held(tables["slices"], tables["events"], tables.get("marks"))
        self.watermark = watermark
