"""A merging node with several queries, of which each waits for nodes below that know it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paneflow.engines.edge.nodes.merge import Merge
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.programme.child import begin_at, with_rows
from paneflow.engines.edge.programme.reach import latest_in
from paneflow.engines.edge.programme.stated import (
    BEGINS,
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
    Ask,
    Asked,
    Flush,
    Joined,
    Left,
    Lost,
    Record,
    Reported,
    Said,
)


@dataclass
class Added:
    """An added query at a merging node."""

    machine: Merge
    floor: int
    """How far the node had come when it was told."""
    told: dict[str, int] = field(default_factory=dict)
    """The nodes below that know of the query, and from when on each answers it."""
    begins: int | None = None
    """From when on this node answers it; None while some node below has not told its own."""
    said: int | None = None
    """What the node above knows of that."""

    def state(self) -> dict[str, Any]:
        """All but the machine, as JSON can hold it."""
        return {name: value for name, value in vars(self).items() if name != "machine"}


class MergeProgramme:
    """Merges what is reported for all queries of the tree, and passes on how these change.

    Args:
        name: The node's name.
        question: The query that the tree was started with.
        children: The nodes below that are waited for from the start; others may join.
    """

    def __init__(self, name: str, question: Question, children: Iterable[str] = ()) -> None:
        self.name = name
        self.known = Known(question)
        self._first = self._made(question, children)
        self._added: dict[str, Added] = {}
        self._informed: set[str] = set()
        """The nodes below that were told of all queries."""
        self._asks: list[Ask] = []
        self._latest: dict[str, int] = {}
        """The latest time in what each node below has reported."""
        self._reported = BEFORE_ALL

    @property
    def watermark(self) -> int:
        """All nodes that are waited for have come so far."""
        return self._first.watermark

    @property
    def missing(self) -> dict[str, int]:
        """Nodes that were given up or are behind, and how far they had come."""
        return self._first.missing

    @property
    def counts(self) -> dict[str, int]:
        """What was counted."""
        return self._first.counts

    @property
    def due(self) -> bool:
        """Whether there is something to say."""
        return (
            self._first.due
            or bool(self._asks)
            or any(added.said != added.begins for added in self._added.values())
            or any(added.machine.due for _, added in self._begun())
        )

    def take(self, record: Record) -> Said:
        """Take a record; only a flush is answered."""
        match record:
            case Asked(ask=ask) if PROGRAMME in ask.about:
                self._change(ask.about[PROGRAMME])
            case Asked(ask=ask) if OF_QUERY in ask.about:
                asked = self._added.get(ask.about[OF_QUERY])
                if asked is not None:
                    asked.machine.take(record)
            case Flush():
                return self._say()
            case Reported():
                self._take(record)
            case Joined() | Left() | Lost():
                self._first.take(record)
                for added in self._separate():
                    added.machine.take(record)
                if isinstance(record, Joined):
                    self._inform(record.child)
            case _:
                self._first.take(record)
        for added in self._separate():
            self._begin(added)
        return Said()

    def _take(self, record: Reported) -> None:
        child, report = record.child, record.report
        tables = by_query(report.tables)
        self._latest[child] = max(
            self._latest.get(child, BEFORE_ALL), latest_in(tables[""], self.known.first)
        )
        self._first.take(replace(record, report=replace(report, tables=tables[""])))
        self._inform(child)
        for key, added in self._added.items():
            own = tables.get(key, {})
            if BEGINS in own:
                added.told[child] = max(ticks(own.pop(BEGINS), BEGINS).tolist())
            if child in added.told:
                added.machine.take(replace(record, report=replace(report, tables=own)))

    def _change(self, about: Mapping[str, Any]) -> None:
        """Add a query, or remove one, here and below."""
        if "remove" in about:
            if self._added.pop(about["remove"], None) is not None:
                self._tell(about)
            return
        stated = Stated(**about["add"])
        if stated.key not in self.known:
            self._add(stated.key, self.known.add(stated))
            self._tell(about)

    def _add(self, key: str, question: Question) -> None:
        """Begin with a query: nodes below are waited for from the moment that they know it."""
        below = self._first.below
        machine = self._made(question, below.known)
        for name, watermark in below.known.items():
            if watermark == AFTER_ALL:
                machine.take(Left(name))
            elif name in below.lost:
                machine.take(Lost(name))
        self._added[key] = Added(machine, self.watermark)

    def _tell(self, about: Mapping[str, Any]) -> None:
        """Tell all nodes below of a change."""
        known = self._first.below.known
        self._informed |= {name for name, watermark in known.items() if watermark < AFTER_ALL}
        self._asks += [Ask(name, {PROGRAMME: about}) for name in sorted(self._informed)]

    def _inform(self, child: str) -> None:
        """Tell a node that is new of the queries that were added before it came."""
        if child not in self._informed and self._first.below.known[child] < AFTER_ALL:
            self._informed.add(child)
            told = [self.known.stated(key).told() for key in self._cut_below()]
            self._asks += [Ask(child, {PROGRAMME: about}) for about in told]

    def _begin(self, added: Added) -> None:
        """Find when a query begins, once all nodes that are waited for have told their part."""
        told, machine = added.told, added.machine
        untold = {n: t for n, t in self._first.below.known.items() if n not in told}
        if added.begins is not None:
            ended = [name for name, watermark in untold.items() if watermark == AFTER_ALL]
            added.begins = max([added.begins, *told.values(), *self._after(ended)])
        elif (told or machine.watermark > BEFORE_ALL) and set(machine.below.waited) <= told.keys():
            # What those below that do not know the query have reported is in none of its slices.
            passed = [t for t in (added.floor, *untold.values()) if t < AFTER_ALL]
            added.begins = max([BEFORE_ALL, *told.values(), *self._after(untold), *passed])

    def _after(self, names: Iterable[str]) -> list[int]:
        """From when on some nodes have reported nothing."""
        return [self._latest[name] + 1 for name in names if name in self._latest]

    def _say(self) -> Said:
        first = self._first.take(Flush())
        assert first.report is not None
        tables, asks = dict(first.report.tables), list(first.asks)
        watermark = first.report.watermark
        for key, added in self._begun():
            said = added.machine.take(Flush())
            assert said.report is not None and added.begins is not None
            # The node above takes the watermark for what is true of all queries.
            watermark = min(watermark, said.report.watermark)
            begins = {} if added.said == added.begins else {BEGINS: begin_at(added.begins)}
            added.said = added.begins
            tables |= named(key, begins | with_rows(said.report.tables))
            asks += of_query(key, said.asks)
        self._reported = max(self._reported, watermark)
        report = replace(first.report, watermark=self._reported, tables=tables)
        return Said(report=report, asks=(*asks, *self._asked()))

    def _asked(self) -> list[Ask]:
        """How the queries have changed, for nodes below."""
        asks, self._asks = self._asks, []
        return asks

    def _begun(self) -> list[tuple[str, Added]]:
        """The queries for which all nodes below have told their begin."""
        return [(key, added) for key, added in self._added.items() if added.begins is not None]

    def _separate(self) -> list[Added]:
        """The queries that keep for themselves how far nodes below have come."""
        return list(self._added.values())

    def _cut_below(self) -> list[str]:
        """The queries that child nodes cut for."""
        return list(self._added)

    def _again(self, key: str) -> Merge:
        """The machine of an added query, which is restored."""
        return self._made(self.known.question(key), ())

    def _made(self, question: Question, children: Iterable[str]) -> Merge:
        return Merge(self.name, question, children)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        about, tables = self._first.snapshot()
        of_added = {}
        for key, added in self._added.items():
            own = added.machine.snapshot()
            tables |= named(key, own.tables)
            of_added[key] = {"machine": own.about, **added.state()}
        programme = {
            "known": self.known.state(),
            "added": of_added,
            "informed": sorted(self._informed),
            "asks": [ask.__dict__ for ask in self._asks],
            "latest": self._latest,
            "reported": self._reported,
        }
        return Snapshot(about | {PROGRAMME: programme}, tables)

    def restore(self, snapshot: Snapshot) -> None:
        """Take up the state of a snapshot."""
        tables = by_query(snapshot.tables)
        self._first.restore(Snapshot(snapshot.about, tables[""]))
        about = snapshot.about[PROGRAMME]
        self.known.restore(about["known"])
        for key, of_added in about["added"].items():
            machine = self._again(key)
            machine.restore(Snapshot(of_added["machine"], tables.get(key, {})))
            others = {name: value for name, value in of_added.items() if name != "machine"}
            self._added[key] = Added(machine, **others | {"told": dict(others["told"])})
        self._informed = set(about["informed"])
        self._asks = [Ask(**ask) for ask in about["asks"]]
        self._latest = dict(about["latest"])
        self._reported = about["reported"]


def of_query(key: str, asks: Iterable[Ask]) -> list[Ask]:
    """Asks of an added query."""
    return [Ask(ask.to, {**ask.about, OF_QUERY: key}) for ask in asks]
