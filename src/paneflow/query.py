"""A window query: windows x aggregates x key x time, stated once and answered anywhere."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow._faces import named_texts, shortened, table_html
from paneflow.aggregates.aggregate import Aggregate
from paneflow.errors import InputError, QueryError
from paneflow.names import is_name
from paneflow.planning import Plan, plan
from paneflow.slicing.checking import whole
from paneflow.slicing.columns import require_columns
from paneflow.slicing.durations import check_durations
from paneflow.slicing.keys import check_key_type
from paneflow.slicing.layout import check_cuttable, identity_of
from paneflow.slicing.slices import Slices
from paneflow.slicing.times import time_type
from paneflow.slicing.window_columns import check_window_columns
from paneflow.stating import labelled, named, names, tick
from paneflow.tables import is_spark, to_arrow
from paneflow.tables.origin import Origin
from paneflow.windows import Duration, DurationLike, Window, duration
from paneflow.windows.many_rows import MAX_ROWS, check_limit

if TYPE_CHECKING:
    from paneflow.engines.multicore.stream import Stream

ENGINES = ("table", "oracle")
OWN_COLUMNS = ("window", "seq", "start", "end")


class Query:
    """The question. It is checked when it is stated, and again against each table.

    >>> import paneflow as pf
    >>> from paneflow import windows as W, aggregates as A
    >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
    >>> for row in query.over([{"t": 1, "v": 5}, {"t": 4, "v": 7}, {"t": 9, "v": 2}]):
    ...     print(row)
    {'window': 'tumbling(5)', 'seq': 0, 'start': 0, 'end': 5, 'peak': 7}
    {'window': 'tumbling(5)', 'seq': 1, 'start': 5, 'end': 10, 'peak': 2}
    """

    def __init__(
        self,
        windows: Window | Iterable[Window] | Mapping[str, Window],
        aggregates: Mapping[str, Aggregate],
        key: str | Iterable[str] | None = None,
        time: str = "ts",
        lateness: DurationLike = 0,
    ) -> None:
        self.windows: dict[str, Window] = labelled(windows)
        self.aggregates: dict[str, Aggregate] = named(aggregates)
        self.key: tuple[str, ...] = names(key)
        self.lateness: Duration = duration(lateness, "lateness", least=0)
        if not is_name(time):
            raise QueryError(f'time must be the name of the time column, not {time!r}: time="ts"')
        self.time = time
        if time in self.key:
            raise QueryError(f"{time!r} is both the time and a key: leave it out of key")
        taken = [*OWN_COLUMNS, *self.key]
        for name in self.aggregates:
            if name in taken:
                raise QueryError(
                    f"an aggregate is named {name!r}, like another column of the result "
                    f"({', '.join(taken)}): give it another name"
                )
        for name in self.key:
            if name in OWN_COLUMNS:
                raise QueryError(
                    f"the key column {name!r} has the name of a result column "
                    f"({', '.join(OWN_COLUMNS)}): rename the key column"
                )

    def over(
        self,
        table: Any,
        *,
        engine: str = "auto",
        merge: str = "auto",
        max_rows: int | None = MAX_ROWS,
        max_ahead: DurationLike | None = None,
        emit: str = "final",
        late: bool = False,
        idle: DurationLike | None = None,
    ) -> Any:
        """Answer over a table: pyarrow, pandas, polars, a list of dicts, or a Spark DataFrame.

        The result is of the same kind. Other tables that speak the Arrow C stream, such as DuckDB
        relations and a `pyarrow.RecordBatchReader`, give a pyarrow table. Rows are ordered by
        (end, window, seq, key), but for those of a Spark DataFrame. A query that would give more
        than `max_rows` is refused before any is made; None is no limit. On Spark this holds for
        what a task answers at once.

        Over a streaming DataFrame rows come as the watermark passes, and there are four options.
        `max_ahead` leaves out events that are further ahead of the clock. `emit="updates"` gives
        a row whenever it changes, and says in a column `final` which is the last. `late=True`
        gives events that came too late in a column `late`. `idle` closes all windows when no
        event has come for so long.
        """
        limit = check_limit(max_rows)
        given = {"max_ahead": max_ahead, "emit": emit, "late": late, "idle": idle}
        unsaid = {"max_ahead": None, "emit": "final", "late": False, "idle": None}
        stream = {name: v for name, v in given.items() if v is not unsaid[name]}
        if is_spark(table):
            if not isinstance(engine, str) or engine not in ("auto", "spark"):
                raise QueryError(
                    f"engine={engine!r} cannot answer over a Spark DataFrame: leave engine at "
                    f"'auto', or pass df.toArrow()"
                )
            spark = importlib.import_module("paneflow.engines.spark")
            return spark.over(self, table, merge=merge, max_rows=limit, **stream)
        if stream:
            raise QueryError(
                f"{', '.join(stream)} is for streaming Spark DataFrames, not for a "
                f"{type(table).__name__}: leave it out"
            )
        if isinstance(table, list) and not table:
            return []
        arrow, back = to_arrow(table, self.columns)
        self.check(arrow.schema)
        chosen = self._plan(arrow.schema, engine, merge)
        run = importlib.import_module(f"paneflow.engines.{chosen.engine}").answer
        plan_ = () if chosen.engine == "oracle" else (chosen,)
        return back(run(self, arrow, *plan_, max_rows=limit, stacklevel=2), self._origins())

    def open(
        self,
        workers: int = 1,
        strategy: str = "auto",
        sources: int = 1,
        *,
        max_rows: int | None = MAX_ROWS,
    ) -> Stream:
        """A live stream that threads in this process answer: push events, read rows.

        `workers` is the number of threads that share the work, `strategy` how they share it
        (docs/streams-in-process.md, docs/multicore.md), `sources` how many streams of events are
        put into one order. A stream fails, and says why, when more than `max_rows` rows would
        become final with a single event, or when it is finished; None is no limit.

        >>> import paneflow as pf
        >>> from paneflow import windows as W, aggregates as A
        >>> query = pf.Query(W.tumbling(5), {"sum": A.sum("v")}, time="t")
        >>> with query.open() as stream:
        ...     stream.push([{"t": 1, "v": 5}, {"t": 4, "v": 7}, {"t": 9, "v": 2}])
        ...     stream.finish()
        ...     [row for rows in stream.results() for row in rows["sum"].to_pylist()]
        [12, 2]
        """
        multicore = importlib.import_module("paneflow.engines.multicore.stream")
        stream: Stream = multicore.Stream(
            self, workers, strategy, sources, max_rows=check_limit(max_rows)
        )
        return stream

    def write_stream(
        self,
        frame: Any,
        sink: Any,
        checkpoint: Any,
        *,
        max_ahead: DurationLike | None = None,
        late: Any = None,
        idle: DurationLike | None = None,
        max_rows: int | None = MAX_ROWS,
        **trigger: Any,
    ) -> Any:
        """Answer over a streaming Spark DataFrame into a sink, each row exactly once.

        `sink` is a folder for Parquet files, or a function of (rows as pyarrow, number of the
        batch), which must replace what it wrote before under the same number. `late` is another
        such sink, for events that came too late. `idle` closes all windows when no event has come
        for so long. A batch that would give more than `max_rows` fails; None is no limit.
        `trigger` is what Spark's `trigger` takes, for example `availableNow=True`.
        Gives Spark's streaming query; `paneflow.spark.progress` tells how far it has come.
        """
        if not is_spark(frame) or not frame.isStreaming:
            raise InputError(
                f"write_stream needs a streaming Spark DataFrame, not a {type(frame).__name__}: "
                f"read it with spark.readStream, or use query.over for finite tables"
            )
        spark = importlib.import_module("paneflow.engines.spark")
        options = {
            "max_ahead": max_ahead,
            "late": late,
            "idle": idle,
            "max_rows": check_limit(max_rows),
        }
        return spark.write_stream(self, frame, sink, checkpoint, **options, **trigger)

    def slice(self, table: Any) -> Slices:
        """The query's partials over one part of the data, to store and to merge with others."""
        arrow, _ = to_arrow(table, self.columns)
        self.check(arrow.schema)
        made: Slices = importlib.import_module("paneflow.engines.table").cut(self, arrow)
        return made

    def finish(
        self,
        slices: Slices,
        *,
        merge: str = "auto",
        after: int | None = None,
        until: int | None = None,
        max_rows: int | None = MAX_ROWS,
    ) -> pa.Table:
        """The rows that slices amount to: equal to `over` of all the tables they were cut from.

        `after` and `until` leave out time windows that do not end in between (`after < end <=
        until`, in microseconds or the time column's own unit); sessions always come. More than
        `max_rows` are refused, as by `over`.
        """
        if not isinstance(slices, Slices):
            raise InputError(
                f"finish needs slices, not a {type(slices).__name__}: make them with query.slice"
            )
        check_cuttable(self)
        slices.require(identity_of(self), self)
        self.check(slices.source)
        chosen = self._plan(slices.source, "table", merge)
        ends_in = tick(after, "after"), tick(until, "until")
        if not slices.whole:
            slices = whole(self, slices, self.slice(slices.source.empty_table()).table.schema)
        engine = importlib.import_module("paneflow.engines.table")
        rows: pa.Table = engine.finish(self, slices, chosen, check_limit(max_rows), ends_in)
        return rows

    def explain(self, table: Any = None, *, engine: str = "auto", merge: str = "auto") -> Plan:
        """The plan, with its reasons; for a table, if one is given, with the rows there will be.

        >>> import paneflow as pf
        >>> from paneflow import windows as W, aggregates as A
        >>> print(pf.Query(W.sliding(60, 1), {"mean": A.mean("v"), "sum": A.sum("v")}).explain())
        engine: table
        merge: auto
        operators:
          float_sum(v)  for mean, sum
        because:
          - shared: float_sum(v) serves mean, sum
          - all windows are context free: bounds follow from the definition
          - merge is chosen for each window by its rows and slices: SBA where it slides finely, \
FlatFAT where it has few, long windows
        """
        if is_spark(table):
            made: Plan = importlib.import_module("paneflow.engines.spark").explain(
                self, table, merge
            )
            return made
        if table is None:
            return self._plan(None, engine, merge)
        arrow, _ = to_arrow(table, self.columns)
        self.check(arrow.schema)
        chosen = self._plan(arrow.schema, engine, merge)
        counted = importlib.import_module("paneflow.engines.table").count(self, arrow)
        return replace(chosen, rows=counted)

    def with_key(self, key: Iterable[str]) -> Query:
        """The same question by another key."""
        return Query(self.windows, self.aggregates, key, self.time, self.lateness)

    def with_windows(self, windows: Mapping[str, Window]) -> Query:
        """The same question of other windows."""
        return Query(windows, self.aggregates, self.key, self.time, self.lateness)

    def check(self, schema: pa.Schema) -> None:
        """Refuse a table that does not fit, before anything is computed."""
        _require_schema(schema)
        wanted = {self.time: "the time"} | dict.fromkeys(self.key, "a key")
        for label, window in self.windows.items():
            wanted |= dict.fromkeys(window.columns, f"a column of window {label!r}")
        for name, aggregate in self.aggregates.items():
            wanted |= dict.fromkeys(aggregate.columns, f"a column of {name!r}")
        require_columns(schema, wanted)
        check_durations(self.windows, self.lateness, schema, self.time)
        check_window_columns(self.windows, schema)
        for name in self.key:
            check_key_type(schema.field(name).type, name)
        types = self.types(schema)
        for aggregate in self.aggregates.values():
            aggregate.check(types)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that the query reads: the time, the key, those of windows and aggregates."""
        read = [column for window in self.windows.values() for column in window.columns]
        read += [column for a in self.aggregates.values() for column in a.columns]
        return tuple(dict.fromkeys([self.time, *self.key, *read]))

    def _origins(self) -> dict[str, Origin]:
        """What columns of the result are made of, where they are made of one column."""
        made = {name: Origin(name, held=True) for name in self.key}
        made |= dict.fromkeys(("start", "end"), Origin(self.time, held=False))
        for name, aggregate in self.aggregates.items():
            if aggregate.columns:
                which = aggregate.result_column
                made[name] = Origin(aggregate.columns[which or 0], held=which is not None)
        return made

    def types(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """The types of the columns that aggregates read."""
        _require_schema(schema)
        read = [column for a in self.aggregates.values() for column in a.columns]
        require_columns(schema, dict.fromkeys(read, "a column of an aggregate"))
        return {
            column: schema.field(column).type
            for aggregate in self.aggregates.values()
            for column in aggregate.columns
        }

    def result_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the result over a table with this schema."""
        _require_schema(schema)
        require_columns(schema, dict.fromkeys([self.time, *self.key], "the time or a key"))
        moment = time_type(schema.field(self.time).type, self.time).type
        types = self.types(schema)
        keys = [(name, _plain(schema.field(name).type)) for name in self.key]
        results = [(name, a.result_type(types)) for name, a in self.aggregates.items()]
        own = [("seq", pa.int64()), ("start", moment), ("end", moment)]
        label = pa.dictionary(pa.int32(), pa.string())
        return pa.schema([("window", label), *keys, *own, *results])

    def _plan(self, schema: pa.Schema | None, engine: str, merge: str) -> Plan:
        if not isinstance(engine, str) or engine not in ("auto", *ENGINES):
            raise QueryError(f"engine={engine!r} is not known: choose 'auto', 'table' or 'oracle'")
        chosen = "table" if engine == "auto" else engine
        return plan(self.windows, self.aggregates, schema, chosen, merge)

    def __repr__(self) -> str:
        shown = (f"{name}: {', '.join(shortened(items))}" for name, items in self._parts().items())
        return f"Query({'; '.join(shown)})"

    def _repr_html_(self) -> str:
        return table_html("Query", self._parts())

    def _parts(self) -> dict[str, Iterable[str]]:
        """What the query is made of, by name; what was not given is left out."""
        parts = {
            "windows": named_texts(self.windows),
            "aggregates": named_texts(self.aggregates),
            "key": self.key,
            "time": (self.time,),
            "lateness": (str(self.lateness),) if self.lateness.value else (),
        }
        return {name: items for name, items in parts.items() if items}


def _require_schema(schema: object) -> None:
    if not isinstance(schema, pa.Schema):
        raise InputError(f"a pyarrow schema is needed, not a {type(schema).__name__}: pass one")


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_
