"""A tree that is described in a file and run by the command `paneflow`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.outputs.parquet import read_rows
from tests.edge.ports import free_port
from tests.edge.running.events import events
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.processes

TREE = """
[columns]
t = "int64"
k = "string"
v = "int64"

[query]
windows.ten = "tumbling(10)"
aggregates.n = "count()"
time = "t"

[node.root]
role = "root"
log = "logs/root"
listen = "tcp://127.0.0.1:{nodes}"
output = {{ kind = "parquet", folder = "rows" }}

[node.kitchen]
role = "child"
parent = "root"
log = "logs/kitchen"
input = {{ kind = "zmq", address = "tcp://127.0.0.1:{sensors}" }}
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[str]]]:
    ports = {"nodes": free_port(), "sensors": free_port()}
    (tmp_path / "tree.toml").write_text(TREE.format(**ports))
    (tmp_path / "sensors").write_text(f"tcp://127.0.0.1:{ports['sensors']}")
    with ExitStack() as stack:
        started = {}
        for name, role in (("root", "root"), ("kitchen", "child")):
            command = [sys.executable, "-m", "paneflow.cli", "node", role, "--name", name]
            process = subprocess.Popen(
                [*command, "--config", str(tmp_path / "tree.toml"), "--log", "json"],
                stderr=subprocess.PIPE,
                text=True,
            )
            started[name] = stack.enter_context(process)
            stack.callback(process.kill)
        yield started


def test_a_tree_in_a_file_runs_until_it_is_told_to_stop(
    nodes: dict[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    with Sensor((tmp_path / "sensors").read_text(), "0") as sensor:
        sensor.push(events(0, 0, 100))
    wait_until(lambda: list((tmp_path / "rows").glob("*.parquet")))
    assert set(read_rows(tmp_path / "rows")["n"].to_pylist()) == {10}
    for name, stops in (("kitchen", signal.SIGUSR1), ("root", signal.SIGTERM)):
        process = nodes[name]
        process.send_signal(stops)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        said = [json.loads(line) for line in errors.splitlines()]
        assert {line["node"] for line in said} == {name}
        assert [said[0]["event"], said[-1]["event"]] == ["the node runs", "the node has stopped"]
