"""The open windows of a stream: by slices where windows can be sliced, by events where not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.slicing.layout import not_sliceable
from paneflow.slicing.live import Live
from paneflow.slicing.live_events import LiveEvents
from paneflow.windows import Session, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


@dataclass(frozen=True)
class Held:
    """What a stream must remember; columns of the holder's own in `slices` are kept."""

    slices: pa.Table
    events: pa.Table
    marks: pa.Table | None


class OpenWindows:
    """Takes what a batch brought, gives the rows of windows that have closed."""

    def __init__(self, query: Query, source: pa.Schema) -> None:
        self._query = query
        self.source = source
        sliced = {n: w for n, w in query.windows.items() if isinstance(w, Sliding | Session)}
        if sliced and not_sliceable(query.with_windows(sliced), source) is not None:
            sliced = {}
        whole = {n: w for n, w in query.windows.items() if n not in sliced}
        self.sliced = query.with_windows(sliced) if sliced else None
        self.layout = pa.schema([])
        if self.sliced is not None:
            self.layout = self.sliced.slice(source.empty_table()).table.schema
            self._live = Live(self.sliced, self.layout)
        self._live_events = LiveEvents(query.with_windows(whole)) if whole else None

    @property
    def needs_events(self) -> bool:
        """Whether events themselves must be sent, and not only their slices."""
        return self._live_events is not None

    def sent(self, events: pa.Table) -> pa.Table:
        """What is to be sent of a batch's events."""
        if self.needs_events or self.sliced is None:
            return events
        return self.sliced.slice(events).table

    def received(self, sent: list[pa.Table]) -> tuple[pa.Table, pa.Table]:
        """The slices and the events that come of what was sent."""
        events = self.source.empty_table()
        if not self.needs_events:
            return pa.concat_tables([self.layout.empty_table(), *sent]), events
        events = pa.concat_tables([events, *sent])
        slices = self.layout.empty_table()
        if self.sliced is not None and events.num_rows:
            slices = self.sliced.slice(events).table
        return slices, events

    def still_open(self, slices: pa.Table, watermark: int | None) -> pa.Table:
        """Slices without those whose windows have all closed."""
        if self.sliced is None or watermark is None:
            return slices
        return self._live.still_open(slices, watermark)

    def advance(
        self, held: Held, slices: pa.Table, events: pa.Table, before: int | None, to: int | None
    ) -> tuple[pa.Table, Held, int]:
        """Rows that are final now, what to remember, and how many events came too late for all."""
        rows = [self._query.result_schema(self.source).empty_table()]
        late: list[int] = []
        kept, marks = held.events, held.marks
        if self.sliced is not None:
            made = self._live.advance(held.slices, slices, before, to)
            rows.append(made.rows)
            slices = made.kept
            late.append(made.late)
        if self._live_events is not None:
            step = self._live_events.advance(held.events, held.marks, events, before, to)
            rows.append(step.rows)
            kept, marks = step.events, step.marks
            late.append(step.late)
        return pa.concat_tables(rows), Held(slices, kept, marks), min(late)
