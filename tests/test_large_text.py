"""Text columns beyond what one array of a plain type holds: read in large types, given in chunks.

That is 2 GiB. Most tests pretend that it is a few bytes.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import texts

AGGREGATES: dict[str, A.Aggregate] = {
    "first": A.first("s"),
    "high": A.max("s"),
    "mode": A.mode("s"),
    "several": A.distinct("s"),
    "top": A.top_k("s", 2),
    "all": A.collect("s"),
    "joined": A.concat("s", "-"),
    "at": A.arg_max("s", by="t"),
}
TYPES = (pa.string(), pa.binary(), pa.large_string(), pa.string_view())


def events(type_: pa.DataType, chunks: int) -> pa.Table:
    r = random.Random(chunks)

    def column(word: str) -> pa.Array:
        made = [r.choice([None, f"{word}{r.randint(0, 9)}", word * 4]) for _ in range(30)]
        return pa.array(made, pa.string()).cast(type_)

    parts = [
        pa.table(
            {"t": sorted(r.randint(0, 40) for _ in range(30)), "k": column("k"), "s": column("s")}
        )
        for _ in range(chunks)
    ]
    return pa.concat_tables(parts)


WINDOWS = {"one": [W.tumbling(10)], "two": [W.sliding(10, 5), W.session(2)]}


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("windows", WINDOWS)
def test_texts_come_in_chunks(
    windows: str, type_: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MOST", 40)
    table = events(type_, 3)
    wanted = {name: AGGREGATES[name] for name in ("first", "high", "mode", "several", "at")}
    query = pf.Query(WINDOWS[windows], wanted, key="k", time="t")
    rows = query.over(table)
    assert rows.equals(query.over(table, engine="oracle"))
    for name in ("k", "first"):
        assert (rows[name].num_chunks > 1) == (type_ in texts.LARGE)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("windows", WINDOWS)
def test_lists_of_texts_and_joined_texts_come_in_chunks(
    windows: str, type_: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MOST", 500)
    table = events(type_, 6)
    query = pf.Query(WINDOWS[windows], AGGREGATES, key="k", time="t")
    rows = query.over(table)
    assert rows.equals(query.over(table, engine="oracle"))
    assert rows["joined"].num_chunks > 1
    assert (rows["all"].num_chunks > 1) == (type_ in texts.LARGE)


def test_one_text_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST", 20)
    query = pf.Query(W.tumbling(10), {"joined": A.concat("s")}, time="t")
    with pytest.raises(pf.UnsupportedError, match="2 GiB"):
        query.over(events(pa.string(), 1))


@pytest.mark.exhaustive
def test_keys_and_values_of_more_than_two_gibibytes() -> None:
    """A chunk of 64 MiB comes 40 times over, so the input takes no more memory than that."""
    distinct = [f"{k:04}" + "x" * 65_532 for k in range(1000)]
    chunk = pa.array(distinct)
    text = pa.chunked_array([chunk] * 40)
    assert text.nbytes > 2**31
    n = len(text)
    table = pa.table({"t": pa.array(range(n)), "k": text, "s": text})
    rows: Any = pf.Query(W.tumbling(1000), {"n": A.distinct("s")}, key="k", time="t").over(table)
    assert rows.num_rows == n and rows["k"].type == pa.string()
    assert rows["k"].num_chunks > 1
    for row in (0, 999, 1000, n - 1):
        assert rows["k"][row].as_py() == distinct[row % 1000]
