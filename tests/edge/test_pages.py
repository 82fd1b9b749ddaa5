"""The trees of docs/edge.md and of `examples/edge` run as they are described there."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paneflow import edge
from paneflow.errors import InputError
from tests.edge.ports import free_port
from tests.pages import ROOT, blocks
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.processes

PAGE = ROOT / "docs" / "edge.md"
EXAMPLE = ROOT / "examples" / "edge"
MACHINES = {
    "cloud.example.org": "cloud",
    "gateway.local": "gateway",
    "kitchen.local": "kitchen",
}
COMMAND = [sys.executable, "-m", "paneflow.cli"]


def commands() -> list[tuple[str, list[str]]]:
    """The commands of the section on three machines: on which machine, and their words."""
    section = PAGE.read_text().split("## On three machines")[1].split("\n## ")[0]
    found = re.findall(r"^((?:paneflow|scp) .*?) +# on (\S+)$", section, re.MULTILINE)
    return [(machine, command.split()) for command, machine in found]


def here(text: str) -> str:
    """A file for three machines, for this one."""
    ports: dict[str, int] = {}

    def on_a_free_port(found: re.Match[str]) -> str:
        port = ports.setdefault(found[1], free_port())
        return f"tcp://127.0.0.1:{port}"

    return re.sub(r"tcp://[^:\"]+:(\d+)", on_a_free_port, text)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = edge.read_rows(folder).to_pylist()
    except InputError:
        return []
    return rows


@contextmanager
def running(*commands: tuple[Path, list[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes in their folders; what still runs at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for folder, words in commands:
            with (folder / "err").open("wb") as log:
                started.append(subprocess.Popen([*COMMAND, *words], cwd=folder, stderr=log))
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def leave(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        os.kill(process.pid, signal.SIGUSR1)
    assert [process.wait(PATIENCE) for process in processes] == [0] * len(processes)


def runs(folder: Path) -> bool:
    """Whether the node that logs there listens to signals."""
    lines = (folder / "err").read_text().splitlines()
    return any(json.loads(line)["event"] == "the node runs" for line in lines)


def test_a_tree_on_three_machines_runs_with_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [toml] = [block.text for block in blocks(PAGE) if block.language == "toml"]
    text = here(toml)
    folder = {machine: tmp_path / node for machine, node in MACHINES.items()}
    for place in folder.values():
        place.mkdir()
        (place / "tree.toml").write_text(text)
    nodes = []
    for machine, words in commands():
        match words:
            case ["scp", given, to]:
                given, to = (
                    str(folder[end.split(":")[0]] / end.split(":tree/")[1])
                    if ":" in end
                    else str(folder[machine] / end)
                    for end in (given, to)
                )
                shutil.copy(given, to)
            case ["paneflow", "node", *_]:
                nodes.append((folder[machine], words[1:]))
            case ["paneflow", *rest]:
                subprocess.run([*COMMAND, *rest], cwd=folder[machine], check=True)
    assert len(nodes) == 3
    names: dict[str, Any] = {}
    python = [b.text for b in blocks(PAGE) if b.language == "python" and "def send(" in b.text]
    exec(python[0], {"edge": edge}, names)
    monkeypatch.chdir(folder["kitchen.local"])
    address = edge.read_tree("tree.toml").nodes["kitchen"].inputs[0]
    at = "2026-05-01T12:00:{:02}Z"
    readings = [{"ts": at.format(s), "plug": "oven", "load": float(s)} for s in range(50)]
    with running(*nodes) as processes:
        names["send"]([readings[:25], readings[25:]], address.address)  # type: ignore[union-attr]
        wait_until(lambda: all(runs(place) for place in folder.values()))
        leave(processes)
    rows = rows_in(folder["cloud.example.org"] / "rows")
    assert [(row["window"], row["readings"], row["peak"]) for row in rows] == [
        ("minute", 50, 49.0),
        ("use", 50, 49.0),
    ]


def test_the_example_runs_and_goes_on_where_it_was(tmp_path: Path) -> None:
    text = here((EXAMPLE / "tree.toml").read_text())
    (tmp_path / "tree.toml").write_text(text)
    folders = []
    for role in ("root", "merge", "child"):
        folders.append(tmp_path / role)
        folders[-1].mkdir()
    address = edge.read_tree(tmp_path / "tree.toml").nodes["kitchen"].inputs[0]
    commands = [(place, ["node", place.name, "-c", "../tree.toml"]) for place in folders]
    with running(*commands) as processes:
        for known in (120, 0):
            done = subprocess.run(
                [sys.executable, EXAMPLE / "plug.py", address.address],  # type: ignore[union-attr]
                check=True,
                capture_output=True,
                text=True,
            )
            assert done.stdout == f"{known} readings are in the log of the child\n"
        wait_until(lambda: all(map(runs, folders)))
        leave(processes)
    rows = rows_in(tmp_path / "rows")
    assert sum(row["readings"] for row in rows if row["window"] == "ten") == 120
    assert all(row["complete"] for row in rows)
