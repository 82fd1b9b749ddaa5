"""A text and tables in one piece, as messages and logs hold them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import pyarrow as pa

from paneflow.engines.edge.wire.batches import ALIGNED, Batches
from paneflow.engines.edge.wire.errors import WireError

PAIR = struct.Struct("<II")
"""First how many tables and the length of the text; then, for each table, its part and length."""


class Parcels:
    """Packs tables by the name of their part, each with the schema that the part has.

    A part is written as a check of its name and schema, so bytes are never read with a schema other
    than the one they were written with.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self.parts: dict[str, Batches] = {}
        self._marks: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self.learn(schemas)

    def learn(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Pack and unpack these parts, too."""
        for name, schema in schemas.items():
            if name not in self.parts:
                self.parts[name] = Batches(schema)
                self._marks[name] = _mark(name, schema)
                self._names[self._marks[name]] = name

    def pack(self, text: str, tables: Mapping[str, pa.Table]) -> bytes:
        """The tables, then the text."""
        for name in tables:
            if name not in self.parts:
                raise WireError(
                    f"a table of the part {name!r} was to be sent, but the parts of this query are "
                    f"{', '.join(map(repr, self.parts)) or 'none'}"
                )
        packed = {name: self.parts[name].pack(table) for name, table in tables.items()}
        written = text.encode()
        heads = [PAIR.pack(len(packed), len(written))]
        heads += [PAIR.pack(self._marks[name], len(data)) for name, data in packed.items()]
        return b"".join((*heads, *packed.values(), written))

    def unpack(self, data: memoryview) -> tuple[str, dict[str, pa.Table]]:
        """The text and the tables."""
        buffer = pa.py_buffer(data)
        if buffer.address % ALIGNED:
            buffer = pa.py_buffer(bytes(data))
        try:
            count, length = PAIR.unpack_from(data)
            heads = [PAIR.unpack_from(data, PAIR.size * (1 + i)) for i in range(count)]
        except struct.error:
            raise WireError("the list of the tables in a message is cut off") from None
        at = PAIR.size * (1 + count)
        if at + sum(size for _, size in heads) + length != len(data):
            raise WireError("the tables in a message are not as long as it says")
        tables = {}
        for mark, size in heads:
            name = self._names.get(mark)
            if name is None or name in tables:
                raise WireError(
                    "a message holds a table that this query does not have, or one twice: was the "
                    "query changed on one end only?"
                )
            tables[name] = self.parts[name].unpack(buffer.slice(at, size))
            at += size
        try:
            return str(data[at:], "utf-8"), tables
        except UnicodeDecodeError:
            raise WireError("the text in a message is not UTF-8") from None


def _mark(name: str, schema: pa.Schema) -> int:
    return zlib.crc32("\n".join([name, *(f"{f.name} {f}" for f in schema)]).encode())
