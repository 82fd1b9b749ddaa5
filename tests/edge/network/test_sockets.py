"""Listeners and uplinks over real connections: who gets in, and what is kept out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from paneflow.engines.edge.network.authenticator import Authenticator
from paneflow.engines.edge.network.keys import Keys, KeysError, make_keys
from paneflow.engines.edge.network.sockets import AddressError, Limits, Listener, Received, Uplink
from tests.waiting import wait_until

HERE = "tcp://127.0.0.1:*"
LIMITS = Limits(message_bytes=10_000, linger=0)


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


class Guarded:
    """A listener that asks for keys, and a folder that says who is known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context = zmq.Context()
        self.keys = make_keys(folder, "root")
        self.strangers: list[str] = []
        self.authenticator = Authenticator(self.context, folder, self.strangers.append)
        self.listener = Listener(self.context, HERE, self.keys, LIMITS)
        self.uplinks: list[Uplink] = []

    def uplink(self, keys: Keys, parent_key: bytes | None = None) -> Uplink:
        expected = parent_key or self.keys.public
        made = Uplink(self.context, self.listener.address, keys, expected, LIMITS)
        self.uplinks.append(made)
        return made

    def close(self) -> None:
        for uplink in self.uplinks:
            uplink.close()
        self.listener.close()
        self.authenticator.close()
        self.context.destroy(linger=0)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    made = Guarded(tmp_path / "known")
    yield made
    made.close()


def receive(listener: Listener, count: int = 1) -> list[Received]:
    taken: list[Received] = []

    def enough() -> bool:
        taken.extend(listener.receive(1_000_000))
        return len(taken) >= count

    wait_until(enough)
    return taken


def connect(uplink: Uplink) -> None:
    wait_until(lambda: uplink.read_events() or uplink.connected)


def test_messages_go_both_ways(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    listener = Listener(context, HERE, None, LIMITS)
    uplink = Uplink(context, listener.address, None, None, LIMITS)
    connect(uplink)
    assert uplink.send(b"one", b"two")
    [received] = receive(listener)
    assert received.messages == [b"one", b"two"]
    assert received.key == ""
    listener.send(received.connection, b"answer")
    answers: list[bytes] = []
    wait_until(lambda: answers.extend(uplink.receive()) or answers)
    assert answers == [b"answer"]
    uplink.close()
    listener.close()


def test_an_uplink_notices_that_its_parent_was_away(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    listener = Listener(context, HERE, None, LIMITS)
    uplink = Uplink(context, listener.address, None, None, LIMITS)
    connect(uplink)
    listener.close()
    wait_until(lambda: uplink.read_events() or not uplink.connected)
    again: list[Listener] = []

    def listens_again() -> bool:
        try:
            again.append(Listener(context, listener.address, None, LIMITS))
        except AddressError:
            return False
        return True

    wait_until(listens_again)
    wait_until(uplink.read_events)
    uplink.send(b"here again")
    assert receive(again[0])[0].messages == [b"here again"]
    uplink.close()
    again[0].close()


def test_a_message_to_a_connection_that_is_gone_is_dropped(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    listener = Listener(context, HERE, None, LIMITS)
    listener.send(b"nobody", b"message")
    assert list(listener.receive(1_000)) == []
    listener.close()


def test_messages_are_given_up_to_a_number_of_bytes(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    listener = Listener(context, HERE, None, LIMITS)
    uplink = Uplink(context, listener.address, None, None, LIMITS)
    connect(uplink)
    for _ in range(10):
        uplink.send(b"x" * 1_000)
    counts: list[int] = []

    def all_came() -> bool:
        counts.append(len(list(listener.receive(3_000))))
        return sum(counts) == 10

    wait_until(all_came)
    assert max(counts) <= 3
    uplink.close()
    listener.close()


def test_a_known_key_comes_with_every_message(guarded: Guarded) -> None:
    keys = make_keys(guarded.folder, "child")
    uplink = guarded.uplink(keys)
    connect(uplink)
    uplink.send(b"hello")
    [received] = receive(guarded.listener)
    assert received.key == keys.public.decode()
    assert guarded.authenticator.belongs("child", received.key)
    assert not guarded.authenticator.belongs("root", received.key)
    assert not guarded.authenticator.belongs("nobody", received.key)


def test_a_stranger_is_refused_and_logged_with_its_address(
    guarded: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = guarded.uplink(make_keys(tmp_path / "elsewhere", "child"))
    stranger.send(b"let me in")
    with caplog.at_level(logging.WARNING):
        wait_until(lambda: guarded.strangers)
        wait_until(lambda: stranger.read_events() or "parent refuses" in caplog.text)
    assert guarded.strangers[0] == "127.0.0.1"
    [refused] = [r for r in caplog.records if r.message == "a stranger was refused"][:1]
    assert refused.fields["address"] == "127.0.0.1"
    assert list(guarded.listener.receive(1_000)) == []
    assert not stranger.connected


def test_a_node_is_let_in_once_its_key_is_in_the_folder(guarded: Guarded, tmp_path: Path) -> None:
    keys = make_keys(tmp_path / "elsewhere", "child")
    refused = guarded.uplink(keys)
    wait_until(lambda: guarded.strangers)
    refused.close()
    public = (tmp_path / "elsewhere" / "child.key").read_bytes()
    (guarded.folder / "child.key").write_bytes(public)
    connect(guarded.uplink(keys))


def test_a_connection_without_a_key_is_refused(guarded: Guarded) -> None:
    plain = guarded.context.socket(zmq.DEALER)
    plain.linger = 0
    plain.connect(guarded.listener.address)
    plain.send(b"let me in")

    def refused() -> bool:
        guarded.listener.read_events()
        return guarded.listener.failed_handshakes > 0

    wait_until(refused)
    assert list(guarded.listener.receive(1_000)) == []
    plain.close()


def test_an_uplink_does_not_talk_to_a_parent_with_another_key(
    guarded: Guarded, tmp_path: Path
) -> None:
    keys = make_keys(guarded.folder, "child")
    other = make_keys(tmp_path / "elsewhere", "root")
    uplink = guarded.uplink(keys, parent_key=other.public)
    uplink.send(b"secret")

    def refused() -> bool:
        uplink.read_events()
        guarded.listener.read_events()
        return guarded.listener.failed_handshakes > 0

    wait_until(refused)
    assert not uplink.connected
    assert list(guarded.listener.receive(1_000)) == []


def test_an_oversized_message_ends_its_own_connection_only(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    listener = Listener(context, HERE, None, LIMITS)
    large, small = (
        Uplink(context, listener.address, None, None, Limits(message_bytes=-1, linger=0))
        for _ in range(2)
    )
    connect(large)
    connect(small)
    large.send(b"x" * 10_001)
    wait_until(lambda: large.read_events() or not large.connected)
    small.send(b"still here")
    assert [received.messages for received in receive(listener)] == [[b"still here"]]
    for end in (large, small, listener):
        end.close()


@pytest.mark.parametrize("address", ["tcp://*:*", "tcp://0.0.0.0:*"])
def test_without_keys_nobody_outside_can_connect(
    context: zmq.Context[zmq.Socket[bytes]], address: str
) -> None:
    with pytest.raises(KeysError, match="paneflow keys make"):
        Listener(context, address, None, LIMITS)


def test_without_keys_nothing_is_sent_to_another_machine(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    with pytest.raises(KeysError, match="paneflow keys make"):
        Uplink(context, "tcp://root.example:7001", None, None, LIMITS)


def test_with_keys_the_parents_key_is_needed(
    context: zmq.Context[zmq.Socket[bytes]], tmp_path: Path
) -> None:
    with pytest.raises(KeysError, match="public key of the node"):
        Uplink(context, "tcp://127.0.0.1:7001", make_keys(tmp_path, "child"), None, LIMITS)
