"""Makes bodies smaller, and refuses those that would grow beyond what they claim.

Most messages are small: one slice, a few hundred bytes, nearly all of which is the same in every
message. They are deflated against a *preset*, a sample that both ends have (`presets.py`). Large
bodies have enough repetition of their own and go to zstd, which is faster.
"""

from __future__ import annotations

import zlib

import pyarrow as pa

from paneflow.engines.edge.wire.errors import WireError
from paneflow.engines.edge.wire.headers import Packing

SMALL = 2_048
"""Bytes up to which a preset pays: one slice takes 60 bytes rather than zstd's 196, in 15 µs; 30
slices 750 rather than 780, in 150 µs rather than 16."""
MEDIUM = 65_536
"""Bytes up to which reports are worth a tenth fewer at the same speed; larger ones take longer."""
RAW = -15
"""Deflate without a header and a check of its own: the message has one."""


def compress(body: bytes, preset: bytes) -> tuple[Packing, bytes]:
    """The smallest way to send a body that is worth its time."""
    if len(body) <= SMALL:
        packing = Packing.PRESET if preset else Packing.DEFLATE
        compressor = _deflate(preset)
        packed = compressor.compress(body) + compressor.flush()
    else:
        codec = _zstd(6 if preset and len(body) <= MEDIUM else 1)
        packing, packed = Packing.ZSTD, codec.compress(body, asbytes=True)
    return (packing, packed) if len(packed) < len(body) else (Packing.NOT, body)


def expand(body: memoryview, packing: Packing, size: int, preset: bytes) -> memoryview:
    """The body as it was, if it has exactly this size."""
    if packing == Packing.NOT:
        whole = body
    elif packing == Packing.ZSTD:
        try:
            whole = memoryview(_zstd().decompress(body, decompressed_size=size))
        except (pa.ArrowException, OSError) as error:
            raise WireError(f"the body of a message cannot be unpacked: {error}") from None
    else:
        inflater = _inflate(preset if packing == Packing.PRESET else b"")
        try:
            # One more than there should be, so that more shows. (Zero would be no limit at all.)
            whole = memoryview(inflater.decompress(body, size + 1))
        except zlib.error as error:
            raise WireError(f"the body of a message cannot be unpacked: {error}") from None
    if len(whole) != size:
        raise WireError(f"the body of a message does not unpack to the {size} bytes it claims")
    return whole


def _zstd(level: int = 1) -> pa.Codec:
    return pa.Codec("zstd", compression_level=level)


def _deflate(preset: bytes) -> zlib._Compress:
    if preset:
        return zlib.compressobj(9, zlib.DEFLATED, RAW, zdict=preset)
    return zlib.compressobj(9, zlib.DEFLATED, RAW)


def _inflate(preset: bytes) -> zlib._Decompress:
    return zlib.decompressobj(RAW, zdict=preset) if preset else zlib.decompressobj(RAW)
