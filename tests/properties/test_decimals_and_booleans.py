"""Decimals and booleans: sums are exact, all engines agree, and what is refused says what to do."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.values import EVERY, kind_of
from paneflow.engines.multicore.choosing import BY_NAME
from tests.every_engine import engines
from tests.multicore.support import UNORDERED
from tests.properties.compare import assert_same_rows

DECIMALS = {
    str(type_): type_
    for type_ in (
        *(pa.decimal32(7, 2), pa.decimal64(18, 6), pa.decimal128(5, 2), pa.decimal128(18, 0)),
        *(
            pa.decimal128(18, 18),
            pa.decimal128(38, 10),
            pa.decimal128(38, 37),
            pa.decimal128(9, -3),
        ),
        *(pa.decimal256(40, 3), pa.decimal256(76, 30), pa.decimal256(76, 50)),
    )
}
AGGREGATES: dict[str, A.Aggregate] = {
    "n": A.count("v"),
    "sum": A.sum("v"),
    "exact": A.sum("v", exact=True),
    "mean": A.mean("v"),
    "var": A.var("v"),
    "std": A.std_pop("v"),
    "product": A.product("v"),
    "geometric": A.geometric_mean("v"),
    "low": A.min("v"),
    "high": A.max("v"),
    "first": A.first("v"),
    "last": A.last("v"),
    "at_low": A.arg_min("v", by="v"),
    "when_high": A.arg_max("t", by="v"),
    "median": A.median("v"),
    "quantiles": A.quantiles("v", [0.1, 0.6, 1.0]),
    "mode": A.mode("v"),
    "kinds": A.distinct("v"),
    "top": A.top_k("v", 3),
    "all": A.collect("v"),
}
WINDOWS = {
    "tumbling": W.tumbling(6),
    "sliding": W.sliding(9, 2),
    "session": W.session(2),
    "count": W.count(5, 3),
    "slide_by_tuple": W.slide_by_tuple(7, 2),
}


def decimal(digits: int, scale: int) -> Decimal:
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


def column(r: random.Random, type_: pa.DataType, n: int) -> pa.Array:
    """Values of every size that int64 has room for, some of them null."""
    most = min(10**type_.precision, 2**63) - 1
    ends = [most, -most, most - 1, 2**53, 2**53 + 1, -(2**53) - 1, 10**6, 7, 1, 0, -1]
    near = [x for x in ends if abs(x) <= most] + [r.randint(-most, most) for _ in range(3)]
    some = r.sample(near, r.randint(1, len(near)))
    digits = [None if r.random() < 0.2 else r.choice(some) for _ in range(n)]
    return pa.array([None if d is None else decimal(d, type_.scale) for d in digits], type_)


def answers(table: pa.Table, window: W.Window) -> dict[str, Callable[[pf.Query], pa.Table]]:
    """The engines other than the oracle that have such windows."""
    ways = engines(table)
    del ways["oracle"]
    if not isinstance(window, W.Sliding | W.Session):
        del ways["slices"]
    return ways


@pytest.mark.parametrize("type_", DECIMALS.values(), ids=DECIMALS)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_all_engines_agree_on_decimals(window: W.Window, type_: pa.DataType) -> None:
    r = random.Random(f"{window} {type_}")
    for n in (12, 40):
        times = sorted(r.randint(0, n) for _ in range(n))
        table = pa.table(
            {"t": times, "k": [r.choice("ab") for _ in range(n)], "v": column(r, type_, n)}
        )
        query = pf.Query(window, AGGREGATES, key="k", time="t")
        expected = query.over(table, engine="oracle")
        assert expected.num_rows
        for name, answer in answers(table, window).items():
            try:
                assert_same_rows(query, answer(query), expected)
            except AssertionError as error:
                raise AssertionError(f"{name}: {table.to_pydict()}") from error


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_all_engines_agree_on_booleans(window: W.Window) -> None:
    r = random.Random(str(window))
    names = [name for name in AGGREGATES if name not in ("product", "geometric", "median")]
    names.remove("quantiles")
    for n in (12, 40):
        times = sorted(r.randint(0, n) for _ in range(n))
        values = [r.choice([True, False, True, None]) for _ in range(n)]
        table = pa.table({"t": times, "v": pa.array(values, pa.bool_())})
        query = pf.Query(window, {name: AGGREGATES[name] for name in names}, time="t")
        expected = query.over(table, engine="oracle")
        assert expected.num_rows
        for answer in answers(table, window).values():
            assert_same_rows(query, answer(query), expected)


def test_sums_and_shares_of_booleans() -> None:
    table = pa.table({"t": [1, 2, 3, 4, 8], "v": [True, False, None, True, None]})
    query = pf.Query(W.tumbling(5), {"true": A.sum("v"), "share": A.mean("v")}, time="t")
    for answer in engines(table).values():
        rows = answer(query)
        assert rows["true"].to_pylist() == [2, None]
        assert rows["share"].to_pylist() == [2 / 3, None]
        assert rows.schema.field("true").type == pa.int64()


@pytest.mark.parametrize(
    "aggregate", [A.median("v"), A.quantile("v", 0.3), A.product("v")], ids=str
)
def test_booleans_are_no_numbers_to_other_aggregates(aggregate: A.Aggregate) -> None:
    with pytest.raises(pf.InputError, match="'v' has type bool: cast it"):
        pf.Query(W.tumbling(5), {"x": aggregate}, time="t").over(pa.table({"t": [1], "v": [True]}))


def test_a_sum_of_decimals_is_exact_beyond_int64_and_float64() -> None:
    largest = decimal(2**63 - 1, 4)
    values = [largest] * 1000 + [Decimal("0.0001")]
    table = pa.table({"t": [1] * 1001, "v": pa.array(values, pa.decimal128(19, 4))})
    total = Fraction(largest) * 1000 + Fraction(1, 10_000)
    query = pf.Query(W.tumbling(5), {"sum": A.sum("v"), "mean": A.mean("v")}, time="t")
    for answer in engines(table).values():
        rows = answer(query)
        assert rows.schema.field("sum").type == pa.decimal128(38, 4)
        assert Fraction(rows["sum"][0].as_py()) == total
        assert rows["mean"][0].as_py() == pytest.approx(float(total / 1001), rel=1e-15)


def test_tenths_are_not_rounded() -> None:
    """As floats, 0.1 + 0.2 is not 0.3."""
    prices = pa.array([Decimal("0.1"), Decimal("0.2"), Decimal("0.3")])
    table = pa.table({"t": [1, 2, 3], "v": prices})
    query = pf.Query(W.tumbling(3), {"sum": A.sum("v"), "mean": A.mean("v")}, time="t")
    for answer in engines(table).values():
        assert answer(query)["sum"].to_pylist() == [Decimal("0.3"), Decimal("0.3")]
        assert answer(query)["mean"].to_pylist() == [0.15, 0.3]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.decimal128(38, 2), Decimal(10) ** 20),
        (pa.decimal128(38, 18), Decimal(10)),
        (pa.decimal256(76, 0), -Decimal(2**63) - 1),
    ],
    ids=str,
)
def test_decimals_with_too_many_digits_are_refused(type_: pa.DataType, value: Decimal) -> None:
    table = pa.table({"t": [1, 2, 3], "v": pa.array([Decimal(1), None, value], type_)})
    query = pf.Query(W.tumbling(5), {"high": A.max("v")}, time="t")
    for answer in engines(table).values():
        with pytest.raises(pf.InputError, match=r"digits do not fit into int64.*float64"):
            answer(query)
    with query.open() as stream:
        with pytest.raises(pf.InputError, match="digits do not fit into int64"):
            stream.push(table)
        stream.push(table.slice(0, 2))  # nothing of the refused batch was taken
        stream.finish()
        (rows,) = stream.results()
        assert rows["high"].to_pylist() == [Decimal(1)]


def test_what_lies_in_the_place_of_a_null_does_not_matter() -> None:
    wide = pa.array([10**30, 5], pa.decimal128(38, 0))
    holey = pa.Array.from_buffers(wide.type, 2, [pa.py_buffer(b"\x02"), wide.buffers()[1]])
    table = pa.table({"t": [1, 2], "v": holey})
    query = pf.Query(W.tumbling(5), {"sum": A.sum("v"), "high": A.max("v")}, time="t")
    for answer in engines(table).values():
        assert answer(query).select(["sum", "high"]).to_pylist() == [
            {"sum": Decimal(5), "high": Decimal(5)}
        ]


TAKEN_AS_FLOATS: dict[str, Any] = {
    "define": A.define(
        lambda x: x, lambda a, b: a + b, lambda p: p, identity=0.0, commutative=True, name="add"
    )("v"),
    "apply": A.apply(np.sum, "v"),
    "linear_regression": A.linear_regression("v", "t"),
    "bloom_filter": A.bloom_filter("v", 64),
    "approx_quantile": A.approx_quantile("v", 0.5),
    "approx_distinct": A.approx_distinct("v"),
    "moment_sketch": A.moment_sketch("v", 0.5),
}


@pytest.mark.parametrize("aggregate", TAKEN_AS_FLOATS.values(), ids=TAKEN_AS_FLOATS)
def test_other_aggregates_refuse_decimals_and_say_what_to_do(aggregate: A.Aggregate) -> None:
    table = pa.table({"t": [1], "v": [Decimal("1.5")]})
    query = pf.Query(W.tumbling(5), {"x": aggregate}, time="t")
    for answer in engines(table).values():
        with pytest.raises(pf.InputError, match=r"'v' has type decimal128\(2, 1\): cast it to"):
            answer(query)


@pytest.mark.parametrize("window", [W.delta("v", 3, 1), Threshold("v", 0.0)], ids=str)
def test_windows_refuse_decimals_and_say_what_to_do(window: W.Window) -> None:
    table = pa.table({"t": [1], "v": [Decimal("1.5")]})
    query = pf.Query(window, {"n": A.count()}, time="t")
    for name in ("oracle", "table"):
        with pytest.raises(pf.InputError, match=r"decimal128\(2, 1\).*cast it"):
            query.over(table, engine=name)
    with query.open() as stream, pytest.raises(pf.InputError, match="cast it"):
        stream.push(table)


def test_batches_of_a_stream_may_have_other_digits_as_long_as_nothing_is_lost() -> None:
    query = pf.Query(W.tumbling(5), {"sum": A.sum("v")}, time="t")
    with query.open() as stream:
        stream.push(pa.table({"t": [1], "v": pa.array([Decimal("1.25")], pa.decimal128(9, 2))}))
        stream.push(pa.table({"t": [2], "v": pa.array([Decimal("2.5")], pa.decimal64(5, 1))}))
        with pytest.raises(pf.InputError, match="without loss"):
            stream.push(pa.table({"t": [3], "v": [Decimal("0.001")]}))
        with pytest.raises(pf.InputError, match="without loss"):
            stream.push(pa.table({"t": [3], "v": [0.5]}))
        stream.finish()
        (rows,) = stream.results()
        assert rows["sum"].to_pylist() == [Decimal("3.75")]


def test_sums_of_duckdb_come_as_it_gives_them() -> None:
    """Its sums of integers are HUGEINT, which Arrow carries as decimals."""
    daily = duckdb.sql("select range // 10 as t, sum(range) as v from range(100) group by 1")
    rows = pf.Query(W.tumbling(5), {"sum": A.sum("v"), "high": A.max("v")}, time="t").over(daily)
    assert rows["sum"].to_pylist() == [Decimal(1225), Decimal(3725)]
    assert rows["high"].to_pylist() == [Decimal(445), Decimal(945)]


@pytest.mark.parametrize("strategy", BY_NAME)
def test_every_strategy_adds_up_decimals_and_booleans(strategy: str) -> None:
    r = random.Random(strategy)
    n = 60
    table = pa.table(
        {
            "t": list(range(n)),
            "k": [r.choice("abc") for _ in range(n)],
            "v": column(r, pa.decimal128(18, 4), n),
            "b": pa.array([r.choice([True, False, None]) for _ in range(n)], pa.bool_()),
        }
    )
    kept = ("sum", "mean", "var", "low", "high", "first", "at_low", "product", "n")
    aggregates = {name: AGGREGATES[name] for name in kept}
    aggregates |= {"true": A.sum("b"), "share": A.mean("b"), "spread": A.std("b")}
    if strategy in UNORDERED:
        aggregates = {n: a for n, a in aggregates.items() if not a.laws.order_sensitive}
    query = pf.Query({"a": W.sliding(20, 5), "b": W.tumbling(7)}, aggregates, key="k", time="t")
    with query.open(workers=2, strategy=strategy) as stream:
        for at in range(0, n, 20):
            stream.push(table.slice(at, 20))
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert_same_rows(query, rows, query.over(table, engine="oracle"))


def test_kinds_that_travel_to_another_process_are_the_same_objects() -> None:
    for kind in (*EVERY, kind_of(pa.decimal128(9, 2), "v")):
        assert pickle.loads(pickle.dumps(kind)) is kind
