"""Which connection speaks for a source, without sockets."""

from __future__ import annotations

from paneflow.engines.edge.inputs.sensors.messages import ACKNOWLEDGED, REFUSED, WELCOME, Hello
from paneflow.engines.edge.inputs.sensors.sessions import Answer, Sessions


def kinds(answers: list[Answer]) -> list[tuple[bytes, int]]:
    return [(answer.connection, answer.kind) for answer in answers]


def test_a_sensor_that_was_replaced_cannot_come_back() -> None:
    sessions = Sessions({})
    first, second = Hello("a", "first", None), Hello("a", "second", None)
    assert kinds(sessions.greet(b"1", 1, first)) == [(b"1", WELCOME), (b"1", ACKNOWLEDGED)]
    assert kinds(sessions.greet(b"2", 1, second)) == [
        (b"1", REFUSED),
        (b"2", WELCOME),
        (b"2", ACKNOWLEDGED),
    ]
    assert kinds(sessions.greet(b"3", 2, first)) == [(b"3", REFUSED)]
    assert sessions.session(b"1") is sessions.session(b"3") is None
    assert sessions.session(b"2") is not None


def test_a_sensor_that_connects_again_speaks_over_its_last_connection() -> None:
    sessions = Sessions({"a": 4})
    sessions.greet(b"1", 1, Hello("a", "token", None))
    sessions.greet(b"2", 2, Hello("a", "token", 4))
    assert sessions.session(b"1") is None
    session = sessions.session(b"2")
    assert session is not None
    session.given = 5
    assert sessions.settle({"a": 5}) == [Answer(b"2", ACKNOWLEDGED, 5)]
    assert sessions.settle({"a": 5, "nobody": 1}) == []


def test_a_sensor_that_goes_on_beyond_the_log_is_followed() -> None:
    sessions = Sessions({"a": 4})
    answers = sessions.greet(b"1", 1, Hello("a", "token", 7))
    assert answers[-1] == Answer(b"1", ACKNOWLEDGED, 7)
    session = sessions.session(b"1")
    assert session is not None
    assert session.given == 7
