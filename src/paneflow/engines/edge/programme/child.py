"""A child node with several queries: each cuts the events in its own way."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.programme.stated import (
    BEGINS,
    BEGINS_SCHEMA,
    OF_QUERY,
    PROGRAMME,
    Known,
    Stated,
    by_query,
    named,
)
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import (
    AFTER_ALL,
    BEFORE_ALL,
    Asked,
    Cut,
    Flush,
    Pushed,
    Record,
    Report,
    Said,
)

log = logging.getLogger(__name__)


@dataclass
class Added:
    """An added query at a child node."""

    machine: Child
    begins: int
    """All events from this time on were cut for it."""
    told: bool = False
    """Whether the node above knows that."""


class ChildProgramme:
    """Cuts for all queries of the tree. It is told of others than the first by the node above.

    Args:
        name: The node's name.
        question: The query that the tree was started with.
        columns: The columns of the events; added queries may read others than the first.
        sources: No window closes before this many sources have been heard.
    """

    def __init__(self, name: str, question: Question, columns: pa.Schema, sources: int = 1) -> None:
        self.name = name
        self.known = Known(question)
        self._columns = columns
        self._first = Child(name, question, sources)
        self._added: dict[str, Added] = {}

    @property
    def watermark(self) -> int:
        """All before this time has been seen, apart from stragglers."""
        return self._first.watermark

    @property
    def positions(self) -> dict[str, int]:
        """The last position of each source."""
        return self._first.positions

    @property
    def counts(self) -> dict[str, int]:
        """What was counted: events, those without a time, and those that came too late."""
        return self._first.counts

    @property
    def may_leave(self) -> bool:
        """Whether nobody will ask for more than has been reported."""
        return all(machine.may_leave for machine in self._machines)

    @property
    def due(self) -> bool:
        """Whether there is something to report."""
        untold = any(not added.told for added in self._added.values())
        return untold or any(machine.due for machine in self._machines)

    def cut(self, pushed: Pushed, position: int) -> Cut:
        """What is written down of events that have arrived; they are refused if they do not fit."""
        cut = self._first.cut(pushed, position)
        if not self._added:
            return cut
        tables = dict(cut.tables)
        for key, added in self._added.items():
            tables |= named(key, added.machine.cut(pushed, position).tables)
        return replace(cut, tables=tables)

    def take(self, record: Record) -> Said:
        """Take a record; only a flush is answered by a report."""
        match record:
            case Asked(ask=ask) if PROGRAMME in ask.about:
                self._change(ask.about[PROGRAMME])
            case Asked(ask=ask) if OF_QUERY in ask.about:
                asked = self._added.get(ask.about[OF_QUERY])
                if asked is not None:
                    asked.machine.take(record)
            case Flush():
                return Said(report=self._report())
            case Cut() if self._added:
                tables = by_query(record.tables)
                self._first.take(replace(record, tables=tables[""]))
                for key, added in self._added.items():
                    added.machine.take(replace(record, tables=tables[key]))
            case Asked():
                self._first.take(record)
            case _:
                for machine in self._machines:
                    machine.take(record)
        return Said()

    @property
    def _machines(self) -> list[Child]:
        return [self._first, *(added.machine for added in self._added.values())]

    def _change(self, about: Mapping[str, Any]) -> None:
        """Begin to cut for a query, or stop."""
        if "remove" in about:
            self._added.pop(about["remove"], None)
            return
        stated = Stated(**about["add"])
        if stated.key not in self.known:
            if not self._has(self.known.add(stated)):
                return
            sources = self._first.sources
            # Events that have come are not cut any more; those before the watermark are late.
            seen = [] if sources.latest() == BEFORE_ALL else [sources.latest() + 1]
            passed = [] if sources.watermark == AFTER_ALL else [sources.watermark]
            begins = max([BEFORE_ALL, *seen, *passed])
            self._added[stated.key] = Added(self._make(stated.key), begins)

    def _has(self, question: Question) -> bool:
        """Whether events here have the columns of a query; if not, it never begins."""
        names = self._columns.names
        lacking = [
            field.name
            for field in question.source
            if field.name not in names or self._columns.field(field.name).type != field.type
        ]
        if lacking:
            why = (
                f"events of this node do not have {lacking[0]!r} as events at the root have it: "
                f"remove the query, or give all nodes the same columns"
            )
            log.error("a query cannot be answered here", extra={"fields": {"why": why}})
        return not lacking

    def _make(self, key: str) -> Child:
        return Child(self.name, self.known.question(key), heard=self._first.sources)

    def _report(self) -> Report:
        """The reports of all queries as one."""
        report = self._first.take(Flush()).report
        assert report is not None
        tables = dict(report.tables)
        for key, added in self._added.items():
            own = added.machine.take(Flush()).report
            assert own is not None
            begins = {} if added.told else {BEGINS: begin_at(added.begins)}
            added.told = True
            tables |= named(key, begins | with_rows(own.tables))
        return Report(self.watermark, tables)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        about, tables = self._first.snapshot()
        of_added = {}
        for key, added in self._added.items():
            own = added.machine.snapshot()
            tables |= named(key, own.tables)
            of_added[key] = {"machine": own.about, "begins": added.begins, "told": added.told}
        if self.known.state():
            about = about | {PROGRAMME: {"known": self.known.state(), "added": of_added}}
        return Snapshot(about, tables)

    def restore(self, snapshot: Snapshot) -> None:
        """Take up the state of a snapshot."""
        tables = by_query(snapshot.tables)
        self._first.restore(Snapshot(snapshot.about, tables[""]))
        about = snapshot.about.get(PROGRAMME)
        if about is not None:
            self.known.restore(about["known"])
            for key, of_added in about["added"].items():
                machine = self._make(key)
                machine.restore(Snapshot(of_added["machine"], tables.get(key, {})))
                self._added[key] = Added(machine, of_added["begins"], of_added["told"])


def begin_at(time: int) -> pa.Table:
    """The table that says when a query begins."""
    return pa.table([pa.array([time], pa.int64())], schema=BEGINS_SCHEMA)


def with_rows(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Tables without those that are empty."""
    return {name: table for name, table in tables.items() if table.num_rows}
