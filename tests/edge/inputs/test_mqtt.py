"""MQTT with a real broker: what a child takes when it, the broker or the connection dies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paneflow.engines.edge.inputs.mqtt import client as mqtt_client
from paneflow.engines.edge.inputs.mqtt.topics import Topics
from paneflow.engines.edge.inputs.mqtt_input import MqttInput
from paneflow.errors import InputError
from tests.edge.inputs.brokers import MOSQUITTO, WITHOUT, Broker, Publisher
from tests.edge.inputs.children import SCHEMA, Child, Log, events
from tests.edge.inputs.test_strangers import stream
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.skipif(MOSQUITTO is None, reason=WITHOUT)]
TOPIC = "home/{plug}/load"


StartBroker = Callable[..., Broker]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers, which are stopped after the test, whatever comes of it."""
    with ExitStack() as stack:

        def start(*lines: str, **options: Any) -> Broker:
            broker = Broker(tmp_path, *lines, **options)
            stack.callback(broker.stop)
            return broker

        yield start


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    return start_broker()


@pytest.fixture
def sensor(broker: Broker) -> Publisher:
    return Publisher(broker)


Subscribe = Callable[..., Child]


@pytest.fixture
def subscribe(broker: Broker) -> Iterator[Subscribe]:
    """Makes children with the same client id, each in place of the one before."""
    made: list[Child] = []

    def subscribe(log: Log, topic: str = TOPIC, **options: Any) -> Child:
        for before in made:
            before.input.close()
        made.clear()
        given = MqttInput("home", broker.address, topic, SCHEMA, "ts", client_id="child", **options)
        child = Child(given, log)
        made.append(child)
        return child

    yield subscribe
    for child in made:
        child.input.close()


def payload(load: float, **more: Any) -> str:
    return json.dumps({"ts": "2024-05-01T12:00:00Z", "load": load} | more)


def subscribed(child: Child, sensor: Publisher) -> None:
    """Wait until what is published arrives, and forget it."""
    log, child.log = child.log, Log()

    def heard() -> bool:
        sensor.publish("home/probe/load", payload(0, n=1))
        child.write(child.read())
        return bool(child.log.arrived)

    child.run_until(heard)
    # A probe that is still under way arrives before what is published later.
    sensor.publish("home/probe/load", payload(1, n=2))
    child.run_until(lambda: 1.0 in child.log.of("home/home/probe/load", "load"))
    child.log = log


def loads(log: Log, plug: str = "a") -> list[float]:
    return log.of(f"home/home/{plug}/load", "load")


def test_topics_are_sources_and_their_levels_are_columns(
    subscribe: Subscribe, sensor: Publisher
) -> None:
    child = subscribe(Log())
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1), f"[{payload(2)}, {payload(3)}]")
    sensor.publish("home/b/load", payload(4, plug="not this"))
    sensor.publish("home/b/voltage", payload(230))
    child.run_until(lambda: len(child.log.events) == 4)
    assert loads(child.log) == [1, 2, 3]
    assert child.log.of("home/home/a/load", "plug") == ["a", "a", "a"]
    assert child.log.of("home/home/b/load", "plug") == ["b"]
    assert child.log.events[0]["ts"].isoformat() == "2024-05-01T12:00:00+00:00"


def test_messages_wait_for_a_child_that_is_away(subscribe: Subscribe, sensor: Publisher) -> None:
    log = Log()
    child = subscribe(log)
    subscribed(child, sensor)
    child.input.close()
    sensor.publish("home/a/load", *[payload(k) for k in range(50)])
    child = subscribe(log)
    child.run_until(lambda: len(loads(log)) == 50)
    assert loads(log) == list(range(50))


def test_what_was_not_logged_comes_again(subscribe: Subscribe, sensor: Publisher) -> None:
    log = Log()
    child = subscribe(log)
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1))
    child.run_until(lambda: loads(log) == [1])
    sensor.publish("home/a/load", payload(2), payload(3))
    lost: list[float] = []

    def read_without_a_log() -> bool:
        lost.extend(v for p in child.read() if p.events for v in p.events["load"].to_pylist())
        return lost == [2, 3]

    wait_until(read_without_a_log)
    child = subscribe(log)
    child.run_until(lambda: loads(log) == [1, 2, 3])


def test_numbered_events_are_taken_once_if_a_child_dies_before_it_acknowledges(
    subscribe: Subscribe, sensor: Publisher
) -> None:
    log = Log()
    child = subscribe(log, number="n")
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1, n=1), f"[{payload(2, n=2)}, {payload(3, n=3)}]")
    child.run_until(lambda: loads(log) == [1, 2, 3], settle=False)
    child = subscribe(log, number="n")
    sensor.publish("home/a/load", f"[{payload(3, n=3)}, {payload(4, n=4)}]", payload(5, n=5))
    child.run_until(lambda: len(loads(log)) >= 5)
    assert loads(log) == [1, 2, 3, 4, 5]
    assert log.positions["home/home/a/load"] == 5


def test_events_without_numbers_are_taken_at_least_once(
    subscribe: Subscribe, sensor: Publisher
) -> None:
    log = Log()
    child = subscribe(log)
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1), payload(2))
    child.run_until(lambda: loads(log) == [1, 2], settle=False)
    child = subscribe(log)
    sensor.publish("home/a/load", payload(3))
    child.run_until(lambda: 3 in loads(log))
    assert loads(log) == [1, 2, 1, 2, 3]


@pytest.mark.parametrize("settled", ["before", "while away", "after"])
def test_a_broker_that_starts_again_neither_loses_nor_repeats(
    subscribe: Subscribe, sensor: Publisher, broker: Broker, settled: str
) -> None:
    log = Log()
    child = subscribe(log)
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1), payload(2), payload(3))
    child.run_until(lambda: loads(log) == [1, 2, 3], settle=settled == "before")
    broker.stop()
    if settled == "while away":
        child.input.settle(log.positions)
    broker.start()
    sensor.publish("home/a/load", payload(4))
    child.run_until(lambda: 4 in loads(log))
    sensor.publish("home/a/load", payload(5))
    child.run_until(lambda: 5 in loads(log))
    assert loads(log) == [1, 2, 3, 4, 5]
    child = subscribe(log)
    sensor.publish("home/a/load", payload(6))
    child.run_until(lambda: 6 in loads(log))
    assert loads(log) == [1, 2, 3, 4, 5, 6]


def test_identifiers_of_a_lost_session_acknowledge_nothing_in_the_new_one(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(keeps=False)
    sensor, log = Publisher(broker), Log()

    def child_again() -> Child:
        given = MqttInput("home", broker.address, TOPIC, SCHEMA, "ts", client_id="child")
        return Child(given, log)

    child = child_again()
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1), payload(2))
    child.run_until(lambda: loads(log) == [1, 2], settle=False)
    broker.stop()
    broker.start()
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(3), payload(4))
    kept = list(log.arrived)
    child.run_until(lambda: loads(log) == [1, 2, 3, 4], settle=False)
    log.arrived = kept
    child.input.settle(log.positions)
    child.input.close()
    child = child_again()
    child.run_until(lambda: len(loads(log)) == 4)
    assert loads(log) == [1, 2, 3, 4]
    child.input.close()


BAD = {
    "no JSON": "load=5",
    "no object": "5",
    "field": json.dumps({"ts": 1}),
    "time": payload(1, ts=None),
    "type": json.dumps({"ts": "2024-05-01T12:00:00Z", "load": "much"}),
    "bytes": b"\xff\xfe",
    "deep": "[" * 100_000,
    "one of two": f"[{payload(1)}, {payload(2, ts='soon')}]",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_payload_is_counted_and_the_others_are_taken(
    subscribe: Subscribe, sensor: Publisher, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    child = subscribe(Log())
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1), BAD[kind], payload(2))
    child.run_until(lambda: len(loads(child.log)) == 2)
    assert loads(child.log) == [1, 2]
    assert child.input.refused == 1
    assert "input 'home' has refused 1 messages of 'home/a/load'" in caplog.text


def test_bad_payloads_are_acknowledged(
    subscribe: Subscribe, sensor: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_client, "UNDER_WAY", 5)
    log = Log()
    child = subscribe(log)
    subscribed(child, sensor)
    sensor.publish("home/a/load", *["bad"] * 30, payload(1))
    child.run_until(lambda: loads(log) == [1])
    assert child.input.refused == 30
    child = subscribe(log)
    sensor.publish("home/a/load", payload(2))
    child.run_until(lambda: loads(log) == [1, 2])
    assert child.input.refused == 0


@pytest.mark.parametrize("number", ["one", 0, -1, 2**63, None, True])
def test_numbers_that_are_none_are_refused(
    subscribe: Subscribe, sensor: Publisher, number: Any
) -> None:
    child = subscribe(Log(), number="n")
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1, n=number), payload(2, n=5))
    child.run_until(lambda: loads(child.log) == [2])
    assert child.input.refused == 1


def test_payloads_may_be_arrow_streams(subscribe: Subscribe, sensor: Publisher) -> None:
    log = Log()
    child = subscribe(log, "home/{plug}/load", payload="arrow", number="n")

    def numbered(*loads: int) -> bytes:
        return stream(events(*loads).append_column("n", pa.array(loads)))

    def heard() -> bool:
        sensor.publish("home/a/load", numbered(1, 2), b"no stream", stream(events(9)))
        return bool(loads(log))

    child.run_until(heard)
    sensor.publish("home/a/load", numbered(2, 3))
    child.run_until(lambda: 3 in loads(log))
    assert loads(log) == [1, 2, 3]
    assert set(log.of("home/home/a/load", "plug")) == {"a"}
    assert child.input.refused >= 2


def test_a_retained_message_is_not_taken_again(subscribe: Subscribe, sensor: Publisher) -> None:
    log = Log()
    child = subscribe(log)
    subscribed(child, sensor)
    sensor.publish("home/a/load", payload(1), retain=True)
    child.run_until(lambda: loads(log) == [1])
    child = subscribe(log)
    sensor.publish("home/a/load", payload(2))
    child.run_until(lambda: 2 in loads(log))
    assert loads(log) == [1, 2]


def test_many_topics_are_read_in_turns(subscribe: Subscribe, sensor: Publisher) -> None:
    child = subscribe(Log())
    subscribed(child, sensor)
    for k in range(20):
        sensor.publish(f"home/{k}/load", payload(1), payload(2))
    child.run_until(lambda: len(child.log.events) == 40, most=3)
    assert all(loads(child.log, str(k)) == [1, 2] for k in range(20))


def test_a_broker_may_come_later(subscribe: Subscribe, sensor: Publisher, broker: Broker) -> None:
    broker.stop()
    log = Log()
    child = subscribe(log)
    assert child.read() == []
    broker.start()
    subscribed(child, sensor)


def test_a_broker_that_wants_a_login_is_named_in_the_log(
    start_broker: StartBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start_broker("allow_anonymous false")
    child = Child(MqttInput("home", broker.address, TOPIC, SCHEMA, "ts", client_id="c"), Log())
    child.run_until(lambda: f"the broker at {broker.address} refused the conn" in caplog.text)
    child.input.close()


# paho leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
def test_brokers_are_reached_over_tls(
    start_broker: StartBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        f"-subj /CN=broker -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}",
        shell=True,
        check=True,
        capture_output=True,
    )
    tls = (f"certfile {certificate}", f"keyfile {key}")
    broker = start_broker(*tls, scheme="mqtts")

    def child(**options: Any) -> Child:
        given = MqttInput("home", broker.address, TOPIC, SCHEMA, "ts", client_id="c", **options)
        return Child(given, Log())

    trusting = child(ca_file=certificate)
    subscribed(trusting, Publisher(broker, certificate))
    trusting.input.close()
    assert "cannot be reached" not in caplog.text
    doubting = child()
    doubting.run_until(lambda: "cannot be reached" in caplog.text)
    doubting.input.close()


@pytest.mark.parametrize("address", ["tcp://a:1", "127.0.0.1:1883", "mqtt://", "mqtt://a:port"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a broker: expected 'mqtt://"):
        MqttInput("home", address, TOPIC, SCHEMA, "ts", client_id="c")


@pytest.mark.parametrize(
    "pattern", ["", "a{b}/c", "a/#/b", "{a}/{a}", "a/b+", "{a", "{}", "a/{b}}"]
)
def test_a_topic_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="is not a pattern of topics"):
        Topics(pattern)


def test_levels_of_topics_that_are_left_open() -> None:
    topics = Topics("{house}/+/load/#")
    assert topics.filter == "+/+/load/#"
    assert topics.read("4/7/load/now/here") == {"house": "4"}
