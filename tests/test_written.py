"""Queries and schemas as text: what is written is read as the same, and nothing else is."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import random
import string
import sys
import textwrap
import tomllib
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.schemas import read_schema, write_schema
from paneflow.written import AGGREGATES, WINDOWS, find_query, read_query, write_query
from tests.properties import cases

OWN = ("define_commutative", "define_ordered", "apply")
"""Aggregates of the tests that need functions."""
NEEDS_PYTHON = {"apply", "define", "bloom_contains"}
SEEDS = range(60)


def asked(**parts: object) -> dict[str, object]:
    return {"windows": "tumbling(5)", "aggregates": {"n": "count()"}, **parts}


def same(query: pf.Query, other: pf.Query) -> bool:
    return (
        list(query.windows.items()) == list(other.windows.items())
        and list(query.aggregates.items()) == list(other.aggregates.items())
        and (query.key, query.time, query.lateness) == (other.key, other.time, other.lateness)
    )


def through_json(query: pf.Query) -> pf.Query:
    return read_query(json.loads(json.dumps(write_query(query))))


@pytest.mark.parametrize("kind", [kind for kind in cases.WINDOWS if kind != "threshold"])
@pytest.mark.parametrize("stamped", [False, True], ids=["integers", "timestamps"])
def test_every_window_comes_back_from_text(kind: str, stamped: bool) -> None:
    for seed in SEEDS:
        window = cases.WINDOWS[kind](random.Random(f"{kind} {seed}"), stamped)
        query = pf.Query({"a label": window, "another": W.count(3)}, {"n": A.count()})
        assert same(through_json(query), query), window


@pytest.mark.parametrize("name", [name for name in cases.AGGREGATES if name not in OWN])
def test_every_aggregate_comes_back_from_text(name: str) -> None:
    for seed in SEEDS:
        aggregate = cases.AGGREGATES[name](random.Random(f"{name} {seed}"))
        query = pf.Query(W.tumbling(5), {"result": aggregate})
        assert same(through_json(query), query), aggregate


@pytest.mark.parametrize(
    "aggregate",
    [
        A.approx_distinct("v", lg_k=20),
        A.approx_quantile("v", 0.123456789012345, k=300),
        A.bloom_filter("v", bits=2048, hashes=7),
        A.concat("v", separator="'\"\\\n \u00e4"),
        A.max("a column with 'quotes' and \"more\""),
        A.moment_sketch("v", 0.9, k=12),
        A.quantiles("v", [1 / 3, 2 / 3, 1]),
        A.sum("v", exact=True),
    ],
    ids=lambda aggregate: aggregate.name,
)
def test_options_and_odd_names_come_back(aggregate: A.Aggregate) -> None:
    query = pf.Query(W.tumbling(5), {"result": aggregate})
    assert same(through_json(query), query)


@pytest.mark.parametrize(
    "window",
    [
        W.tumbling(dt.timedelta(microseconds=1), offset="-1 hour 30 minutes"),
        W.sliding("1 hour 30 minutes", "250 ms", offset="1 us"),
        W.delta("sent_at", "1 hour", "1 minute", partial=True),
        W.delta("meter", 1e300, 0),
        W.session(0),
        W.session("0 s"),
    ],
    ids=str,
)
def test_odd_durations_come_back(window: W.Window) -> None:
    query = pf.Query(window, {"n": A.count()})
    assert same(through_json(query), query)


@pytest.mark.parametrize("lateness", [0, 7, "0 s", "10 seconds", dt.timedelta(minutes=90)], ids=str)
@pytest.mark.parametrize("key", [None, "house", ["house", "plug"]], ids=str)
def test_key_time_and_lateness_come_back(lateness: object, key: object) -> None:
    query = pf.Query(W.tumbling(5), {"n": A.count()}, key, "at", lateness)  # type: ignore[arg-type]
    back = through_json(query)
    assert (back.key, back.time, back.lateness.value) == (
        query.key,
        query.time,
        query.lateness.value,
    )


def test_every_constructor_can_be_written() -> None:
    def functions(module: object) -> set[str]:
        public = {name: getattr(module, name) for name in module.__all__}  # type: ignore[attr-defined]
        return {name for name, thing in public.items() if inspect.isfunction(thing)}

    assert set(WINDOWS) == functions(W) - {"duration"}
    assert set(AGGREGATES) == functions(A) - NEEDS_PYTHON


def test_a_query_from_toml_gives_the_rows_of_the_same_query_in_python() -> None:
    text = """
        key = "house"
        time = "t"
        windows = ["tumbling(5)", "count(2, partial=True)"]
        [aggregates]
        peak = "max('load')"
        middle = "quantiles('load', [0.25, 0.75])"
    """
    events = [{"t": t, "house": "ab"[t % 2], "load": float(t * 7 % 5)} for t in range(20)]
    query = pf.Query(
        [W.tumbling(5), W.count(2, partial=True)],
        {"peak": A.max("load"), "middle": A.quantiles("load", [0.25, 0.75])},
        key="house",
        time="t",
    )
    assert read_query(tomllib.loads(text)).over(events) == query.over(events)


WRONG = {
    "max(load)": "give text in quotes, as in 'load'",
    "A.max('load')": r"write max\(\.\.\.\), without what is before the dot",
    "maximum('load')": "no aggregate 'maximum'",
    "maks('load')": "did you mean 'max'",
    "max": "is not a call",
    "max('load'": "cannot be read",
    "": "cannot be read",
    "max('load', 3)": r"too many positional arguments; it is called as max\(column\)",
    "max('load', colum=3)": "unexpected keyword argument 'colum'",
    "sum('load', exact='yes')": "exact must be True or False, not 'yes'",
    "quantile('load', 2)": "q must be a number from 0 to 1, not 2",
    "max(*['load'])": "is not a value",
    "max(**{'column': 'load'})": r"not as \*\*options",
    "max(__import__('os').getcwd())": "is not a value",
    "max('load') or 1": "is not a call",
    "(lambda: 1)()": "does not begin with the name of a function",
    "sliding('1 h', '1 s')": "sliding makes a window: write it under windows",
    "define(name='largest')": 'query = "my_module:my_query"',
    "apply(fit, 'load')": 'query = "my_module:my_query"',
    "Largest('load')": 'query = "my_module:my_query"',
    "max('lo\\d')": "invalid escape sequence",
    f"max({'(' * 5000}": "cannot be read",
    f"max({'-' * 700}1)": "is not a value",
    f"max('{'x' * 20000}')": "give at most 10000",
    "max('\0')": "cannot be read",
}


@pytest.mark.parametrize(("text", "reason"), WRONG.items(), ids=[text[:40] for text in WRONG])
def test_what_is_no_call_of_a_constructor_is_refused(text: str, reason: str) -> None:
    with pytest.raises(pf.QueryError, match=reason) as caught:
        read_query(asked(aggregates={"peak": text}))
    assert "aggregate 'peak'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_escape_without_a_meaning_is_refused_also_where_warnings_are_ignored() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(pf.QueryError, match="invalid escape sequence"):
            read_query(asked(aggregates={"peak": r"max('lo\d')"}))


def test_no_text_makes_anything_but_an_aggregate_or_an_error() -> None:
    r = random.Random(17)
    pieces = ["'load'", ",", "0.5", "k=3", "[", "]", "**", "{}", "(", ")", *string.punctuation]
    made = refused = 0
    for _ in range(3000):
        arguments = "".join(r.choices(pieces, weights=[9, 6, 3, *[1] * (len(pieces) - 3)], k=3))
        text = f"{r.choice(list(AGGREGATES))}({arguments}"
        try:
            query = read_query(asked(aggregates={"it": f"{text})"}))
        except pf.QueryError as error:
            assert "aggregate 'it'" in str(error)
            refused += 1
        else:
            assert isinstance(query.aggregates["it"], A.Aggregate)
            made += 1
    assert made > 10 and refused > 1000


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (asked(window="tumbling(5)"), "a query has no 'window': did you mean 'windows'"),
        ({"windows": "tumbling(5)"}, "the query has no 'aggregates'"),
        ({"aggregates": {"n": "count()"}}, "the query has no 'windows'"),
        (asked(aggregates="count()"), "give a name for each"),
        (asked(aggregates={"n": 5}), "aggregate 'n' was given as 5: give text"),
        (asked(windows=5), "the window was given as 5: give text"),
        (asked(windows=["tumbling(5)", "tumbl(5)"]), "window 2 is .*did you mean 'tumbling'"),
        (asked(windows={"short": "max('v')"}), "'short' .* max makes an aggregate: write it under"),
        (asked(windows={"short": "tumbling('5 fortnights')"}), "'fortnights' is not a unit"),
        (asked(windows=[]), "no window given"),
        (asked(key=7), "key must be"),
        (asked(time=""), "time must be"),
        (asked(lateness="soon"), "lateness was given as 'soon'"),
        ("tumbling(5)", "a query was given as 'tumbling"),
    ],
    ids=lambda given: None if isinstance(given, dict) else given[:30],
)
def test_a_wrong_query_is_refused_with_its_reason(given: dict[str, object], reason: str) -> None:
    with pytest.raises(pf.QueryError, match=reason):
        read_query(given)


@pytest.mark.parametrize(
    ("windows", "aggregates"),
    [
        (Threshold("v", 1.0), {"n": A.count()}),
        (W.tumbling(5), {"spread": A.apply(cases.spread, "v")}),
        (W.tumbling(5), {"affine": cases.affine("v")}),
        # Its text is that of the built-in aggregate.
        (W.tumbling(5), {"max": A.define(max, max, max, 0.0, commutative=True, name="max")("v")}),
    ],
    ids=["custom", "apply", "define", "named like a built-in"],
)
def test_functions_of_ones_own_are_not_written(windows: W.Window, aggregates: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(pf.QueryError, match="cannot be written as text: make the query in Python"):
        write_query(pf.Query(windows, aggregates))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with a query, in a folder of its own."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    code = """
        import paneflow as pf
        from paneflow import aggregates as A, windows as W

        loads = pf.Query(W.tumbling(5), {"n": A.count()}, time="t")
        other = 5
    """
    name = f"queries_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
    (tmp_path / f"{name}_broken.py").write_text("1 / 0")
    return name


def test_a_query_is_found_in_a_module_beside_the_file(module: str, tmp_path: Path) -> None:
    query = find_query(f"{module}:loads", beside=tmp_path)
    assert query.over([{"t": 1}, {"t": 2}])[0]["n"] == 2


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (":lods", "there is no 'lods': did you mean 'loads'"),
        (":other", "'other' is 5"),
        ("_broken:loads", "cannot be imported: ZeroDivisionError"),
        ("_absent:loads", "cannot be imported: ModuleNotFoundError"),
        (".loads", "name a module and a query in it"),
        (":", "name a module and a query in it"),
    ],
)
def test_a_query_that_is_not_found_is_refused(
    module: str, tmp_path: Path, ending: str, reason: str
) -> None:
    with pytest.raises(pf.QueryError, match=reason):
        find_query(module + ending, beside=tmp_path)


SCHEMA = pa.schema(
    [
        *(
            (f"{sign}int{bits}", f"{sign}int{bits}")
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
        ),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("yes", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("plain", pa.timestamp("ns")),
        ("utc", pa.timestamp("us", "UTC")),
        ("berlin", pa.timestamp("ms", "Europe/Berlin")),
        ("shifted", pa.timestamp("s", "+02:00")),
        ("price", pa.decimal128(10, 2)),
        ("coarse", pa.decimal128(38, -3)),
    ]
)


def test_schemas_come_back_from_text() -> None:
    assert read_schema(json.loads(json.dumps(write_schema(SCHEMA)))) == SCHEMA


def test_the_names_that_arrow_prints_are_read() -> None:
    printed = {field.name: str(field.type) for field in SCHEMA if field.name != "f32"}
    assert read_schema(printed) == SCHEMA.remove(SCHEMA.get_field_index("f32"))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"v": "float"}, "say float32 or float64"),
        ({"v": "flaot64"}, "column 'v' has the type 'flaot64'.*did you mean 'float64'"),
        ({"v": "timestamp"}, "did you mean"),
        ({"v": "timestamp[h]"}, "not known"),
        ({"v": "timestamp[us, Mars/Olympus]"}, "time zone 'Mars/Olympus' of column 'v'"),
        ({"v": "timestamp[us, ../etc]"}, "time zone"),
        ({"v": "decimal128(39, 2)"}, "1 to 38 digits"),
        ({"v": 5}, "give the name of a type"),
        ({"": "int8"}, "name of a column"),
        ({}, "no columns"),
        (["ts"], "a name and a type for each"),
    ],
    ids=str,
)
def test_a_wrong_schema_is_refused(columns: dict[str, str], reason: str) -> None:
    with pytest.raises(pf.InputError, match=reason):
        read_schema(columns)


@pytest.mark.parametrize("type_", [pa.list_(pa.int8()), pa.large_string(), pa.float16()], ids=str)
def test_a_type_without_a_text_is_refused(type_: pa.DataType) -> None:
    with pytest.raises(pf.InputError, match=r"column 'v' has the type .* cannot be written"):
        write_schema(pa.schema([("v", type_)]))
