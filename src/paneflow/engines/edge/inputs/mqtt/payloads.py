"""Events from the payloads of MQTT messages, and the numbers that sensors gave them.

A payload is one JSON object, an array of objects, or an Arrow IPC stream. It is taken as a whole or
refused as a whole, whichever other messages arrive at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.edge.inputs.arrow_streams import read_events
from paneflow.engines.edge.inputs.columns import Columns, of_values
from paneflow.errors import InputError

FORMATS = ("json", "arrow")
_HIGHEST = 2**63 - 1


class Payloads:
    """Reads payloads.

    Args:
        columns: What events must look like.
        format: `"json"` or `"arrow"`.
        number: The field that holds the numbers of events, if they have any.
        most_bytes: The size of the largest payload.
    """

    def __init__(self, columns: Columns, format: str, number: str | None, most_bytes: int) -> None:
        if format not in FORMATS:
            raise InputError(
                f"{format!r} is not a format of payloads: choose from {', '.join(FORMATS)}"
            )
        self._columns = columns
        self._read = self._json if format == "json" else self._arrow
        self._number = number
        self._most_bytes = most_bytes

    def read(self, payload: bytes, levels: Mapping[str, str], last: int) -> tuple[pa.Table, int]:
        """The events of a payload that come behind the last position, and the position then.

        Args:
            payload: The bytes of the message.
            levels: The columns that the topic gives.
            last: The position before: the number of the last event, or else a count of messages.

        Returns:
            The events, which may be none if all of them are known.
        """
        return self._read(payload, levels, last)

    def _json(self, payload: bytes, levels: Mapping[str, str], last: int) -> tuple[pa.Table, int]:
        rows = _objects(payload)
        position = last + 1
        if self._number is not None:
            numbers = [row.get(self._number) for row in rows]
            position = _highest(numbers, self._number, last)
            rows = [row for row in rows if row[self._number] > last]
        for row in rows:
            row.update(levels)
            self._check_names(row)
        schema = self._columns.schema
        arrays = [of_values([row[field.name] for row in rows], field) for field in schema]
        return self._columns.fit(pa.Table.from_arrays(arrays, schema=schema)), position

    def _arrow(self, payload: bytes, levels: Mapping[str, str], last: int) -> tuple[pa.Table, int]:
        events = read_events(memoryview(payload), self._most_bytes)
        position = last + 1
        if self._number is not None:
            given = events.column_names.count(self._number) == 1
            column = events.column(self._number) if given else pa.nulls(1)
            position = _highest(column.to_pylist(), self._number, last)
            events = events.filter(pc.greater(column, last))
        for name, level in levels.items():
            places = events.schema.get_all_field_indices(name)
            column = pa.array([level]).take(pa.nulls(events.num_rows, pa.int64()).fill_null(0))
            events = events.drop([name] if places else []).append_column(name, column)
        return self._columns.fit(events), position

    def _check_names(self, row: Mapping[str, Any]) -> None:
        for name in self._columns.schema.names:
            if name not in row:
                raise InputError(
                    f"the field {name!r} is missing in a payload with "
                    f"{', '.join(map(repr, row)) or 'no fields'}: send every column, with null "
                    f"where nothing is known"
                )


def _objects(payload: bytes) -> list[dict[str, Any]]:
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the payload is no JSON: {error}") from None
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        raise InputError("the payload is neither a JSON object nor an array of objects")
    return rows


def _highest(numbers: Sequence[Any], field: str, last: int) -> int:
    """The highest number of a payload, or else the last one before."""
    for number in numbers:
        if type(number) is not int or not 0 < number <= _HIGHEST:
            raise InputError(
                f"the field {field!r} should number the events of a topic from 1 on, but holds "
                f"{number!r}: give every event a number, or do not name a field for it"
            )
    return max(numbers, default=last)
