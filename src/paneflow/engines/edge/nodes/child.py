"""A child node: events come in, and their slices go up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.edge.counted import LOGGED
from paneflow.engines.edge.interpreting import EVENTS, GAPS, SLICES
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.nodes.local import LocalWindows
from paneflow.engines.edge.nodes.node import Parts, Snapshot, below
from paneflow.engines.edge.nodes.own_windows import OwnWindows
from paneflow.engines.edge.nodes.sources import Sources
from paneflow.engines.edge.question import GAP_OPENINGS, ROWS, Question
from paneflow.engines.edge.records import (
    AFTER_ALL,
    BEFORE_ALL,
    Asked,
    Closed,
    Cut,
    Ended,
    Flush,
    Joined,
    Left,
    Lost,
    Pushed,
    Record,
    Report,
    Reported,
    Said,
    Silent,
)
from paneflow.engines.edge.summarised import DETAILED
from paneflow.engines.live.closed import horizon
from paneflow.errors import InputError
from paneflow.slicing.times import read_times


class Child:
    """Cuts events into slices, and reports what its sources' watermark completes.

    Args:
        name: The node's name; among events of equal time, those of lesser names come first.
        question: What is asked.
        sources: No window closes before this many sources have been heard.
        heard: How far the sources have come, if another query of the node knows that already.
    """

    def __init__(
        self, name: str, question: Question, sources: int = 1, heard: Sources | None = None
    ) -> None:
        self.name = name
        self._question = question
        self.sources = heard or Sources(question.query.lateness.value, sources)
        self._sources = self.sources
        self._parts = Parts(question, lowest=name)
        self._local = LocalWindows(question) if question.local is not None else None
        self._own = {
            way: OwnWindows(matching, question.source) for way, matching in question.matched.items()
        }
        self.counts = {"events": 0, "no_time": 0, "late": 0}

    @property
    def watermark(self) -> int:
        """All before this time has been seen, apart from stragglers."""
        return self._sources.watermark

    @property
    def positions(self) -> dict[str, int]:
        """The last position of each source."""
        return dict(self._sources.positions)

    @property
    def may_leave(self) -> bool:
        """Whether nobody will ask for more than has been reported.

        A node that leaves the tree earlier takes with it what rows still need.
        """
        return self._parts.answering is None or not self._parts.answering.asked_for

    @property
    def due(self) -> bool:
        """Whether there is something to report."""
        return self._parts.due(self.watermark)

    def cut(self, pushed: Pushed, position: int) -> Cut:
        """What is written down of events that have arrived; they are refused if they do not fit."""
        question = self._question
        events = question.fit(pushed.events)
        time = question.query.time
        timed = events.filter(pc.is_valid(events.column(time)))
        nulls = events.num_rows - timed.num_rows
        times, _ = read_times(timed, time)
        latest = int(np.max(times)) if len(times) else BEFORE_ALL
        tables = {}
        if question.layout is not None:
            tables[SLICES] = question.layout.cut(timed)
        if question.summarised is not None:
            tables[DETAILED] = question.summarised.cut(timed)
        if question.counted is not None:
            tables[LOGGED] = question.counted.fit(timed)
        if question.needs_events:
            tables[EVENTS] = timed
        return Cut(pushed.source, position, latest, tables, timed.num_rows, nulls)

    def take(self, record: Record) -> Said:
        """Take a record; only a flush is answered by a report."""
        match record:
            case Cut():
                self._take(record)
            case Silent() | Ended():
                self._sources.wait_no_more(record.source)
            case Closed():
                self._sources.close()
            case Asked():
                if self._parts.answering is not None:
                    self._parts.answering.ask(record.ask.about)
            case Flush():
                return Said(report=self._report())
            case Reported() | Joined() | Left() | Lost():
                raise InputError(
                    f"child node {self.name!r} was sent a message by node {record.child!r}, but a "
                    f"child has no nodes below it: connect it to a merging node or to the root"
                )
            case _ as never:
                assert_never(never)
        self._sources.advance(partial(horizon, self._question.query.windows.values()))
        return Said()

    def _take(self, cut: Cut) -> None:
        self.counts["events"] += cut.events
        self.counts["no_time"] += cut.no_time
        self._sources.show(cut.source, cut.position, cut.latest)
        if self._local is not None:
            self._local.take(cut.tables[EVENTS])
        for own in self._own.values():
            own.take(cut.tables[EVENTS])
        self._pass(cut.tables)

    def _pass(self, tables: Mapping[str, pa.Table]) -> None:
        """Hand tables on to the parts, with this node's name where they have one."""
        named = {}
        for name, came in tables.items():
            schema = self._question.schemas.get(name)
            if schema is not None and CHILD in schema.names:
                mine = pa.repeat(pa.scalar(self.name), came.num_rows)
                came = came.append_column(CHILD, mine)
            named[name] = came
        self._parts.take(self.name, named)

    def _report(self) -> Report:
        watermark = self.watermark
        if self._local is not None:
            rows, late = self._local.advance(watermark)
            self.counts["late"] += late
            self._pass({ROWS: rows})
        for way, own in self._own.items():
            slices, openings, late = own.advance(watermark)
            self.counts["late"] += late
            self._pass({way: slices} | ({GAP_OPENINGS: openings} if way == GAPS else {}))
        waited = () if watermark == AFTER_ALL else (self.name,)
        return Report(watermark, self._parts.flush(watermark, waited))

    def snapshot(self) -> Snapshot:
        """The whole state."""
        about = {
            "sources": self._sources.state(),
            "counts": self.counts,
            "flushed": self._parts.flushed,
        }
        tables = {f"parts/{name}": held for name, held in self._parts.state().items()}
        if self._local is not None:
            tables |= {f"local/{name}": held for name, held in self._local.state().items()}
            about["local"] = self._local.watermark
        for way, own in self._own.items():
            tables |= {f"{way}/{name}": held for name, held in own.state().items()}
            about[way] = own.about
        return Snapshot(about, tables)

    def restore(self, snapshot: Snapshot) -> None:
        """Take up the state of a snapshot."""
        self._sources.restore(snapshot.about["sources"])
        self.counts = dict(snapshot.about["counts"])
        self._parts.restore(below("parts/", snapshot.tables), snapshot.about["flushed"])
        if self._local is not None:
            self._local.restore(below("local/", snapshot.tables), snapshot.about["local"])
        for way, own in self._own.items():
            own.restore(below(f"{way}/", snapshot.tables), snapshot.about[way])
