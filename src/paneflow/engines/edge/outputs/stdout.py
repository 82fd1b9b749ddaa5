"""Rows on the standard output, one line for each, for people and for pipes."""

from __future__ import annotations

import base64
import datetime
import io
import json
import math
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pc_csv

from paneflow.engines.edge.outputs.contract import OutputError
from paneflow.errors import InputError


class StdoutOutput:
    """Prints the rows of each step.

    What is printed cannot be replaced: after a restart of the root, rows of the last steps may be
    printed a second time.

    Args:
        format: `"text"`, `"json"` (an object for each row) or `"csv"` (with a line of names first).
        to: Where to print, if not on the standard output.
        query: The name of the query, if rows are to tell it in a column.

    Example:
        >>> to = io.BytesIO()
        >>> StdoutOutput("json", to).write(pa.table({"plug": ["a"], "peak": [3.5]}), 1)
        >>> to.getvalue()
        b'{"plug": "a", "peak": 3.5}\\n'
    """

    def __init__(
        self, format: str = "text", to: BinaryIO | None = None, query: str | None = None
    ) -> None:
        if format not in _FORMATS:
            raise InputError(
                f"{format!r} is not a format of rows on the standard output: choose from "
                f"{', '.join(_FORMATS)}"
            )
        self._lines = _FORMATS[format]
        self._format = format
        self._to = to
        self._query = query
        self._first = True

    def write(self, rows: pa.Table, number: int) -> None:
        """Print the rows of a step at once."""
        if rows.num_rows == 0:
            return
        if self._query is not None:
            rows = rows.add_column(0, "query", pa.repeat(pa.scalar(self._query), rows.num_rows))
        to = self._to or sys.stdout.buffer
        try:
            to.write(self._lines(rows, self._first))
            to.flush()
        except OSError as error:
            raise OutputError(
                f"rows cannot be printed ({error.strerror}): let the program that reads them go "
                f"on, or write them to files, and start the root again; it has kept the rows"
            ) from error
        self._first = False

    def of(self, query: str) -> StdoutOutput:
        """The rows of an added query have a column more, which tells its name."""
        return StdoutOutput(self._format, self._to, query)

    def close(self) -> None:
        """The standard output stays open."""


def _text(rows: pa.Table, first: bool) -> bytes:
    lines = (
        "  ".join(f"{name}={_shown(value)}" for name, value in row.items()) + "\n"
        for row in rows.to_pylist()
    )
    return "".join(lines).encode()


def _json(rows: pa.Table, first: bool) -> bytes:
    return "".join(f"{_json_of(row)}\n" for row in rows.to_pylist()).encode()


def _csv(rows: pa.Table, first: bool) -> bytes:
    """CSV has no nested values: these are written as JSON."""
    columns = [
        pa.array([None if v is None else _json_of(v) for v in column.to_pylist()], pa.string())
        if pa.types.is_nested(column.type)
        else column
        for column in rows.columns
    ]
    into = io.BytesIO()
    flat = pa.Table.from_arrays(columns, rows.column_names)
    pc_csv.write_csv(flat, into, pc_csv.WriteOptions(include_header=first))
    return into.getvalue()


_FORMATS: dict[str, Callable[[pa.Table, bool], bytes]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
}


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return _json_of(value) if isinstance(value, (list, dict)) else str(value)


def _json_of(value: Any) -> str:
    return json.dumps(_finite(value), default=_plain, ensure_ascii=False)


def _finite(value: Any) -> Any:
    """JSON knows neither NaN nor infinity: both become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return value


def _plain(value: Any) -> str:
    """What JSON has no type for, as text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return str(value)
