"""Slices that were stored and came back otherwise: refused, or finished into the same rows.

Damage that leaves a valid table of slices behind, such as another value, cannot be seen. All else
is random here: nulls, missing and renamed columns, other types, labels, counts and lists, garbled
metadata. What comes out is an `InputError`, never an error from inside, and never rows made of
nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.slicing.slices import MARK

TABLE = pa.table(
    {
        "t": np.arange(60) * 3 % 50,
        "v": pa.array(np.arange(60) % 7, mask=np.arange(60) % 11 == 0),
        "x": np.arange(60) / 8,
        "s": [f"text {k % 5}" for k in range(60)],
        "k": [None if k % 9 == 0 else k % 3 for k in range(60)],
    }
)
QUERY = pf.Query(
    {"slide": W.sliding(12, 4), "visit": W.session(1)},
    {
        "sum": A.sum("v"),
        "exact": A.sum("x", exact=True),
        "std": A.std("x"),
        "first": A.first("s"),
        "peak": A.arg_max("s", by="v"),
        "median": A.median("v"),
        "all": A.collect("s"),
        "bloom": A.bloom_filter("s", bits=64),
        "distinct": A.approx_distinct("s"),
    },
    key="k",
    time="t",
)
Damage = Callable[[pa.Table, np.random.Generator], pa.Table]


@pytest.fixture(scope="module")
def slices() -> pf.Slices:
    return QUERY.slice(TABLE)


@pytest.fixture(scope="module")
def whole(slices: pf.Slices) -> pa.Table:
    """The rows of the slices as they were."""
    return QUERY.finish(slices)


def _some_column(table: pa.Table, random: np.random.Generator) -> int:
    return int(random.integers(table.num_columns))


def _replaced(table: pa.Table, at: int, values: list[Any], type_: pa.DataType) -> pa.Table:
    return table.set_column(at, table.column_names[at], pa.array(values, type_))


def a_null(table: pa.Table, random: np.random.Generator) -> pa.Table:
    at = _some_column(table, random)
    values = table.column(at).to_pylist()
    values[int(random.integers(len(values)))] = None
    return _replaced(table, at, values, table.schema.field(at).type)


def a_missing_column(table: pa.Table, random: np.random.Generator) -> pa.Table:
    return table.remove_column(_some_column(table, random))


def a_renamed_column(table: pa.Table, random: np.random.Generator) -> pa.Table:
    names = table.column_names
    names[_some_column(table, random)] = "another"
    return table.rename_columns(names)


def a_column_twice(table: pa.Table, random: np.random.Generator) -> pa.Table:
    at = _some_column(table, random)
    return table.append_column(table.schema.field(at), table.column(at))


def another_type(table: pa.Table, random: np.random.Generator) -> pa.Table:
    at = _some_column(table, random)
    others = [pa.int8(), pa.string(), pa.float32(), pa.bool_(), pa.list_(pa.int64())]
    type_ = others[int(random.integers(len(others)))]
    return table.set_column(at, table.column_names[at], pa.nulls(table.num_rows, type_))


def another_number(table: pa.Table, random: np.random.Generator) -> pa.Table:
    numbers = ["start", "last", "rows", *(n for n in table.column_names if n.startswith("count("))]
    at = table.column_names.index(str(random.choice(numbers)))
    values = table.column(at).to_pylist()
    far = int(random.choice([-(2**63), -(2**62), -1, 0, 2**40, 2**62, 2**63 - 1]))
    values[int(random.integers(len(values)))] = far
    return _replaced(table, at, values, table.schema.field(at).type)


def another_label(table: pa.Table, random: np.random.Generator) -> pa.Table:
    values = table.column("slicing").to_pylist()
    values[int(random.integers(len(values)))] = str(random.choice(["", "hour", "time "]))
    return _replaced(table, table.column_names.index("slicing"), values, pa.string())


def a_shorter_list(table: pa.Table, random: np.random.Generator) -> pa.Table:
    lists = [k for k, f in enumerate(table.schema) if pa.types.is_list(f.type)]
    at = lists[int(random.integers(len(lists)))]
    values = table.column(at).to_pylist()
    longest = max(range(len(values)), key=lambda k: len(values[k]))
    values[longest] = values[longest][:-1]
    return _replaced(table, at, values, table.schema.field(at).type)


def garbled_bytes(table: pa.Table, random: np.random.Generator) -> pa.Table:
    at = next(k for k, f in enumerate(table.schema) if pa.types.is_binary(f.type))
    values = table.column(at).to_pylist()
    values[int(random.integers(len(values)))] = random.bytes(int(random.integers(0, 20)))
    return _replaced(table, at, values, table.schema.field(at).type)


def garbled_metadata(table: pa.Table, random: np.random.Generator) -> pa.Table:
    about = json.loads(table.schema.metadata[MARK])
    field = str(random.choice(list(about)))
    wrong: list[Any] = [None, 0, 2**70, "", "x", [], {}, {"windows": 3}]
    wrong.append(base64.b64encode(random.bytes(30)).decode())
    about[field] = wrong[int(random.integers(len(wrong)))]
    text = json.dumps(about).encode()
    if random.random() < 0.3:
        text = text[: int(random.integers(len(text)))]
    return table.replace_schema_metadata({MARK: text} if random.random() < 0.9 else None)


DAMAGES: list[Damage] = [
    a_null,
    a_missing_column,
    a_renamed_column,
    a_column_twice,
    another_type,
    another_number,
    another_label,
    a_shorter_list,
    garbled_bytes,
    garbled_metadata,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_slices_are_refused(damage: Damage, slices: pf.Slices, whole: pa.Table) -> None:
    refused = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        damaged = damage(slices.table, random)
        try:
            rows = QUERY.finish(pf.Slices(damaged))
        except pf.InputError as error:
            assert "slices" in str(error) or "int64" in str(error) or "2**61" in str(error), error
            refused += 1
        else:
            # A null key is a key, a null may stand where nothing was counted, and so on.
            assert rows.schema == whole.schema
    assert refused >= 20


@pytest.mark.parametrize("count", [-1, 2])
def test_a_slice_of_one_event_that_counts_another_number_of_values_is_refused(count: int) -> None:
    query = pf.Query(W.tumbling(5), {"mean": A.mean("x")}, time="t")
    table = query.slice(TABLE.slice(0, 1)).table
    damaged = _replaced(table, table.column_names.index("count(x)"), [count], pa.int64())
    with pytest.raises(pf.InputError, match="counts of x are not between 0 and 'rows'"):
        query.finish(pf.Slices(damaged))


def test_slices_that_come_back_as_they_were_are_finished(
    slices: pf.Slices, whole: pa.Table
) -> None:
    shuffled = slices.table.select([*reversed(slices.table.column_names)])
    assert QUERY.finish(pf.Slices(shuffled)).equals(whole)
    with_more = slices.table.append_column("mine", pa.nulls(len(slices)))
    assert QUERY.finish(pf.Slices(with_more)).equals(whole)


def test_slices_without_rows_have_no_rows(slices: pf.Slices, whole: pa.Table) -> None:
    assert QUERY.finish(pf.Slices(slices.table.slice(0, 0))).equals(whole.slice(0, 0))


@pytest.mark.parametrize("until", [-(2**63), -(2**70), -(2**62)])
def test_nothing_ends_before_the_beginning_of_time(until: int) -> None:
    query = pf.Query(W.sliding(12, 4), {"sum": A.sum("v")}, time="t")
    assert query.finish(query.slice(TABLE), until=until).num_rows == 0
    everything = query.finish(query.slice(TABLE))
    assert query.finish(query.slice(TABLE), after=until, until=-until).equals(everything)


def test_slices_of_other_columns_are_refused() -> None:
    other = pf.Query(W.sliding(12, 4), {"sum": A.sum("elsewhere")}, time="t")
    with pytest.raises(pf.InputError, match="another query"):
        other.finish(QUERY.slice(TABLE))
