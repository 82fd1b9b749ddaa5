"""The commands: what they print, and that mistakes are one line."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

import paneflow
from paneflow.engines.edge.config import NodeConfig
from paneflow.engines.edge.network.keys import read_keys
from tests.cli.calling import Call

TREE = """
[columns]
ts = "timestamp[us, UTC]"
house = "string"
load = "float64"

[query]
key = "house"
lateness = "2 seconds"
windows = { minute = "tumbling('1 minute')", ten = "count(10)" }
aggregates = { peak = "max('load')", mean = "mean('load')" }

[interpretations]
ten = "local"

[node.cloud]
role = "root"
listen = "tcp://127.0.0.1:7000"
log = "logs/cloud"
output = { kind = "stdout" }

[node.house-1]
role = "child"
parent = "cloud"
log = "logs/house-1"
input = { kind = "zmq", address = "tcp://127.0.0.1:*" }

[node.house-2]
role = "child"
parent = "cloud"
log = "logs/house-2"
input = { kind = "zmq", address = "tcp://127.0.0.1:*" }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A file that describes a tree."""
    file = tmp_path / "tree.toml"
    file.write_text(TREE)
    return file


def test_the_version_is_shown(call: Call) -> None:
    assert call("--version") == (0, f"paneflow {paneflow.__version__}\n", "")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ([], ["node", "keys", "query"]),
        (["node"], ["child", "merge", "root", "top"]),
        (["keys"], ["make"]),
        (["query"], ["check"]),
    ],
)
def test_help_shows_the_commands(call: Call, command: list[str], shown: list[str]) -> None:
    answer = call(*command, "--help")
    assert answer.code == 0
    assert all(name in answer.out for name in shown)


def test_a_query_is_checked_and_explained(call: Call, tree: Path) -> None:
    answer = call("query", "check", tree)
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "columns: ts timestamp[us, UTC], house string, load float64",
        "time: ts, up to 2s out of order",
        "key: house",
        "aggregates:",
        "  peak = max(load)",
        "  mean = mean(load)",
        "windows:",
        "  minute = tumbling(1m)",
        "    slices: its bounds are the same on every node, so slices are merged on the way",
        "  ten = count(10)",
        "    local: each child node answers for its own events",
        "nodes:",
        "  cloud: root, listens at tcp://127.0.0.1:7000",
        "    house-1: child, reports to tcp://127.0.0.1:7000",
        "    house-2: child, reports to tcp://127.0.0.1:7000",
    ]


def test_mistakes_are_one_line_without_a_traceback(call: Call, tree: Path) -> None:
    tree.write_text(TREE.replace("max('load')", "maks('load')"))
    for command in (["query", "check", tree], ["node", "root", "--config", tree]):
        answer = call(*command)
        assert answer.code == 2
        assert answer.out == ""
        assert answer.err.count("\n") == 1
        assert answer.err.startswith(f"paneflow: {tree}: [query]: aggregate 'peak' is")
        assert "did you mean 'max'" in answer.err


def test_an_error_of_several_lines_is_told_in_one(
    call: Call, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tree.parent / "asked_in_vain.py").write_text("raise ValueError('first\\nsecond')")
    tree.write_text('query = "asked_in_vain:query"\n[columns]\nts = "int64"\n')
    answer = call("query", "check", tree)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert answer.err.endswith("cannot be imported: ValueError: first second\n")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["node", "child"], "2 nodes with the role 'child' (house-1, house-2): say which"),
        (["node", "child", "--name", "house-3"], "no [node.house-3]: did you mean 'house-"),
        (["node", "merge", "--name", "cloud"], "run `paneflow node root`"),
        (["node", "root", "--config", "other.toml"], "other.toml cannot be read"),
        (["node", "top", "--of", "cloud"], "'cloud' cannot be asked"),
        (["node", "top", "--of", "tcp://127.0.0.1:1", "--keys", "k"], "--keys also needs --as"),
        (["node", "top", "--of", "tcp://127.0.0.1:1", "--every", "often"], "--every was given as"),
        (["keys", "make", "keys", "-", "ok"], "'-' cannot be the name of a node"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    call: Call, tree: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], reason: str
) -> None:
    monkeypatch.chdir(tree.parent)
    answer = call(*command)
    assert answer.code == 2
    assert answer.err.startswith("paneflow: ")
    assert reason in answer.err
    assert answer.err.count("\n") == 1


def test_an_unknown_command_is_refused(call: Call) -> None:
    answer = call("nod")
    assert answer.code == 2
    assert "Did you mean 'node'" in answer.err


def test_a_node_runs_as_its_file_says(
    call: Call, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[NodeConfig] = []

    def run(config: NodeConfig) -> int:
        ran.append(config)
        return 7

    monkeypatch.setattr("paneflow.engines.edge.running.node.run", run)
    assert call("node", "child", "--config", tree, "--name", "house-2").code == 7
    monkeypatch.chdir(tree.parent)
    assert call("node", "root").code == 7
    assert [(config.name, config.role) for config in ran] == [
        ("house-2", "child"),
        ("cloud", "root"),
    ]
    assert ran[1].children == ("house-1", "house-2")


def test_keys_are_made_for_each_node(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    answer = call("keys", "make", folder, "cloud", "house-1")
    assert answer.code == 0
    assert len(answer.out.splitlines()) == 4
    assert read_keys(folder, "cloud").public != read_keys(folder, "house-1").public
    assert stat.S_IMODE((folder / "cloud.key_secret").stat().st_mode) == 0o600
    again = call("keys", "make", folder, "cloud")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "has keys of 'cloud' already" in again.err


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_one_line_says_how_to_install_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in list(sys.modules):
        if name.startswith("paneflow.cli."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    answer = call("--version")
    assert answer == (2, "", f'paneflow: {package} is missing: pip install "paneflow[edge]"\n')


def test_another_missing_module_is_no_matter_of_the_extra(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith("paneflow.cli."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "paneflow.written", None)
    with pytest.raises(ModuleNotFoundError, match=r"paneflow\.written"):
        call("--version")


@pytest.mark.processes
def test_the_command_runs_as_a_process(tree: Path) -> None:
    command = [sys.executable, "-m", "paneflow.cli", "query", "check", str(tree)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("columns: ts timestamp[us, UTC]")
    assert answer.stderr == ""
