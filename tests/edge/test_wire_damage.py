"""Messages that were cut, changed or made to do harm are refused, and nothing else happens."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
import zlib

import numpy as np
import pyarrow as pa
import pytest

from paneflow.engines.edge.records import Report
from paneflow.engines.edge.wire import Message, Numbered, Wire, WireError
from paneflow.engines.edge.wire.batches import ALIGNED, Batches
from paneflow.engines.edge.wire.headers import Header, Kind, Packing, with_header
from paneflow.engines.edge.wire.parcels import PAIR, Parcels
from tests.edge.test_wire_messages import MESSAGES, SLICE, SLICES, WIRE

ONE = WIRE.encode(Numbered(7, Report(5, {"slices": SLICE})))


def crafted(body: bytes, *, kind: int = Kind.NUMBERED, size: int | None = None) -> bytes:
    """A message around a body, with a check that holds."""
    header = Header(kind, Packing.NOT, len(body) if size is None else size, 1, 0)  # type: ignore[arg-type]
    return with_header(header, body, 0)


def random_message(rng: random.Random) -> Message:
    if rng.random() < 0.3:
        return rng.choice(MESSAGES)
    size = rng.choice([1, 2, 40, 400])
    columns = [pa.array(rng.choices(range(1000), k=size)).cast(f.type) for f in SLICES]
    table = pa.Table.from_arrays(columns, schema=SLICES)
    return Numbered(rng.randrange(2**40), Report(rng.randrange(2**40), {"slices": table}))


def test_no_change_to_a_message_goes_unnoticed() -> None:
    rng = random.Random(1)
    for _ in range(1000):
        data = bytearray(WIRE.encode(random_message(rng)))
        kind = rng.randrange(3)
        if kind == 0:
            del data[rng.randrange(len(data)) :]
        elif kind == 1:
            for _ in range(rng.choice([1, 1, 2, 10])):
                at = rng.randrange(len(data) * 8)
                data[at // 8] ^= 1 << at % 8
        else:
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        with pytest.raises(WireError):
            WIRE.decode(bytes(data))


def test_every_single_bit_and_every_length_matters() -> None:
    for bit in range(len(ONE) * 8):
        changed = bytearray(ONE)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireError):
            WIRE.decode(bytes(changed))
    for size in range(len(ONE)):
        with pytest.raises(WireError, match="cut off"):
            WIRE.decode(ONE[:size])


def test_noise_is_refused() -> None:
    rng = random.Random(2)
    for size in [0, 1, 31, 32, 33, 1000]:
        with pytest.raises(WireError):
            WIRE.decode(rng.randbytes(size))


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(WireError, match="does not come from a node of paneflow"):
        WIRE.decode(b"GET / HTTP/1.1\r\nHost: root.example\r\n\r\n")
    with pytest.raises(WireError, match="version 9 of the protocol, but this node speaks version"):
        WIRE.decode(ONE[:2] + b"\x09" + ONE[3:])
    with pytest.raises(WireError, match="cut off: 10 of"):
        WIRE.decode(ONE[:42])
    with pytest.raises(WireError, match="1 bytes more than its header says"):
        WIRE.decode(ONE + b"\0")
    with pytest.raises(WireError, match="changed on its way"):
        WIRE.decode(ONE[:-1] + bytes([ONE[-1] ^ 1]))
    with pytest.raises(WireError, match="compressed against another preset"):
        WIRE.reading(b"another").decode(ONE)
    with pytest.raises(WireError, match="of kind 63, which this node does not know"):
        WIRE.decode(crafted(b"", kind=63))


def test_a_message_larger_than_the_limit_is_refused() -> None:
    table = pa.table({"x": np.random.default_rng(0).random(1000)})
    data = Wire({"part": table.schema}).encode(Numbered(1, Report(0, {"part": table})))
    with pytest.raises(WireError, match="larger than the 1,000 bytes that this node takes"):
        Wire({"part": table.schema}, limit=1000).decode(data)


@pytest.mark.parametrize("packing", [Packing.DEFLATE, Packing.ZSTD])
@pytest.mark.parametrize("claim", [100, 1000, 64 << 20])
def test_a_body_that_grows_beyond_what_it_claims_is_refused(packing: Packing, claim: int) -> None:
    huge = bytes(65 << 20)
    if packing == Packing.ZSTD:
        packed = pa.Codec("zstd").compress(huge, asbytes=True)
    else:
        compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = compressor.compress(huge) + compressor.flush()
    assert len(packed) < 100_000
    data = with_header(Header(Kind.NUMBERED, packing, claim, 1, 0), packed, 0)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(WireError, match="unpack"):
        WIRE.decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * claim + 500_000
    assert pa.total_allocated_bytes() == before


def test_a_batch_with_compressed_buffers_is_refused() -> None:
    """Arrow would unpack them to any size before anybody could look."""
    table = pa.table({"x": np.zeros(1_000_000)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    stream = pa.BufferReader(sink.getvalue())
    pa.ipc.read_message(stream)
    batch = pa.ipc.read_message(stream).serialize().to_pybytes()
    parcels = Parcels({"part": table.schema})
    head = parcels.pack("", {"part": table})[: 2 * PAIR.size]
    (mark, _) = PAIR.unpack_from(head, PAIR.size)
    packed = bytes(ALIGNED) + batch
    body = PAIR.pack(1, 0) + PAIR.pack(mark, len(packed)) + packed
    with pytest.raises(WireError, match="not sent as a plain record batch"):
        Wire({"part": table.schema}).decode(crafted(body))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"{", "not JSON"),
        (b"1" * 10_000, "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[1]", "a list, not an object"),
        (b"{}", "should say 'preset' as str"),
        (b'{"preset":1}', "should say 'preset' as str, but says 1"),
        (
            b'{"preset":"","name":"a","role":"child","digest":"","session":true}',
            "should say 'session' as int, but says True",
        ),
    ],
)
def test_a_text_that_is_not_what_it_should_be_is_refused(text: bytes, reason: str) -> None:
    body = PAIR.pack(0, len(text)) + text
    with pytest.raises(WireError, match=reason):
        WIRE.decode(crafted(body, kind=Kind.HELLO))


def test_a_hello_whose_preset_is_no_base64_is_refused() -> None:
    about = {"name": "a", "role": "child", "digest": "", "session": 1, "oldest": 1, "newest": 0}
    for preset in ["?", "ä", "a"]:
        text = json.dumps({**about, "leaves": [], "preset": preset}).encode()
        with pytest.raises(WireError, match="base64"):
            WIRE.decode(crafted(PAIR.pack(0, len(text)) + text, kind=Kind.HELLO))


def test_lengths_that_lead_elsewhere_are_refused() -> None:
    for body in [
        b"\1",
        PAIR.pack(2**32 - 1, 0),
        PAIR.pack(0, 5),
        PAIR.pack(1, 0) + PAIR.pack(1, 9),
    ]:
        with pytest.raises(WireError, match=r"cut off|not as long as it says"):
            WIRE.decode(crafted(body))


def test_a_heartbeat_with_tables_is_refused() -> None:
    body = Parcels({"slices": SLICES}).pack("", {"slices": SLICE})
    with pytest.raises(WireError, match="HEARTBEAT holds tables"):
        WIRE.decode(crafted(body, kind=Kind.HEARTBEAT))


def test_hostile_batches_are_refused_or_are_sound() -> None:
    """Changes under a check that holds: whoever sent them meant them."""
    rng = random.Random(3)
    table = pa.table(
        {
            "name": pa.array(["a", None, "ccc"]),
            "runs": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
            "city": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    wire = Wire({"part": table.schema})
    body = Parcels({"part": table.schema}).pack("", {"part": table})
    refused = 0
    for _ in range(3000):
        changed = bytearray(body)
        for _ in range(rng.choice([1, 2, 5])):
            at = rng.randrange(len(changed))
            changed[at] = rng.choice([0, 1, 127, 128, 255, changed[at] ^ 1 << rng.randrange(8)])
        try:
            message = wire.decode(crafted(bytes(changed)))
        except WireError:
            refused += 1
        else:
            assert isinstance(message, Numbered)
            for arrived in message.report.tables.values():
                arrived.validate(full=True)
                arrived.to_pylist()
    assert refused > 1000


@pytest.mark.parametrize("form", [1, 2, 3, 255])
@pytest.mark.parametrize("column", [[0.5] * 20, [None] * 20, ["text" * 20] * 20, []])
def test_a_form_that_a_column_cannot_have_is_refused(form: int, column: list[object]) -> None:
    table = pa.table({"x": column})
    packed = bytearray(Batches(table.schema).pack(table))
    packed[0] = form
    with pytest.raises(WireError, match=rf"is in a form \({form}\) that it cannot have"):
        Batches(table.schema).unpack(pa.py_buffer(bytes(packed)))


def test_a_size_that_is_off_by_one_is_refused() -> None:
    body = struct.pack("<II", 0, 0)
    assert WIRE.decode(crafted(body)) == Numbered(1, Report(0))
    for size in [len(body) - 1, len(body) + 1]:
        with pytest.raises(WireError, match="does not unpack to"):
            WIRE.decode(crafted(body, size=size))
