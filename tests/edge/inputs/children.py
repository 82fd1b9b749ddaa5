"""A child as an input sees it: reads, writes down, settles; may die and start again."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import zmq

from paneflow.engines.edge.inputs.contract import Arrived, Input
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.inputs.zmq_input import ZmqInput
from paneflow.engines.edge.network.sockets import AddressError
from tests.waiting import wait_until

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "plug": pa.string(), "load": pa.float64()})


class Log:
    """What a child has written down, which outlives it."""

    def __init__(self) -> None:
        self.arrived: list[Arrived] = []

    @property
    def positions(self) -> dict[str, int]:
        return {part.source: part.position for part in self.arrived}

    @property
    def events(self) -> list[dict[str, Any]]:
        return [
            event for p in self.arrived if p.events is not None for event in p.events.to_pylist()
        ]

    @property
    def ended(self) -> set[str]:
        return {part.source for part in self.arrived if part.ended}

    def of(self, source: str, column: str) -> list[Any]:
        """The values of one source, in the order in which they were taken."""
        return [
            value
            for part in self.arrived
            if part.source == source and part.events is not None
            for value in part.events[column].to_pylist()
        ]


class Child:
    """Takes what an input has, as a child's loop does."""

    def __init__(self, given: Input, log: Log) -> None:
        self.input = given
        self.log = log
        given.start(log.positions)

    def read(self, most: int = 1000) -> list[Arrived]:
        """What has arrived, not written down."""
        poller = zmq.Poller()
        for waited in self.input.waits_on():
            poller.register(waited, zmq.POLLIN)
        pause = self.input.pause()
        poller.poll(20 if pause is None else min(20, round(pause * 1000)))
        return self.input.read(most)

    def write(self, arrived: list[Arrived], *, settle: bool = True) -> None:
        """Write down what has arrived."""
        self.log.arrived += arrived
        if arrived and settle:
            self.input.settle({part.source: part.position for part in arrived})

    def run_until(self, condition: Any, *, settle: bool = True, most: int = 1000) -> None:
        """Read and write down until a condition holds."""

        def reached() -> bool:
            self.write(self.read(most), settle=settle)
            return bool(condition())

        wait_until(reached)


ANYWHERE = "tcp://127.0.0.1:*"


class Sensors(Child):
    """A child that listens for sensors."""

    input: ZmqInput

    def __init__(
        self, log: Log, address: str = ANYWHERE, schema: pa.Schema = SCHEMA, **options: Any
    ) -> None:
        super().__init__(ZmqInput("plugs", address, schema, "ts", **options), log)

    def restarted(self, log: Log | None = None, schema: pa.Schema = SCHEMA) -> Sensors:
        """The child after it has died: it knows only its log, or another log."""
        address = self.input.address
        self.input.close()
        made: list[Sensors] = []

        def address_is_free() -> bool:
            try:
                made.append(Sensors(log or self.log, address, schema))
            except AddressError:
                return False
            return True

        wait_until(address_is_free)
        return made[0]


def events(*loads: float) -> pa.Table:
    rows = [{"ts": round(1e6 * load), "plug": "a", "load": float(load)} for load in loads]
    return pa.Table.from_pylist(rows, SCHEMA)


def pushed(sensor: Sensor, *tables: Any) -> threading.Thread:
    """A program that pushes tables and flushes."""

    def push() -> None:
        for table in tables:
            sensor.push(table)
        sensor.flush()

    thread = threading.Thread(target=push)
    thread.start()
    return thread
