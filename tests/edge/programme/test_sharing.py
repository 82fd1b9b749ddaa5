"""Which queries share the slices of another, and why others do not."""

from __future__ import annotations

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.programme.sharing import Sharing, sharing
from paneflow.engines.edge.question import Question

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("w", pa.int64())])
HOST = pf.Query(
    {"ten": W.tumbling(10, offset=3), "gap": W.session(7)},
    {"mean": A.mean("v"), "peak": A.max("v")},
    key="k",
    time="t",
)


def found(
    windows: W.Window, aggregate: A.Aggregate, key: str | None = "k", host: pf.Query = HOST
) -> Sharing | str:
    query = pf.Query(windows, {"a": aggregate}, key, "t")
    return sharing(Question(host, SCHEMA), Question(query, SCHEMA))


@pytest.mark.parametrize(
    "window",
    [W.tumbling(10, offset=3), W.sliding(60, 20, offset=13), W.tumbling(30, -7), W.session(7)],
    ids=str,
)
@pytest.mark.parametrize("aggregate", [A.max("v"), A.sum("v"), A.count()], ids=str)
def test_windows_of_whole_slices_and_their_partials_are_shared(
    window: W.Window, aggregate: A.Aggregate
) -> None:
    assert isinstance(found(window, aggregate), Sharing)


@pytest.mark.parametrize(
    ("window", "aggregate", "key", "why"),
    [
        (W.tumbling(10), A.max("v"), "k", "begins or ends between the edges"),
        (W.sliding(15, 10, offset=3), A.max("v"), "k", "begins or ends between the edges"),
        (W.tumbling(5, offset=3), A.max("v"), "k", "begins or ends between the edges"),
        (W.session(8), A.max("v"), "k", "sessions such as those"),
        (W.tumbling(10, offset=3), A.min("v"), "k", "which those that are cut do not hold"),
        (W.tumbling(10, offset=3), A.max("w"), "k", "which those that are cut do not hold"),
        (W.tumbling(10, offset=3), A.max("v"), None, "slices are cut by the key k"),
        (W.tumbling(10, offset=3), A.median("v"), "k", "is not answered from slices alone"),
        (W.session(7), A.median("v"), "k", "which those that are cut do not hold"),
    ],
)
def test_others_are_not_shared_for_a_reason(
    window: W.Window, aggregate: A.Aggregate, key: str | None, why: str
) -> None:
    reason = found(window, aggregate, key)
    assert isinstance(reason, str)
    assert why in reason
