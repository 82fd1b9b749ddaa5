"""A window query: windows × aggregates × key × time, stated once and answered anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow._display import named_texts, shortened, table_html
from paneflow.aggregates.aggregate import Aggregate
from paneflow.engines import table as table_engine
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.errors import InputError, QueryError
from paneflow.names import is_name
from paneflow.planning import Plan, plan
from paneflow.planning.merge_choice import check_merge
from paneflow.slicing.columns import require_columns
from paneflow.slicing.durations import check_durations
from paneflow.slicing.keys import check_key_type
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

Path = str | os.PathLike[str]
Sink = Callable[[pa.Table, int], None]
"""A function of a batch's rows and the number of the batch."""
ENGINES = ("table", "oracle")
OWN_COLUMNS = ("window", "seq", "start", "end")


class Query:
    """A question about windows of events; it can be answered over tables and streams.

    It is checked when it is made, and again against each table.

    Args:
        windows: A window, a list of windows, or a dict of labels and windows. The default label of
            a window is its text, for example `sliding(1h, 1s)`.
        aggregates: What to compute for each window, by the name of the result column.
        key: The column or columns by which events are grouped; by default all events are one group.
        time: The name of the time column: timestamps, or integers in a unit of your own.
        lateness: In a stream, how far out of order events may arrive.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
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
        """Answer the query over a table, or over a Spark DataFrame, batch or streaming.

        Args:
            table: A pyarrow, pandas or polars table, a list of dicts, a Spark DataFrame, or any
                table that supports the Arrow C stream interface, such as a DuckDB relation or a
                `pyarrow.RecordBatchReader`.
            engine: `"auto"`, `"table"`, or `"oracle"`, the slow engine that defines what is right.
            merge: How slices are merged into windows (docs/merging.md); the rows are the same for
                all.
            max_rows: A query that would return more rows is refused before any is made; None is no
                limit. On Spark the limit applies to what one task returns at once.
            max_ahead: For streaming DataFrames: leave out events further ahead of the clock than
                this.
            emit: For streaming DataFrames: `"final"` returns each row once, when it is final.
                `"updates"` also returns a row whenever it changes; a column `final` marks the last
                version.
            late: For streaming DataFrames: also return events that arrived too late, in a column
                `late`.
            idle: For streaming DataFrames: close all windows when no event has arrived for this
                long.

        Returns:
            The rows, ordered by (end, window, seq, key), as the same kind of table; a table that
            supports only that interface gives a pyarrow table. Rows of a Spark DataFrame are not
            ordered, and those of a streaming one appear as the watermark passes the end of their
            windows.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> for row in query.over([{"t": 1, "v": 5}, {"t": 4, "v": 7}, {"t": 9, "v": 2}]):
            ...     print(row["end"], row["peak"])
            5 7
            10 2
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
            from paneflow.engines import spark  # needs PySpark, an optional dependency

            if table.isStreaming:
                options = StreamOptions.of(max_ahead, emit, late, idle, limit)
                return spark.answer_stream(self, table, merge, options)
            if stream:
                raise QueryError(
                    f"{', '.join(stream)} is for streams, and this DataFrame is finite: leave it "
                    f"out"
                )
            return spark.answer(self, table, merge=merge, max_rows=limit)
        if stream:
            raise QueryError(
                f"{', '.join(stream)} is for streaming Spark DataFrames, not for a "
                f"{type(table).__name__}: leave it out"
            )
        if isinstance(table, list) and not table:
            return []
        arrow, back = to_arrow(table, self.columns)
        self.check(arrow.schema)
        answer = table_engine.answer
        if _engine(engine) == "oracle":
            from paneflow.engines import oracle  # few queries ask for it, and it brings much along

            answer = oracle.answer
        check_merge(merge)
        rows = answer(self, arrow, merge=merge, max_rows=limit, stacklevel=2)
        return back(rows, self._origins())

    def open(
        self,
        workers: int = 1,
        strategy: str = "auto",
        sources: int = 1,
        *,
        merge: str = "auto",
        emit: str = "final",
        late: bool = False,
        idle: DurationLike | None = None,
        max_ahead: DurationLike | None = None,
        max_rows: int | None = MAX_ROWS,
    ) -> Stream:
        """Open a live stream that is answered by threads in this process.

        Args:
            workers: How many threads share the work.
            strategy: How they share it (docs/streams-in-process.md, docs/multicore.md).
            sources: How many streams of events are merged into one order.
            merge: The algorithm that merges slices into windows (docs/merging.md); "auto" chooses
                one. Only the strategies "single" and "active" merge slices so.
            emit: "final" returns each row once, when it is final. "updates" also returns rows as
                they change; a column `final` tells which are the last of their windows. One
                worker answers.
            late: Return the events that came too late, by `stream.late()`, and not only their
                number.
            idle: A source to which nothing has been pushed for this long by the clock, such as
                "5 seconds", no longer holds back the others; when all are silent, all windows
                close.
            max_ahead: Leave out events whose times are further ahead of the clock than this.
            max_rows: The stream fails, and says why, if more rows than this would become final with
                a single event or at its end; None is no limit.

        Returns:
            The stream: push events, read rows.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"sum": A.sum("v")}, time="t")
            >>> with query.open() as stream:
            ...     stream.push([{"t": 1, "v": 5}, {"t": 4, "v": 7}, {"t": 9, "v": 2}])
            ...     stream.finish()
            ...     [total for rows in stream.results() for total in rows["sum"].to_pylist()]
            [12, 2]
        """
        from paneflow.engines.multicore.stream import Stream  # tables do without threads

        options = StreamOptions.of(max_ahead, emit, late, idle, check_limit(max_rows))
        return Stream(self, workers, strategy, sources, merge=merge, options=options)

    def write_stream(
        self,
        frame: Any,
        sink: Path | Sink,
        checkpoint: Path,
        *,
        max_ahead: DurationLike | None = None,
        late: Path | Sink | None = None,
        idle: DurationLike | None = None,
        max_rows: int | None = MAX_ROWS,
        **trigger: bool | str,
    ) -> Any:
        """Answer the query over a streaming Spark DataFrame into a sink, each row exactly once.

        Args:
            frame: A streaming Spark DataFrame.
            sink: A folder for Parquet files, or a function of (rows as a pyarrow table, batch
                number). A function may be called again with the same number and must then replace
                what it wrote. Like all folders here, it may be on any file system of Spark.
            checkpoint: A folder for the state of the stream, from which it can be restarted.
            max_ahead: Leave out events further ahead of the clock than this.
            late: Another such sink, for events that arrived too late; by default they are only
                counted.
            idle: Close all windows when no event has arrived for this long.
            max_rows: A batch that would return more rows fails; None is no limit.
            **trigger: What Spark's `trigger` takes, for example `availableNow=True`.

        Returns:
            Spark's streaming query; `paneflow.spark.progress` tells how far it has come.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> import paneflow as pf, paneflow.spark
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling("1 hour"), {"n": A.count()}, time="timestamp")
            >>> frame = pf.spark.session().readStream.format("rate").load()  # doctest: +SKIP
            >>> folder = Path(tempfile.mkdtemp())  # doctest: +SKIP
            >>> running = query.write_stream(
            ...     frame, folder / "rows", folder / "checkpoint"
            ... )  # doctest: +SKIP
            >>> running.isActive  # doctest: +SKIP
            True
            >>> running.stop()  # doctest: +SKIP
        """
        if not is_spark(frame) or not frame.isStreaming:
            raise InputError(
                f"write_stream needs a streaming Spark DataFrame, not a {type(frame).__name__}: "
                f"read it with spark.readStream, or use query.over for finite tables"
            )
        from paneflow.engines import spark  # needs PySpark, an optional dependency

        return spark.write_stream(
            self,
            frame,
            sink,
            checkpoint,
            trigger,
            max_ahead=max_ahead,
            late=late,
            idle=idle,
            max_rows=check_limit(max_rows),
        )

    def slice(self, table: Any) -> Slices:
        """Cut a table into slices: the query's partial results, to store and to merge with others.

        Args:
            table: One part of the data, any kind of table that `over` takes except a Spark
                DataFrame.

        Returns:
            The slices, an Arrow table inside.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.slice([{"t": 1, "v": 5}, {"t": 9, "v": 2}])
            Slices(rows: 2; windows: tumbling(5); aggregates: peak)
        """
        arrow, _ = to_arrow(table, self.columns)
        self.check(arrow.schema)
        return table_engine.cut(self, arrow)

    def finish(
        self,
        slices: Slices,
        *,
        merge: str = "auto",
        after: int | None = None,
        until: int | None = None,
        max_rows: int | None = MAX_ROWS,
    ) -> pa.Table:
        """The rows that slices amount to: those of `over` for all the tables they were cut from.

        Args:
            slices: Slices that were cut by this query, merged if there are several.
            merge: How slices are merged into windows; the rows are the same for all.
            after: Leave out time windows that end at or before this time, in microseconds or in the
                time column's own unit. Sessions are never left out.
            until: Leave out time windows that end after this time.
            max_rows: More rows than this are refused; None is no limit.

        Returns:
            The rows, ordered by (end, window, seq, key).

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> monday, tuesday = [{"t": 1, "v": 5}], [{"t": 4, "v": 7}]
            >>> slices = query.slice(monday).merge(query.slice(tuesday))
            >>> query.finish(slices)["peak"].to_pylist()
            [7]
        """
        if not isinstance(slices, Slices):
            raise InputError(
                f"finish needs slices, not a {type(slices).__name__}: make them with query.slice"
            )
        ends_in = tick(after, "after"), tick(until, "until")
        limit = check_limit(max_rows)
        return table_engine.finish(self, slices, merge=merge, ends_in=ends_in, max_rows=limit)

    def explain(self, table: Any = None, *, engine: str = "auto", merge: str = "auto") -> Plan:
        """Explain how the query would be answered, and why.

        Args:
            table: A table that `over` takes. Without one, columns are taken to be float64; with
                one, the plan also says how many rows there will be.
            engine: As for `over`.
            merge: As for `over`.

        Returns:
            The plan; print it to see the reasons.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.sliding(60, 1), {"mean": A.mean("v"), "sum": A.sum("v")})
            >>> print(query.explain())
            engine: table
            merge: auto
            operators:
              float_sum(v)  for mean, sum
            because:
              - shared: float_sum(v) serves mean, sum
              - all windows are context free: bounds follow from the definition
              - merge is chosen for each window by its rows and slices: SBA where it slides \
finely, FlatFAT where it has few, long windows
        """
        if is_spark(table):
            from paneflow.engines import spark  # needs PySpark, an optional dependency

            return spark.explain(self, table, merge)
        if table is None:
            return self._plan(None, engine, merge)
        arrow, _ = to_arrow(table, self.columns)
        self.check(arrow.schema)
        chosen = self._plan(arrow.schema, engine, merge)
        return replace(chosen, rows=table_engine.count(self, arrow))

    def with_key(self, key: Iterable[str]) -> Query:
        """The same query with another key.

        Args:
            key: The names of the key columns.

        Returns:
            A new query.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.with_key(["house"])
            Query(windows: tumbling(5); aggregates: peak=max(v); key: house; time: t)
        """
        return Query(self.windows, self.aggregates, key, self.time, self.lateness)

    def with_windows(self, windows: Mapping[str, Window]) -> Query:
        """The same query with other windows.

        Args:
            windows: The windows, by label.

        Returns:
            A new query.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.with_windows({"short": W.tumbling(1)})
            Query(windows: short=tumbling(1); aggregates: peak=max(v); time: t)
        """
        return Query(windows, self.aggregates, self.key, self.time, self.lateness)

    def check(self, schema: pa.Schema) -> None:
        """Refuse a table that does not fit the query, before anything is computed.

        Args:
            schema: The pyarrow schema of the table.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> import pyarrow as pa
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.check(pa.schema([("t", pa.int64())]))
            Traceback (most recent call last):
            ...
            paneflow.errors.InputError: column 'v' is needed as a column of 'peak', but the table \
has 't': name an existing column
        """
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
        """All columns that the query reads: the time, the key, those of windows and aggregates."""
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
        """The types of the columns that aggregates read.

        Args:
            schema: The pyarrow schema of a table.

        Returns:
            Arrow types, by the name of the column.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> import pyarrow as pa
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.types(pa.schema([("t", pa.int64()), ("v", pa.float32())]))
            {'v': DataType(float)}
        """
        _require_schema(schema)
        read = [column for a in self.aggregates.values() for column in a.columns]
        require_columns(schema, dict.fromkeys(read, "a column of an aggregate"))
        return {
            column: schema.field(column).type
            for aggregate in self.aggregates.values()
            for column in aggregate.columns
        }

    def result_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the result over a table.

        Args:
            schema: The pyarrow schema of the table.

        Returns:
            The pyarrow schema of the result.

        Example:
            >>> import paneflow as pf
            >>> from paneflow import aggregates as A, windows as W
            >>> import pyarrow as pa
            >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
            >>> query.result_schema(pa.schema([("t", pa.int64()), ("v", pa.float32())])).names
            ['window', 'seq', 'start', 'end', 'peak']
        """
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
        return plan(self.windows, self.aggregates, schema, _engine(engine), merge)

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


def _engine(name: str) -> str:
    """The engine that answers over a table in this process."""
    if not isinstance(name, str) or name not in ("auto", *ENGINES):
        raise QueryError(f"engine={name!r} is not known: choose 'auto', 'table' or 'oracle'")
    return "table" if name == "auto" else name


def _require_schema(schema: object) -> None:
    if not isinstance(schema, pa.Schema):
        raise InputError(f"a pyarrow schema is needed, not a {type(schema).__name__}: pass one")


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_
