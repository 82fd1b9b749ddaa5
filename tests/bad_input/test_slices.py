"""What is no slices, or slices of something else."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.bad_input.refusing import COUNT, TABLE, refused


def test_what_cannot_be_finished() -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    others: list[Any] = [TABLE, [{"t": 1}], None]
    for given in others:
        refused(pf.InputError, partial(query.finish, given), type(given).__name__, "query.slice")


def test_what_cannot_be_merged() -> None:
    slices = pf.Query(W.tumbling(5), COUNT, time="t").slice(TABLE)
    message = refused(pf.InputError, lambda: slices.merge(TABLE), "Table", "query.slice")
    assert len(message) < 200  # and not the whole table


def test_slices_of_tables_with_other_types() -> None:
    query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
    whole = query.slice(TABLE)
    parts = query.slice(TABLE.set_column(1, "v", pa.array([0.5, 1.5])))
    refused(pf.InputError, lambda: whole.merge(parts), "int64", "double", "same")
