"""Columns whose values an aggregate cannot take, and results of another type than promised."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A
from paneflow.aggregates import Aggregate
from tests.bad_input.refusing import COLUMNS, TABLE, over, refused

ADDED: list[Callable[[str], Aggregate]] = [A.sum, A.mean, A.var, A.std, A.var_pop, A.std_pop]
"""Booleans can be added up, as 0 and 1."""
NUMERIC: list[Callable[[str], Aggregate]] = [
    A.product,
    A.geometric_mean,
    A.median,
    A.moment_sketch,
    lambda c: A.quantile(c, 0.5),
    lambda c: A.quantiles(c, [0.5]),
    lambda c: A.approx_quantile(c, 0.5),
    lambda c: A.linear_regression(c, "integer"),
    lambda c: A.linear_regression("integer", c),
]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        *((make, kind) for make in NUMERIC for kind in ("boolean", "text", "temporal")),
        *((make, kind) for make in ADDED for kind in ("text", "temporal")),
    ],
    ids=lambda given: given if isinstance(given, str) else str(given("x")),
)
def test_numbers_are_needed(make: Callable[[str], Aggregate], kind: str, engine: str) -> None:
    aggregate, type_ = make(kind), str(COLUMNS.schema.field(kind).type)
    ask = over(COLUMNS, engine=engine, aggregate=aggregate)
    refused(pf.InputError, ask, str(aggregate), repr(kind), type_, "integer or float", "cast")


@pytest.mark.parametrize("kind", ["integer", "float", "boolean", "temporal"])
def test_text_is_needed(kind: str, engine: str) -> None:
    ask = over(COLUMNS, engine=engine, aggregate=A.concat(kind))
    refused(pf.InputError, ask, f"concat({kind})", repr(kind), "kind text", "cast")


@pytest.mark.parametrize("make", [A.bloom_filter, A.approx_distinct], ids=["bloom", "hll"])
def test_times_have_no_hash(make: Callable[[str], Aggregate], engine: str) -> None:
    ask = over(COLUMNS, engine=engine, aggregate=make("temporal"))
    refused(pf.InputError, ask, "'temporal'", "timestamp[ms]", "cast")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1]]),
        pa.array([{"x": 1}]),
        pa.array([b"ab"], pa.binary(2)),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("make", [A.count, A.max, A.collect], ids=lambda make: make.__name__)
def test_types_that_no_aggregate_reads(
    make: Callable[[str], Aggregate], values: pa.Array, engine: str
) -> None:
    table = pa.table({"t": [1], "v": values})
    refused(pf.InputError, over(table, engine=engine, aggregate=make("v")), "'v'", str(values.type))


def test_integers_beyond_int64(engine: str) -> None:
    table = pa.table({"t": [1], "v": pa.array([2**63], pa.uint64())})
    for aggregate in (A.sum("v"), A.max("v"), A.median("v")):
        ask = over(table, engine=engine, aggregate=aggregate)
        refused(pf.InputError, ask, "'v'", "int64", "cast")


def test_bytes_that_are_no_text(engine: str) -> None:
    table = pa.table({"t": [1], "v": pa.array([b"\xff"])})
    refused(pf.InputError, over(table, engine=engine, aggregate=A.concat("v")), "'v'", "cast")


def test_more_values_are_asked_for_than_there_are(engine: str) -> None:
    """Room is needed for what a window holds, not for what was asked."""
    rows = over(TABLE, engine=engine, aggregate=A.top_k("v", 10**12))()
    assert rows["n"].to_pylist() == [[2, 1]]


def test_a_function_that_returns_another_type(engine: str) -> None:
    ask = over(TABLE, engine=engine, aggregate=A.apply(lambda values: "high", "v"))
    refused(pf.InputError, ask, "apply(", "double", "returns")
