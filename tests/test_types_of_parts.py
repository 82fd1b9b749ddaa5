"""Columns of every type in parts: some without a value, some back from a file, some in a stream."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W

DAY = 86_400_000
TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
VIEWS = (pa.string_view(), pa.binary_view())
WIDTHS = (8, 16, 32, 64)


def columns() -> dict[str, pa.Array]:
    """Two values of every type that aggregates read."""
    made = {str(type_): pa.array(["b", "a"]).cast(type_) for type_ in TEXTS}
    made |= {str(type_): pa.array(["b", "a"], type_) for type_ in VIEWS}
    for unit in ("s", "ms", "us", "ns"):
        for type_ in (pa.timestamp(unit), pa.timestamp(unit, "Asia/Tokyo"), pa.duration(unit)):
            made[str(type_)] = pa.array([7 * 10**9, 10**9]).cast(type_)
    for width in WIDTHS:
        made[f"int{width}"] = pa.array([-1, 2], getattr(pa, f"int{width}")())
        made[f"uint{width}"] = pa.array([1, 2], getattr(pa, f"uint{width}")())
    whole = pa.array([5, 3], pa.int32())
    return made | {
        "float16": pa.array([1.5, 2.5]).cast(pa.float16()),
        "float32": pa.array([1.5, 2.5], pa.float32()),
        "bool": pa.array([True, False]),
        "date32": whole.cast(pa.date32()),
        "date64": pa.array([5 * DAY, 3 * DAY]).cast(pa.date64()),
        "time32[s]": whole.cast(pa.time32("s")),
        "time32[ms]": whole.cast(pa.time32("ms")),
        "time64[us]": pa.array([5, 3]).cast(pa.time64("us")),
        "time64[ns]": pa.array([5, 3]).cast(pa.time64("ns")),
        "dictionary of text": pa.array(["b", "a"], pa.large_string()).dictionary_encode(),
        "dictionary of integers": pa.array([2**60, 1]).dictionary_encode(),
        "null": pa.nulls(2),
    }


COLUMNS = columns()
PICKED = ("min", "max", "first", "last", "mode", "distinct", "count", "collect")
AGGREGATES = {name: getattr(A, name)("v") for name in PICKED}
AGGREGATES |= {"top": A.top_k("v", 2), "at": A.arg_min("v", "x")}
WINDOWS = {"slide": W.sliding(4, 2), "visit": W.session(2)}


def parts(name: str, by_itself: bool) -> tuple[pf.Query, pa.Table, pa.Table]:
    """A query, a part with values and a part without any."""
    column = COLUMNS[name]
    key = column if by_itself else pa.array([1, 1])
    some = pa.table({"t": [1, 2], "k": key, "v": column, "x": [1.0, 2.0]})
    none = pa.table({"t": [3, 9], "k": key, "v": pa.nulls(2, column.type), "x": [1.0, 2.0]})
    return pf.Query(WINDOWS, AGGREGATES, key="k", time="t", lateness=99), some, none


CASES = [(name, own) for name in COLUMNS for own in (False, True) if own is False or name[0] != "f"]
CASE_NAMES = [f"{name} by {'itself' if own else 'number'}" for name, own in CASES]


@pytest.mark.parametrize(("name", "by_itself"), CASES, ids=CASE_NAMES)
def test_a_part_without_a_value_merges_with_others(name: str, by_itself: bool) -> None:
    query, some, none = parts(name, by_itself)
    expected = query.over(pa.concat_tables([some, none]), engine="oracle")
    assert query.finish(query.slice(some).merge(query.slice(none))).equals(expected)
    assert query.finish(query.slice(none).merge(query.slice(some))).equals(expected)


@pytest.mark.parametrize(("name", "by_itself"), CASES, ids=CASE_NAMES)
def test_slices_from_a_file_merge_with_fresh_ones(
    name: str, by_itself: bool, tmp_path: Path
) -> None:
    query, some, none = parts(name, by_itself)
    expected = query.over(pa.concat_tables([some, none]), engine="oracle")

    def stored(slices: pf.Slices) -> pf.Slices:
        pq.write_table(slices.table, tmp_path / "slices.parquet")
        return pf.Slices(pq.read_table(tmp_path / "slices.parquet"))

    first, second = query.slice(some), query.slice(none)
    for a, b in (
        (stored(first), second),
        (first, stored(second)),
        (stored(first), stored(second)),
    ):
        assert query.finish(a.merge(b)).equals(expected)


@pytest.mark.parametrize(
    ("name", "by_itself", "workers"),
    [(name, own, 1) for name, own in CASES] + [(str(t), True, 2) for t in (*TEXTS, *VIEWS)],
)
def test_a_stream_takes_a_batch_without_a_value(name: str, by_itself: bool, workers: int) -> None:
    query, some, none = parts(name, by_itself)
    expected = query.over(pa.concat_tables([some, none]), engine="oracle")
    for pushed in ((some, none), (none, some)):
        with query.open(workers=workers) as stream:
            for batch in pushed:
                stream.push(batch)
            stream.finish()
            assert pa.concat_tables(stream.results()).equals(expected)


@pytest.mark.parametrize(
    "key", [pa.nulls(2), pa.array([Decimal("1.5"), None])], ids=["null", "decimal"]
)
def test_a_stream_with_a_growing_column_takes_any_key(key: pa.Array) -> None:
    query = pf.Query(W.delta("v", 3, 1), {"n": A.count()}, key="k", time="t")
    table = pa.table({"t": [1, 2, 2], "k": key.take(pa.array([0, 0, 1])), "v": [1, 3, 4]})
    with query.open() as stream:
        stream.push(table)
        stream.finish()
        rows = pa.concat_tables(
            [query.result_schema(table.schema).empty_table(), *stream.results()]
        )
    assert rows.equals(query.over(table, engine="oracle"))


def test_stored_slices_that_lost_their_types_are_refused() -> None:
    query = pf.Query(W.tumbling(5), {"first": A.first("v")}, time="t")
    slices = query.slice(pa.table({"t": [1], "v": pa.array([2**60]).cast(pa.timestamp("s"))}))
    place = next(i for i, field in enumerate(slices.table.schema) if field.type == "timestamp[s]")
    other = slices.table.set_column(
        place, slices.table.schema.names[place], pa.array([1], pa.timestamp("ns"))
    )
    with pytest.raises(pf.InputError, match="do not fit"):
        slices.merge(pf.Slices(other))
