"""Events in the schema of the child, or the reason why they cannot be.

A child's events all have one schema. Columns that it does not name are left out, and types that
convert without loss are converted.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from paneflow.errors import InputError


class Columns:
    """What events must look like: their schema, and which column holds their times."""

    def __init__(self, schema: pa.Schema, time: str) -> None:
        self.schema = schema.remove_metadata()
        self.time = time

    def fit(self, events: pa.Table) -> pa.Table:
        """The events in this schema.

        >>> columns = Columns(pa.schema({"t": pa.int64(), "v": pa.float64()}), time="t")
        >>> columns.fit(pa.table({"v": [2], "t": [1], "note": ["?"]})).to_pylist()
        [{'t': 1, 'v': 2.0}]
        """
        if not events.schema.equals(self.schema):
            arrays = [self._column(events, field) for field in self.schema]
            events = pa.Table.from_arrays(arrays, schema=self.schema)
        without = events.column(self.time).null_count
        if without:
            raise InputError(
                f"the time column {self.time!r} is null in {without} of {events.num_rows} events: "
                f"an event without a time is in no window; fill in their times or leave them out"
            )
        return events

    def of_rows(self, rows: list[dict[str, Any]]) -> pa.Table:
        """Events that came as dicts, as JSON has them; what is missing is null.

        Times may be text, as ISO 8601 has it, or numbers in the unit of the column's type.
        """
        for field in self.schema:
            if not any(field.name in row for row in rows):
                raise _missing(field, sorted({str(name) for row in rows for name in row}))
        arrays = [of_values([row.get(f.name) for row in rows], f) for f in self.schema]
        return self.fit(pa.Table.from_arrays(arrays, schema=self.schema))

    def _column(self, events: pa.Table, field: pa.Field) -> pa.ChunkedArray:
        found = events.schema.get_all_field_indices(field.name)
        if not found:
            raise _missing(field, events.column_names)
        if len(found) > 1:
            raise InputError(
                f"{len(found)} columns are named {field.name!r}: give each column its own name"
            )
        column = events.column(found[0])
        return column if column.type.equals(field.type) else _cast(column, field)


def of_values(values: list[Any], field: pa.Field) -> pa.Array:
    """Python values as a column of this type."""
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass  # text may still stand for a time or a number
    try:
        return _cast(pa.array(values), field)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"column {field.name!r} needs values of type {field.type}: {error}"
        ) from None


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> Any:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise InputError(
            f"column {field.name!r} has type {column.type}, and this child takes {field.type}: "
            f"{error}"
        ) from None


def _missing(field: pa.Field, names: list[str]) -> InputError:
    return InputError(
        f"column {field.name!r} ({field.type}) is missing: there are {', '.join(names) or 'none'}; "
        f"send every column of the child's schema, with nulls where nothing is known"
    )
