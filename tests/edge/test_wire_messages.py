"""Messages of every kind arrive as they were sent, and small ones stay small."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL, Report
from paneflow.engines.edge.wire import (
    Ack,
    Ask,
    Goodbye,
    Heartbeat,
    Hello,
    Introduce,
    Message,
    Numbered,
    Refusal,
    Resend,
    Welcome,
    Wire,
)

SLICES = pa.schema(
    [
        ("slicing", pa.string()),
        ("start", pa.timestamp("us")),
        ("last", pa.timestamp("us")),
        ("rows", pa.int64()),
        ("count(load)", pa.int64()),
        ("0:max(load).value", pa.float64()),
    ]
)
WIRE = Wire({"events": pa.schema([("ts", pa.int64()), ("name", pa.string())]), "slices": SLICES})
SLICE = pa.Table.from_pylist(
    [
        {
            "slicing": "time",
            "start": 1_731_988_800_000_000,
            "last": 1_731_988_800_999_871,
            "rows": 98_313,
            "count(load)": 98_307,
            "0:max(load).value": 3.141592653589793,
        }
    ],
    SLICES,
)
SESSION = 1_731_988_800_123_456_789

MESSAGES: list[Message] = [
    Numbered(1, Report(BEFORE_ALL)),
    Numbered(2**63, Report(AFTER_ALL, {"slices": SLICE})),
    Numbered(3, Report(-1, {"slices": SLICE, "events": pa.table({"ts": [1], "name": ["ä"]})})),
    Numbered(4, Report(0, {}, {"plug-7": 5, "plug 8, in the hall": BEFORE_ALL})),
    Hello("hall", "merge", "abc", SESSION, 5, 4, ("plug-7", "plug-8"), WIRE.preset, 700),
    Welcome(SESSION, 17, "abc"),
    Refusal(SESSION, "this node answers another query"),
    Introduce(),
    Ack(12),
    Resend(9),
    Heartbeat(12, {"events": 5, "lag": 0.25, "children": {"plug-7": "alive"}, "late": None}),
    Heartbeat(0),
    Goodbye(),
    Ask(3, {"slices": [1, 2]}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    data = WIRE.encode(message)
    assert WIRE.decode(data) == message
    assert WIRE.decode(memoryview(bytearray(data))) == message


def test_a_message_is_read_wherever_it_lies_in_memory() -> None:
    data = WIRE.encode(MESSAGES[1])
    assert WIRE.decode(memoryview(b"123" + data)[3:]) == MESSAGES[1]


def test_a_report_of_one_slice_takes_few_bytes() -> None:
    data = WIRE.encode(Numbered(123_456, Report(1_731_988_801_000_000, {"slices": SLICE})))
    assert len(data) < 120


def test_a_report_of_nothing_but_a_watermark_is_a_header() -> None:
    assert len(WIRE.encode(Numbered(123_456, Report(1_731_988_801_000_000)))) == 32


def test_a_report_is_read_with_the_preset_that_its_sender_used() -> None:
    """Another release of Arrow may write other bytes, and so make another preset."""
    message = Numbered(1, Report(0, {"slices": SLICE}))
    sender = WIRE.reading(bytes(range(256)) * 4)
    data = sender.encode(message)
    assert WIRE.reading(sender.preset).decode(data) == message


def test_a_hello_can_be_read_before_presets_are_known() -> None:
    hello = Hello("hall", "child", "abc", SESSION, 1, 0, ("hall",), WIRE.preset)
    assert WIRE.decode(WIRE.reading(b"another preset").encode(hello)) == hello
