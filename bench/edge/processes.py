"""Trees of real processes, connected by real sockets, with the root in this process.

The root is a thread here, so that rows are seen when they are made. It has little to do.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyarrow as pa

import paneflow as pf
from bench.edge.stream import Feed
from bench.measuring import ROOT
from paneflow.engines.edge.config import NodeConfig, Parent, ZmqInputConfig
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.engines.edge.running.node import Node
from paneflow.engines.edge.running.pace import Pace

Shape = Mapping[str, Sequence[str]]
"""The nodes below each node; those below which there is none are child nodes."""
PATIENCE = 300.0
"""Seconds after which a benchmark is given up, and before which no node is."""
STANDARD = Pace()


@dataclass
class Rows:
    """What the root has given, and when."""

    seen: list[tuple[float, pa.Table]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, rows: pa.Table, number: int) -> None:
        """Rows of the root, with the time at which they are there."""
        now = time.time()
        with self.changed:
            self.seen.append((now, rows))
            self.changed.notify_all()

    @property
    def last(self) -> int:
        """When the last window that has rows ends."""
        if not self.seen:
            return BEFORE_ALL
        return int(self.seen[-1][1]["end"].cast(pa.int64()).to_numpy().max())


class RunningTree:
    """A tree that runs while a `with` block does.

    Args:
        query: The query.
        schema: The columns of events.
        shape: The nodes below each node; the highest is called root.
        pace: How long nodes wait for what.
    """

    def __init__(
        self,
        query: pf.Query,
        schema: pa.Schema,
        shape: Shape,
        pace: Pace = STANDARD,
    ) -> None:
        self.rows = Rows()
        self.leaves = sorted(n for below in shape.values() for n in below if n not in shape)
        self._folder = Path(tempfile.mkdtemp(prefix="paneflow-bench-"))
        self._shape = shape
        self._above = {child: name for name, below in shape.items() for child in below}
        self._addresses = {name: _free() for name in (*shape, *self.leaves)}
        self._pace = pace
        self._described = (query, schema)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        config = NodeConfig(
            question=Question(query, schema), columns=schema, **self._settings("root")
        )
        self.root = Node(config, on_rows=self.rows.take, pace=pace)

    def sensor(self, leaf: str, name: str, most_bytes: int = 64 << 20) -> Sensor:
        """A sensor that is connected to a child node."""
        sensor = Sensor(self._addresses[leaf], name, most_bytes=most_bytes)
        sensor.position(PATIENCE)
        return sensor

    def wait(self, time: int) -> None:
        """Wait until the window of a time has its row."""
        rows, patience = self.rows, PATIENCE
        with rows.changed:
            while not rows.changed.wait_for(lambda: rows.last > time, 1.0):
                patience -= 1
                ended = [name for name, process in self._running.items() if process.poll()]
                if not self.root.running or ended or patience < 0:
                    logs = "".join(file.read_text() for file in self._folder.glob("*.txt"))
                    raise RuntimeError(
                        f"no row holds the time {time}: {', '.join(ended) or 'no process'} has "
                        f"ended; root: {self.root.failure}\n{logs}"
                    )

    def seconds(self) -> dict[str, float]:
        """The processor's seconds that each process has taken."""
        return {name: sum(self._process(name).cpu_times()[:2]) for name in self._running}

    def __enter__(self) -> RunningTree:
        self.root.start()
        for name in self._above:
            self._start(name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait(PATIENCE)
        self.root.stop()
        self.root.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, name: str) -> None:
        file = self._folder / f"{name}.pickle"
        file.write_bytes(pickle.dumps((*self._described, self._settings(name), self._pace)))
        # Run as a file, so that it does not import what only benchmarks need.
        command = [sys.executable, "-P", str(Path(__file__).with_name("node.py")), str(file)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [ROOT, *sys.path]))}
        with (self._folder / f"{name}.txt").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self._running[name] = process

    def _process(self, name: str) -> psutil.Process:
        return psutil.Process(self._running[name].pid)

    def _settings(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = {
            "name": name,
            "role": "root" if name == "root" else "merge" if name in self._shape else "child",
            "log": self._folder / name,
            "children": tuple(self._shape.get(name, ())),
            "patience": PATIENCE,
        }
        if name in self._above:
            made["parent"] = Parent(self._addresses[self._above[name]], self._above[name])
        address = self._addresses[name]
        if name in self._shape:
            return made | {"listen": address}
        return made | {"inputs": (ZmqInputConfig(address),)}


def flat(children: int) -> dict[str, list[str]]:
    """A root with so many child nodes."""
    return {"root": [f"child{k}" for k in range(children)]}


@dataclass(frozen=True)
class Through:
    """What went through a tree."""

    events: int
    seconds: float
    """From the first push to the row of the last window."""
    processor: float
    """The processor's seconds of all nodes but the root."""

    @property
    def events_per_second(self) -> float:
        """The rate of the whole tree."""
        return self.events / self.seconds


def pushed_through(
    query: pf.Query, feeds: Sequence[Feed], batches: int, children: int | None = None
) -> Through:
    """Push as fast as the child nodes take it. Each feed has a child node, or they share some."""
    count = len(feeds) if children is None else children
    with RunningTree(query, feeds[0].schema, flat(count)) as tree:
        sensors = [tree.sensor(tree.leaves[k % count], f"sensor-{k}") for k in range(len(feeds))]
        _push(sensors, feeds, range(1))  # compiles
        before = sum(tree.seconds().values())
        begun = time.time()
        _push(sensors, feeds, range(1, batches + 1))
        for sensor in sensors:
            sensor.end()
        tree.wait(feeds[0].start(batches + 1) - 1)
        taken = sum(tree.seconds().values()) - before
        ended = tree.rows.seen[-1][0]
        for sensor in sensors:
            sensor.close()
    return Through(batches * sum(feed.length for feed in feeds), ended - begun, taken)


def _push(sensors: Sequence[Sensor], feeds: Sequence[Feed], numbers: range) -> None:
    """Push batches of every feed, each in a thread of its own."""

    def push(sensor: Sensor, feed: Feed) -> None:
        for number in numbers:
            sensor.push(feed.batch(number))
        sensor.flush()

    pairs = zip(sensors, feeds, strict=True)
    threads = [threading.Thread(target=push, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _free() -> str:
    """An address that nobody uses, outside of the ports that systems choose themselves."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return f"tcp://127.0.0.1:{port}"
