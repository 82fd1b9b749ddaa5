"""What nodes refuse of whoever connects, while the tree goes on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
import zmq

from paneflow.engines.edge.config import (
    LimitsConfig,
)
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.running.node import Node
from paneflow.engines.edge.wire import Goodbye, Hello, Refusal, Wire
from tests.edge.running.events import QUERY, SCHEMA, events
from tests.edge.running.threads import Threads, goes_on
from tests.waiting import wait_until


class Stranger:
    """Somebody who speaks to a node as a node, or not quite."""

    def __init__(self, node: Node) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.wire = Wire(Question(QUERY, SCHEMA).schemas)
        self.digest = Question(QUERY, SCHEMA).digest
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        assert node.address is not None
        self.socket.connect(node.address)

    def hello(self, name: str = "stranger", **others: object) -> bytes:
        about = {"digest": self.digest, "session": 1, "oldest": 1, "newest": 0}
        hello = Hello(name, "child", **(about | others), preset=self.wire.preset)  # type: ignore[arg-type]
        return self.wire.encode(hello)

    def answer(self) -> object:
        return self.wire.decode(self.socket.recv())

    def close(self) -> None:
        self.socket.close()
        self.context.term()


@pytest.fixture
def stranger(tree: Threads) -> Iterator[Callable[[Node], Stranger]]:
    made: list[Stranger] = []

    def speak(node: Node) -> Stranger:
        made.append(Stranger(node))
        return made[-1]

    yield speak
    for one in made:
        one.close()


Speak = Callable[[Node], Stranger]


def garbage(stranger: Stranger) -> list[bytes]:
    """Messages that are wrong, each in its own way."""
    good = stranger.hello()
    flipped = bytearray(good)
    flipped[-1] ^= 1
    other_version = bytearray(good)
    other_version[2] += 1
    unknown = bytearray(stranger.wire.encode(Goodbye()))
    unknown[3] = 63
    return [b"", b"x", good[:-3], good + b"x", bytes(flipped), bytes(other_version), bytes(unknown)]


def test_messages_that_cannot_be_read_are_counted_and_end_nothing(
    tree: Threads, stranger: Speak, caplog: pytest.LogCaptureFixture
) -> None:
    root = tree.root()
    speaker = stranger(root)
    wrong = garbage(speaker)
    for message in wrong:
        speaker.socket.send(message)
    wait_until(lambda: root.metrics().refused == len(wrong) == len(caplog.records))
    assert {r.message for r in caplog.records} == {"a message was refused"}
    assert any("of version 2 of the protocol" in r.fields["why"] for r in caplog.records)  # type: ignore[attr-defined]
    goes_on(tree, root)


def test_who_sends_only_garbage_is_not_listened_to_any_more(
    tree: Threads, stranger: Speak, caplog: pytest.LogCaptureFixture
) -> None:
    root = tree.root()
    speaker = stranger(root)
    for _ in range(100):
        speaker.socket.send(b"x")
    wait_until(lambda: "nothing more is read from a connection" in caplog.messages)
    goes_on(tree, root)
    assert len(caplog.messages) < 50


def test_an_oversized_message_is_not_taken(tree: Threads, stranger: Speak) -> None:
    root = tree.root(limits=LimitsConfig(message_bytes=10_000))
    stranger(root).socket.send(b"x" * 20_001)
    goes_on(tree, root)


def test_a_message_over_the_limit_is_refused_with_a_line_in_the_log(
    tree: Threads, stranger: Speak, caplog: pytest.LogCaptureFixture
) -> None:
    root = tree.root(limits=LimitsConfig(message_bytes=10_000))
    speaker = stranger(root)
    speaker.socket.send(speaker.hello(leaves=tuple(secrets.token_hex() for _ in range(200))))
    wait_until(lambda: root.metrics().refused and caplog.records)
    assert "larger than the 10,000 bytes" in caplog.records[0].fields["why"]  # type: ignore[attr-defined]
    goes_on(tree, root)


def test_a_node_that_answers_another_query_is_refused(tree: Threads, stranger: Speak) -> None:
    root = tree.root()
    speaker = stranger(root)
    speaker.socket.send(speaker.hello(digest="other"))
    answer = speaker.answer()
    assert isinstance(answer, Refusal)
    assert "another query" in answer.reason


def test_a_node_whose_log_is_gone_is_refused(tree: Threads, stranger: Speak) -> None:
    root = tree.root()
    child = tree.child("a", root)
    tree.sensor(child).push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())
    speaker = stranger(root)
    speaker.socket.send(speaker.hello("a"))
    answer = speaker.answer()
    assert isinstance(answer, Refusal)
    assert "the log of 'a' is gone" in answer.reason


def test_a_node_that_has_not_greeted_is_asked_to(tree: Threads, stranger: Speak) -> None:
    speaker = stranger(tree.root())
    speaker.socket.send(speaker.wire.encode(Goodbye()))
    assert type(speaker.answer()).__name__ == "Introduce"


def test_of_two_nodes_of_one_name_the_last_to_come_is_heard(tree: Threads, stranger: Speak) -> None:
    root = tree.root()
    first, second = stranger(root), stranger(root)
    first.socket.send(first.hello())
    assert type(first.answer()).__name__ == "Welcome"
    second.socket.send(second.hello())
    assert type(second.answer()).__name__ == "Welcome"
    answer = first.answer()
    assert isinstance(answer, Refusal)
    assert "another node named 'stranger' has connected" in answer.reason
