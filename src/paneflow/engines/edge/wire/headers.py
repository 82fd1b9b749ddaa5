"""The header that every message begins with, and the check that nothing of it was changed."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from paneflow.engines.edge.wire.errors import TooLarge, WireError

PROTOCOL = 1
"""The version of the protocol: neighbours must speak the same."""

MAGIC = b"pf"
LAYOUT = struct.Struct("<2sBBIIQqI")
"""Magic, version, kind and packing, size of the body, its size unpacked, number, watermark, check.

32 bytes, so that what follows is aligned for Arrow.
"""
CHECK = struct.Struct("<I")
CHECKED = LAYOUT.size - CHECK.size
KINDS = 64
"""Kinds share their byte with the packing."""


class Kind(IntEnum):
    """What a message is."""

    NUMBERED = 1
    HELLO = 2
    WELCOME = 3
    REFUSAL = 4
    INTRODUCE = 5
    ACK = 6
    RESEND = 7
    HEARTBEAT = 8
    GOODBYE = 9
    ASK = 10


class Packing(IntEnum):
    """How a body is compressed."""

    NOT = 0
    DEFLATE = 1
    PRESET = 2
    """Deflate, against bytes that both ends have."""
    ZSTD = 3


@dataclass(frozen=True)
class Header:
    """What is known of a message before its body is looked at."""

    kind: Kind
    packing: Packing
    unpacked: int
    number: int
    watermark: int


def with_header(header: Header, body: bytes, seed: int) -> bytes:
    """A whole message. `seed` stands for the preset, for a body that can only be read with it."""
    sealed = LAYOUT.pack(
        MAGIC,
        PROTOCOL,
        header.kind + KINDS * header.packing,
        len(body),
        header.unpacked,
        header.number,
        header.watermark,
        0,
    )[:CHECKED]
    check = _check(sealed, body, header.packing, seed)
    return b"".join((sealed, CHECK.pack(check), body))


def read_header(data: memoryview, limit: int, seed: int) -> tuple[Header, memoryview]:
    """The header and the body of a message, both as they were sent."""
    if len(data) < LAYOUT.size:
        raise WireError(
            f"a message was cut off after {len(data)} bytes: its header alone takes {LAYOUT.size}"
        )
    magic, version, both, size, unpacked, number, watermark, check = LAYOUT.unpack_from(data)
    if magic != MAGIC:
        raise WireError(
            f"a message begins with {magic!r}, not with {MAGIC!r}: it does not come from a node of "
            f"paneflow; look at what is connected to this address"
        )
    if version != PROTOCOL:
        raise WireError(
            f"a message is of version {version} of the protocol, but this node speaks version "
            f"{PROTOCOL}: run the same release of paneflow on both"
        )
    if max(size, unpacked) > limit:
        raise TooLarge(
            f"a message of {max(size, unpacked):,} bytes is larger than the {limit:,} bytes that "
            f"this node takes: raise the limit on both ends, or report more often"
        )
    body = data[LAYOUT.size :]
    if len(body) < size:
        raise WireError(f"a message was cut off: {len(body)} of {size} bytes of its body are there")
    if len(body) > size:
        raise WireError(f"a message has {len(body) - size} bytes more than its header says")
    packing = Packing(both // KINDS)
    if _check(data[:CHECKED], body, packing, seed) != check:
        raise WireError(
            "a message was changed on its way, or compressed against another preset: its check "
            "does not match"
        )
    try:
        kind = Kind(both % KINDS)
    except ValueError:
        raise WireError(
            f"a message is of kind {both % KINDS}, which this node does not know"
        ) from None
    return Header(kind, packing, unpacked, number, watermark), body


def size_of(message: bytes) -> int:
    """The bytes of a message that limits are about: those of its body, packed or not."""
    _, _, _, size, unpacked, *_ = LAYOUT.unpack_from(message)
    return int(max(size, unpacked))


def _check(
    sealed: bytes | memoryview, body: bytes | memoryview, packing: Packing, seed: int
) -> int:
    return zlib.crc32(body, zlib.crc32(sealed, seed if packing == Packing.PRESET else 0))
