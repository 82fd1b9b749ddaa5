"""Questions without a meaning are refused as they are stated."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.windows import Window
from tests.bad_input.refusing import COUNT, TABLE, Query, refused, shown


@pytest.mark.parametrize("windows", [[], {}])
def test_no_windows(windows: Any) -> None:
    refused(pf.QueryError, partial(Query, windows, COUNT), "no window")


@pytest.mark.parametrize("windows", ["tumbling(5)", 5, None, W.sliding], ids=shown)
def test_windows_that_are_none(windows: Any) -> None:
    refused(pf.QueryError, partial(Query, windows, COUNT), repr(windows), "sliding(")


def test_a_window_that_is_none_among_windows() -> None:
    refused(pf.QueryError, partial(Query, [W.tumbling(5), "5 s"], COUNT), "'5 s'")
    refused(pf.QueryError, partial(Query, {"hour": "1 h"}, COUNT), "'hour'", "'1 h'")


def test_a_window_given_twice() -> None:
    twice = [W.tumbling("90 s"), W.count(3), W.tumbling("1 min 30 s")]
    refused(pf.QueryError, partial(Query, twice, COUNT), "tumbling(1m30s)", "dict of labels")
    labelled = dict(zip("abc", twice, strict=True))
    assert list(pf.Query(labelled, COUNT).windows) == ["a", "b", "c"]


def test_a_label_that_is_no_text() -> None:
    refused(pf.QueryError, partial(Query, {1: W.tumbling(5)}, COUNT), "label", "1")


@pytest.mark.parametrize("aggregates", [{}, None, [A.count()], A.count()], ids=str)
def test_aggregates_that_are_no_dict(aggregates: Any) -> None:
    ask = partial(Query, W.tumbling(5), aggregates)
    refused(pf.QueryError, ask, repr(aggregates), "aggregates.max(")


@pytest.mark.parametrize("aggregate", ["max", A.count, sum, 3], ids=shown)
def test_an_aggregate_that_is_none(aggregate: Any) -> None:
    ask = partial(Query, W.tumbling(5), {"peak": aggregate})
    refused(pf.QueryError, ask, "'peak'", repr(aggregate), 'max("load")')


@pytest.mark.parametrize("name", [1, "", None])
def test_the_name_of_an_aggregate_that_is_no_text(name: Any) -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), {name: A.count()}), repr(name))


def test_a_definition_that_was_not_called() -> None:
    total = A.define(
        lambda x: x, lambda a, b: a + b, lambda p: p, 0.0, commutative=True, name="total"
    )
    refused(pf.QueryError, partial(Query, W.tumbling(5), {"all": total}), "'all'", "call it")
    refused(pf.QueryError, total, "total", "columns")
    refused(pf.QueryError, lambda: total(3), "3")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["window", "seq", "start", "end", "house"])
def test_a_result_named_like_another_column(name: str) -> None:
    ask = partial(Query, W.tumbling(5), {name: A.count()}, key="house")
    refused(pf.QueryError, ask, repr(name), "another name")


@pytest.mark.parametrize("name", ["window", "seq", "start", "end"])
def test_a_key_named_like_a_result_column(name: str) -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, key=name), repr(name), "rename")


def test_a_key_named_twice() -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, key=["k", "h", "k"]), "k, h, k")


@pytest.mark.parametrize("key", [5, "", [1], [None], ["k", ""]], ids=str)
def test_a_key_that_is_no_name(key: Any) -> None:
    bad = key[-1] if isinstance(key, list) else key
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, key=key), repr(bad), "name")


def test_a_time_that_is_also_a_key() -> None:
    ask = partial(Query, W.tumbling(5), COUNT, key=["k", "ts"], time="ts")
    refused(pf.QueryError, ask, "'ts'", "leave it out")


@pytest.mark.parametrize("time", [None, "", ["t"], 3], ids=str)
def test_a_time_that_is_no_name(time: Any) -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, time=time), repr(time))


@pytest.mark.parametrize("lateness", ["soon", -1, "-5 s", 1.5, None], ids=str)
def test_lateness_that_is_no_duration(lateness: object) -> None:
    ask = partial(Query, W.tumbling(5), COUNT, lateness=lateness)
    refused(pf.QueryError, ask, "lateness", repr(lateness))


@pytest.mark.parametrize("name", ["spark", "Table", None, 3], ids=str)
def test_an_unknown_engine(name: Any) -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    for ask in (lambda: query.over(TABLE, engine=name), lambda: query.explain(engine=name)):
        refused(pf.QueryError, ask, f"engine={name!r}", "'table'", "'oracle'")


@pytest.mark.parametrize("name", ["bubble", "SBA", None, 3], ids=str)
def test_an_unknown_merge(name: Any, engine: str) -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    slices = query.slice(TABLE)
    for ask in (
        lambda: query.over(TABLE, engine=engine, merge=name),
        lambda: query.explain(engine=engine, merge=name),
        lambda: query.finish(slices, merge=name),
    ):
        refused(pf.QueryError, ask, f"merge={name!r}", "'sba'", "'flat_fat'")


def test_errors_are_value_errors_too() -> None:
    assert issubclass(pf.QueryError, ValueError)
    assert issubclass(pf.InputError, ValueError)
    assert not issubclass(pf.UnsupportedError, ValueError)


# Windows and aggregates without a meaning.


@pytest.mark.parametrize(
    ("state", "given"),
    [
        (lambda: W.sliding("1 hour", 0), "0"),
        (lambda: W.sliding("1 hour", "0 s"), "'0 s'"),
        (lambda: W.sliding(0, 1), "0"),
        (lambda: W.tumbling("an hour"), "'an hour'"),
        (lambda: W.tumbling(1.5), "1.5"),
        (lambda: W.tumbling(dt.date(2024, 1, 1)), "2024"),
        (lambda: W.session("-5 s"), "'-5 s'"),
        (lambda: W.count(0), "0"),
        (lambda: W.slide_by_tuple("1 h", 2.0), "2.0"),  # type: ignore[arg-type]
        (lambda: W.slide_by_time(5, "0 s"), "'0 s'"),
        (lambda: W.delta("km", 0, 1), "0"),
        (lambda: W.punctuation(3), "3"),  # type: ignore[arg-type]
    ],
)
def test_windows_without_a_meaning(state: Callable[[], object], given: str) -> None:
    refused(pf.QueryError, state, given)


@pytest.mark.parametrize("size", [2**63, 2**64])
@pytest.mark.parametrize(
    "state",
    [W.count, lambda n: W.count(1, n), lambda n: W.slide_by_tuple(1, n), W.slide_by_time],
    ids=["count", "slide", "slide_by_tuple", "slide_by_time"],
)
def test_numbers_of_events_beyond_int64(state: Callable[..., Window], size: int) -> None:
    arguments = (size, 1) if state is W.slide_by_time else (size,)
    refused(pf.QueryError, lambda: state(*arguments), str(size))


@pytest.mark.parametrize(
    ("state", "given"),
    [
        (lambda: A.max(""), "''"),
        (lambda: A.sum(3), "3"),  # type: ignore[arg-type]
        (lambda: A.count(["v"]), "['v']"),  # type: ignore[arg-type]
        (lambda: A.arg_max("v", by=None), "None"),  # type: ignore[arg-type]
        (lambda: A.quantile("v", 1.5), "1.5"),
        (lambda: A.quantile("v", True), "True"),
        (lambda: A.quantile("v", math.nan), "nan"),
        (lambda: A.quantiles("v", []), "no shares"),
        (lambda: A.quantiles("v", [0.5, 50]), "50"),
        (lambda: A.top_k("v", 0), "0"),
        (lambda: A.top_k("v", 2.0), "2.0"),  # type: ignore[arg-type]
        (lambda: A.concat("s", separator=3), "3"),  # type: ignore[arg-type]
        (lambda: A.bloom_filter("v", bits=100), "100"),
        (lambda: A.bloom_filter("v", hashes=0), "0"),
        (lambda: A.moment_sketch("v", q=2), "2"),
        (lambda: A.moment_sketch("v", k=1), "1"),
        (lambda: A.approx_distinct("v", lg_k=99), "99"),
        (lambda: A.approx_quantile("v", 0.5, k=1), "1"),
        (lambda: A.approx_quantile("v", -0.1), "-0.1"),
        (lambda: A.apply("fit", "v"), "'fit'"),  # type: ignore[arg-type]
        (lambda: A.apply(len), "columns"),
        (lambda: A.apply(len, 3), "3"),  # type: ignore[arg-type]
        (lambda: A.apply(len, "v", returns="float"), "'float'"),
    ],
)
def test_aggregates_without_a_meaning(state: Callable[[], object], given: str) -> None:
    refused(pf.QueryError, state, given)
