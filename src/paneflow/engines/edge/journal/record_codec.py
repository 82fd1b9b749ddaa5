"""Records as bytes, for the journal."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from paneflow.engines.edge.journal.errors import JournalError
from paneflow.engines.edge.records import Ask, Asked, Cut, Record, Report, Reported
from paneflow.engines.edge.wire.compressing import compress, expand
from paneflow.engines.edge.wire.errors import WireError
from paneflow.engines.edge.wire.headers import Packing
from paneflow.engines.edge.wire.parcels import Parcels
from paneflow.engines.edge.wire.texts import read_field, read_text, read_times, write_text

HEAD = struct.Struct("<BxxxI")
"""How the rest is compressed, and its size before. The rest is not compressed against a preset:
another release of Arrow, which may make another one, must read what this one wrote."""

_KINDS: dict[str, type[Record]] = {kind.__name__.lower(): kind for kind in get_args(Record)}
_PLAIN: dict[str, dict[str, type]] = {
    name: {field: hint for field, hint in get_type_hints(kind).items() if hint in (str, int)}
    for name, kind in _KINDS.items()
}
"""The fields of each kind that JSON holds as they are."""


class RecordCodec:
    """Writes and reads records whose tables have these schemas, by the name of their part."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self._parcels = Parcels(schemas)

    def learn(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Write and read tables of these parts, too."""
        self._parcels.learn(schemas)

    def encode(self, record: Record) -> bytes:
        """A record as bytes."""
        kind = type(record).__name__.lower()
        about: dict[str, Any] = {name: getattr(record, name) for name in _PLAIN[kind]}
        tables: Mapping[str, pa.Table] = {}
        match record:
            case Cut():
                tables = record.tables
            case Reported(report=Report(watermark, tables, missing)):
                about |= {"watermark": watermark, "missing": dict(missing)}
            case Asked(ask=Ask(to, wanted)):
                about |= {"to": to, "about": dict(wanted)}
        about["kind"] = kind
        body = self._parcels.pack(write_text(about), tables)
        packing, packed = compress(body, b"")
        return HEAD.pack(packing, len(body)) + packed

    def decode(self, data: bytes) -> Record:
        """The record that bytes hold."""
        try:
            packing, size = HEAD.unpack_from(data)
            body = expand(memoryview(data)[HEAD.size :], Packing(packing), size, b"")
            text, tables = self._parcels.unpack(body)
            return _record(read_text(text), tables)
        except (WireError, struct.error, ValueError) as error:
            raise JournalError(
                f"a record of the log cannot be read: {error}; if the query or the columns of the "
                f"events have changed, give the node an empty folder"
            ) from None


def _record(about: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Record:
    name = read_field(about, "kind", str)
    kind = _KINDS.get(name)
    if kind is None:
        raise WireError(f"it is of kind {name!r}, which this release does not know")
    fields: dict[str, Any] = {
        field: read_field(about, field, hint) for field, hint in _PLAIN[name].items()
    }
    if kind is Cut:
        fields["tables"] = tables
    elif kind is Reported:
        watermark = read_field(about, "watermark", int)
        fields["report"] = Report(watermark, tables, read_times(about, "missing"))
    elif kind is Asked:
        wanted = read_field(about, "about", dict)
        fields["ask"] = Ask(read_field(about, "to", str), wanted)
    return kind(**fields)
