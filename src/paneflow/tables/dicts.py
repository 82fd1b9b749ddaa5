"""Lists of dicts: one dict for each event, in which what is null may be left out."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pyarrow as pa

from paneflow.names import is_name
from paneflow.tables.columns import column_of


def read(rows: list[dict[Any, Any]], wanted: Container[str]) -> pa.Table:
    """The columns that are wanted; others as nulls."""
    names = dict.fromkeys(name for row in rows for name in row if is_name(name))
    return pa.table(
        {
            name: column_of([row.get(name) for row in rows], name)
            if name in wanted
            else pa.nulls(len(rows))
            for name in names
        }
    )
