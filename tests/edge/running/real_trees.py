"""Trees of real processes, connected by real sockets, that can be killed and started again."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.config import (
    LimitsConfig,
    NodeConfig,
    Parent,
    ParquetOutputConfig,
    Role,
    ZmqInputConfig,
)
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.nodes.root import in_order
from paneflow.engines.edge.outputs.parquet import read_rows
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.running.node import run
from paneflow.engines.edge.running.pace import Pace
from paneflow.engines.edge.watching.logs import log_to
from paneflow.engines.edge.wire import headers
from paneflow.errors import InputError
from tests.edge.ports import free_port
from tests.edge.running.zygote import Zygote
from tests.waiting import wait_until

QUICK = Pace(linger=0.002, progress=0.2, heartbeat=0.2, show=0.3, retry=0.5, snapshot_every=20_000)
"""Everything sooner than usual, so that tests see it happen often."""
RUNS = "the node runs"
Shape = Mapping[str, list[str]]


@dataclass(frozen=True)
class Job:
    """Runs a node in a process of its own."""

    query: pf.Query
    schema: pa.Schema
    settings: dict[str, Any]
    pace: Pace
    file_bytes: int | None = None
    """No file may become larger: for the process it is as if the disk were full."""
    protocol: int = headers.PROTOCOL
    """The version of the protocol that it speaks."""

    def __call__(self) -> int:
        if self.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, self.file_bytes))
        headers.PROTOCOL = self.protocol
        log_to(sys.stderr, self.settings["name"], as_json=True)
        question = Question(self.query, self.schema)
        return run(NodeConfig(question=question, columns=self.schema, **self.settings), self.pace)


@dataclass
class RealTree:
    """A tree in a folder. Nodes are started by name, and every link may lead through a proxy."""

    folder: Path
    zygote: Zygote
    query: pf.Query
    schema: pa.Schema
    shape: Shape
    pace: Pace = QUICK
    patience: float = 60.0
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    file_bytes: dict[str, int] = field(default_factory=dict)
    protocols: dict[str, int] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    """The processes of nodes that have not been seen to end."""
    started: list[int] = field(default_factory=list)
    """All processes, also those whose nodes have been started again beside them."""

    def __post_init__(self) -> None:
        self.question = Question(self.query, self.schema)
        self.above = {child: name for name, below in self.shape.items() for child in below}
        for name in ["root", *self.above]:
            self.settings[name] = self._settings(name)
        for child, name in self.above.items():
            self.link(child, self.settings[name]["listen"])

    @property
    def leaves(self) -> list[str]:
        """The child nodes."""
        return sorted(name for name in self.above if name not in self.shape)

    @property
    def names(self) -> list[str]:
        """All nodes, parents first."""
        found = ["root"]
        for name in found:
            found += self.shape.get(name, [])
        return found

    def link(self, child: str, address: str) -> None:
        """Let a node connect to its parent at an address, such as that of a proxy."""
        self.settings[child]["parent"] = Parent(address, self.above[child])

    def sensor(self, child: str, name: str) -> Sensor:
        return Sensor(self.settings[child]["inputs"][0].address, name)

    def start(self, *names: str) -> None:
        for name in names or self.names:
            limit = self.file_bytes.get(name)
            protocol = self.protocols.get(name, headers.PROTOCOL)
            job = Job(self.query, self.schema, self.settings[name], self.pace, limit, protocol)
            self.pids[name] = self.zygote.start(job, self.log_file(name))
            self.started.append(self.pids[name])

    def send(self, name: str, number: int) -> None:
        os.kill(self.pids[name], number)

    def kill(self, name: str) -> None:
        """Kill a node as a loss of power would."""
        self.send(name, signal.SIGKILL)
        assert self.wait(name) == -signal.SIGKILL

    def wait(self, name: str) -> int:
        """Wait until a node has ended; returns its exit code."""
        pid = self.pids[name]
        wait_until(lambda: self.zygote.exit_code(pid) is not None)
        del self.pids[name]
        code = self.zygote.exit_code(pid)
        assert code is not None
        return code

    def stop(self, name: str) -> None:
        """Let a node end in order."""
        self.ask_to_end(name, signal.SIGTERM)
        self.has_ended(name)

    def ask_to_end(self, name: str, how: int) -> None:
        """Send a signal to a node once it listens to that."""
        runs = [self.pids[name]]
        wait_until(lambda: runs == [line["process"] for line in self.logged(name, RUNS)][-1:])
        self.send(name, how)

    def has_ended(self, name: str) -> None:
        """Wait until a node has ended in order."""
        code = self.wait(name)
        assert code == 0, (code, self.log(name))

    def leave(self) -> None:
        """All nodes below the root leave, once all they had to say is in its log."""
        for name in self.names[1:]:
            self.ask_to_end(name, signal.SIGUSR1)
        for name in reversed(self.names[1:]):
            self.has_ended(name)

    def rows(self) -> pa.Table:
        """All rows that the root has written, in order."""
        folder = self.folder / "rows"
        try:
            rows = read_rows(folder)
        except InputError:
            rows = self.question.row_schema.empty_table()
        return in_order(rows, self.question)

    def finish(self, rows: int) -> pa.Table:
        """Let the nodes leave, wait for so many rows, and stop the root."""
        self.leave()
        wait_until(lambda: self.rows().num_rows >= rows)
        self.stop("root")
        return self.rows()

    def close(self) -> None:
        """Kill what still runs."""
        for pid in self.started:
            if self.zygote.exit_code(pid) is None:
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda pid=pid: self.zygote.exit_code(pid) is not None)  # type: ignore[misc]

    def log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def log(self, name: str) -> list[dict[str, Any]]:
        """What a node has logged."""
        file = self.log_file(name)
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) if line.startswith("{") else {"event": line} for line in lines]

    def logged(self, name: str, event: str) -> list[dict[str, Any]]:
        """What a node has logged of one kind."""
        return [line for line in self.log(name) if line["event"] == event]

    def _settings(self, name: str) -> dict[str, Any]:
        role: Role = "root" if name == "root" else "merge" if name in self.shape else "child"
        made: dict[str, Any] = {
            "name": name,
            "role": role,
            "log": self.folder / f"{name}-log",
            "children": tuple(self.shape.get(name, ())),
            "patience": self.patience,
            "limits": self.limits,
        }
        here = f"tcp://127.0.0.1:{free_port()}"
        if role == "child":
            return made | {"inputs": (ZmqInputConfig(here),)}
        outputs = (ParquetOutputConfig(self.folder / "rows"),) if role == "root" else ()
        return made | {"listen": here, "outputs": outputs}


def warm_up() -> None:
    """Import and compile what nodes need, before they are forked."""
    schema = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
    query = pf.Query(W.tumbling(10), {"peak": A.max("v"), "n": A.count()}, key="k", time="t")
    query.over(pa.table({"t": [1, 2], "k": ["a", "b"], "v": [3, 4]}, schema))
