"""Reports that are too large for one message, as several smaller ones."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paneflow.engines.edge.records import Report

MOST_BYTES = 8 << 20
"""Of tables in one report, unless messages have to be smaller."""


def split(report: Report, before: int, most: int) -> Iterator[Report]:
    """The same in reports of a limited size; only the last one moves the watermark.

    `before` is the watermark of the report before this one. `most` is what tables may have, in
    bytes; it must be the same after a restart, so that reports get the same numbers again.

    >>> table = pa.table({"n": pa.array(range(6), pa.int64())})
    >>> [(r.watermark, r.tables["x"].num_rows) for r in split(Report(9, {"x": table}), 4, most=16)]
    [(4, 1), (4, 2), (4, 1), (9, 2)]
    """
    pieces = [one for name, table in report.tables.items() for one in _pieces(name, table, most)]
    while pieces:
        taken: dict[str, pa.Table] = {}
        size = 0
        while pieces and pieces[0][0] not in taken:
            name, table = pieces[0]
            size += table.nbytes
            if taken and size > most:
                break
            taken[name] = table
            pieces.pop(0)
        if not pieces:
            yield Report(report.watermark, taken, report.missing)
            return
        yield Report(before, taken, report.missing)
    yield report


def _pieces(name: str, table: pa.Table, most: int) -> Iterator[tuple[str, pa.Table]]:
    """Parts of a table that are small enough, if single rows are."""
    if table.nbytes <= most or table.num_rows < 2:
        yield name, table
        return
    half = table.num_rows // 2
    yield from _pieces(name, table.slice(0, half), most)
    yield from _pieces(name, table.slice(half), most)
