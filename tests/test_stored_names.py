"""Names that outlive a process: pickled queries, and functions that slices are told apart by.

A file that defines one of these may not move: what was pickled refers to it, and so does the digest
of a user's function that calls it.
"""

from __future__ import annotations

import pickle
import pickletools

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.aggregate import Aggregate
from paneflow.windows import Window


def kept(x: float) -> float:
    return x


AGGREGATES: dict[str, list[Aggregate]] = {
    "counting": [A.count()],
    "defined": [A.define(kept, max, kept, -1e300, commutative=True)("v")],
    "extremes": [
        *(A.min("v"), A.max("v"), A.first("v"), A.last("v")),
        *(A.arg_min("v", "w"), A.arg_max("v", "w")),
    ],
    "holistic": [
        *(A.median("v"), A.quantile("v", 0.9), A.quantiles("v", [0.1, 0.9])),
        *(A.mode("v"), A.distinct("v"), A.top_k("v", 3)),
    ],
    "regression": [A.linear_regression("v", "w")],
    "sequences": [A.collect("v"), A.concat("v"), A.apply(len, "v", returns=pa.int64())],
    "sketches": [
        *(A.bloom_filter("v"), A.moment_sketch("v", 0.5)),
        *(A.approx_distinct("v"), A.approx_quantile("v", 0.5)),
    ],
    "spread": [A.var("v"), A.std("v"), A.var_pop("v"), A.std_pop("v")],
    "sums": [A.sum("v"), A.mean("v"), A.product("v"), A.geometric_mean("v")],
}
WINDOWS: dict[str, list[Window]] = {
    "count": [W.count(3)],
    "delta": [W.delta("v", 8, 3)],
    "punctuation": [W.punctuation("m")],
    "session": [W.session(3)],
    "slide_by_time": [W.slide_by_time(2, 5)],
    "slide_by_tuple": [W.slide_by_tuple(4, 2)],
    "sliding": [W.sliding(4, 2), W.tumbling(5)],
}


@pytest.mark.parametrize(("room", "parts"), [("aggregates", AGGREGATES), ("windows", WINDOWS)])
def test_what_is_pickled_names_the_same_modules_in_every_version(
    room: str, parts: dict[str, list[Aggregate | Window]]
) -> None:
    for module, several in parts.items():
        for part in several:
            assert type(part).__module__ == f"paneflow.{room}.{module}", part


def test_a_pickled_query_names_no_other_modules() -> None:
    aggregates = [each for several in AGGREGATES.values() for each in several]
    windows = [each for several in WINDOWS.values() for each in several]
    named = {f"a{k}": each for k, each in enumerate(aggregates)}
    pickled = pickle.dumps(pf.Query(windows, named, time="t"), protocol=2)
    found = {
        argument.split(" ")[0]
        for code, argument, _ in pickletools.genops(pickled)
        if code.name == "GLOBAL" and argument.startswith("paneflow.")
    }
    assert found == {
        *(f"paneflow.aggregates.{module}" for module in (*AGGREGATES, "laws")),
        *(f"paneflow.windows.{module}" for module in (*WINDOWS, "duration")),
        "paneflow.query",
    }


def test_functions_that_users_call_in_their_own_stay_in_their_modules() -> None:
    assert A.bloom_contains.__module__ == "paneflow.aggregates._bloom"
