"""How queries, plans, streams, slices, windows and aggregates show themselves."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.windows import CLOSE_AFTER, Custom, Window, WindowClass

EVENTS = [{"t": 1, "v": 5.0, "k": "secret"}, {"t": 4, "v": 7.0, "k": "hidden"}]


@dataclass(frozen=True)
class Every(Custom):
    """A custom window with parameters of several types."""

    window_class = WindowClass.FCF
    columns = ()
    initial = (0,)

    a: Any = 1
    b: Any = 2

    @staticmethod
    def step(state: tuple[int], t: int) -> tuple[tuple[int], int]:
        return state, CLOSE_AFTER


WINDOWS = [
    *(
        make(*lengths, offset=offset)
        for make, lengths in ((W.sliding, (4, 2)), (W.sliding, ("4 s", "2 s")), (W.tumbling, (4,)))
        for offset in (0, 1, -1, "1 s", "-1 s")
    ),
    *(W.slide_by_time(2, slide, offset) for slide in (5, "5 s") for offset in (0, 1, "1 us")),
    *(W.count(3, slide, partial) for slide in (1, 3) for partial in (False, True)),
    *(W.slide_by_tuple(r, n, p) for r in (4, "4 us") for n in (1, 2) for p in (False, True)),
    *(W.delta("v", r, s, p) for r, s in ((4, 2), ("4 s", "2 s")) for p in (False, True)),
    *(W.session(gap) for gap in (0, "0 s", 5, "5 us", "5 s")),
    *(W.punctuation(c, p) for c in ("m", "m, partial=True", "'m'") for p in (False, True)),
    *(Every(a, b) for a, b in (("x, y", "z"), ("x", "y, z"), ("1", 2), (1, 2), (1.0, 2))),
    *(Every(a, b) for a, b in ((1, "2"), (None, 2), ("None", 2), ("'1'", 2), ("1, 2", 2))),
]


def test_different_windows_have_different_labels() -> None:
    assert len(WINDOWS) > 40
    for one, other in itertools.combinations(WINDOWS, 2):
        assert str(one) != str(other), (one, other)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_windows_repr_is_the_call_that_makes_it(window: Window) -> None:
    names = {name: getattr(W, name) for name in W.__all__} | {"Every": Every}
    assert eval(repr(window), names) == window


def test_no_offset_is_the_same_with_a_unit_and_without() -> None:
    assert W.sliding("4 s", "2 s", offset="0 s") == W.sliding("4 s", "2 s")
    assert W.slide_by_time(4, 2, offset="0 s") == W.slide_by_time(4, 2)


AGGREGATES = {
    "count()": A.count(),
    "count(v)": A.count("v"),
    "sum(v)": A.sum("v"),
    "sum(v, exact=True)": A.sum("v", exact=True),
    "mean(v)": A.mean("v"),
    "arg_min(v, w)": A.arg_min("v", by="w"),
    "median(v)": A.median("v"),
    "quantile(v, 0.99)": A.quantile("v", 0.99),
    "quantile(v, 0.9999999)": A.quantile("v", 0.9999999),
    "quantiles(v, 0.25, 1)": A.quantiles("v", [0.25, 1]),
    "top_k(v, 3)": A.top_k("v", 3),
    "concat(v)": A.concat("v"),
    "concat(v, separator=', ')": A.concat("v", ", "),
    "bloom_filter(v)": A.bloom_filter("v"),
    "bloom_filter(v, bits=128, hashes=3)": A.bloom_filter("v", 128, 3),
    "moment_sketch(v)": A.moment_sketch("v"),
    "moment_sketch(v, q=0.9, k=5)": A.moment_sketch("v", 0.9, 5),
    "approx_quantile(v, 0.5)": A.approx_quantile("v", 0.5),
    "approx_quantile(v, 0.5, k=100)": A.approx_quantile("v", 0.5, 100),
    "approx_distinct(v)": A.approx_distinct("v"),
    "approx_distinct(v, lg_k=10)": A.approx_distinct("v", 10),
    "linear_regression(v, w)": A.linear_regression("v", "w"),
}


@pytest.mark.parametrize(("text", "aggregate"), AGGREGATES.items(), ids=AGGREGATES)
def test_an_aggregate_shows_every_parameter_that_is_not_the_default(
    text: str, aggregate: A.Aggregate
) -> None:
    assert str(aggregate) == text
    assert eval(repr(aggregate), vars(A)) == aggregate


def test_a_users_function_is_shown_by_its_name() -> None:
    def span(v: Any) -> Any:
        return v.max() - v.min()

    assert repr(A.apply(span, "v")) == "apply(span, 'v')"
    assert str(A.apply(span, "v", returns=pa.int64())) == "apply(span, v, returns=int64)"
    add = A.define(lambda x: x, lambda a, b: a + b, float, 0.0, commutative=True, name="add")
    assert repr(add) == "define(name='add')"
    assert repr(add("v")) == "add('v')"


def test_slices_name_aggregates_in_a_way_that_never_changes() -> None:
    """Slices and checkpoints that other versions stored hold these texts."""
    aggregates = {"s": A.sum("v", exact=True), "q": A.quantiles("v", [0.5])}
    cut = pf.Query(W.tumbling(5), aggregates, time="t").slice(EVENTS)
    assert cut.identity["aggregates"] == {
        "s": "Sum(columns=('v',), exact=True)",
        "q": "Quantiles(columns=('v',), qs=(0.5,))",
    }
    whole = A.apply(len, "v", returns=pa.int64())
    (text,) = (
        pf.Query(W.tumbling(5), {"n": whole}, time="t")
        .slice(EVENTS)
        .identity["aggregates"]
        .values()
    )
    assert text.startswith("apply(len, v) int64 ")


QUERY = pf.Query(
    {"hour": W.sliding(60, 5)},
    {"peak": A.max("v"), "mean": A.mean("v")},
    key="k",
    time="t",
    lateness=3,
)
MANY = pf.Query(
    {f"w{i}\n": W.tumbling(i) for i in range(1, 500)},
    {f"a{i}" + "x" * 500: A.max("v") for i in range(500)},
    key=[f"k{i}" for i in range(500)],
    time="t",
)


def test_a_query_shows_what_it_asks() -> None:
    assert repr(QUERY) == (
        "Query(windows: hour=sliding(60, 5); aggregates: peak=max(v), mean=mean(v); key: k; "
        "time: t; lateness: 3)"
    )
    alone = pf.Query(W.tumbling(5), {"n": A.count()}, time="t")
    assert repr(alone) == "Query(windows: tumbling(5); aggregates: n=count(); time: t)"


def test_a_query_with_other_windows_or_another_key_is_otherwise_the_same() -> None:
    query = pf.Query(W.tumbling("1 h"), {"n": A.count()}, "k", time="t", lateness="5 s")
    rest = "aggregates: n=count(); key: k; time: t; lateness: 5s)"
    assert (
        repr(query.with_windows({"w": W.session("1 s")})) == f"Query(windows: w=session(1s); {rest}"
    )
    assert repr(query.with_key(["k"])) == f"Query(windows: tumbling(1h); {rest}"


def test_a_plan_shows_how_much_there_is_to_print() -> None:
    assert repr(QUERY.explain()) == "Plan(engine='table', merge='auto', 2 operators, 2 reasons)"
    html = QUERY.explain(EVENTS)._repr_html_()
    for part in ("engine", "table", "merge", "rows", "max(v) for peak", "because"):
        assert part in html


def test_slices_show_how_many_they_are() -> None:
    assert repr(QUERY.slice(EVENTS)) == (
        "Slices(rows: 2; windows: hour=sliding(60, 5); aggregates: peak, mean; key: k)"
    )


def test_a_stream_shows_its_state() -> None:
    with QUERY.open(workers=1, sources=2) as stream:
        assert repr(stream) == "Stream(state=open, strategy=single, workers=1, sources=2)"
        assert repr(stream.plan).startswith("StreamPlan(strategy='single', workers=1, ")
        assert "single" in stream.plan._repr_html_()
        stream.push([EVENTS[0]])
        shown = [repr(stream), stream._repr_html_()]
        stream.finish()
        assert "state=finished" in repr(stream)
    assert "state=closed" in repr(stream)
    assert not any("secret" in text for text in shown)


SHOWN = {
    "query": QUERY,
    "long query": MANY,
    "plan": MANY.explain(),
    "slices": QUERY.slice(EVENTS),
    "window": W.punctuation("<b>&\n"),
    "aggregate": A.sum("<b>&\n"),
    "hostile query": pf.Query({"<b>": W.punctuation("<b>")}, {"<b>": A.max("<b>")}, time="<b>"),
}


@pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)
def test_display_are_small_escaped_and_without_data(shown: Any) -> None:
    line, html = repr(shown), shown._repr_html_()
    assert "\n" not in line
    assert len(line) < 1000
    assert not {"secret", "hidden", "5.0", "7.0"} & set(re.findall(r"[\w.]+", line + html))
    tags = set(re.findall(r"</?(\w+)[^>]*>", html))
    assert tags <= {"table", "caption", "tr", "th", "td", "br", "code"}
    assert "<b>" not in html
    assert len(html) < 100_000
