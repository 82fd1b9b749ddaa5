"""Compiles what a query needs before the first table or event arrives.

Kernels depend on the types of columns and, in part, on what a table looks like: in order or not,
evenly spaced or not, few windows or many. So the query is answered over made-up tables of each
kind.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa

from paneflow.errors import InputError
from paneflow.query import Query
from paneflow.slicing import ordering
from paneflow.tables import is_spark, to_arrow
from paneflow.windows import Punctuation, Sliding

EVENTS = ordering.FEW + 44
"""More than the largest table that needs no kernels."""
LOOKS = ((1, True), (3, True), (3, False))
"""How many keys a table has, and whether its events are evenly spaced and in order of time."""
MERGES = ("auto", "sba", "flat_fat")
"""The algorithms between which `auto` chooses, and the one it chooses here."""


def warm_up(query: Query, table_or_schema: Any = None) -> None:
    """Compile what `query.over` will need, so that the first answer does not wait for it.

    Compiled kernels are kept on this machine: call this when a container image is built or a
    service starts.

    Args:
        query: The query to prepare.
        table_or_schema: A table, from which some rows are used, or a pyarrow schema: the types of
            the columns. Without it, values are assumed to be float64.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling(60), {"peak": A.max("load")}, key="plug", time="ts")
        >>> pf.warm_up(query)
    """
    if not isinstance(query, Query):
        raise InputError(f"warm_up expects a paneflow.Query, not {query!r}")
    if is_spark(table_or_schema):
        raise InputError("warm_up expects a finite table or a schema: pass df.limit(100).toArrow()")
    if isinstance(table_or_schema, pa.Schema):
        some = table_or_schema.empty_table()
    elif table_or_schema is None:
        some = _likely_schema(query).empty_table()
    else:
        some = to_arrow(table_or_schema, query.columns)[0].slice(0, EVENTS)
    query.check(some.schema)
    for (keys, even), merge in itertools.product(LOOKS, MERGES):
        query.over(_made_up(query, some, keys, even), merge=merge)


def _likely_schema(query: Query) -> pa.Schema:
    """Types that fit a query of which only the column names are known."""
    types = {column: pa.float64() for column in query.columns}
    types |= dict.fromkeys(query.key, pa.string())
    for window in query.windows.values():
        if isinstance(window, Punctuation):
            types[window.column] = pa.bool_()
    stamped = query.lateness.textual or any(w.needs_timestamps for w in query.windows.values())
    types[query.time] = pa.timestamp("us") if stamped else pa.int64()
    return pa.schema(list(types.items()))


def _made_up(query: Query, some: pa.Table, keys: int, even: bool) -> pa.Table:
    """Events: evenly spaced, in order and of one key, or of several keys and neither."""
    r = np.random.default_rng(EVENTS)
    count = np.arange(EVENTS)
    slides = [w.slide.value for w in query.windows.values() if isinstance(w, Sliding)]
    # One event per slide, so that there are hardly more windows than events or overlaps.
    t = (count if even else r.integers(0, EVENTS, EVENTS)) * min(slides, default=1)
    grown = {column for window in query.windows.values() for column in window.columns}
    made = {}
    for name in query.columns:
        kind = some.schema.field(name).type
        if name == query.time:
            made[name] = _typed(t, kind, name)
        elif name in query.key:
            made[name] = _typed(r.integers(0, keys, EVENTS), kind, name)
        elif name in grown:
            # Some windows need a column that grows with time.
            made[name] = _typed(np.argsort(np.argsort(t, kind="stable")), kind, name)
        elif some.num_rows:
            made[name] = some.column(name).take(pa.array(count % some.num_rows))
        else:
            made[name] = _typed(count % 100 + 1, kind, name)
    return pa.table(made)


def _typed(numbers: Any, kind: pa.DataType, name: str) -> pa.Array:
    """Numbers as values of a type, if it can hold them."""
    try:
        if pa.types.is_boolean(kind):
            return pa.array(numbers % 2 == 0)
        if pa.types.is_date(kind):
            return pa.array(numbers).cast(pa.timestamp("us")).cast(kind, safe=False)
        if pa.types.is_dictionary(kind):
            return _typed(numbers, kind.value_type, name).dictionary_encode().cast(kind)
        if pa.types.is_timestamp(kind):
            return pa.array(numbers).cast(pa.timestamp("us", kind.tz)).cast(kind, safe=False)
        return pa.array(numbers).cast(kind, safe=False)
    except pa.ArrowException:
        raise InputError(
            f"warm_up cannot make up values of type {kind} for column {name!r}: pass a table "
            f"with some rows"
        ) from None
