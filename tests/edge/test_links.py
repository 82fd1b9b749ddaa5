"""What the two ends of a link do, one situation at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paneflow.engines.edge.links import Receiver, Sender
from paneflow.engines.edge.records import Report
from paneflow.engines.edge.wire import (
    Ack,
    Heartbeat,
    Hello,
    Numbered,
    Refusal,
    Resend,
    Welcome,
    Wire,
    size_of,
)

SCHEMA = pa.schema([("x", pa.int64())])
WIRE = Wire({"part": SCHEMA})


def report(number: int) -> Report:
    return Report(10 * number, {"part": pa.table({"x": [number]}, schema=SCHEMA)})


def numbered(number: int) -> Numbered:
    return Numbered(number, report(number))


def sender_of(count: int) -> Sender:
    """A sender that was let in, with reports that have not been sent."""
    sender = Sender(WIRE)
    for number in range(1, count + 1):
        assert sender.add(report(number)) == number
    sender.hello("hall", "child", "query", session=1)
    assert sender.welcomed(Welcome(1, 1, "query"))
    return sender


def sent(sender: Sender) -> list[int]:
    """The numbers of all that is to be sent now."""
    numbers = []
    while (data := sender.next()) is not None:
        message = WIRE.decode(data)
        assert message == numbered(message.number)  # type: ignore[union-attr]
        numbers.append(message.number)  # type: ignore[union-attr]
        sender.sent()
    return numbers


def hello(oldest: int, newest: int, digest: str = "query") -> Hello:
    return Hello("hall", "child", digest, 5, oldest, newest, (), WIRE.preset)


def test_reports_are_sent_once_and_kept_until_they_are_acknowledged() -> None:
    sender = sender_of(3)
    assert sent(sender) == [1, 2, 3]
    assert sent(sender) == []
    waiting = sender.waiting
    sender.acknowledge(2)
    assert 0 < sender.waiting < waiting
    assert (sender.oldest, sender.newest) == (3, 3)
    sender.acknowledge(3)
    sender.acknowledge(1)
    assert sender.waiting == 0
    assert (sender.oldest, sender.newest) == (4, 3)


def test_a_message_that_could_not_be_sent_is_the_next_again() -> None:
    sender = sender_of(1)
    assert sender.next() == sender.next() is not None


def test_nothing_is_sent_before_the_parent_lets_the_node_in() -> None:
    sender = Sender(WIRE)
    sender.add(report(1))
    assert sender.next() is None
    said = sender.hello("hall", "child", "query", session=8, leaves=("hall",))
    largest = size_of(WIRE.encode(numbered(1)))
    assert said == Hello("hall", "child", "query", 8, 1, 1, ("hall",), WIRE.preset, largest)
    assert sender.next() is None
    assert not sender.welcomed(Welcome(7, 1, "query"))
    assert sender.next() is None
    assert sender.welcomed(Welcome(8, 1, "query"))
    assert sent(sender) == [1]
    sender.disconnect()
    sender.add(report(2))
    assert sender.next() is None


def test_only_an_answer_to_the_last_hello_refuses() -> None:
    sender = Sender(WIRE)
    sender.hello("hall", "child", "query", session=8)
    assert not sender.refused(Refusal(7, "why"))
    assert sender.refused(Refusal(8, "why"))
    sender.welcomed(Welcome(8, 1, "query"))
    assert not sender.refused(Refusal(8, "why"))


def test_what_the_parent_misses_is_sent_again() -> None:
    sender = sender_of(5)
    assert sent(sender) == [1, 2, 3, 4, 5]
    sender.acknowledge(2)
    sender.resend(4)
    assert sent(sender) == [4, 5]
    sender.resend(1)
    assert sent(sender) == [3, 4, 5]


def test_a_new_session_goes_on_where_the_parent_says() -> None:
    sender = sender_of(5)
    sent(sender)
    sender.hello("hall", "child", "query", session=2)
    sender.welcomed(Welcome(2, 4, "query"))
    assert sender.oldest == 1
    assert sent(sender) == [4, 5]


def test_a_heartbeat_says_what_was_sent_last() -> None:
    sender = sender_of(2)
    assert sender.heartbeat({}).number == 0
    sent(sender)
    assert sender.heartbeat({"events": 3}) == Heartbeat(2, {"events": 3})


def test_a_sender_goes_on_from_what_was_kept() -> None:
    sender = sender_of(4)
    sender.acknowledge(2)
    again = Sender(WIRE, sender.kept())
    assert (again.oldest, again.newest, again.waiting) == (3, 4, sender.waiting)
    assert again.add(report(5)) == 5
    again.hello("hall", "child", "query", session=9)
    again.welcomed(Welcome(9, 3, "query"))
    assert sent(again) == [3, 4, 5]


def test_what_was_kept_can_be_read_after_an_upgrade() -> None:
    before = WIRE.reading(b"made by another release")
    sender = Sender(before)
    sender.add(report(1))
    again = Sender(WIRE, sender.kept())
    assert again.hello("hall", "child", "query", session=1).preset == WIRE.preset
    again.welcomed(Welcome(1, 1, "query"))
    assert sent(again) == [1]


def test_each_report_is_taken_once() -> None:
    receiver = Receiver("hall", WIRE)
    assert [receiver.take(numbered(n)) for n in [1, 2, 2, 1, 3]] == [True, True, False, False, True]


def test_only_what_is_logged_is_acknowledged() -> None:
    receiver = Receiver("hall", WIRE)
    receiver.take(numbered(1))
    receiver.take(numbered(2))
    assert receiver.answers() == []
    receiver.log(1)
    assert receiver.answers() == [Ack(1)]
    assert receiver.answers() == []
    receiver.log(2)
    assert receiver.answers() == [Ack(2)]


def test_a_gap_is_asked_for_once() -> None:
    receiver = Receiver("hall", WIRE)
    assert not receiver.take(numbered(2))
    assert receiver.answers() == [Resend(1)]
    assert not receiver.take(numbered(3))
    assert receiver.answers() == []
    assert receiver.take(numbered(1))
    assert not receiver.take(numbered(3))
    assert receiver.answers() == [Resend(2)]


def test_a_heartbeat_shows_that_the_last_report_or_the_request_was_lost() -> None:
    receiver = Receiver("hall", WIRE)
    receiver.hear(Heartbeat(0))
    assert receiver.answers() == []
    for _ in range(2):
        receiver.hear(Heartbeat(1))
        assert receiver.answers() == [Resend(1)]


@pytest.mark.parametrize("again", [numbered(1), Heartbeat(1)], ids=["report", "heartbeat"])
def test_an_acknowledgement_that_was_lost_is_repeated(again: Numbered | Heartbeat) -> None:
    receiver = Receiver("hall", WIRE)
    receiver.take(numbered(1))
    receiver.log(1)
    receiver.answers()
    if isinstance(again, Numbered):
        receiver.take(again)
    else:
        receiver.hear(again)
    assert receiver.answers() == [Ack(1)]


def test_a_hello_is_answered_with_what_is_wanted() -> None:
    receiver = Receiver("hall", WIRE, logged=3)
    assert not receiver.greeted
    assert receiver.greet(hello(3, 7), "query") == Welcome(5, 4, "query")
    assert receiver.greeted
    assert receiver.answers() == [Ack(3)]
    assert receiver.read(WIRE.encode(numbered(4))) == numbered(4)


def test_a_child_that_asks_another_query_is_refused() -> None:
    answer = Receiver("hall", WIRE).greet(hello(1, 0, "another"), "query")
    assert isinstance(answer, Refusal)
    assert "answers another query" in answer.reason


def test_a_log_that_was_lost_is_noticed_before_it_does_harm() -> None:
    answer = Receiver("hall", WIRE).greet(hello(5, 9), "query")
    assert isinstance(answer, Refusal)
    assert "part of this node's log is gone" in answer.reason
    receiver = Receiver("hall", WIRE, logged=7)
    answer = receiver.greet(hello(1, 0), "query")
    assert isinstance(answer, Refusal)
    assert "this node has 7 reports of 'hall', which itself knows of 0" in answer.reason
    assert not receiver.greeted
