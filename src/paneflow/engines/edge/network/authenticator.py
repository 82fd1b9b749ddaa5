"""Decides who may connect: nodes whose public key is in the folder, and nobody else.

ZeroMQ asks by its own protocol, ZAP, over a socket inside the process; a thread answers. The folder
is read again when an unknown key appears, so that a node can be let in while the tree runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import TracebackType

import zmq
import zmq.utils.z85 as z85

from paneflow.engines.edge.network.keys import KeysError, known_keys

log = logging.getLogger(__name__)

ZAP = "inproc://zeromq.zap.01"
_STOP = "inproc://paneflow.zap.stop"


class Authenticator:
    """Answers for all sockets of one ZeroMQ context. Open it before a socket is bound."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        folder: str | Path,
        refused: Callable[[str], object] = lambda address: None,
    ) -> None:
        self._folder = Path(folder)
        self._refused = refused
        self._known = known_keys(folder)
        self._asked = context.socket(zmq.REP)
        self._asked.linger = 0
        self._asked.bind(ZAP)
        self._stopped, self._stop = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        self._stopped.bind(_STOP)
        self._stop.connect(_STOP)
        self._thread = Thread(target=self._answer, name="paneflow authenticator", daemon=True)
        self._thread.start()

    def belongs(self, name: str, key: str) -> bool:
        """Whether a node that proved to have this key may call itself by this name."""
        return self._known.get(name) == key.encode()

    def close(self) -> None:
        """Stop answering. Nobody can connect any more."""
        if not self._stop.closed:
            self._stop.send(b"")
            self._thread.join()
            self._stop.close()

    def __enter__(self) -> Authenticator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self) -> None:
        poller = zmq.Poller()
        poller.register(self._asked, zmq.POLLIN)
        poller.register(self._stopped, zmq.POLLIN)
        while self._stopped not in dict(poller.poll()):
            self._asked.send_multipart(self._decide(self._asked.recv_multipart()))
        self._asked.close()
        self._stopped.close()

    def _decide(self, frames: list[bytes]) -> list[bytes]:
        version, request, _, address, _, mechanism, *credentials = frames
        if mechanism != b"CURVE":
            return self._refuse(version, request, address, f"{mechanism.decode()} without a key")
        key = z85.encode(credentials[0])
        if key not in self._known.values():
            self._read_again()
        if key not in self._known.values():
            return self._refuse(version, request, address, f"unknown key {key.decode()}")
        return [version, request, b"200", b"OK", key, b""]

    def _refuse(self, version: bytes, request: bytes, address: bytes, why: str) -> list[bytes]:
        fields = {"address": address.decode(), "why": why}
        log.warning("a stranger was refused", extra={"fields": fields})
        self._refused(address.decode())
        return [version, request, b"400", b"Unknown key", b"", b""]

    def _read_again(self) -> None:
        try:
            self._known = known_keys(self._folder)
        except KeysError as error:
            log.warning("the keys cannot be read", extra={"fields": {"why": str(error)}})
