"""The open windows of a stream: by slices where windows can be sliced, by events where not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines import table
from paneflow.engines.live.closed import horizon
from paneflow.engines.live.open_events import LiveEvents
from paneflow.engines.live.open_slices import Live
from paneflow.slicing.layout import not_sliceable
from paneflow.slicing.times import read_times
from paneflow.windows import Session, Sliding
from paneflow.windows.many_rows import MAX_ROWS

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

    def __init__(
        self,
        query: Query,
        source: pa.Schema,
        whole: bool = False,
        max_rows: int | None = MAX_ROWS,
    ) -> None:
        """`whole`: events are to be sent as they are, even if their slices would do.

        No more than `max_rows` close at once.
        """
        self._query = query
        self.source = source
        self._whole = whole
        sliced = {n: w for n, w in query.windows.items() if isinstance(w, Sliding | Session)}
        if sliced and not_sliceable(query.with_windows(sliced), source) is not None:
            sliced = {}
        others = {n: w for n, w in query.windows.items() if n not in sliced}
        self.sliced = query.with_windows(sliced) if sliced else None
        self.layout = pa.schema([])
        if self.sliced is not None:
            self.layout = table.layout_of(self.sliced, source)
            self._live = Live(self.sliced, self.layout, max_rows)
        self._live_events = LiveEvents(query.with_windows(others), max_rows) if others else None

    @property
    def needs_events(self) -> bool:
        """Whether events themselves must be sent, and not only their slices."""
        return self._whole or self._live_events is not None

    def sent(self, events: pa.Table) -> pa.Table:
        """What is to be sent of a batch's events."""
        if self.needs_events or self.sliced is None:
            return events
        return table.cut(self.sliced, events).table

    def received(self, sent: list[pa.Table]) -> tuple[pa.Table, pa.Table]:
        """The slices and the events that come of what was sent."""
        events = self.source.empty_table()
        if not self.needs_events:
            return pa.concat_tables([self.layout.empty_table(), *sent]), events
        events = pa.concat_tables([events, *sent])
        slices = self.layout.empty_table()
        if self.sliced is not None and events.num_rows:
            slices = table.cut(self.sliced, events).table
        return slices, events

    def still_open(self, slices: pa.Table, watermark: int | None) -> pa.Table:
        """Slices without those whose windows have all closed."""
        if self.sliced is None or watermark is None:
            return slices
        return self._live.still_open(slices, watermark)

    def horizon(self, latest: int) -> int:
        """The watermark at which every window of events until `latest` has closed."""
        return horizon(self._query.windows.values(), latest)

    def late(self, held: Held, slices: pa.Table, events: pa.Table, before: int | None) -> Array:
        """Which of some events come too late: each window they would have joined is emitted.

        `slices` are those of the batch that brought the events.
        """
        late = np.zeros(events.num_rows, np.bool_)
        if before is None or events.num_rows == 0:
            return late
        behind = np.flatnonzero(read_times(events, self._query.time)[0] < before)
        mine = events.take(pa.array(behind))
        found: list[tuple[Array, Array]] = []
        if len(behind) and self.sliced is not None:
            found += self._live.late_for(mine, held.slices, slices, before)
        if len(behind) and self._live_events is not None:
            found += self._live_events.late_for(held.events, held.marks, mine, before)
        if found:
            over = np.logical_and.reduce([missed | nowhere for missed, nowhere in found])
            late[behind] = over & np.logical_or.reduce([missed for missed, _ in found])
        return late

    def early(
        self, held: Held, slices: pa.Table, events: pa.Table, watermark: int | None
    ) -> pa.Table:
        """The rows, as they stand, of open windows that a batch has changed.

        `held` is what is remembered after the batch, `slices` and `events` are what it brought.
        """
        rows = [self._query.result_schema(self.source).empty_table()]
        if self.sliced is not None:
            rows.append(self._live.early(held.slices, slices, watermark))
        if self._live_events is not None:
            rows.append(self._live_events.early(held.events, held.marks, events, watermark))
        return pa.concat_tables(rows)

    def advance(
        self, held: Held, slices: pa.Table, events: pa.Table, before: int | None, to: int | None
    ) -> tuple[pa.Table, Held, int]:
        """Rows that are final now, what to remember, and how many events came too late for all."""
        rows = [self._query.result_schema(self.source).empty_table()]
        late: list[int] = []
        kept, marks = held.events, held.marks
        exact = int(self.late(held, slices, events, before).sum()) if self.needs_events else None
        if self.sliced is not None:
            made = self._live.advance(held.slices, slices, before, to)
            rows.append(made.rows)
            slices = made.kept
            late.append(made.late)
        if self._live_events is not None:
            step = self._live_events.advance(held.events, held.marks, events, before, to)
            rows.append(step.rows)
            kept, marks = step.events, step.marks
        # An event is in every slicing; without events only the least that any has missed is known.
        missed = exact if exact is not None else min(late)
        return pa.concat_tables(rows), Held(slices, kept, marks), missed
