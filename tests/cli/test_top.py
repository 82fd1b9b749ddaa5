"""`paneflow node top`: the picture of a tree in a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from paneflow.cli.screen import picture_of
from paneflow.engines.edge.watching.picture import NodeLine, TreePicture
from paneflow.engines.edge.watching.status import StatusServer
from tests.cli.calling import WIDTH, Call
from tests.waiting import PATIENCE

LEFT = b"\x1b[?1049l"
"""What a program sends that gives the terminal back as it was."""


@pytest.fixture
def picture() -> TreePicture:
    """A tree of five nodes; one has died, and one never came."""
    picture = TreePicture(10.0)
    for at in (0.0, 2.0):
        root = {"role": "root", "at": at, "in": int(900 * at), "alive": 1, "children": 2}
        picture.take("cloud", None, root | {"latency": 0.0182, "lag": 2.44}, at)
        merging = {"role": "merge", "at": at, "in": int(700 * at), "out": int(450 * at)}
        picture.take(
            "east", "cloud", merging | {"alive": 1, "children": 2, "queued_bytes": 840}, at
        )
        plug = {"role": "child", "at": at, "events": int(2_100_000 * at), "out": int(210 * at)}
        picture.take("plug-1", "east", plug | {"lag": 1.2}, at)
    picture.take("plug-2", "east", {"role": "child", "events": 5000, "lag": 7.0}, -60.0)
    picture.expect("west", "cloud")
    return picture


def shown(lines: list[NodeLine], width: int) -> list[str]:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(picture_of(lines, width))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_wide_terminal_shows_all_columns(picture: TreePicture) -> None:
    assert shown(picture.lines(2.5), 110) == [
        "5 nodes, 2 dead",
        "node          role   events/s  in/s  out/s  events  latency   lag  children  waiting"
        "       heard",
        "────────────────────────────────────────────────────────────────────────────────────"
        "────────────",
        "cloud         root          ·  900B      ·       ·   18.2ms  2.4s    1 of 2        ·"
        "         now",
        "├─ east       merge         ·  700B   450B       ·        ·     ·    1 of 2     840B"
        "         now",
        "│  ├─ plug-1  child      2.1M     ·   210B    4.2M        ·  1.2s         ·        ·"
        "         now",
        "│  └─ plug-2  child         ·     ·      ·      5k        ·     ·         ·        ·"
        "  1.0min ago",
        "└─ west       ?             ·     ·      ·       ·        ·     ·         ·        ·"
        "       never",
    ]


@pytest.mark.parametrize("width", [45, 60, 80, 100])
def test_a_narrow_terminal_leaves_columns_out_instead_of_cutting_them(
    picture: TreePicture, width: int
) -> None:
    lines = shown(picture.lines(2.5), width)
    assert max(map(len, lines)) <= width
    header = lines[1].split()
    assert header[0] == "node"
    assert {"events/s", "lag", "heard"} <= set(header)
    assert "…" not in "".join(lines)
    assert any("plug-2" in line and line.endswith("1.0min ago") for line in lines)


def test_long_names_are_cut_before_figures(picture: TreePicture) -> None:
    picture.take("a-node-with-" + "a-very-" * 10 + "long-name", "cloud", {"lag": 1.5}, 2.0)
    lines = shown(picture.lines(2.5), 70)
    (line,) = (line for line in lines if "a-node-with" in line)
    assert "…" in line
    assert line.endswith("now") and "1.5s" in line


def test_a_dead_node_shows_no_figures_that_pass(picture: TreePicture) -> None:
    (line,) = (line for line in shown(picture.lines(2.5), 110) if "plug-2" in line)
    assert "7.0s" not in line and "7s" not in line


def test_a_tree_without_nodes_is_shown(picture: TreePicture) -> None:
    assert shown([], 80)[0] == "0 nodes, all alive"


@pytest.fixture
def server(picture: TreePicture) -> Iterator[StatusServer]:
    with StatusServer("tcp://127.0.0.1:*", lambda: picture.lines(2.5), "cloud") as server:
        yield server


def test_one_picture_of_a_running_node(
    call: Call, server: StatusServer, picture: TreePicture
) -> None:
    answer = call("node", "top", "--of", server.address, "--once")
    assert (answer.code, answer.err) == (0, "")
    assert [line.rstrip() for line in answer.out.splitlines()] == shown(picture.lines(2.5), WIDTH)


def read_until(terminal: int, wanted: bytes) -> bytes:
    """What a terminal shows, until it shows something."""
    seen = b""
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, f"the terminal does not show {wanted!r}, only {seen!r}"
        seen += os.read(terminal, 65536)
    return seen


@pytest.mark.processes
def test_the_live_picture_changes_until_somebody_interrupts_it(
    picture: TreePicture,
) -> None:
    ours, theirs = pty.openpty()
    server = StatusServer("tcp://127.0.0.1:*", lambda: picture.lines(2.5), "cloud")
    command = [sys.executable, "-m", "paneflow.cli", "node", "top", "--of", server.address]
    with subprocess.Popen(
        [*command, "--every", "100 ms"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(WIDTH), "LINES": "24"},
    ) as process:
        try:
            with server:
                read_until(ours, b"plug-2")
                picture.take("newcomer", "cloud", {"role": "child"}, 2.5)
                read_until(ours, b"newcomer")
            read_until(ours, b"has not answered")
            process.send_signal(signal.SIGINT)
            read_until(ours, LEFT)
            assert process.wait(PATIENCE) == 0
            assert process.stderr is not None
            assert process.stderr.read() == b""
        finally:
            process.kill()
    os.close(ours)
    os.close(theirs)
