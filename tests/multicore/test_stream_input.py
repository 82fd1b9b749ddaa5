"""What a stream refuses, in which words, and that nothing of what it refuses is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME

QUERY = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, key="k", time="t", lateness=5)
GOOD = pa.table({"t": [1, 2], "v": [1, 2], "k": ["a", "b"]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers must be a whole number from 1 to 1024, not 0"),
        ({"workers": 1.5}, "workers must be a whole number from 1 to 1024, not 1.5"),
        ({"workers": True}, "workers must be a whole number from 1 to 1024, not True"),
        ({"sources": 0}, "sources must be a whole number from 1 to 65536, not 0"),
        ({"sources": "two"}, "sources must be a whole number from 1 to 65536, not 'two'"),
        ({"strategy": "fastest"}, "strategy='fastest' is not known: choose 'auto'"),
    ],
    ids=str,
)
def test_options_without_a_meaning(options: dict[str, Any], words: str) -> None:
    with pytest.raises(pf.QueryError, match=words):
        QUERY.open(**options)


def test_an_unknown_strategy_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(pf.QueryError) as caught:
        QUERY.open(strategy="pane")
    assert all(repr(name) in str(caught.value) for name in BY_NAME)


@pytest.mark.parametrize("source", [-1, 2, "0", None], ids=repr)
def test_a_source_that_the_stream_has_not(source: Any) -> None:
    with QUERY.open(sources=2) as stream:
        with pytest.raises(pf.InputError, match="only 0 to 1"):
            stream.push(GOOD, source)
        with pytest.raises(pf.InputError, match="only 0 to 1"):
            stream.end_source(source)


def test_a_source_that_has_ended() -> None:
    with QUERY.open(sources=2) as stream:
        stream.end_source(1)
        with pytest.raises(pf.InputError, match="source 1 has ended"):
            stream.push(GOOD, 1)


def with_column(name: str, values: Any) -> pa.Table:
    return GOOD.set_column(GOOD.schema.get_field_index(name), name, values)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (GOOD.drop_columns(["v"]), "column 'v' is needed"),
        (with_column("v", pa.array(["x", "y"])), "needs a column of kind integer or float"),
        (with_column("t", pa.array([1.5, 2.5])), "the time column 't' has type double"),
        (with_column("t", pa.array([1, 2**62])), "too far from zero"),
        (with_column("t", pa.array([1, 2**63], pa.uint64())), "had type int64 .* now has uint64"),
        (with_column("v", pa.array([1, 2**63], pa.uint64())), "had type int64 .* now has uint64"),
        (with_column("v", pa.array([1.0, 2.5])), "had type int64 .* and now has double"),
        (with_column("k", pa.array([1, 2])), "had type string .* and now has int64"),
        ("a,b", "is not a table that paneflow can read"),
        ([{"t": 1, "v": "x", "k": "a"}, {"t": 1, "v": 2, "k": "a"}], "values of several types"),
    ],
    ids=str,
)
def test_a_batch_that_does_not_fit_is_refused_as_a_whole(batch: Any, words: str) -> None:
    with QUERY.open() as stream:
        stream.push(GOOD)
        with pytest.raises(pf.InputError, match=words):
            stream.push(batch)
        stream.push(GOOD)
        stream.finish()
        rows = pa.concat_tables(stream.results())
        assert stream.metrics().pushed == 4
    assert rows["sum"].to_pylist() == [2, 4]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (with_column("t", pa.array([1, 2**62])), "too far from zero"),
        (with_column("t", pa.array([1, 2**63], pa.uint64())), "cannot be kept as int64"),
        (with_column("v", pa.array([1, 2**63], pa.uint64())), "do not fit into int64"),
    ],
    ids=str,
)
def test_a_first_batch_that_is_refused_leaves_no_types_behind(batch: pa.Table, words: str) -> None:
    with QUERY.open() as stream:
        with pytest.raises(pf.InputError, match=words):
            stream.push(batch)
        stream.push(with_column("v", pa.array([0.5, 2.5])))
        stream.finish()
        assert pa.concat_tables(stream.results())["sum"].to_pylist() == [0.5, 2.5]


def test_types_that_can_become_the_first_without_loss_are_taken() -> None:
    with QUERY.open() as stream:
        stream.push(GOOD)
        stream.push(with_column("v", pa.array([1, 2], pa.int16())))
        stream.push(with_column("v", pa.array([1.0, 2.0])))
        stream.push(with_column("v", pa.nulls(2)))
        stream.push(with_column("k", pa.array(["a", "b"]).dictionary_encode()))
        stream.push(GOOD.select(["k", "v", "t"]).append_column("more", pa.array([1, 2])))
        stream.finish()
        assert pa.concat_tables(stream.results())["sum"].to_pylist() == [5, 10]


def never_null(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))


@pytest.mark.parametrize(
    "batch",
    [
        GOOD.replace_schema_metadata({"made": "elsewhere"}),
        never_null(GOOD),
        GOOD.select(["v", "k", "t"]),
        GOOD.append_column("more", pa.array([1, 2])).select(["more", "k", "t", "v"]),
        pa.concat_tables([GOOD.slice(0, 1), GOOD.slice(1)]),
        GOOD.select(["t", "k", "v"]),
    ],
    ids=lambda batch: str(batch.schema),
)
@pytest.mark.parametrize("first", [True, False])
def test_columns_may_stand_in_any_order_and_be_declared_in_any_way(
    batch: pa.Table, first: bool
) -> None:
    pushes = [batch, batch, GOOD, batch] if first else [GOOD, batch, batch, GOOD]
    with QUERY.open() as stream:
        for push in pushes:
            stream.push(push)
            stream.push(push.combine_chunks().to_batches()[0])
        stream.finish()
        assert pa.concat_tables(stream.results())["sum"].to_pylist() == [8, 16]


@pytest.mark.parametrize(
    ("window", "column", "words"),
    [
        (W.delta("d", 1, 1), pa.array(["x", "y"]), "needs a column of numbers or times"),
        (W.delta("d", 1, 1), pa.array([1, None]), "null or NaN in 1 of 2"),
        (W.delta("d", 1, 1), pa.array([1.0, np.nan]), "null or NaN in 1 of 2"),
        (W.punctuation("d"), pa.array([1, 2]), "needs a boolean column"),
    ],
    ids=str,
)
def test_columns_that_windows_cannot_read(window: W.Window, column: pa.Array, words: str) -> None:
    query = pf.Query(window, {"n": A.count()}, time="t")
    with query.open() as stream:
        with pytest.raises(pf.InputError, match=words):
            stream.push(pa.table({"t": [1, 2], "d": column}))
        assert stream.metrics().pushed == 0


@pytest.mark.parametrize("name", ["round_robin", "pane_line"])
def test_a_strategy_that_cannot_read_text_refuses_the_first_events(name: str) -> None:
    query = pf.Query(W.tumbling(10), {"top": A.max("s")}, time="t")
    with query.open(workers=2, strategy=name) as stream:
        with pytest.raises(pf.UnsupportedError, match="reads text"):
            stream.push([{"t": 1, "s": "a"}])
        assert stream.metrics().pushed == 0


def test_a_strategy_that_cannot_serve_the_windows_refuses_when_it_is_opened() -> None:
    query = pf.Query(W.session(10), {"n": A.count()}, time="t")
    with pytest.raises(pf.UnsupportedError, match="strategy='round_robin' cannot answer"):
        query.open(workers=2, strategy="round_robin")


@pytest.mark.parametrize("make", [list, lambda: GOOD.slice(0, 0), lambda: GOOD.to_pandas()[:0]])
def test_an_empty_batch_changes_nothing(make: Callable[[], Any]) -> None:
    with QUERY.open() as stream:
        stream.push(make())
        stream.push(GOOD)
        stream.push(make())
        stream.finish()
        assert pa.concat_tables(stream.results())["sum"].to_pylist() == [1, 2]
