"""Every public call with hundreds of wrong arguments: an answer, or an error a user can act on.

Each parameter of each call is replaced by every one of `wrong_values.WRONG` in turn, the others
staying right. What may come out is a result or a `PaneflowError`. What takes an argument without a
word must also be able to answer, so questions are asked of a small table.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.wrong_values import WRONG

TABLE = pa.table({"t": [1, 2, 9], "v": [3, 1, 2], "s": ["a", "b", "a"], "b": [True, False, True]})
QUERY = pf.Query(W.tumbling(5), {"sum": A.sum("v")}, time="t")
SLICES = QUERY.slice(TABLE)
OF_ONE_COLUMN = [
    *("count", "sum", "mean", "geometric_mean", "product", "std", "std_pop", "var", "var_pop"),
    *("min", "max", "first", "last", "median", "mode", "distinct", "collect"),
]


def ask_window(window: Any) -> Any:
    return pf.Query(window, {"n": A.count()}, time="t").over(TABLE)


def ask_aggregate(aggregate: Any) -> Any:
    return pf.Query(W.tumbling(5), {"x": aggregate}, time="t").over(TABLE)


def windows() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    right: dict[str, dict[str, Any]] = {
        "tumbling": {"range": 5, "offset": 0},
        "sliding": {"range": 5, "slide": 2, "offset": 0},
        "count": {"size": 2, "slide": 1, "partial": False},
        "session": {"gap": 3},
        "slide_by_tuple": {"range": 3, "every": 1, "partial": False},
        "slide_by_time": {"size": 2, "slide": 3, "offset": 0},
        "delta": {"column": "t", "range": 5, "slide": 1, "partial": False},
        "punctuation": {"column": "b", "partial": False},
    }
    for name, arguments in right.items():
        make = getattr(W, name)
        yield f"W.{name}", lambda make=make, **given: ask_window(make(**given)), arguments
    for kind in (W.Sliding, W.Count, W.Session, W.SlideByTuple, W.SlideByTime, W.Delta):
        made = {
            W.Sliding: W.sliding(5, 2),
            W.Count: W.count(2, 1),
            W.Session: W.session(3),
            W.SlideByTuple: W.slide_by_tuple(3, 1),
            W.SlideByTime: W.slide_by_time(2, 3),
            W.Delta: W.delta("t", 5, 1),
        }[kind]
        yield f"W.{kind.__name__}", lambda kind=kind, **g: ask_window(kind(**g)), vars(made)
    yield "W.duration", W.duration, {"given": 5, "what": "range", "least": 0}


def aggregates() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    right: dict[str, dict[str, Any]] = {name: {"column": "v"} for name in OF_ONE_COLUMN}
    right |= {
        "sum": {"column": "v", "exact": False},
        "quantile": {"column": "v", "q": 0.5},
        "quantiles": {"column": "v", "qs": [0.5]},
        "top_k": {"column": "v", "k": 2},
        "arg_min": {"column": "v", "by": "t"},
        "arg_max": {"column": "v", "by": "t"},
        "concat": {"column": "s", "separator": "-"},
        "bloom_filter": {"column": "v", "bits": 64, "hashes": 2},
        "moment_sketch": {"column": "v", "q": 0.5, "k": 4},
        "approx_distinct": {"column": "v", "lg_k": 8},
        "approx_quantile": {"column": "v", "q": 0.5, "k": 8},
        "linear_regression": {"y": "v", "x": "t"},
    }
    for name, arguments in right.items():
        make = getattr(A, name)
        yield f"A.{name}", lambda make=make, **given: ask_aggregate(make(**given)), arguments

    def apply(function: Any, column: Any, returns: Any) -> Any:
        return ask_aggregate(A.apply(function, column, returns=returns))

    yield "A.apply", apply, {"function": len, "column": "v", "returns": pa.int64()}

    def define(column: Any, **given: Any) -> Any:
        return ask_aggregate(A.define(**given)(column))

    right_define: dict[str, Any] = {
        "lift": lambda x: x,
        "combine": lambda a, b: a + b,
        "lower": lambda a: a,
        "identity": 0,
        "invert": None,
        "commutative": True,
        "idempotent": False,
        "name": "mine",
        "samples": None,
        "column": "v",
    }
    yield "A.define", define, right_define
    words = ask_aggregate(A.bloom_filter("v", bits=64, hashes=2))["x"][0].as_py()
    yield "A.bloom_contains", A.bloom_contains, {"filter": words, "value": 3, "hashes": 2}


def queries() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    def query(**given: Any) -> Any:
        return pf.Query(**given).over(TABLE)

    yield (
        "Query",
        query,
        {
            "windows": W.tumbling(5),
            "aggregates": {"sum": A.sum("v")},
            "key": "s",
            "time": "t",
            "lateness": 0,
        },
    )
    over = {"table": TABLE, "engine": "auto", "merge": "auto", "max_ahead": None, "emit": "final"}
    yield "Query.over", QUERY.over, over | {"late": False, "idle": None, "max_rows": 100}
    yield "Query.explain", QUERY.explain, {"table": TABLE, "engine": "auto", "merge": "auto"}
    yield "Query.slice", QUERY.slice, {"table": TABLE}
    finish = {"slices": SLICES, "merge": "auto", "after": None, "until": None, "max_rows": 100}
    yield "Query.finish", QUERY.finish, finish
    yield "Query.with_key", lambda **g: QUERY.with_key(**g).over(TABLE), {"key": ["s"]}
    with_windows = {"windows": {"w": W.tumbling(5)}}
    yield "Query.with_windows", lambda **g: QUERY.with_windows(**g).over(TABLE), with_windows
    for name in ("check", "types", "result_schema"):
        yield f"Query.{name}", getattr(QUERY, name), {"schema": TABLE.schema}
    yield "warm_up", pf.warm_up, {"query": QUERY, "table_or_schema": TABLE.schema}
    yield "Slices", lambda **g: QUERY.finish(pf.Slices(**g)), {"table": SLICES.table}
    yield "Slices.merge", SLICES.merge, {"other": SLICES}
    yield (
        "Query.write_stream",
        QUERY.write_stream,
        {"frame": None, "sink": "out", "checkpoint": "c"},
    )


def streams() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    def opened(**given: Any) -> list[Any]:
        with QUERY.open(**given) as stream:
            stream.push(TABLE)
            stream.finish()
            return list(stream.results())

    right = {"workers": 1, "strategy": "auto", "sources": 1, "max_rows": 100, "emit": "final"}
    yield (
        "Query.open",
        opened,
        right
        | {
            "merge": "auto",
            "late": False,
            "idle": None,
            "max_ahead": None,
        },
    )

    def pushed(first: Any, batch: Any, source: Any, wait: Any, ended: Any) -> list[Any]:
        with QUERY.open(sources=2, late=True) as stream:
            if first:
                stream.push(TABLE, source=1)
            stream.push(batch, source=source)
            stream.end_source(ended)
            stream.finish()
            return [*stream.results(wait), *stream.late(wait)]

    right = {"batch": TABLE, "source": 0, "wait": 0.0, "ended": 1}
    yield "Stream", functools.partial(pushed, False), right
    yield "Stream, begun", functools.partial(pushed, True), right


CALLS = {name: (call, right) for name, call, right in (*windows(), *aggregates(), *queries())}
CALLS |= {name: (call, right) for name, call, right in streams()}


def shown(value: Any) -> str:
    try:
        return f"{type(value).__name__} {str(value)[:60]!r}"
    except Exception:  # a lazy frame of polars that cannot be collected
        return type(value).__name__


def complaint(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """What is wrong with how a call ended; None if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(**arguments)
    except pf.PaneflowError as error:
        return None if len(str(error)) > 20 else f"says too little: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return None


@pytest.mark.parametrize(
    "name",
    # Whatever is right is compiled: for a sketch that takes seconds.
    [pytest.param(n, marks=pytest.mark.long if n == "A.moment_sketch" else ()) for n in CALLS],
)
def test_a_wrong_argument_is_refused_in_our_words(name: str) -> None:
    call, right = CALLS[name]
    if name != "Query.write_stream":  # which has no right arguments without a Spark
        call(**right)
    wrong = [
        f"{parameter}={shown(value)}: {found}"
        for parameter in right
        for value in WRONG
        if (found := complaint(call, {**right, parameter: value})) is not None
    ]
    assert not wrong, "\n".join([f"{len(wrong)} wrong arguments come out bare:", *wrong])
