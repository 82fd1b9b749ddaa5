"""NaN is greater than every number, in every engine."""

from __future__ import annotations

import itertools
import math

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.every_engine import engines


@pytest.mark.parametrize("values", list(itertools.permutations([math.nan, 1.0, math.inf])), ids=str)
def test_max_is_nan_wherever_it_stands_and_min_is_not(values: tuple[float, ...]) -> None:
    table = pa.table({"t": range(len(values)), "v": values})
    query = pf.Query(W.tumbling(10), {"high": A.max("v"), "low": A.min("v")}, time="t")
    for name, ask in engines(table).items():
        (row,) = ask(query).to_pylist()
        assert math.isnan(row["high"]), name
        assert row["low"] == 1.0, name
