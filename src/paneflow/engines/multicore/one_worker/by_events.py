"""Windows of a stream by events: of any kind, and of aggregates that keep values.

Events are kept in a log while a window may need them. Finders say which windows have closed, from
the events that came and the watermark alone (`closing/`); these windows are then computed from
their events, as those of a finite table would be. So a push costs by what comes and what closes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paneflow.engines.multicore.closing.answering import Closed, answered
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.opening import finders
from paneflow.engines.multicore.contract import Batch, Rows

if TYPE_CHECKING:
    from paneflow.query import Query


class ByEvents:
    """The open windows of a stream, by their events."""

    def __init__(self, query: Query, labels: Mapping[str, int], merge: str = "auto") -> None:
        self._merge = merge
        self._query = query
        self._names = {labels[name]: name for name in query.windows}
        self._log = EventLog()
        self._finders = finders(query.windows, labels, self._log)
        read = [c for a in query.aggregates.values() for c in a.columns]
        self._columns = list(dict.fromkeys([query.time, *read]))

    @property
    def held(self) -> int:
        """How many events are remembered."""
        return self._log.end

    def take(self, events: Batch) -> None:
        """Remember events, and find the windows that they close."""
        first = self._log.take(events, events.given.select(self._columns))
        for finder in self._finders:
            finder.take(events, first)

    def advance(self, watermark: int, arrived: float) -> list[Rows]:
        """The windows that are final at the watermark."""
        found = [finder.advance(watermark) for finder in self._finders]
        return [
            answered(
                self._query,
                self._names[each.label],
                Closed.of(each, self._log),
                arrived,
                self._merge,
            )
            for each in found
            if each is not None
        ]

    def settle(self) -> None:
        """What has been taken and given out stays so."""
        for finder in self._finders:
            finder.settle()
        self._log.settle(self._finders)

    def undo(self) -> None:
        """As it was when it was settled."""
        for finder in self._finders:
            finder.undo()
        self._log.undo()
