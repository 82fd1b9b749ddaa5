"""Who the sensors of a child are, and how far each of them has come. No sockets here.

A source is a name; the sensor behind it may connect again, be started again, or be replaced. What a
connection sends counts only after it has greeted, and only while no other connection has greeted by
the same name since.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from paneflow.engines.edge.inputs.sensors.messages import ACKNOWLEDGED, REFUSED, WELCOME, Hello

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What to send to a connection."""

    connection: bytes
    kind: int
    number: int
    text: str = ""
    """The reason, where something is refused."""


@dataclass
class Session:
    """One source."""

    name: str
    given: int
    """The number of the last batch that was given to the child."""
    settled: int
    """The number of the last batch in the child's log."""
    token: str = ""
    connection: bytes = b""
    replaced: set[str] = field(default_factory=set)
    """Tokens of sensors that others of the same name have replaced."""
    greeting: tuple[bytes, int, Hello] | None = None
    """A greeting that is answered when the log has everything from the sensor before."""


class Sessions:
    """All sources of one input, and the connections they use now."""

    def __init__(self, positions: Mapping[str, int]) -> None:
        self._sources = {name: Session(name, last, last) for name, last in positions.items()}
        self._connections: dict[bytes, Session] = {}

    def greet(self, connection: bytes, number: int, hello: Hello) -> list[Answer]:
        """A sensor says who it is: for the first time, after a break, or in place of another."""
        session = self._sources.setdefault(hello.name, Session(hello.name, 0, 0))
        if hello.token in session.replaced:
            return [Answer(connection, REFUSED, number, _replaced(hello.name))]
        if hello.token == session.token or session.given == session.settled:
            return self._welcome(session, connection, number, hello)
        # What the sensor before has sent is neither lost nor in the log: it decides where the
        # numbers of the new one begin.
        session.greeting = connection, number, hello
        return self._dismiss(session, hello)

    def session(self, connection: bytes) -> Session | None:
        """The source that sends over a connection; None if it has to greet first."""
        return self._connections.get(connection)

    def settle(self, positions: Mapping[str, int]) -> list[Answer]:
        """These batches are in the log."""
        answers = []
        for name, position in positions.items():
            session = self._sources.get(name)
            if session is None or position <= session.settled:
                continue
            session.settled = position
            if session.connection:
                answers.append(Answer(session.connection, ACKNOWLEDGED, position))
            if session.greeting is not None and session.given == session.settled:
                answers += self._welcome(session, *session.greeting)
        return answers

    def refuse(self, connection: bytes, number: int, reason: str) -> Answer:
        """Take nothing more over a connection, and say why."""
        session = self._connections.pop(connection, None)
        if session is not None:
            session.connection = b""
        return Answer(connection, REFUSED, number, reason)

    def _welcome(
        self, session: Session, connection: bytes, number: int, hello: Hello
    ) -> list[Answer]:
        answers = self._dismiss(session, hello)
        self._connections.pop(session.connection, None)
        self._connections[connection] = session
        session.connection, session.token, session.greeting = connection, hello.token, None
        if hello.behind is not None and hello.behind > session.given:
            log.warning(
                "sensor %r goes on behind batch %d, but the log of this child ends with batch %d: "
                "another log has the batches in between",
                session.name,
                hello.behind,
                session.given,
            )
            session.given = session.settled = hello.behind
        acknowledged = Answer(connection, ACKNOWLEDGED, session.settled)
        return [*answers, Answer(connection, WELCOME, number), acknowledged]

    def _dismiss(self, session: Session, hello: Hello) -> list[Answer]:
        """Let the sensor go that another one of the same name replaces."""
        if session.token in ("", hello.token):
            return []
        session.replaced.add(session.token)
        session.token = ""
        before, session.connection = session.connection, b""
        self._connections.pop(before, None)
        return [Answer(before, REFUSED, 0, _replaced(session.name))] if before else []


def _replaced(name: str) -> str:
    return (
        f"another sensor named {name!r} has connected since: give each sensor a name of its own, "
        f"and close a sensor before it is started again"
    )
