"""Tables of every shape come out of a message as they went in."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.records import Report
from paneflow.engines.edge.wire import LIMIT, Numbered, Wire, WireError
from paneflow.engines.table import cut

AGGREGATES = {
    "max": A.max("load"),
    "mean": A.mean("load"),
    "sum": A.sum("load"),
    "exact sum": A.sum("price"),
    "var": A.var("load"),
    "median": A.median("load"),
    "collect": A.collect("place"),
    "first": A.first("place"),
    "arg_min": A.arg_min("place", "load"),
    "approx_distinct": A.approx_distinct("place"),
    "bloom_filter": A.bloom_filter("place", 1024),
    "moment_sketch": A.moment_sketch("load"),
    "top_k": A.top_k("load", 2),
}
KEYS = {"no key": None, "text": "place", "number": "plug", "time": "since", "dictionary": "city"}


@pytest.fixture(scope="module")
def events() -> pa.Table:
    rng = np.random.default_rng(7)
    size = 200
    places = rng.choice(["Ulm", "Köln", "", "a longer name of a place"], size)
    return pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, 20_000_000, size)), pa.timestamp("us")),
            "load": pa.array(rng.normal(size=size), mask=rng.random(size) < 0.1),
            "price": pa.array([Decimal(int(n)) / 100 for n in rng.integers(0, 10**6, size)]),
            "place": places,
            "plug": rng.integers(0, 5, size),
            "since": pa.array(rng.integers(0, 3, size), pa.timestamp("us", "Europe/Berlin")),
            "city": pa.array(places).dictionary_encode(),
        }
    )


def sent(table: pa.Table) -> pa.Table:
    """What arrives when a table is sent."""
    wire = Wire({"other": pa.schema([("x", pa.int8())]), "part": table.schema})
    message = wire.decode(wire.encode(Numbered(1, Report(0, {"part": table}))))
    assert isinstance(message, Numbered)
    return message.report.tables["part"]


def assert_sent(table: pa.Table) -> None:
    got = sent(table)
    got.validate(full=True)
    assert got.schema.equals(table.schema, check_metadata=True)
    assert got.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", AGGREGATES)
def test_slices_of_every_kind_of_partial_arrive(name: str, events: pa.Table) -> None:
    query = pf.Query(W.tumbling("1 second"), {name: AGGREGATES[name]}, key="place", time="ts")
    assert_sent(cut(query, events).table)


@pytest.mark.parametrize("name", KEYS)
def test_slices_by_every_kind_of_key_arrive(name: str, events: pa.Table) -> None:
    windows = {"each": W.tumbling("1 second"), "visit": W.session("1 second")}
    query = pf.Query(windows, {"peak": A.max("load")}, key=KEYS[name], time="ts")
    slices = cut(query, events).table
    assert slices.num_rows > 1
    assert_sent(slices)


def test_events_arrive_with_their_dictionaries(events: pa.Table) -> None:
    assert_sent(events)
    assert_sent(events.slice(3, 1))
    assert_sent(events.slice(0, 0))


NESTED = {
    "list": (pa.list_(pa.int32()), [[1, None], [], None]),
    "large list": (pa.large_list(pa.string()), [["a"], None, []]),
    "fixed-size list": (pa.list_(pa.float64(), 2), [[0.5, -0.0], None, [1e300, 2]]),
    "struct": (pa.struct([("a", pa.int8()), ("b", pa.binary())]), [{"a": 1, "b": b"\0"}, None]),
    "list of structs": (pa.list_(pa.struct([("n", pa.int64())])), [[{"n": 1}, None], None]),
    "list of dictionaries": (pa.list_(pa.dictionary(pa.int8(), pa.string())), [["a", "b"], None]),
    "large text": (pa.large_string(), ["ä", None, ""]),
    "large binary": (pa.large_binary(), [b"\xff", None]),
    "fixed-size binary": (pa.binary(3), [b"abc", None]),
    "text view": (pa.string_view(), ["more than twelve characters", None, "short"]),
    "decimal": (pa.decimal128(38, 2), [Decimal("123.45"), None]),
    "wide decimal": (pa.decimal256(60, 2), [Decimal("-1e40"), None]),
    "boolean": (pa.bool_(), [True, None, False]),
    "date": (pa.date32(), [date(2024, 2, 29), None]),
    "duration": (pa.duration("ns"), [timedelta(microseconds=-1), None]),
    "nothing": (pa.null(), [None, None]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None]),
    "dictionary of numbers": (pa.dictionary(pa.int16(), pa.int64()), [7, None, 7]),
    "ordered dictionary": (pa.dictionary(pa.uint8(), pa.string(), ordered=True), ["b", "a"]),
}


@pytest.mark.parametrize("name", NESTED)
def test_columns_of_every_type_arrive(name: str) -> None:
    kind, values = NESTED[name]
    if pa.types.is_dictionary(kind):
        column = pa.array(values).dictionary_encode().cast(kind)
    elif name == "list of dictionaries":
        column = pa.array(values).cast(kind)
    else:
        column = pa.array(values, kind)
    table = pa.table({"x": column})
    assert_sent(table)
    assert_sent(table.slice(1))
    assert_sent(table.slice(0, 0))
    assert_sent(pa.concat_tables([table, table]))


GROWING = {
    "whole": ([0, 1, 3], pa.int64()),
    "down": ([9, 7, -2], pa.int64()),
    "far": ([-(2**63), 2**63 - 1, 0], pa.int64()),
    "time": ([5, 6, 6], pa.timestamp("us", "UTC")),
    "duration": ([1, -1, 1], pa.duration("ns")),
    "short": ([3, 4, 5], pa.int32()),
    "same": (["kitchen"] * 3, pa.string()),
    "empty": ([""] * 3, pa.string()),
    "long": (["a name " * 9] * 3, pa.string()),
    "other": (["hall", "hall", ""], pa.string()),
    "holes": ([7, None, 7], pa.int64()),
    "nobody": (["hall", None, "hall"], pa.string()),
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("repeats", [1, 30])
def test_columns_that_can_be_foreseen_arrive(name: str, repeats: int) -> None:
    values, kind = GROWING[name]
    table = pa.table({"x": pa.array(values * repeats, kind)})
    assert_sent(table)
    assert_sent(table.slice(2))
    assert_sent(table.sort_by("x"))


def test_what_can_be_foreseen_takes_few_bytes() -> None:
    random, n = np.random.default_rng(3), 1_000
    columns = {
        "start": pa.array(np.cumsum(random.integers(240, 256, n)) + 10**15, pa.timestamp("us")),
        "number": np.arange(n) + 12_345,
        "node": ["kitchen"] * n,
        "peak": random.normal(size=n),
    }
    table = pa.table(columns)
    data = Wire({"part": table.schema}).encode(Numbered(1, Report(0, {"part": table})))
    assert len(data) < n * (8 + 1) + 500


def test_columns_that_may_not_be_null_stay_so() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)], metadata={"about": "slices"})
    assert_sent(pa.table({"x": [1, 2]}, schema=schema))


def test_a_large_table_arrives_compressed() -> None:
    table = pa.table({"x": np.arange(1_000_000) // 1000})
    wire = Wire({"part": table.schema})
    message = Numbered(1, Report(0, {"part": table}))
    data = wire.encode(message)
    assert len(data) < table.nbytes / 20
    assert wire.decode(data) == message


def test_numbers_of_a_large_table_are_aligned() -> None:
    """Compiled loops take aligned arrays only, also when what arrived was not compressed."""
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 100_000)
    table = pa.table({"x": values})
    wire = Wire({"part": table.schema})
    data = wire.encode(Numbered(1, Report(0, {"part": table})))
    for wrong_by in [0, 3]:
        message = wire.decode(memoryview(bytes(wrong_by) + data)[wrong_by:])
        assert isinstance(message, Numbered)
        arrived = message.report.tables["part"]["x"].chunk(0).to_numpy()
        assert arrived.flags.aligned
        assert np.array_equal(arrived, values)


def test_a_table_of_another_schema_is_not_sent() -> None:
    wire = Wire({"part": pa.schema([("x", pa.int64())])})
    with pytest.raises(WireError, match=r"(?s)x: double.*was to be sent as one with.*x: int64"):
        wire.encode(Numbered(1, Report(0, {"part": pa.table({"x": [0.5]})})))
    with pytest.raises(WireError, match=r"of the part 'y' was to be sent, but the parts .* 'part'"):
        wire.encode(Numbered(1, Report(0, {"y": pa.table({"x": [1]})})))


def test_a_table_is_not_read_with_another_schema() -> None:
    table = pa.table({"x": pa.array([1], pa.int64())})
    data = Wire({"part": table.schema}).encode(Numbered(1, Report(0, {"part": table})))
    preset = Wire({"part": table.schema}).preset
    other = Wire({"part": pa.schema([("x", pa.float64())])})
    with pytest.raises(WireError, match="a table that this query does not have"):
        other.reading(preset).decode(data)


def test_a_report_may_not_be_larger_than_what_nodes_take() -> None:
    table = pa.table({"x": np.arange(1000)})
    message = Numbered(1, Report(0, {"part": table}))
    with pytest.raises(WireError, match="larger than the 1,000 bytes that nodes take"):
        Wire({"part": table.schema}, limit=1000).encode(message)
    assert table.nbytes < LIMIT
