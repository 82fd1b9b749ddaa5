"""Tables of one schema as Arrow record batches without the schema, which both ends know."""

from __future__ import annotations

import struct

import pyarrow as pa

from paneflow.engines.edge.wire.errors import WireError
from paneflow.engines.edge.wire.forms import formed, restored

ALIGNED = 8


class Batches:
    """How tables of one schema travel: dictionary-encoded columns as the values they stand for.

    A dictionary is often shared by many tables and larger than any of them. A byte for each column,
    in front of the batch, tells its form (`forms.py`).
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.sent = pa.schema([field.with_type(_plain(field.type)) for field in schema])
        self._forms = -(-len(schema) // ALIGNED) * ALIGNED
        """How many bytes tell the forms of columns."""

    def pack(self, table: pa.Table) -> bytes:
        """A table as bytes, a multiple of eight."""
        if not table.schema.equals(self.schema):
            raise WireError(
                f"a table with the columns\n{_columns(table.schema)}\nwas to be sent as one with\n"
                f"{_columns(self.schema)}"
            )
        batches = table.cast(self.sent).combine_chunks().to_batches()
        if len(batches) > 1:
            raise WireError(
                f"a table of {table.nbytes:,} bytes is too large for a message: report more often"
            )
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], self.sent)
        forms = bytearray(self._forms)
        columns = []
        for k, column in enumerate(batch.columns):
            forms[k], written = formed(column)
            columns.append(written)
        made = pa.RecordBatch.from_arrays(columns, schema=self.sent)
        return b"".join((forms, made.serialize()))

    def unpack(self, data: pa.Buffer) -> pa.Table:
        """The table that was packed. Whatever is wrong with the bytes is a `WireError`."""
        try:
            forms = data.slice(0, self._forms).to_pybytes()
            message = pa.ipc.read_message(data.slice(len(forms)))
            if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
                raise WireError("a table was not sent as a plain record batch")
            batch = pa.ipc.read_record_batch(message, self.sent)
            batch.validate(full=True)
            columns = [
                _typed(restored(form, column), field.type)
                for form, column, field in zip(forms, batch.columns, self.schema, strict=False)
            ]
            return pa.Table.from_arrays(columns, schema=self.schema)
        except (pa.ArrowException, OSError, struct.error) as error:
            raise WireError(f"a table in a message cannot be read: {error}") from None


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without dictionaries, at any depth."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    # A cast to a dictionary exists for text only; from one dictionary to another, for all.
    if pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    return column if column.type.equals(kind) else column.cast(kind)


def _is_compressed(metadata: bytes) -> bool:
    """Whether the buffers of a batch are compressed, so that they could grow without limit.

    Arrow has no way to ask before it unpacks them. In its format (Message.fbs) the batch is the
    third field of a message, and the compression the fourth of a batch.
    """
    (root,) = struct.unpack_from("<I", metadata, 0)
    link = _field(metadata, root, 2)
    (step,) = struct.unpack_from("<I", metadata, link)
    return _field(metadata, link + step, 3) != 0


def _field(metadata: bytes, table: int, index: int) -> int:
    """Where a field of a flatbuffers table is, or 0 if it has none."""
    (back,) = struct.unpack_from("<i", metadata, table)
    (size,) = struct.unpack_from("<H", metadata, table - back)
    if 4 + 2 * index >= size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, table - back + 4 + 2 * index)
    return table + offset if offset else 0


def _columns(schema: pa.Schema) -> str:
    return str(schema.to_string(show_field_metadata=False, show_schema_metadata=False))
