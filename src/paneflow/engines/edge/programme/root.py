"""The root with several queries: rows of each, from the first window that all nodes have cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.nodes.root import Root
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.programme.merge import Added, MergeProgramme, of_query
from paneflow.engines.edge.programme.sharing import Sharing, sharing
from paneflow.engines.edge.programme.stated import FIRST, PROGRAMME, check_name
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import BEFORE_ALL, Ask, Asked, Flush, Said
from paneflow.errors import QueryError
from paneflow.suggesting import suggestion
from paneflow.windows import Session


class Standing(NamedTuple):
    """How an added query stands.

    Attributes:
        begins: Windows that begin at this time or later have rows, in the unit of the time column
            (microseconds for timestamps); None while nodes below do not know the query.
        until: Windows that end by this time have closed.
        rows: How many rows it has given.
        shares: The name of the query whose slices it shares; None if it has its own.
        why: Why it has its own.

    Example:
        >>> root.queries()["peaks"].shares  # doctest: +SKIP
        'main'
    """

    begins: int | None
    until: int
    rows: int
    shares: str | None
    why: str


@dataclass
class Terms:
    """On which terms an added query is answered."""

    host: str | None
    """The number of the query whose slices it shares, "" for the first; None if it has its own."""
    why: str
    starts: int | None = None
    """Windows that begin earlier have no rows."""
    ends: int | None = None
    """Windows that end later have no rows, once the query is removed."""
    over: bool = False
    """Whether all its rows were given. Its slices may be shared by others still."""
    rows: int = 0


class RootProgramme(MergeProgramme):
    """Answers all queries of the tree, which are added and removed here.

    Args:
        name: The node's name.
        question: The query that the tree was started with.
        columns: The columns of the events; added queries may read others than the first.
        children: The nodes below that are waited for from the start; others may join.
        keep: For how long windows that were closed without a missing node wait to be completed,
            in the unit of the time column (microseconds for timestamps).
    """

    def __init__(
        self,
        name: str,
        question: Question,
        columns: pa.Schema,
        children: Iterable[str] = (),
        keep: int = 3_600_000_000,
    ) -> None:
        self._keep = keep
        self._columns = columns
        super().__init__(name, question, children)
        self._terms: dict[str, Terms] = {}
        self._shared: dict[str, Sharing] = {}
        """How slices are read that queries share."""
        self._rows = 0

    @property
    def counts(self) -> dict[str, int]:
        """What was counted; the rows are those of all queries."""
        return self._first.counts | {"rows": self._first.counts["rows"] + self._rows}

    @property
    def due(self) -> bool:
        """Whether there is something to say."""
        return (
            self._first.due
            or bool(self._asks)
            or any(terms.ends is not None and not terms.over for terms in self._terms.values())
            or any(
                self._terms[key].starts is None or added.machine.due for key, added in self._begun()
            )
        )

    @property
    def queries(self) -> dict[str, Standing]:
        """How the queries stand that were added and not removed, by name."""
        return {
            self.known.stated(key).name: Standing(
                begins=terms.starts,
                until=self._root(key).until,
                rows=terms.rows,
                shares=self._name_of(terms.host),
                why=terms.why,
            )
            for key, terms in self._live().items()
        }

    def sure(self, name: str) -> int | None:
        """From when on all nodes cut for a query, those that came to know it later included."""
        for key, added in self._begun():
            if self.known.stated(key).name == name:
                return self._later(key, added)
        return None

    def adding(self, name: str, query: Mapping[str, Any], ways: Mapping[str, str]) -> Asked:
        """The record that adds a query; one that cannot be added is refused."""
        check_name(name, self.queries, self.known.names)
        stated = self.known.stating(name, query, ways, self._columns)
        return Asked(0, Ask(self.name, {PROGRAMME: stated.told()}))

    def removing(self, name: str) -> Asked:
        """The record that removes a query."""
        for key in self._live():
            if self.known.stated(key).name == name:
                return Asked(0, Ask(self.name, {PROGRAMME: {"remove": key}}))
        raise QueryError(
            f"there is no query {name!r} to remove: {suggestion(name, self.queries)}"
            if name != FIRST
            else f"{FIRST!r} is the query that the tree was started with, which stays"
        )

    def _change(self, about: Mapping[str, Any]) -> None:
        if "remove" not in about:
            super()._change(about)
        elif about["remove"] in self._live():
            key = about["remove"]
            self._terms[key].ends = self._root(key).until

    def _add(self, key: str, question: Question) -> None:
        why = []
        for host in ["", *(key for key in self._live() if self._terms[key].host is None)]:
            found = sharing(self._question(host), question)
            if isinstance(found, str):
                why.append(found)
            elif self._starts(host) is not None:
                self._share(key, host, found)
                return
        super()._add(key, question)
        self._terms[key] = Terms(None, why[0])

    def _tell(self, about: Mapping[str, Any]) -> None:
        added = about.get("add")
        if added is None or self._terms[added["key"]].host is None:
            super()._tell(about)

    def _share(self, key: str, host: str, how: Sharing) -> None:
        """Answer a query from slices that another releases from now on."""
        self._shared[key] = how
        self._terms[key] = Terms(host, "", self._starts(host))
        self._added[key] = Added(self._again(key), self.watermark, begins=self._starts(host))

    def _starts(self, host: str) -> int | None:
        """From when on the slices of a query have not been released."""
        earliest = BEFORE_ALL if host == "" else self._terms[host].starts
        if earliest is None:
            return None
        return max(earliest, self._root(host).flushed)

    def _say(self) -> Said:
        first = self._first.take(Flush())
        asks, rows = list(first.asks), {}
        for key, added in self._begun():
            terms, machine = self._terms[key], self._root(key)
            if terms.starts is None:
                terms.starts = self._later(key, added)
            if terms.host is not None:
                released = self._root(terms.host).released
                assert released is not None
                machine.give(self._shared[key].read(released))
            before = machine.flushed
            said = machine.take(Flush())
            assert said.rows is not None
            asks += of_query(key, said.asks)
            mine = self._within(key, said.rows, before)
            terms.rows += mine.num_rows
            self._rows += mine.num_rows
            if mine.num_rows:
                rows[self.known.stated(key).name] = mine
        self._drop()
        return replace(first, asks=(*asks, *self._asked()), added=rows)

    def _later(self, key: str, added: Added) -> int:
        """From when on all windows of a query are whole: a session may have begun unseen."""
        assert added.begins is not None
        windows = self._question(key).query.windows.values()
        gaps = [window.gap.value for window in windows if isinstance(window, Session)]
        own = self._terms[key].host is None and added.begins > BEFORE_ALL
        return added.begins + max(gaps, default=0) if own else added.begins

    def _within(self, key: str, rows: pa.Table, before: int) -> pa.Table:
        """The rows that a query is to have; others were given by a watermark before this one."""
        terms, added = self._terms[key], self._added[key]
        start, end = ticks(rows, "start"), ticks(rows, "end")
        assert terms.starts is not None
        wanted: Array = start >= terms.starts
        question = self._question(key)
        windows = question.query.windows
        sessions = [label for label, w in windows.items() if isinstance(w, Session)]
        labels = pc.is_in(rows["window"].cast(pa.string()), pa.array(sessions, pa.string()))
        # A session that ends just now may go on.
        closed_by = end + labels.to_numpy().astype(np.int64)
        if terms.ends is not None:
            wanted &= closed_by <= terms.ends
        # Nodes that came to know the query later have not cut all of earlier windows. What they
        # have cut completes no row.
        sure = start >= self._later(key, added)
        if question.summarised is None:
            wanted &= sure | (closed_by > before)
        whole = rows[COMPLETE].to_numpy() & sure
        at = rows.schema.get_field_index(COMPLETE)
        rows = rows.set_column(at, COMPLETE, pa.array(whole, pa.bool_()))
        return rows.filter(pa.array(wanted))

    def _drop(self) -> None:
        """Forget removed queries, as soon as nobody shares their slices."""
        for key in reversed(list(self._terms)):
            terms = self._terms[key]
            terms.over = terms.ends is not None
            if terms.over and all(other.host != key for other in self._terms.values()):
                del self._terms[key], self._added[key]
                if terms.host is None:
                    self._tell({"remove": key})
                self._shared.pop(key, None)

    def _live(self) -> dict[str, Terms]:
        """The queries that were not removed."""
        return {key: terms for key, terms in self._terms.items() if terms.ends is None}

    def _question(self, key: str) -> Question:
        return self.known.question(key) if key else self.known.first

    def _name_of(self, key: str | None) -> str | None:
        return self.known.stated(key).name if key else None if key is None else FIRST

    def _root(self, key: str) -> Root:
        machine = self._added[key].machine if key else self._first
        assert isinstance(machine, Root)
        return machine

    def _separate(self) -> list[Added]:
        return [added for key, added in self._added.items() if self._terms[key].host is None]

    def _cut_below(self) -> list[str]:
        return [key for key, terms in self._terms.items() if terms.host is None]

    def _again(self, key: str) -> Root:
        host = self._terms[key].host
        below = None if host is None else self._root(host).below
        return Root(self.name, self.known.question(key), keep=self._keep, below=below)

    def _made(self, question: Question, children: Iterable[str]) -> Root:
        return Root(self.name, question, children, self._keep)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        about, tables = super().snapshot()
        terms = {key: dict(vars(terms)) for key, terms in self._terms.items()}
        return Snapshot(about | {"terms": terms, "added_rows": self._rows}, tables)

    def restore(self, snapshot: Snapshot) -> None:
        """Take up the state of a snapshot."""
        told = snapshot.about["terms"].items()
        self._terms = {key: Terms(**terms) for key, terms in told}
        self._rows = snapshot.about["added_rows"]
        super().restore(snapshot)
        for key, terms in self._terms.items():
            if terms.host is not None:
                found = sharing(self._question(terms.host), self._question(key))
                assert isinstance(found, Sharing)
                self._shared[key] = found
