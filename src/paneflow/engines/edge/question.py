"""A query as a tree answers it: which windows go which way, and what travels for each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.aggregates._functions.identity import digest_of
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.sequences import Applied
from paneflow.engines.edge.counted import LOGGED, Counted
from paneflow.engines.edge.interpreting import (
    BOUNDS,
    COUNTED,
    EVENTS,
    GAPS,
    LOCAL,
    ORDER,
    QUANTILES,
    SLICES,
    ways_of,
)
from paneflow.engines.edge.layouts import CHILD, GONE, GONE_SCHEMA, Layout, opening_of
from paneflow.engines.edge.matching import Matching
from paneflow.engines.edge.summarised import DETAILED, Summarised
from paneflow.errors import InputError
from paneflow.slicing.durations import check_durations
from paneflow.slicing.times import time_type
from paneflow.windows import Custom, Session, Sliding, Window

if TYPE_CHECKING:
    from paneflow.query import Query

NODE = "node"
"""The column that names the child node of a row, where windows are local."""
OPENINGS = "openings"
GAP_OPENINGS = "gap openings"
ROWS = "rows"
COMPLETE = "complete"


class Question:
    """A query over events of a schema, taken apart by the ways of its windows.

    Args:
        query: The query.
        source: The schema of the events that child nodes take; other columns are left out.
        ways: Interpretations of windows, by label: `"auto"`, or what a window means that is kept by
            child nodes: `"local"`, `"order"`, `"bounds"` or `"gaps"`.

    Example:
        >>> import pyarrow as pa
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, edge, windows as W
        >>> query = pf.Query({"lap": W.count(100)}, {"best": A.max("speed")}, time="t")
        >>> columns = pa.schema({"t": pa.int64(), "speed": pa.float64()})
        >>> print(edge.Question(query, columns, {"lap": "order"}).explain())
        lap: order: the n-th windows of a key on all child nodes are one
    """

    def __init__(
        self, query: Query, source: pa.Schema, ways: Mapping[str, str] | None = None
    ) -> None:
        query.check(source)
        check_durations(query.windows, query.lateness, source, query.time)
        self.query = query
        self.source = pa.schema([source.field(name) for name in query.columns])
        self.asked = dict(ways or {})
        self.ways = ways_of(query, self.source, self.asked)
        self.sliced = self._of(SLICES)
        self.ordered = self._of(EVENTS)
        self.local = self._of(LOCAL)
        self.together = self._of(SLICES, EVENTS)
        """The windows that the root keeps open."""
        self.layout = Layout(self.sliced, self.source) if self.sliced is not None else None
        self.matched = {
            way: Matching(asked, self.source, way)
            for way in (ORDER, BOUNDS, GAPS)
            if (asked := self._of(way)) is not None
        }
        """Windows of child nodes that are merged into one, by what makes them one."""
        asked = self._of(QUANTILES)
        self.summarised = Summarised(asked, self.source) if asked is not None else None
        asked = self._of(COUNTED)
        self.counted = Counted(asked, self.source) if asked is not None else None
        self.schemas = self._schemas()
        self.digest = self._digest()

    @property
    def sliding(self) -> list[Sliding]:
        """The time windows that are answered from slices."""
        return [w for w in self._windows(self.sliced) if isinstance(w, Sliding)]

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions that are answered from slices, by the name of their slicing."""
        return {str(w): w for w in self._windows(self.sliced) if isinstance(w, Session)}

    @property
    def needs_events(self) -> bool:
        """Whether child nodes need events themselves, and not only their slices."""
        return bool(self.matched) or self.ordered is not None or self.local is not None

    @property
    def row_schema(self) -> pa.Schema:
        """The columns of the rows that the root gives.

        Where a window is local, a column tells the node; it is null for other windows.
        """
        schema = self.query.result_schema(self.source)
        if self.local is not None:
            schema = schema.insert(1 + len(self.query.key), pa.field(NODE, pa.string()))
        return schema.append(pa.field(COMPLETE, pa.bool_()))

    def explain(self) -> str:
        """How each window is answered, and why.

        Returns:
            A line for each window.

        Example:
            >>> import pyarrow as pa
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, edge, windows as W
            >>> query = pf.Query(W.session(5), {"n": A.count()}, time="t")
            >>> print(edge.Question(query, pa.schema({"t": pa.int64()})).explain())
            session(5): slices: sessions of different nodes are one where their gaps overlap
        """
        lines = [f"{label}: {way.name}: {way.reason}" for label, way in self.ways.items()]
        if self.layout is not None and not self.layout.mergeable:
            why = (
                "some aggregate depends on the order of events"
                if self.layout.in_order
                else "some aggregate needs all values"
            )
            lines.append(f"slices are passed on as they are, because {why}")
        return "\n".join(lines)

    def fit(self, events: pa.Table) -> pa.Table:
        """Events in the columns and types that were agreed on.

        Args:
            events: Events that have at least these columns.

        Returns:
            The same events with these columns, cast to these types.

        Example:
            >>> import pyarrow as pa
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, edge, windows as W
            >>> query = pf.Query(W.session(5), {"n": A.count()}, time="t")
            >>> asked = edge.Question(query, pa.schema({"t": pa.int64()}))
            >>> asked.fit(pa.table({"t": pa.array([1], pa.int8()), "more": ["x"]})).schema
            t: int64
        """
        missing = [name for name in self.source.names if name not in events.column_names]
        if missing:
            raise InputError(
                f"events need the columns {', '.join(self.source.names)}, but {missing[0]!r} is "
                f"missing among {', '.join(events.column_names)}: send all of them"
            )
        chosen = events.select(self.source.names)
        if chosen.schema.equals(self.source):
            return chosen
        try:
            return chosen.cast(self.source)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise InputError(
                f"events do not fit the columns that the tree was given "
                f"({', '.join(f'{f.name}: {f.type}' for f in self.source)}): {error}; send them "
                f"in these types"
            ) from None

    @property
    def cut_schemas(self) -> dict[str, pa.Schema]:
        """The schemas of what a child node writes down of events, by the name of the part."""
        schemas: dict[str, pa.Schema] = {}
        if self.layout is not None:
            schemas[SLICES] = self.layout.cut(self.source.empty_table()).schema.remove_metadata()
        if self.summarised is not None:
            schemas[DETAILED] = self.summarised.detailed
        if self.counted is not None:
            schemas[LOGGED] = self.counted.events
        if self.needs_events:
            schemas[EVENTS] = self.source.remove_metadata()
        return schemas

    def _of(self, *ways: str) -> Query | None:
        chosen = [label for label, way in self.ways.items() if way.name in ways]
        mine = {label: self.query.windows[label] for label in chosen}
        return self.query.with_windows(mine) if mine else None

    @staticmethod
    def _windows(query: Query | None) -> list[Window]:
        return [] if query is None else list(query.windows.values())

    def _schemas(self) -> dict[str, pa.Schema]:
        child = pa.field(CHILD, pa.string())
        schemas: dict[str, pa.Schema] = {}
        if self.layout is not None:
            schemas[SLICES] = self.layout.schema
            if self.sessions:
                schemas[OPENINGS] = opening_of(self.layout.schema)
        for way, matching in self.matched.items():
            schemas[way] = matching.layout.schema
            if way == GAPS:
                schemas[GAP_OPENINGS] = opening_of(matching.layout.schema)
        for asked in (self.summarised, self.counted):
            if asked is not None:
                schemas |= asked.schemas | {GONE: GONE_SCHEMA}
        if self.ordered is not None:
            schemas[EVENTS] = self.source.remove_metadata().append(child)
        if self.local is not None:
            rows = self.local.result_schema(self.source)
            plain = pa.schema([("window", pa.string()), *list(rows)[1:]])
            schemas[ROWS] = plain.append(child)
        return schemas

    def _digest(self) -> str:
        """The same exactly where the same question is asked of the same columns."""
        query = self.query
        told = {
            "windows": {label: repr(w) for label, w in query.windows.items()},
            "aggregates": {name: repr(a) for name, a in query.aggregates.items()},
            "key": list(query.key),
            "time": [query.time, str(time_type(self.source.field(query.time).type, query.time))],
            "lateness": query.lateness.value,
            "source": self.source.to_string(show_field_metadata=False),
            "ways": {label: way.name for label, way in self.ways.items()},
        }
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
        for name, given in self._functions().items():
            digest.update(digest_of(name, given).encode())
        return digest.hexdigest()[:32]

    def _functions(self) -> dict[str, object]:
        """Functions of the user's that nodes must have in common."""
        found: dict[str, object] = {}
        for name, aggregate in self.query.aggregates.items():
            if isinstance(aggregate, Applied):
                found[name] = aggregate.function
            if isinstance(aggregate, Defined):
                user = aggregate.definition
                found[name] = (user.lift, user.combine, user.lower, user.identity)
        for label, window in self.query.windows.items():
            if isinstance(window, Custom):
                found[label] = (window.initial, type(window).step)
        return found
