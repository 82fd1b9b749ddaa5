"""What work costs a node, and how long messages are: measured on the real ones.

Times are those of the state machine with its log, and of a socket, each in one thread. They are
lines fitted by least squares; sizes are looked up between those that were measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import zmq

from bench.edge.stream import BEGIN, SECOND, Feed, asked
from paneflow.engines.edge.config import NodeConfig, Parent
from paneflow.engines.edge.journal import Journal
from paneflow.engines.edge.network.sockets import Listener, Uplink
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import Flush, Pushed, Report, Reported
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.watching.metrics import Metrics
from paneflow.engines.edge.watching.picture import TreePicture
from paneflow.engines.edge.wire import Heartbeat, Numbered, Wire

SLICES = (1, 10, 100, 1_000)
BELOW = (2, 8, 32)
WINDOWS = 12
NODES = (1, 30, 900)


class Line:
    """A cost that grows evenly: so much at once, and so much for each."""

    def __init__(self, amounts: Sequence[float], costs: Sequence[float]) -> None:
        # Relative errors count, so that small amounts are fitted as well as large ones.
        weights = 1 / np.maximum(costs, 1e-9)
        self.each, self.once = (float(c) for c in np.polyfit(amounts, costs, 1, w=weights))
        self.once, self.each = max(self.once, 0.0), max(self.each, 0.0)

    def __call__(self, amount: float) -> float:
        """The cost of some amount."""
        return self.once + self.each * amount


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes."""

    report: Line
    """Seconds to read and log a report, by its slices."""
    merge: Line
    """Seconds for a merging node to speak, by the slices it has been told."""
    rows: Line
    """Seconds for the root to give rows, by the slices it has been told."""
    commit: float
    """Seconds to make a turn's records durable."""
    message: float
    """Seconds to receive a message over a socket and to acknowledge it."""
    sizes: tuple[int, ...]
    """Bytes of a report of as many slices as `SLICES` says."""
    heartbeat: Line
    """Bytes of a heartbeat, by the nodes below and its sender."""
    hear: Line
    """Seconds to take it."""

    def size(self, slices: int) -> int:
        """Bytes of a report."""
        return round(float(np.interp(slices, SLICES, self.sizes)))

    def told(self) -> dict[str, str]:
        """All of them in words."""
        lines = {
            "read, log and take a report": (self.report, "slice"),
            "speak, at a merging node": (self.merge, "slice below"),
            "give rows, at the root": (self.rows, "slice below"),
            "take a heartbeat": (self.hear, "node"),
        }
        found = {
            what: f"{line.once * 1e3:.3f} ms + {line.each * 1e6:.2f} µs a {of}"
            for what, (line, of) in lines.items()
        }
        return found | {
            "commit the log": f"{self.commit * 1e3:.2f} ms a turn",
            "receive and acknowledge": f"{self.message * 1e3:.3f} ms a message",
            "bytes of a report": ", ".join(
                f"{size:,} for {slices:,}" for slices, size in zip(SLICES, self.sizes, strict=True)
            ),
            "bytes of a heartbeat": f"{self.heartbeat.once:.0f} + {self.heartbeat.each:.0f} a node",
        }


def measure() -> Costs:
    """Measure everything; takes some seconds."""
    reports: list[tuple[int, float]] = []
    spoken: dict[str, list[tuple[int, float]]] = {"merge": [], "root": []}
    commits: list[float] = []
    for slices in SLICES[:3]:
        for below in BELOW:
            for role, found in spoken.items():
                taken = _node(role, below, slices)
                reports.append((slices, taken[0]))
                found.append((slices * below, taken[1]))
                commits.append(taken[2])
    metrics = [_heartbeat(nodes) for nodes in NODES]
    return Costs(
        report=Line(*zip(*reports, strict=True)),
        merge=Line(*zip(*spoken["merge"], strict=True)),
        rows=Line(*zip(*spoken["root"], strict=True)),
        commit=float(np.median(commits)),
        message=_socket(),
        sizes=tuple(_reported(slices)[1] for slices in SLICES),
        heartbeat=Line(NODES, [size for size, _ in metrics]),
        hear=Line(NODES, [seconds for _, seconds in metrics]),
    )


def window(number: int, keys: int) -> pa.Table:
    """An event for every key in a second, and one that shows that the second is over."""
    feed = Feed(keys, keys * 2, keys, seed=number)
    start = BEGIN + number * SECOND
    end = feed.batch(0, start + SECOND).slice(0, 1)
    every = feed.batch(0, start).set_column(1, "key", pa.array(range(keys), pa.int64()))
    return pa.concat_tables([every, end])


def question(keys: int) -> Question:
    """The maximum by key, of every second."""
    return Question(asked("max", keys), window(0, keys).schema)


def _reported(slices: int) -> tuple[Report, int]:
    """A child's report of so many slices, and its bytes."""
    asked_for = question(slices)
    child = Child("child", asked_for)
    child.take(child.cut(Pushed("sensor", window(0, slices)), 1))
    report = child.take(Flush()).report
    assert report is not None, "a flush is answered"
    return report, len(Wire(asked_for.schemas).encode(Numbered(1_000, report)))


def _node(role: str, below: int, slices: int) -> tuple[float, float, float]:
    """Seconds for a report, for speaking, and for a commit, with so many nodes below."""
    asked_for = question(slices)
    wire = Wire(asked_for.schemas)
    report, _ = _reported(slices)
    names = [f"child{k}" for k in range(below)]
    with tempfile.TemporaryDirectory() as folder:
        config = NodeConfig(
            name="node",
            role="root" if role == "root" else "merge",
            question=asked_for,
            columns=asked_for.source,
            log=Path(folder),
            listen="tcp://127.0.0.1:*",
            parent=None if role == "root" else Parent("tcp://127.0.0.1:1"),
            children=tuple(names),
        )
        with Journal(folder) as journal:
            ledger = Ledger(config, wire, journal)
            took: list[tuple[float, float, float]] = []
            for number in range(1, WINDOWS + 1):
                later = Report(report.watermark + (number - 1) * SECOND, _later(report, number - 1))
                data = wire.encode(Numbered(number, later))
                taking = _seconds(partial(_take, ledger, wire, names, data))
                speaking = _seconds(partial(ledger.write, Flush()))
                took.append((taking / below, speaking, _seconds(ledger.commit)))
    # Others use the processor too: the least is what the work takes. The disk is always shared.
    reports, spoken, _ = np.min(took, axis=0)
    return float(reports), float(spoken), float(np.median([commits for *_, commits in took]))


def _take(ledger: Ledger, wire: Wire, names: Sequence[str], data: bytes) -> None:
    for name in names:
        message = wire.decode(data)
        assert isinstance(message, Numbered), "it was written as one"
        ledger.write(Reported(name, message.number, message.report))


def _later(report: Report, seconds: int) -> dict[str, pa.Table]:
    """The tables of a report, some seconds later."""
    moved = {}
    for name, table in report.tables.items():
        for column in ("start", "first", "last"):
            place = table.schema.get_field_index(column)
            if place >= 0 and pa.types.is_timestamp(table.schema.field(place).type):
                kind = table.schema.field(place).type
                ticks = table.column(place).cast(pa.int64()).to_numpy() + seconds * SECOND
                table = table.set_column(place, column, pa.array(ticks).cast(kind))
        moved[name] = table
    return moved


def _socket(messages: int = 300) -> float:
    """Seconds to receive a message and to answer it."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    listener = Listener(context, "tcp://127.0.0.1:*", None)
    line = Uplink(context, listener.address, None, None)
    try:
        line.send(b"first")
        connection = b""
        while not connection:
            listener.socket.poll(1000)
            for received in listener.receive(1 << 20):
                connection = received.connection
        spent = 0.0
        for _ in range(messages):
            line.send(bytes(150))
            listener.socket.poll(1000)
            begun = time.perf_counter()
            for received in listener.receive(1 << 20):
                listener.send(received.connection, bytes(34))
            spent += time.perf_counter() - begun
            line.socket.poll(1000)
            list(line.receive())
    finally:
        line.close()
        listener.close()
        context.term()
    return spent / messages


def _heartbeat(nodes: int) -> tuple[int, float]:
    """Bytes of a heartbeat that tells of so many nodes, and the seconds to take it."""
    below, above = TreePicture(60.0), TreePicture(60.0)
    for k in range(nodes):
        metrics = Metrics(f"child{k}", "child")
        metrics.count(events=k * 977 + 12_345_678, reports=k + 1_000)
        metrics.sent("parent", 150_000 + 131 * k, 1_000)
        metrics.moved_to(BEGIN)
        below.take(f"child{k}", "node", metrics.as_dict(), 0.01 * k)
    wire = Wire({})
    data = wire.encode(Heartbeat(1_000, {"nodes": below.carried(12.0, "node")}))

    def take() -> None:
        message = wire.decode(data)
        assert isinstance(message, Heartbeat), "it was written as one"
        above.take_all(message.metrics["nodes"], "root", 12.0)

    return len(data), min(_seconds(take) for _ in range(5))


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
