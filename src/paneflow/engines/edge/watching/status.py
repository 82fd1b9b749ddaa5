"""Asking a running node what its tree looks like, as `paneflow node top` does.

This has a socket of its own, so that nobody who only watches needs the rights of a node. Beyond
this machine it answers those whose keys the node knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import NamedTuple

import zmq

from paneflow.engines.edge.network.addresses import stays_here
from paneflow.engines.edge.network.authenticator import Authenticator
from paneflow.engines.edge.network.keys import KeysError, read_keys, read_public
from paneflow.engines.edge.watching.picture import NodeLine
from paneflow.errors import PaneflowError

VERSION = 1
MOST_BYTES = 16 << 20

Lines = Callable[[], list[NodeLine]]


class StatusError(PaneflowError):
    """A node did not say what its tree looks like."""


class Watcher(NamedTuple):
    """Who asks, and whom, where keys are needed."""

    keys: Path
    name: str
    node: str


class StatusServer:
    """Answers whoever asks, from a thread of its own.

    Args:
        address: Where it listens.
        lines: Gives the picture; called in that thread.
        name: The name of the node.
        keys: The folder of keys; None where only this machine can ask.
    """

    def __init__(self, address: str, lines: Lines, name: str, keys: Path | None = None) -> None:
        if keys is None and not stays_here(address):
            raise KeysError(
                f"{address} can be reached from other machines, and this node has no keys: make "
                f"them with `paneflow keys make FOLDER {name}`, or listen at 127.0.0.1"
            )
        own = None if keys is None else read_keys(keys, name)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._lines = lines
        self._name = name
        self._asked = self._context.socket(zmq.REP)
        self._asked.linger = 0
        self._asked.maxmsgsize = 1000
        self._authenticator = None if keys is None else Authenticator(self._context, keys)
        if own is not None:
            self._asked.curve_server = True
            self._asked.curve_secretkey = own.secret
            self._asked.curve_publickey = own.public
            self._asked.zap_domain = b"paneflow"
        try:
            self._asked.bind(address)
        except zmq.ZMQError as error:
            self._close_sockets()
            raise StatusError(
                f"nobody can be answered at {address} ({zmq.strerror(error.errno or 0)}): choose "
                f"another address for the status, or stop what uses this one"
            ) from None
        self.address = self._asked.getsockopt_string(zmq.LAST_ENDPOINT)
        self._stopped, self._stop = self._pair()
        self._thread = Thread(target=self._answer, name="paneflow status", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._stop.send(b"")
        self._thread.join()
        self._stopped.close()
        self._stop.close()
        self._close_sockets()

    def __enter__(self) -> StatusServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _pair(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        ends = self._context.socket(zmq.PAIR), self._context.socket(zmq.PAIR)
        ends[0].bind("inproc://stop")
        ends[1].connect("inproc://stop")
        return ends

    def _answer(self) -> None:
        poller = zmq.Poller()
        poller.register(self._asked, zmq.POLLIN)
        poller.register(self._stopped, zmq.POLLIN)
        while self._stopped not in dict(poller.poll()):
            self._asked.recv_multipart()
            lines = [asdict(line) for line in self._lines()]
            told = {"version": VERSION, "node": self._name, "lines": lines}
            self._asked.send(json.dumps(told).encode())

    def _close_sockets(self) -> None:
        if self._authenticator is not None:
            self._authenticator.close()
        self._asked.close()
        self._context.term()


def ask_status(
    address: str, watcher: Watcher | None = None, patience: float = 5.0
) -> list[NodeLine]:
    """What the tree of the node at an address looks like."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.linger = 0
    socket.maxmsgsize = MOST_BYTES
    try:
        if watcher is not None:
            own = read_keys(watcher.keys, watcher.name)
            socket.curve_secretkey, socket.curve_publickey = own.secret, own.public
            socket.curve_serverkey = read_public(watcher.keys, watcher.node)
        socket.connect(address)
        socket.send(b"tree")
        if not socket.poll(round(patience * 1000)):
            raise StatusError(
                f"{address} has not answered for {patience:g} seconds: give the address that the "
                f"node has as its status, with keys if it is on another machine"
            )
        return _read(address, socket.recv())
    except zmq.ZMQError as error:
        raise StatusError(
            f"{address!r} cannot be asked ({zmq.strerror(error.errno or 0)}): give for example "
            f"tcp://127.0.0.1:7099, the address that the node has as its status"
        ) from None
    finally:
        socket.close()
        context.term()


def _read(address: str, answer: bytes) -> list[NodeLine]:
    try:
        told = json.loads(answer)
        if told["version"] == VERSION:
            return [NodeLine(**line) for line in told["lines"]]
    except (ValueError, TypeError, KeyError):
        pass
    raise StatusError(
        f"what answers at {address} is not a node of this version: give the address that the node "
        f"has as its status, and use one version of paneflow on all machines"
    )
