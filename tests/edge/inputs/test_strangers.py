"""Who and what a child refuses: unknown keys, borrowed names, and messages that are no events."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
import zmq

from paneflow.engines.edge.inputs.sensor import Sensor, SensorTimeout
from paneflow.engines.edge.inputs.sensors.messages import (
    ACKNOWLEDGED,
    BATCH,
    HELLO,
    REFUSED,
    WELCOME,
    Hello,
    write_head,
    write_hello,
)
from paneflow.engines.edge.inputs.zmq_input import LIMITS, ZmqInput
from paneflow.engines.edge.network.authenticator import Authenticator
from paneflow.engines.edge.network.keys import KeysError, make_keys
from paneflow.errors import InputError
from tests.edge.inputs.children import SCHEMA, Log, Sensors, events, pushed


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class Stranger:
    """Something that connects and sends what it likes."""

    def __init__(self, child: Sensors) -> None:
        self.child = child
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(child.input.address)

    def send(self, *frames: bytes) -> None:
        self.socket.send_multipart(frames)

    def greet(self, name: str = "stranger") -> None:
        self.send(write_head(HELLO, 1) + write_hello(Hello(name, "token", None)))
        assert self.answer()[4:6] == bytes([1, WELCOME])
        assert self.answer()[4:6] == bytes([1, ACKNOWLEDGED])

    def answer(self) -> bytes:
        """What the child says next."""
        answers: list[bytes] = []

        def heard() -> bool:
            if self.socket.poll(0):
                answers.append(self.socket.recv())
            return bool(answers)

        self.child.run_until(heard)
        return answers[0]

    def reason(self) -> str:
        """Why the child refuses it."""
        answer = self.answer()
        assert answer[4:6] == bytes([1, REFUSED])
        return answer[16:].decode()


@pytest.fixture
def child() -> Iterator[Sensors]:
    child = Sensors(Log(), limits=LIMITS.__class__(message_bytes=100_000))
    yield child
    child.input.close()


@pytest.fixture
def stranger(child: Sensors) -> Iterator[Stranger]:
    stranger = Stranger(child)
    yield stranger
    stranger.socket.close()


def goes_on(child: Sensors) -> None:
    """The child still takes what its sensors send."""
    sensor = Sensor(child.input.address, "honest")
    program = pushed(sensor, events(5))
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    assert child.log.of("plugs/honest", "load") == [5]
    assert {part.source for part in child.log.arrived} == {"plugs/honest"}


WRONG_BATCHES: dict[str, tuple[Callable[[], list[bytes]], str]] = {
    "no stream": (lambda: [b"these are no events"], "no Arrow IPC stream"),
    "nothing": (list, "came in 1 frames instead of two"),
    "empty": (lambda: [b""], "no Arrow IPC stream"),
    "cut": (lambda: [stream(events(1, 2))[:-100]], "no Arrow IPC stream"),
    "columns": (lambda: [stream(pa.table({"t": [1]}))], "column 'ts' .* is missing: there are t"),
    "type": (
        lambda: [stream(events(1).set_column(2, "load", [["x"]]))],
        "column 'load' has type string, and this child takes double",
    ),
    "null time": (
        lambda: [stream(events(1).set_column(0, "ts", pa.nulls(1, pa.timestamp("us", "UTC"))))],
        "the time column 'ts' is null in 1 of 1 events",
    ),
    "twice": (
        lambda: [stream(pa.Table.from_arrays([[1], [2]], ["ts", "ts"]))],
        "2 columns are named 'ts'",
    ),
    "claims": (
        lambda: [stream(pa.table({"ts": pa.nulls(10_000_000)}))],
        "claims to hold 10,000,000 events",
    ),
}


@pytest.mark.parametrize("kind", WRONG_BATCHES)
def test_a_batch_that_cannot_be_taken_is_refused_with_the_reason(
    child: Sensors, stranger: Stranger, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    frames, reason = WRONG_BATCHES[kind]
    stranger.greet()
    stranger.send(write_head(BATCH, 1), *frames())
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(stranger.reason())
    assert child.input.refused == 1
    assert "input 'plugs' refused batch 1 of 'stranger'" in caplog.text
    stranger.send(write_head(BATCH, 2), stream(events(2)))
    goes_on(child)


def test_no_damaged_batch_stops_the_child(child: Sensors) -> None:
    good = stream(events(*range(20)))
    for k in range(0, len(good), 37):
        stranger = Stranger(child)
        stranger.greet()
        damaged = bytearray(good)
        damaged[k] ^= 0xFF
        stranger.send(write_head(BATCH, 1), bytes(damaged))
        child.read()
        stranger.socket.close()
    child.log.arrived.clear()
    goes_on(child)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no message of a paneflow sensor"),
        (b"", "no message of a paneflow sensor"),
        (struct.pack("<4sBBxxQ", b"pfsn", 9, HELLO, 1), "has version 9, and this paneflow speaks"),
        (write_head(77, 1), "of kind 77, which is not known"),
        (write_head(HELLO, 1) + b"[" * 10_000, "greeting cannot be read"),
        (write_head(HELLO, 1) + b'{"name": "a", "token": 1, "behind": 0}', "greeting cannot be"),
        (write_head(HELLO, 1) + b'{"name": "a", "token": "", "behind": -1}', "greeting cannot be"),
        (write_head(HELLO, 1) + b'{"name": "\\n", "token": "", "behind": 1}', "cannot be the name"),
    ],
)
def test_a_message_that_is_none_is_refused(
    child: Sensors, stranger: Stranger, message: bytes, reason: str
) -> None:
    stranger.send(message)
    assert reason in stranger.reason()
    assert child.input.refused == 1
    goes_on(child)


def test_batches_count_only_after_a_greeting(child: Sensors, stranger: Stranger) -> None:
    stranger.send(write_head(BATCH, 1), stream(events(1)))
    goes_on(child)


def test_a_batch_out_of_turn_is_refused(child: Sensors, stranger: Stranger) -> None:
    stranger.greet()
    stranger.send(write_head(BATCH, 3), stream(events(1)))
    assert "batch 3 came after batch 0" in stranger.reason()
    goes_on(child)


def test_a_batch_that_comes_twice_is_taken_once(child: Sensors, stranger: Stranger) -> None:
    stranger.greet()
    for number in (1, 1, 2, 1, 2, 3):
        stranger.send(write_head(BATCH, number), stream(events(number)))
    child.run_until(lambda: 3 in child.log.of("plugs/stranger", "load"))
    assert child.log.of("plugs/stranger", "load") == [1, 2, 3]
    assert child.input.refused == 0


def test_a_message_beyond_the_limit_ends_the_connection(child: Sensors, stranger: Stranger) -> None:
    stranger.greet()
    stranger.send(write_head(BATCH, 1), bytes(200_000))
    goes_on(child)


def test_a_compressed_batch_is_read(child: Sensors, stranger: Stranger) -> None:
    stranger.greet()
    stranger.send(write_head(BATCH, 1), stream(events(1, 2), "zstd"))
    child.run_until(lambda: child.log.arrived)
    assert child.log.of("plugs/stranger", "load") == [1, 2]


def test_a_refused_sensor_says_why(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(sensor.push, events(1))
        child.run_until(first.done, settle=False)
    schema = SCHEMA.set(2, pa.field("load", pa.timestamp("us")))
    other = child.restarted(Log(), schema=schema)
    with ThreadPoolExecutor(1) as pool:
        flushed = pool.submit(sensor.flush)
        other.run_until(flushed.done)
        with pytest.raises(InputError, match="child refused batch 1 of sensor 'a': column 'load'"):
            flushed.result()
    with pytest.raises(InputError, match="child refused batch 1 of sensor 'a'"):
        sensor.push(events(2))
    other.input.close()


def test_beyond_this_machine_keys_are_needed() -> None:
    with pytest.raises(KeysError, match="this node has no keys"):
        ZmqInput("plugs", "tcp://*:*", SCHEMA, "ts")
    with pytest.raises(KeysError, match="this node has no keys"):
        Sensor("tcp://192.0.2.1:7001", "a")


def test_a_sensor_with_an_unknown_key_is_let_in_once_its_key_is_there(tmp_path: Path) -> None:
    known, own = tmp_path / "known", make_keys(tmp_path / "known", "child")
    keys = make_keys(tmp_path / "elsewhere", "plug")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    strangers: list[str] = []
    with Authenticator(context, known, strangers.append) as authenticator:
        child = Sensors(Log(), context=context, keys=own, belongs=authenticator.belongs)
        sensor = Sensor(child.input.address, "plug", keys=keys, child_key=own.public)
        program = pushed(sensor, events(1))
        child.run_until(lambda: strangers)
        (known / "plug.key").write_bytes((tmp_path / "elsewhere" / "plug.key").read_bytes())
        child.run_until(lambda: not program.is_alive())
        sensor.close()
        assert child.log.of("plugs/plug", "load") == [1]
        child.input.close()
    context.term()


def test_sensors_need_known_keys_and_names_of_their_own(tmp_path: Path) -> None:
    own, known = make_keys(tmp_path, "child"), make_keys(tmp_path, "gateway")
    unknown = make_keys(tmp_path / "elsewhere", "gateway")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with Authenticator(context, tmp_path) as authenticator:
        child = Sensors(Log(), context=context, keys=own, belongs=authenticator.belongs)
        address = child.input.address
        for name, keys in {"gateway": known, "gateway/plug-7": known}.items():
            sensor = Sensor(address, name, keys=keys, child_key=own.public)
            program = pushed(sensor, events(1))
            child.run_until(lambda program=program: not program.is_alive())
            sensor.close()
        assert set(child.log.positions) == {"plugs/gateway", "plugs/gateway/plug-7"}
        borrowed = Sensor(address, "child", keys=known, child_key=own.public)
        with ThreadPoolExecutor(1) as pool:
            refused = pool.submit(borrowed.push, events(1))
            child.run_until(refused.done)
            with pytest.raises(InputError, match="'child' does not belong to this sensor's key"):
                refused.result()
        for stranger in (
            Sensor(address, "gateway", keys=unknown, child_key=own.public),
            Sensor(address, "gateway", keys=known, child_key=unknown.public),
            Sensor(address, "gateway"),
        ):
            with ThreadPoolExecutor(1) as pool:
                waited = pool.submit(stranger.push, events(1), timeout=0.3)
                child.run_until(waited.done)
                with pytest.raises(SensorTimeout):
                    waited.result()
            stranger.close()
            with Sensor(address, "gateway/last", keys=known, child_key=own.public) as last:
                program = pushed(last, events(1))
                child.run_until(lambda program=program: not program.is_alive())
        child.input.close()
    context.term()
