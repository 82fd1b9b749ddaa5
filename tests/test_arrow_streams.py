"""Tables of any library that speaks the Arrow C interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W

QUERY = pf.Query(
    {"short": W.tumbling(5), "long": W.sliding(20, 5)},
    {"n": A.count(), "sum": A.sum("v"), "all": A.collect("s")},
    key="k",
    time="t",
)
TABLE = pa.table(
    {
        "t": list(range(40)),
        "k": [None if i % 7 == 0 else "abc"[i % 3] for i in range(40)],
        "v": [None if i % 5 == 0 else i for i in range(40)],
        "s": [f"text {i}" for i in range(40)],
        "other": [[i] for i in range(40)],
    }
)


class Stream:
    """A table of some library that is not known here."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class Batch:
    """A batch of some library that is not known here."""

    def __init__(self, table: pa.Table) -> None:
        (self._batch,) = table.combine_chunks().to_batches()

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def reader(table: pa.Table) -> pa.RecordBatchReader:
    """Several batches, one of them empty."""
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    batches = [*table.slice(0, 13).to_batches(), empty, *table.slice(13).to_batches()]
    return pa.RecordBatchReader.from_batches(table.schema, batches)


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "duckdb": duckdb.from_arrow,
    "reader": reader,
    "stream": Stream,
    "batch": Batch,
    "RecordBatch": lambda table: table.combine_chunks().to_batches()[0],
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    made: Callable[[pa.Table], Any] = request.param
    return made


@pytest.mark.parametrize("engine", ["oracle", "table"])
def test_the_rows_are_those_of_the_table(kind: Callable[[pa.Table], Any], engine: str) -> None:
    rows = QUERY.over(kind(TABLE), engine=engine)
    assert isinstance(rows, pa.Table)
    assert rows.equals(QUERY.over(TABLE, engine=engine))


def test_slices_streams_and_explain_take_them(kind: Callable[[pa.Table], Any]) -> None:
    rows = QUERY.over(TABLE)
    assert QUERY.finish(QUERY.slice(kind(TABLE))).equals(rows)
    assert QUERY.explain(kind(TABLE)) == QUERY.explain(TABLE)
    pf.warm_up(QUERY, kind(TABLE))
    with QUERY.open() as stream:
        stream.push(kind(TABLE.slice(0, 25)))
        stream.push(kind(TABLE.slice(25)))
        stream.finish()
        assert pa.concat_tables(stream.results()).equals(rows)


def test_no_events(kind: Callable[[pa.Table], Any]) -> None:
    if kind is KINDS["RecordBatch"] or kind is KINDS["batch"]:
        given: Any = pa.RecordBatch.from_pylist([], schema=TABLE.schema)
    else:
        given = kind(TABLE.slice(0, 0))
    assert QUERY.over(given).equals(QUERY.over(TABLE.slice(0, 0)))


def test_a_missing_column_is_named_beside_those_there_are(kind: Callable[[pa.Table], Any]) -> None:
    with pytest.raises(pf.InputError, match=r"'v' is needed.*'t', 'k', 's', 'other'"):
        QUERY.over(kind(TABLE.drop_columns("v")))


def test_a_query_over_duckdb_is_answered_as_often_as_it_is_asked() -> None:
    relation = duckdb.from_arrow(TABLE).filter("t >= 3")
    assert QUERY.over(relation).equals(QUERY.over(relation))
    assert QUERY.over(relation).equals(QUERY.over(TABLE.slice(3)))


@pytest.mark.parametrize(
    "ask", [QUERY.over, QUERY.slice, QUERY.explain], ids=["over", "slice", "explain"]
)
def test_a_reader_is_read_only_once(ask: Callable[[Any], Any]) -> None:
    """The second time it would look like a table without events."""
    given = reader(TABLE)
    ask(given)
    with pytest.raises(pf.InputError, match=r"only once.*reader.read_all\(\)"):
        QUERY.over(given)
    with QUERY.open() as stream, pytest.raises(pf.InputError, match="only once"):
        stream.push(given)


def test_readers_that_fail_are_input_errors() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.slice(0, 9).to_batches()
        raise OSError("the disk is gone")

    broken = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(pf.InputError, match="the disk is gone"):
        QUERY.over(broken)
    relation = duckdb.sql("select range as t, 'a' as k, 's' as s, error('no v') as v from range(9)")
    with pytest.raises(pf.InputError, match="no v"):
        QUERY.over(relation)


def test_nothing_of_a_broken_reader_enters_a_stream() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.slice(0, 9).to_batches()
        raise OSError("the disk is gone")

    with QUERY.open() as stream:
        with pytest.raises(pf.InputError, match="the disk is gone"):
            stream.push(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
        stream.push(TABLE)
        stream.finish()
        assert pa.concat_tables(stream.results()).equals(QUERY.over(TABLE))


@pytest.mark.parametrize(
    "column",
    [pa.chunked_array([[1, 2]]), pa.array([1, 2]), pl.Series("t", [1, 2])],
    ids=["ChunkedArray", "Array", "Series"],
)
def test_a_column_is_no_table(column: Any) -> None:
    with pytest.raises(pf.InputError, match="cannot be read as a table"):
        QUERY.over(column)
    with pytest.raises(pf.InputError, match="is not a table that paneflow can read"):
        QUERY.over(Stream)
