"""What has arrived in one turn, as few records: cutting ten events costs as much as a thousand.

Small batches are cut together, whichever sources they come from, and so are those with many slices
for their events, such as events of many keys: each slice has to be logged and merged. The record of
the first source holds the slices of all, and those of the others only tell how far these have come:
all are in the log or none, since a turn is committed as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from paneflow.engines.edge.inputs.contract import Arrived
from paneflow.engines.edge.programme.child import ChildProgramme
from paneflow.engines.edge.records import BEFORE_ALL, Cut, Ended, Pushed
from paneflow.errors import InputError
from paneflow.slicing.times import read_times

log = logging.getLogger(__name__)

SMALL = 20_000
"""A batch of more events is cut by itself: joining it to others would cost more than it saves."""
PER_SLICE = 50
"""Unless it has fewer events than that for each slice: to log a slice and to merge it with others
takes as long as to cut about so many events."""
MOST = 400_000
"""Events that are cut together: with more, a cut takes more memory and is no quicker."""


class Cutter:
    """Makes records of what has arrived.

    Args:
        child: The state machine, which knows how to cut.
        columns: The columns of the events.
        time: The column of their times.
    """

    def __init__(self, child: ChildProgramme, columns: pa.Schema, time: str) -> None:
        self._child = child
        self._nothing = columns.empty_table()
        self._time = time
        self.refused = 0
        """Batches that cannot be cut, such as those with times that are too far from zero."""
        self._slices = 0
        """How many slices the last cut has given; 0 if it has given the events themselves."""

    def records(self, arrived: Iterable[Arrived]) -> Iterator[Cut | Ended]:
        """The records, in order."""
        small: list[Arrived] = []
        held = 0
        for part in arrived:
            events = 0 if part.events is None else part.events.num_rows
            alone = part.events is None or events > max(SMALL, PER_SLICE * self._slices)
            if alone or held + events > MOST:
                yield from self._together(small)
                small, held = [], 0
            if alone:
                yield from self._together([part])
            else:
                small.append(part)
                held += events
            if part.ended:
                yield Ended(part.source)
        yield from self._together(small)

    def _together(self, parts: list[Arrived]) -> Iterator[Cut]:
        """One cut of all events, and the position of each source."""
        if not parts:
            return
        try:
            cut = self._child.cut(Pushed("", self._joined(parts)), 0)
        except InputError as error:
            yield from self._one_by_one(parts, error)
            return
        rows = [table.num_rows for table in cut.tables.values()]
        self._slices = max((n for n in rows if n < cut.events), default=0)
        sources: dict[str, list[Arrived]] = {}
        for part in parts:
            sources.setdefault(part.source, []).append(part)
        nothing = {name: table.slice(0, 0) for name, table in cut.tables.items()}
        tables, events, no_time = cut.tables, cut.events, cut.no_time
        for source, of_one in sources.items():
            latest = cut.latest if len(sources) == 1 else self._latest(of_one)
            yield Cut(source, of_one[-1].position, latest, tables, events, no_time)
            tables, events, no_time = nothing, 0, 0

    def _one_by_one(self, parts: list[Arrived], error: InputError) -> Iterator[Cut]:
        """The same, without the batches that are wrong."""
        if len(parts) > 1:
            for part in parts:
                yield from self._together([part])
            return
        [part] = parts
        self.refused += 1
        fields = {"source": part.source, "position": part.position, "why": str(error)}
        log.warning("a batch was refused", extra={"fields": fields})
        empty = self._child.cut(Pushed("", self._nothing), 0)
        yield Cut(part.source, part.position, BEFORE_ALL, empty.tables, 0, 0)

    def _joined(self, parts: list[Arrived]) -> pa.Table:
        """Events of some parts; the end of a source has none."""
        known = [part.events for part in parts if part.events is not None]
        return known[0] if len(known) == 1 else pa.concat_tables([self._nothing, *known])

    def _latest(self, parts: list[Arrived]) -> int:
        times, _ = read_times(self._joined(parts), self._time)
        return int(np.max(times)) if len(times) else BEFORE_ALL
