"""Files of events, read piece by piece, from any row on."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from paneflow.engines.edge.inputs.columns import Columns
from paneflow.errors import InputError

PIECE = 1 << 17
"""Events in a piece: enough that cutting it into slices costs little, few enough for memory."""
_BLOCK = 8 << 20
"""Bytes of lines that are parsed at once."""

ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def format_of(path: Path, given: str | None) -> str | None:
    """The format of a file: the one that was given, or else what its name says.

    >>> format_of(Path("plugs.csv"), None)
    'csv'
    """
    return given or ENDINGS.get(path.suffix.lower())


def check_format(given: str | None) -> None:
    """Refuse a format that is not known."""
    if given is not None and given not in _READERS:
        raise InputError(
            f"{given!r} is not a format of files with events: choose from {', '.join(_READERS)}"
        )


def pieces(path: Path, format: str, columns: Columns, skip: int) -> Iterator[pa.Table]:
    """The events of a file without the first ones, in pieces of a moderate size."""
    try:
        for events in _READERS[format](path, columns, skip):
            for begin in range(0, events.num_rows, PIECE):
                yield columns.fit(events.slice(begin, PIECE))
    except (OSError, pa.ArrowException, InputError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as {format}: {error}. Correct the file, or give its format"
        ) from error


def _parquet(path: Path, columns: Columns, skip: int) -> Iterator[pa.Table]:
    """Row groups that are skipped as a whole are not read."""
    with pq.ParquetFile(path) as file:
        names = [name for name in columns.schema.names if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if skip < rows:
                yield from _behind(file.iter_batches(PIECE, [group], columns=names), skip)
            skip = max(skip - rows, 0)


def _csv(path: Path, columns: Columns, skip: int) -> Iterator[pa.Table]:
    """Only the child's columns are parsed: the types of others could not be known in advance."""
    types = {field.name: field.type for field in columns.schema}
    options = pa_csv.ConvertOptions(column_types=types, include_columns=list(types))
    reading = pa_csv.ReadOptions(block_size=_BLOCK)
    with pa_csv.open_csv(path, reading, convert_options=options) as file:
        yield from _behind(file, skip)


def _ndjson(path: Path, columns: Columns, skip: int) -> Iterator[pa.Table]:
    with path.open("rb") as file:
        yield from _behind(_parsed_lines(file, columns), skip)


def _parsed_lines(file: io.BufferedReader, columns: Columns) -> Iterator[pa.RecordBatch]:
    options = pa_json.ParseOptions(
        explicit_schema=columns.schema, unexpected_field_behavior="ignore"
    )
    while lines := file.readlines(_BLOCK):
        text = b"".join(line for line in lines if not line.isspace())
        if text:
            reading = pa_json.ReadOptions(block_size=len(text) + 1)
            yield from pa_json.read_json(io.BytesIO(text), reading, options).to_batches()


def _arrow(path: Path, columns: Columns, skip: int) -> Iterator[pa.Table]:
    """Both of Arrow's formats: the one for files, and the one for streams."""
    with pa.memory_map(str(path)) as mapped, contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(pa.ipc.open_file(mapped))
        except pa.ArrowInvalid:
            mapped.seek(0)
            yield from _behind(opened.enter_context(pa.ipc.open_stream(mapped)), skip)
            return
        batches = (file.get_batch(k) for k in range(file.num_record_batches))
        yield from _behind(batches, skip)


def _behind(batches: Iterable[pa.RecordBatch], skip: int) -> Iterator[pa.Table]:
    """What follows the first rows."""
    for batch in batches:
        if skip < batch.num_rows:
            yield pa.Table.from_batches([batch.slice(skip)])
        skip = max(skip - batch.num_rows, 0)


_READERS: dict[str, Callable[[Path, Columns, int], Iterator[pa.Table]]] = {
    "parquet": _parquet,
    "csv": _csv,
    "ndjson": _ndjson,
    "arrow": _arrow,
}
