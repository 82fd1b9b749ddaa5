"""Messages to bytes and back."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import pyarrow as pa

from paneflow.engines.edge.wire.bodies import Content, content_of, message_of
from paneflow.engines.edge.wire.compressing import compress, expand
from paneflow.engines.edge.wire.errors import WireError
from paneflow.engines.edge.wire.headers import Header, Kind, read_header, with_header
from paneflow.engines.edge.wire.messages import Message
from paneflow.engines.edge.wire.parcels import Parcels
from paneflow.engines.edge.wire.presets import preset_of
from paneflow.engines.edge.wire.texts import read_text, write_text

LIMIT = 64 << 20
"""Bytes that a message may have, packed or unpacked, unless a node is told otherwise."""


class Wire:
    """Writes and reads messages whose tables have these schemas, by the name of their part.

    Reports are compressed against `preset`, a sample made from the schemas. As another release of
    Arrow may make another sample, a node tells its own in its `Hello`; its parent reads what it
    sends with `reading(hello.preset)`.
    """

    def __init__(self, schemas: Mapping[str, pa.Schema], limit: int = LIMIT) -> None:
        self._parcels = Parcels(schemas)
        self.limit = limit
        self.preset = preset_of(self._parcels)

    def learn(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Write and read these parts, too; so does whatever was made by `reading`.

        The preset stays, so that what was compressed against it can be read.
        """
        self._parcels.learn(schemas)

    def reading(self, preset: bytes) -> Wire:
        """The same, for reports that were compressed against another preset."""
        other = Wire.__new__(Wire)
        other._parcels, other.limit, other.preset = self._parcels, self.limit, preset
        return other

    @property
    def _seed(self) -> int:
        return zlib.crc32(self.preset)

    def encode(self, message: Message) -> bytes:
        """A message as bytes."""
        content = content_of(message)
        body = b""
        if content.about or content.tables:
            body = self._parcels.pack(write_text(content.about), content.tables)
        if len(body) > self.limit:
            raise WireError(
                f"a message of {len(body):,} bytes is larger than the {self.limit:,} bytes that "
                f"nodes take: raise the limit on both ends, or report more often"
            )
        preset = self.preset if content.kind == Kind.NUMBERED else b""
        packing, packed = compress(body, preset)
        header = Header(content.kind, packing, len(body), content.number, content.watermark)
        return with_header(header, packed, self._seed)

    def decode(self, data: bytes | memoryview) -> Message:
        """The message that bytes hold. Whatever is wrong with them is a `WireError`."""
        header, packed = read_header(memoryview(data), self.limit, self._seed)
        body = expand(packed, header.packing, header.unpacked, self.preset)
        text, tables = self._parcels.unpack(body) if len(body) else ("", {})
        content = Content(header.kind, header.number, header.watermark, read_text(text), tables)
        return message_of(content)
