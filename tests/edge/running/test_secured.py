"""Nodes with keys: who is let in, and under which name."""

from __future__ import annotations

from pathlib import Path

import pytest

from paneflow.engines.edge.network.keys import KeysError, make_keys, read_keys, read_public
from tests.edge.running.events import events
from tests.edge.running.threads import Threads
from tests.waiting import wait_until


def keep_keys(folder: Path, name: str, *known: str) -> Path:
    """A folder with the keys of a node, and the public keys of those it knows."""
    mine = folder / f"keys-of-{name}"
    for one in (name, *known):
        if not (folder / one / f"{one}.key").exists():
            make_keys(folder / one, one)
    mine.mkdir()
    for file in (folder / name).glob(f"{name}.key*"):
        (mine / file.name).write_bytes(file.read_bytes())
        (mine / file.name).chmod(0o600)
    for one in known:
        (mine / f"{one}.key").write_bytes((folder / one / f"{one}.key").read_bytes())
    return mine


def test_nodes_with_keys_work_like_nodes_without(tree: Threads, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    root = tree.root(keys=keep_keys(keys, "root", "a"))
    child = tree.child("a", root, keys=keep_keys(keys, "a", "root", "plug"))
    plug = keep_keys(keys, "plug", "a")
    sensor = tree.sensor(
        child, "plug", keys=read_keys(plug, "plug"), child_key=read_public(plug, "a")
    )
    sensor.push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())


def test_a_node_with_an_unknown_key_is_refused_and_the_tree_goes_on(
    tree: Threads, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys"
    root = tree.root(keys=keep_keys(keys, "root", "a"))
    tree.child("b", root, keys=keep_keys(keys, "b", "root"))
    wait_until(lambda: "a stranger was refused" in caplog.messages)
    wait_until(lambda: root.metrics().refused)
    assert "b" not in root.metrics().children
    child = tree.child("a", root, keys=keep_keys(keys, "a", "root", "s"))
    s = keep_keys(keys, "s", "a")
    sensor = tree.sensor(child, "s", keys=read_keys(s, "s"), child_key=read_public(s, "a"))
    sensor.push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())


def test_a_known_key_does_not_let_a_node_use_another_name(
    tree: Threads, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys"
    root = tree.root(keys=keep_keys(keys, "root", "a", "b"))
    false = keep_keys(keys, "b", "root")
    for file in list(false.glob("b.key*")):
        file.rename(false / file.name.replace("b", "a", 1))
    tree.child("a", root, keys=false)
    wait_until(lambda: "a node was refused" in caplog.messages)
    [refused] = [r for r in caplog.records if r.message == "a node was refused"][:1]
    assert "does not belong to the key" in refused.fields["why"]  # type: ignore[attr-defined]
    assert root.metrics().children == {}


def test_outside_of_this_machine_nodes_need_keys(tree: Threads) -> None:
    with pytest.raises(KeysError, match="paneflow keys make"):
        tree.root(listen="tcp://*:*")
