"""Sensors and a child over real sockets: what arrives, in which order, and how often."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from paneflow.engines.edge.inputs.sensor import Sensor, SensorTimeout
from paneflow.engines.edge.inputs.zmq_input import LIMITS
from paneflow.errors import InputError, PaneflowError
from tests.edge.inputs.children import SCHEMA, Log, Sensors, events, pushed
from tests.waiting import wait_until


@pytest.fixture
def child() -> Iterator[Sensors]:
    child = Sensors(Log())
    yield child
    child.input.close()


def test_batches_arrive_once_and_in_order(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a")
    program = pushed(sensor, *[events(k, k + 0.5) for k in range(50)])
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    assert child.log.of("plugs/a", "load") == [k / 2 for k in range(100)]
    assert [part.position for part in child.log.arrived] == list(range(1, 51))
    assert all(part.events.schema.equals(SCHEMA) for part in child.log.arrived if part.events)


def test_each_sensor_is_a_source_of_its_own(child: Sensors) -> None:
    sensors = [Sensor(child.input.address, f"plug-{k}") for k in range(5)]
    programs = [pushed(s, events(k), events(k + 10)) for k, s in enumerate(sensors)]
    child.run_until(lambda: not any(program.is_alive() for program in programs))
    for k, sensor in enumerate(sensors):
        sensor.close()
        assert child.log.of(f"plugs/plug-{k}", "load") == [k, k + 10]


def test_what_is_not_in_the_log_is_not_acknowledged(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a")
    program = threading.Thread(target=sensor.push, args=(events(1),))
    program.start()
    child.run_until(lambda: child.log.arrived, settle=False)
    program.join()
    with pytest.raises(SensorTimeout, match=r"not acknowledged 1 batches within 0.1 seconds"):
        sensor.flush(timeout=0.1)
    child.input.settle(child.log.positions)
    sensor.close()


def test_a_child_that_dies_before_it_logs_gets_the_same_batches_again(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a")
    program = pushed(sensor, *[events(k) for k in range(10)])
    child.run_until(lambda: len(child.log.arrived) == 3, most=1)
    wait_until(lambda: child.read(most=1))
    child = child.restarted()
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    child.input.close()
    assert child.log.of("plugs/a", "load") == list(range(10))


def test_a_child_that_dies_between_log_and_acknowledgement_takes_nothing_twice(
    child: Sensors,
) -> None:
    sensor = Sensor(child.input.address, "a")
    program = pushed(sensor, *[events(k) for k in range(10)])
    child.run_until(lambda: len(child.log.arrived) >= 5, settle=False)
    child = child.restarted()
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    child.input.close()
    assert child.log.of("plugs/a", "load") == list(range(10))


@pytest.mark.parametrize("seed", range(5))
def test_random_deaths_of_the_child_lose_nothing_and_repeat_nothing(seed: int) -> None:
    random_ = random.Random(seed)
    child = Sensors(Log())
    sensors = [Sensor(child.input.address, name, most_bytes=3000) for name in "abc"]
    programs = [pushed(sensor, *[events(k) for k in range(40)]) for sensor in sensors]
    deaths = sorted(random_.sample(range(1, 115), 5))
    while any(program.is_alive() for program in programs):
        arrived = child.read(random_.randint(1, 5))
        written = random_.randint(0, len(arrived))
        dies = bool(deaths) and len(child.log.arrived) + len(arrived) >= deaths[0]
        child.write(arrived[:written] if dies else arrived, settle=random_.random() < 0.8)
        if dies:
            deaths.pop(0)
            child = child.restarted()
        child.input.settle(child.log.positions if random_.random() < 0.5 else {})
    for sensor in sensors:
        sensor.close()
        assert child.log.of(f"plugs/{sensor.name}", "load") == list(range(40))
    child.input.close()
    assert not deaths


def test_a_sensor_waits_while_too_much_is_not_acknowledged(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a", most_bytes=2000)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(sensor.push, events(0))
        child.run_until(first.done, settle=False)
    with pytest.raises(SensorTimeout, match="not acknowledged"):
        for k in range(1, 20):
            sensor.push(events(k), timeout=0.05)
    child.run_until(lambda: len(child.log.arrived) > 1, settle=False)
    child.input.settle(child.log.positions)
    sensor.push(events(99))
    child.run_until(lambda: child.log.of("plugs/a", "load")[-1] == 99)
    sensor.close()


def test_a_sensor_may_be_there_before_the_child(child: Sensors) -> None:
    address = child.input.address
    child.input.close()
    sensor = Sensor(address, "a")
    with pytest.raises(SensorTimeout, match=r"has not answered within 0.05 seconds"):
        sensor.push(events(1), timeout=0.05)
    program = pushed(sensor, events(2))
    child = child.restarted()
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    child.input.close()
    assert child.log.of("plugs/a", "load") == [2]


def test_the_end_of_a_source_arrives_behind_its_batches(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: (sensor.push(events(1)), sensor.end(), sensor.close()))
        child.run_until(done.done)
        done.result()
    assert [(p.position, p.ended) for p in child.log.arrived] == [(1, False), (2, True)]


def test_a_new_sensor_of_the_same_name_continues_where_the_log_ends(child: Sensors) -> None:
    for loads in ([0, 1, 2], [3, 4]):
        with Sensor(child.input.address, "a") as sensor, ThreadPoolExecutor(1) as pool:
            position = pool.submit(sensor.position)
            child.run_until(position.done)
            assert position.result() == loads[0]
            program = pushed(sensor, *map(events, loads))
            child.run_until(lambda program=program: not program.is_alive())
        child = child.restarted()
    child.input.close()
    assert child.log.of("plugs/a", "load") == [0, 1, 2, 3, 4]


def test_a_new_sensor_waits_until_the_log_has_what_the_one_before_has_sent(
    child: Sensors,
) -> None:
    before = Sensor(child.input.address, "a")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: (before.push(events(0)), before.push(events(1))))
        child.run_until(lambda: len(child.log.arrived) == 2, settle=False)
    after = Sensor(child.input.address, "a")

    def replaced() -> bool:
        child.read()
        try:
            before.flush(timeout=0.01)
        except SensorTimeout:
            return False
        return True

    with pytest.raises(InputError, match="another sensor named 'a'"):
        wait_until(replaced)
    with pytest.raises(SensorTimeout, match="has not answered"):
        after.position(timeout=0.1)
    with ThreadPoolExecutor(1) as pool:
        position = pool.submit(after.position)
        child.input.settle(child.log.positions)
        child.run_until(position.done)
        assert position.result() == 2
    after.close()


def test_a_sensor_is_told_that_another_one_has_its_name(child: Sensors) -> None:
    before = Sensor(child.input.address, "a")
    program = pushed(before, events(0))
    child.run_until(lambda: not program.is_alive())
    after = Sensor(child.input.address, "a")
    program = pushed(after, events(1))
    child.run_until(lambda: not program.is_alive())
    with pytest.raises(InputError, match="another sensor named 'a' has connected since"):
        wait_until(lambda: before.push(events(2)))
    after.close()
    assert child.log.of("plugs/a", "load") == [0, 1]


def test_threads_may_share_a_sensor(child: Sensors) -> None:
    sensor = Sensor(child.input.address, "a")
    programs = [pushed(sensor, *[events(100 * k + j) for j in range(25)]) for k in range(4)]
    child.run_until(lambda: not any(program.is_alive() for program in programs))
    sensor.close()
    loads = child.log.of("plugs/a", "load")
    assert sorted(loads) == [100 * k + j for k in range(4) for j in range(25)]
    for k in range(4):
        own = [load for load in loads if load // 100 == k]
        assert own == sorted(own)


ROWS = [{"ts": "2024-05-01T12:00:00Z", "plug": "a", "load": 5}, {"ts": 0, "load": None}]


@pytest.mark.parametrize(
    ("given", "loads"),
    [
        (events(1, 2).to_batches()[0], [1.0, 2.0]),
        (events(1, 2).append_column("note", pa.array(["x", "y"])), [1.0, 2.0]),
        (
            pd.DataFrame(
                {
                    "ts": pd.to_datetime([0, 1], unit="s", utc=True),
                    "plug": ["a", "b"],
                    "load": [3, 4],
                }
            ),
            [3.0, 4.0],
        ),
        (ROWS[:1], [5.0]),
        (pa.concat_tables([events(1), events(2)]), [1.0, 2.0]),
    ],
    ids=["batch", "more columns", "pandas", "dicts", "chunks"],
)
def test_any_kind_of_table_may_be_pushed(child: Sensors, given: Any, loads: list[float]) -> None:
    sensor = Sensor(child.input.address, "a")
    program = pushed(sensor, given)
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    assert child.log.of("plugs/a", "load") == loads


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (events(1).drop(["load"]), "column 'load' .double. is missing: there are ts, plug"),
        (events(1).set_column(2, "load", pa.array(["much"])), "column 'load' has type string"),
        (events(1).set_column(0, "ts", pa.nulls(1, SCHEMA.field("ts").type)), "null in 1 of 1"),
        ([{"ts": "soon", "plug": "a", "load": 1.0}], "column 'ts'"),
        ([{"ts": 1, "plug": "a"}], "column 'load' .double. is missing: there are plug, ts"),
        ("no table", "is not a table"),
    ],
    ids=["missing", "type", "null time", "text", "dict", "no table"],
)
def test_what_the_child_cannot_take_is_refused_where_it_is_pushed(
    child: Sensors, given: Any, reason: str
) -> None:
    sensor = Sensor(child.input.address, "a")
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(sensor.push, given)
        child.run_until(refused.done)
        with pytest.raises(InputError, match=reason):
            refused.result()
    program = pushed(sensor, events(1))
    child.run_until(lambda: not program.is_alive())
    sensor.close()
    assert child.log.of("plugs/a", "load") == [1]


def test_a_large_table_is_sent_in_several_messages() -> None:
    limits = LIMITS.__class__(message_bytes=10_000)
    child = Sensors(Log(), limits=limits)
    sensor = Sensor(child.input.address, "a")
    program = pushed(sensor, events(*range(5000)))
    child.run_until(lambda: not program.is_alive())
    assert child.log.of("plugs/a", "load") == list(range(5000))
    assert len(child.log.arrived) > 10
    with pytest.raises(InputError, match=r"one event has .* bytes, and the child takes"):
        sensor.push([{"ts": 1, "plug": "a" * 10_000, "load": 1.0}])
    sensor.close()
    child.input.close()


def test_a_closed_sensor_takes_nothing() -> None:
    sensor = Sensor("tcp://127.0.0.1:9", "a")
    sensor.close()
    with pytest.raises(PaneflowError, match="sensor 'a' is closed: open another one"):
        sensor.push(events(1))
    sensor.close()


def test_a_program_that_fails_does_not_wait_for_the_child() -> None:
    with pytest.raises(RuntimeError, match="program"), Sensor("tcp://127.0.0.1:9", "a"):
        raise RuntimeError("the program failed")


@pytest.mark.parametrize("name", ["", "a\n", "x" * 201])
def test_names_of_sensors_can_be_read(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a sensor"):
        Sensor("tcp://127.0.0.1:9", name)
