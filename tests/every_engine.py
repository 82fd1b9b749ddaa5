"""Every way to answer a query in this process, over one small table."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pyarrow as pa

import paneflow as pf


def engines(table: pa.Table) -> dict[str, Callable[[pf.Query], pa.Table]]:
    """The rows of a query over a table: by each engine, by slices, and by streams."""

    def in_stream(workers: int, query: pf.Query) -> pa.Table:
        with query.open(workers=workers) as stream:
            stream.push(table)
            stream.finish()
            return pa.concat_tables(stream.results())

    return {
        "oracle": lambda query: query.over(table, engine="oracle"),
        "table": lambda query: query.over(table),
        "slices": lambda query: query.finish(query.slice(table)),
        "stream": functools.partial(in_stream, 1),
        "two workers": functools.partial(in_stream, 2),
    }
