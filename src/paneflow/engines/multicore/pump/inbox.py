"""What was pushed and waits to be processed, in the order in which it came.

Everything here is called while holding the stream's lock (`shared.py`).
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.intake.admission import Admitted
from paneflow.engines.multicore.intake.as_pushed import Pushed
from paneflow.engines.multicore.intake.front import Added, Arrival
from paneflow.engines.multicore.pump.silence import Silence
from paneflow.engines.multicore.pump.sources import Sources
from paneflow.engines.multicore.tuning import tuning

_NOTHING: Iterable[None] = itertools.repeat(None)


class Inbox:
    """Pushes, sources that have ended, and sources that have fallen silent."""

    def __init__(self, sources: int, idle: int | None) -> None:
        """`idle` is in microseconds; None if sources never fall silent."""
        self._arrivals: deque[Arrival] = deque()
        self.silence = None if idle is None else Silence(sources, idle)
        self.sources = Sources(sources)
        self.most = tuning.most_waiting
        """Events that may wait."""
        self.waiting = 0
        """Events that wait."""
        self.fetched = 0
        """Events that were taken to be processed."""
        self.timeless = self.ahead = 0
        """Events without a time, and events too far ahead of the clock, which were left out."""

    def __bool__(self) -> bool:
        return bool(self._arrivals)

    @property
    def since(self) -> float:
        """When the first of what waits arrived, by `time.perf_counter()`."""
        return self._arrivals[0].arrived

    def add(
        self,
        source: int,
        admitted: Admitted,
        arrived: float,
        due: bool,
        added: Iterable[Added | None] = _NOTHING,
    ) -> None:
        """Add a whole push; `due` says whether it may have ended windows.

        `added` is what the front has made of its pieces, if the pushing thread has added them.
        """
        batch, places, timeless, latest, ahead, whole, times = admitted
        assert batch is not None
        rows = batch.num_rows
        # A single call adds the whole push, so an interrupt leaves all of it or nothing.
        if rows <= tuning.pushed_piece:
            (only,) = itertools.islice(added, 1)
            span = None if times is None else (int(times[0]), int(times[-1]))
            arrival = Arrival(
                source, batch, places, rows, arrived, due, whole, added=only, span=span
            )
            self._arrivals.append(arrival)
        else:
            wholes = _NOTHING if whole is None else pieces_of(whole)
            spans: Iterable[tuple[int, int] | None] = _NOTHING
            if times is not None:
                spans = [(int(each[0]), int(each[-1])) for each in _cut(times)]
            begins = range(0, rows, tuning.pushed_piece)
            self._arrivals.extend(
                [
                    Arrival(
                        source,
                        piece,
                        places,
                        piece.num_rows,
                        arrived,
                        due,
                        of,
                        added=merged,
                        span=span,
                        push=(batch, begin),
                    )
                    for piece, of, merged, span, begin in zip(
                        pieces_of(batch), wholes, added, spans, begins, strict=False
                    )
                ]
            )
        self.sources.note(source, rows, latest, arrived)
        self.waiting += rows
        self.timeless += timeless
        self.ahead += ahead

    def recount(self) -> None:
        """Count again what waits, as an interrupted push may not have done."""
        self.waiting = sum(arrival.rows for arrival in self._arrivals)

    def hear(self, source: int) -> bool:
        """Note that a source is not silent; whether none could fall silent before."""
        return self.silence is not None and self.silence.hear(source)

    def end_source(self, source: int) -> None:
        """Add that a source has ended."""
        self.note_silence()
        if self.silence is not None:
            self.silence.end(source)
        self.sources.end(source)
        self._arrivals.append(Arrival(source, None, None, 0, time.perf_counter(), True))

    def note_silence(self) -> None:
        """Add sources that have fallen silent."""
        if self.silence is None:
            return
        silent = self.silence.fallen()
        if silent:
            now = time.perf_counter()
            # If this is interrupted, the silence is noted twice, which does no harm.
            self._arrivals.extend(
                [Arrival(source, None, None, 0, now, True, silent=True) for source in silent]
            )
            self.silence.know(silent)

    def take(self, most: int) -> list[Arrival]:
        """Take what waits, up to so many events."""
        taken, rows = [], 0
        while self._arrivals and rows + self._arrivals[0].rows <= most:
            taken.append(self._arrivals.popleft())
            rows += taken[-1].rows
        self.waiting -= rows
        self.fetched += rows
        return taken

    def drop(self) -> None:
        """Drop what waits, as nothing will process it."""
        self._arrivals.clear()
        self.fetched += self.waiting
        self.waiting = 0


def pieces_of(events: Pushed) -> Iterator[Any]:
    """Events in pieces that are processed in one step."""
    for start in range(0, events.num_rows, tuning.pushed_piece):
        yield events.slice(start, tuning.pushed_piece)


def _cut(times: Array) -> list[Array]:
    """The times of each piece."""
    return [times[k : k + tuning.pushed_piece] for k in range(0, len(times), tuning.pushed_piece)]
