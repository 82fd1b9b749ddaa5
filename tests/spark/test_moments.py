"""Moments of nasty columns on Spark, against exact arithmetic: slices by Spark and by Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.spark.versions import check_query, stream_identity
from paneflow.windows import Window
from tests.properties.nasty import FLOATS, INTEGERS, MOMENTS, assert_moments, nasty_table
from tests.spark.support import frame_of, in_order

N = 120
SLIDING: dict[str, Window] = {"hop": W.sliding(60, 15), "whole": W.tumbling(1200)}
APART = 10_000
"""Between the times of two kinds of columns, so that no window holds both."""


def joined(r: random.Random) -> pa.Table:
    """All kinds of columns in one table, one after the other in time."""
    kinds = zip(FLOATS, list(INTEGERS) * len(FLOATS), strict=False)
    tables = []
    for number, (floats, integers) in enumerate(kinds):
        table = nasty_table(r, floats, integers, N)
        times = pa.array(table["t"].to_numpy() + number * APART // 1200 * 1200)
        tables.append(table.set_column(0, "t", times))
    return pa.concat_tables(tables)


@pytest.mark.parametrize(
    "windows",
    [pytest.param(SLIDING, marks=pytest.mark.long), {"whole": W.tumbling(1200)}],
    ids=["many", "one"],
)
def test_moments_of_nasty_columns(spark: Any, windows: dict[str, Window]) -> None:
    table = joined(random.Random(len(windows)))
    query = pf.Query(windows, MOMENTS, key="k", time="t")
    frame = frame_of(spark, table).repartition(5)
    order = query.over(table).select(["window", "k", "seq", "start", "end"])
    rows = in_order(query, query.over(frame).toArrow())
    # The order of rows in which exact moments are listed.
    marks = {tuple(row.values()): at for at, row in enumerate(in_order(query, order).to_pylist())}
    wanted = [marks[tuple(row.values())] for row in order.to_pylist()]
    assert_moments(windows, table, rows.take(pa.array(wanted)))


@pytest.mark.parametrize("window", [W.tumbling(10_000), W.sliding(10_000, 2_500)], ids=str)
def test_integers_stay_in_spark_and_are_exact(spark: Any, window: Window) -> None:
    """The native form of a variance of integers: the same bits as over a table."""
    r = np.random.default_rng(5)
    columns = {"t": np.arange(20_000)}
    for shift in (0, 31, 32, 47, 62):
        columns[f"i{shift}"] = (r.integers(-(2**62), 2**62, 20_000) >> 60) + (1 << shift)
    columns["all"] = r.integers(-(2**63), 2**63 - 1, 20_000)
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    names = table.column_names[1:]
    spreads: dict[str, A.Aggregate] = {name: A.std(name) for name in names}
    spreads |= {f"mean {name}": A.mean(name) for name in names}
    query = pf.Query(window, spreads, time="t")
    frame = query.over(frame_of(spark, table).repartition(3))
    rows = in_order(query, frame.toArrow())
    expected = in_order(query, query.over(table))
    for name in spreads:
        assert rows[name].to_pylist() == expected[name].to_pylist()


def test_a_checkpoint_with_partials_of_an_older_form_is_refused() -> None:
    asked = stream_identity(pf.Query(W.tumbling("1 s"), {"s": A.std("v"), "n": A.count()}))
    older = {name: value for name, value in asked.items() if name != "forms"}
    with pytest.raises(pf.InputError, match=r"partials of 's' in a form .* new checkpoint"):
        check_query(older, asked)
    unchanged = stream_identity(pf.Query(W.tumbling("1 s"), {"n": A.count(), "m": A.mean("v")}))
    assert "forms" not in unchanged
