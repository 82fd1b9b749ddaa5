"""Asking a node for its picture, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
import zmq

from paneflow.engines.edge.network.keys import KeysError, make_keys
from paneflow.engines.edge.watching.picture import TreePicture
from paneflow.engines.edge.watching.status import StatusError, StatusServer, Watcher, ask_status
from tests.waiting import PATIENCE

HERE = "tcp://127.0.0.1:*"


@pytest.fixture
def picture() -> TreePicture:
    picture = TreePicture(10.0)
    picture.take("cloud", None, {"role": "root", "at": 1.0, "rows": 5}, 1.0)
    picture.take("street", "cloud", {"role": "child", "at": 1.0, "events": 5}, 1.0)
    picture.take("street", "cloud", {"role": "child", "at": 3.0, "events": 25}, 3.0)
    picture.expect("lane", "cloud")
    return picture


@pytest.fixture
def server(picture: TreePicture) -> Iterator[StatusServer]:
    with StatusServer(HERE, lambda: picture.lines(4.0), "cloud") as server:
        yield server


def test_whoever_asks_gets_the_picture(server: StatusServer, picture: TreePicture) -> None:
    lines = ask_status(server.address, patience=PATIENCE)
    assert lines == picture.lines(4.0)
    assert [line.node for line in lines] == ["cloud", "lane", "street"]
    assert lines[2].events_per_second == 10


def test_every_answer_is_new(server: StatusServer, picture: TreePicture) -> None:
    assert len(ask_status(server.address, patience=PATIENCE)) == 3
    picture.expect("alley", "cloud")
    assert len(ask_status(server.address, patience=PATIENCE)) == 4


def test_a_node_that_does_not_answer_is_named() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context, context.socket(zmq.PULL) as silent:
        silent.bind(HERE)
        address = silent.getsockopt_string(zmq.LAST_ENDPOINT)
        with pytest.raises(StatusError, match=f"{address} has not answered for 0.1 seconds"):
            ask_status(address, patience=0.1)


@pytest.mark.parametrize("address", ["cloud", "http://127.0.0.1:80", "tcp://127.0.0.1", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(StatusError, match="cannot be asked"):
        ask_status(address)


@pytest.mark.parametrize("answer", [b"", b"\xff", b"[]", b"{}", b'{"version": 2, "lines": []}'])
def test_an_answer_that_cannot_be_read_is_refused(answer: bytes) -> None:
    with pytest.raises(StatusError, match="is not a node of this version"):
        ask_answering(answer)


def ask_answering(answer: bytes) -> None:
    """Ask somebody who gives that answer."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context, context.socket(zmq.REP) as other:
        other.bind(HERE)

        def reply() -> None:
            other.recv()
            other.send(answer)

        thread = Thread(target=reply)
        thread.start()
        try:
            ask_status(other.getsockopt_string(zmq.LAST_ENDPOINT), patience=PATIENCE)
        finally:
            thread.join()


def test_an_address_that_is_taken_is_named(server: StatusServer) -> None:
    with pytest.raises(
        StatusError, match=r"nobody can be answered at .* \(Address already in use\)"
    ):
        StatusServer(server.address, list, "cloud")


def test_beyond_this_machine_keys_are_needed() -> None:
    with pytest.raises(KeysError, match="this node has no keys"):
        StatusServer("tcp://*:7099", list, "cloud")


def exchange(mine: Path, theirs: Path, name: str) -> None:
    (theirs / f"{name}.key").write_bytes((mine / f"{name}.key").read_bytes())


def test_with_keys_only_those_who_are_known_are_answered(
    picture: TreePicture, tmp_path: Path
) -> None:
    cloud, laptop, stranger = (tmp_path / name for name in ("cloud", "laptop", "stranger"))
    for folder in (cloud, laptop, stranger):
        make_keys(folder, folder.name)
    exchange(cloud, laptop, "cloud")
    exchange(cloud, stranger, "cloud")
    exchange(laptop, cloud, "laptop")
    with StatusServer(HERE, lambda: picture.lines(4.0), "cloud", cloud) as server:
        known = Watcher(laptop, "laptop", "cloud")
        assert ask_status(server.address, known, PATIENCE) == picture.lines(4.0)
        with pytest.raises(StatusError, match="has not answered"):
            ask_status(server.address, Watcher(stranger, "stranger", "cloud"), patience=0.3)
        with pytest.raises(StatusError, match="has not answered"):
            ask_status(server.address, patience=0.3)
        assert ask_status(server.address, known, PATIENCE) == picture.lines(4.0)
